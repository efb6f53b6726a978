/* SPDX-License-Identifier: MIT
 * The CUDA kernels of attention_tile.c, after FlashAttention-2 (Dao 2023). Forward and for dq, a block computes a tile
 * of rows over the columns that are visible to them. For dk and dv, it computes a tile of columns over the rows, of all
 * heads of its group, to which they are visible. One thread computes a sum, in a fixed order.
 */
#include "tensor/operators/attention/attention.cuh"

/* The shared memory of a kernel; gradients of heads of 32 elements need the most. */
#define SHARED_FLOATS 11136

struct attention_memory {
  const element *q, *k, *v, *y, *dy;
  const float *sums;
};

/* Forward ---------------------------------------------------------------------------------------------------------- */

/* The running maximum and sum of each row of a tile, and the factor that corrects earlier sums. */
template <class T>
struct row_states {
  float largest[T::TILE], sum[T::TILE], correction[T::TILE];
};

template <class T>
struct forward_memory {
  float q[T::TILE * T::ROW], other[T::TILE * T::ROW], scores[T::TILE * T::SCORES];
  row_states<T> states;
};

/* Turns scores into exponentials. A warp has every 8th row, a lane every 32nd column. */
template <class T>
__device__ inline void soften_rows(const attention_shape &shape, size_t first_row, size_t first_column, float *scores,
                                   row_states<T> &states) {
  const unsigned lane = threadIdx.x % WARP;
  for (unsigned row = threadIdx.x / WARP; row < T::TILE; row += WARPS) {
    const size_t limit = sees(shape, first_row + row);
    float *const line = scores + row * T::SCORES;
    float largest = __int_as_float(0xff800000), sum = 0; /* less than any number */
    for (unsigned i = lane; i < T::TILE; i += WARP)
      if (first_column + i < limit) largest = fmaxf(largest, shape.scale * line[i]);
    for (unsigned distance = WARP / 2; distance > 0; distance /= 2)
      largest = fmaxf(largest, __shfl_xor_sync(ALL_LANES, largest, distance));
    const float before = states.largest[row];
    largest = fmaxf(largest, before);
    for (unsigned i = lane; i < T::TILE; i += WARP) {
      const float x = first_column + i < limit ? expf(shape.scale * line[i] - largest) : 0.0f;
      line[i] = x;
      sum += x;
    }
    for (unsigned distance = WARP / 2; distance > 0; distance /= 2) sum += __shfl_xor_sync(ALL_LANES, sum, distance);
    __syncwarp();
    if (lane == 0) {
      const float correction = expf(before - largest);
      states.correction[row] = correction;
      states.sum[row] = states.sum[row] * correction + sum;
      states.largest[row] = largest;
    }
  }
}

template <class T>
__device__ inline void correct(const float *corrections, float (*sums)[T::PARTS]) {
#pragma unroll
  for (unsigned i = 0; i < T::EACH; i++) {
    const float correction = corrections[threadIdx.x / SIDE + SIDE * i];
#pragma unroll
    for (unsigned j = 0; j < T::PARTS; j++) sums[i][j] *= correction;
  }
}

template <class T>
__device__ inline void write_scores(const float (*values)[T::EACH], float *scores) {
  const unsigned down = threadIdx.x / SIDE, across = threadIdx.x % SIDE;
#pragma unroll
  for (unsigned i = 0; i < T::EACH; i++) {
#pragma unroll
    for (unsigned j = 0; j < T::EACH; j++) scores[(down + SIDE * i) * T::SCORES + across + SIDE * j] = values[i][j];
  }
}

/* The number of columns that are visible to any row of a tile. */
__device__ inline size_t last_seen(const attention_shape &shape, size_t first, unsigned tile) {
  const size_t last = first + tile < shape.rows ? first + tile : shape.rows;
  return sees(shape, last - 1);
}

template <class T>
__device__ inline void attend(const attention_shape &shape, const attention_memory &memory, size_t head, size_t first,
                              forward_memory<T> &shared, element *y, float *row_sums) {
  row_states<T> &states = shared.states;
  float sums[T::EACH][T::PARTS], products[T::EACH][T::EACH];
  const size_t end = last_seen(shape, first, T::TILE);
  const head_rows from = k_rows(shape, group_of(shape, head));
  clear<T>(sums);
  load<T>(shape, memory.q, q_rows(shape, head), first, shared.q);
  if (threadIdx.x < T::TILE) {
    states.largest[threadIdx.x] = __int_as_float(0xff800000);
    states.sum[threadIdx.x] = 0;
  }
  for (size_t column = 0; column < end; column += T::TILE) {
    load<T>(shape, memory.k, from, column, shared.other);
    __syncthreads();
    multiply_rows<T>(shared.q, shared.other, products);
    write_scores<T>(products, shared.scores);
    __syncthreads();
    load<T>(shape, memory.v, from, column, shared.other);
    soften_rows<T>(shape, first, column, shared.scores, states);
    __syncthreads();
    correct<T>(states.correction, sums);
    add_product<T>(shared.scores, false, shared.other, sums);
    __syncthreads(); /* all has been read */
  }
  if (threadIdx.x < T::TILE) {
    const float sum = states.sum[threadIdx.x];
    states.correction[threadIdx.x] = 1.0f / sum;
    if (row_sums != NULL && first + threadIdx.x < shape.rows)
      row_sums[head * shape.rows + first + threadIdx.x] = states.largest[threadIdx.x] + logf(sum);
  }
  __syncthreads();
  store<T>(shape, y, y_rows(shape, head), first, sums, states.correction);
  __syncthreads();
}

template <class T>
__device__ inline void attend_all(const attention_shape &shape, const attention_memory &memory, float *floats,
                                  element *y, float *row_sums) {
  static_assert(sizeof(forward_memory<T>) <= SHARED_FLOATS * sizeof(float), "it has room");
  forward_memory<T> &shared = *(forward_memory<T> *)floats;
  const size_t each = (shape.rows + T::TILE - 1) / T::TILE, tiles = shape.batches * shape.heads * each;
  for (size_t tile = blockIdx.x; tile < tiles; tile += gridDim.x)
    attend<T>(shape, memory, tile / each, tile % each * T::TILE, shared, y, row_sums);
}

extern "C" __global__ void attention_TYPE(attention_shape shape, const element *__restrict__ q,
                                          const element *__restrict__ k, const element *__restrict__ v,
                                          element *__restrict__ y, float *__restrict__ sums) {
  __shared__ __align__(16) float floats[SHARED_FLOATS];
  const attention_memory memory = {q, k, v, NULL, NULL, NULL};
  if (shape.size <= 32)
    attend_all<tiles<32, 64>>(shape, memory, floats, y, sums);
  else if (shape.size <= 64)
    attend_all<tiles<64, 32>>(shape, memory, floats, y, sums);
  else
    attend_all<tiles<128, 16>>(shape, memory, floats, y, sums);
}

/* Gradients -------------------------------------------------------------------------------------------------------- */

/* Two tiles that stay, of q and dy or of k and v, and one that is replaced; and dy · y of each row. */
template <class T>
struct gradient_memory {
  float first[T::TILE * T::ROW], second[T::TILE * T::ROW], other[T::TILE * T::ROW], scores[T::TILE * T::SCORES];
  float shares[T::TILE];
};

/* The gradients; NULL for those that nothing reads. */
struct gradients {
  element *q, *k, *v;
};

/* A warp has every 8th row. */
template <class T>
__device__ inline void find_shares(const attention_shape &shape, const attention_memory &memory, size_t head,
                                   size_t first, float *shares) {
  const head_rows rows = y_rows(shape, head);
  const unsigned lane = threadIdx.x % WARP;
  for (unsigned row = threadIdx.x / WARP; row < T::TILE; row += WARPS) {
    float sum = 0;
    if (first + row < rows.count) {
      const size_t at = rows.begin + (first + row) * rows.stride;
      for (size_t i = lane; i < shape.size; i += WARP) sum += to_float(memory.y[at + i]) * to_float(memory.dy[at + i]);
    }
    for (unsigned distance = WARP / 2; distance > 0; distance /= 2) sum += __shfl_xor_sync(ALL_LANES, sum, distance);
    if (lane == 0) shares[row] = sum;
  }
}

/* Turns scores into weights, exponentials over the sums of their rows; 0 for columns that are not visible. */
template <class T>
__device__ inline void find_weights(const attention_shape &shape, const attention_memory &memory, size_t head,
                                    size_t first_row, size_t first_column, float (*products)[T::EACH]) {
  const unsigned down = threadIdx.x / SIDE, across = threadIdx.x % SIDE;
#pragma unroll
  for (unsigned i = 0; i < T::EACH; i++) {
    const size_t row = first_row + down + SIDE * i;
    const float sum = row < shape.rows ? memory.sums[head * shape.rows + row] : 0.0f;
    const size_t limit = row < shape.rows ? sees(shape, row) : 0;
#pragma unroll
    for (unsigned j = 0; j < T::EACH; j++)
      products[i][j] = first_column + across + SIDE * j < limit ? expf(shape.scale * products[i][j] - sum) : 0.0f;
  }
}

/* Turns gradients of weights into gradients of scores. */
template <class T>
__device__ inline void find_slopes(float scale, const float *shares, const float (*weights)[T::EACH],
                                   float (*slopes)[T::EACH]) {
#pragma unroll
  for (unsigned i = 0; i < T::EACH; i++) {
    const float share = shares[threadIdx.x / SIDE + SIDE * i];
#pragma unroll
    for (unsigned j = 0; j < T::EACH; j++) slopes[i][j] = weights[i][j] * (slopes[i][j] - share) * scale;
  }
}

template <class T>
__device__ inline void make_q_gradient(const attention_shape &shape, const attention_memory &memory, size_t head,
                                       size_t first, gradient_memory<T> &shared, element *dq) {
  float sums[T::EACH][T::PARTS], weights[T::EACH][T::EACH], slopes[T::EACH][T::EACH];
  const size_t end = last_seen(shape, first, T::TILE);
  const head_rows from = k_rows(shape, group_of(shape, head));
  clear<T>(sums);
  load<T>(shape, memory.q, q_rows(shape, head), first, shared.first);
  load<T>(shape, memory.dy, y_rows(shape, head), first, shared.second);
  find_shares<T>(shape, memory, head, first, shared.shares);
  for (size_t column = 0; column < end; column += T::TILE) {
    load<T>(shape, memory.v, from, column, shared.other);
    __syncthreads();
    multiply_rows<T>(shared.second, shared.other, slopes);
    __syncthreads();
    load<T>(shape, memory.k, from, column, shared.other);
    __syncthreads();
    multiply_rows<T>(shared.first, shared.other, weights);
    find_weights<T>(shape, memory, head, first, column, weights);
    find_slopes<T>(shape.scale, shared.shares, weights, slopes);
    write_scores<T>(slopes, shared.scores);
    __syncthreads();
    add_product<T>(shared.scores, false, shared.other, sums);
    __syncthreads(); /* all has been read */
  }
  store<T>(shape, dq, q_rows(shape, head), first, sums, NULL);
  __syncthreads();
}

/* Adds the gradients from a tile of rows. The transposed scores are read, so `scores` are written row by row. */
template <class T>
__device__ inline void add_rows(const attention_shape &shape, const attention_memory &memory, size_t head, size_t first,
                                size_t column, gradient_memory<T> &shared, float (*of_k)[T::PARTS],
                                float (*of_v)[T::PARTS]) {
  float weights[T::EACH][T::EACH], slopes[T::EACH][T::EACH];
  load<T>(shape, memory.q, q_rows(shape, head), first, shared.other);
  find_shares<T>(shape, memory, head, first, shared.shares);
  __syncthreads();
  multiply_rows<T>(shared.other, shared.first, weights);
  find_weights<T>(shape, memory, head, first, column, weights);
  write_scores<T>(weights, shared.scores);
  __syncthreads();
  load<T>(shape, memory.dy, y_rows(shape, head), first, shared.other);
  __syncthreads();
  multiply_rows<T>(shared.other, shared.second, slopes);
  add_product<T>(shared.scores, true, shared.other, of_v);
  find_slopes<T>(shape.scale, shared.shares, weights, slopes);
  __syncthreads();
  write_scores<T>(slopes, shared.scores);
  load<T>(shape, memory.q, q_rows(shape, head), first, shared.other);
  __syncthreads();
  add_product<T>(shared.scores, true, shared.other, of_k);
  __syncthreads(); /* all has been read */
}

template <class T>
__device__ inline void make_k_gradient(const attention_shape &shape, const attention_memory &memory, size_t group,
                                       size_t column, gradient_memory<T> &shared, const gradients &to) {
  const size_t of_group = shape.heads / shape.groups;
  const head_rows rows = k_rows(shape, group);
  float of_k[T::EACH][T::PARTS], of_v[T::EACH][T::PARTS];
  clear<T>(of_k);
  clear<T>(of_v);
  load<T>(shape, memory.k, rows, column, shared.first);
  load<T>(shape, memory.v, rows, column, shared.second);
  for (size_t i = 0; i < of_group; i++) {
    for (size_t first = 0; first < shape.rows; first += T::TILE) {
      if (last_seen(shape, first, T::TILE) > column)
        add_rows<T>(shape, memory, group * of_group + i, first, column, shared, of_k, of_v);
    }
  }
  if (to.k != NULL) store<T>(shape, to.k, rows, column, of_k, NULL);
  if (to.v != NULL) store<T>(shape, to.v, rows, column, of_v, NULL);
  __syncthreads();
}

/* First the tiles of rows of all heads, for dq; then the tiles of columns of all groups, for dk and dv. */
template <class T>
__device__ inline void make_gradients(const attention_shape &shape, const attention_memory &memory, float *floats,
                                      const gradients &to) {
  static_assert(sizeof(gradient_memory<T>) <= SHARED_FLOATS * sizeof(float), "it has room");
  gradient_memory<T> &shared = *(gradient_memory<T> *)floats;
  const size_t down = (shape.rows + T::TILE - 1) / T::TILE, across = (shape.columns + T::TILE - 1) / T::TILE;
  const size_t of_q = to.q == NULL ? 0 : shape.batches * shape.heads * down;
  const size_t of_k = to.k == NULL && to.v == NULL ? 0 : shape.batches * shape.groups * across;
  for (size_t tile = blockIdx.x; tile < of_q; tile += gridDim.x)
    make_q_gradient<T>(shape, memory, tile / down, tile % down * T::TILE, shared, to.q);
  /* the block after the one with the last tile of rows gets the first tile of columns */
  for (size_t tile = (blockIdx.x + gridDim.x - of_q % gridDim.x) % gridDim.x; tile < of_k; tile += gridDim.x)
    make_k_gradient<T>(shape, memory, tile / across, tile % across * T::TILE, shared, to);
}

extern "C" __global__ void attention_gradient_TYPE(attention_shape shape, const element *__restrict__ q,
                                                   const element *__restrict__ k, const element *__restrict__ v,
                                                   const element *__restrict__ y, const element *__restrict__ dy,
                                                   const float *__restrict__ sums, element *__restrict__ dq,
                                                   element *__restrict__ dk, element *__restrict__ dv) {
  __shared__ __align__(16) float floats[SHARED_FLOATS];
  const attention_memory memory = {q, k, v, y, dy, sums};
  const gradients to = {dq, dk, dv};
  if (shape.size <= 32)
    make_gradients<tiles<32, 64>>(shape, memory, floats, to);
  else if (shape.size <= 64)
    make_gradients<tiles<64, 32>>(shape, memory, floats, to);
  else
    make_gradients<tiles<128, 16>>(shape, memory, floats, to);
}
