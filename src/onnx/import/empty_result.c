/* SPDX-License-Identifier: MIT
 * Shapes of results without elements.
 */
#include "onnx/import/empty_result.h"

#include <string.h>

#include "base/error.h"
#include "onnx/import/constant.h"
#include "onnx/import/folding.h"

/* Zeros in place of a value, with `size` in place of sizes of 0. Constants stay, because shapes may depend on them. */
static rondo_status replace_input(rondo_onnx_importer *importer, size_t size, rondo_onnx_import_value *inout) {
  static const unsigned char zero[16] = {0};
  rondo_onnx_shape shape = inout->shape;
  rondo_onnx_constant *constant;
  if (inout->kind != RONDO_ONNX_TENSOR_VALUE) return RONDO_OK;
  if (rondo_onnx_shape_count(&shape) > 0 && !rondo_onnx_has_result(inout)) return RONDO_OK;
  if (rondo_onnx_type_bytes(shape.type) == 0)
    return rondo_fail(RONDO_UNSUPPORTED, RONDO_REASON_TYPE, "its elements share bytes");
  for (size_t i = 0; i < shape.rank; i++)
    if (shape.dims[i] == 0) shape.dims[i] = size;
  RONDO_TRY(rondo_onnx_constant_fill(importer, &shape, zero, &constant));
  *inout = (rondo_onnx_import_value){.kind = RONDO_ONNX_TENSOR_VALUE, .shape = shape, .constant = constant};
  return RONDO_OK;
}

static rondo_status try_size(const rondo_onnx_node *node, size_t size, rondo_onnx_try_node try_node,
                             rondo_onnx_import_value **out) {
  rondo_onnx_importer *importer = node->importer;
  const size_t inputs = node->message->n_input;
  rondo_onnx_node tried = *node;
  RONDO_TRY(rondo_scratch_take(&importer->scratch, inputs, sizeof *tried.inputs, &tried.inputs));
  RONDO_TRY(rondo_scratch_take(&importer->scratch, node->message->n_output, sizeof *tried.outputs, &tried.outputs));
  if (inputs > 0) memcpy(tried.inputs, node->inputs, inputs * sizeof *tried.inputs);
  for (size_t i = 0; i < inputs; i++) RONDO_TRY(replace_input(importer, size, &tried.inputs[i]));
  RONDO_TRY(try_node(&tried));
  *out = tried.outputs;
  return RONDO_OK;
}

/* The shape with size 0 of the dimensions that grow as the tried size does. */
static bool find_empty(const rondo_onnx_import_value *one, const rondo_onnx_import_value *two, rondo_onnx_shape *out) {
  bool is_empty = false;
  if (one->kind != RONDO_ONNX_TENSOR_VALUE || two->kind != RONDO_ONNX_TENSOR_VALUE ||
      one->shape.rank != two->shape.rank)
    return false;
  *out = one->shape;
  for (size_t i = 0; i < out->rank; i++) {
    const size_t a = one->shape.dims[i], b = two->shape.dims[i];
    is_empty = is_empty || a != b || a == 0;
    if (a == b) continue;
    if (a == 0 || (b != 2 * a && b != 4 * a)) return false;
    out->dims[i] = 0;
  }
  return is_empty;
}

static rondo_status set_results(rondo_onnx_node *node, const rondo_onnx_import_value *one,
                                const rondo_onnx_import_value *two, bool *out_is_set) {
  rondo_onnx_shape shape;
  for (size_t i = 0; i < node->message->n_output; i++)
    if (rondo_onnx_wants_output(node, i) && !find_empty(&one[i], &two[i], &shape)) return RONDO_OK;
  for (size_t i = 0; i < node->message->n_output; i++)
    if (find_empty(&one[i], &two[i], &shape)) RONDO_TRY(rondo_onnx_set_empty(node, i, &shape));
  *out_is_set = true;
  return RONDO_OK;
}

rondo_status rondo_onnx_set_empty_results(rondo_onnx_node *node, rondo_onnx_try_node try_node, bool *out_is_set) {
  rondo_onnx_importer *importer = node->importer;
  const size_t kept_bytes = importer->kept_bytes;
  rondo_onnx_import_value *one, *two;
  *out_is_set = false;
  rondo_onnx_folding_leave(importer); /* these programs are never computed */
  rondo_status status = try_size(node, 1, try_node, &one);
  if (status == RONDO_OK) status = try_size(node, 2, try_node, &two);
  rondo_onnx_folding_leave(importer);
  importer->kept_bytes = kept_bytes;
  return status == RONDO_OK ? set_results(node, one, two, out_is_set) : status;
}
