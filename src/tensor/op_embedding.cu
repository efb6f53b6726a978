/* SPDX-License-Identifier: MIT
 * The CUDA form of op_embedding.c. The gradient's sums are taken in the order of the indices: a warp owns a row of the
 * table, or 128 columns of one, and picks its rows of dy from the list of indices, which the block reads together.
 */
#include "tensor/rows.cuh"

struct gather_shape {
  size_t rows, columns; /* of the table */
  size_t count;         /* indices */
};

extern "C" __global__ void embedding(gather_shape shape, const float *__restrict__ table,
                                     const int *__restrict__ indices, float *__restrict__ y, u64 *cell) {
  const row_team team = team_of(shape.columns);
  for (size_t i = team.first; i < shape.count; i += team.stride) {
    const int index = indices[i];
    bool right = index >= 0 && (size_t)index < shape.rows;
    if (team.lane == 0) right = check_index(cell, i, index, shape.rows);
    const float *from = table + (right ? (size_t)index : 0) * shape.columns;
    for (size_t k = team.lane; k < shape.columns; k += team.lanes) y[i * shape.columns + k] = from[k];
  }
}

#define PIECE_LANES 4 /* columns of a lane */
#define PIECE (PIECE_LANES * WARP)

/* A warp's part of the table: up to PIECE columns of a row. */
struct table_piece {
  size_t row, column, columns; /* columns 0: none */
};

__device__ inline table_piece piece_of(const gather_shape &shape, size_t number) {
  const size_t across = (shape.columns + PIECE - 1) / PIECE;
  const size_t row = number / across, column = number % across * PIECE;
  if (row >= shape.rows) return {shape.rows, 0, 0};
  return {row, column, shape.columns - column < PIECE ? shape.columns - column : PIECE};
}

/* Adds the rows of dy whose index, of `count` in `read` that stand at `first`, is the piece's row. */
__device__ inline void add_rows(const table_piece &piece, const int *read, size_t first, size_t count, const float *dy,
                                size_t columns, float *sums) {
  const unsigned lane = threadIdx.x % WARP;
  for (size_t i = 0; i < count; i += WARP) {
    const bool mine = i + lane < count && (size_t)read[i + lane] == piece.row;
    for (unsigned left = __ballot_sync(ALL_LANES, mine); left != 0; left &= left - 1) {
      const float *from = dy + (first + i + (__ffs(left) - 1)) * columns + piece.column;
#pragma unroll
      for (unsigned k = 0; k < PIECE_LANES; k++)
        if (k * WARP + lane < piece.columns) sums[k] += from[k * WARP + lane];
    }
  }
}

/* A wrong index went to row 0 in the forward operator, and comes back there. */
extern "C" __global__ void embedding_gradient(gather_shape shape, const int *__restrict__ indices,
                                              const float *__restrict__ dy, float *__restrict__ table) {
  __shared__ int read[4 * BLOCK_THREADS];
  const size_t pieces = shape.rows * ((shape.columns + PIECE - 1) / PIECE);
  const unsigned lane = threadIdx.x % WARP;
  for (size_t base = (size_t)blockIdx.x * WARPS; base < pieces; base += (size_t)gridDim.x * WARPS) {
    const table_piece piece = piece_of(shape, base + threadIdx.x / WARP);
    float sums[PIECE_LANES] = {0};
    for (size_t first = 0; first < shape.count; first += 4 * BLOCK_THREADS) {
      const size_t left = shape.count - first, count = left < 4 * BLOCK_THREADS ? left : 4 * BLOCK_THREADS;
      __syncthreads(); /* what was read before has been used */
      for (size_t i = threadIdx.x; i < count; i += BLOCK_THREADS) {
        const int index = indices[first + i];
        read[i] = index >= 0 && (size_t)index < shape.rows ? index : 0;
      }
      __syncthreads();
      add_rows(piece, read, first, count, dy, shape.columns, sums);
    }
#pragma unroll
    for (unsigned k = 0; k < PIECE_LANES; k++) {
      const unsigned column = k * WARP + lane;
      if (column < piece.columns) table[piece.row * shape.columns + piece.column + column] = sums[k];
    }
  }
}
