/* SPDX-License-Identifier: MIT
 * Reading of tensors by the names of their files.
 */
#include "onnx/tensor_read.h"

#include <string.h>

#include "common/tool.h"
#include "onnx/npy_file.h"

static bool ends_with(const char *text, const char *end) {
  const size_t length = strlen(text), tail = strlen(end);
  return length >= tail && strcmp(text + length - tail, end) == 0;
}

/* Elements of a type that programs lack become those of the wider type that holds them. */
static int copy_elements(const char *path, const rondo_onnx_tensor_file *file, const rondo_onnx_tensor_info *info,
                         host_tensor *out) {
  if (info->has_type) {
    if (info->bytes > 0) memcpy(out->data, info->data, out->bytes);
    return TOOL_OK;
  }
  return rondo_onnx_tensor_to_program(file, out->data, out->bytes) ? tool_fail_status("%s", path) : TOOL_OK;
}

static int copy_file(const char *path, const rondo_onnx_tensor_file *file, host_tensor *out) {
  rondo_onnx_tensor_info info = {.struct_size = sizeof info};
  if (rondo_onnx_tensor_get_info(file, &info)) return tool_fail_status("%s", path);
  const rondo_type type = info.has_type ? info.type : info.program_type;
  if (type == 0) return tool_fail("%s: it has the type %s, which programs do not have", path, info.type_name);
  if (host_tensor_create(path, type, info.shape, info.rank, out) != TOOL_OK) return TOOL_FAILURE;
  const int result = copy_elements(path, file, &info, out);
  if (result != TOOL_OK) host_tensor_destroy(out);
  return result;
}

/* Element `index` of a file of `value`. */
static int read_onnx(const char *path, const rondo_onnx_value *value, size_t index, host_tensor *out,
                     bool *out_exists) {
  rondo_onnx_tensor_file *file = NULL;
  const rondo_status status = rondo_onnx_tensor_load_element(path, value, index, NULL, &file);
  *out_exists = status != RONDO_NOT_FOUND || rondo_last_error()->reason != RONDO_REASON_OUT_OF_RANGE;
  if (!*out_exists) return TOOL_OK;
  if (status) return tool_fail_status("%s", path);
  const int result = copy_file(path, file, out);
  rondo_onnx_tensor_destroy(file);
  return result;
}

int tensor_read(const char *path, host_tensor *out) {
  const rondo_onnx_value tensor = {.struct_size = sizeof tensor, .name = "", .type_name = "unknown"};
  bool exists;
  return tensor_read_element(path, &tensor, 0, out, &exists);
}

int tensor_read_element(const char *path, const rondo_onnx_value *value, size_t index, host_tensor *out,
                        bool *out_exists) {
  *out = (host_tensor){0};
  *out_exists = !ends_with(path, ".npy") || index == 0;
  if (!*out_exists) return TOOL_OK;
  if (ends_with(path, ".npy")) return npy_read(path, out);
  if (ends_with(path, ".pb")) return read_onnx(path, value, index, out, out_exists);
  return tool_fail("%s: tensors are read from files whose names end in .npy (NumPy) or .pb (ONNX)", path);
}
