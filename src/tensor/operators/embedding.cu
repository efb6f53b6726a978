/* SPDX-License-Identifier: MIT
 * The CUDA form of embedding.c. The gradient's sums are taken in a fixed order: a team of warps owns a row of the
 * table, or 128 columns of one; each warp picks its rows of dy from its part of the list of indices, which the block
 * reads together, and adds them in the order of the indices; then the warps' sums are added in the warps' order.
 */
#include "tensor/operators/rows.cuh"

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

/* A team's part of the table: up to PIECE columns of a row. */
struct table_piece {
  size_t row, column, columns; /* columns 0: none */
};

__device__ inline table_piece piece_of(const gather_shape &shape, size_t number) {
  const size_t across = (shape.columns + PIECE - 1) / PIECE;
  const size_t row = number / across, column = number % across * PIECE;
  if (row >= shape.rows) return {shape.rows, 0, 0};
  return {row, column, shape.columns - column < PIECE ? shape.columns - column : PIECE};
}

/* Indices that a block reads at a time. */
#define READ (4 * BLOCK_THREADS)

/* Puts the places, of `count` indices in `read`, of those that are `row` into `found`, in their order; returns how many
 * there are. By one warp. */
__device__ inline unsigned find_row(const int *read, unsigned count, size_t row, unsigned short *found) {
  const unsigned lane = threadIdx.x % WARP;
  unsigned matches = 0;
  for (unsigned i = 0; i < count; i += WARP) {
    const bool mine = i + lane < count && (size_t)read[i + lane] == row;
    const unsigned all = __ballot_sync(ALL_LANES, mine);
    if (mine) found[matches + __popc(all & ((1u << lane) - 1))] = (unsigned short)(i + lane);
    matches += __popc(all);
  }
  __syncwarp();
  return matches;
}

/* The rows of dy that are read before the first is added: so many reads are under way at once. */
#define BATCH 8

/* Adds the piece's columns of the rows of dy that were found, in their order. */
__device__ inline void add_rows(const table_piece &piece, const unsigned short *found, unsigned count,
                                const float *__restrict__ dy, size_t columns, float *sums) {
  const unsigned lane = threadIdx.x % WARP;
  const float *from = dy + piece.column + lane;
  for (unsigned first = 0; first < count; first += BATCH) {
    float values[BATCH][PIECE_LANES];
#pragma unroll
    for (unsigned i = 0; i < BATCH; i++) {
      const bool is_there = first + i < count;
      const float *row = from + (is_there ? found[first + i] : 0) * columns;
#pragma unroll
      for (unsigned k = 0; k < PIECE_LANES; k++)
        values[i][k] = is_there && k * WARP + lane < piece.columns ? row[k * WARP] : 0.0f;
    }
#pragma unroll
    for (unsigned i = 0; i < BATCH; i++) {
#pragma unroll
      for (unsigned k = 0; k < PIECE_LANES; k++) sums[k] += values[i][k];
    }
  }
}

/* Where there are so many pieces each is a warp's; else the warps of a block share one. */
#define MANY_PIECES 4096

/* A wrong index went to row 0 in the forward operator, and comes back there. */
extern "C" __global__ void embedding_gradient(gather_shape shape, const int *__restrict__ indices,
                                              const float *__restrict__ dy, float *__restrict__ table) {
  __shared__ int read[READ];
  __shared__ unsigned short found[WARPS][READ];
  __shared__ float parts[WARPS][PIECE];
  const size_t pieces = shape.rows * ((shape.columns + PIECE - 1) / PIECE);
  const unsigned lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
  const unsigned team = pieces < MANY_PIECES ? WARPS : 1, member = warp % team;
  const unsigned share = READ / team;
  for (size_t base = (size_t)blockIdx.x * (WARPS / team); base < pieces; base += (size_t)gridDim.x * (WARPS / team)) {
    const table_piece piece = piece_of(shape, base + warp / team);
    float sums[PIECE_LANES] = {0};
    for (size_t first = 0; first < shape.count; first += READ) {
      const unsigned count = shape.count - first < READ ? (unsigned)(shape.count - first) : READ;
      __syncthreads(); /* what was read before has been used */
      for (unsigned i = threadIdx.x; i < count; i += BLOCK_THREADS) {
        const int index = indices[first + i];
        read[i] = index >= 0 && (size_t)index < shape.rows ? index : 0;
      }
      __syncthreads();
      const unsigned begin = member * share < count ? member * share : count;
      const unsigned left = count - begin < share ? count - begin : share;
      const unsigned matches = find_row(read + begin, left, piece.row, found[warp]);
      add_rows(piece, found[warp], matches, dy + (first + begin) * shape.columns, shape.columns, sums);
      __syncwarp();
    }
#pragma unroll
    for (unsigned k = 0; k < PIECE_LANES; k++) parts[warp][k * WARP + lane] = sums[k];
    __syncthreads();
    for (unsigned column = lane; member == 0 && column < piece.columns; column += WARP) {
      float sum = parts[warp][column];
      for (unsigned other = 1; other < team; other++) sum += parts[warp + other][column];
      table[piece.row * shape.columns + piece.column + column] = sum;
    }
  }
}
