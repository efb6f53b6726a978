/* SPDX-License-Identifier: MIT
 * Reductions over one row. Each lane has a partial result, and the lanes are combined in a fixed order, so results are
 * the same on every machine and for every number of workers. For the bodies of vectorised functions (vectors.h).
 */
#ifndef RONDO_TENSOR_OPERATORS_COMMON_OPERATOR_ROWS_H
#define RONDO_TENSOR_OPERATORS_COMMON_OPERATOR_ROWS_H

#include <math.h>

#include "tensor/operators/common/element.h"
#include "tensor/operators/common/kernel_support.h"

/* On CUDA, a warp reduces a row of at most this many columns; a whole block reduces a wider one (operator_rows.cuh). */
#define RONDO_NARROW_ROW 1024

/* Rows of a block. On a CPU, a block has some thousand elements. */
RONDO_INLINE rondo_grain rondo_row_grain(size_t columns) {
  assert(columns > 0);
  return (rondo_grain){4096 / columns + 1, columns > RONDO_NARROW_ROW ? 1 : RONDO_CUDA_THREADS / 32};
}

/* Adds the lanes pair by pair: the upper half to the lower half. */
RONDO_INLINE float rondo_join_lanes(float *sums) {
  for (size_t lane = 0; lane < 8; lane++) sums[lane] += sums[lane + 8];
  for (size_t lane = 0; lane < 4; lane++) sums[lane] += sums[lane + 4];
  return (sums[0] + sums[2]) + (sums[1] + sums[3]);
}

/* May ignore NaN if another element is above -infinity: the sum of exponentials is NaN then. */
RONDO_INLINE float rondo_row_max(const float *x, size_t count) {
  float largest[RONDO_LANES];
  assert(count > 0);
  for (size_t lane = 0; lane < RONDO_LANES; lane++) largest[lane] = x[lane < count ? lane : 0];
  RONDO_EACH_LANE(i, lane, count, largest[lane] = x[i] > largest[lane] ? x[i] : largest[lane]);
  for (size_t half = RONDO_LANES / 2; half > 0; half /= 2) {
    for (size_t lane = 0; lane < half; lane++)
      largest[lane] = largest[lane + half] > largest[lane] ? largest[lane + half] : largest[lane];
  }
  if (largest[0] > -INFINITY) return largest[0];
  float sums[RONDO_LANES] = {0}; /* NaN if an element is; else -infinity, because all are */
  RONDO_EACH_LANE(i, lane, count, sums[lane] += x[i]);
  return rondo_join_lanes(sums);
}

/* The sum of exp(x[i] - largest), where largest is the row's maximum. */
RONDO_INLINE float rondo_row_exp_sum(const float *x, float largest, size_t count) {
  float sums[RONDO_LANES] = {0};
  RONDO_EACH_LANE(i, lane, count, sums[lane] += rondo_exp_negative(x[i] - largest));
  return rondo_join_lanes(sums);
}

/* y[i] = scale * exp(x[i] - largest). */
RONDO_INLINE void rondo_row_scaled_exp(const float *restrict x, float largest, float scale, float *restrict y,
                                       size_t count) {
  RONDO_EACH_LANE(i, lane, count, y[i] = scale * rondo_exp_negative(x[i] - largest));
}

RONDO_INLINE float rondo_row_dot(const float *x, const float *y, size_t count) {
  float sums[RONDO_LANES] = {0};
  RONDO_EACH_LANE(i, lane, count, sums[lane] += x[i] * y[i]);
  return rondo_join_lanes(sums);
}

/* The same for a row of any float type that begins at element `first`, chunk by chunk. */

RONDO_INLINE float rondo_typed_row_max(rondo_type type, const void *x, size_t first, size_t columns) {
  float largest = -INFINITY, buffer[RONDO_CHUNK];
  RONDO_EACH_CHUNK(at, length, 0, columns) {
    const float here = rondo_row_max(rondo_load_chunk(type, x, first + at, length, buffer), length);
    if (here > largest) largest = here;
  }
  return largest;
}

RONDO_INLINE float rondo_typed_row_exp_sum(rondo_type type, const void *x, size_t first, float largest,
                                           size_t columns) {
  float sum = 0, buffer[RONDO_CHUNK];
  RONDO_EACH_CHUNK(at, length, 0, columns) {
    sum += rondo_row_exp_sum(rondo_load_chunk(type, x, first + at, length, buffer), largest, length);
  }
  return sum;
}

#endif
