/* SPDX-License-Identifier: MIT
 * The CUDA kernels of quantized_parts.c. A block computes a tile of all rows and 128 columns, or of 64 and 64, over a
 * part of the depth, and a thread 4 x 4 of its sums. Each step of 32 in depth is unpacked into shared memory, while the
 * next one is read: a thread reads eight values of a row at a time, which have one scale.
 */
#include "tensor/operators/common/floats.cuh"
#include "tensor/operators/quantized/quantized.cuh"

#define STEP 32
#define EIGHTHS (STEP / EIGHT) /* groups of eight values in a step */
#define EACH 4                 /* rows, and columns, of a thread */

struct parts_shape {
  size_t m, n, parts, part;
};

struct left_rows {
  const float *x;
  const signed char *rows; /* NULL: x is used */
  const float *scales;
};

template <unsigned rows>
struct parts_tile {
  static const unsigned ROWS = rows, COLUMNS = EACH * EACH * BLOCK_THREADS / rows;
  static const unsigned LEFT = ROWS + 4, RIGHT = COLUMNS + 4;      /* floats of a row in shared memory */
  static const unsigned UNITS = COLUMNS * EIGHTHS / BLOCK_THREADS; /* of a thread: eight values each */
  static const unsigned FLOATS = STEP * (LEFT + RIGHT);
};

/* Four neighbouring threads read 32 values of a row. In shared memory, their groups of eight are exchanged within a row
 * of the step, so that the threads of a warp write to different banks. */
__device__ inline unsigned place_in(unsigned depth, unsigned at) { return at ^ depth / EIGHT * EIGHT; }

/* Eight values of the matrix from a column on; 0 after the last column, and for rows that there are not. */
template <unsigned bits>
__device__ inline void read_right(const quantized_scheme &scheme, const quantized_matrix &matrix, size_t row,
                                  unsigned column, float *to) {
  const unsigned columns = (unsigned)scheme.columns;
#pragma unroll
  for (unsigned k = 0; k < EIGHT; k++) to[k] = 0.0f;
  if (row >= scheme.rows || column >= columns) return;
  const size_t number = row * scheme.groups + column / (unsigned)scheme.group;
  const eight_values<bits> eight(matrix.values + row * scheme.row_bytes, column, (unsigned)scheme.row_bytes);
  const float scale = matrix.scales[number];
  const int zero = zero_of<bits>(matrix, number);
#pragma unroll
  for (unsigned k = 0; k < EIGHT; k++)
    if (column + k < columns) to[k] = scale * (float)(eight.at(k) - zero);
}

__device__ inline void read_left(const quantized_scheme &scheme, const left_rows &left, size_t m, size_t row,
                                 unsigned column, float *to) {
  const unsigned columns = (unsigned)scheme.columns;
  const size_t padded = (scheme.columns + STEP - 1) / STEP * STEP;
  if (left.rows == 0 && row < m && columns % PACK == 0 && column + EIGHT <= columns) {
    const pack<float> *const packs = (const pack<float> *)(left.x + row * scheme.columns + column);
    const pack<float> low = packs[0], high = packs[1];
#pragma unroll
    for (unsigned k = 0; k < EIGHT; k++) to[k] = k < PACK ? low.at[k % PACK] : high.at[k % PACK];
    return;
  }
#pragma unroll
  for (unsigned k = 0; k < EIGHT; k++) {
    to[k] = 0.0f;
    if (row >= m || column + k >= columns) continue;
    to[k] = left.rows == 0 ? left.x[row * scheme.columns + column + k]
                           : left.scales[row] * (float)left.rows[row * padded + column + k];
  }
}

template <class T, unsigned bits>
__device__ inline void multiply_part(const parts_shape &shape, const quantized_scheme &scheme, const left_rows &left,
                                     const quantized_matrix &matrix, size_t first, size_t part, float *shared,
                                     float *sums) {
  float *const of_left = shared, *const of_right = shared + STEP * T::LEFT;
  const unsigned begin = (unsigned)(part * shape.part);
  const unsigned end = scheme.columns - begin < shape.part ? (unsigned)scheme.columns : begin + (unsigned)shape.part;
  const unsigned down = threadIdx.x / (T::COLUMNS / EACH) * EACH, across = threadIdx.x % (T::COLUMNS / EACH) * EACH;
  float right_next[T::UNITS][EIGHT], left_next[EIGHT], own[EACH][EACH] = {{0}};
  const auto read = [&](unsigned from) {
#pragma unroll
    for (unsigned u = 0; u < T::UNITS; u++) {
      const unsigned unit = threadIdx.x + u * BLOCK_THREADS;
      read_right<bits>(scheme, matrix, first + unit / EIGHTHS, from + unit % EIGHTHS * EIGHT, right_next[u]);
    }
    if (threadIdx.x < T::ROWS * EIGHTHS)
      read_left(scheme, left, shape.m, threadIdx.x / EIGHTHS, from + threadIdx.x % EIGHTHS * EIGHT, left_next);
  };
  read(begin);
  for (unsigned from = begin; from < end; from += STEP) {
#pragma unroll
    for (unsigned u = 0; u < T::UNITS; u++) {
      const unsigned unit = threadIdx.x + u * BLOCK_THREADS;
#pragma unroll
      for (unsigned k = 0; k < EIGHT; k++) {
        const unsigned depth = unit % EIGHTHS * EIGHT + k;
        of_right[depth * T::RIGHT + place_in(depth, unit / EIGHTHS)] = right_next[u][k];
      }
    }
    if (threadIdx.x < T::ROWS * EIGHTHS) {
#pragma unroll
      for (unsigned k = 0; k < EIGHT; k++) {
        const unsigned depth = threadIdx.x % EIGHTHS * EIGHT + k;
        of_left[depth * T::LEFT + place_in(depth, threadIdx.x / EIGHTHS)] = left_next[k];
      }
    }
    __syncthreads();
    if (from + STEP < end) read(from + STEP);
#pragma unroll 8
    for (unsigned k = 0; k < STEP; k++) {
      const float4 a = *(const float4 *)&of_left[k * T::LEFT + place_in(k, down)];
      const float4 b = *(const float4 *)&of_right[k * T::RIGHT + place_in(k, across)];
      const float rows[EACH] = {a.x, a.y, a.z, a.w}, columns[EACH] = {b.x, b.y, b.z, b.w};
#pragma unroll
      for (unsigned i = 0; i < EACH; i++) {
#pragma unroll
        for (unsigned j = 0; j < EACH; j++) own[i][j] += rows[i] * columns[j];
      }
    }
    __syncthreads(); /* the step has been read */
  }
#pragma unroll
  for (unsigned i = 0; i < EACH; i++) {
#pragma unroll
    for (unsigned j = 0; j < EACH; j++)
      if (down + i < shape.m && first + across + j < shape.n)
        sums[(part * shape.m + down + i) * shape.n + first + across + j] = own[i][j];
  }
}

template <class T>
__device__ inline void multiply_parts(const parts_shape &shape, const quantized_scheme &scheme, const left_rows &left,
                                      const quantized_matrix &matrix, float *shared, float *sums) {
  const size_t tiles = (shape.n + T::COLUMNS - 1) / T::COLUMNS;
  for (size_t i = blockIdx.x; i < tiles * shape.parts; i += gridDim.x) {
    const size_t part = i / tiles, first = (i - part * tiles) * T::COLUMNS;
    if (scheme.bits == 4)
      multiply_part<T, 4>(shape, scheme, left, matrix, first, part, shared, sums);
    else
      multiply_part<T, 8>(shape, scheme, left, matrix, first, part, shared, sums);
  }
}

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, 2)
    quantized_parts(parts_shape shape, quantized_scheme scheme, const float *__restrict__ x,
                    const signed char *__restrict__ rows, const float *__restrict__ row_scales,
                    const unsigned char *__restrict__ values, const float *__restrict__ scales,
                    const unsigned char *__restrict__ zeros, float *__restrict__ sums) {
  typedef parts_tile<32> wide;
  typedef parts_tile<64> tall;
  static_assert(wide::FLOATS >= tall::FLOATS, "both have room");
  __shared__ __align__(16) float shared[wide::FLOATS];
  const left_rows left = {x, rows, row_scales};
  const quantized_matrix matrix = {values, scales, zeros};
  if (shape.m <= 32)
    multiply_parts<wide>(shape, scheme, left, matrix, shared, sums);
  else
    multiply_parts<tall>(shape, scheme, left, matrix, shared, sums);
}

extern "C" __global__ void quantized_sum(parts_shape shape, const float *__restrict__ sums,
                                         const float *__restrict__ bias, float *__restrict__ y) {
  const size_t count = shape.m * shape.n;
  for (size_t i = first_element(); i < count; i += element_stride()) {
    float sum = 0;
#pragma unroll 4
    for (size_t part = 0; part < shape.parts; part++) sum += sums[part * count + i];
    y[i] = bias != 0 ? sum + bias[i % shape.n] : sum;
  }
}
