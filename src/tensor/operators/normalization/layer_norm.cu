/* SPDX-License-Identifier: MIT
 * The CUDA kernels of layer_norm.c. A team computes a row.
 */
#include "tensor/operators/common/element.cuh"
#include "tensor/operators/common/joined.cuh"
#include "tensor/operators/common/operator_rows.cuh"

struct norm_shape {
  size_t rows, columns, parts, part_rows;
  unsigned is_centred, f32_parameters;
};

__device__ inline float parameter_at(const norm_shape &shape, const void *parameter, size_t i) {
  if (shape.f32_parameters) return ((const float *)parameter)[i];
  return to_float(((const element *)parameter)[i]);
}

extern "C" __global__ void layer_norm_TYPE(norm_shape shape, float epsilon, const element *__restrict__ x,
                                           const void *__restrict__ scale, const void *__restrict__ shift,
                                           element *__restrict__ y, float *__restrict__ deviations,
                                           float *__restrict__ means, const element *addend, element *total) {
  const row_team team = team_of(shape.columns);
  for (size_t row = team.first; row < shape.rows; row += team.stride) {
    const element *from = (addend != 0 ? total : x) + row * shape.columns;
    element *to = y + row * shape.columns;
    float sum = 0, squares = 0;
    for (size_t i = row * shape.columns + team.lane; i < (row + 1) * shape.columns && addend != 0; i += team.lanes)
      total[i] = to_element(to_float(x[i]) + to_float(addend[i])); /* the lane reads what it wrote */
    if (shape.is_centred) {
      for (size_t i = team.lane; i < shape.columns; i += team.lanes) sum += to_float(from[i]);
      sum = team_join<join_sum>(team, sum);
    }
    const float mean = sum / (float)shape.columns;
    for (size_t i = team.lane; i < shape.columns; i += team.lanes) {
      const float off = to_float(from[i]) - mean;
      squares += off * off;
    }
    squares = team_join<join_sum>(team, squares);
    const float deviation = 1.0f / sqrtf(squares / (float)shape.columns + epsilon);
    if (team.lane == 0) {
      deviations[row] = deviation;
      if (means != 0) means[row] = mean;
    }
    for (size_t i = team.lane; i < shape.columns; i += team.lanes) {
      float value = (to_float(from[i]) - mean) * deviation;
      if (scale != 0) value *= parameter_at(shape, scale, i);
      if (shift != 0) value += parameter_at(shape, shift, i);
      to[i] = to_element(value);
    }
  }
}

/* The gradient of a row, computed by a team. */
__device__ inline void row_gradient(const norm_shape &shape, const row_team &team, size_t row,
                                    const element *__restrict__ x, const element *__restrict__ dy,
                                    const void *__restrict__ scale, float deviation, float mean,
                                    const element *__restrict__ addend, element *__restrict__ dx) {
  const size_t at = row * shape.columns;
  float of_g = 0, of_gh = 0;
  for (size_t i = team.lane; i < shape.columns; i += team.lanes) {
    const float g = to_float(dy[at + i]) * (scale != 0 ? parameter_at(shape, scale, i) : 1.0f);
    of_g += g;
    of_gh += g * ((to_float(x[at + i]) - mean) * deviation);
  }
  of_g = shape.is_centred ? team_join<join_sum>(team, of_g) / (float)shape.columns : 0.0f;
  of_gh = team_join<join_sum>(team, of_gh) / (float)shape.columns;
  for (size_t i = team.lane; i < shape.columns; i += team.lanes) {
    const float g = to_float(dy[at + i]) * (scale != 0 ? parameter_at(shape, scale, i) : 1.0f);
    const float h = (to_float(x[at + i]) - mean) * deviation;
    const element own = to_element(deviation * (g - of_g - h * of_gh));
    dx[at + i] = addend != 0 ? to_element(__fadd_rn(to_float(addend[at + i]), to_float(own))) : own;
  }
}

/* A block computes a part: its teams compute the rows, then its threads add the columns, in the order of the rows. */
extern "C" __global__ void layer_norm_gradient_TYPE(norm_shape shape, const element *__restrict__ x,
                                                    const element *__restrict__ dy, const void *__restrict__ scale,
                                                    const float *__restrict__ deviations,
                                                    const float *__restrict__ means, element *__restrict__ dx,
                                                    float *__restrict__ sums, const element *__restrict__ addend) {
  const row_team team = team_of(shape.columns);
  const bool is_block = team.lanes == BLOCK_THREADS;
  for (size_t part = blockIdx.x; part < shape.parts; part += gridDim.x) {
    const size_t first = part * shape.part_rows;
    const size_t last = shape.rows - first > shape.part_rows ? first + shape.part_rows : shape.rows;
    for (size_t row = first + (is_block ? 0 : threadIdx.x / WARP); row < last && dx != 0; row += is_block ? 1 : WARPS)
      row_gradient(shape, team, row, x, dy, scale, deviations[row], means != 0 ? means[row] : 0.0f, addend, dx);
    for (size_t column = threadIdx.x; column < shape.columns && sums != 0; column += BLOCK_THREADS) {
      float of_scale = 0, of_shift = 0;
#pragma unroll 8
      for (size_t row = first; row < last; row++) {
        const size_t at = row * shape.columns + column;
        const float g = to_float(dy[at]), mean = means != 0 ? means[row] : 0.0f;
        of_scale += g * ((to_float(x[at]) - mean) * deviations[row]);
        of_shift += g;
      }
      sums[part * shape.columns + column] = of_scale;
      if (shape.is_centred) sums[(shape.parts + part) * shape.columns + column] = of_shift;
    }
  }
}

struct sums_shape {
  size_t columns, parts, width;
  unsigned tiles, results;
};

#define POINTERS(i) , const float *sums##i, element *of_scale##i, element *of_shift##i
#define PICK(i)                                   \
  case i:                                         \
    sums = sums##i;                               \
    to = result == 0 ? of_scale##i : of_shift##i; \
    break;

/* A block adds WARP columns of a result: each warp adds every WARPS-th part, then the warps' sums are added in order.
 */
extern "C" __global__ void layer_norm_parameters_TYPE(sums_shape shape EACH_JOINED(POINTERS)) {
  __shared__ float of_warps[WARPS][WARP];
  const unsigned lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
  const unsigned unit = blockIdx.x % (shape.tiles * shape.results), result = unit / shape.tiles;
  const size_t column = (size_t)(unit % shape.tiles) * WARP + lane;
  const float *sums = 0;
  element *to = 0;
  float sum = 0;
  switch (blockIdx.x / (shape.tiles * shape.results)) { EACH_JOINED(PICK) }
  sums += result * shape.parts * shape.columns + column;
#pragma unroll 8
  for (size_t part = warp; part < shape.parts; part += WARPS)
    sum += column < shape.columns ? sums[part * shape.columns] : 0.0f;
  of_warps[warp][lane] = sum;
  __syncthreads();
  if (warp > 0 || column >= shape.columns) return;
  for (unsigned other = 1; other < WARPS; other++) sum += of_warps[other][lane];
  to[column] = to_element(sum);
}
