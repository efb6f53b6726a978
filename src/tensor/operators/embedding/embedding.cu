/* SPDX-License-Identifier: MIT
 * The CUDA kernels of embedding.c. The order of the gradient's sums is fixed: a team of warps computes a row of the
 * table, or 128 columns of it. The block reads the indices together. Each warp finds its rows of dy in its part of the
 * indices and adds them in their order. Then the warps' sums are added in the order of the warps.
 */
#include "tensor/operators/common/element.cuh"
#include "tensor/operators/common/operator_rows.cuh"
#include "tensor/operators/embedding/embedding_bags.cuh"

extern "C" __global__ void embedding_TYPE(gather_shape shape, const element *__restrict__ table,
                                          const void *__restrict__ indices, element *__restrict__ y, CHECK) {
  const index_cell to = begin_check(TO_CHECK);
  const row_team team = team_of(shape.columns);
  for (size_t i = team.first; i < shape.count; i += team.stride) {
    if (team.lane == 0) check_index(to, i, index_at(indices, shape.wide_indices, i), shape.rows);
    const element *from = table + row_at(shape, indices, i) * shape.columns;
    for (size_t k = team.lane; k < shape.columns; k += team.lanes) y[i * shape.columns + k] = from[k];
  }
}

/* A team computes a bag. */
extern "C" __global__ void embedding_bag_TYPE(gather_shape shape, const element *__restrict__ table,
                                              const void *__restrict__ indices, const int *__restrict__ offsets,
                                              const element *__restrict__ weights, element *__restrict__ y, CHECK) {
  const index_cell to = begin_check(TO_CHECK);
  const row_team team = team_of(shape.columns);
  for (size_t bag = team.first; bag < shape.bags; bag += team.stride) {
    const bag_span span = span_of(shape, offsets, bag);
    const float factor = bag_factor(shape, offsets, bag);
    for (size_t i = span.first + team.lane; i < span.last; i += team.lanes)
      check_index(to, i, index_at(indices, shape.wide_indices, i), shape.rows);
    for (size_t k = team.lane; k < shape.columns; k += team.lanes) {
      float sum = 0;
      for (size_t i = span.first; i < span.last; i++) {
        const float value = to_float(table[row_at(shape, indices, i) * shape.columns + k]);
        sum += (weights != 0 ? to_float(weights[i]) : 1.0f) * value;
      }
      y[bag * shape.columns + k] = to_element(sum * factor);
    }
  }
}

/* A team computes the gradient of one weight: its row · the row of dy, or 0 for an index that is in no bag. */
extern "C" __global__ void embedding_bag_weights_TYPE(gather_shape shape, const element *__restrict__ table,
                                                      const void *__restrict__ indices, const element *__restrict__ dy,
                                                      const int *__restrict__ offsets, element *__restrict__ gradient) {
  const row_team team = team_of(shape.columns);
  const size_t in_bags = indices_in_bags(shape, offsets);
  for (size_t i = team.first; i < shape.count; i += team.stride) {
    const size_t bag = bag_of(shape, offsets, i);
    const element *x = table + row_at(shape, indices, i) * shape.columns, *of_bag = dy + bag * shape.columns;
    const size_t columns = i < in_bags ? shape.columns : 0;
    float sum = 0;
    for (size_t k = team.lane; k < columns; k += team.lanes) sum += to_float(x[k]) * to_float(of_bag[k]);
    sum = team_join<join_sum>(team, sum);
    if (team.lane == 0) gradient[i] = to_element(sum * bag_factor(shape, offsets, bag));
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

/* Writes the positions of the indices in `read` that equal `row` into `found`, in their order, and returns how many
 * there are. One warp calls it. */
__device__ inline unsigned find_row(const unsigned *read, unsigned count, size_t row, unsigned short *found) {
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

/* The rows of dy that are read before the first is added, so that several reads are in flight. */
#define BATCH 8

/* What the kernel of the gradient reads. */
struct gather_memory {
  const element *dy, *weights;
  const int *offsets;
};

/* Adds the piece's columns of the rows of dy of the indices that were found, in their order, each times its factor. */
__device__ inline void add_rows(const gather_shape &shape, const gather_memory &memory, const table_piece &piece,
                                size_t first, const unsigned short *found, unsigned count, float *sums) {
  const unsigned lane = threadIdx.x % WARP;
  const element *from = memory.dy + piece.column + lane;
  for (unsigned done = 0; done < count; done += BATCH) {
    float values[BATCH][PIECE_LANES];
#pragma unroll
    for (unsigned i = 0; i < BATCH; i++) {
      const bool is_there = done + i < count;
      const size_t index = first + (is_there ? found[done + i] : 0), bag = bag_of(shape, memory.offsets, index);
      const float weight = memory.weights != 0 ? to_float(memory.weights[index]) : 1.0f;
      const float factor = bag_factor(shape, memory.offsets, bag) * weight;
      const element *row = from + bag * shape.columns;
#pragma unroll
      for (unsigned k = 0; k < PIECE_LANES; k++)
        values[i][k] = is_there && k * WARP + lane < piece.columns ? to_float(row[k * WARP]) * factor : 0.0f;
    }
#pragma unroll
    for (unsigned i = 0; i < BATCH; i++) {
#pragma unroll
      for (unsigned k = 0; k < PIECE_LANES; k++) sums[k] += values[i][k];
    }
  }
}

/* With at least this many pieces, each belongs to a warp. Otherwise the warps of a block share a piece. */
#define MANY_PIECES 4096

/* The gradient of a wrong index is added to row 0, which the forward operator read. ADDS: to what is in the table. */
template <bool ADDS>
__device__ inline void compute_gradient(const gather_shape &shape, const void *indices, const gather_memory &memory,
                                        element *table) {
  __shared__ unsigned read[READ]; /* rows, of which there are less than 2^32 (embedding.c) */
  __shared__ unsigned short found[WARPS][READ];
  __shared__ float parts[WARPS][PIECE];
  const size_t pieces = shape.rows * ((shape.columns + PIECE - 1) / PIECE);
  const unsigned lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
  const unsigned team = pieces < MANY_PIECES ? WARPS : 1, member = warp % team;
  const unsigned share = READ / team;
  const size_t in_bags = indices_in_bags(shape, memory.offsets);
  for (size_t base = (size_t)blockIdx.x * (WARPS / team); base < pieces; base += (size_t)gridDim.x * (WARPS / team)) {
    const table_piece piece = piece_of(shape, base + warp / team);
    float sums[PIECE_LANES] = {0};
    unsigned matches = 0;
    for (size_t first = 0; first < in_bags; first += READ) {
      const unsigned count = in_bags - first < READ ? (unsigned)(in_bags - first) : READ;
      __syncthreads(); /* what was read before has been used */
      for (unsigned i = threadIdx.x; i < count; i += BLOCK_THREADS) {
        read[i] = (unsigned)row_at(shape, indices, first + i);
      }
      __syncthreads();
      const unsigned begin = member * share < count ? member * share : count;
      const unsigned left = count - begin < share ? count - begin : share;
      const unsigned count_here = find_row(read + begin, left, piece.row, found[warp]);
      add_rows(shape, memory, piece, first + begin, found[warp], count_here, sums);
      matches += count_here;
      __syncwarp();
    }
#pragma unroll
    for (unsigned k = 0; k < PIECE_LANES; k++) parts[warp][k * WARP + lane] = sums[k];
    __syncthreads();
    if (member != 0 || (ADDS && team == 1 && matches == 0)) continue;
    for (unsigned column = lane; column < piece.columns; column += WARP) {
      element *to = table + piece.row * shape.columns + piece.column + column;
      float sum = ADDS ? to_float(*to) + parts[warp][column] : parts[warp][column];
      for (unsigned other = 1; other < team; other++) sum += parts[warp + other][column];
      *to = to_element(sum);
    }
  }
}

/* The last argument is for CPUs. */
extern "C" __global__ void embedding_gradient_TYPE(gather_shape shape, const void *__restrict__ indices,
                                                   const element *__restrict__ dy, const int *__restrict__ offsets,
                                                   const element *__restrict__ weights, element *__restrict__ table,
                                                   float *) {
  compute_gradient<false>(shape, indices, {dy, weights, offsets}, table);
}

extern "C" __global__ void embedding_gradient_add_TYPE(gather_shape shape, const void *__restrict__ indices,
                                                       const element *__restrict__ dy, const int *__restrict__ offsets,
                                                       const element *__restrict__ weights, element *__restrict__ table,
                                                       float *) {
  compute_gradient<true>(shape, indices, {dy, weights, offsets}, table);
}
