/* SPDX-License-Identifier: MIT
 * The CUDA form of attention_tile.c, after FlashAttention-2 (Dao 2023): forward and for dq a block owns a tile of rows
 * and goes over the columns that these see, for dk and dv it owns a tile of columns and goes over the rows of all heads
 * of its group that see them. Sums are made in one order, by one thread each.
 */
#include "tensor/operators/attention.cuh"

/* Of all that a kernel has in shared memory: what tiles of heads of 32 elements take for dk and dv. */
#define SHARED_FLOATS 11072

struct attention_memory {
  const element *q, *k, *v, *dy;
  const float *sums, *shares;
};

/* Forward ---------------------------------------------------------------------------------------------------------- */

/* What the rows of a tile have seen so far; of a turn, what it scales the earlier ones with. */
template <class T>
struct row_states {
  float most[T::TILE], sum[T::TILE], correction[T::TILE];
};

template <class T>
struct forward_memory {
  float q[T::TILE * T::ROW], other[T::TILE * T::ROW], scores[T::TILE * T::SCORES];
  row_states<T> states;
};

/* Scores become exponentials. A warp has every 8th row, a lane of it every 32nd column. */
template <class T>
__device__ inline void soften_rows(const attention_shape &shape, size_t first_row, size_t first_column, float *scores,
                                   row_states<T> &states) {
  const unsigned lane = threadIdx.x % WARP;
  for (unsigned row = threadIdx.x / WARP; row < T::TILE; row += WARPS) {
    const size_t limit = sees(shape, first_row + row);
    float *const line = scores + row * T::SCORES;
    float most = __int_as_float(0xff800000), sum = 0; /* less than any number */
    for (unsigned i = lane; i < T::TILE; i += WARP)
      if (first_column + i < limit) most = fmaxf(most, shape.scale * line[i]);
    for (unsigned distance = WARP / 2; distance > 0; distance /= 2)
      most = fmaxf(most, __shfl_xor_sync(ALL_LANES, most, distance));
    const float before = states.most[row];
    most = fmaxf(most, before);
    for (unsigned i = lane; i < T::TILE; i += WARP) {
      const float x = first_column + i < limit ? expf(shape.scale * line[i] - most) : 0.0f;
      line[i] = x;
      sum += x;
    }
    for (unsigned distance = WARP / 2; distance > 0; distance /= 2) sum += __shfl_xor_sync(ALL_LANES, sum, distance);
    __syncwarp();
    if (lane == 0) {
      const float correction = expf(before - most);
      states.correction[row] = correction;
      states.sum[row] = states.sum[row] * correction + sum;
      states.most[row] = most;
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

/* The rows of a tile, past which nothing is seen. */
__device__ inline size_t last_seen(const attention_shape &shape, size_t first, unsigned tile) {
  const size_t last = first + tile < shape.rows ? first + tile : shape.rows;
  return sees(shape, last - 1);
}

template <class T>
__device__ inline void attend(const attention_shape &shape, const attention_memory &memory, size_t head, size_t first,
                              forward_memory<T> &shared, element *y, float *row_sums) {
  row_states<T> &states = shared.states;
  float sums[T::EACH][T::PARTS], products[T::EACH][T::EACH];
  const size_t end = last_seen(shape, first, T::TILE), from = k_row(shape, head);
  clear<T>(sums);
  load<T>(shape, memory.q, q_row(shape, head), first, shape.rows, shared.q);
  if (threadIdx.x < T::TILE) {
    states.most[threadIdx.x] = __int_as_float(0xff800000);
    states.sum[threadIdx.x] = 0;
  }
  for (size_t column = 0; column < end; column += T::TILE) {
    load<T>(shape, memory.k, from, column, shape.columns, shared.other);
    __syncthreads();
    multiply_rows<T>(shared.q, shared.other, products);
    write_scores<T>(products, shared.scores);
    __syncthreads();
    load<T>(shape, memory.v, from, column, shape.columns, shared.other);
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
      row_sums[q_row(shape, head) + first + threadIdx.x] = states.most[threadIdx.x] + logf(sum);
  }
  __syncthreads();
  store<T>(shape, y, q_row(shape, head), first, shape.rows, sums, states.correction);
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

/* A warp a row. */
extern "C" __global__ void attention_share_TYPE(attention_shape shape, const element *__restrict__ y,
                                                const element *__restrict__ dy, float *__restrict__ shares) {
  const size_t rows = shape.batches * shape.heads * shape.rows;
  const unsigned lane = threadIdx.x % WARP;
  for (size_t row = (size_t)blockIdx.x * WARPS + threadIdx.x / WARP; row < rows; row += (size_t)gridDim.x * WARPS) {
    float sum = 0;
    for (size_t i = lane; i < shape.size; i += WARP)
      sum += to_float(y[row * shape.size + i]) * to_float(dy[row * shape.size + i]);
    for (unsigned distance = WARP / 2; distance > 0; distance /= 2) sum += __shfl_xor_sync(ALL_LANES, sum, distance);
    if (lane == 0) shares[row] = sum;
  }
}

/* Two tiles that stay, of q and dy or of k and v, and one that comes and goes. */
template <class T>
struct gradient_memory {
  float first[T::TILE * T::ROW], second[T::TILE * T::ROW], other[T::TILE * T::ROW], scores[T::TILE * T::SCORES];
};

/* Scores become weights, exponentials over their rows' sums; zeros where nothing is seen. */
template <class T>
__device__ inline void find_weights(const attention_shape &shape, const attention_memory &memory, size_t head,
                                    size_t first_row, size_t first_column, float (*products)[T::EACH]) {
  const unsigned down = threadIdx.x / SIDE, across = threadIdx.x % SIDE;
#pragma unroll
  for (unsigned i = 0; i < T::EACH; i++) {
    const size_t row = first_row + down + SIDE * i;
    const float sum = row < shape.rows ? memory.sums[q_row(shape, head) + row] : 0.0f;
    const size_t limit = row < shape.rows ? sees(shape, row) : 0;
#pragma unroll
    for (unsigned j = 0; j < T::EACH; j++)
      products[i][j] = first_column + across + SIDE * j < limit ? expf(shape.scale * products[i][j] - sum) : 0.0f;
  }
}

/* Gradients of weights become those of scores. */
template <class T>
__device__ inline void find_slopes(const attention_shape &shape, const attention_memory &memory, size_t head,
                                   size_t first_row, const float (*weights)[T::EACH], float (*slopes)[T::EACH]) {
#pragma unroll
  for (unsigned i = 0; i < T::EACH; i++) {
    const size_t row = first_row + threadIdx.x / SIDE + SIDE * i;
    const float share = row < shape.rows ? memory.shares[q_row(shape, head) + row] : 0.0f;
#pragma unroll
    for (unsigned j = 0; j < T::EACH; j++) slopes[i][j] = weights[i][j] * (slopes[i][j] - share) * shape.scale;
  }
}

template <class T>
__device__ inline void make_q_gradient(const attention_shape &shape, const attention_memory &memory, size_t head,
                                       size_t first, gradient_memory<T> &shared, element *dq) {
  float sums[T::EACH][T::PARTS], weights[T::EACH][T::EACH], slopes[T::EACH][T::EACH];
  const size_t end = last_seen(shape, first, T::TILE), from = k_row(shape, head);
  clear<T>(sums);
  load<T>(shape, memory.q, q_row(shape, head), first, shape.rows, shared.first);
  load<T>(shape, memory.dy, q_row(shape, head), first, shape.rows, shared.second);
  for (size_t column = 0; column < end; column += T::TILE) {
    load<T>(shape, memory.v, from, column, shape.columns, shared.other);
    __syncthreads();
    multiply_rows<T>(shared.second, shared.other, slopes);
    __syncthreads();
    load<T>(shape, memory.k, from, column, shape.columns, shared.other);
    __syncthreads();
    multiply_rows<T>(shared.first, shared.other, weights);
    find_weights<T>(shape, memory, head, first, column, weights);
    find_slopes<T>(shape, memory, head, first, weights, slopes);
    write_scores<T>(slopes, shared.scores);
    __syncthreads();
    add_product<T>(shared.scores, false, shared.other, sums);
    __syncthreads(); /* all has been read */
  }
  store<T>(shape, dq, q_row(shape, head), first, shape.rows, sums, NULL);
  __syncthreads();
}

template <class T>
__device__ inline void make_q_gradients(const attention_shape &shape, const attention_memory &memory, float *floats,
                                        element *dq) {
  static_assert(sizeof(gradient_memory<T>) <= SHARED_FLOATS * sizeof(float), "it has room");
  gradient_memory<T> &shared = *(gradient_memory<T> *)floats;
  const size_t each = (shape.rows + T::TILE - 1) / T::TILE, tiles = shape.batches * shape.heads * each;
  for (size_t tile = blockIdx.x; tile < tiles; tile += gridDim.x)
    make_q_gradient<T>(shape, memory, tile / each, tile % each * T::TILE, shared, dq);
}

extern "C" __global__ void attention_q_gradient_TYPE(attention_shape shape, const element *__restrict__ q,
                                                     const element *__restrict__ k, const element *__restrict__ v,
                                                     const element *__restrict__ dy, const float *__restrict__ sums,
                                                     const float *__restrict__ shares, element *__restrict__ dq) {
  __shared__ __align__(16) float floats[SHARED_FLOATS];
  const attention_memory memory = {q, k, v, dy, sums, shares};
  if (shape.size <= 32)
    make_q_gradients<tiles<32, 64>>(shape, memory, floats, dq);
  else if (shape.size <= 64)
    make_q_gradients<tiles<64, 32>>(shape, memory, floats, dq);
  else
    make_q_gradients<tiles<128, 16>>(shape, memory, floats, dq);
}

/* What a tile of rows adds. The tile's transposed scores are read, so `scores` are written row by row. */
template <class T>
__device__ inline void add_rows(const attention_shape &shape, const attention_memory &memory, size_t head, size_t first,
                                size_t column, gradient_memory<T> &shared, float (*of_k)[T::PARTS],
                                float (*of_v)[T::PARTS]) {
  float weights[T::EACH][T::EACH], slopes[T::EACH][T::EACH];
  load<T>(shape, memory.q, q_row(shape, head), first, shape.rows, shared.other);
  __syncthreads();
  multiply_rows<T>(shared.other, shared.first, weights);
  find_weights<T>(shape, memory, head, first, column, weights);
  write_scores<T>(weights, shared.scores);
  __syncthreads();
  load<T>(shape, memory.dy, q_row(shape, head), first, shape.rows, shared.other);
  __syncthreads();
  multiply_rows<T>(shared.other, shared.second, slopes);
  add_product<T>(shared.scores, true, shared.other, of_v);
  find_slopes<T>(shape, memory, head, first, weights, slopes);
  __syncthreads();
  write_scores<T>(slopes, shared.scores);
  load<T>(shape, memory.q, q_row(shape, head), first, shape.rows, shared.other);
  __syncthreads();
  add_product<T>(shared.scores, true, shared.other, of_k);
  __syncthreads(); /* all has been read */
}

template <class T>
__device__ inline void make_k_gradient(const attention_shape &shape, const attention_memory &memory, size_t group,
                                       size_t column, gradient_memory<T> &shared, element *dk, element *dv) {
  const size_t of_group = shape.heads / shape.groups, from = group * shape.columns;
  float of_k[T::EACH][T::PARTS], of_v[T::EACH][T::PARTS];
  clear<T>(of_k);
  clear<T>(of_v);
  load<T>(shape, memory.k, from, column, shape.columns, shared.first);
  load<T>(shape, memory.v, from, column, shape.columns, shared.second);
  for (size_t i = 0; i < of_group; i++) {
    for (size_t first = 0; first < shape.rows; first += T::TILE) {
      if (last_seen(shape, first, T::TILE) > column)
        add_rows<T>(shape, memory, group * of_group + i, first, column, shared, of_k, of_v);
    }
  }
  store<T>(shape, dk, from, column, shape.columns, of_k, NULL);
  store<T>(shape, dv, from, column, shape.columns, of_v, NULL);
  __syncthreads();
}

template <class T>
__device__ inline void make_k_gradients(const attention_shape &shape, const attention_memory &memory, float *floats,
                                        element *dk, element *dv) {
  gradient_memory<T> &shared = *(gradient_memory<T> *)floats;
  const size_t each = (shape.columns + T::TILE - 1) / T::TILE, tiles = shape.batches * shape.groups * each;
  for (size_t tile = blockIdx.x; tile < tiles; tile += gridDim.x)
    make_k_gradient<T>(shape, memory, tile / each, tile % each * T::TILE, shared, dk, dv);
}

extern "C" __global__ void attention_k_gradient_TYPE(attention_shape shape, const element *__restrict__ q,
                                                     const element *__restrict__ k, const element *__restrict__ v,
                                                     const element *__restrict__ dy, const float *__restrict__ sums,
                                                     const float *__restrict__ shares, element *__restrict__ dk,
                                                     element *__restrict__ dv) {
  __shared__ __align__(16) float floats[SHARED_FLOATS];
  const attention_memory memory = {q, k, v, dy, sums, shares};
  if (shape.size <= 32)
    make_k_gradients<tiles<32, 64>>(shape, memory, floats, dk, dv);
  else if (shape.size <= 64)
    make_k_gradients<tiles<64, 32>>(shape, memory, floats, dk, dv);
  else
    make_k_gradients<tiles<128, 16>>(shape, memory, floats, dk, dv);
}
