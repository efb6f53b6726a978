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

/* Calls of(k, i) for each element i of a row that belongs to the lane, in order. The first HELD have a number k, so
 * that the caller can hold them in registers; for the others k is HELD. */
template <unsigned LANES, unsigned HELD, class F>
__device__ inline void each_of_lane(unsigned lane, size_t columns, F of) {
#pragma unroll
  for (unsigned k = 0; k < HELD; k++)
    if (lane + k * LANES < columns) of(k, (size_t)lane + k * LANES);
#pragma unroll 1
  for (size_t i = lane + HELD * LANES; i < columns; i += LANES) of(HELD, i);
}

/* Wide enough for rows of 1,024 elements by a warp, and of 8,192 by a block. Short rows are quicker with few. */
#define FEW 8
#define MANY 32

/* `count` neighbouring elements, 1 or PACK, which are aligned as a pack. */
template <unsigned count, class T>
__device__ inline void load_some(const T *from, float *to) {
  if (count == 1) {
    *to = to_float(*from);
    return;
  }
  const pack<T> all = *(const pack<T> *)from;
#pragma unroll
  for (unsigned u = 0; u < count; u++) to[u] = to_float(all.at[u % PACK]);
}

template <unsigned count>
__device__ inline void store_some(element *to, const float *from) {
  if (count == 1) {
    *to = to_element(*from);
    return;
  }
  pack<element> all;
#pragma unroll
  for (unsigned u = 0; u < count; u++) all.at[u % PACK] = to_element(from[u]);
  *(pack<element> *)to = all;
}

template <unsigned count>
__device__ inline void load_parameters(const norm_shape &shape, const void *parameter, size_t i, float *to) {
  if (shape.f32_parameters)
    load_some<count>((const float *)parameter + i, to);
  else
    load_some<count>((const element *)parameter + i, to);
}

struct norm_row {
  const element *x, *addend; /* addend: NULL, or what is added first, with the sum in `total` */
  element *total, *y;
  const void *scale, *shift;
};

/* Units of neighbouring elements of a row, of which a lane takes every LANES-th and holds the first HELD. */
template <unsigned LANES, unsigned HELD, unsigned UNIT>
struct row_reader {
  const norm_shape &shape;
  const norm_row &row;
  unsigned lane;
  float held[HELD][UNIT];

  /* All loads come before the first write. */
  __device__ row_reader(const norm_shape &of, const norm_row &in, unsigned own) : shape(of), row(in), lane(own) {
    each([&](unsigned k, size_t i) {
      if (k < HELD) load_sum(i, held[k % HELD]);
    });
    if (row.addend == 0) return;
    each([&](unsigned k, size_t i) {
      float sum[UNIT];
      if (k >= HELD) load_sum(i, sum);
      store_some<UNIT>(row.total + i, k < HELD ? held[k % HELD] : sum);
    });
  }

  /* Elements of x, or of the rounded sum with the addend. */
  __device__ inline void load_sum(size_t i, float *to) const {
    float other[UNIT];
    load_some<UNIT>(row.x + i, to);
    if (row.addend == 0) return;
    load_some<UNIT>(row.addend + i, other);
#pragma unroll
    for (unsigned u = 0; u < UNIT; u++) to[u] = to_float(to_element(to[u] + other[u]));
  }

  /* of(k, i) for each unit, which begins at element i. */
  template <class F>
  __device__ inline void each(F of) const {
    each_of_lane<LANES, HELD>(lane, shape.columns / UNIT, [&](unsigned k, size_t unit) { of(k, unit * UNIT); });
  }

  /* A lane reads again what it wrote. */
  __device__ inline void read(unsigned k, size_t i, float *to) const {
    if (k >= HELD) load_some<UNIT>((row.addend != 0 ? row.total : row.x) + i, to);
#pragma unroll
    for (unsigned u = 0; u < UNIT && k < HELD; u++) to[u] = held[k % HELD][u];
  }
};

template <unsigned LANES, unsigned HELD, unsigned UNIT>
__device__ inline void normalize_row(const norm_shape &shape, const row_team &team, float epsilon, const norm_row &row,
                                     float *out_deviation, float *out_mean) {
  const row_reader<LANES, HELD, UNIT> reader(shape, row, team.lane);
  float sum = 0, squares = 0;
  if (shape.is_centred) {
    reader.each([&](unsigned k, size_t i) {
      float x[UNIT];
      reader.read(k, i, x);
#pragma unroll
      for (unsigned u = 0; u < UNIT; u++) sum += x[u];
    });
    sum = team_join<join_sum>(team, sum);
  }
  const float mean = sum / (float)shape.columns;
  reader.each([&](unsigned k, size_t i) {
    float x[UNIT];
    reader.read(k, i, x);
#pragma unroll
    for (unsigned u = 0; u < UNIT; u++) squares += (x[u] - mean) * (x[u] - mean);
  });
  squares = team_join<join_sum>(team, squares);
  const float deviation = 1.0f / sqrtf(squares / (float)shape.columns + epsilon);
  reader.each([&](unsigned k, size_t i) {
    float x[UNIT], scales[UNIT], shifts[UNIT];
    if (row.scale != 0) load_parameters<UNIT>(shape, row.scale, i, scales);
    if (row.shift != 0) load_parameters<UNIT>(shape, row.shift, i, shifts);
    reader.read(k, i, x);
#pragma unroll
    for (unsigned u = 0; u < UNIT; u++) {
      x[u] = (x[u] - mean) * deviation;
      if (row.scale != 0) x[u] *= scales[u];
      if (row.shift != 0) x[u] += shifts[u];
    }
    store_some<UNIT>(row.y + i, x);
  });
  if (team.lane != 0) return;
  *out_deviation = deviation;
  if (out_mean != 0) *out_mean = mean;
}

__device__ inline norm_row norm_row_at(const norm_shape &shape, size_t row, const element *x, const void *scale,
                                       const void *shift, element *y, const element *addend, element *total) {
  const size_t at = row * shape.columns;
  const norm_row of = {x + at, addend != 0 ? addend + at : 0, addend != 0 ? total + at : 0, y + at, scale, shift};
  return of;
}

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, 2)
    layer_norm_TYPE(norm_shape shape, float epsilon, const element *__restrict__ x, const void *__restrict__ scale,
                    const void *__restrict__ shift, element *__restrict__ y, float *__restrict__ deviations,
                    float *__restrict__ means, const element *addend, element *total) {
  const row_team team = team_of(shape.columns);
  for (size_t row = team.first; row < shape.rows; row += team.stride) {
    const norm_row of = norm_row_at(shape, row, x, scale, shift, y, addend, total);
    float *const mean = means != 0 ? means + row : 0;
    if (team.lanes == BLOCK_THREADS)
      normalize_row<BLOCK_THREADS, MANY, 1>(shape, team, epsilon, of, deviations + row, mean);
    else if (shape.columns <= FEW * WARP)
      normalize_row<WARP, FEW, 1>(shape, team, epsilon, of, deviations + row, mean);
    else
      normalize_row<WARP, MANY, 1>(shape, team, epsilon, of, deviations + row, mean);
  }
}

/* The same for rows of at most a pack for each thread: a block has a row, so that few rows keep the device busy, and
 * few registers, so that many blocks of a multiprocessor hide the time of each other's reads and sums. */
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    layer_norm_packed_TYPE(norm_shape shape, float epsilon, const element *__restrict__ x,
                           const void *__restrict__ scale, const void *__restrict__ shift, element *__restrict__ y,
                           float *__restrict__ deviations, float *__restrict__ means, const element *addend,
                           element *total) {
  const row_team team = {threadIdx.x, BLOCK_THREADS, blockIdx.x, gridDim.x};
  for (size_t row = team.first; row < shape.rows; row += team.stride)
    normalize_row<BLOCK_THREADS, 1, PACK>(shape, team, epsilon,
                                          norm_row_at(shape, row, x, scale, shift, y, addend, total), deviations + row,
                                          means != 0 ? means + row : 0);
}

struct gradient_row {
  const element *x, *dy, *addend; /* addend: NULL, or what the gradient is added to */
  element *dx;
  const void *scale;
  float deviation, mean;
};

/* The gradient of a row, computed by a team. */
template <unsigned LANES, unsigned HELD>
__device__ inline void row_gradient(const norm_shape &shape, const row_team &team, const gradient_row &row) {
  const auto g_at = [&](size_t i) {
    return to_float(row.dy[i]) * (row.scale != 0 ? parameter_at(shape, row.scale, i) : 1.0f);
  };
  const auto h_at = [&](size_t i) { return (to_float(row.x[i]) - row.mean) * row.deviation; };
  float g[HELD], h[HELD], of_g = 0, of_gh = 0;
#pragma unroll
  for (unsigned k = 0; k < HELD; k++) {
    const size_t i = (size_t)team.lane + k * LANES;
    g[k] = i < shape.columns ? g_at(i) : 0.0f;
    h[k] = i < shape.columns ? h_at(i) : 0.0f;
  }
  each_of_lane<LANES, HELD>(team.lane, shape.columns, [&](unsigned k, size_t i) {
    const float of = k < HELD ? g[k] : g_at(i);
    of_g += of;
    of_gh += of * (k < HELD ? h[k] : h_at(i));
  });
  of_g = shape.is_centred ? team_join<join_sum>(team, of_g) / (float)shape.columns : 0.0f;
  of_gh = team_join<join_sum>(team, of_gh) / (float)shape.columns;
  each_of_lane<LANES, HELD>(team.lane, shape.columns, [&](unsigned k, size_t i) {
    const float of = (k < HELD ? g[k] : g_at(i)) - of_g - (k < HELD ? h[k] : h_at(i)) * of_gh;
    const element own = to_element(row.deviation * of);
    row.dx[i] = row.addend != 0 ? to_element(__fadd_rn(to_float(row.addend[i]), to_float(own))) : own;
  });
}

/* A block computes a part: its teams compute the rows, then its threads add the columns, in the order of the rows. */
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, 2)
    layer_norm_gradient_TYPE(norm_shape shape, const element *__restrict__ x, const element *__restrict__ dy,
                             const void *__restrict__ scale, const float *__restrict__ deviations,
                             const float *__restrict__ means, element *__restrict__ dx, float *__restrict__ sums,
                             const element *__restrict__ addend) {
  const row_team team = team_of(shape.columns);
  const bool is_block = team.lanes == BLOCK_THREADS;
  for (size_t part = blockIdx.x; part < shape.parts; part += gridDim.x) {
    const size_t first = part * shape.part_rows;
    const size_t last = shape.rows - first > shape.part_rows ? first + shape.part_rows : shape.rows;
    for (size_t row = first + (is_block ? 0 : threadIdx.x / WARP); row < last && dx != 0; row += is_block ? 1 : WARPS) {
      const size_t at = row * shape.columns;
      const gradient_row of = {x + at, dy + at,         addend != 0 ? addend + at : 0, dx + at,
                               scale,  deviations[row], means != 0 ? means[row] : 0.0f};
      if (is_block)
        row_gradient<BLOCK_THREADS, MANY>(shape, team, of);
      else if (shape.columns <= FEW * WARP)
        row_gradient<WARP, FEW>(shape, team, of);
      else
        row_gradient<WARP, MANY>(shape, team, of);
    }
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
