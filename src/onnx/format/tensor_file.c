/* SPDX-License-Identifier: MIT
 * Files with one tensor: inputs and expected outputs beside models.
 */
#include <string.h>

#include "base/error.h"
#include "base/versioned_struct.h"
#include "onnx/format/onnx_model.h"
#include "onnx/format/widened_elements.h"

struct rondo_onnx_tensor_file {
  rondo_allocator allocator;
  rondo_scratch scratch;
  rondo_file_mapping mapping;
  rondo_onnx_tensor_info info;
  rondo_onnx_type type;
};

void rondo_onnx_tensor_destroy(rondo_onnx_tensor_file *tensor) {
  if (tensor == NULL) return;
  const rondo_allocator allocator = tensor->allocator;
  rondo_scratch_free(&tensor->scratch);
  rondo_file_unmap(&tensor->mapping);
  rondo_release(&allocator, tensor, 1, sizeof *tensor);
}

/* Elements are copied: those of a file are not aligned. */
static rondo_status describe(rondo_onnx_tensor_file *tensor, const rondo_onnx_tensor *read) {
  size_t *shape;
  unsigned char *elements;
  RONDO_TRY(rondo_scratch_take(&tensor->scratch, read->rank, sizeof *shape, &shape));
  RONDO_TRY(rondo_scratch_take(&tensor->scratch, read->strings != NULL ? 0 : read->bytes, 1, &elements));
  for (size_t i = 0; i < read->rank; i++) shape[i] = (size_t)read->dims[i];
  if (elements != NULL) memcpy(elements, read->elements, read->bytes);
  tensor->info = (rondo_onnx_tensor_info){.name = read->name,
                                          .type_name = rondo_onnx_type_name((int32_t)read->type),
                                          .rank = read->rank,
                                          .shape = shape,
                                          .count = read->count,
                                          .data = elements,
                                          .bytes = elements != NULL ? read->bytes : 0};
  tensor->info.has_type = rondo_onnx_find_type((int32_t)read->type, &tensor->info.type);
  tensor->info.program_type = rondo_onnx_program_type_of((int32_t)read->type);
  tensor->type = read->type;
  return RONDO_OK;
}

static rondo_status load(rondo_onnx_tensor_file *tensor, const char *path) {
  ProtobufCMessage *message;
  rondo_onnx_tensor read;
  RONDO_TRY(rondo_file_map(path, &tensor->mapping));
  const rondo_onnx_external_files none = {.allocator = tensor->allocator};
  rondo_onnx_external_files external = none; /* without a folder: none are read */
  const rondo_onnx_data_source source = {
      .scratch = &tensor->scratch, .file = tensor->mapping.bytes, .external = &external};
  RONDO_TRY(rondo_onnx_read_message(&tensor->scratch, tensor->mapping.bytes, tensor->mapping.count,
                                    &rondo_onnx__tensor__descriptor, &message));
  const rondo_status status = rondo_onnx_read_tensor(&source, (const RondoOnnx__Tensor *)message, &read);
  rondo_onnx_external_files_free(&external);
  return status == RONDO_OK ? describe(tensor, &read) : status;
}

rondo_status rondo_onnx_tensor_load(const char *path, const rondo_onnx_options *options,
                                    rondo_onnx_tensor_file **out_tensor) {
  static const char call[] = "rondo_onnx_tensor_load";
  rondo_onnx_options known;
  rondo_allocator allocator;
  rondo_onnx_tensor_file *tensor;
  RONDO_TRY(rondo_require(call, "out_tensor", out_tensor));
  *out_tensor = NULL;
  RONDO_TRY(rondo_require(call, "path", path));
  RONDO_TRY(RONDO_VERSIONED_READ("rondo_onnx_options", options, &known));
  RONDO_TRY(rondo_allocator_resolve(known.allocator, &allocator));
  RONDO_TRY(rondo_allocate_items(&allocator, 1, sizeof *tensor, &tensor));
  tensor->allocator = allocator;
  tensor->scratch.allocator = &tensor->allocator;
  const rondo_status status = load(tensor, path);
  if (status == RONDO_OK)
    *out_tensor = tensor;
  else
    rondo_onnx_tensor_destroy(tensor);
  return rondo_fail_context(status, "the ONNX tensor '%s'", path);
}

rondo_status rondo_onnx_tensor_get_info(const rondo_onnx_tensor_file *tensor, rondo_onnx_tensor_info *out_info) {
  RONDO_TRY(rondo_require("rondo_onnx_tensor_get_info", "tensor", tensor));
  RONDO_TRY(rondo_require("rondo_onnx_tensor_get_info", "out_info", out_info));
  return rondo_versioned_write("rondo_onnx_tensor_info", &tensor->info, out_info, sizeof *out_info);
}

rondo_status rondo_onnx_tensor_to_program(const rondo_onnx_tensor_file *tensor, void *out_elements, size_t bytes) {
  static const char call[] = "rondo_onnx_tensor_to_program";
  RONDO_TRY(rondo_require(call, "tensor", tensor));
  RONDO_TRY(rondo_require(call, "out_elements", out_elements));
  const rondo_onnx_tensor_info *info = &tensor->info;
  if (info->program_type == 0)
    return rondo_fail(RONDO_UNSUPPORTED, RONDO_REASON_TYPE, "%s: programs have no values of the type '%s'", call,
                      info->type_name);
  if (bytes / rondo_type_bytes(info->program_type) != info->count || bytes % rondo_type_bytes(info->program_type) != 0)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_SIZE,
                      "%s: there are %zu bytes for %zu elements of the type %s", call, bytes, info->count,
                      rondo_type_name(info->program_type));
  if (rondo_onnx_widened_type(tensor->type) != 0)
    rondo_onnx_widen(tensor->type, info->data, info->count, out_elements);
  else if (bytes > 0)
    memcpy(out_elements, info->data, bytes);
  return RONDO_OK;
}
