/* SPDX-License-Identifier: MIT
 * The public functions of lstm, gru and rnn: layers and directions, each a product of its inputs and an operation of
 * recurrent.c. All operations are added, or none. Threads: as tensor/program/operator.h says.
 */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tensor/operators/common/operator_tools.h"
#include "tensor/operators/recurrent/recurrent.h"

/* What one call adds. */
typedef struct network {
  rondo_program *program;
  const rondo_operator *row;
  const rondo_recurrent_weights *weights; /* [layers x directions] */
  rondo_recurrent_options options;
  rondo_type type;
  size_t layers, directions, steps, batch, hidden, gates;
} network;

#define MAX_STACKED 512 /* layers x directions */

/* Checks ----------------------------------------------------------------------------------------------------------- */

static rondo_status fail_shape(const network *n, const char *what, const rondo_shape *shape,
                               const rondo_shape *wanted) {
  char given[RONDO_SHAPE_TEXT], text[RONDO_SHAPE_TEXT];
  return rondo_fail(RONDO_INVALID_ARGUMENT, shape->type != wanted->type ? RONDO_REASON_TYPE : RONDO_REASON_SHAPE,
                    "%s: %s is %s %s; it must be %s %s", n->row->name, what, rondo_type_name(shape->type),
                    rondo_shape_text(given, shape), rondo_type_name(wanted->type), rondo_shape_text(text, wanted));
}

/* A value that may be missing has this shape. */
static rondo_status require(const network *n, rondo_value value, const char *what, rondo_shape wanted) {
  uint32_t index;
  if (value.id == 0) return RONDO_OK;
  RONDO_TRY(rondo_program_resolve(n->program, value, n->row->name, what, &index));
  const rondo_shape *shape = rondo_program_shape(n->program, index);
  return rondo_shape_same(shape, &wanted) ? RONDO_OK : fail_shape(n, what, shape, &wanted);
}

static rondo_status require_weights(const network *n, const rondo_recurrent_weights *w, size_t layer, size_t inputs) {
  const size_t wide = n->gates * n->hidden;
  char what[5][48];
  static const char *const names[] = {"input", "hidden", "input_bias", "hidden_bias", "peephole"};
  for (int i = 0; i < 5; i++)
    (void)snprintf(what[i], sizeof what[i], "%s of layer %zu%s", names[i], layer / n->directions,
                   layer % n->directions != 0 ? ", reverse," : "");
  RONDO_TRY(require(n, w->input, what[0], rondo_shape_matrix(n->type, wide, inputs)));
  RONDO_TRY(require(n, w->hidden, what[1], rondo_shape_matrix(n->type, wide, n->hidden)));
  RONDO_TRY(require(n, w->input_bias, what[2], rondo_shape_vector(n->type, wide)));
  RONDO_TRY(require(n, w->hidden_bias, what[3], rondo_shape_vector(n->type, wide)));
  RONDO_TRY(require(n, w->peephole, what[4], rondo_shape_vector(n->type, 3 * n->hidden)));
  if (w->input.id != 0 && w->hidden.id != 0) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_NULL_ARGUMENT, "%s: %s has no value", n->row->name,
                    what[w->input.id == 0 ? 0 : 1]);
}

/* Options that the kind of cell does not have. */
static rondo_status refuse_others(const network *n) {
  if (n->options.cell.id != 0 && n->row != &rondo_operator_lstm) {
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                      "%s: an initial cell is given, but only lstm has cells: leave out the option cell", n->row->name);
  }
  if (!n->options.relu || n->row == &rondo_operator_rnn) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                    "%s: relu is given, but only rnn can have it instead of tanh", n->row->name);
}

static rondo_status require_lengths(const network *n) {
  uint32_t index;
  if (n->options.lengths.id == 0) return RONDO_OK;
  RONDO_TRY(rondo_program_resolve(n->program, n->options.lengths, n->row->name, "lengths", &index));
  const rondo_shape *shape = rondo_program_shape(n->program, index);
  const rondo_shape wanted = rondo_shape_vector(shape->type == RONDO_I64 ? RONDO_I64 : RONDO_I32, n->batch);
  return rondo_shape_same(shape, &wanted) ? RONDO_OK : fail_shape(n, "lengths", shape, &wanted);
}

/* The sizes that x and the first weights tell; hidden 0: they are not matrices. */
static rondo_status measure(network *n, rondo_value x) {
  uint32_t index, weight;
  RONDO_TRY(rondo_program_resolve(n->program, x, n->row->name, "x", &index));
  const rondo_shape *shape = rondo_program_shape(n->program, index);
  if (!rondo_shape_is_float(shape) || shape->rank != 3) {
    char text[RONDO_SHAPE_TEXT];
    return rondo_fail(RONDO_INVALID_ARGUMENT, shape->rank != 3 ? RONDO_REASON_SHAPE : RONDO_REASON_TYPE,
                      "%s: x is %s %s; it must be [t, b, n], or [b, t, n] with batch_first, of f32, f16 or bf16",
                      n->row->name, rondo_type_name(shape->type), rondo_shape_text(text, shape));
  }
  RONDO_TRY(rondo_program_resolve(n->program, n->weights[0].hidden, n->row->name, "hidden of layer 0", &weight));
  n->type = shape->type;
  n->steps = shape->dims[n->options.batch_first ? 1 : 0];
  n->batch = shape->dims[n->options.batch_first ? 0 : 1];
  n->hidden = rondo_shape_last(rondo_program_shape(n->program, weight));
  return RONDO_OK;
}

static rondo_status fail_option(const network *n, rondo_reason reason, const char *what) {
  return rondo_fail(RONDO_INVALID_ARGUMENT, reason, "%s: %s", n->row->name, what);
}

static rondo_status check_activation(const network *n, const rondo_recurrent_activation *a) {
  if ((unsigned)a->kind > RONDO_RECURRENT_SOFTPLUS)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                      "%s: activation %d does not exist: use a RONDO_RECURRENT_ name", n->row->name, (int)a->kind);
  if (isfinite(a->alpha) && isfinite(a->beta)) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                    "%s: alpha %g and beta %g of an activation must be finite", n->row->name, (double)a->alpha,
                    (double)a->beta);
}

/* The options of ONNX's cells. */
static rondo_status check_cell(const network *n) {
  const rondo_recurrent_options *o = &n->options;
  const bool is_lstm = n->row == &rondo_operator_lstm;
  if (!(o->clip >= 0 && o->clip < INFINITY))
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                      "%s: clip %g must be finite and above 0, or 0 for no limit", n->row->name, (double)o->clip);
  if (o->reset_first && n->row != &rondo_operator_gru)
    return fail_option(n, RONDO_REASON_BAD_OPTIONS, "reset_first is an option of gru");
  if (o->coupled && !is_lstm) return fail_option(n, RONDO_REASON_BAD_OPTIONS, "coupled is an option of lstm");
  for (size_t i = 0; i < n->layers * n->directions; i++)
    if (n->weights[i].peephole.id != 0 && !is_lstm)
      return fail_option(n, RONDO_REASON_BAD_OPTIONS, "peephole is an option of lstm");
  for (size_t i = 0; i < 2 * RONDO_RECURRENT_ACTIVATIONS; i++)
    RONDO_TRY(check_activation(n, &o->activations[i / RONDO_RECURRENT_ACTIVATIONS][i % RONDO_RECURRENT_ACTIVATIONS]));
  if (!o->relu || o->activations[0][0].kind + o->activations[1][0].kind == 0) return RONDO_OK;
  return fail_option(n, RONDO_REASON_BAD_OPTIONS, "relu and an activation: choose one of them");
}

static rondo_status check(network *n, rondo_value x) {
  const size_t count = n->layers * n->directions;
  uint32_t index;
  if (n->layers > MAX_STACKED / 2) {
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE, "%s: %zu layers: use at most %d", n->row->name,
                      n->layers, MAX_STACKED / 2);
  }
  if (n->options.bidirectional && n->options.reversed) {
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                      "%s: bidirectional and reversed: choose one of them", n->row->name);
  }
  RONDO_TRY(check_cell(n));
  RONDO_TRY(refuse_others(n));
  RONDO_TRY(measure(n, x));
  RONDO_TRY(rondo_program_resolve(n->program, x, n->row->name, "x", &index));
  const size_t features = rondo_program_shape(n->program, index)->dims[2];
  for (size_t i = 0; i < count; i++) {
    const size_t inputs = i < n->directions ? features : n->directions * n->hidden;
    RONDO_TRY(require_weights(n, &n->weights[i], i, inputs));
  }
  const rondo_shape states = {.type = n->type, .rank = 3, .dims = {count, n->batch, n->hidden}};
  RONDO_TRY(require(n, n->options.hidden, "the initial hidden state", states));
  RONDO_TRY(require(n, n->options.cell, "the initial cell", states));
  return require_lengths(n);
}

/* One layer in one direction --------------------------------------------------------------------------------------- */

/* Part number `i` of the initial states; no value without them. */
static rondo_status pick_state(const network *n, rondo_value states, size_t i, rondo_value *out_value) {
  const size_t start[] = {i, 0, 0}, length[] = {1, n->batch, n->hidden};
  *out_value = (rondo_value){0};
  if (states.id == 0) return RONDO_OK;
  RONDO_TRY(rondo_op_slice(n->program, states, start, length, NULL, out_value));
  return rondo_op_reshape(n->program, *out_value, length + 1, 2, out_value);
}

/* What is added to the products of the inputs: both biases, but not gru's last part of the hidden bias if it is
 * multiplied by the reset gate. It becomes *out_apart. */
static rondo_status join_biases(const network *n, const rondo_recurrent_weights *w, rondo_value *out_bias,
                                rondo_value *out_apart) {
  const size_t hidden = n->hidden, zero = 0, two = 2 * hidden;
  rondo_value added = w->hidden_bias;
  *out_bias = w->input_bias;
  *out_apart = (rondo_value){0};
  if (added.id == 0) return RONDO_OK;
  if (n->row == &rondo_operator_gru && !n->options.reset_first) {
    RONDO_TRY(rondo_op_slice(n->program, added, &two, &hidden, NULL, out_apart));
    RONDO_TRY(rondo_op_cast(n->program, *out_apart, RONDO_F32, out_apart));
    RONDO_TRY(rondo_op_slice(n->program, added, &zero, &two, NULL, &added));
    RONDO_TRY(
        rondo_op_pad(n->program, added, (int64_t[]){0}, (int64_t[]){(int64_t)hidden}, RONDO_PAD_CONSTANT, 0, &added));
  }
  if (w->input_bias.id == 0) *out_bias = added;
  return w->input_bias.id == 0 ? RONDO_OK : rondo_op_add(n->program, w->input_bias, added, out_bias);
}

/* The states of a layer in one direction. */
typedef struct layer_results {
  rondo_value y, last, last_cell;
} layer_results;

/* The activation of a part: its default, or what the options say. */
static rondo_recurrent_activation activation_of(const network *n, size_t i, size_t which) {
  rondo_recurrent_activation a = n->options.activations[i % n->directions][which];
  if (a.kind != RONDO_RECURRENT_DEFAULT) return a;
  if (n->row == &rondo_operator_rnn) {
    a.kind = n->options.relu ? RONDO_RECURRENT_RELU : RONDO_RECURRENT_TANH;
  } else {
    a.kind = which == 0 ? RONDO_RECURRENT_SIGMOID : RONDO_RECURRENT_TANH;
  }
  return a;
}

/* The row of a part: PyTorch's cell, or the general one. */
static const rondo_operator *row_of(const network *n, size_t i) {
  const bool is_rnn = n->row == &rondo_operator_rnn, is_lstm = n->row == &rondo_operator_lstm;
  const rondo_recurrent_activation_kind first = activation_of(n, i, 0).kind;
  const bool is_usual = is_rnn
                            ? first == RONDO_RECURRENT_TANH || first == RONDO_RECURRENT_RELU
                            : first == RONDO_RECURRENT_SIGMOID && activation_of(n, i, 1).kind == RONDO_RECURRENT_TANH &&
                                  (!is_lstm || activation_of(n, i, 2).kind == RONDO_RECURRENT_TANH);
  if (is_usual && n->options.clip == 0 && !n->options.reset_first && !n->options.coupled &&
      n->weights[i].peephole.id == 0)
    return n->row;
  return is_rnn ? &rondo_operator_rnn_general : is_lstm ? &rondo_operator_lstm_general : &rondo_operator_gru_general;
}

static rondo_attributes attributes_of(const network *n, size_t i, const rondo_operator *row) {
  rondo_attributes attributes = {.flags = {false}};
  attributes.flags[RONDO_RECURRENT_REVERSED] = n->options.reversed || i % n->directions != 0;
  attributes.flags[RONDO_RECURRENT_IS_RELU] =
      n->row == &rondo_operator_rnn && activation_of(n, i, 0).kind == RONDO_RECURRENT_RELU;
  if (row == n->row) return attributes;
  attributes.flags[RONDO_RECURRENT_RESET_FIRST] = n->options.reset_first;
  attributes.flags[RONDO_RECURRENT_COUPLED] = n->options.coupled;
  attributes.numbers[0] = n->options.clip;
  attributes.size_count = RONDO_RECURRENT_ACTIVATIONS * RONDO_RECURRENT_ACTIVATION_SIZES;
  for (size_t which = 0; which < RONDO_RECURRENT_ACTIVATIONS; which++) {
    const rondo_recurrent_activation a = activation_of(n, i, which);
    size_t *sizes = attributes.sizes + which * RONDO_RECURRENT_ACTIVATION_SIZES;
    sizes[RONDO_RECURRENT_KIND] = a.kind;
    sizes[RONDO_RECURRENT_ALPHA] = rondo_float_bits(a.alpha);
    sizes[RONDO_RECURRENT_BETA] = rondo_float_bits(a.beta);
  }
  return attributes;
}

static rondo_status add_layer(const network *n, size_t i, rondo_value x, layer_results *out) {
  const rondo_recurrent_weights *w = &n->weights[i];
  const rondo_operator *row = row_of(n, i);
  rondo_matmul_options product = {RONDO_MATMUL_OPTIONS_INIT, .transpose_b = true};
  rondo_value in[RONDO_RECURRENT_PEEPHOLE + 1] = {{0}};
  uint32_t indices[RONDO_RECURRENT_PEEPHOLE + 1], results[RONDO_MAX_RESULTS];
  const rondo_attributes attributes = attributes_of(n, i, row);
  const uint32_t count = rondo_operator_input_count(row);
  RONDO_TRY(join_biases(n, w, &product.bias, &in[RONDO_RECURRENT_BIAS]));
  RONDO_TRY(rondo_op_matmul_with(n->program, x, w->input, &product, &in[RONDO_RECURRENT_GATES]));
  RONDO_TRY(rondo_op_cast(n->program, w->hidden, RONDO_F32, &in[RONDO_RECURRENT_WEIGHT]));
  RONDO_TRY(pick_state(n, n->options.hidden, i, &in[RONDO_RECURRENT_HIDDEN]));
  RONDO_TRY(pick_state(n, n->options.cell, i, &in[RONDO_RECURRENT_CELL]));
  if (w->peephole.id != 0) RONDO_TRY(rondo_op_cast(n->program, w->peephole, RONDO_F32, &in[RONDO_RECURRENT_PEEPHOLE]));
  in[RONDO_RECURRENT_LENGTHS] = n->options.lengths;
  RONDO_TRY(rondo_program_resolve_inputs(n->program, row, in, count, indices));
  RONDO_TRY(rondo_program_add(n->program, row, indices, count, &attributes, results));
  out->y = rondo_program_tag(n->program, results[RONDO_RECURRENT_Y]);
  out->last = rondo_program_tag(n->program, results[RONDO_RECURRENT_LAST]);
  if (n->row == &rondo_operator_lstm)
    out->last_cell =
        rondo_program_tag(n->program, results[row == n->row ? RONDO_RECURRENT_LAST_CELL : RONDO_GENERAL_LAST_CELL]);
  return RONDO_OK;
}

/* The lengths, checked when the program runs; no value without them. */
static rondo_status check_lengths(network *n) {
  const rondo_attributes attributes = {.sizes = {n->steps}, .size_count = 1};
  rondo_value *lengths = &n->options.lengths;
  if (lengths->id == 0) return RONDO_OK;
  return rondo_program_apply(n->program, &rondo_operator_sequence_lengths, &(rondo_value){lengths->id}, 1, &attributes,
                             lengths);
}

/* All layers ------------------------------------------------------------------------------------------------------- */

static rondo_status stack_states(const network *n, const rondo_value *states, rondo_value *out_value) {
  const size_t shape[] = {1, n->batch, n->hidden};
  if (n->layers * n->directions == 1) return rondo_op_reshape(n->program, states[0], shape, 3, out_value);
  return rondo_op_stack(n->program, states, n->layers * n->directions, 0, out_value);
}

static rondo_status add_layers(network *n, rondo_value x, rondo_value *out) {
  rondo_value last[MAX_STACKED], last_cells[MAX_STACKED];
  RONDO_TRY(check_lengths(n));
  if (n->options.batch_first) RONDO_TRY(rondo_op_transpose(n->program, x, 0, 1, &x));
  for (size_t layer = 0; layer < n->layers; layer++) {
    layer_results results[2] = {{{0}, {0}, {0}}, {{0}, {0}, {0}}};
    if (layer > 0 && n->options.dropout.id != 0) RONDO_TRY(rondo_op_dropout(n->program, x, n->options.dropout, &x));
    for (size_t d = 0; d < n->directions; d++) {
      RONDO_TRY(add_layer(n, layer * n->directions + d, x, &results[d]));
      last[layer * n->directions + d] = results[d].last;
      last_cells[layer * n->directions + d] = results[d].last_cell;
    }
    x = results[0].y;
    if (n->directions == 2)
      RONDO_TRY(rondo_op_concat(n->program, (rondo_value[]){results[0].y, results[1].y}, 2, 2, &x));
  }
  out[0] = x;
  if (n->options.batch_first) RONDO_TRY(rondo_op_transpose(n->program, x, 0, 1, &out[0]));
  RONDO_TRY(stack_states(n, last, &out[1]));
  return n->row == &rondo_operator_lstm ? stack_states(n, last_cells, &out[2]) : RONDO_OK;
}

/* outs: y, the last states and, of lstm, the last cells; each but y may be NULL. */
static rondo_status build(rondo_program *program, const rondo_operator *row, rondo_value x,
                          const rondo_recurrent_weights *weights, const rondo_recurrent_options *options,
                          rondo_value *const *outs) {
  network n = {.program = program,
               .row = row,
               .weights = weights,
               .gates = ((const rondo_recurrent_family *)row->family)->gates};
  rondo_value made[3] = {{0}};
  for (int i = 1; i < 3; i++)
    if (outs[i] != NULL) *outs[i] = (rondo_value){0};
  RONDO_TRY(rondo_program_begin(program, row->name, outs[0]));
  RONDO_TRY(rondo_require(row->name, "weights", weights));
  RONDO_TRY(rondo_versioned_read("rondo_recurrent_options", options, &n.options, sizeof n.options));
  n.layers = n.options.layers == 0 ? 1 : n.options.layers;
  n.directions = n.options.bidirectional ? 2 : 1;
  RONDO_TRY(check(&n, x));
  const rondo_program_mark mark = rondo_program_get_mark(program);
  const rondo_status status = add_layers(&n, x, made);
  if (status != RONDO_OK) rondo_program_roll_back(program, mark);
  for (int i = 0; status == RONDO_OK && i < 3; i++)
    if (outs[i] != NULL) *outs[i] = made[i];
  return status;
}

rondo_status rondo_op_lstm(rondo_program *program, rondo_value x, const rondo_recurrent_weights *weights,
                           const rondo_recurrent_options *options, rondo_value *out_y, rondo_value *out_hidden,
                           rondo_value *out_cell) {
  return build(program, &rondo_operator_lstm, x, weights, options, (rondo_value *[]){out_y, out_hidden, out_cell});
}

rondo_status rondo_op_gru(rondo_program *program, rondo_value x, const rondo_recurrent_weights *weights,
                          const rondo_recurrent_options *options, rondo_value *out_y, rondo_value *out_hidden) {
  return build(program, &rondo_operator_gru, x, weights, options, (rondo_value *[]){out_y, out_hidden, NULL});
}

rondo_status rondo_op_rnn(rondo_program *program, rondo_value x, const rondo_recurrent_weights *weights,
                          const rondo_recurrent_options *options, rondo_value *out_y, rondo_value *out_hidden) {
  return build(program, &rondo_operator_rnn, x, weights, options, (rondo_value *[]){out_y, out_hidden, NULL});
}
