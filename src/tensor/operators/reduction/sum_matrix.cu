/* SPDX-License-Identifier: MIT
 * Sums of the columns of a matrix, for reductions.c. A block sums 32 columns, in the order of reduction.cuh.
 */
#include "tensor/operators/common/joined.cuh"
#include "tensor/operators/reduction/reduction.cuh"

#include "tensor/operators/reduction/reductions.cu"

struct columns_shape {
  size_t rows, columns;
};

/* A block's share of the columns of one matrix. */
__device__ inline void sum_matrix(const columns_shape &shape, const element *__restrict__ x, element *__restrict__ y,
                                  size_t block, size_t blocks) {
  const unsigned lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
  const size_t columns = shape.columns;
  for (size_t first = block * WARP; first < columns; first += blocks * WARP) {
    const size_t column = first + lane;
    float sum = 0.0f;
    if (column < columns)
      sum = join_every<sum_joining>(x + column, warp, shape.rows, WARPS, [&](size_t row) { return row * columns; });
    join_warps<sum_joining>(sum, column < columns, [&](float all) { y[column] = to_element(all); });
  }
}

extern "C" __global__ void sum_matrix_TYPE(columns_shape shape, const element *x, element *y) {
  sum_matrix(shape, x, y, blockIdx.x, gridDim.x);
}

struct columns_shapes {
  columns_shape of[MAX_JOINED];
};

#define POINTERS(i) , element *y##i, const element *x##i
#define PICK(i)         \
  case i:               \
    y = y##i, x = x##i; \
    break;

extern "C" __global__ void sum_matrix_joined_TYPE(joined_table table, columns_shapes shapes EACH_JOINED(POINTERS)) {
  const joined_share share = share_of(table);
  element *y = 0;
  const element *x = 0;
  switch (share.operation) { EACH_JOINED(PICK) }
  sum_matrix(shapes.of[share.operation], x, y, share.first / BLOCK_THREADS, share.stride / BLOCK_THREADS);
}
