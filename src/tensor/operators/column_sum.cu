/* SPDX-License-Identifier: MIT
 * The CUDA form of column_sum.c: a block owns 32 columns; each of its warps adds every 8th row, then the warps' sums
 * are added in their order.
 */
#include "tensor/operators/element.cuh"
#include "tensor/operators/joined.cuh"

/* Rows that are read before the first is added: so many reads are under way at once. */
#define BATCH 8

struct column_shape {
  size_t rows, columns;
};

/* The sum of every WARPS-th row's element, from `row` on; x is the column's uppermost. */
__device__ inline float add_rows(const column_shape &shape, const element *__restrict__ x, size_t row) {
  float sum = 0;
  for (; row < shape.rows; row += BATCH * WARPS) {
    float values[BATCH];
#pragma unroll
    for (unsigned i = 0; i < BATCH; i++)
      values[i] = row + i * WARPS < shape.rows ? to_float(x[(row + i * WARPS) * shape.columns]) : 0.0f;
#pragma unroll
    for (unsigned i = 0; i < BATCH; i++) sum += values[i];
  }
  return sum;
}

/* A block's share of one value's columns. */
__device__ inline void sum_columns(const column_shape &shape, const element *__restrict__ x, element *__restrict__ y,
                                   size_t block, size_t blocks) {
  __shared__ float sums[WARPS][WARP];
  const unsigned lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
  for (size_t first = block * WARP; first < shape.columns; first += blocks * WARP) {
    const size_t column = first + lane;
    float sum = column < shape.columns ? add_rows(shape, x + column, warp) : 0.0f;
    sums[warp][lane] = sum;
    __syncthreads();
    if (warp == 0 && column < shape.columns) {
      for (unsigned other = 1; other < WARPS; other++) sum += sums[other][lane];
      y[column] = to_element(sum);
    }
    __syncthreads(); /* the sums have been read */
  }
}

extern "C" __global__ void column_sum_TYPE(column_shape shape, const element *__restrict__ x, element *__restrict__ y) {
  sum_columns(shape, x, y, blockIdx.x, gridDim.x);
}

struct column_shapes {
  column_shape of[MOST_JOINED];
};

#define POINTERS(i) , element *y##i, const element *x##i
#define PICK(i)         \
  case i:               \
    y = y##i, x = x##i; \
    break;

extern "C" __global__ void column_sum_joined_TYPE(joined_table table, column_shapes shapes EACH_JOINED(POINTERS)) {
  const joined_share share = share_of(table);
  element *y = 0;
  const element *x = 0;
  switch (share.operation) { EACH_JOINED(PICK) }
  sum_columns(shapes.of[share.operation], x, y, share.first / BLOCK_THREADS, share.stride / BLOCK_THREADS);
}
