/* SPDX-License-Identifier: MIT
 * The CUDA kernels of recurrent.c. A launch computes one step, because each element of a state needs all elements of
 * the state before it: the end of a launch is the only barrier of all blocks. A block has some sequences and some
 * units, which are elements of a state. It multiplies the states of the sequences by the weights of the units, and one
 * thread computes the cell of each pair.
 *
 * The states, or the gradients of the products, are in one of two buffers of the workspace: a step reads the one that
 * the step before wrote. Cells, and the gradients of states and cells, belong to one thread and have one buffer.
 */
#include "tensor/operators/recurrent/recurrent.cuh"

/* The sequences and the units of a block. */
struct step_block {
  const recurrent_shape &s;
  const void *lengths;
  size_t first_row, first_unit;
  unsigned rows, units;
};

__device__ inline step_block own_block(const recurrent_shape &s, const void *lengths) {
  const unsigned across = (unsigned)((s.batch - 1) / s.rows + 1);
  const size_t row = blockIdx.x % across * s.rows, unit = blockIdx.x / across * s.units;
  const size_t rows = s.batch - row, units = s.hidden - unit;
  return {
      s, lengths, row, unit, (unsigned)(rows < s.rows ? rows : s.rows), (unsigned)(units < s.units ? units : s.units)};
}

/* Products --------------------------------------------------------------------------------------------------------- */

/* A warp computes a square of products: of this many sequences and columns. */
#define TEAM 4
#define SUMS (TEAM * TEAM)

/* products[row, unit, gate] = states[row] times row `gate` hidden + unit of the weights. Both have `depth` floats in a
 * row. A column is a gate of a unit. */
struct step_factors {
  const float *weight, *states;
  size_t depth;
  unsigned gates;
};

/* The work of a warp. `rows` and `columns` of these teams make the block's products; `parts` warps share each of them,
 * with a part of the depth for each. */
struct warp_work {
  unsigned row, column, part;
};

__device__ inline unsigned column_teams(const recurrent_shape &s) { return WARPS / (s.row_teams * s.parts); }

__device__ inline warp_work own_work(const recurrent_shape &s) {
  const unsigned warp = threadIdx.x / WARP, team = warp / s.row_teams, columns = column_teams(s);
  return {warp % s.row_teams, team % columns, team / columns};
}

/* A lane reads neighbours at once: four, or one if not all rows begin at multiples of 16 bytes. The weights and the
 * states do: they are at the start of a value or of the workspace, or at a multiple of their size from there. */
template <unsigned EACH>
struct alignas(EACH * sizeof(float)) lane_floats {
  float at[EACH];
};

template <unsigned EACH>
__device__ inline void add_products(const float *const *columns, const float *const *rows, size_t from, size_t to,
                                    float *sums) {
  typedef lane_floats<EACH> floats;
#pragma unroll 2
  for (size_t k = from + threadIdx.x % WARP * EACH; k < to; k += WARP * EACH) {
    floats left[TEAM], right[TEAM];
#pragma unroll
    for (unsigned i = 0; i < TEAM; i++) {
      left[i] = *(const floats *)(columns[i] + k);
      right[i] = *(const floats *)(rows[i] + k);
    }
#pragma unroll
    for (unsigned e = 0; e < EACH; e++) {
#pragma unroll
      for (unsigned i = 0; i < SUMS; i++) sums[i] += left[i / TEAM].at[e] * right[i % TEAM].at[e];
    }
  }
}

/* Two lanes that are 2 HALF apart exchange halves of their sums, and each adds one half. */
template <unsigned HALF>
__device__ inline void exchange_halves(float *sums) {
  const bool keeps_upper = (threadIdx.x & 2 * HALF) != 0;
#pragma unroll
  for (unsigned i = 0; i < HALF; i++) {
    const float kept = keeps_upper ? sums[i + HALF] : sums[i], given = keeps_upper ? sums[i] : sums[i + HALF];
    sums[i] = kept + __shfl_xor_sync(ALL_LANES, given, 2 * HALF);
  }
}

/* The sum over all lanes of sums[own lane / 2]. */
__device__ inline float add_lanes(float *sums) {
  exchange_halves<8>(sums);
  exchange_halves<4>(sums);
  exchange_halves<2>(sums);
  exchange_halves<1>(sums);
  return sums[0] + __shfl_xor_sync(ALL_LANES, sums[0], 1);
}

/* Computes the block's products into `all`, the sums of each warp. Rows and columns that the block does not have
 * repeat its last one. */
__device__ inline void multiply(const step_block &b, const step_factors &f, float (*all)[SUMS]) {
  const warp_work work = own_work(b.s);
  const size_t part = ((f.depth - 1) / b.s.parts / PACK + 1) * PACK, from = work.part * part;
  const size_t to = from + part < f.depth ? from + part : f.depth;
  const float *columns[TEAM], *rows[TEAM];
  float sums[SUMS] = {0};
#pragma unroll
  for (unsigned i = 0; i < TEAM; i++) {
    const unsigned column = min(work.column * TEAM + i, b.units * f.gates - 1),
                   row = min(work.row * TEAM + i, b.rows - 1);
    columns[i] = f.weight + (column % f.gates * b.s.hidden + b.first_unit + column / f.gates) * f.depth;
    rows[i] = f.states + (b.first_row + row) * f.depth;
  }
  if (f.depth % PACK == 0)
    add_products<PACK>(columns, rows, from, to, sums);
  else
    add_products<1>(columns, rows, from, to, sums);
  const float sum = add_lanes(sums);
  if (threadIdx.x % 2 == 0) all[threadIdx.x / WARP][threadIdx.x % WARP / 2] = sum;
}

/* The product of a row of the block with a column: the sum of its parts. */
__device__ inline float add_parts(const recurrent_shape &s, const float (*all)[SUMS], unsigned row, unsigned column) {
  const unsigned columns = column_teams(s), place = column % TEAM * TEAM + row % TEAM;
  float sum = 0;
  for (unsigned part = 0; part < s.parts; part++)
    sum += all[(part * columns + column / TEAM) * s.row_teams + row / TEAM][place];
  return sum;
}

/* Cells ------------------------------------------------------------------------------------------------------------ */

/* The cell of a thread: its row and unit in the block, its element of the states, and its sequence's place among all
 * steps of all sequences. Threads after the last cell have none. */
struct thread_cell {
  bool exists, runs;
  unsigned row, unit;
  size_t state, place, at; /* at: the element of a sequence's state */
};

__device__ inline thread_cell own_cell(const step_block &b, size_t step) {
  const unsigned row = threadIdx.x / b.units, unit = threadIdx.x % b.units;
  const size_t sequence = b.first_row + row, at = b.first_unit + unit;
  const bool exists = row < b.rows;
  return {exists,
          exists && step < b.s.steps && has_step(b.s, b.lengths, sequence, step),
          row,
          unit,
          sequence * b.s.hidden + at,
          step * b.s.batch + sequence,
          at};
}

/* The states before the first step. */
extern "C" __global__ void recurrent_begin_TYPE(recurrent_shape shape, const element *hidden, const element *cell,
                                                float *workspace) {
  const size_t states = shape.batch * shape.hidden;
  float *h = workspace + (shape.units < shape.hidden ? states : 0), *c = workspace + 2 * states;
  for (size_t i = first_element(); i < states; i += element_stride()) {
    h[i] = hidden == 0 ? 0.0f : to_float(hidden[i]);
    c[i] = cell == 0 ? 0.0f : to_float(cell[i]);
  }
}

/* What a cell has: x, the products of the inputs; p, of the states; g, the gates. */
struct cell_values {
  float x[GATES], p[GATES], g[GATES], h, c;
};

/* h and c become those after the step. In gru, g[3] is the product that the reset gate multiplies. */
__device__ inline void run_cell(const recurrent_shape &s, float bias, cell_values &v) {
  float *g = v.g;
  if (s.kind == RNN) {
    const float sum = v.x[0] + v.p[0];
    v.h = s.is_relu != 0 ? (sum > 0 || sum != sum ? sum : 0.0f) : rondo_tanh(sum);
  } else if (s.kind == GRU) {
    g[0] = rondo_sigmoid(v.x[0] + v.p[0]);
    g[1] = rondo_sigmoid(v.x[1] + v.p[1]);
    g[3] = v.p[2] + bias;
    g[2] = rondo_tanh(v.x[2] + g[0] * g[3]);
    v.h = g[2] + g[1] * (v.h - g[2]);
  } else {
#pragma unroll
    for (unsigned k = 0; k < GATES; k++) g[k] = k == 2 ? rondo_tanh(v.x[k] + v.p[k]) : rondo_sigmoid(v.x[k] + v.p[k]);
    v.c = g[1] * v.c + g[0] * g[2];
    v.h = g[3] * rondo_tanh(v.c);
  }
}

/* Reads what the cell needs but its products, so that these reads and the products overlap. */
__device__ inline cell_values read_cell(const recurrent_shape &s, const thread_cell &own, const element *gates,
                                        const float *h, const float *c) {
  cell_values v = {};
  if (!own.exists) return v;
  v.h = h[own.state];
  v.c = c[own.state];
#pragma unroll
  for (unsigned k = 0; k < GATES; k++)
    if (k < s.gates && own.runs) v.x[k] = to_float(gates[(own.place * s.gates + k) * s.hidden + own.at]);
  return v;
}

/* What a step writes for the gradient, of each but y; NULL: not wanted. */
struct cell_results {
  element *y, *previous, *activated;
  float *cells;
};

/* Computes the cell of a sequence that has the step, whose products are in v.p. */
__device__ inline void write_cell(const recurrent_shape &s, const thread_cell &own, const cell_results &to, float bias,
                                  cell_values &v) {
  const size_t result = own.place * s.hidden + own.at;
  if (to.previous != 0) to.previous[result] = to_element(v.h);
  if (to.cells != 0) to.cells[result] = v.c;
  run_cell(s, bias, v);
#pragma unroll
  for (unsigned k = 0; k < GATES; k++)
    if (to.activated != 0) to.activated[(own.place * GATES + k) * s.hidden + own.at] = to_element(v.g[k]);
  to.y[result] = to_element(v.h);
  v.h = to_float(to_element(v.h));
}

__device__ inline void write_no_cell(const recurrent_shape &s, const thread_cell &own, const cell_results &to) {
  const size_t result = own.place * s.hidden + own.at;
  to.y[result] = to_element(0.0f);
  if (to.previous != 0) to.previous[result] = to_element(0.0f);
}

/* Launch `first` is that of this step in the order of computing. hidden and cell are read by recurrent_begin. */
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    recurrent_TYPE(recurrent_shape shape, const element *gates, const float *weight, const element *hidden,
                   const element *cell, const void *lengths, const float *bias, float *workspace, element *y,
                   element *last, element *previous, element *activated, element *last_cell, float *cells) {
  __shared__ float sums[WARPS][SUMS];
  const step_block b = own_block(shape, lengths);
  const size_t states = shape.batch * shape.hidden, other = shape.units < shape.hidden ? states : 0;
  const bool is_odd = shape.first % 2 != 0, is_last = shape.first == shape.steps - 1;
  float *before = workspace + (is_odd ? 0 : other), *after = workspace + (is_odd ? other : 0);
  float *c = workspace + 2 * states;
  const thread_cell own = own_cell(b, step_at(shape, shape.first));
  const unsigned count = (unsigned)shape.gates;
  cell_values v = read_cell(shape, own, gates, before, c);
  multiply(b, {weight, before, shape.hidden, count}, sums);
  __syncthreads();
  if (!own.exists) return;
#pragma unroll
  for (unsigned k = 0; k < GATES; k++)
    if (k < count) v.p[k] = add_parts(shape, sums, own.row, own.unit * count + k);
  if (own.runs)
    write_cell(shape, own, {y, previous, activated, cells}, bias == 0 ? 0.0f : bias[own.at], v);
  else
    write_no_cell(shape, own, {y, previous, activated, cells});
  after[own.state] = v.h;
  c[own.state] = v.c;
  if (last != 0 && is_last) last[own.state] = to_element(v.h);
  if (last_cell != 0 && is_last) last_cell[own.state] = to_element(v.c);
}

/* The gradient ----------------------------------------------------------------------------------------------------- */

/* What a cell had, and the gradients: d of the gates before activation, in gru d[3] of the product that the reset gate
 * multiplies. */
struct slope_values {
  float g[GATES], d[GATES], state, dh, dc;
};

/* As differentiate_cell in recurrent.c, of one element. */
__device__ inline void run_slopes(const recurrent_shape &s, slope_values &v) {
  const float *g = v.g, state = v.state, dh = v.dh;
  float *d = v.d;
  if (s.kind == RNN) {
    d[0] = s.is_relu != 0 ? (state > 0 ? dh : 0.0f) : dh * (1.0f - state * state);
    v.dh = 0;
  } else if (s.kind == GRU) {
    d[2] = dh * (1.0f - g[1]) * (1.0f - g[2] * g[2]);
    d[0] = d[2] * g[3] * g[0] * (1.0f - g[0]);
    d[1] = dh * (state - g[2]) * g[1] * (1.0f - g[1]);
    d[3] = d[2] * g[0];
    v.dh = dh * g[1];
  } else {
    const float y = rondo_tanh(g[1] * state + g[0] * g[2]);
    const float slope = v.dc + dh * g[3] * (1.0f - y * y);
    d[0] = slope * g[2] * g[0] * (1.0f - g[0]);
    d[1] = slope * state * g[1] * (1.0f - g[1]);
    d[2] = slope * g[0] * (1.0f - g[2] * g[2]);
    d[3] = dh * y * g[3] * (1.0f - g[3]);
    v.dc = slope * g[1];
    v.dh = 0;
  }
}

/* What a step of the gradient reads. */
struct slope_inputs {
  const void *states;
  const element *dy, *activated;
};

/* Reads what the cell needs but its products, so that these reads and the products overlap. */
__device__ inline void read_slopes(const recurrent_shape &s, const thread_cell &own, const slope_inputs &in,
                                   slope_values &v) {
  const size_t result = own.place * s.hidden + own.at;
  if (!own.runs) return;
#pragma unroll
  for (unsigned k = 0; k < GATES; k++)
    if (in.activated != 0) v.g[k] = to_float(in.activated[(own.place * GATES + k) * s.hidden + own.at]);
  if (in.dy != 0) v.dh += to_float(in.dy[result]);
  v.state = s.kind == LSTM ? ((const float *)in.states)[result] : to_float(((const element *)in.states)[result]);
}

/* The gradients of the state and the cell after a step; of the last one, NULL stands for zeros. */
template <class T>
__device__ inline void read_gradients(const thread_cell &own, const T *dh, const T *dc, slope_values &v) {
  if (!own.exists) return;
  if (dh != 0) v.dh = to_float(dh[own.state]);
  if (dc != 0) v.dc = to_float(dc[own.state]);
}

/* Where a step of the gradient writes. */
struct slope_results {
  element *d_gates, *d_product;
  float *slopes; /* [b, g h] */
};

__device__ inline void write_slopes(const recurrent_shape &s, const thread_cell &own, size_t sequence,
                                    const slope_results &to, const slope_values &v) {
#pragma unroll
  for (unsigned k = 0; k < GATES; k++) {
    if (k >= s.gates) continue;
    const float of_product = s.kind == GRU && k == 2 ? v.d[3] : v.d[k];
    const size_t gate = (own.place * s.gates + k) * s.hidden + own.at;
    to.d_gates[gate] = to_element(v.d[k]);
    if (to.d_product != 0) to.d_product[gate] = to_element(of_product);
    to.slopes[(sequence * s.gates + k) * s.hidden + own.at] = of_product;
  }
}

/* Launch `first` is that of the step `first` before the last. The one after the first step completes the gradients of
 * the states before it. The weight is transposed: [h, g h]. */
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    recurrent_gradient_TYPE(recurrent_shape shape, const float *weight, const void *states, const element *dy,
                            const element *d_last, const element *d_last_cell, const element *activated,
                            const void *lengths, float *workspace, element *d_gates, element *d_hidden,
                            element *d_product, element *d_cell) {
  __shared__ float sums[WARPS][SUMS];
  const step_block b = own_block(shape, lengths);
  const size_t all = shape.batch * shape.hidden, number = shape.first, wide = shape.gates * shape.hidden;
  float *dh = workspace + 2 * shape.batch * wide, *dc = dh + all;
  const size_t other = shape.units < shape.hidden ? shape.batch * wide : 0;
  const bool is_odd = number % 2 != 0, is_last = number == shape.steps;
  const thread_cell own = own_cell(b, is_last ? shape.steps : step_at(shape, shape.steps - 1 - number));
  slope_values v = {};
  if (number == 0)
    read_gradients(own, d_last, d_last_cell, v);
  else
    read_gradients(own, dh, dc, v);
  read_slopes(shape, own, {states, dy, activated}, v);
  if (number > 0) {
    multiply(b, {weight, workspace + (is_odd ? 0 : other), wide, 1}, sums);
    __syncthreads();
    if (own.exists) v.dh += add_parts(shape, sums, own.row, own.unit);
  }
  if (!own.exists) return;
  if (is_last) {
    if (d_hidden != 0) d_hidden[own.state] = to_element(v.dh);
    if (d_cell != 0) d_cell[own.state] = to_element(v.dc);
    return;
  }
  if (own.runs) run_slopes(shape, v);
  write_slopes(shape, own, b.first_row + own.row, {d_gates, d_product, workspace + (is_odd ? other : 0)}, v);
  dh[own.state] = v.dh;
  dc[own.state] = v.dc;
}
