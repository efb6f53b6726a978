/* SPDX-License-Identifier: MIT
 * What the kernels of recurrent layers share: a block has ROWS sequences and computes all their steps. A warp computes
 * a gate's products for all of them, so that it reads the weights once.
 */
#include "tensor/operators/common/element.cuh"
#include "tensor/operators/elementwise/elementary.cuh"

#define ROWS 4 /* CUDA_ROWS in recurrent.c */
#define GATES 4

enum { RNN, GRU, LSTM };

struct recurrent_shape {
  size_t steps, batch, hidden, gates, rows;
  unsigned kind, is_reversed, is_relu, wide_lengths;
  unsigned long long is_packed; /* of CPUs: here 0 */
};

/* The block's sequences first .. first + count - 1. */
struct block_rows {
  const recurrent_shape &s;
  const void *lengths;
  size_t first, count;

  __device__ bool has_step(size_t row, size_t step) const {
    return lengths == 0 || (long long)step < index_at(lengths, s.wide_lengths, first + row);
  }
  __device__ size_t step_at(size_t number) const { return s.is_reversed != 0 ? s.steps - 1 - number : number; }
};

__device__ inline block_rows rows_of(const recurrent_shape &s, const void *lengths) {
  const size_t first = (size_t)blockIdx.x * ROWS;
  return {s, lengths, first, s.batch - first < ROWS ? s.batch - first : ROWS};
}

__device__ inline void read_states(const block_rows &b, const element *from, float *to) {
  for (size_t i = threadIdx.x; i < b.count * b.s.hidden; i += BLOCK_THREADS)
    to[i] = from == 0 ? 0.0f : to_float(from[b.first * b.s.hidden + i]);
}

__device__ inline void write_states(const block_rows &b, const float *from, element *to) {
  for (size_t i = threadIdx.x; to != 0 && i < b.count * b.s.hidden; i += BLOCK_THREADS)
    to[b.first * b.s.hidden + i] = to_element(from[i]);
}

/* products [rows, g h] = states [rows, h] times the transpose of the weights [g h, h], of the gates from `first` on. */
__device__ inline void multiply(const block_rows &b, const float *__restrict__ weight, const float *states,
                                float *products, size_t first = 0) {
  const size_t hidden = b.s.hidden, wide = b.s.gates * hidden;
  const unsigned lane = threadIdx.x % WARP;
  for (size_t j = first * hidden + threadIdx.x / WARP; j < wide; j += WARPS) {
    float sums[ROWS] = {0};
    for (size_t k = lane; k < hidden; k += WARP) {
      const float w = weight[j * hidden + k];
#pragma unroll
      for (unsigned r = 0; r < ROWS; r++)
        if (r < b.count) sums[r] += w * states[r * hidden + k];
    }
#pragma unroll
    for (unsigned r = 0; r < ROWS; r++) {
      for (unsigned distance = WARP / 2; distance > 0; distance /= 2)
        sums[r] += __shfl_xor_sync(ALL_LANES, sums[r], distance);
      if (lane == 0 && r < b.count) products[r * wide + j] = sums[r];
    }
  }
}
