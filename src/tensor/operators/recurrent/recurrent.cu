/* SPDX-License-Identifier: MIT
 * The CUDA kernels of recurrent.c. The states of a step are in the workspace, which only the block of their sequences
 * uses.
 */
#include "tensor/operators/recurrent/recurrent.cuh"

/* The cell of one element, from the sums x + p of its gates, but of gru's last gate: x and p apart. */
struct cell_memory {
  const element *gates;
  const float *bias;
  element *y, *previous, *activated;
  float *cells, *h, *c, *products;
};

__device__ inline void run_cell(const block_rows &b, const cell_memory &m, size_t row, size_t at, size_t place) {
  const size_t hidden = b.s.hidden, count = b.s.gates;
  float *h = m.h + row * hidden + at, *c = m.c + row * hidden + at;
  float x[GATES], p[GATES], g[GATES] = {0};
  for (unsigned k = 0; k < count; k++) {
    x[k] = to_float(m.gates[(place * count + k) * hidden + at]);
    p[k] = m.products[(row * count + k) * hidden + at];
  }
  if (m.previous != 0) m.previous[place * hidden + at] = to_element(*h);
  if (m.cells != 0) m.cells[place * hidden + at] = *c;
  if (b.s.kind == RNN) {
    const float sum = x[0] + p[0];
    *h = b.s.is_relu != 0 ? (sum > 0 || sum != sum ? sum : 0.0f) : rondo_tanh(sum);
  } else if (b.s.kind == GRU) {
    g[0] = rondo_sigmoid(x[0] + p[0]);
    g[1] = rondo_sigmoid(x[1] + p[1]);
    g[3] = m.bias == 0 ? p[2] : p[2] + m.bias[at];
    g[2] = rondo_tanh(x[2] + g[0] * g[3]);
    *h = g[2] + g[1] * (*h - g[2]);
  } else {
    for (unsigned k = 0; k < GATES; k++) g[k] = k == 2 ? rondo_tanh(x[k] + p[k]) : rondo_sigmoid(x[k] + p[k]);
    *c = g[1] * *c + g[0] * g[2];
    *h = g[3] * rondo_tanh(*c);
  }
  for (unsigned k = 0; m.activated != 0 && k < GATES; k++)
    m.activated[(place * GATES + k) * hidden + at] = to_element(g[k]);
  const element rounded_h = to_element(*h);
  m.y[place * hidden + at] = rounded_h;
  *h = to_float(rounded_h);
}

extern "C" __global__ void recurrent_TYPE(recurrent_shape shape, const element *gates, const float *weight,
                                          const element *hidden, const element *cell, const void *lengths,
                                          const float *bias, float *workspace, element *y, element *last,
                                          element *previous, element *activated, element *last_cell, float *cells) {
  const block_rows b = rows_of(shape, lengths);
  const size_t states = shape.batch * shape.hidden, own = b.first * shape.hidden;
  const cell_memory m = {gates,
                         bias,
                         y,
                         previous,
                         activated,
                         cells,
                         workspace + own,
                         workspace + states + own,
                         workspace + 2 * states + own * shape.gates};
  read_states(b, hidden, m.h);
  read_states(b, cell, m.c);
  for (size_t number = 0; number < shape.steps; number++) {
    const size_t step = b.step_at(number);
    __syncthreads();
    multiply(b, weight, m.h, m.products);
    __syncthreads();
    for (size_t i = threadIdx.x; i < b.count * shape.hidden; i += BLOCK_THREADS) {
      const size_t row = i / shape.hidden, at = i - row * shape.hidden, place = step * shape.batch + b.first + row;
      if (b.has_step(row, step)) {
        run_cell(b, m, row, at, place);
        continue;
      }
      y[place * shape.hidden + at] = to_element(0.0f);
      if (previous != 0) previous[place * shape.hidden + at] = to_element(0.0f);
    }
  }
  __syncthreads();
  write_states(b, m.h, last);
  write_states(b, m.c, last_cell);
}

/* The gradient ----------------------------------------------------------------------------------------------------- */

struct slope_memory {
  const void *states;
  const element *dy, *activated;
  element *d_gates, *d_product;
  float *dh, *dc, *slopes;
};

/* As differentiate_cell in recurrent.c, of one element. */
__device__ inline void run_slopes(const block_rows &b, const slope_memory &m, size_t row, size_t at, size_t place) {
  const size_t hidden = b.s.hidden, count = b.s.gates;
  float *h = m.dh + row * hidden + at, *c = m.dc + row * hidden + at;
  float g[GATES] = {0}, d[GATES] = {0}, before = 0;
  for (unsigned k = 0; m.activated != 0 && k < GATES; k++)
    g[k] = to_float(m.activated[(place * GATES + k) * hidden + at]);
  const float dh = m.dy == 0 ? *h : *h + to_float(m.dy[place * hidden + at]);
  const float state = b.s.kind == LSTM ? ((const float *)m.states)[place * hidden + at]
                                       : to_float(((const element *)m.states)[place * hidden + at]);
  if (b.s.kind == RNN) {
    d[0] = b.s.is_relu != 0 ? (state > 0 ? dh : 0.0f) : dh * (1.0f - state * state);
  } else if (b.s.kind == GRU) {
    d[2] = dh * (1.0f - g[1]) * (1.0f - g[2] * g[2]);
    d[0] = d[2] * g[3] * g[0] * (1.0f - g[0]);
    d[1] = dh * (state - g[2]) * g[1] * (1.0f - g[1]);
    d[3] = d[2] * g[0];
    before = dh * g[1];
  } else {
    const float y = rondo_tanh(g[1] * state + g[0] * g[2]);
    const float slope = *c + dh * g[3] * (1.0f - y * y);
    d[0] = slope * g[2] * g[0] * (1.0f - g[0]);
    d[1] = slope * state * g[1] * (1.0f - g[1]);
    d[2] = slope * g[0] * (1.0f - g[2] * g[2]);
    d[3] = dh * y * g[3] * (1.0f - g[3]);
    *c = slope * g[1];
  }
  *h = before;
  for (unsigned k = 0; k < count; k++) {
    const float of_product = b.s.kind == GRU && k == 2 ? d[3] : d[k];
    m.d_gates[(place * count + k) * hidden + at] = to_element(d[k]);
    if (m.d_product != 0) m.d_product[(place * count + k) * hidden + at] = to_element(of_product);
    m.slopes[(row * count + k) * hidden + at] = of_product;
  }
}

__device__ inline void run_no_slopes(const block_rows &b, const slope_memory &m, size_t row, size_t at, size_t place) {
  const size_t hidden = b.s.hidden, count = b.s.gates;
  for (unsigned k = 0; k < count; k++) {
    m.d_gates[(place * count + k) * hidden + at] = to_element(0.0f);
    if (m.d_product != 0) m.d_product[(place * count + k) * hidden + at] = to_element(0.0f);
    m.slopes[(row * count + k) * hidden + at] = 0;
  }
}

/* dh [rows, h] += slopes [rows, g h] times the weights [g h, h]. Neighbouring threads read neighbouring weights. */
__device__ inline void multiply_back(const block_rows &b, const float *__restrict__ weight, const float *slopes,
                                     float *dh) {
  const size_t hidden = b.s.hidden, wide = b.s.gates * hidden;
  for (size_t k = threadIdx.x; k < hidden; k += BLOCK_THREADS) {
    float sums[ROWS] = {0};
#pragma unroll 8
    for (size_t j = 0; j < wide; j++) {
      const float w = weight[j * hidden + k];
#pragma unroll
      for (unsigned r = 0; r < ROWS; r++)
        if (r < b.count) sums[r] += w * slopes[r * wide + j];
    }
#pragma unroll
    for (unsigned r = 0; r < ROWS; r++)
      if (r < b.count) dh[r * hidden + k] += sums[r];
  }
}

extern "C" __global__ void recurrent_gradient_TYPE(recurrent_shape shape, const float *weight, const void *states,
                                                   const element *dy, const element *d_last, const element *d_last_cell,
                                                   const element *activated, const void *lengths, float *workspace,
                                                   element *d_gates, element *d_hidden, element *d_product,
                                                   element *d_cell) {
  const block_rows b = rows_of(shape, lengths);
  const size_t all = shape.batch * shape.hidden, own = b.first * shape.hidden;
  const slope_memory m = {states,
                          dy,
                          activated,
                          d_gates,
                          d_product,
                          workspace + own,
                          workspace + all + own,
                          workspace + 2 * all + own * shape.gates};
  read_states(b, d_last, m.dh);
  read_states(b, d_last_cell, m.dc);
  for (size_t number = shape.steps; number > 0; number--) {
    const size_t step = b.step_at(number - 1);
    __syncthreads();
    for (size_t i = threadIdx.x; i < b.count * shape.hidden; i += BLOCK_THREADS) {
      const size_t row = i / shape.hidden, at = i - row * shape.hidden, place = step * shape.batch + b.first + row;
      if (b.has_step(row, step))
        run_slopes(b, m, row, at, place);
      else
        run_no_slopes(b, m, row, at, place);
    }
    __syncthreads();
    multiply_back(b, weight, m.slopes, m.dh);
  }
  __syncthreads();
  write_states(b, m.dh, d_hidden);
  write_states(b, m.dc, d_cell);
}
