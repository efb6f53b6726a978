/* SPDX-License-Identifier: MIT
 * Tensors of files: inputs and expected outputs beside models. A file has one tensor, a sequence or an optional, and
 * does not say which.
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

/* Kinds of elements, in sequences and optionals alike. */
enum { ELEMENT_UNDEFINED = 0, ELEMENT_TENSOR = 1, ELEMENT_SEQUENCE = 3 };

static rondo_status check_elements(const char *what, int32_t kind, bool may_be_sequence) {
  if (kind == ELEMENT_UNDEFINED || kind == ELEMENT_TENSOR || (may_be_sequence && kind == ELEMENT_SEQUENCE))
    return RONDO_OK;
  return rondo_fail(RONDO_UNSUPPORTED, RONDO_REASON_TYPE, "%s has elements of kind %d, which are no tensors", what,
                    (int)kind);
}

static rondo_status fail_past_end(size_t index, size_t count) {
  return rondo_fail(RONDO_NOT_FOUND, RONDO_REASON_OUT_OF_RANGE, "there is no element %zu among the %zu", index, count);
}

static rondo_status find_in_sequence(const RondoOnnx__Sequence *sequence, size_t index, const RondoOnnx__Tensor **out) {
  RONDO_TRY(check_elements("the sequence", sequence->elem_type, false));
  if (index >= sequence->n_tensor_values) return fail_past_end(index, sequence->n_tensor_values);
  *out = sequence->tensor_values[index];
  return RONDO_OK;
}

static rondo_status find_in_optional(const RondoOnnx__Optional *optional, size_t index, const RondoOnnx__Tensor **out) {
  RONDO_TRY(check_elements("the optional", optional->elem_type, true));
  if (optional->sequence_value != NULL) return find_in_sequence(optional->sequence_value, index, out);
  const size_t count = optional->tensor_value != NULL;
  if (index >= count) return fail_past_end(index, count);
  *out = optional->tensor_value;
  return RONDO_OK;
}

static rondo_status find_tensor(rondo_onnx_tensor_file *tensor, const char *kind, size_t index,
                                const RondoOnnx__Tensor **out) {
  const bool is_sequence = strcmp(kind, "sequence") == 0, is_optional = strcmp(kind, "optional") == 0;
  const ProtobufCMessageDescriptor *descriptor = is_sequence   ? &rondo_onnx__sequence__descriptor
                                                 : is_optional ? &rondo_onnx__optional__descriptor
                                                               : &rondo_onnx__tensor__descriptor;
  ProtobufCMessage *message;
  if (!is_sequence && !is_optional && index > 0) return fail_past_end(index, 1);
  RONDO_TRY(
      rondo_onnx_read_message(&tensor->scratch, tensor->mapping.bytes, tensor->mapping.count, descriptor, &message));
  if (is_sequence) return find_in_sequence((const RondoOnnx__Sequence *)message, index, out);
  if (is_optional) return find_in_optional((const RondoOnnx__Optional *)message, index, out);
  *out = (const RondoOnnx__Tensor *)message;
  return RONDO_OK;
}

static rondo_status load(rondo_onnx_tensor_file *tensor, const char *path, const char *kind, size_t index) {
  const RondoOnnx__Tensor *found;
  rondo_onnx_tensor read;
  RONDO_TRY(rondo_file_map(path, &tensor->mapping));
  const rondo_onnx_external_files none = {.allocator = tensor->allocator};
  rondo_onnx_external_files external = none; /* without a folder: none are read */
  const rondo_onnx_data_source source = {
      .scratch = &tensor->scratch, .file = tensor->mapping.bytes, .external = &external};
  RONDO_TRY(find_tensor(tensor, kind, index, &found));
  const rondo_status status = rondo_onnx_read_tensor(&source, found, &read);
  rondo_onnx_external_files_free(&external);
  return status == RONDO_OK ? describe(tensor, &read) : status;
}

static rondo_status load_tensor(const char *call, const char *path, const char *kind, size_t index,
                                const rondo_onnx_options *options, rondo_onnx_tensor_file **out_tensor) {
  rondo_onnx_options known;
  rondo_allocator allocator;
  rondo_onnx_tensor_file *tensor;
  RONDO_TRY(rondo_require(call, "path", path));
  RONDO_TRY(RONDO_VERSIONED_READ("rondo_onnx_options", options, &known));
  RONDO_TRY(rondo_allocator_resolve(known.allocator, &allocator));
  RONDO_TRY(rondo_allocate_items(&allocator, 1, sizeof *tensor, &tensor));
  tensor->allocator = allocator;
  tensor->scratch.allocator = &tensor->allocator;
  const rondo_status status = load(tensor, path, kind, index);
  if (status == RONDO_OK)
    *out_tensor = tensor;
  else
    rondo_onnx_tensor_destroy(tensor);
  return rondo_fail_context(status, "the ONNX %s '%s'", kind, path);
}

rondo_status rondo_onnx_tensor_load(const char *path, const rondo_onnx_options *options,
                                    rondo_onnx_tensor_file **out_tensor) {
  static const char call[] = "rondo_onnx_tensor_load";
  RONDO_TRY(rondo_require(call, "out_tensor", out_tensor));
  *out_tensor = NULL;
  return load_tensor(call, path, "tensor", 0, options, out_tensor);
}

rondo_status rondo_onnx_tensor_load_element(const char *path, const rondo_onnx_value *value, size_t index,
                                            const rondo_onnx_options *options, rondo_onnx_tensor_file **out_tensor) {
  static const char call[] = "rondo_onnx_tensor_load_element";
  rondo_onnx_value known;
  RONDO_TRY(rondo_require(call, "out_tensor", out_tensor));
  *out_tensor = NULL;
  RONDO_TRY(rondo_require(call, "value", value));
  RONDO_TRY(rondo_versioned_read("rondo_onnx_value", value, &known, sizeof known));
  RONDO_TRY(rondo_require(call, "value->type_name", known.type_name));
  const bool is_list = strcmp(known.type_name, "sequence") == 0 || strcmp(known.type_name, "optional") == 0;
  return load_tensor(call, path, is_list ? known.type_name : "tensor", index, options, out_tensor);
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
