/* SPDX-License-Identifier: MIT
 * The CUDA kernel of quantized_rows.c: a team of threads rounds a row to integers. Their order is kept, and there are
 * no starts; both are for dot products on a CPU.
 */
#include "tensor/operators/common/element.cuh"
#include "tensor/operators/common/operator_rows.cuh"

#define LEAST_MAGNITUDE 1e-36f /* below, the factor would be infinite */

struct quantized_rows {
  size_t rows, columns, padded, group, groups;
  long long start_factor;
  unsigned unit, is_int8;
};

/* NaN if an element is not finite. */
__device__ inline float largest_magnitude(const row_team &team, const element *x, size_t columns) {
  float largest = 0, sum = 0;
  for (size_t i = team.lane; i < columns; i += team.lanes) {
    const float magnitude = fabsf(to_float(x[i]));
    largest = fmaxf(largest, magnitude);
    sum += magnitude - magnitude;
  }
  return team_join<join_max>(team, largest) + team_join<join_sum>(team, sum);
}

extern "C" __global__ void quantized_rows_TYPE(quantized_rows shape, const element *__restrict__ x,
                                               signed char *__restrict__ values, void *__restrict__ starts,
                                               float *__restrict__ scales) {
  const row_team team = team_of(shape.columns);
  for (size_t row = team.first; row < shape.rows; row += team.stride) {
    const element *const from = x + row * shape.columns;
    const float largest = largest_magnitude(team, from, shape.columns);
    const float factor = largest > LEAST_MAGNITUDE ? 127 / largest : 0;
    if (team.lane == 0) scales[row] = largest / 127;
    for (size_t i = team.lane; i < shape.padded; i += team.lanes)
      values[row * shape.padded + i] =
          (signed char)(i < shape.columns && factor != 0 ? __float2int_rn(to_float(from[i]) * factor) : 0);
  }
}
