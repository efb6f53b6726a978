/* SPDX-License-Identifier: MIT
 * LSTM, GRU and RNN. Programs have PyTorch's order of gates in the rows of weights; weights that are constants are put
 * into it at import.
 */
#include <string.h>

#include "base/error.h"
#include "onnx/import/constant.h"
#include "onnx/import/node_attributes.h"
#include "onnx/operators/operator_families.h"

#define MOST_GATES 4

typedef enum recurrent_cell { CELL_LSTM, CELL_GRU, CELL_RNN } recurrent_cell;

typedef struct cell_form {
  recurrent_cell cell;
  size_t gates, activations;
  size_t
      order[MOST_GATES]; /* gate i of a program is this one of ONNX: input, output, forget, cell; update, reset, new */
} cell_form;

static const size_t peephole_order[] = {0, 2, 1}; /* input, forget, output from input, output, forget */

typedef struct recurrent_node {
  rondo_onnx_node *node;
  const cell_form *form;
  size_t directions, states;
  bool batch_first;
  rondo_recurrent_options options;
  rondo_recurrent_weights weights[2];
} recurrent_node;

/* Attributes ------------------------------------------------------------------------------------------------------- */

static rondo_status read_direction(recurrent_node *of) {
  const char *direction;
  RONDO_TRY(rondo_onnx_attribute_text(of->node, "direction", "forward", &direction));
  of->options.bidirectional = strcmp(direction, "bidirectional") == 0;
  of->options.reversed = strcmp(direction, "reverse") == 0;
  of->directions = of->options.bidirectional ? 2 : 1;
  if (of->options.bidirectional || of->options.reversed || strcmp(direction, "forward") == 0) return RONDO_OK;
  return rondo_onnx_refuse_attribute(of->node, "direction", "it is '%s'", direction);
}

/* What each activation has in place of numbers that are not given, and how many numbers it takes. */
static const struct {
  const char *name;
  rondo_recurrent_activation activation;
  size_t numbers;
} activations[] = {
    {"Sigmoid", {RONDO_RECURRENT_SIGMOID, 0, 0}, 0},
    {"Tanh", {RONDO_RECURRENT_TANH, 0, 0}, 0},
    {"Relu", {RONDO_RECURRENT_RELU, 0, 0}, 0},
    {"Affine", {RONDO_RECURRENT_AFFINE, 1, 0}, 2},
    {"LeakyRelu", {RONDO_RECURRENT_LEAKY_RELU, 0.01f, 0}, 1},
    {"ThresholdedRelu", {RONDO_RECURRENT_THRESHOLDED_RELU, 1, 0}, 1},
    {"ScaledTanh", {RONDO_RECURRENT_SCALED_TANH, 1, 1}, 2},
    {"HardSigmoid", {RONDO_RECURRENT_HARD_SIGMOID, 0.2f, 0.5f}, 2},
    {"Elu", {RONDO_RECURRENT_ELU, 1, 0}, 1},
    {"Softsign", {RONDO_RECURRENT_SOFTSIGN, 0, 0}, 0},
    {"Softplus", {RONDO_RECURRENT_SOFTPLUS, 0, 0}, 0},
};

/* Numbers that are left, each the next one of activations that take one. */
typedef struct activation_numbers {
  const float *alphas, *betas;
  size_t alpha_count, beta_count;
} activation_numbers;

static bool find_activation(const ProtobufCBinaryData *name, activation_numbers *left,
                            rondo_recurrent_activation *out) {
  for (size_t i = 0; i < sizeof activations / sizeof *activations; i++) {
    if (name->len != strlen(activations[i].name) || memcmp(name->data, activations[i].name, name->len) != 0) continue;
    *out = activations[i].activation;
    if (activations[i].numbers > 0 && left->alpha_count > 0) {
      out->alpha = *left->alphas++;
      left->alpha_count--;
    }
    if (activations[i].numbers > 1 && left->beta_count > 0) {
      out->beta = *left->betas++;
      left->beta_count--;
    }
    return true;
  }
  return false;
}

static rondo_status read_activations(recurrent_node *of) {
  const RondoOnnx__Attribute *names = rondo_onnx_attribute_of(of->node, "activations");
  activation_numbers left;
  RONDO_TRY(rondo_onnx_attribute_floats(of->node, "activation_alpha", &left.alphas, &left.alpha_count));
  RONDO_TRY(rondo_onnx_attribute_floats(of->node, "activation_beta", &left.betas, &left.beta_count));
  if (names == NULL) return RONDO_OK;
  if (names->n_strings != of->directions * of->form->activations)
    return rondo_onnx_refuse_attribute(of->node, "activations", "%zu, and %zu are needed", names->n_strings,
                                       of->directions * of->form->activations);
  for (size_t i = 0; i < names->n_strings; i++) {
    rondo_recurrent_activation *activation =
        &of->options.activations[i / of->form->activations][i % of->form->activations];
    if (!find_activation(&names->strings[i], &left, activation))
      return rondo_onnx_refuse_attribute(of->node, "activations", "number %zu is not one of ONNX's", i);
  }
  return RONDO_OK;
}

static rondo_status read_attributes(recurrent_node *of) {
  const rondo_onnx_shape *recurrence = rondo_onnx_input_shape(of->node, 2);
  int64_t layout, states, reset_last, coupled;
  RONDO_TRY(read_direction(of));
  RONDO_TRY(read_activations(of));
  RONDO_TRY(rondo_onnx_attribute_float(of->node, "clip", 0, &of->options.clip));
  RONDO_TRY(rondo_onnx_attribute_int(of->node, "layout", 0, &layout));
  if (of->form->cell == CELL_LSTM) {
    RONDO_TRY(rondo_onnx_attribute_int(of->node, "input_forget", 0, &coupled));
    of->options.coupled = coupled != 0;
  } else if (of->form->cell == CELL_GRU) {
    RONDO_TRY(rondo_onnx_attribute_int(of->node, "linear_before_reset", 0, &reset_last));
    of->options.reset_first = reset_last == 0;
  }
  of->batch_first = of->options.batch_first = layout != 0;
  if (rondo_onnx_input_shape(of->node, 0)->rank != 3 || recurrence->rank != 3 ||
      recurrence->dims[0] != of->directions || recurrence->dims[1] != of->form->gates * recurrence->dims[2])
    return rondo_onnx_refuse(of->node, "the shapes of its input and weights do not fit %zu directions", of->directions);
  of->states = recurrence->dims[2];
  RONDO_TRY(rondo_onnx_attribute_int(of->node, "hidden_size", (int64_t)of->states, &states));
  if ((uint64_t)states == of->states) return RONDO_OK;
  return rondo_onnx_refuse_attribute(of->node, "hidden_size", "%lld, and the weights have %zu", (long long)states,
                                     of->states);
}

/* Weights ---------------------------------------------------------------------------------------------------------- */

/* Which rows of an input [directions, rows, ..] are taken: `gates` parts of as many rows as states, in this order,
 * from part `first` on. */
typedef struct gate_rows {
  size_t direction, first, gates;
  const size_t *order;
} gate_rows;

static rondo_status join_gates(rondo_onnx_node *inner, const gate_rows *rows, size_t states) {
  const rondo_onnx_shape *have = rondo_onnx_input_shape(inner, 0);
  rondo_program *program;
  rondo_value from, parts[MOST_GATES];
  const size_t length[3] = {1, states, have->rank == 3 ? have->dims[2] : 1};
  RONDO_TRY(rondo_onnx_operand(inner, 0, &from));
  RONDO_TRY(rondo_onnx_node_program(inner, &program));
  for (size_t i = 0; i < rows->gates; i++) {
    const size_t start[3] = {rows->direction, (rows->first + rows->order[i]) * states, 0};
    RONDO_TRY(rondo_op_slice(program, from, start, length, NULL, &parts[i]));
  }
  RONDO_TRY(rondo_op_concat(program, parts, rows->gates, 1, &parts[0]));
  RONDO_TRY(rondo_onnx_reshape(inner, parts[0], (const size_t[]){rows->gates * states, length[2]}, have->rank - 1,
                               &parts[0]));
  return rondo_onnx_set_typed(inner, 0, parts[0], have->type);
}

/* The rows of an input as operand, which are joined at import if it is a constant. */
static rondo_status gate_operand(recurrent_node *of, size_t index, size_t parts, const gate_rows *rows,
                                 rondo_value *out) {
  rondo_onnx_inner_node inner;
  const rondo_onnx_shape *have = rondo_onnx_input_shape(of->node, index);
  const size_t rank = index < 3 ? 3 : 2; /* W and R; B and P */
  if (have->rank != rank || have->dims[0] != of->directions || have->dims[1] != parts * of->states)
    return rondo_onnx_refuse(of->node, "input %zu does not fit %zu directions of %zu states", index, of->directions,
                             of->states);
  RONDO_TRY(rondo_onnx_inner_begin(of->node, &of->node->inputs[index], 1, &inner));
  RONDO_TRY(join_gates(&inner.node, rows, of->states));
  return rondo_onnx_inner_operand(of->node, &inner, out);
}

static rondo_status add_weights(recurrent_node *of, size_t direction) {
  rondo_recurrent_weights *weights = &of->weights[direction];
  gate_rows rows = {.direction = direction, .gates = of->form->gates, .order = of->form->order};
  RONDO_TRY(gate_operand(of, 1, rows.gates, &rows, &weights->input));
  RONDO_TRY(gate_operand(of, 2, rows.gates, &rows, &weights->hidden));
  if (rondo_onnx_has_input(of->node, 3)) {
    RONDO_TRY(gate_operand(of, 3, 2 * rows.gates, &rows, &weights->input_bias));
    rows.first = rows.gates;
    RONDO_TRY(gate_operand(of, 3, 2 * rows.gates, &rows, &weights->hidden_bias));
  }
  if (!rondo_onnx_has_input(of->node, 7)) return RONDO_OK;
  rows = (gate_rows){.direction = direction, .gates = 3, .order = peephole_order};
  return gate_operand(of, 7, 3, &rows, &weights->peephole);
}

/* The states before the first step, [directions, b, h]; no value where they are left out. */
static rondo_status state_operand(recurrent_node *of, size_t index, rondo_value *out) {
  rondo_program *program;
  if (!rondo_onnx_has_input(of->node, index)) return RONDO_OK;
  RONDO_TRY(rondo_onnx_operand(of->node, index, out));
  RONDO_TRY(rondo_onnx_node_program(of->node, &program));
  return of->batch_first ? rondo_op_transpose(program, *out, 0, 1, out) : RONDO_OK;
}

/* Results ---------------------------------------------------------------------------------------------------------- */

/* [t, b, directions h] becomes [t, directions, b, h]; with the batch first, [b, t, directions, h]. */
static rondo_status set_steps(recurrent_node *of, rondo_value y) {
  const rondo_onnx_shape *x = rondo_onnx_input_shape(of->node, 0);
  const size_t dims[] = {x->dims[0], x->dims[1], of->directions, of->states};
  rondo_program *program;
  RONDO_TRY(rondo_onnx_node_program(of->node, &program));
  RONDO_TRY(rondo_onnx_reshape(of->node, y, dims, 4, &y));
  if (!of->batch_first) RONDO_TRY(rondo_op_transpose(program, y, 1, 2, &y));
  return rondo_onnx_set_typed(of->node, 0, y, x->type);
}

static rondo_status set_states(recurrent_node *of, size_t output, rondo_value states) {
  rondo_program *program;
  RONDO_TRY(rondo_onnx_node_program(of->node, &program));
  if (of->batch_first) RONDO_TRY(rondo_op_transpose(program, states, 0, 1, &states));
  return rondo_onnx_set_typed(of->node, output, states, rondo_onnx_input_shape(of->node, 0)->type);
}

static rondo_status add_cells(recurrent_node *of, rondo_value x) {
  rondo_program *program;
  rondo_value y, hidden, cell = {0};
  RONDO_TRY(rondo_onnx_node_program(of->node, &program));
  switch (of->form->cell) {
    case CELL_LSTM:
      RONDO_TRY(rondo_op_lstm(program, x, of->weights, &of->options, &y, &hidden, &cell));
      break;
    case CELL_GRU:
      RONDO_TRY(rondo_op_gru(program, x, of->weights, &of->options, &y, &hidden));
      break;
    case CELL_RNN:
      RONDO_TRY(rondo_op_rnn(program, x, of->weights, &of->options, &y, &hidden));
      break;
  }
  RONDO_TRY(set_steps(of, y));
  RONDO_TRY(set_states(of, 1, hidden));
  return cell.id != 0 ? set_states(of, 2, cell) : RONDO_OK;
}

static rondo_status add_recurrent(rondo_onnx_node *node, const void *data) {
  recurrent_node of = {.node = node, .form = data, .options = {RONDO_RECURRENT_OPTIONS_INIT}};
  rondo_value x;
  RONDO_TRY(read_attributes(&of));
  for (size_t i = 0; i < of.directions; i++) RONDO_TRY(add_weights(&of, i));
  RONDO_TRY(rondo_onnx_operand(node, 0, &x));
  if (rondo_onnx_has_input(node, 4)) RONDO_TRY(rondo_onnx_operand(node, 4, &of.options.lengths));
  RONDO_TRY(state_operand(&of, 5, &of.options.hidden));
  RONDO_TRY(state_operand(&of, 6, &of.options.cell));
  return add_cells(&of, x);
}

/* The table -------------------------------------------------------------------------------------------------------- */

static const rondo_onnx_row rows[] = {
    {"GRU", 7, 0, 3, 6, 0, add_recurrent, &(const cell_form){CELL_GRU, 3, 2, {1, 0, 2}}},
    {"LSTM", 7, 0, 3, 8, 0, add_recurrent, &(const cell_form){CELL_LSTM, 4, 3, {0, 2, 3, 1}}},
    {"RNN", 7, 0, 3, 6, 0, add_recurrent, &(const cell_form){CELL_RNN, 1, 1, {0}}},
};

RONDO_ONNX_FAMILY(rondo_onnx_recurrent, rows);
