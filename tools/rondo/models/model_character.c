/* SPDX-License-Identifier: MIT
 * The character model: an embedding and one hidden layer.
 */
#include <math.h>
#include <stdio.h>

#include "common/tool.h"
#include "models/model_quantized.h"

/* Indices into the table of parameters. */
enum { EMBEDDING, HIDDEN_WEIGHT, HIDDEN_BIAS, OUTPUT_WEIGHT, OUTPUT_BIAS, PARAMETERS };

/* Keeps the variance from layer to layer (Glorot and Bengio, AISTATS 2010, equation 16). */
static float even_range(size_t inputs, size_t outputs) { return (float)sqrt(6.0 / (double)(inputs + outputs)); }

static size_t inputs_of(const language_model *model) {
  return (size_t)model->sizes[MODEL_CONTEXT] * model->sizes[MODEL_EMBEDDING];
}

static bool parameter(const language_model *model, size_t index, model_parameter *out) {
  const size_t bytes = model->vocabulary.count, inputs = inputs_of(model), hidden = model->sizes[MODEL_HIDDEN];
  const model_parameter all[PARAMETERS] = {
      [EMBEDDING] = {"embedding", 2, {bytes, model->sizes[MODEL_EMBEDDING]}, 0, 1},
      [HIDDEN_WEIGHT] = {"hidden.weight", 2, {inputs, hidden}, 0, even_range(inputs, hidden)},
      [HIDDEN_BIAS] = {"hidden.bias", 1, {hidden, 0}, 0, 0},
      [OUTPUT_WEIGHT] = {"output.weight", 2, {hidden, bytes}, 0, even_range(hidden, bytes)},
      [OUTPUT_BIAS] = {"output.bias", 1, {bytes, 0}, 0, 0},
  };
  if (index >= PARAMETERS) return false;
  *out = all[index];
  return true;
}

static double activations(const language_model *model) {
  return (double)inputs_of(model) + model->sizes[MODEL_HIDDEN] + model->vocabulary.count;
}

static rondo_status multiply(const language_model *model, rondo_program *program, rondo_value x,
                             const rondo_value *weight, rondo_value bias, rondo_value *out) {
  return model_multiply(model, program, x, weight, bias, RONDO_ACTIVATION_NONE, out);
}

static rondo_status build(const language_model *model, rondo_program *program, const rondo_value *states,
                          rondo_value tokens, size_t batch, rondo_value *out_logits) {
  rondo_value x;
  TOOL_TRY(model_look_up(model, program, &states[EMBEDDING], tokens, &x));
  TOOL_TRY(rondo_op_reshape(program, x, (size_t[]){batch, inputs_of(model)}, 2, &x));
  TOOL_TRY(multiply(model, program, x, &states[HIDDEN_WEIGHT], states[HIDDEN_BIAS], &x));
  TOOL_TRY(rondo_op_tanh(program, x, &x));
  return multiply(model, program, x, &states[OUTPUT_WEIGHT], states[OUTPUT_BIAS], out_logits);
}

const model_kind model_character = {
    .name = "character",
    .format = "rondo-byte-model",
    .sizes = {[MODEL_CONTEXT] = 8, [MODEL_EMBEDDING] = 24, [MODEL_HIDDEN] = 256},
    .batch = 64,
    .steps = 10000,
    .learning_rate = 0.005,
    .tables = 1,
    .parameter = parameter,
    .activations = activations,
    .build = build,
};
