/* SPDX-License-Identifier: MIT
 * The CUDA kernel of attention_tile_forward.c, after FlashAttention-2 (Dao 2023): a block computes a tile of rows over
 * the columns that are visible to them. One thread computes a sum, in a fixed order.
 */
#include "tensor/operators/attention/attention.cuh"

#define ENOUGH_TILES 132 /* for a large device */

/* T: the tile of rows; U: that of columns. */

/* The running maximum and sum of each row of a tile, and the factor that corrects earlier sums. */
template <class T>
struct row_states {
  float largest[T::TILE], sum[T::TILE], correction[T::TILE];
};

template <class T, class U>
struct forward_memory {
  float q[T::TILE * T::ROW], other[U::TILE * U::ROW], scores[T::TILE * U::SCORES];
  row_states<T> states;
};

/* Turns products into exponentials of scores. A warp has every 8th row, a lane every 32nd column. */
template <class T, class U>
__device__ inline void soften_rows(const attention_shape &shape, const batch_view &view, const score_terms &terms,
                                   size_t first_row, size_t first_column, float *scores, row_states<T> &states) {
  const unsigned lane = threadIdx.x % WARP;
  for (unsigned row = threadIdx.x / WARP; row < T::TILE; row += WARPS) {
    const column_span visible = visible_columns(shape, view, first_row + row);
    const bool is_row = first_row + row < view.rows;
    float *const line = scores + row * U::SCORES;
    float largest = minus_infinity(), sum = 0;
    for (unsigned i = lane; i < U::TILE; i += WARP) {
      line[i] =
          is_row ? score_of(shape, view, terms, visible, first_row + row, first_column + i, line[i]) : minus_infinity();
      largest = fmaxf(largest, line[i]);
    }
    for (unsigned distance = WARP / 2; distance > 0; distance /= 2)
      largest = fmaxf(largest, __shfl_xor_sync(ALL_LANES, largest, distance));
    const float before = states.largest[row];
    largest = fmaxf(largest, before);
    for (unsigned i = lane; i < U::TILE; i += WARP) {
      const float x = line[i] == minus_infinity() ? 0.0f : expf(line[i] - largest);
      line[i] = x;
      sum += x;
    }
    for (unsigned distance = WARP / 2; distance > 0; distance /= 2) sum += __shfl_xor_sync(ALL_LANES, sum, distance);
    __syncwarp();
    if (lane == 0) {
      const float correction = before == minus_infinity() ? 0.0f : expf(before - largest);
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

/* A row that sees nothing is zeros, and its sum infinite, so that the gradient finds weights of 0. */
template <class T>
__device__ inline void finish_rows(const attention_shape &shape, size_t head, size_t first, row_states<T> &states,
                                   float *row_sums) {
  if (threadIdx.x >= T::TILE) return;
  const float sum = states.sum[threadIdx.x];
  states.correction[threadIdx.x] = sum == 0.0f ? 0.0f : 1.0f / sum;
  if (row_sums != NULL && first + threadIdx.x < shape.rows)
    row_sums[head * shape.rows + first + threadIdx.x] =
        sum == 0.0f ? -minus_infinity() : states.largest[threadIdx.x] + logf(sum);
}

template <class T, class U>
__device__ inline void attend(const attention_shape &shape, const attention_memory &memory, size_t head, size_t first,
                              forward_memory<T, U> &shared, element *y, float *row_sums) {
  row_states<T> &states = shared.states;
  float sums[T::EACH][T::PARTS], products[T::EACH][U::EACH];
  const batch_view view = view_of(shape, memory.plan, head);
  const score_terms terms = terms_of(shape, memory, head);
  const size_t group = group_of(shape, head);
  column_span seen = {0, 0};
  if (first < view.rows) seen = visible_to_tile(shape, view, first, T::TILE);
  clear<T>(sums);
  load<T>(shape, memory.q, q_rows(shape, head), first, view.rows, shared.q);
  if (threadIdx.x < T::TILE) {
    states.largest[threadIdx.x] = minus_infinity();
    states.sum[threadIdx.x] = 0;
  }
  __syncthreads();
  for (size_t column = seen.first / U::TILE * U::TILE; column < seen.last; column += U::TILE) {
    load_columns<U>(shape, view, group, column, memory.k, memory.k_cache, shared.other);
    __syncthreads();
    multiply_rows<T, U>(shared.q, shared.other, products);
    write_scores<T, U>(products, shared.scores);
    __syncthreads();
    load_columns<U>(shape, view, group, column, memory.v, memory.v_cache, shared.other);
    soften_rows<T, U>(shape, view, terms, first, column, shared.scores, states);
    __syncthreads();
    correct<T>(states.correction, sums);
    add_product<T, U>(shared.scores, false, shared.other, sums);
    __syncthreads(); /* all has been read */
  }
  finish_rows<T>(shape, head, first, states, row_sums);
  __syncthreads();
  store<T>(shape, y, y_rows(shape, head), first, sums, states.correction);
  __syncthreads();
}

template <class T, class U>
__device__ inline void attend_all(const attention_shape &shape, const attention_memory &memory, float *floats,
                                  element *y, float *row_sums) {
  static_assert(sizeof(forward_memory<T, U>) <= SHARED_FLOATS * sizeof(float), "it has room");
  forward_memory<T, U> &shared = *(forward_memory<T, U> *)floats;
  const size_t each = (shape.rows + T::TILE - 1) / T::TILE, tiles = shape.batches * shape.heads * each;
  for (size_t tile = blockIdx.x; tile < tiles; tile += gridDim.x)
    attend<T, U>(shape, memory, tile / each, tile % each * T::TILE, shared, y, row_sums);
}

/* Tiles of few rows keep more of the device busy if there are few tiles; as forward_tile_of in attention.c. */
template <unsigned size, unsigned few, unsigned of_few, unsigned many, unsigned of_many>
__device__ inline void attend_in(const attention_shape &shape, const attention_memory &memory, float *floats,
                                 element *y, float *row_sums) {
  if (shape.batches * shape.heads * ((shape.rows + many - 1) / many) < ENOUGH_TILES)
    attend_all<tiles<size, few>, tiles<size, of_few>>(shape, memory, floats, y, row_sums);
  else
    attend_all<tiles<size, many>, tiles<size, of_many>>(shape, memory, floats, y, row_sums);
}

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, 2)
    attention_TYPE(attention_shape shape, const element *__restrict__ q, const element *__restrict__ k,
                   const element *__restrict__ v, const element *__restrict__ k_cache,
                   const element *__restrict__ v_cache, const void *__restrict__ mask, const int *__restrict__ plan,
                   element *__restrict__ y, float *__restrict__ sums) {
  __shared__ __align__(16) float floats[SHARED_FLOATS];
  const attention_memory memory = {q, k, v, k_cache, v_cache, mask, plan, NULL, NULL, NULL};
  if (shape.size <= 32)
    attend_in<32, 16, 64, 64, 64>(shape, memory, floats, y, sums);
  else if (shape.size <= 64)
    attend_in<64, 16, 64, 64, 32>(shape, memory, floats, y, sums);
  else if (shape.size <= 128)
    attend_in<128, 16, 32, 32, 32>(shape, memory, floats, y, sums);
  else
    attend_in<256, 16, 16, 16, 16>(shape, memory, floats, y, sums);
}
