/* SPDX-License-Identifier: MIT
 * A model in an ONNX file, its inputs, and its compiled program.
 */
#define _POSIX_C_SOURCE 200809L
#include "onnx/onnx_program.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/timing.h"
#include "common/tool.h"
#include "onnx/npy_file.h"
#include "onnx/onnx_parts.h"

static double seconds_since(uint64_t begin) { return (double)(clock_ns() - begin) / 1e9; }

/* Files of values -------------------------------------------------------------------------------------------------- */

const char *onnx_file_name(const char *value, char out[ONNX_FILE_NAME]) {
  static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  size_t length = 0;
  for (; value[length] != '\0' && length + 1 < ONNX_FILE_NAME - 8; length++) {
    const bool hides = length == 0 && value[0] == '.';
    out[length] = strchr(plain, value[length]) && !hides ? value[length] : '_';
  }
  out[length] = '\0';
  return out;
}

bool onnx_find_file(const char *folder, const char *kind, const char *name, size_t index, char out[ONNX_PATH]) {
  char file[ONNX_FILE_NAME];
  snprintf(out, ONNX_PATH, "%s/%s.npy", folder, onnx_file_name(name, file));
  if (access(out, F_OK) == 0) return true;
  snprintf(out, ONNX_PATH, "%s/%s_%zu.pb", folder, kind, index);
  return access(out, F_OK) == 0;
}

const char *onnx_write_type(const rondo_onnx_value *value, char out[ONNX_TYPE_TEXT]) {
  size_t at = 0, nested = 0;
  out[0] = '\0';
  for (; value && at + 1 < ONNX_TYPE_TEXT / 2; value = value->element, nested++)
    at += (size_t)snprintf(out + at, ONNX_TYPE_TEXT - at, "%s%.20s", nested > 0 ? "(" : "", value->type_name);
  for (; nested > 1 && at + 1 < ONNX_TYPE_TEXT; nested--) out[at++] = ')';
  out[at] = '\0';
  return out;
}

const char *onnx_write_dimensions(const rondo_onnx_value *value, char out[SHAPE_TEXT]) {
  size_t at = 1;
  while (value->element) value = value->element;
  if (!value->has_shape) return "unknown";
  strcpy(out, "[");
  for (size_t i = 0; i < value->rank && at < SHAPE_TEXT - 2; i++) {
    const rondo_onnx_dimension *dimension = &value->dimensions[i];
    const char *comma = i > 0 ? ", " : "", *name = dimension->name[0] != '\0' ? dimension->name : "?";
    const int length = dimension->is_dynamic ? snprintf(out + at, SHAPE_TEXT - at, "%s%s", comma, name)
                                             : snprintf(out + at, SHAPE_TEXT - at, "%s%zu", comma, dimension->size);
    at += (size_t)length;
  }
  if (at > SHAPE_TEXT - 2) at = SHAPE_TEXT - 2;
  strcpy(out + at, "]");
  return out;
}

/* Loading ---------------------------------------------------------------------------------------------------------- */

int onnx_program_load(const char *path, onnx_program *out) {
  *out = (onnx_program){.path = path,
                        .info = {.struct_size = sizeof out->info},
                        .built = {.struct_size = sizeof out->built},
                        .memory = {.struct_size = sizeof out->memory}};
  const uint64_t begin = clock_ns();
  tool_show_progress("reading %s", path);
  if (rondo_onnx_load(path, NULL, &out->model) || rondo_onnx_get_info(out->model, &out->info))
    return tool_fail_status("%s", path);
  out->load_seconds = seconds_since(begin);
  return TOOL_OK;
}

int onnx_program_fail(const onnx_program *of, const char *what) {
  return tool_fail("%s: %s%s", what, rondo_last_error()->message, of->hint);
}

/* Building --------------------------------------------------------------------------------------------------------- */

rondo_onnx_given_input onnx_program_give_input(const onnx_input *input, size_t *inout_values) {
  enum { MOST_VALUES = 63 };
  static const size_t none[1] = {0};
  const rondo_onnx_value *value = &input->value;
  const bool has_type = value->has_type || strcmp(value->type_name, "double") == 0;
  const bool has_value = input->has_tensor && input->is_file && has_type;
  const bool gives_value = has_value && (*inout_values)++ < MOST_VALUES;
  return (rondo_onnx_given_input){.name = value->name,
                                  .shape = input->tensor.rank > 0 ? input->tensor.shape : none,
                                  .rank = input->tensor.rank,
                                  .data = gives_value ? input->tensor.data : NULL,
                                  .bytes = gives_value ? input->tensor.bytes : 0};
}

static size_t give_inputs(const onnx_program *of, rondo_onnx_given_input *out) {
  size_t count = 0, values = 0;
  for (size_t i = 0; i < of->input_count; i++)
    if (of->inputs[i].has_tensor || of->inputs[i].has_shape)
      out[count++] = onnx_program_give_input(&of->inputs[i], &values);
  return count;
}

static int fail_unsupported(const onnx_program *of, rondo_status status) {
  if (status != RONDO_UNSUPPORTED) return onnx_program_fail(of, of->path);
  return tool_fail("%s: %s; 'rondo info' lists all of them%s", of->path, rondo_last_error()->message, of->hint);
}

/* Whether all that is not supported runs in parts. */
static bool needs_parts(const onnx_program *of) {
  rondo_onnx_unsupported item = {.struct_size = sizeof item};
  size_t count = 0;
  for (; of->build && rondo_onnx_build_get_unsupported(of->build, count, &item) == RONDO_OK; count++)
    if (!item.needs_data) return false;
  return count > 0;
}

bool onnx_program_is_cuda(const rondo_device *device) {
  rondo_device_info info = {.struct_size = sizeof info};
  return device && rondo_device_get_info(device, &info) == RONDO_OK && info.cuda;
}

int onnx_program_build(onnx_program *of, const rondo_device *device, bool lists_unsupported) {
  const uint64_t begin = clock_ns();
  tool_show_progress("building the program of %zu nodes", of->info.nodes);
  rondo_onnx_given_input *given = calloc(of->input_count + 1, sizeof *given);
  if (!given) return tool_fail_memory("the inputs");
  const rondo_onnx_build_options options = {RONDO_ONNX_BUILD_OPTIONS_INIT,
                                            .for_cuda = onnx_program_is_cuda(device),
                                            .inputs = given,
                                            .input_count = give_inputs(of, given),
                                            .dimensions = of->lengths,
                                            .dimension_count = of->length_count};
  rondo_status status = rondo_program_create(NULL, &of->program);
  if (!status) status = rondo_onnx_build_program(of->model, &options, of->program, &of->build);
  free(given);
  of->build_seconds = seconds_since(begin);
  of->needs_parts = status == RONDO_UNSUPPORTED && needs_parts(of);
  const bool may_go_on = of->needs_parts || (status == RONDO_UNSUPPORTED && lists_unsupported && of->build);
  if (status && !may_go_on) return fail_unsupported(of, status);
  return rondo_onnx_build_get_info(of->build, &of->built) ? tool_fail_status("%s", of->path) : TOOL_OK;
}

/* Compiling -------------------------------------------------------------------------------------------------------- */

/* Whether an output depends on a run. */
static bool has_program_output(const onnx_program *of) {
  rondo_onnx_built_value value = {.struct_size = sizeof value};
  for (size_t i = 0; i < of->built.outputs; i++)
    if (rondo_onnx_build_get_output(of->build, i, &value) == RONDO_OK && value.program_name) return true;
  return false;
}

int onnx_program_compile(onnx_program *of, rondo_device *device, const rondo_compile_options *options) {
  const uint64_t begin = clock_ns();
  if (of->needs_parts) return onnx_parts_open(of, device, options);
  if (!has_program_output(of)) return TOOL_OK;
  tool_show_progress("compiling %zu nodes", of->built.nodes);
  if (rondo_compile(of->program, device, options, &of->compiled)) return onnx_program_fail(of, of->path);
  tool_show_progress("loading %" PRIu64 " MB of weights", of->built.state_bytes / 1000000);
  if (rondo_onnx_build_move_weights(of->build, of->compiled)) return tool_fail_status("the weights");
  const int result = onnx_program_write_inputs(of);
  of->compile_seconds = seconds_since(begin);
  if (result != TOOL_OK) return result;
  return rondo_compiled_get_info(of->compiled, &of->memory) ? tool_fail_status("%s", of->path) : TOOL_OK;
}

static int write_tensor(const onnx_program *of, const rondo_onnx_built_value *built, const host_tensor *tensor) {
  return rondo_compiled_write(of->compiled, built->program_name, tensor->data, tensor->bytes)
             ? tool_fail_status("input '%s'", built->name)
             : TOOL_OK;
}

/* Doubles are F32 in the program. */
static int write_narrow(const onnx_program *of, const rondo_onnx_built_value *built, const host_tensor *tensor) {
  host_tensor narrow;
  if (host_tensor_create(built->name, RONDO_F32, tensor->shape, tensor->rank, &narrow) != TOOL_OK) return TOOL_FAILURE;
  for (size_t i = 0; i < tensor->count; i++) ((float *)narrow.data)[i] = (float)host_tensor_at(tensor, i);
  const int result = write_tensor(of, built, &narrow);
  host_tensor_destroy(&narrow);
  return result;
}

int onnx_program_write_inputs(const onnx_program *of) {
  rondo_onnx_built_value built = {.struct_size = sizeof built};
  int result = TOOL_OK;
  for (size_t i = 0; i < of->built.inputs && result == TOOL_OK && of->compiled; i++) {
    const host_tensor *tensor = &of->inputs[i].tensor;
    if (rondo_onnx_build_get_input(of->build, i, &built)) return tool_fail_status("%s", of->path);
    if (!built.program_name || !of->inputs[i].has_tensor) continue;
    result = built.is_double ? write_narrow(of, &built, tensor) : write_tensor(of, &built, tensor);
  }
  return result;
}

int onnx_program_run(const onnx_program *of, bool eager) {
  if (of->parts) return onnx_parts_run(of);
  if (!of->compiled) return TOOL_OK;
  rondo_status status = eager ? rondo_compiled_run_eager(of->compiled) : rondo_compiled_run(of->compiled);
  if (!status) status = rondo_compiled_synchronize(of->compiled);
  return status ? onnx_program_fail(of, "the run") : TOOL_OK;
}

/* Outputs ---------------------------------------------------------------------------------------------------------- */

/* Reads an output of the program. If its size depends on data, what is not used is cut off. */
static int read_computed(const onnx_program *of, const rondo_onnx_built_value *built, host_tensor *out) {
  int64_t count = 0;
  if (rondo_compiled_read(of->compiled, built->program_name, out->data, out->bytes))
    return tool_fail_status("output '%s'", built->name);
  if (!built->count_name) return TOOL_OK;
  if (rondo_compiled_read(of->compiled, built->count_name, &count, sizeof count))
    return tool_fail_status("the size of output '%s'", built->name);
  host_tensor_cut(out, built->counted_dimension, count > 0 ? (size_t)count : 0);
  return TOOL_OK;
}

size_t onnx_program_outputs(const onnx_program *of) { return of->parts ? of->info.outputs : of->built.outputs; }

int onnx_program_read_output(const onnx_program *of, size_t index, onnx_output *out) {
  if (of->parts) return onnx_parts_read_output(of, index, out);
  rondo_onnx_built_value built = {.struct_size = sizeof built};
  if (rondo_onnx_build_get_output(of->build, index, &built)) return tool_fail_status("%s", of->path);
  *out = (onnx_output){.name = built.name,
                       .type_name = built.type_name,
                       .value_index = built.value_index,
                       .element_index = built.element_index};
  const rondo_type type = built.type;
  out->is_shown = rondo_type_bytes(type) > 0 && built.rank <= RONDO_MAX_DIMENSIONS &&
                  (built.program_name || built.data || built.bytes == 0);
  if (!out->is_shown) return TOOL_OK;
  if (host_tensor_create(built.name, type, built.shape, built.rank, &out->tensor) != TOOL_OK) return TOOL_FAILURE;
  if (built.program_name) return read_computed(of, &built, &out->tensor);
  if (built.bytes != out->tensor.bytes)
    return tool_fail("output '%s' has %zu bytes, not %zu", built.name, built.bytes, out->tensor.bytes);
  if (built.bytes > 0) memcpy(out->tensor.data, built.data, built.bytes);
  return TOOL_OK;
}

/* Whether an earlier output has the same name of a file. */
static bool is_taken(const onnx_program *of, size_t index, const char *name) {
  char other[ONNX_FILE_NAME];
  rondo_onnx_built_value built = {.struct_size = sizeof built};
  for (size_t i = 0; i < index; i++)
    if (!rondo_onnx_build_get_output(of->build, i, &built) && strcmp(onnx_file_name(built.name, other), name) == 0)
      return true;
  return false;
}

int onnx_program_write_output(const onnx_program *of, size_t index, const onnx_output *output, const char *folder) {
  char path[ONNX_PATH], name[ONNX_FILE_NAME], number[32] = "";
  if (mkdir(folder, 0777) != 0 && errno != EEXIST) return tool_fail("--output: %s: %s", folder, strerror(errno));
  if (!output->is_shown) return TOOL_OK;
  onnx_file_name(output->name, name);
  if (is_taken(of, index, name)) snprintf(number, sizeof number, ".%zu", index);
  snprintf(path, sizeof path, "%s/%s%s.npy", folder, name, number);
  return npy_write(path, &output->tensor);
}

void onnx_program_to_json(const onnx_program *of, json *out) {
  json_text(out, "model", of->path);
  json_integer(out, "nodes", of->built.nodes);
  json_integer(out, "parameters", of->info.parameters);
  json_real(out, "load_seconds", of->load_seconds);
  json_real(out, "build_seconds", of->build_seconds);
  json_real(out, "compile_seconds", of->compile_seconds);
  json_integer(out, "operators", of->memory.operators);
  json_integer(out, "kernels", of->memory.kernels);
}

int onnx_program_destroy(onnx_program *of) {
  int result = of->compiled && rondo_compiled_destroy(of->compiled) ? tool_fail_status("the program") : TOOL_OK;
  if (onnx_parts_close(of) != TOOL_OK) result = TOOL_FAILURE;
  rondo_onnx_build_destroy(of->build);
  rondo_program_destroy(of->program);
  onnx_program_free_inputs(of);
  rondo_onnx_destroy(of->model);
  return result;
}
