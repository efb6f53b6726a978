/* SPDX-License-Identifier: MIT
 * A model that runs in parts.
 */
#include "onnx/onnx_parts.h"

#include <stdlib.h>
#include <string.h>

#include "common/tool.h"

struct onnx_parts {
  rondo_device *device;
  rondo_stream *stream;
  rondo_tree *tree;
  rondo_onnx_runner *runner;
  rondo_function *function;
  rondo_input *inputs;    /* of calls: as many as the model's, in device memory */
  rondo_buffer **outputs; /* of the last run */
  size_t output_count;
};

/* Inputs ----------------------------------------------------------------------------------------------------------- */

/* Copies an input to the device, as the type that programs have. */
static int place_input(const struct onnx_parts *parts, const onnx_input *from, rondo_input *out) {
  const rondo_onnx_value *value = &from->value;
  host_tensor narrow = {0};
  const host_tensor *tensor = &from->tensor;
  if (!from->has_tensor || value->program_type == 0)
    return tool_fail("input '%s': programs do not have the type %s", value->name, value->type_name);
  if (tensor->type == RONDO_F64) {
    if (host_tensor_create(value->name, RONDO_F32, tensor->shape, tensor->rank, &narrow) != TOOL_OK)
      return TOOL_FAILURE;
    for (size_t i = 0; i < tensor->count; i++) ((float *)narrow.data)[i] = (float)host_tensor_at(tensor, i);
    tensor = &narrow;
  }
  *out = (rondo_input){.bytes = tensor->bytes, .type = (uint32_t)tensor->type, .rank = (uint32_t)tensor->rank};
  memcpy(out->shape, tensor->shape, tensor->rank * sizeof *tensor->shape);
  rondo_status status = RONDO_OK;
  if (tensor->bytes > 0) {
    status = rondo_malloc(parts->device, tensor->bytes, value->name, &out->address);
    if (!status) status = rondo_copy_async(parts->stream, out->address, tensor->data, tensor->bytes);
    if (!status) status = rondo_stream_synchronize(parts->stream);
  }
  host_tensor_destroy(&narrow);
  return status ? tool_fail_status("input '%s'", value->name) : TOOL_OK;
}

static int place_inputs(const onnx_program *of) {
  int result = TOOL_OK;
  for (size_t i = 0; i < of->input_count && result == TOOL_OK; i++)
    result = place_input(of->parts, &of->inputs[i], &of->parts->inputs[i]);
  return result;
}

/* Opening ---------------------------------------------------------------------------------------------------------- */

/* Calls have all values, so the options have shapes alone. */
static int make_runner(const onnx_program *of, const rondo_compile_options *options) {
  struct onnx_parts *parts = of->parts;
  rondo_onnx_given_input *given = calloc(of->input_count + 1, sizeof *given);
  if (!given) return tool_fail_memory("the inputs");
  for (size_t i = 0; i < of->input_count; i++) {
    size_t values = 0;
    given[i] = onnx_program_give_input(&of->inputs[i], &values);
    given[i].data = NULL;
    given[i].bytes = 0;
  }
  const rondo_onnx_build_options build = {RONDO_ONNX_BUILD_OPTIONS_INIT, .inputs = given,
                                          .input_count = of->input_count, .dimensions = of->lengths,
                                          .dimension_count = of->length_count};
  const rondo_onnx_runner_options runner = {RONDO_ONNX_RUNNER_OPTIONS_INIT, .build = &build, .compile = options};
  const rondo_status status = rondo_onnx_runner_create(of->model, parts->stream, &runner, &parts->runner);
  free(given);
  return status ? onnx_program_fail(of, of->path) : TOOL_OK;
}

static int make_function(const onnx_program *of) {
  struct onnx_parts *parts = of->parts;
  uint32_t *kinds = calloc(of->input_count + 1, sizeof *kinds);
  if (!kinds) return tool_fail_memory("the inputs");
  for (size_t i = 0; i < of->input_count; i++) kinds[i] = RONDO_INPUT_MOVING;
  const rondo_function_options options = {RONDO_FUNCTION_OPTIONS_INIT, .name = "model", .body = rondo_onnx_run,
                                          .user = parts->runner,       .inputs = kinds, .input_count = of->input_count};
  const rondo_status status = rondo_function_create(parts->tree, &options, &parts->function);
  free(kinds);
  return status ? tool_fail_status("the tree") : TOOL_OK;
}

/* How many elements a list has is known only where the model says it. */
static int check_outputs(const onnx_program *of) {
  rondo_onnx_value value = {.struct_size = sizeof value};
  for (size_t i = 0; rondo_onnx_get_output(of->model, i, &value) == RONDO_OK; i++)
    if (value.element)
      return tool_fail("%s: shapes in it depend on data, and output '%s' is no tensor: make it several outputs",
                       of->path, value.name);
  return TOOL_OK;
}

int onnx_parts_open(onnx_program *of, rondo_device *device, const rondo_compile_options *options) {
  if (check_outputs(of) != TOOL_OK) return TOOL_FAILURE;
  struct onnx_parts *parts = of->parts = calloc(1, sizeof *parts);
  if (!parts) return tool_fail_memory("the parts");
  parts->device = device;
  parts->output_count = of->info.outputs;
  parts->inputs = calloc(of->input_count + 1, sizeof *parts->inputs);
  parts->outputs = calloc(parts->output_count + 1, sizeof(rondo_buffer *));
  if (!parts->inputs || !parts->outputs) return tool_fail_memory("the parts");
  if (rondo_stream_create(device, NULL, &parts->stream) || rondo_tree_create(device, NULL, &parts->tree))
    return tool_fail_status("the device");
  if (make_runner(of, options) != TOOL_OK || make_function(of) != TOOL_OK) return TOOL_FAILURE;
  return place_inputs(of);
}

static void release_outputs(struct onnx_parts *parts) {
  for (size_t i = 0; parts->outputs && i < parts->output_count; i++) {
    rondo_buffer_release(parts->outputs[i]);
    parts->outputs[i] = NULL;
  }
}

int onnx_parts_close(onnx_program *of) {
  struct onnx_parts *parts = of->parts;
  if (!parts) return TOOL_OK;
  release_outputs(parts);
  rondo_status status = rondo_tree_destroy(parts->tree);
  const rondo_status runner = rondo_onnx_runner_destroy(parts->runner);
  if (!status) status = runner;
  for (size_t i = 0; parts->inputs && i < of->input_count; i++) {
    const rondo_status freed = rondo_free(parts->device, parts->inputs[i].address);
    if (!status) status = freed;
  }
  const rondo_status stream = rondo_stream_destroy(parts->stream);
  if (!status) status = stream;
  free(parts->inputs);
  free(parts->outputs);
  free(parts);
  of->parts = NULL;
  return status ? tool_fail_status("the parts of the model") : TOOL_OK;
}

/* Runs ------------------------------------------------------------------------------------------------------------- */

int onnx_parts_run(const onnx_program *of) {
  struct onnx_parts *parts = of->parts;
  release_outputs(parts);
  rondo_status status = rondo_tree_mark_step(parts->tree);
  if (!status)
    status = rondo_function_call(parts->function, parts->stream, parts->inputs, of->input_count, parts->outputs,
                                 parts->output_count);
  if (!status) status = rondo_onnx_runner_synchronize(parts->runner);
  return status ? onnx_program_fail(of, "the run") : TOOL_OK;
}

int onnx_parts_read_output(const onnx_program *of, size_t index, onnx_output *out) {
  const struct onnx_parts *parts = of->parts;
  rondo_onnx_value value = {.struct_size = sizeof value};
  rondo_buffer_info info = {.struct_size = sizeof info};
  if (rondo_onnx_get_output(of->model, index, &value) || rondo_buffer_get_info(parts->outputs[index], &info))
    return tool_fail_status("the outputs");
  *out = (onnx_output){.name = value.name, .type_name = value.type_name, .value_index = index};
  out->is_shown = rondo_type_bytes((rondo_type)info.type) > 0 && info.rank <= RONDO_MAX_DIMENSIONS;
  if (!out->is_shown) return TOOL_OK;
  if (host_tensor_create(value.name, (rondo_type)info.type, info.shape, info.rank, &out->tensor) != TOOL_OK)
    return TOOL_FAILURE;
  rondo_status status = RONDO_OK;
  if (info.bytes > 0) {
    status = rondo_buffer_copy(parts->outputs[index], parts->stream, 0, out->tensor.data, out->tensor.bytes);
    if (!status) status = rondo_stream_synchronize(parts->stream);
  }
  return status ? tool_fail_status("output '%s'", value.name) : TOOL_OK;
}

int onnx_parts_to_json(const onnx_program *of, json *out) {
  rondo_onnx_runner_info info = {.struct_size = sizeof info};
  if (rondo_onnx_runner_get_info(of->parts->runner, &info)) return tool_fail_status("the parts of the model");
  json_integer(out, "parts", info.parts);
  json_integer(out, "waits", info.waits);
  json_integer(out, "handed_bytes", info.handed_bytes);
  return TOOL_OK;
}
