/* SPDX-License-Identifier: MIT
 * The matrix product of one tile by one block: the CUDA form of what op_matmul.c does with gemm.h.
 *
 * Method (Volkov and Demmel, "Benchmarking GPUs to tune dense linear algebra", 2008): panels of a and b go through
 * shared memory, the next ones being read into registers while a thread multiplies, from registers, a small block of
 * the result. Small tiles, of which there are few, also share out the depth: each slice of the block's threads takes
 * every SLICES-th step, and the slices' sums are added in their order. Products are summed in single precision.
 */
#include "tensor/kernel_support.cuh"

struct matmul_tiling {
  size_t rows, columns; /* of a tile */
  size_t down, across;  /* tiles */
};

struct matmul_shape {
  size_t m, n, k;
  matmul_tiling tiles;
  u64 transpose_a, transpose_b;
};

#define SHARED_FLOATS 4608

/* EDGE x EDGE results, DEPTH products at a time. A thread of a slice has BLOCKS x BLOCKS blocks of 4 x 4 results, STEP
 * apart. */
template <unsigned edge, unsigned depth, unsigned slices>
struct tile {
  static const unsigned EDGE = edge, DEPTH = depth, SLICES = slices;
  static const unsigned SIDE = edge == 32 ? 8 : 16; /* threads along an edge, in a slice */
  static const unsigned STEP = 4 * SIDE;
  static const unsigned BLOCKS = edge / STEP;
  static const unsigned SUMS = 4 * BLOCKS;
  static const unsigned ROW = edge + 4;                       /* of a panel: begins at a multiple of 16 bytes */
  static const unsigned LOADS = edge * depth / BLOCK_THREADS; /* of a thread, for a panel */
  static const unsigned PARTS = slices > 1 ? slices *edge *edge : 0;
  static_assert(SIDE * SIDE * slices == BLOCK_THREADS, "every thread has a place");
  static_assert(depth % slices == 0 && edge % STEP == 0, "work is shared out evenly");
  static_assert(4 * depth * ROW <= SHARED_FLOATS && PARTS <= SHARED_FLOATS, "two pairs of panels, or parts, have room");
};

/* Panels ----------------------------------------------------------------------------------------------------------- */

/* A matrix from `x` on along the result's edge. */
struct panel_source {
  const float *at;
  size_t x, edge, depth, stride;
  bool along_depth; /* neighbours in memory are neighbours in depth, not along the edge */
};

/* Where element `e` of a panel lies in it: so that neighbouring threads read neighbours. */
template <class T>
__device__ inline uint2 place_in_panel(bool along_depth, unsigned e) {
  return along_depth ? make_uint2(e / T::DEPTH, e % T::DEPTH) : make_uint2(e % T::EDGE, e / T::EDGE);
}

/* The thread's share of the panel at depth `from`; zeros past the matrix. */
template <class T>
__device__ inline void read_panel(const panel_source &source, size_t from, float *out) {
#pragma unroll
  for (unsigned i = 0; i < T::LOADS; i++) {
    const uint2 place = place_in_panel<T>(source.along_depth, threadIdx.x + i * BLOCK_THREADS);
    const size_t x = source.x + place.x, depth = from + place.y;
    const size_t at = source.along_depth ? x * source.stride + depth : depth * source.stride + x;
    out[i] = x < source.edge && depth < source.depth ? source.at[at] : 0.0f;
  }
}

template <class T>
__device__ inline void write_panel(bool along_depth, const float *values, float *panel) {
#pragma unroll
  for (unsigned i = 0; i < T::LOADS; i++) {
    const uint2 place = place_in_panel<T>(along_depth, threadIdx.x + i * BLOCK_THREADS);
    panel[place.y * T::ROW + place.x] = values[i];
  }
}

/* Products --------------------------------------------------------------------------------------------------------- */

/* A thread's place in its slice. */
struct tile_place {
  unsigned slice, down, across;
};

template <class T>
__device__ inline void read_edge(const float *row, unsigned place, float *out) {
#pragma unroll
  for (unsigned block = 0; block < T::BLOCKS; block++) {
    const float4 four = *(const float4 *)&row[block * T::STEP + 4 * place];
    out[4 * block] = four.x;
    out[4 * block + 1] = four.y;
    out[4 * block + 2] = four.z;
    out[4 * block + 3] = four.w;
  }
}

template <class T>
__device__ inline void multiply_panels(const float *a, const float *b, tile_place place, float (*sums)[T::SUMS]) {
#pragma unroll
  for (unsigned depth = 0; depth < T::DEPTH; depth += T::SLICES) {
    float left[T::SUMS], right[T::SUMS];
    read_edge<T>(a + (depth + place.slice) * T::ROW, place.down, left);
    read_edge<T>(b + (depth + place.slice) * T::ROW, place.across, right);
#pragma unroll
    for (unsigned i = 0; i < T::SUMS; i++) {
#pragma unroll
      for (unsigned j = 0; j < T::SUMS; j++) sums[i][j] += left[i] * right[j];
    }
  }
}

template <class T>
__device__ inline void multiply_all(const panel_source &a, const panel_source &b, tile_place place, float *memory,
                                    float (*sums)[T::SUMS]) {
  const unsigned panel = T::DEPTH * T::ROW;
  float next_a[T::LOADS], next_b[T::LOADS];
  float *turn = memory, *other = memory + 2 * panel;
  read_panel<T>(a, 0, next_a);
  read_panel<T>(b, 0, next_b);
  for (size_t from = 0; from < a.depth; from += T::DEPTH) {
    write_panel<T>(a.along_depth, next_a, turn);
    write_panel<T>(b.along_depth, next_b, turn + panel);
    __syncthreads();
    if (from + T::DEPTH < a.depth) {
      read_panel<T>(a, from + T::DEPTH, next_a);
      read_panel<T>(b, from + T::DEPTH, next_b);
    }
    multiply_panels<T>(turn, turn + panel, place, sums);
    float *const used = turn;
    turn = other;
    other = used;
  }
}

/* Results ---------------------------------------------------------------------------------------------------------- */

/* Where a tile's results go. */
struct tile_result {
  float *at;                    /* the tile's corner */
  const float *bias;            /* of the tile's first column, or NULL */
  size_t rows, columns, stride; /* in the matrix from the corner on */
};

/* Four results side by side; `column` is a multiple of 4. */
__device__ inline void write_four(const tile_result &result, unsigned row, unsigned column, const float *sums) {
  if (row >= result.rows) return;
  float *to = result.at + row * result.stride + column;
#pragma unroll
  for (unsigned j = 0; j < 4; j++) {
    if (column + j < result.columns) to[j] = result.bias != NULL ? sums[j] + result.bias[column + j] : sums[j];
  }
}

template <class T>
__device__ inline void write_sums(const tile_result &result, tile_place place, const float (*sums)[T::SUMS]) {
#pragma unroll
  for (unsigned i = 0; i < T::SUMS; i++) {
    const unsigned row = i / 4 * T::STEP + 4 * place.down + i % 4;
#pragma unroll
    for (unsigned block = 0; block < T::BLOCKS; block++)
      write_four(result, row, block * T::STEP + 4 * place.across, &sums[i][4 * block]);
  }
}

/* Adds the slices' sums in the slices' order. */
template <class T>
__device__ inline void join_slices(const tile_result &result, tile_place place, const float (*sums)[T::SUMS],
                                   float *parts) {
  __syncthreads(); /* the panels, which the parts take the place of, have been read */
#pragma unroll
  for (unsigned i = 0; i < 4; i++) {
#pragma unroll
    for (unsigned j = 0; j < 4; j++)
      parts[(place.slice * T::EDGE + 4 * place.down + i) * T::EDGE + 4 * place.across + j] = sums[i][j];
  }
  __syncthreads();
  for (unsigned e = 4 * threadIdx.x; e < T::EDGE * T::EDGE; e += 4 * BLOCK_THREADS) {
    float joined[4] = {0, 0, 0, 0};
    for (unsigned slice = 0; slice < T::SLICES; slice++) {
#pragma unroll
      for (unsigned j = 0; j < 4; j++) joined[j] += parts[slice * T::EDGE * T::EDGE + e + j];
    }
    write_four(result, e / T::EDGE, e % T::EDGE, joined);
  }
}

/* The whole -------------------------------------------------------------------------------------------------------- */

template <class T>
__device__ inline void multiply_tile(const matmul_shape &shape, const float *a, const float *b, const float *bias,
                                     float *c, float *memory) {
  const size_t row = blockIdx.x / shape.tiles.across * T::EDGE, column = blockIdx.x % shape.tiles.across * T::EDGE;
  const bool along_a = shape.transpose_a == 0, along_b = shape.transpose_b != 0;
  const panel_source left = {a, row, shape.m, shape.k, along_a ? shape.k : shape.m, along_a};
  const panel_source right = {b, column, shape.n, shape.k, along_b ? shape.k : shape.n, along_b};
  const tile_result result = {c + row * shape.n + column, bias != NULL ? bias + column : NULL, shape.m - row,
                              shape.n - column, shape.n};
  const unsigned thread = threadIdx.x % (T::SIDE * T::SIDE);
  const tile_place place = {threadIdx.x / (T::SIDE * T::SIDE), thread / T::SIDE, thread % T::SIDE};
  float sums[T::SUMS][T::SUMS] = {{0}};
  multiply_all<T>(left, right, place, memory, sums);
  if (T::SLICES > 1)
    join_slices<T>(result, place, sums, memory);
  else
    write_sums<T>(result, place, sums);
}

/* One tile a block, of the size that cuda_tiling_of in op_matmul.c chose; bias may be NULL. */
__device__ inline void multiply(const matmul_shape &shape, const float *a, const float *b, const float *bias,
                                float *c) {
  __shared__ __align__(16) float memory[SHARED_FLOATS];
  if (shape.tiles.rows == 128)
    multiply_tile<tile<128, 8, 1>>(shape, a, b, bias, c, memory);
  else if (shape.tiles.rows == 64)
    multiply_tile<tile<64, 16, 1>>(shape, a, b, bias, c, memory);
  else
    multiply_tile<tile<32, 32, 4>>(shape, a, b, bias, c, memory);
}
