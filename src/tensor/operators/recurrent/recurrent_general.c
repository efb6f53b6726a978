/* SPDX-License-Identifier: MIT
 * lstm_general, gru_general and rnn_general: the cells of ONNX's LSTM, GRU and RNN that PyTorch does not have, with
 * other activations, a limit of what is activated, peepholes (Gers and Schmidhuber 2000), an input gate that is also
 * the forget gate, and a GRU whose reset gate multiplies the state before its product (Cho et al. 2014). They have no
 * gradient. Steps, lengths and types are as in recurrent.c; a block computes all steps of some sequences. Threads: as
 * tensor/program/operator.h says.
 */
#include <assert.h>
#include <string.h>

#include "tensor/operators/common/operator_tools.h"
#include "tensor/operators/matmul/gemm.h"
#include "tensor/operators/recurrent/recurrent.h"

typedef struct cell_activation {
  uint32_t kind; /* rondo_recurrent_activation_kind */
  float alpha, beta;
} cell_activation;

/* A scalar argument of the kernel; without padding. */
typedef struct general_shape {
  rondo_recurrent_shape base;
  uint32_t resets_first, is_coupled;
  float clip; /* 0: none */
  cell_activation activations[RONDO_RECURRENT_ACTIVATIONS];
} general_shape;

enum { OF_GATES, OF_CANDIDATE, OF_CELL }; /* activations */

/* The arguments of the kernel after the shape. */
enum {
  AT_GATES = 1,
  AT_WEIGHT,
  AT_HIDDEN,
  AT_CELL,
  AT_LENGTHS,
  AT_BIAS,
  AT_PEEPHOLE,
  AT_WORKSPACE,
  AT_Y,
  AT_LAST,
  AT_LAST_CELL
};

/* Cells ------------------------------------------------------------------------------------------------------------ */

static float activate(const general_shape *s, size_t which, float x) {
  const cell_activation *by = &s->activations[which];
  const float limited = x > s->clip ? s->clip : x < -s->clip ? -s->clip : x;
  if (s->clip > 0) x = limited;
  switch ((rondo_recurrent_activation_kind)by->kind) {
    case RONDO_RECURRENT_RELU:
      return x < 0 ? 0 : x;
    case RONDO_RECURRENT_SIGMOID:
      return rondo_sigmoid(x);
    case RONDO_RECURRENT_AFFINE:
      return by->alpha * x + by->beta;
    case RONDO_RECURRENT_LEAKY_RELU:
      return x < 0 ? by->alpha * x : x;
    case RONDO_RECURRENT_THRESHOLDED_RELU:
      return x < by->alpha ? 0 : x;
    case RONDO_RECURRENT_SCALED_TANH:
      return by->alpha * rondo_tanh(by->beta * x);
    case RONDO_RECURRENT_HARD_SIGMOID:
      x = by->alpha * x + by->beta;
      return x < 0 ? 0 : x > 1 ? 1 : x;
    case RONDO_RECURRENT_ELU:
      return x < 0 ? by->alpha * (rondo_exp(x) - 1) : x;
    case RONDO_RECURRENT_SOFTSIGN:
      return x / (1 + (x < 0 ? -x : x));
    case RONDO_RECURRENT_SOFTPLUS:
      return (x < 0 ? 0 : x) + rondo_log(1 + rondo_exp(x < 0 ? x : -x));
    case RONDO_RECURRENT_DEFAULT:
    case RONDO_RECURRENT_TANH:
      break;
  }
  return rondo_tanh(x);
}

/* One element of a state: what its cell reads, and its places in the workspace. */
typedef struct element_cell {
  float x[RONDO_RECURRENT_MAX_GATES]; /* products of the inputs */
  const float *products;              /* of the states, `stride` apart */
  const float *peephole;              /* of lstm, `stride` apart; NULL: none */
  size_t stride;
  float bias;           /* of gru: within the reset gate */
  float *h, *c, *reset; /* reset: the state times the reset gate, if that comes first */
} element_cell;

static void run_lstm(const general_shape *s, const element_cell *e) {
  const float *p = e->products, *peephole = e->peephole, before = *e->c;
  const size_t next = e->stride;
  const float see_in = peephole == NULL ? 0 : peephole[0] * before;
  const float see_forget = peephole == NULL ? 0 : peephole[next] * before;
  const float in = activate(s, OF_GATES, e->x[0] + p[0] + see_in);
  const float forget = s->is_coupled != 0 ? 1 - in : activate(s, OF_GATES, e->x[1] + p[next] + see_forget);
  const float candidate = activate(s, OF_CANDIDATE, e->x[2] + p[2 * next]);
  const float c = forget * before + in * candidate;
  const float see_out = peephole == NULL ? 0 : peephole[2 * next] * c;
  *e->c = c;
  *e->h = activate(s, OF_GATES, e->x[3] + p[3 * next] + see_out) * activate(s, OF_CELL, c);
}

static void run_gru(const general_shape *s, const element_cell *e) {
  const float *p = e->products;
  const float reset = activate(s, OF_GATES, e->x[0] + p[0]), product = p[2 * e->stride] + e->bias;
  const float update = activate(s, OF_GATES, e->x[1] + p[e->stride]);
  const float candidate = activate(s, OF_CANDIDATE, e->x[2] + (s->resets_first != 0 ? product : reset * product));
  *e->h = candidate + update * (*e->h - candidate);
}

static void run_cell(const general_shape *s, const element_cell *e) {
  if (s->base.kind == RONDO_CELL_LSTM) {
    run_lstm(s, e);
  } else if (s->base.kind == RONDO_CELL_GRU) {
    run_gru(s, e);
  } else {
    *e->h = activate(s, OF_GATES, e->x[0] + e->products[0]);
  }
}

/* Steps ------------------------------------------------------------------------------------------------------------ */

/* The sequences of one block, and their rooms in the workspace: [rows, h] but for products, [rows, g h]. */
typedef struct general_block {
  const general_shape *shape;
  rondo_type type;
  void *const *args;
  size_t first, rows;
  float *h, *c, *reset, *products;
} general_block;

static general_block block_of(rondo_type type, size_t block, void *const *args) {
  const general_shape *shape = args[0];
  const rondo_recurrent_shape *s = &shape->base;
  const size_t first = block * s->rows, states = s->batch * s->hidden, at = first * s->hidden;
  float *workspace = RONDO_ARG(float *, AT_WORKSPACE);
  return (general_block){.shape = shape,
                         .type = type,
                         .args = args,
                         .first = first,
                         .rows = rondo_smaller(s->rows, s->batch - first),
                         .h = workspace + at,
                         .c = workspace + states + at,
                         .reset = workspace + 2 * states + at,
                         .products = workspace + 3 * states + at * s->gates};
}

/* The products with `count` gates' weights, from the gate `first` on. */
static void multiply(const general_block *b, const float *states, size_t first, size_t count) {
  const rondo_recurrent_shape *s = &b->shape->base;
  void *const *args = b->args;
  const float *weight = RONDO_ARG(const float *, AT_WEIGHT);
  rondo_gemm_run(
      &(rondo_gemm){.m = b->rows,
                    .n = count * s->hidden,
                    .k = s->hidden,
                    .a = {.at = states, .stride = s->hidden},
                    .b = {.at = weight + first * s->hidden * s->hidden, .stride = s->hidden, .is_transposed = true},
                    .c = {.at = b->products + first * s->hidden, .stride = s->gates * s->hidden}});
}

static element_cell cell_of(const general_block *b, size_t place, size_t row, size_t i) {
  const rondo_recurrent_shape *s = &b->shape->base;
  void *const *args = b->args;
  const float *bias = RONDO_ARG(const float *, AT_BIAS), *peephole = RONDO_ARG(const float *, AT_PEEPHOLE);
  const size_t at = row * s->hidden + i;
  element_cell e = {.products = b->products + row * s->gates * s->hidden + i,
                    .peephole = peephole == NULL ? NULL : peephole + i,
                    .stride = s->hidden,
                    .bias = bias == NULL ? 0 : bias[i],
                    .h = b->h + at,
                    .c = b->c + at,
                    .reset = b->reset + at};
  for (size_t k = 0; k < s->gates; k++)
    e.x[k] = rondo_load_one(b->type, RONDO_ARG(const void *, AT_GATES), (place * s->gates + k) * s->hidden + i);
  return e;
}

static void run_row(const general_block *b, size_t step, size_t row) {
  const rondo_recurrent_shape *s = &b->shape->base;
  void *const *args = b->args;
  void *y = RONDO_ARG(void *, AT_Y);
  const size_t place = step * s->batch + b->first + row;
  const bool runs = rondo_recurrent_has_step(s, RONDO_ARG(const void *, AT_LENGTHS), b->first + row, step);
  for (size_t i = 0; i < s->hidden; i++) {
    const element_cell e = cell_of(b, place, row, i);
    if (runs) run_cell(b->shape, &e);
    rondo_store_one(b->type, y, place * s->hidden + i, runs ? *e.h : 0);
    if (runs) *e.h = rondo_load_one(b->type, y, place * s->hidden + i); /* the next step reads what was stored */
  }
}

/* The states times the reset gate, whose products are those of the last gate. */
static void reset_states(const general_block *b, size_t step) {
  const rondo_recurrent_shape *s = &b->shape->base;
  for (size_t row = 0; row < b->rows; row++) {
    for (size_t i = 0; i < s->hidden; i++) {
      const element_cell e = cell_of(b, step * s->batch + b->first + row, row, i);
      *e.reset = activate(b->shape, OF_GATES, e.x[0] + e.products[0]) * *e.h;
    }
  }
  multiply(b, b->reset, 2, 1);
}

static void run_step(const general_block *b, size_t step) {
  const bool resets_first = b->shape->resets_first != 0;
  multiply(b, b->h, 0, resets_first ? 2 : b->shape->base.gates);
  if (resets_first) reset_states(b, step);
  for (size_t row = 0; row < b->rows; row++) run_row(b, step, row);
}

static void recurrent_general_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  const rondo_recurrent_shape *s = &((const general_shape *)args[0])->base;
  const void *hidden = RONDO_ARG(const void *, AT_HIDDEN), *cell = RONDO_ARG(const void *, AT_CELL);
  void *last = RONDO_ARG(void *, AT_LAST), *last_cell = RONDO_ARG(void *, AT_LAST_CELL);
  for (size_t block = blocks.first; block < blocks.last; block++) {
    const general_block b = block_of(type, block, args);
    const size_t first = b.first * s->hidden, count = b.rows * s->hidden;
    for (size_t i = 0; i < count; i++) {
      b.h[i] = hidden == NULL ? 0 : rondo_load_one(type, hidden, first + i);
      b.c[i] = cell == NULL ? 0 : rondo_load_one(type, cell, first + i);
    }
    for (size_t n = 0; n < s->steps; n++) run_step(&b, rondo_recurrent_step(s, n));
    for (size_t i = 0; i < count; i++) {
      if (last != NULL) rondo_store_one(type, last, first + i, b.h[i]);
      if (last_cell != NULL) rondo_store_one(type, last_cell, first + i, b.c[i]);
    }
  }
}

RONDO_TYPED_KERNEL(recurrent_general, recurrent_general, RONDO_SCALAR(general_shape), RONDO_READS, RONDO_READS,
                   RONDO_READS, RONDO_READS, RONDO_READS, RONDO_READS, RONDO_READS, RONDO_WRITES, RONDO_WRITES,
                   RONDO_WRITES, RONDO_WRITES);

/* Rows ------------------------------------------------------------------------------------------------------------- */

static general_shape shape_of(const rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_attributes *of = &operation->attributes;
  general_shape shape = {.base = rondo_recurrent_shape_of(emitter, operation, operation->inputs[RONDO_RECURRENT_GATES],
                                                          operation->inputs[RONDO_RECURRENT_LENGTHS]),
                         .resets_first = of->flags[RONDO_RECURRENT_RESET_FIRST],
                         .is_coupled = of->flags[RONDO_RECURRENT_COUPLED],
                         .clip = of->numbers[0]};
  for (size_t i = 0; i < RONDO_RECURRENT_ACTIVATIONS; i++) {
    const size_t *sizes = of->sizes + i * RONDO_RECURRENT_ACTIVATION_SIZES;
    shape.activations[i] =
        (cell_activation){(uint32_t)sizes[RONDO_RECURRENT_KIND], rondo_float_of((uint32_t)sizes[RONDO_RECURRENT_ALPHA]),
                          rondo_float_of((uint32_t)sizes[RONDO_RECURRENT_BETA])};
  }
  return shape;
}

static rondo_status infer_general(const rondo_program *program, const rondo_operation *operation,
                                  rondo_shape *results) {
  rondo_shape all, state;
  RONDO_TRY(rondo_recurrent_infer(program, operation, &all, &state));
  results[RONDO_GENERAL_Y] = all;
  results[RONDO_GENERAL_LAST] = results[RONDO_GENERAL_LAST_CELL] = state;
  return RONDO_OK;
}

/* Three rooms for states, and the products of a step. */
static rondo_status prepare_general(rondo_resources *resources, const rondo_program *program, uint32_t number,
                                    size_t *out_workspace_bytes) {
  const rondo_operation *operation = &program->operations.items[number];
  const rondo_recurrent_family *family = operation->row->family;
  const rondo_shape *gates = rondo_program_shape(program, operation->inputs[RONDO_RECURRENT_GATES]);
  (void)resources;
  *out_workspace_bytes = gates->dims[1] * (gates->dims[2] + 3 * (gates->dims[2] / family->gates)) * sizeof(float);
  return RONDO_OK;
}

static rondo_status emit_general(rondo_emitter *emitter, const rondo_operation *operation) {
  const general_shape shape = shape_of(emitter, operation);
  const rondo_shape *gates = rondo_emit_shape(emitter, operation->inputs[RONDO_RECURRENT_GATES]);
  const size_t blocks = rondo_divide_up(shape.base.batch, shape.base.rows);
  rondo_gemm_prepare();
  return rondo_emit_operands(
      emitter, operation, &recurrent_general_code[gates->type], rondo_tile_grid(blocks),
      RONDO_OPERANDS(RONDO_OBJECT(shape), RONDO_INPUT(RONDO_RECURRENT_GATES), RONDO_INPUT(RONDO_RECURRENT_WEIGHT),
                     RONDO_INPUT(RONDO_RECURRENT_HIDDEN), RONDO_INPUT(RONDO_RECURRENT_CELL),
                     RONDO_INPUT(RONDO_RECURRENT_LENGTHS), RONDO_INPUT(RONDO_RECURRENT_BIAS),
                     RONDO_INPUT(RONDO_RECURRENT_PEEPHOLE), RONDO_WORKSPACE, RONDO_RESULT(RONDO_GENERAL_Y),
                     RONDO_RESULT(RONDO_GENERAL_LAST), RONDO_RESULT(RONDO_GENERAL_LAST_CELL)));
}

#define GENERAL_ROW(row, kind, gates)                                                                           \
  static const rondo_recurrent_family row##_family = {kind, gates, NULL};                                       \
  RONDO_OPERATOR(row, .types = RONDO_FLOATS, .family = &row##_family,                                           \
                 .inputs = {"gates", "weight", "hidden", "lengths", "cell", "bias", "peephole"}, .required = 2, \
                 .result_count = 3, .spare_results = 1u << RONDO_GENERAL_LAST | 1u << RONDO_GENERAL_LAST_CELL,  \
                 .infer = infer_general, .prepare = prepare_general, .emit = emit_general)

GENERAL_ROW(lstm_general, RONDO_CELL_LSTM, 4);
GENERAL_ROW(gru_general, RONDO_CELL_GRU, 3);
GENERAL_ROW(rnn_general, RONDO_CELL_RNN, 1);
