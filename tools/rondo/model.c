/* SPDX-License-Identifier: MIT
 * The language model as a program: its parameters, its operators and its first values.
 */
#include "model.h"

#include <math.h>
#include <stdlib.h>

#include "tool.h"

/* Places in the table of parameters. */
enum { EMBEDDING, HIDDEN_WEIGHT, HIDDEN_BIAS, OUTPUT_WEIGHT, OUTPUT_BIAS };

/* Keeps the variance of what passes a layer (Glorot and Bengio, AISTATS 2010, equation 16). */
static double even_range(size_t inputs, size_t outputs) { return sqrt(6.0 / (double)(inputs + outputs)); }

void model_parameters(const language_model *model, model_parameter out[MODEL_PARAMETERS]) {
  const size_t bytes = model->vocabulary.count;
  const size_t inputs = (size_t)model->context * model->embedding;
  const size_t hidden = model->hidden;
  out[EMBEDDING] = (model_parameter){"embedding", 2, {bytes, model->embedding}, 1.0};
  out[HIDDEN_WEIGHT] = (model_parameter){"hidden.weight", 2, {inputs, hidden}, even_range(inputs, hidden)};
  out[HIDDEN_BIAS] = (model_parameter){"hidden.bias", 1, {hidden, 0}, 0.0};
  out[OUTPUT_WEIGHT] = (model_parameter){"output.weight", 2, {hidden, bytes}, even_range(hidden, bytes)};
  out[OUTPUT_BIAS] = (model_parameter){"output.bias", 1, {bytes, 0}, 0.0};
}

rondo_status model_build(const language_model *model, rondo_program *program, size_t batch, rondo_value *out_logits) {
  model_parameter parameters[MODEL_PARAMETERS];
  rondo_value states[MODEL_PARAMETERS], tokens, value;
  model_parameters(model, parameters);
  for (size_t i = 0; i < MODEL_PARAMETERS; i++) {
    const model_parameter *p = &parameters[i];
    TOOL_TRY(rondo_program_state(program, p->name, RONDO_F32, p->shape, p->rank, &states[i]));
  }
  TOOL_TRY(rondo_program_input(program, "tokens", RONDO_I32, (size_t[]){batch, model->context}, 2, &tokens));
  TOOL_TRY(rondo_op_embedding(program, states[EMBEDDING], tokens, &value));
  TOOL_TRY(rondo_op_reshape(program, value, (size_t[]){batch, parameters[HIDDEN_WEIGHT].shape[0]}, 2, &value));
  TOOL_TRY(rondo_op_matmul(program, value, states[HIDDEN_WEIGHT], states[HIDDEN_BIAS], &value));
  TOOL_TRY(rondo_op_tanh(program, value, &value));
  return rondo_op_matmul(program, value, states[OUTPUT_WEIGHT], states[OUTPUT_BIAS], out_logits);
}

/* Sets a state to values drawn evenly from -range to range. */
static int write_even(rondo_compiled *compiled, const char *name, size_t bytes, double range, draw_source *source) {
  float *values = calloc(1, bytes);
  if (!values) return tool_fail("there is no memory for the first values of '%s'", name);
  if (range > 0) {
    for (size_t i = 0; i < bytes / sizeof *values; i++) values[i] = (float)(range * (2 * draw_unit(source) - 1));
  }
  const rondo_status status = rondo_compiled_write(compiled, name, values, bytes);
  free(values);
  return status ? tool_fail_status("the model's first values") : TOOL_OK;
}

/* The optimizer's states among them. */
static int zero_states(rondo_compiled *compiled) {
  for (size_t i = 0;; i++) {
    rondo_compiled_value state = {0};
    const rondo_status status = rondo_compiled_get_value(compiled, i, &state);
    if (status == RONDO_NOT_FOUND) return TOOL_OK;
    if (status) return tool_fail_status("the model's states");
    if (state.kind == 's' && write_even(compiled, state.name, state.bytes, 0, NULL) != TOOL_OK) return TOOL_FAILURE;
  }
}

int model_initialize(const language_model *model, rondo_compiled *compiled, uint64_t seed) {
  model_parameter parameters[MODEL_PARAMETERS];
  model_parameters(model, parameters);
  draw_source source = draw_create(seed, DRAW_PARAMETERS);
  if (zero_states(compiled) != TOOL_OK) return TOOL_FAILURE;
  for (size_t i = 0; i < MODEL_PARAMETERS; i++) {
    const model_parameter *p = &parameters[i];
    const size_t bytes = p->shape[0] * (p->rank == 2 ? p->shape[1] : 1) * sizeof(float);
    if (write_even(compiled, p->name, bytes, p->range, &source) != TOOL_OK) return TOOL_FAILURE;
  }
  return TOOL_OK;
}
