/* SPDX-License-Identifier: MIT
 * lstm, gru and rnn: one layer in one direction over all steps, as torch.nn.LSTM, GRU and RNN define them (Hochreiter
 * and Schmidhuber 1997, Cho et al. 2014). A step is the product of the states with the weights, then the gates.
 *
 * On a CPU, a launch computes all steps. A block has some sequences of the batch; these do not depend on each other, so
 * blocks need not wait for each other. On CUDA, a launch computes one step: a block has some sequences and some units,
 * which are elements of their states. The CPU functions can do both.
 *
 * A sequence that is shorter than the others keeps its state in the steps that it does not have, whose results are 0.
 * States are rounded to the type after each step; cells are kept in F32. The gradient walks back over the steps and
 * gives the gradients of the gates before activation; those of the weights are one product over all steps.
 * Threads: as tensor/program/operator.h says.
 */
#include "tensor/operators/recurrent/recurrent.h"

#include <assert.h>
#include <string.h>

#include "tensor/operators/common/operator_tools.h"
#include "tensor/operators/matmul/gemm_packed.h"
#include "tensor/operators/shape/strided.h"

/* Products with the weights ---------------------------------------------------------------------------------------- */

/* The factor b' of the product, as the weights [g h, h] are in memory: their transpose, or of the gradient not, where
 * they may have been transposed themselves. */
typedef struct weight_factor {
  size_t k, n;
  rondo_gemm_factor b;
} weight_factor;

static weight_factor factor_of(const rondo_recurrent_shape *s, const float *weight, bool of_gradient) {
  const size_t wide = s->gates * s->hidden;
  if (s->is_transposed != 0)
    return (weight_factor){wide, s->hidden, {.at = weight, .stride = wide, .is_transposed = true}};
  return (weight_factor){.k = of_gradient ? wide : s->hidden,
                         .n = of_gradient ? s->hidden : wide,
                         .b = {.at = weight, .stride = s->hidden, .is_transposed = !of_gradient}};
}

static void multiply(const rondo_recurrent_shape *s, const weight_factor *f, size_t rows, const float *a,
                     rondo_gemm_result c) {
  const rondo_gemm_factor left = {.at = a, .stride = f->k};
  if (s->is_packed != 0) {
    rondo_gemm_run_packed(&(rondo_gemm_packed){rows, f->n, f->k, left, f->b.at, c});
  } else {
    rondo_gemm_run(&(rondo_gemm){rows, f->n, f->k, left, f->b, c});
  }
}

/* The same of some columns, first .. first + count - 1, of weights that are not packed. */
static void multiply_columns(const weight_factor *f, size_t first, size_t count, size_t rows, const float *a,
                             rondo_gemm_result c) {
  rondo_gemm_factor b = f->b;
  assert(b.is_transposed);
  b.at += first * b.stride;
  c.at += first;
  rondo_gemm_run(&(rondo_gemm){rows, count, f->k, {.at = a, .stride = f->k}, b, c});
}

/* The arguments of the kernel that packs. A block packs one panel. */
enum { AT_PACK_SHAPE, AT_PACK_GRADIENT, AT_UNPACKED, AT_PACKED };

static void pack_weight(rondo_blocks blocks, void *const *args) {
  const rondo_recurrent_shape *s = args[AT_PACK_SHAPE];
  const bool of_gradient = RONDO_ARG(uint32_t, AT_PACK_GRADIENT) != 0;
  const weight_factor f = factor_of(s, RONDO_ARG(const float *, AT_UNPACKED), of_gradient);
  for (size_t panel = blocks.first; panel < blocks.last; panel++)
    rondo_gemm_pack(&f.b, f.k, f.n, panel, RONDO_ARG(float *, AT_PACKED));
}

static const rondo_kernel_options pack_code = {
    RONDO_KERNEL_OPTIONS_INIT, .name = "recurrent_pack", .cpu = pack_weight,
    RONDO_PARAMETERS(RONDO_SCALAR(rondo_recurrent_shape), RONDO_SCALAR(uint32_t), RONDO_READS, RONDO_WRITES)};

/* Chunks of a cell ------------------------------------------------------------------------------------------------- */

RONDO_VECTORISED(sigmoid_of_sum, (const float *restrict x, const float *restrict p, float *restrict y, size_t count),
                 (x, p, y, count)) {
  RONDO_EACH_LANE(i, lane, count, y[i] = rondo_sigmoid(x[i] + p[i]));
}

RONDO_VECTORISED(tanh_of_sum, (const float *restrict x, const float *restrict p, float *restrict y, size_t count),
                 (x, p, y, count)) {
  RONDO_EACH_LANE(i, lane, count, y[i] = rondo_tanh(x[i] + p[i]));
}

RONDO_VECTORISED(relu_of_sum, (const float *restrict x, const float *restrict p, float *restrict y, size_t count),
                 (x, p, y, count)) {
  RONDO_EACH_LANE(i, lane, count, const float sum = x[i] + p[i]; y[i] = ((sum > 0) | (sum != sum)) ? sum : 0.0f);
}

/* Compilers vectorise these loops because each pointer is a parameter of its own that is restrict. */
RONDO_VECTORISED(lstm_state,
                 (const float *restrict in, const float *restrict forget, const float *restrict candidate,
                  const float *restrict out, float *restrict c, float *restrict h, size_t count),
                 (in, forget, candidate, out, c, h, count)) {
  RONDO_EACH_LANE(i, lane, count, c[i] = forget[i] * c[i] + in[i] * candidate[i]; h[i] = out[i] * rondo_tanh(c[i]));
}

/* product: with the state, which the reset gate multiplies. */
RONDO_VECTORISED(gru_state,
                 (const float *restrict x, const float *restrict reset, const float *restrict update,
                  const float *restrict product, float *restrict candidate, float *restrict h, size_t count),
                 (x, reset, update, product, candidate, h, count)) {
  RONDO_EACH_LANE(i, lane, count, candidate[i] = rondo_tanh(x[i] + reset[i] * product[i]);
                  h[i] = candidate[i] + update[i] * (h[i] - candidate[i]));
}

/* The gradients d_ of the gates before activation, from dh; dc becomes that of the cell before the step. */
RONDO_VECTORISED(lstm_slope,
                 (const float *restrict in, const float *restrict forget, const float *restrict candidate,
                  const float *restrict out, const float *restrict c, const float *restrict dh, float *restrict dc,
                  float *restrict d_in, float *restrict d_forget, float *restrict d_candidate, float *restrict d_out,
                  size_t count),
                 (in, forget, candidate, out, c, dh, dc, d_in, d_forget, d_candidate, d_out, count)) {
  RONDO_EACH_LANE(i, lane, count, const float y = rondo_tanh(forget[i] * c[i] + in[i] * candidate[i]);
                  const float slope = dc[i] + dh[i] * out[i] * (1.0f - y * y);
                  d_in[i] = slope * candidate[i] * in[i] * (1.0f - in[i]);
                  d_forget[i] = slope * c[i] * forget[i] * (1.0f - forget[i]);
                  d_candidate[i] = slope * in[i] * (1.0f - candidate[i] * candidate[i]);
                  d_out[i] = dh[i] * y * out[i] * (1.0f - out[i]); dc[i] = slope * forget[i]);
}

/* dh becomes its part of the state before the step. */
RONDO_VECTORISED(gru_slope,
                 (const float *restrict reset, const float *restrict update, const float *restrict candidate,
                  const float *restrict product, const float *restrict h, float *restrict dh, float *restrict d_reset,
                  float *restrict d_update, float *restrict d_candidate, float *restrict d_product, size_t count),
                 (reset, update, candidate, product, h, dh, d_reset, d_update, d_candidate, d_product, count)) {
  RONDO_EACH_LANE(i, lane, count, const float slope = dh[i] * (1.0f - update[i]) * (1.0f - candidate[i] * candidate[i]);
                  d_reset[i] = slope * product[i] * reset[i] * (1.0f - reset[i]);
                  d_update[i] = dh[i] * (h[i] - candidate[i]) * update[i] * (1.0f - update[i]); d_candidate[i] = slope;
                  d_product[i] = slope * reset[i]; dh[i] = dh[i] * update[i]);
}

RONDO_VECTORISED(tanh_slope, (const float *restrict y, const float *restrict dh, float *restrict d, size_t count),
                 (y, dh, d, count)) {
  RONDO_EACH_LANE(i, lane, count, d[i] = dh[i] * (1.0f - y[i] * y[i]));
}

RONDO_VECTORISED(relu_slope, (const float *restrict y, const float *restrict dh, float *restrict d, size_t count),
                 (y, dh, d, count)) {
  RONDO_EACH_LANE(i, lane, count, d[i] = y[i] > 0 ? dh[i] : 0.0f);
}

/* Blocks ----------------------------------------------------------------------------------------------------------- */

/* The sequences of one block, first .. first + count - 1, and its units begin .. end - 1. */
typedef struct block_rows {
  const rondo_recurrent_shape *shape;
  rondo_type type;
  const void *lengths;
  size_t first, count, begin, end;
} block_rows;

static block_rows block_of(rondo_type type, const rondo_recurrent_shape *s, const void *lengths, size_t block) {
  const size_t across = rondo_divide_up(s->batch, s->rows), first = block % across * s->rows;
  const size_t begin = block / across * s->units;
  return (block_rows){.shape = s,
                      .type = type,
                      .lengths = lengths,
                      .first = first,
                      .count = rondo_smaller(s->rows, s->batch - first),
                      .begin = begin,
                      .end = rondo_smaller(begin + s->units, s->hidden)};
}

/* Whether a block has some of the units only. Other blocks then read the states that it writes, so that steps use two
 * buffers in turn. */
static bool is_partial(const rondo_recurrent_shape *s) { return s->units < s->hidden; }

/* The buffer that a step writes. It reads that of the step before, `number` + 1. */
static size_t buffer_of(const rondo_recurrent_shape *s, size_t number) { return is_partial(s) ? number % 2 : 0; }

/* Elements of `type` as floats; zeros without memory. */
static void read_floats(rondo_type type, const void *memory, size_t first, size_t count, float *to) {
  float buffer[RONDO_CHUNK];
  if (memory == NULL) memset(to, 0, count * sizeof *to);
  for (size_t at = 0, length; memory != NULL && at < count; at += length) {
    length = rondo_chunk_length(at, count);
    memcpy(to + at, rondo_load_chunk(type, memory, first + at, length, buffer), length * sizeof *to);
  }
}

/* Reads the block's units of states [b, h] into `to`, the first row of the block. */
static void read_units(const block_rows *b, const void *memory, float *to) {
  const size_t hidden = b->shape->hidden;
  for (size_t row = 0; row < b->count; row++)
    read_floats(b->type, memory, (b->first + row) * hidden + b->begin, b->end - b->begin, to + row * hidden + b->begin);
}

/* Writes floats as elements of `type`, zeros if there are none; nothing without memory. */
static void write_floats(rondo_type type, void *memory, size_t first, size_t count, const float *from) {
  const size_t bytes = rondo_type_bytes(type);
  if (memory == NULL) return;
  if (from == NULL) memset((unsigned char *)memory + first * bytes, 0, count * bytes);
  for (size_t at = 0, length; from != NULL && at < count; at += length) {
    length = rondo_chunk_length(at, count);
    rondo_store_floats(type, memory, first + at, length, from + at);
  }
}

static void write_units(const block_rows *b, void *memory, const float *from) {
  const size_t hidden = b->shape->hidden;
  for (size_t row = 0; row < b->count; row++)
    write_floats(b->type, memory, (b->first + row) * hidden + b->begin, b->end - b->begin,
                 from + row * hidden + b->begin);
}

/* Forward ---------------------------------------------------------------------------------------------------------- */

/* The arguments of the kernel after the shape, in their order. */
enum {
  AT_GATES = 1,
  AT_WEIGHT,
  AT_HIDDEN,
  AT_CELL,
  AT_LENGTHS,
  AT_BIAS,
  AT_WORKSPACE,
  AT_Y,
  AT_LAST,
  AT_PREVIOUS,
  AT_ACTIVATED,
  AT_LAST_CELL,
  AT_CELLS
};

typedef struct forward_memory {
  const void *gates;
  const float *weight, *bias;
  void *y, *previous, *activated;
  float *cells;
  float *h[2], *c, *products; /* of the block, in the workspace: [rows, h], but products [rows, g h] */
} forward_memory;

static forward_memory forward_memory_of(const block_rows *b, void *const *args) {
  const rondo_recurrent_shape *s = b->shape;
  float *workspace = RONDO_ARG(float *, AT_WORKSPACE);
  const size_t states = s->batch * s->hidden;
  return (forward_memory){.gates = RONDO_ARG(const void *, AT_GATES),
                          .weight = RONDO_ARG(const float *, AT_WEIGHT),
                          .bias = RONDO_ARG(const float *, AT_BIAS),
                          .y = RONDO_ARG(void *, AT_Y),
                          .previous = RONDO_ARG(void *, AT_PREVIOUS),
                          .activated = RONDO_ARG(void *, AT_ACTIVATED),
                          .cells = RONDO_ARG(float *, AT_CELLS),
                          .h = {workspace + b->first * s->hidden, workspace + states + b->first * s->hidden},
                          .c = workspace + 2 * states + b->first * s->hidden,
                          .products = workspace + 3 * states + b->first * s->gates * s->hidden};
}

/* The cell of some elements: x and p are the gates' inputs and products, g gets what they are after activation. */
static void run_cell(const rondo_recurrent_shape *s, const float *const *x, const float *const *p, const float *bias,
                     float *const *g, float *c, float *h, size_t count) {
  switch ((rondo_cell_kind)s->kind) {
    case RONDO_CELL_RNN:
      (s->is_relu != 0 ? relu_of_sum : tanh_of_sum)(x[0], p[0], h, count);
      break;
    case RONDO_CELL_GRU:
      for (size_t k = 0; k < 2; k++) sigmoid_of_sum(x[k], p[k], g[k], count);
      memcpy(g[3], p[2], count * sizeof *g[3]);
      if (bias != NULL) rondo_add_floats(bias, g[3], count);
      gru_state(x[2], g[0], g[1], g[3], g[2], h, count);
      break;
    case RONDO_CELL_LSTM:
      for (size_t k = 0; k < 4; k++) (k == 2 ? tanh_of_sum : sigmoid_of_sum)(x[k], p[k], g[k], count);
      lstm_state(g[0], g[1], g[2], g[3], c, h, count);
      break;
  }
}

/* One step of a sequence: `place` is its position among all steps of all sequences, `row` that in the block.
 * state: that before the step, which becomes that after it. */
static void run_row(const block_rows *b, const forward_memory *m, size_t place, size_t row, float *state) {
  const rondo_recurrent_shape *s = b->shape;
  const size_t hidden = s->hidden;
  float inputs[RONDO_RECURRENT_MAX_GATES][RONDO_CHUNK], activated[RONDO_RECURRENT_MAX_GATES][RONDO_CHUNK],
      buffer[RONDO_CHUNK];
  float *const g[] = {activated[0], activated[1], activated[2], activated[3]};
  RONDO_EACH_CHUNK(at, length, b->begin, b->end) {
    const float *x[RONDO_RECURRENT_MAX_GATES], *p[RONDO_RECURRENT_MAX_GATES];
    float *h = state + at, *c = m->c + row * hidden + at;
    for (size_t k = 0; k < s->gates; k++) {
      x[k] = rondo_load_chunk(b->type, m->gates, (place * s->gates + k) * hidden + at, length, inputs[k]);
      p[k] = m->products + (row * s->gates + k) * hidden + at;
    }
    write_floats(b->type, m->previous, place * hidden + at, length, h);
    if (m->cells != NULL) memcpy(m->cells + place * hidden + at, c, length * sizeof *c);
    run_cell(s, x, p, m->bias == NULL ? NULL : m->bias + at, g, c, h, length);
    for (size_t k = 0; m->activated != NULL && k < RONDO_RECURRENT_MAX_GATES; k++)
      rondo_store_floats(b->type, m->activated, (place * RONDO_RECURRENT_MAX_GATES + k) * hidden + at, length, g[k]);
    rondo_store_floats(b->type, m->y, place * hidden + at, length, h);
    if (b->type != RONDO_F32) /* the next step reads what was stored */
      memcpy(h, rondo_load_chunk(b->type, m->y, place * hidden + at, length, buffer), length * sizeof *h);
  }
}

static void multiply_states(const block_rows *b, const forward_memory *m, const float *states) {
  const rondo_recurrent_shape *s = b->shape;
  const weight_factor factor = factor_of(s, m->weight, false);
  const rondo_gemm_result products = {.at = m->products, .stride = factor.n};
  if (!is_partial(s)) multiply(s, &factor, b->count, states, products);
  for (size_t k = 0; is_partial(s) && k < s->gates; k++)
    multiply_columns(&factor, k * s->hidden + b->begin, b->end - b->begin, b->count, states, products);
}

static void run_step(const block_rows *b, const forward_memory *m, size_t number) {
  const rondo_recurrent_shape *s = b->shape;
  const size_t hidden = s->hidden, step = rondo_recurrent_step(s, number), units = b->end - b->begin;
  const float *before = m->h[buffer_of(s, number + 1)];
  float *after = m->h[buffer_of(s, number)];
  multiply_states(b, m, before);
  for (size_t row = 0; row < b->count; row++) {
    const size_t place = step * s->batch + b->first + row, own = row * hidden + b->begin;
    if (after != before) memcpy(after + own, before + own, units * sizeof *after);
    if (rondo_recurrent_has_step(s, b->lengths, b->first + row, step)) {
      run_row(b, m, place, row, after + row * hidden);
      continue;
    }
    write_floats(b->type, m->y, place * hidden + b->begin, units, NULL);
    write_floats(b->type, m->previous, place * hidden + b->begin, units, NULL);
  }
}

static void recurrent_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  const rondo_recurrent_shape *s = args[0];
  const size_t end = s->first + s->count;
  for (size_t block = blocks.first; block < blocks.last; block++) {
    const block_rows b = block_of(type, s, RONDO_ARG(const void *, AT_LENGTHS), block);
    const forward_memory m = forward_memory_of(&b, args);
    if (s->first == 0 && !is_partial(s)) {
      read_units(&b, RONDO_ARG(const void *, AT_HIDDEN), m.h[0]);
      read_units(&b, RONDO_ARG(const void *, AT_CELL), m.c);
    }
    for (size_t number = s->first; number < end; number++) run_step(&b, &m, number);
    if (end < s->steps) continue;
    write_units(&b, RONDO_ARG(void *, AT_LAST), m.h[buffer_of(s, end + 1)]);
    write_units(&b, RONDO_ARG(void *, AT_LAST_CELL), m.c);
  }
}

/* Launches of one step have the states in the workspace, which recurrent_begin or the launch before wrote. */
RONDO_TYPED_KERNEL(recurrent, recurrent, RONDO_SCALAR(rondo_recurrent_shape), RONDO_READS, RONDO_READS, RONDO_READS,
                   RONDO_READS, RONDO_READS, RONDO_READS, RONDO_UPDATES, RONDO_WRITES, RONDO_WRITES, RONDO_WRITES,
                   RONDO_WRITES, RONDO_WRITES, RONDO_WRITES);

/* The states before the first of several launches, whose blocks read each other's units. */
static void recurrent_begin_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  const rondo_recurrent_shape *s = args[0];
  const void *hidden = RONDO_ARG(const void *, 1), *cell = RONDO_ARG(const void *, 2);
  const size_t states = s->batch * s->hidden;
  float *workspace = RONDO_ARG(float *, 3), *h = workspace + buffer_of(s, 1) * states, *c = workspace + 2 * states;
  RONDO_EACH_ITEM(i, blocks, states) {
    h[i] = hidden == NULL ? 0 : rondo_load_one(type, hidden, i);
    c[i] = cell == NULL ? 0 : rondo_load_one(type, cell, i);
  }
}

RONDO_TYPED_KERNEL(recurrent_begin, recurrent, RONDO_SCALAR(rondo_recurrent_shape), RONDO_READS, RONDO_READS,
                   RONDO_WRITES);

/* Gradient --------------------------------------------------------------------------------------------------------- */

/* Inputs of the gradient rows. STATES: what a step had before it: cells of lstm, states of gru; of rnn the results. */
enum { OF_WEIGHT, STATES, DY, D_LAST, ACTIVATED, OF_LENGTHS, D_LAST_CELL };

/* Results. D_PRODUCT: of the products with the weights, where gru's differ from those of the gates. */
enum { D_GATES, D_HIDDEN, D_PRODUCT_OR_CELL };

/* The arguments of the kernel after the shape. */
enum {
  AT_OF_WEIGHT = 1,
  AT_STATES,
  AT_DY,
  AT_D_LAST,
  AT_D_LAST_CELL,
  AT_SAVED,
  AT_OF_LENGTHS,
  AT_ROOM,
  AT_D_GATES,
  AT_D_HIDDEN,
  AT_D_PRODUCT,
  AT_D_CELL
};

typedef struct backward_memory {
  const float *weight;
  const void *states, *dy, *activated;
  void *d_gates, *d_product;
  float *slopes[2], *dh, *dc; /* of the block, in the workspace: [rows, g h], [rows, h], [rows, h] */
} backward_memory;

static backward_memory backward_memory_of(const block_rows *b, void *const *args) {
  const rondo_recurrent_shape *s = b->shape;
  float *workspace = RONDO_ARG(float *, AT_ROOM);
  const size_t states = s->batch * s->hidden, wide = s->gates * s->hidden;
  float *slopes = workspace + b->first * wide, *dh = workspace + 2 * s->batch * wide + b->first * s->hidden;
  return (backward_memory){.weight = RONDO_ARG(const float *, AT_OF_WEIGHT),
                           .states = RONDO_ARG(const void *, AT_STATES),
                           .dy = RONDO_ARG(const void *, AT_DY),
                           .activated = RONDO_ARG(const void *, AT_SAVED),
                           .d_gates = RONDO_ARG(void *, AT_D_GATES),
                           .d_product = RONDO_ARG(void *, AT_D_PRODUCT),
                           .dh = dh,
                           .dc = dh + states,
                           .slopes = {slopes, slopes + s->batch * wide}};
}

/* d gets the gradients of the gates, and of the product that gru multiplies; dh and dc become those that the step
 * before gets without the weights. */
static void differentiate_cell(const rondo_recurrent_shape *s, const float *const *g, const float *state, float *dh,
                               float *dc, float *const *d, size_t count) {
  switch ((rondo_cell_kind)s->kind) {
    case RONDO_CELL_RNN:
      (s->is_relu != 0 ? relu_slope : tanh_slope)(state, dh, d[0], count);
      break;
    case RONDO_CELL_GRU:
      gru_slope(g[0], g[1], g[2], g[3], state, dh, d[0], d[1], d[2], d[3], count);
      return;
    case RONDO_CELL_LSTM:
      lstm_slope(g[0], g[1], g[2], g[3], state, dh, dc, d[0], d[1], d[2], d[3], count);
      break;
  }
  memset(dh, 0, count * sizeof *dh);
}

/* slopes: of the products, [g h]. */
static void back_row(const block_rows *b, const backward_memory *m, size_t place, size_t row, float *slopes) {
  const rondo_recurrent_shape *s = b->shape;
  const size_t hidden = s->hidden;
  const rondo_type state_type = s->kind == RONDO_CELL_LSTM ? RONDO_F32 : b->type;
  float saved[RONDO_RECURRENT_MAX_GATES][RONDO_CHUNK], own[RONDO_RECURRENT_MAX_GATES][RONDO_CHUNK], buffer[RONDO_CHUNK];
  float *const d[] = {own[0], own[1], own[2], own[3]};
  RONDO_EACH_CHUNK(at, length, b->begin, b->end) {
    const float *g[RONDO_RECURRENT_MAX_GATES] = {NULL};
    float *dh = m->dh + row * hidden + at, *dc = m->dc + row * hidden + at;
    for (size_t k = 0; m->activated != NULL && k < RONDO_RECURRENT_MAX_GATES; k++)
      g[k] = rondo_load_chunk(b->type, m->activated, (place * RONDO_RECURRENT_MAX_GATES + k) * hidden + at, length,
                              saved[k]);
    if (m->dy != NULL)
      rondo_add_floats(rondo_load_chunk(b->type, m->dy, place * hidden + at, length, buffer), dh, length);
    differentiate_cell(s, g, rondo_load_chunk(state_type, m->states, place * hidden + at, length, buffer), dh, dc, d,
                       length);
    for (size_t k = 0; k < s->gates; k++) {
      const size_t to = (place * s->gates + k) * hidden + at;
      const float *of_product = s->kind == RONDO_CELL_GRU && k == 2 ? d[3] : d[k];
      rondo_store_floats(b->type, m->d_gates, to, length, d[k]);
      if (m->d_product != NULL) rondo_store_floats(b->type, m->d_product, to, length, of_product);
      memcpy(slopes + k * hidden + at, of_product, length * sizeof *of_product);
    }
  }
}

/* The gradients of a sequence that does not have the step. */
static void back_no_row(const block_rows *b, const backward_memory *m, size_t place, float *slopes) {
  const rondo_recurrent_shape *s = b->shape;
  const size_t units = b->end - b->begin;
  for (size_t k = 0; k < s->gates; k++) {
    const size_t gate = k * s->hidden + b->begin, to = place * s->gates * s->hidden + gate;
    write_floats(b->type, m->d_gates, to, units, NULL);
    write_floats(b->type, m->d_product, to, units, NULL);
    memset(slopes + gate, 0, units * sizeof *slopes);
  }
}

/* dh += what the products of the step after this one pass to its state. */
static void multiply_back(const block_rows *b, const backward_memory *m, const float *slopes) {
  const rondo_recurrent_shape *s = b->shape;
  const weight_factor factor = factor_of(s, m->weight, true);
  const rondo_gemm_result dh = {.at = m->dh, .stride = s->hidden, .accumulates = true};
  if (is_partial(s)) {
    multiply_columns(&factor, b->begin, b->end - b->begin, b->count, slopes, dh);
  } else {
    multiply(s, &factor, b->count, slopes, dh);
  }
}

/* Steps in the order of the gradient: number 0 is the last. Number `steps` completes the gradient of the states before
 * the first. */
static void back_step(const block_rows *b, const backward_memory *m, size_t number) {
  const rondo_recurrent_shape *s = b->shape;
  float *slopes = m->slopes[buffer_of(s, number)];
  if (number > 0) multiply_back(b, m, m->slopes[buffer_of(s, number + 1)]);
  for (size_t row = 0; number < s->steps && row < b->count; row++) {
    const size_t step = rondo_recurrent_step(s, s->steps - 1 - number), place = step * s->batch + b->first + row;
    float *of_row = slopes + row * s->gates * s->hidden;
    if (rondo_recurrent_has_step(s, b->lengths, b->first + row, step))
      back_row(b, m, place, row, of_row);
    else
      back_no_row(b, m, place, of_row);
  }
}

static void recurrent_gradient_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  const rondo_recurrent_shape *s = args[0];
  const size_t end = s->first + s->count;
  for (size_t block = blocks.first; block < blocks.last; block++) {
    const block_rows b = block_of(type, s, RONDO_ARG(const void *, AT_OF_LENGTHS), block);
    const backward_memory m = backward_memory_of(&b, args);
    if (s->first == 0) {
      read_units(&b, RONDO_ARG(const void *, AT_D_LAST), m.dh);
      read_units(&b, RONDO_ARG(const void *, AT_D_LAST_CELL), m.dc);
    }
    for (size_t number = s->first; number < end; number++) back_step(&b, &m, number);
    if (end <= s->steps) continue;
    write_units(&b, RONDO_ARG(void *, AT_D_HIDDEN), m.dh);
    write_units(&b, RONDO_ARG(void *, AT_D_CELL), m.dc);
  }
}

RONDO_TYPED_KERNEL(recurrent_gradient, recurrent, RONDO_SCALAR(rondo_recurrent_shape), RONDO_READS, RONDO_READS,
                   RONDO_READS, RONDO_READS, RONDO_READS, RONDO_READS, RONDO_READS, RONDO_UPDATES, RONDO_WRITES,
                   RONDO_WRITES, RONDO_WRITES, RONDO_WRITES);

/* Rows ------------------------------------------------------------------------------------------------------------- */

static size_t gates_of(const rondo_operator *row) { return ((const rondo_recurrent_family *)row->family)->gates; }

/* Some blocks for some workers, but not so few sequences that a block reads the weights for little work. By the shape
 * alone. */
static size_t rows_of(size_t batch) {
  const size_t quarter = rondo_divide_up(batch, 4);
  return rondo_smaller(batch, rondo_smaller(rondo_larger(quarter, 4), 32));
}

rondo_recurrent_shape rondo_recurrent_shape_of(const rondo_emitter *emitter, const rondo_operation *operation,
                                               uint32_t gates_value, uint32_t lengths_value) {
  const rondo_recurrent_family *family = operation->row->family;
  const rondo_shape *gates = rondo_emit_shape(emitter, gates_value);
  const rondo_shape *lengths = lengths_value == RONDO_NO_VALUE ? NULL : rondo_emit_shape(emitter, lengths_value);
  const size_t batch = gates->dims[1], hidden = gates->dims[2] / family->gates;
  return (rondo_recurrent_shape){.steps = gates->dims[0],
                                 .batch = batch,
                                 .hidden = hidden,
                                 .gates = family->gates,
                                 .rows = rondo_emit_is_cuda(emitter) ? RONDO_RECURRENT_CUDA_ROWS : rows_of(batch),
                                 .units = hidden,
                                 .count = gates->dims[0],
                                 .kind = family->kind,
                                 .is_reversed = operation->attributes.flags[RONDO_RECURRENT_REVERSED],
                                 .is_relu = operation->attributes.flags[RONDO_RECURRENT_IS_RELU],
                                 .wide_lengths = lengths != NULL && lengths->type == RONDO_I64};
}

/* What a warp multiplies in recurrent.cu: TEAM sequences and columns. */
#define CUDA_TEAM 4
#define CUDA_WARPS (RONDO_CUDA_THREADS / 32)

/* Blocks that keep most of a large GPU busy, and the least depth of a product of which a warp computes a part. */
#define ENOUGH_BLOCKS 128
#define LEAST_DEPTH 128

/* Makes a launch one step, of so many sequences and units in a block that each weight is read for many sequences and
 * each state for many units. If that leaves few blocks, several warps share each product. `columns` of the weight, of
 * this depth, are those of a unit. By the shape alone, because sums depend on it. */
static void tile_steps(rondo_recurrent_shape *shape, size_t columns, size_t depth) {
  uint32_t rows = shape->batch > 2 * CUDA_TEAM ? 4 : shape->batch > CUDA_TEAM ? 2 : 1, parts = 1;
  for (;;) {
    const size_t width = CUDA_WARPS / (rows * parts) * CUDA_TEAM;
    shape->rows = rows * (size_t)CUDA_TEAM;
    shape->units = rondo_smaller(rondo_larger(width / columns, 1), shape->hidden);
    shape->row_teams = rows;
    shape->parts = parts;
    const size_t blocks = rondo_divide_up(shape->batch, shape->rows) * rondo_divide_up(shape->hidden, shape->units);
    if (blocks >= ENOUGH_BLOCKS || depth / (2 * parts) < LEAST_DEPTH || parts == CUDA_WARPS) break;
    if (rows * parts == CUDA_WARPS) rows /= 2;
    parts *= 2;
  }
  shape->count = 1;
}

/* The weight in another form, in the workspace: packed on a CPU, which takes as long as a few steps of one sequence; on
 * CUDA transposed for the gradient, so that a product's factors are contiguous. */
typedef enum weight_form { AS_IT_IS, PACKED, TRANSPOSED } weight_form;

#define LEAST_STEPS_TO_PACK 4

static weight_form form_of(const rondo_shape *gates, bool of_gradient, bool is_cuda) {
  if (is_cuda) return of_gradient ? TRANSPOSED : AS_IT_IS;
  return gates->dims[0] >= LEAST_STEPS_TO_PACK ? PACKED : AS_IT_IS;
}

/* The floats of the workspace: three states and the gates of a step, or twice the gates and two states; then the
 * weights in another form. */
typedef struct workspace_layout {
  size_t weight, all;
} workspace_layout;

static workspace_layout layout_of(const rondo_shape *gates, size_t gate_count, bool of_gradient, weight_form form) {
  const size_t wide = gates->dims[2], hidden = wide / gate_count, line = RONDO_PANEL;
  const size_t k = of_gradient ? wide : hidden, n = of_gradient ? hidden : wide;
  const size_t states = of_gradient ? 2 * (hidden + wide) : 3 * hidden + wide;
  const size_t rooms = rondo_divide_up(gates->dims[1] * states, line) * line;
  const size_t weight = form == PACKED ? rondo_gemm_panels(n) * line * k : form == TRANSPOSED ? n * k : 0;
  return (workspace_layout){rooms, rooms + weight};
}

static rondo_status prepare_workspace(const rondo_resources *resources, const rondo_program *program, uint32_t number,
                                      bool of_gradient, size_t *out_bytes) {
  const rondo_operation *operation = &program->operations.items[number];
  const uint32_t value = of_gradient ? operation->results[D_GATES] : operation->inputs[RONDO_RECURRENT_GATES];
  const rondo_shape *gates = rondo_program_shape(program, value);
  const weight_form form = form_of(gates, of_gradient, resources->is_cuda);
  *out_bytes = layout_of(gates, gates_of(operation->row), of_gradient, form).all * sizeof(float);
  return RONDO_OK;
}

static rondo_status prepare(rondo_resources *resources, const rondo_program *program, uint32_t number,
                            size_t *out_workspace_bytes) {
  return prepare_workspace(resources, program, number, false, out_workspace_bytes);
}

static rondo_status prepare_gradient(rondo_resources *resources, const rondo_program *program, uint32_t number,
                                     size_t *out_workspace_bytes) {
  return prepare_workspace(resources, program, number, true, out_workspace_bytes);
}

static rondo_status emit_transposed(rondo_emitter *emitter, const rondo_recurrent_shape *shape, const float *weight,
                                    float *transposed) {
  const rondo_shape result = rondo_shape_matrix(RONDO_F32, shape->hidden, shape->gates * shape->hidden);
  const rondo_strided copy = rondo_strided_make(&result, 0, (size_t[]){1, shape->hidden});
  return rondo_emit_strided_at(emitter, &copy, weight, transposed);
}

static rondo_status emit_packed(rondo_emitter *emitter, const rondo_recurrent_shape *shape, bool of_gradient,
                                const float *weight, float *packed) {
  const uint32_t gradient = of_gradient;
  const size_t panels = rondo_gemm_panels(factor_of(shape, weight, of_gradient).n);
  return rondo_emit_kernel(emitter, &pack_code, rondo_tile_grid(panels),
                           RONDO_ARGS(shape, &gradient, &weight, &packed));
}

/* The weights as the kernel reads them; a kernel before it may bring them into that form. */
static rondo_status emit_weight(rondo_emitter *emitter, const rondo_shape *gates, uint32_t value, bool of_gradient,
                                rondo_recurrent_shape *shape, const float **out_weight) {
  const weight_form form = form_of(gates, of_gradient, rondo_emit_is_cuda(emitter));
  const workspace_layout layout = layout_of(gates, shape->gates, of_gradient, form);
  const float *weight = rondo_emit_address(emitter, value);
  float *other = (float *)rondo_emit_workspace(emitter) + layout.weight;
  rondo_gemm_prepare();
  *out_weight = form == AS_IT_IS ? weight : other;
  if (form == PACKED) RONDO_TRY(emit_packed(emitter, shape, of_gradient, weight, other));
  if (form == TRANSPOSED) RONDO_TRY(emit_transposed(emitter, shape, weight, other));
  shape->is_packed = form == PACKED;
  shape->is_transposed = form == TRANSPOSED;
  return RONDO_OK;
}

static rondo_grid step_grid(const rondo_recurrent_shape *shape) {
  return rondo_tile_grid(rondo_divide_up(shape->batch, shape->rows) * rondo_divide_up(shape->hidden, shape->units));
}

static rondo_status require_shape(const rondo_program *program, const rondo_operation *operation, uint32_t input,
                                  const rondo_shape *wanted) {
  char text[RONDO_SHAPE_TEXT];
  const rondo_shape *shape = rondo_operation_input(program, operation, input);
  if (shape == NULL || rondo_shape_same(shape, wanted)) return RONDO_OK;
  return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE, "%s must be %s", operation->row->inputs[input],
                              rondo_shape_text(text, wanted));
}

rondo_status rondo_recurrent_infer(const rondo_program *program, const rondo_operation *operation, rondo_shape *out_all,
                                   rondo_shape *out_state) {
  const rondo_recurrent_family *family = operation->row->family;
  RONDO_TRY(rondo_require_float(program, operation, RONDO_RECURRENT_GATES, 3));
  const rondo_shape gates = *rondo_operation_input(program, operation, RONDO_RECURRENT_GATES);
  const size_t steps = gates.dims[0], batch = gates.dims[1], hidden = gates.dims[2] / family->gates;
  const rondo_shape weight = rondo_shape_matrix(RONDO_F32, gates.dims[2], hidden);
  const rondo_shape state = rondo_shape_matrix(gates.type, batch, hidden), bias = rondo_shape_vector(RONDO_F32, hidden);
  RONDO_TRY(require_shape(program, operation, RONDO_RECURRENT_WEIGHT, &weight));
  RONDO_TRY(require_shape(program, operation, RONDO_RECURRENT_HIDDEN, &state));
  RONDO_TRY(require_shape(program, operation, RONDO_RECURRENT_CELL, &state));
  RONDO_TRY(require_shape(program, operation, RONDO_RECURRENT_BIAS, &bias));
  if (rondo_operation_input(program, operation, RONDO_RECURRENT_LENGTHS) != NULL)
    RONDO_TRY(rondo_require_indices(program, operation, RONDO_RECURRENT_LENGTHS, 1));
  *out_all = (rondo_shape){.type = gates.type, .rank = 3, .dims = {steps, batch, hidden}};
  *out_state = state;
  return RONDO_OK;
}

static rondo_status infer_layer(const rondo_program *program, const rondo_operation *operation, rondo_shape *results) {
  rondo_shape all, state;
  RONDO_TRY(rondo_recurrent_infer(program, operation, &all, &state));
  results[RONDO_RECURRENT_Y] = results[RONDO_RECURRENT_PREVIOUS] = all;
  results[RONDO_RECURRENT_LAST] = results[RONDO_RECURRENT_LAST_CELL] = state;
  results[RONDO_RECURRENT_ACTIVATED] = results[RONDO_RECURRENT_CELLS] = all;
  results[RONDO_RECURRENT_ACTIVATED].dims[2] = RONDO_RECURRENT_MAX_GATES * state.dims[1];
  results[RONDO_RECURRENT_CELLS].type = RONDO_F32;
  return RONDO_OK;
}

/* The value of a result, if the row has it. */
static uint32_t result_of(const rondo_operation *operation, uint32_t result) {
  return result < operation->row->result_count ? operation->results[result] : RONDO_NO_VALUE;
}

static uint32_t gradient_of(const rondo_operation *operation, const uint32_t *gradients, uint32_t result) {
  return result < operation->row->result_count ? gradients[result] : RONDO_NO_VALUE;
}

/* Adds the launches of all steps: one of shape->count, or several. `operands` begins with the shape. */
static rondo_status emit_steps(rondo_emitter *emitter, const rondo_operation *operation,
                               const rondo_kernel_options *code, rondo_recurrent_shape *shape, size_t steps,
                               const rondo_operand *operands, size_t count) {
  assert(operands[0].object == shape && steps % shape->count == 0);
  for (shape->first = 0; shape->first < steps; shape->first += shape->count)
    RONDO_TRY(rondo_emit_operands(emitter, operation, code, step_grid(shape), operands, count));
  return RONDO_OK;
}

static rondo_status emit_begin(rondo_emitter *emitter, const rondo_operation *operation, rondo_type type,
                               const rondo_recurrent_shape *shape) {
  const rondo_grid grid = rondo_emit_grid(emitter, shape->batch * shape->hidden, RONDO_ELEMENTWISE_GRAIN);
  return rondo_emit_operands(emitter, operation, &recurrent_begin_code[type], grid,
                             RONDO_OPERANDS(RONDO_OBJECT(*shape), RONDO_INPUT(RONDO_RECURRENT_HIDDEN),
                                            RONDO_INPUT(RONDO_RECURRENT_CELL), RONDO_WORKSPACE));
}

static rondo_status emit_layer(rondo_emitter *emitter, const rondo_operation *operation) {
  rondo_recurrent_shape shape = rondo_recurrent_shape_of(emitter, operation, operation->inputs[RONDO_RECURRENT_GATES],
                                                         operation->inputs[RONDO_RECURRENT_LENGTHS]);
  void *activated = rondo_emit_address(emitter, result_of(operation, RONDO_RECURRENT_ACTIVATED));
  void *last_cell = rondo_emit_address(emitter, result_of(operation, RONDO_RECURRENT_LAST_CELL));
  void *cells = rondo_emit_address(emitter, result_of(operation, RONDO_RECURRENT_CELLS));
  const rondo_shape *gates = rondo_emit_shape(emitter, operation->inputs[RONDO_RECURRENT_GATES]);
  const float *weight;
  if (rondo_emit_is_cuda(emitter)) tile_steps(&shape, shape.gates, shape.hidden);
  RONDO_TRY(emit_weight(emitter, gates, operation->inputs[RONDO_RECURRENT_WEIGHT], false, &shape, &weight));
  if (rondo_emit_is_cuda(emitter)) RONDO_TRY(emit_begin(emitter, operation, gates->type, &shape));
  return emit_steps(emitter, operation, &recurrent_code[gates->type], &shape, shape.steps,
                    RONDO_OPERANDS(RONDO_OBJECT(shape), RONDO_INPUT(RONDO_RECURRENT_GATES), RONDO_OBJECT(weight),
                                   RONDO_INPUT(RONDO_RECURRENT_HIDDEN), RONDO_INPUT(RONDO_RECURRENT_CELL),
                                   RONDO_INPUT(RONDO_RECURRENT_LENGTHS), RONDO_INPUT(RONDO_RECURRENT_BIAS),
                                   RONDO_WORKSPACE, RONDO_RESULT(RONDO_RECURRENT_Y), RONDO_RESULT(RONDO_RECURRENT_LAST),
                                   RONDO_RESULT(RONDO_RECURRENT_PREVIOUS), RONDO_OBJECT(activated),
                                   RONDO_OBJECT(last_cell), RONDO_OBJECT(cells)));
}

/* dweight = d_products' previous, over all steps of all sequences; F32 as the weight is. */
static rondo_status add_weight_gradient(rondo_program *program, uint32_t d_products, uint32_t previous,
                                        uint32_t *out_value) {
  uint32_t flat[2];
  const uint32_t values[] = {d_products, previous};
  rondo_value result;
  for (int i = 0; i < 2; i++) {
    const rondo_shape *all = rondo_program_shape(program, values[i]);
    const rondo_shape rows = rondo_shape_matrix(all->type, all->dims[0] * all->dims[1], all->dims[2]);
    RONDO_TRY(rondo_program_add_shaped(program, &rondo_operator_reshape, values[i], rows, &flat[i]));
  }
  const rondo_matmul_options options = {RONDO_MATMUL_OPTIONS_INIT, .transpose_a = true};
  RONDO_TRY(rondo_op_matmul_with(program, rondo_program_tag(program, flat[0]), rondo_program_tag(program, flat[1]),
                                 &options, &result));
  RONDO_TRY(rondo_program_resolve(program, result, "lstm", "gradient", out_value));
  return rondo_program_add_cast(program, RONDO_F32, out_value);
}

/* The sum over all steps of all sequences of the last part of the products' gradients; F32 as the bias is. */
static rondo_status add_bias_gradient(rondo_program *program, uint32_t d_products, uint32_t *out_value) {
  const rondo_shape all = *rondo_program_shape(program, d_products);
  const size_t hidden = all.dims[2] / 3, start[] = {0, 0, 2 * hidden}, length[] = {all.dims[0], all.dims[1], hidden};
  rondo_value part;
  RONDO_TRY(rondo_op_slice(program, rondo_program_tag(program, d_products), start, length, NULL, &part));
  if (all.type != RONDO_F32) RONDO_TRY(rondo_op_cast(program, part, RONDO_F32, &part));
  RONDO_TRY(rondo_op_sum(program, part, (size_t[]){0, 1}, 2, false, &part));
  return rondo_program_resolve(program, part, "gru", "gradient", out_value);
}

static rondo_status differentiate_layer(rondo_program *program, const rondo_operation *operation,
                                        const uint32_t *result_gradients, uint32_t *input_gradients) {
  const rondo_recurrent_family *family = operation->row->family;
  const uint32_t states = family->kind == RONDO_CELL_LSTM  ? RONDO_RECURRENT_CELLS
                          : family->kind == RONDO_CELL_GRU ? RONDO_RECURRENT_PREVIOUS
                                                           : RONDO_RECURRENT_Y;
  const uint32_t inputs[] = {[OF_WEIGHT] = operation->inputs[RONDO_RECURRENT_WEIGHT],
                             [STATES] = operation->results[states],
                             [DY] = result_gradients[RONDO_RECURRENT_Y],
                             [D_LAST] = result_gradients[RONDO_RECURRENT_LAST],
                             [ACTIVATED] = result_of(operation, RONDO_RECURRENT_ACTIVATED),
                             [OF_LENGTHS] = operation->inputs[RONDO_RECURRENT_LENGTHS],
                             [D_LAST_CELL] = gradient_of(operation, result_gradients, RONDO_RECURRENT_LAST_CELL)};
  uint32_t results[RONDO_MAX_RESULTS];
  RONDO_TRY(rondo_program_add(program, family->gradient, inputs, 7, &operation->attributes, results));
  const uint32_t d_products = family->kind == RONDO_CELL_GRU ? results[D_PRODUCT_OR_CELL] : results[D_GATES];
  input_gradients[RONDO_RECURRENT_GATES] = results[D_GATES];
  if (operation->inputs[RONDO_RECURRENT_HIDDEN] != RONDO_NO_VALUE)
    input_gradients[RONDO_RECURRENT_HIDDEN] = results[D_HIDDEN];
  if (operation->inputs[RONDO_RECURRENT_CELL] != RONDO_NO_VALUE)
    input_gradients[RONDO_RECURRENT_CELL] = results[D_PRODUCT_OR_CELL];
  if (family->kind == RONDO_CELL_GRU && operation->inputs[RONDO_RECURRENT_BIAS] != RONDO_NO_VALUE)
    RONDO_TRY(add_bias_gradient(program, d_products, &input_gradients[RONDO_RECURRENT_BIAS]));
  return add_weight_gradient(program, d_products, operation->results[RONDO_RECURRENT_PREVIOUS],
                             &input_gradients[RONDO_RECURRENT_WEIGHT]);
}

static rondo_status infer_layer_gradient(const rondo_program *program, const rondo_operation *operation,
                                         rondo_shape *results) {
  const rondo_recurrent_family *family = operation->row->family;
  const rondo_shape *states = rondo_operation_input(program, operation, STATES);
  const rondo_shape *like = rondo_operation_input(program, operation, DY);
  if (like == NULL) like = rondo_operation_input(program, operation, D_LAST);
  if (like == NULL) like = rondo_operation_input(program, operation, D_LAST_CELL);
  const size_t batch = states->dims[1], hidden = states->dims[2];
  results[D_GATES] = *states;
  results[D_GATES].type = like->type;
  results[D_GATES].dims[2] = family->gates * hidden;
  results[D_HIDDEN] = rondo_shape_matrix(like->type, batch, hidden);
  results[D_PRODUCT_OR_CELL] = family->kind == RONDO_CELL_GRU ? results[D_GATES] : results[D_HIDDEN];
  return RONDO_OK;
}

static rondo_status emit_layer_gradient(rondo_emitter *emitter, const rondo_operation *operation) {
  rondo_recurrent_shape shape =
      rondo_recurrent_shape_of(emitter, operation, operation->results[D_GATES], operation->inputs[OF_LENGTHS]);
  void *other = rondo_emit_address(emitter, result_of(operation, D_PRODUCT_OR_CELL)), *none = NULL;
  void **product = shape.kind == RONDO_CELL_GRU ? &other : &none,
       **cell = shape.kind == RONDO_CELL_LSTM ? &other : &none;
  const bool of_states = rondo_emit_address(emitter, operation->results[D_HIDDEN]) != NULL || *cell != NULL;
  const size_t steps = shape.steps + of_states;
  const rondo_shape *gates = rondo_emit_shape(emitter, operation->results[D_GATES]);
  const float *weight;
  shape.count = steps;
  if (rondo_emit_is_cuda(emitter)) tile_steps(&shape, 1, shape.gates * shape.hidden);
  RONDO_TRY(emit_weight(emitter, gates, operation->inputs[OF_WEIGHT], true, &shape, &weight));
  return emit_steps(emitter, operation, &recurrent_gradient_code[gates->type], &shape, steps,
                    RONDO_OPERANDS(RONDO_OBJECT(shape), RONDO_OBJECT(weight), RONDO_INPUT(STATES), RONDO_INPUT(DY),
                                   RONDO_INPUT(D_LAST), RONDO_INPUT(D_LAST_CELL), RONDO_INPUT(ACTIVATED),
                                   RONDO_INPUT(OF_LENGTHS), RONDO_WORKSPACE, RONDO_RESULT(D_GATES),
                                   RONDO_RESULT(D_HIDDEN), RONDO_OBJECT(*product), RONDO_OBJECT(*cell)));
}

#define FAMILY(row, own_kind, own_gates)                                                \
  static const rondo_recurrent_family row##_family = {RONDO_CELL_##own_kind, own_gates, \
                                                      &rondo_operator_##row##_gradient}
FAMILY(lstm, LSTM, 4);
FAMILY(gru, GRU, 3);
FAMILY(rnn, RNN, 1);

#define SPARE(result) (1u << RONDO_RECURRENT_##result)
#define LAYER_ROW(row)                                                                                 \
  .types = RONDO_FLOATS, .family = &row##_family, .required = 2,                                       \
  .spare_results = SPARE(LAST) | SPARE(PREVIOUS) | SPARE(ACTIVATED) | SPARE(LAST_CELL) | SPARE(CELLS), \
  .infer = infer_layer, .differentiate = differentiate_layer, .prepare = prepare, .emit = emit_layer
#define GRADIENT_ROW(row)                                                                                  \
  .family = &row##_family,                                                                                 \
  .inputs = {"weight", "states", "gradient", "last gradient", "gates", "lengths", "last cell's gradient"}, \
  .required = 2, .infer = infer_layer_gradient, .prepare = prepare_gradient, .emit = emit_layer_gradient

RONDO_OPERATOR(lstm, LAYER_ROW(lstm), .inputs = {"gates", "weight", "hidden", "lengths", "cell"}, .result_count = 6);
RONDO_OPERATOR(gru, LAYER_ROW(gru), .inputs = {"gates", "weight", "hidden", "lengths", "cell", "bias"},
               .result_count = 4);
RONDO_OPERATOR(rnn, LAYER_ROW(rnn), .inputs = {"gates", "weight", "hidden", "lengths"}, .result_count = 3);
RONDO_OPERATOR(lstm_gradient, GRADIENT_ROW(lstm), .result_count = 3,
               .spare_results = 1u << D_HIDDEN | 1u << D_PRODUCT_OR_CELL);
RONDO_OPERATOR(gru_gradient, GRADIENT_ROW(gru), .result_count = 3, .spare_results = 1u << D_HIDDEN);
RONDO_OPERATOR(rnn_gradient, GRADIENT_ROW(rnn), .result_count = 2, .spare_results = 1u << D_HIDDEN);
