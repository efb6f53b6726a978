/* SPDX-License-Identifier: MIT
 * Models to serve, and memory for their requests.
 */
#include "serve/served_model.h"

#include <stdlib.h>
#include <string.h>

#include "common/tool.h"
#include "onnx/served_onnx.h"

enum { ALIGNMENT = 64 };

int served_model_open_built_in(const char *name, const recommender *built_in, uint64_t seed, served_model *out) {
  *out = (served_model){.name = name, .built_in = *built_in, .build = recommender_build, .hint = ""};
  out->user = &out->built_in;
  if (recommender_weights(built_in, seed, &out->own_weights)) return tool_fail_status("the weights of '%s'", name);
  out->weights = out->own_weights;
  return TOOL_OK;
}

void served_model_drop_weights(served_model *model) {
  rondo_weights_destroy(model->own_weights);
  if (model->own_weights) model->weights = NULL;
  model->own_weights = NULL;
}

/* Values ----------------------------------------------------------------------------------------------------------- */

typedef rondo_status (*get_value)(rondo_session *session, const char *model, size_t index, rondo_model_value *out);

static int find_values(served_model *model, rondo_session *session, int which, get_value get) {
  rondo_model_info info = {.struct_size = sizeof info};
  if (rondo_session_get_model_info(session, model->name, &info)) return tool_fail_status("model '%s'", model->name);
  model->counts[which] = which == SERVED_INPUTS ? info.inputs : info.outputs;
  for (size_t i = 0; i < model->counts[which]; i++) {
    rondo_model_value *value = &model->values[which][i];
    value->struct_size = sizeof *value;
    if (get(session, model->name, i, value)) return tool_fail_status("model '%s'", model->name);
  }
  return TOOL_OK;
}

int served_model_find_values(served_model *model, rondo_session *session) {
  const int result = find_values(model, session, SERVED_INPUTS, rondo_session_get_input);
  return result == TOOL_OK ? find_values(model, session, SERVED_OUTPUTS, rondo_session_get_output) : result;
}

size_t served_model_bytes(const rondo_model_value *value, size_t rows, size_t length) {
  return rows * (value->position_bytes > 0 ? value->position_bytes * length : value->row_bytes);
}

/* Inputs ----------------------------------------------------------------------------------------------------------- */

static int make_file_inputs(served_model *model, rondo_device *device, size_t rows, uint64_t seed) {
  for (size_t i = 0; i < model->counts[SERVED_INPUTS]; i++) {
    const rondo_model_value *value = &model->values[SERVED_INPUTS][i];
    if (rondo_host_malloc(device, served_model_bytes(value, rows, model->longest), &model->memory[i]))
      return tool_fail_status("memory for %zu rows of input '%s'", rows, value->name);
    model->inputs[i] = model->memory[i];
    if (served_onnx_fill_input(model, value, rows, seed + i, model->memory[i]) != TOOL_OK) return TOOL_FAILURE;
  }
  return TOOL_OK;
}

int served_model_make_inputs(served_model *model, rondo_device *device, size_t rows, uint64_t seed) {
  model->device = device;
  if (model->file) return make_file_inputs(model, device, rows, seed);
  if (recommender_inputs_create(&model->built_in, device, rows, seed, &model->built_in_inputs) != TOOL_OK)
    return TOOL_FAILURE;
  memcpy(model->inputs, model->built_in_inputs.inputs, sizeof model->built_in_inputs.inputs);
  return TOOL_OK;
}

int served_model_close(served_model *model) {
  int result = recommender_inputs_destroy(&model->built_in_inputs);
  for (size_t i = 0; i < RONDO_SESSION_MAX_VALUES; i++)
    if (model->memory[i] && rondo_host_free(model->device, model->memory[i]))
      result = tool_fail_status("freeing the inputs");
  served_model_drop_weights(model);
  if (served_onnx_close(model->file) != TOOL_OK) result = TOOL_FAILURE;
  *model = (served_model){.name = model->name};
  return result;
}

/* Outputs ---------------------------------------------------------------------------------------------------------- */

void *served_model_make_outputs(const served_model *model, size_t rows, void *out[RONDO_SESSION_MAX_VALUES]) {
  size_t at[RONDO_SESSION_MAX_VALUES], bytes = 0;
  for (size_t i = 0; i < model->counts[SERVED_OUTPUTS]; i++) {
    at[i] = bytes;
    const size_t value_bytes = served_model_bytes(&model->values[SERVED_OUTPUTS][i], rows, model->longest);
    bytes += (value_bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  }
  char *memory = malloc(bytes > 0 ? bytes : 1);
  for (size_t i = 0; i < model->counts[SERVED_OUTPUTS] && memory; i++) out[i] = memory + at[i];
  return memory;
}

/* Without rondo-onnx ----------------------------------------------------------------------------------------------- */

#ifndef RONDO_TOOL_ONNX

int served_onnx_open(const char *path, const served_onnx_settings *settings, served_model *out) {
  (void)settings;
  *out = (served_model){.name = path};
  return tool_fail_without_onnx();
}

int served_onnx_fill_input(const served_model *model, const rondo_model_value *value, size_t rows, uint64_t seed,
                           void *out) {
  (void)model, (void)value, (void)rows, (void)seed, (void)out;
  return TOOL_FAILURE; /* there is no such model */
}

int served_onnx_close(served_onnx *model) {
  (void)model;
  return TOOL_OK;
}

#endif
