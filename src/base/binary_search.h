/* SPDX-License-Identifier: MIT
 * Binary search over a sorted sequence. It is a macro so that each caller writes its comparison inline.
 */
#ifndef RONDO_BASE_BINARY_SEARCH_H
#define RONDO_BASE_BINARY_SEARCH_H

/* Sets `low` to the first index in [low, high) for which `is_before` is false, or to `high` if there is none.
 * `is_before` is an expression of the index `middle`; it is true for a prefix of the indices and false for the others.
 * `low` and `high` are variables of one unsigned type; afterwards they are equal. */
#define RONDO_BINARY_SEARCH(low, high, middle, is_before)        \
  while ((low) < (high)) {                                       \
    const __typeof__(low) middle = (low) + ((high) - (low)) / 2; \
    if (is_before)                                               \
      (low) = middle + 1;                                        \
    else                                                         \
      (high) = middle;                                           \
  }

#endif
