/* SPDX-License-Identifier: MIT
 * Joins and parts of tensors.
 */
#include "onnx/operators/joined_tensors.h"

#include <string.h>

#include <rondo/operators.h>

#include "base/error.h"
#include "onnx/import/constant.h"

/* Joining ---------------------------------------------------------------------------------------------------------- */

static bool can_join(const rondo_onnx_shape *first, const rondo_onnx_shape *next, size_t axis, bool is_new) {
  bool fits = next->rank == first->rank && next->type == first->type;
  for (size_t i = 0; fits && i < first->rank; i++) fits = next->dims[i] == first->dims[i] || (i == axis && !is_new);
  return fits;
}

static void insert_axis(rondo_onnx_shape *shape, size_t axis, size_t size) {
  memmove(shape->dims + axis + 1, shape->dims + axis, (shape->rank++ - axis) * sizeof *shape->dims);
  shape->dims[axis] = size;
}

static rondo_status joined_shape(rondo_onnx_node *node, const rondo_onnx_import_value *items, size_t count, size_t axis,
                                 bool is_new, rondo_onnx_shape *out) {
  *out = items[0].shape;
  if (is_new && out->rank == RONDO_ONNX_MOST_DIMENSIONS)
    return rondo_onnx_refuse(node, "the result has %d dimensions", RONDO_ONNX_MOST_DIMENSIONS + 1);
  for (size_t i = 1; i < count; i++) {
    if (!can_join(&items[0].shape, &items[i].shape, axis, is_new) ||
        (!is_new && !rondo_checked_add(out->dims[axis], items[i].shape.dims[axis], &out->dims[axis])))
      return rondo_onnx_refuse(node, "items 0 and %zu cannot be joined along axis %zu", i, axis);
  }
  if (is_new) insert_axis(out, axis, count);
  return RONDO_OK;
}

/* The inner node has the items as inputs. Those without elements add nothing. */
static rondo_status add_joined(rondo_onnx_node *inner, size_t axis, bool is_new, const rondo_onnx_shape *shape) {
  rondo_program *program;
  rondo_value *values;
  size_t kept = 0;
  RONDO_TRY(rondo_scratch_take(&inner->importer->scratch, rondo_onnx_input_count(inner), sizeof *values, &values));
  for (size_t i = 0; i < rondo_onnx_input_count(inner); i++) {
    rondo_onnx_shape item = *rondo_onnx_input_shape(inner, i);
    if (rondo_onnx_shape_count(&item) == 0) continue;
    RONDO_TRY(rondo_onnx_operand(inner, i, &values[kept]));
    if (is_new) {
      insert_axis(&item, axis, 1);
      RONDO_TRY(rondo_onnx_reshape(inner, values[kept], item.dims, item.rank, &values[kept]));
    }
    kept++;
  }
  RONDO_TRY(rondo_onnx_node_program(inner, &program));
  RONDO_TRY(rondo_op_concat(program, values, kept, axis, &values[0]));
  return rondo_onnx_set_typed(inner, 0, values[0], shape->type);
}

rondo_status rondo_onnx_join(rondo_onnx_node *node, rondo_onnx_import_value *items, size_t count, int64_t given_axis,
                             bool is_new, rondo_onnx_import_value *out) {
  rondo_onnx_inner_node inner;
  rondo_onnx_shape shape;
  size_t axis;
  assert(count > 0);
  for (size_t i = 0; i < count; i++)
    if (items[i].kind != RONDO_ONNX_TENSOR_VALUE)
      return rondo_onnx_refuse(node, "item %zu is a sequence or an optional, not a tensor", i);
  RONDO_TRY(rondo_onnx_axis(given_axis, items[0].shape.rank + (is_new ? 1 : 0), &axis));
  RONDO_TRY(joined_shape(node, items, count, axis, is_new, &shape));
  RONDO_TRY(rondo_onnx_inner_begin(node, items, count, &inner));
  if (rondo_onnx_shape_count(&shape) == 0)
    RONDO_TRY(rondo_onnx_set_empty(&inner.node, 0, &shape));
  else
    RONDO_TRY(add_joined(&inner.node, axis, is_new, &shape));
  *out = inner.output;
  return RONDO_OK;
}

/* Parts ------------------------------------------------------------------------------------------------------------ */

static rondo_status add_part(rondo_onnx_node *inner, const rondo_onnx_part *part, const rondo_onnx_shape *shape,
                             const rondo_onnx_shape *result) {
  size_t start[RONDO_ONNX_MOST_DIMENSIONS] = {0};
  rondo_program *program;
  rondo_value value;
  start[part->axis] = part->first;
  RONDO_TRY(rondo_onnx_operand(inner, 0, &value));
  RONDO_TRY(rondo_onnx_node_program(inner, &program));
  RONDO_TRY(rondo_op_slice(program, value, start, shape->dims, NULL, &value));
  RONDO_TRY(rondo_onnx_reshape(inner, value, result->dims, result->rank, &value));
  return rondo_onnx_set_typed(inner, 0, value, result->type);
}

rondo_status rondo_onnx_take_part(rondo_onnx_node *node, rondo_onnx_import_value *from, const rondo_onnx_part *part,
                                  rondo_onnx_import_value *out) {
  rondo_onnx_inner_node inner;
  rondo_onnx_shape shape = from->shape, result;
  const size_t after = part->axis + 1;
  assert(!part->drops_axis || part->length == 1);
  shape.dims[part->axis] = part->length;
  result = shape;
  if (part->drops_axis)
    memmove(result.dims + part->axis, result.dims + after, (result.rank-- - after) * sizeof *result.dims);
  RONDO_TRY(rondo_onnx_inner_begin(node, from, 1, &inner));
  if (rondo_onnx_shape_count(&result) == 0)
    RONDO_TRY(rondo_onnx_set_empty(&inner.node, 0, &result));
  else
    RONDO_TRY(add_part(&inner.node, part, &shape, &result));
  *out = inner.output;
  return RONDO_OK;
}
