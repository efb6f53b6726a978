/* SPDX-License-Identifier: MIT
 * Quantised parameters of models: their states, the operators that use them, their files, and how they are made.
 */
#include "models/model_quantized.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/tool.h"

/* Forms ----------------------------------------------------------------------------------------------------------- */

static const char *const activation_names[] = {[RONDO_QUANTIZED_FLOAT] = "float", [RONDO_QUANTIZED_INT8] = "int8"};

uint32_t model_quantized_bits(const char *name) {
  if (strcmp(name, "int8") == 0) return 8;
  return strcmp(name, "int4") == 0 ? 4 : 0;
}

const char *model_quantized_name(uint32_t bits) { return bits == 0 ? "f32" : bits == 8 ? "int8" : "int4"; }

bool model_find_activations(const char *name, rondo_quantized_activations *out) {
  for (int i = RONDO_QUANTIZED_FLOAT; i <= RONDO_QUANTIZED_INT8; i++) {
    if (strcmp(name, activation_names[i]) != 0) continue;
    *out = (rondo_quantized_activations)i;
    return true;
  }
  return false;
}

const char *model_activations_name(rondo_quantized_activations activations) { return activation_names[activations]; }

static rondo_quantized_options options_of(const language_model *model) {
  return (rondo_quantized_options){RONDO_QUANTIZED_OPTIONS_INIT, .bits = model->quantization.bits,
                                   .group = model->quantization.group, .activations = model->quantization.activations};
}

static bool is_table(const language_model *model, size_t index) { return index < model->kind->tables; }

static bool is_quantized(const language_model *model, size_t index, const model_parameter *p) {
  if (model->quantization.bits == 0 || p->rank != 2) return false;
  return is_table(model, index) || index >= model->kind->tables + model->kind->unquantized;
}

rondo_status model_stored_parameter(const language_model *model, size_t index, const model_parameter *p,
                                    stored_parameter *out) {
  const rondo_quantized_options options = options_of(model);
  *out = (stored_parameter){.type = RONDO_F32, .rank = p->rank, .shape = {p->shape[0], p->shape[1]}};
  if (!is_quantized(model, index, p)) return RONDO_OK;
  const size_t rows = p->shape[is_table(model, index) ? 0 : 1], columns = p->shape[is_table(model, index) ? 1 : 0];
  out->type = options.bits == 4 ? RONDO_U8 : RONDO_I8;
  out->shape[0] = out->scales[0] = rows;
  return rondo_quantized_sizes(&options, columns, &out->shape[1], &out->scales[1]);
}

void model_scales_name(const char *parameter, char out[MODEL_SCALES_NAME]) {
  (void)snprintf(out, MODEL_SCALES_NAME, "%s.scales", parameter);
}

/* Programs -------------------------------------------------------------------------------------------------------- */

rondo_status model_add_parameter(const language_model *model, rondo_program *program, size_t index,
                                 const model_parameter *p, rondo_value *states) {
  const rondo_state_options frozen = {RONDO_STATE_OPTIONS_INIT, .frozen = true};
  stored_parameter stored;
  char scales[MODEL_SCALES_NAME];
  TOOL_TRY(model_stored_parameter(model, index, p, &stored));
  TOOL_TRY(rondo_program_state(program, p->name, stored.type, stored.shape, stored.rank, &states[0]));
  if (stored.scales[0] == 0) return RONDO_OK;
  model_scales_name(p->name, scales);
  return rondo_program_state_with(program, scales, RONDO_F32, stored.scales, 2, &frozen, &states[MODEL_SCALES]);
}

static rondo_status activate(rondo_program *program, rondo_activation activation, rondo_value *value) {
  switch (activation) {
    case RONDO_ACTIVATION_RELU:
      return rondo_op_relu(program, *value, value);
    case RONDO_ACTIVATION_GELU:
      return rondo_op_gelu(program, *value, RONDO_GELU_ERF, value);
    case RONDO_ACTIVATION_GELU_TANH:
      return rondo_op_gelu(program, *value, RONDO_GELU_TANH, value);
    case RONDO_ACTIVATION_SILU:
      return rondo_op_silu(program, *value, value);
    default:
      return RONDO_OK;
  }
}

rondo_status model_multiply(const language_model *model, rondo_program *program, rondo_value x,
                            const rondo_value *weight, rondo_value bias, rondo_activation activation,
                            rondo_value *out) {
  if (bias.id != 0) TOOL_TRY(rondo_op_cast(program, bias, model->type, &bias));
  if (model->quantization.bits == 0) {
    const rondo_matmul_options options = {RONDO_MATMUL_OPTIONS_INIT, .bias = bias, .activation = activation};
    rondo_value factor;
    TOOL_TRY(rondo_op_cast(program, weight[0], model->type, &factor));
    return rondo_op_matmul_with(program, x, factor, &options, out);
  }
  rondo_quantized_options options = options_of(model);
  options.bias = bias;
  TOOL_TRY(rondo_op_matmul_quantized(program, x, weight[0], weight[MODEL_SCALES], (rondo_value){0}, &options, out));
  return activate(program, activation, out);
}

rondo_status model_look_up(const language_model *model, rondo_program *program, const rondo_value *table,
                           rondo_value indices, rondo_value *out) {
  rondo_quantized_options options = options_of(model);
  if (model->quantization.bits == 0) return rondo_op_embedding(program, table[0], indices, out);
  options.columns = model->sizes[model->sizes[MODEL_WIDTH] > 0 ? MODEL_WIDTH : MODEL_EMBEDDING];
  return rondo_op_embedding_quantized(program, table[0], table[MODEL_SCALES], (rondo_value){0}, indices, &options, out);
}

/* Quantising ------------------------------------------------------------------------------------------------------ */

/* Frees nothing that the caller gave. */
static rondo_status add_quantized(rondo_weights *to, const char *name, const stored_parameter *stored, void *values,
                                  float *scales) {
  const size_t groups = stored->scales[0] * stored->scales[1];
  char scales_name[MODEL_SCALES_NAME];
  model_scales_name(name, scales_name);
  const rondo_weight weight = {.name = name,
                               .type = stored->type,
                               .rank = 2,
                               .shape = {stored->shape[0], stored->shape[1]},
                               .data = values,
                               .bytes = stored->shape[0] * stored->shape[1]};
  const rondo_weight of_scales = {.name = scales_name,
                                  .type = RONDO_F32,
                                  .rank = 2,
                                  .shape = {stored->scales[0], stored->scales[1]},
                                  .data = scales,
                                  .bytes = groups * sizeof *scales};
  TOOL_TRY(rondo_weights_add(to, &weight));
  return rondo_weights_add(to, &of_scales);
}

static rondo_status quantize_one(const language_model *model, const rondo_weight *from, bool transpose,
                                 const stored_parameter *stored, float *matrix, void *values, float *scales,
                                 rondo_weights *to) {
  const rondo_quantized_options options = options_of(model);
  const size_t rows = from->shape[transpose ? 1 : 0], columns = from->shape[transpose ? 0 : 1];
  const float *data = from->data;
  for (size_t i = 0; i < rows * columns; i++) matrix[i] = transpose ? data[i % columns * rows + i / columns] : data[i];
  TOOL_TRY(rondo_quantize(matrix, rows, columns, &options, values, scales, NULL));
  return add_quantized(to, from->name, stored, values, scales);
}

static int add_parameter(const char *path, const language_model *model, size_t index, const model_parameter *p,
                         const rondo_weights *weights, rondo_weights *to) {
  rondo_weight from;
  stored_parameter stored;
  if (model_stored_parameter(model, index, p, &stored) || rondo_weights_find(weights, p->name, &from))
    return tool_fail_status("%s", path);
  if (stored.scales[0] == 0) return rondo_weights_add(to, &from) ? tool_fail_status("%s", path) : TOOL_OK;
  float *matrix = malloc(from.bytes), *scales = calloc(stored.scales[0] * stored.scales[1], sizeof *scales);
  void *values = calloc(stored.shape[0], stored.shape[1]);
  int result = TOOL_OK;
  if (!matrix || !scales || !values)
    result = tool_fail_memory("the quantised '%s'", p->name);
  else if (quantize_one(model, &from, !is_table(model, index), &stored, matrix, values, scales, to))
    result = tool_fail_status("%s: '%s' cannot be quantised", path, p->name);
  free(matrix);
  free(scales);
  free(values);
  return result;
}

int model_quantize(const char *path, const rondo_weights *weights, const language_model *quantized,
                   rondo_weights **out) {
  model_parameter p;
  int result = TOOL_OK;
  if (rondo_weights_create(NULL, out)) return tool_fail_status("the quantised model");
  if (model_describe(quantized, *out)) result = tool_fail_status("the quantised model");
  for (size_t i = 0; result == TOOL_OK && quantized->kind->parameter(quantized, i, &p); i++)
    result = add_parameter(path, quantized, i, &p, weights, *out);
  if (result == TOOL_OK) return TOOL_OK;
  rondo_weights_destroy(*out);
  *out = NULL;
  return result;
}

/* Metadata -------------------------------------------------------------------------------------------------------- */

rondo_status model_describe_quantization(const language_model *model, rondo_weights *weights) {
  char group[24];
  if (model->quantization.bits == 0) return RONDO_OK;
  (void)snprintf(group, sizeof group, "%zu", model->quantization.group);
  TOOL_TRY(rondo_weights_set_metadata(weights, "quantization", model_quantized_name(model->quantization.bits)));
  TOOL_TRY(rondo_weights_set_metadata(weights, "group", group));
  return rondo_weights_set_metadata(weights, "activations", activation_names[model->quantization.activations]);
}

int model_read_quantization(const char *path, const rondo_weights *weights, language_model *out) {
  const char *name = rondo_weights_get_metadata(weights, "quantization");
  const char *group = rondo_weights_get_metadata(weights, "group");
  const char *activations = rondo_weights_get_metadata(weights, "activations");
  out->quantization = (model_quantization){.bits = 0};
  if (!name) return TOOL_OK;
  out->quantization.bits = model_quantized_bits(name);
  if (out->quantization.bits == 0)
    return tool_fail("%s: the quantization in its metadata is '%s', not int8 or int4", path, name);
  const size_t digits = group ? strspn(group, "0123456789") : 0;
  out->quantization.group = digits > 0 && digits < 10 ? strtoul(group, NULL, 10) : 1;
  if (out->quantization.group % 32 != 0 || group[digits] != '\0')
    return tool_fail("%s: the group in its metadata is '%s', not a multiple of 32", path, group ? group : "");
  if (activations && model_find_activations(activations, &out->quantization.activations)) return TOOL_OK;
  return tool_fail("%s: the activations in its metadata are '%s', not float or int8", path,
                   activations ? activations : "");
}
