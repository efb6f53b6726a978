/* SPDX-License-Identifier: MIT
 * Copies of every step-th float of a line, as convolutions and pooling with a stride read images. Whole lanes are
 * copied where the memory allows, so both sides have to allow more than `count` elements. It is inlined into loops that
 * are compiled for several vector widths (vectors.h). Threads: any.
 */
#ifndef RONDO_TENSOR_OPERATORS_COMMON_STRIDED_LANES_H
#define RONDO_TENSOR_OPERATORS_COMMON_STRIDED_LANES_H

#include <stdint.h>
#include <string.h>

#include "base/numbers/always_inline.h"
#include "tensor/operators/common/kernel_support.h"

typedef float rondo_four __attribute__((vector_size(16)));
typedef int32_t rondo_four_masks __attribute__((vector_size(16))); /* -1: true */

/* The first of each of four pairs of floats: compilers do not vectorise a loop over them themselves at -O2. */
RONDO_INLINE rondo_four rondo_load_pairs(const float *from) {
  rondo_four low, high;
  memcpy(&low, from, sizeof low);
  memcpy(&high, from + 4, sizeof high);
  return __builtin_shufflevector(low, high, 0, 2, 4, 6);
}

RONDO_INLINE void rondo_copy_pairs(const float *restrict from, float *restrict to) {
  for (size_t i = 0; i < RONDO_LANES; i += 4) {
    const rondo_four firsts = rondo_load_pairs(from + 2 * i);
    memcpy(to + i, &firsts, sizeof firsts);
  }
}

/* to[i] = from[i step]. Reads no element from `last` on, and writes up to RONDO_LANES - 1 more than `count`. */
RONDO_INLINE void rondo_copy_strided(const float *restrict from, const float *last, size_t step, size_t count,
                                     float *restrict to) {
  size_t i = 0;
  for (; step <= 2 && i < count && (size_t)(last - from) >= (i + RONDO_LANES) * step; i += RONDO_LANES) {
    if (step == 1)
      memcpy(to + i, from + i, RONDO_LANES * sizeof *to);
    else
      rondo_copy_pairs(from + i * 2, to + i);
  }
  for (; i < count; i++) to[i] = from[i * step];
}

#endif
