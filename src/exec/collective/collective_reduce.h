/* SPDX-License-Identifier: MIT
 * Combining what ranks have, element by element, in the order of ranks.
 */
#ifndef RONDO_EXEC_COLLECTIVE_REDUCE_H
#define RONDO_EXEC_COLLECTIVE_REDUCE_H

#include <rondo/collective.h>
#include <stdbool.h>

/* dst[i] = dst[i] combined with src[i]; the two do not overlap. */
typedef void (*rondo_reduce_function)(void *dst, const void *src, size_t count);

/* NULL when the type has none. */
rondo_reduce_function rondo_reduce_find(rondo_type type, rondo_reduction reduction);

bool rondo_reduction_is_known(rondo_reduction reduction);

#endif
