/* SPDX-License-Identifier: MIT
 * The CUDA kernel of recurrent_general.c. A block has ROWS sequences and computes all their steps. A warp computes a
 * gate's products for all of them, so that it reads the weights once.
 */
#include "tensor/operators/recurrent/recurrent.cuh"

#define ROWS 4 /* RONDO_RECURRENT_CUDA_ROWS */

/* rondo_recurrent_activation_kind */
enum {
  DEFAULT,
  SIGMOID,
  TANH,
  RELU,
  AFFINE,
  LEAKY_RELU,
  THRESHOLDED_RELU,
  SCALED_TANH,
  HARD_SIGMOID,
  ELU,
  SOFTSIGN,
  SOFTPLUS
};
enum { OF_GATES, OF_CANDIDATE, OF_CELL };

struct cell_activation {
  unsigned kind;
  float alpha, beta;
};

struct general_shape {
  recurrent_shape base;
  unsigned resets_first, is_coupled;
  float clip;
  cell_activation activations[3];
};

__device__ inline float activate(const general_shape &s, unsigned which, float x) {
  const cell_activation &by = s.activations[which];
  if (s.clip > 0) x = x > s.clip ? s.clip : x < -s.clip ? -s.clip : x;
  switch (by.kind) {
    case RELU:
      return x < 0 ? 0 : x;
    case SIGMOID:
      return rondo_sigmoid(x);
    case AFFINE:
      return by.alpha * x + by.beta;
    case LEAKY_RELU:
      return x < 0 ? by.alpha * x : x;
    case THRESHOLDED_RELU:
      return x < by.alpha ? 0 : x;
    case SCALED_TANH:
      return by.alpha * rondo_tanh(by.beta * x);
    case HARD_SIGMOID:
      x = by.alpha * x + by.beta;
      return x < 0 ? 0 : x > 1 ? 1 : x;
    case ELU:
      return x < 0 ? by.alpha * (rondo_exp(x) - 1) : x;
    case SOFTSIGN:
      return x / (1 + (x < 0 ? -x : x));
    case SOFTPLUS:
      return (x < 0 ? 0 : x) + rondo_log(1 + rondo_exp(x < 0 ? x : -x));
  }
  return rondo_tanh(x);
}

/* The block's sequences first .. first + count - 1. */
struct block_rows {
  const recurrent_shape &s;
  const void *lengths;
  size_t first, count;
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

/* products [rows, g h] = states [rows, h] times the transpose of the weights [g h, h], of the gates first .. end - 1.
 */
__device__ inline void multiply(const block_rows &b, const float *__restrict__ weight, const float *states,
                                float *products, size_t first, size_t end) {
  const size_t hidden = b.s.hidden, wide = b.s.gates * hidden;
  const unsigned lane = threadIdx.x % WARP;
  for (size_t j = first * hidden + threadIdx.x / WARP; j < end * hidden; j += WARPS) {
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

struct general_memory {
  const element *gates;
  const float *bias, *peephole;
  float *h, *c, *reset, *products; /* of the block */
};

/* The sum of a gate's products, of the inputs and of the states. */
__device__ inline float sum_of(const block_rows &b, const general_memory &m, size_t row, size_t at, size_t place,
                               unsigned gate) {
  const size_t hidden = b.s.hidden, count = b.s.gates;
  return to_float(m.gates[(place * count + gate) * hidden + at]) + m.products[(row * count + gate) * hidden + at];
}

__device__ inline float lstm_state(const general_shape &s, const block_rows &b, const general_memory &m, size_t row,
                                   size_t at, size_t place) {
  const size_t hidden = b.s.hidden;
  float *c = m.c + row * hidden + at;
  const float *see = m.peephole == 0 ? 0 : m.peephole + at;
  const float in = activate(s, OF_GATES, sum_of(b, m, row, at, place, 0) + (see == 0 ? 0 : see[0] * *c));
  const float forget = s.is_coupled != 0
                           ? 1 - in
                           : activate(s, OF_GATES, sum_of(b, m, row, at, place, 1) + (see == 0 ? 0 : see[hidden] * *c));
  *c = forget * *c + in * activate(s, OF_CANDIDATE, sum_of(b, m, row, at, place, 2));
  const float out = activate(s, OF_GATES, sum_of(b, m, row, at, place, 3) + (see == 0 ? 0 : see[2 * hidden] * *c));
  return out * activate(s, OF_CELL, *c);
}

__device__ inline float gru_state(const general_shape &s, const block_rows &b, const general_memory &m, size_t row,
                                  size_t at, size_t place) {
  const size_t hidden = b.s.hidden;
  const float reset = activate(s, OF_GATES, sum_of(b, m, row, at, place, 0));
  const float update = activate(s, OF_GATES, sum_of(b, m, row, at, place, 1));
  const float product = m.products[(row * 3 + 2) * hidden + at] + (m.bias == 0 ? 0 : m.bias[at]);
  const float x = to_float(m.gates[(place * 3 + 2) * hidden + at]);
  const float candidate = activate(s, OF_CANDIDATE, x + (s.resets_first != 0 ? product : reset * product));
  return candidate + update * (m.h[row * hidden + at] - candidate);
}

__device__ inline float state_of(const general_shape &s, const block_rows &b, const general_memory &m, size_t row,
                                 size_t at, size_t place) {
  if (s.base.kind == LSTM) return lstm_state(s, b, m, row, at, place);
  if (s.base.kind == GRU) return gru_state(s, b, m, row, at, place);
  return activate(s, OF_GATES, sum_of(b, m, row, at, place, 0));
}

/* The products of the last gate become those of the states times the reset gate. */
__device__ inline void reset_first(const general_shape &s, const block_rows &b, const general_memory &m,
                                   const float *weight, size_t step) {
  const size_t hidden = b.s.hidden;
  for (size_t i = threadIdx.x; i < b.count * hidden; i += BLOCK_THREADS) {
    const size_t row = i / hidden, at = i - row * hidden, place = step * b.s.batch + b.first + row;
    m.reset[i] = activate(s, OF_GATES, sum_of(b, m, row, at, place, 0)) * m.h[i];
  }
  __syncthreads();
  multiply(b, weight, m.reset, m.products, 2, 3);
  __syncthreads();
}

extern "C" __global__ void recurrent_general_TYPE(general_shape shape, const element *gates, const float *weight,
                                                  const element *hidden, const element *cell, const void *lengths,
                                                  const float *bias, const float *peephole, float *workspace,
                                                  element *y, element *last, element *last_cell) {
  const recurrent_shape &s = shape.base;
  const block_rows b = rows_of(s, lengths);
  const size_t states = s.batch * s.hidden, own = b.first * s.hidden;
  const general_memory m = {gates,
                            bias,
                            peephole,
                            workspace + own,
                            workspace + states + own,
                            workspace + 2 * states + own,
                            workspace + 3 * states + own * s.gates};
  read_states(b, hidden, m.h);
  read_states(b, cell, m.c);
  for (size_t number = 0; number < s.steps; number++) {
    const size_t step = step_at(s, number);
    __syncthreads();
    multiply(b, weight, m.h, m.products, 0, shape.resets_first != 0 ? 2 : s.gates);
    __syncthreads();
    if (shape.resets_first != 0) reset_first(shape, b, m, weight, step);
    for (size_t i = threadIdx.x; i < b.count * s.hidden; i += BLOCK_THREADS) {
      const size_t row = i / s.hidden, at = i - row * s.hidden, place = step * s.batch + b.first + row;
      const bool runs = has_step(s, lengths, b.first + row, step);
      const element state = to_element(runs ? state_of(shape, b, m, row, at, place) : 0.0f);
      y[place * s.hidden + at] = state;
      if (runs) m.h[i] = to_float(state);
    }
  }
  __syncthreads();
  write_states(b, m.h, last);
  write_states(b, m.c, last_cell);
}
