/* SPDX-License-Identifier: MIT
 * Operators that select elements by indices. Negative indices count from the end: those of constants are made positive
 * at import, others when the program runs.
 */
#include <string.h>

#include "base/error.h"
#include "onnx/import/constant.h"
#include "onnx/import/node_attributes.h"
#include "onnx/operators/operator_families.h"

/* Indices that depend on the run. */
static rondo_status wrap(rondo_program *program, rondo_value indices, rondo_type type, size_t size, rondo_value *out) {
  rondo_value zero, count, is_negative, from_end;
  RONDO_TRY(rondo_op_full(program, type, NULL, 0, 0, &zero));
  RONDO_TRY(rondo_op_full(program, type, NULL, 0, (double)size, &count));
  RONDO_TRY(rondo_op_less(program, indices, zero, &is_negative));
  RONDO_TRY(rondo_op_add(program, indices, count, &from_end));
  return rondo_op_select(program, is_negative, from_end, indices, out);
}

static rondo_status wrap_constant(rondo_onnx_node *node, size_t index, size_t size, rondo_value *out) {
  rondo_onnx_shape shape = *rondo_onnx_input_shape(node, index);
  rondo_onnx_constant *constant;
  const int64_t *given;
  void *elements;
  size_t count;
  RONDO_TRY(rondo_onnx_known_integers(node, index, &given, &count));
  shape.type = RONDO_ONNX_INT64;
  RONDO_TRY(rondo_onnx_constant_make(node->importer, &shape, &constant, &elements));
  for (size_t i = 0; i < count; i++) {
    if (given[i] < -(int64_t)size || given[i] >= (int64_t)size)
      return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE, "index %lld of %zu", (long long)given[i],
                        size);
    ((int64_t *)elements)[i] = given[i] < 0 ? given[i] + (int64_t)size : given[i];
  }
  return rondo_onnx_constant_operand(node, constant, out);
}

/* The indices of an input as operand, 0 <= i < size. */
static rondo_status index_operand(rondo_onnx_node *node, size_t index, size_t size, rondo_value *out) {
  rondo_program *program;
  rondo_type type;
  if (!rondo_onnx_has_result(&node->inputs[index])) return wrap_constant(node, index, size, out);
  RONDO_TRY(rondo_onnx_program_type(node->importer, rondo_onnx_input_shape(node, index)->type, &type));
  RONDO_TRY(rondo_onnx_operand(node, index, out));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  return wrap(program, *out, type, size, out);
}

/* Gather ----------------------------------------------------------------------------------------------------------- */

/* The sizes of the indices replace that of the axis. */
static rondo_status gathered_shape(rondo_onnx_node *node, size_t axis, rondo_onnx_shape *out) {
  const rondo_onnx_shape *value = rondo_onnx_input_shape(node, 0), *indices = rondo_onnx_input_shape(node, 1);
  *out = (rondo_onnx_shape){.type = value->type, .rank = value->rank - 1 + indices->rank};
  if (out->rank > RONDO_ONNX_MOST_DIMENSIONS)
    return rondo_onnx_refuse(node, "the result has %zu dimensions", out->rank);
  memcpy(out->dims, value->dims, axis * sizeof *out->dims);
  memcpy(out->dims + axis, indices->dims, indices->rank * sizeof *out->dims);
  memcpy(out->dims + axis + indices->rank, value->dims + axis + 1, (value->rank - axis - 1) * sizeof *out->dims);
  return RONDO_OK;
}

static rondo_status add_gather(rondo_onnx_node *node, const void *data) {
  const rondo_onnx_shape *have = rondo_onnx_input_shape(node, 0);
  int64_t given;
  size_t axis;
  rondo_onnx_shape shape;
  rondo_program *program;
  rondo_value value, indices;
  (void)data;
  RONDO_TRY(rondo_onnx_attribute_int(node, "axis", 0, &given));
  RONDO_TRY(rondo_onnx_axis(given, have->rank, &axis));
  RONDO_TRY(gathered_shape(node, axis, &shape));
  if (rondo_onnx_shape_count(&shape) == 0) return rondo_onnx_set_empty(node, 0, &shape);
  RONDO_TRY(index_operand(node, 1, have->dims[axis], &indices));
  RONDO_TRY(rondo_onnx_operand(node, 0, &value));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  const size_t count = rondo_onnx_shape_count(rondo_onnx_input_shape(node, 1));
  RONDO_TRY(rondo_onnx_reshape(node, indices, &count, 1, &indices));
  RONDO_TRY(rondo_op_index_select(program, value, indices, axis, &value));
  RONDO_TRY(rondo_onnx_reshape(node, value, shape.dims, shape.rank, &value));
  return rondo_onnx_set_typed(node, 0, value, shape.type);
}

static const rondo_onnx_row rows[] = {
    {"Gather", 1, 0, 2, 2, 0, add_gather, NULL},
};

RONDO_ONNX_FAMILY(rondo_onnx_indexing, rows);
