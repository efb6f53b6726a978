/* SPDX-License-Identifier: MIT
 * The CUDA form of layer_norm.c. A team has a row; sums over rows are taken by blocks that have 32 columns of a part
 * of the rows, each warp every 8th row of it, whose sums are added in the warps' order.
 */
#include "tensor/operators/element.cuh"
#include "tensor/operators/rows.cuh"

struct norm_shape {
  size_t rows, columns, parts;
  unsigned is_centred, f32_parameters;
};

__device__ inline float parameter_at(const norm_shape &shape, const void *parameter, size_t i) {
  if (shape.f32_parameters) return ((const float *)parameter)[i];
  return to_float(((const element *)parameter)[i]);
}

extern "C" __global__ void layer_norm_TYPE(norm_shape shape, float epsilon, const element *__restrict__ x,
                                           const void *__restrict__ scale, const void *__restrict__ shift,
                                           element *__restrict__ y, float *__restrict__ deviations,
                                           float *__restrict__ means) {
  const row_team team = team_of(shape.columns);
  for (size_t row = team.first; row < shape.rows; row += team.stride) {
    const element *from = x + row * shape.columns;
    element *to = y + row * shape.columns;
    float sum = 0, squares = 0;
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

extern "C" __global__ void layer_norm_gradient_TYPE(norm_shape shape, const element *__restrict__ x,
                                                    const element *__restrict__ dy, const void *__restrict__ scale,
                                                    const float *__restrict__ deviations,
                                                    const float *__restrict__ means, element *__restrict__ dx) {
  const row_team team = team_of(shape.columns);
  for (size_t row = team.first; row < shape.rows; row += team.stride) {
    const size_t at = row * shape.columns;
    const float deviation = deviations[row], mean = means != 0 ? means[row] : 0.0f;
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
      dx[at + i] = to_element(deviation * (g - of_g - h * of_gh));
    }
  }
}

extern "C" __global__ void layer_norm_parts_TYPE(norm_shape shape, const element *__restrict__ x,
                                                 const element *__restrict__ dy, const float *__restrict__ deviations,
                                                 const float *__restrict__ means, float *__restrict__ sums) {
  __shared__ float of_warps[2][WARPS][WARP];
  const unsigned lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
  const size_t tiles = (shape.columns + WARP - 1) / WARP;
  const size_t share = (shape.rows + shape.parts - 1) / shape.parts;
  for (size_t unit = blockIdx.x; unit < shape.parts * tiles; unit += gridDim.x) {
    const size_t part = unit / tiles, column = unit % tiles * WARP + lane;
    const size_t last = shape.rows - part * share > share ? (part + 1) * share : shape.rows;
    float of_scale = 0, of_shift = 0;
    for (size_t row = part * share + warp; row < last && column < shape.columns; row += WARPS) {
      const size_t at = row * shape.columns + column;
      const float g = to_float(dy[at]);
      of_scale += g * ((to_float(x[at]) - (means != 0 ? means[row] : 0.0f)) * deviations[row]);
      of_shift += g;
    }
    of_warps[0][warp][lane] = of_scale;
    of_warps[1][warp][lane] = of_shift;
    __syncthreads();
    if (warp < (shape.is_centred ? 2u : 1u) && column < shape.columns) {
      float sum = of_warps[warp][0][lane];
      for (unsigned other = 1; other < WARPS; other++) sum += of_warps[warp][other][lane];
      sums[(warp * shape.parts + part) * shape.columns + column] = sum;
    }
    __syncthreads(); /* the sums have been read */
  }
}

__device__ inline void join_parts(const norm_shape &shape, const float *__restrict__ sums, element *__restrict__ to) {
  for (size_t i = first_element(); i < shape.columns; i += element_stride()) {
    float sum = sums[i];
    for (size_t part = 1; part < shape.parts; part++) sum += sums[part * shape.columns + i];
    to[i] = to_element(sum);
  }
}

extern "C" __global__ void layer_norm_join_TYPE(norm_shape shape, const float *__restrict__ sums,
                                                element *__restrict__ of_scale, element *__restrict__ of_shift) {
  join_parts(shape, sums, of_scale);
  if (of_shift != 0) join_parts(shape, sums + shape.parts * shape.columns, of_shift);
}
