/* SPDX-License-Identifier: MIT
 * Operators that select or replace elements by indices. Negative indices count from the end: those of constants are
 * made positive at import, others when the program runs.
 */
#include <string.h>

#include "base/error.h"
#include "onnx/import/constant.h"
#include "onnx/import/node_attributes.h"
#include "onnx/import/widened_value.h"
#include "onnx/operators/operator_families.h"

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
  if (rondo_onnx_input_shape(node, index)->rank > RONDO_MAX_DIMENSIONS) return rondo_onnx_operand(node, index, out);
  if (!rondo_onnx_has_result(&node->inputs[index])) return wrap_constant(node, index, size, out);
  RONDO_TRY(rondo_onnx_operand(node, index, out));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  return rondo_op_wrap_indices(program, *out, size, out);
}

/* The dimension of an attribute "axis". */
static rondo_status read_axis(rondo_onnx_node *node, int64_t otherwise, size_t rank, size_t *out) {
  int64_t given;
  RONDO_TRY(rondo_onnx_attribute_int(node, "axis", otherwise, &given));
  return rondo_onnx_axis(given, rank, out);
}

typedef rondo_status (*gather_function)(rondo_program *program, rondo_value value, rondo_value indices, size_t axis,
                                        rondo_value *out_value);

/* Sets the result, of this shape, to elements that are gathered along the axis. */
static rondo_status set_gathered(rondo_onnx_node *node, gather_function gather, size_t axis,
                                 const rondo_onnx_shape *shape) {
  rondo_program *program;
  rondo_value value, indices;
  if (rondo_onnx_shape_count(shape) == 0) return rondo_onnx_set_empty(node, 0, shape);
  RONDO_TRY(index_operand(node, 1, rondo_onnx_input_shape(node, 0)->dims[axis], &indices));
  RONDO_TRY(rondo_onnx_operand(node, 0, &value));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  RONDO_TRY(gather(program, value, indices, axis, &value));
  return rondo_onnx_set_typed(node, 0, value, shape->type);
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
  size_t axis;
  rondo_onnx_shape shape;
  (void)data;
  RONDO_TRY(read_axis(node, 0, rondo_onnx_input_shape(node, 0)->rank, &axis));
  RONDO_TRY(gathered_shape(node, axis, &shape));
  return set_gathered(node, rondo_op_index_select, axis, &shape);
}

/* GatherElements, GatherND ----------------------------------------------------------------------------------------- */

/* The indices have all elements of the other dimensions, so those before and after the axis are one each. */
static rondo_status gather_merged(rondo_onnx_node *node, const rondo_onnx_shape *shape, size_t axis) {
  const rondo_onnx_shape *have = rondo_onnx_input_shape(node, 0);
  size_t dims[] = {1, have->dims[axis], 1};
  rondo_program *program;
  rondo_value value, indices;
  for (size_t i = 0; i < have->rank; i++) {
    if (i != axis && have->dims[i] != shape->dims[i])
      return rondo_onnx_refuse(node,
                               "it has %zu dimensions, and the sizes %zu and %zu of dimension %zu: programs have at "
                               "most %d dimensions",
                               have->rank, have->dims[i], shape->dims[i], i, RONDO_MAX_DIMENSIONS);
    if (i != axis) dims[i < axis ? 0 : 2] *= have->dims[i];
  }
  RONDO_TRY(rondo_onnx_operand_as(node, 0, dims, 3, &value));
  const size_t index_dims[] = {dims[0], shape->dims[axis], dims[2]};
  RONDO_TRY(rondo_onnx_operand_as(node, 1, index_dims, 3, &indices));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  RONDO_TRY(rondo_op_wrap_indices(program, indices, dims[1], &indices));
  RONDO_TRY(rondo_op_gather(program, value, indices, 1, &value));
  return rondo_onnx_set_shaped(node, 0, value, shape);
}

static rondo_status add_gather_elements(rondo_onnx_node *node, const void *data) {
  const rondo_onnx_shape *have = rondo_onnx_input_shape(node, 0);
  rondo_onnx_shape shape = *rondo_onnx_input_shape(node, 1);
  size_t axis;
  (void)data;
  RONDO_TRY(read_axis(node, 0, have->rank, &axis));
  shape.type = have->type;
  if (have->rank > RONDO_MAX_DIMENSIONS && shape.rank == have->rank && rondo_onnx_shape_count(&shape) > 0)
    return gather_merged(node, &shape, axis);
  return set_gathered(node, rondo_op_gather, axis, &shape);
}

static rondo_status add_gather_nd(rondo_onnx_node *node, const void *data) {
  int64_t batch_dimensions;
  rondo_program *program;
  rondo_value value, indices;
  (void)data;
  RONDO_TRY(rondo_onnx_attribute_int(node, "batch_dims", 0, &batch_dimensions));
  if (batch_dimensions < 0) return rondo_onnx_refuse_attribute(node, "batch_dims", "it is negative");
  RONDO_TRY(rondo_onnx_operand(node, 0, &value));
  RONDO_TRY(rondo_onnx_operand(node, 1, &indices));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  RONDO_TRY(rondo_op_gather_nd(program, value, indices, (size_t)batch_dimensions, &value));
  return rondo_onnx_set_typed(node, 0, value, rondo_onnx_input_shape(node, 0)->type);
}

/* ScatterElements, ScatterND --------------------------------------------------------------------------------------- */

static rondo_status read_reduction(rondo_onnx_node *node, rondo_scatter_reduction *out) {
  static const struct {
    const char *name;
    rondo_scatter_reduction reduction;
  } reductions[] = {{"none", RONDO_SCATTER_REPLACE},
                    {"add", RONDO_SCATTER_ADD},
                    {"mul", RONDO_SCATTER_MUL},
                    {"max", RONDO_SCATTER_MAX},
                    {"min", RONDO_SCATTER_MIN}};
  const char *name;
  RONDO_TRY(rondo_onnx_attribute_text(node, "reduction", "none", &name));
  for (size_t i = 0; i < sizeof reductions / sizeof *reductions; i++) {
    *out = reductions[i].reduction;
    if (strcmp(name, reductions[i].name) == 0) return RONDO_OK;
  }
  return rondo_onnx_refuse_attribute(node, "reduction", "it is '%s'", name);
}

static rondo_status add_scatter_elements(rondo_onnx_node *node, const void *data) {
  const rondo_onnx_shape *have = rondo_onnx_input_shape(node, 0);
  rondo_scatter_reduction reduction;
  size_t axis;
  rondo_program *program;
  rondo_value value, indices, updates;
  (void)data;
  RONDO_TRY(read_reduction(node, &reduction));
  RONDO_TRY(read_axis(node, 0, have->rank, &axis));
  if (rondo_onnx_shape_count(rondo_onnx_input_shape(node, 1)) == 0) {
    rondo_onnx_set_input(node, 0, 0);
    return RONDO_OK;
  }
  RONDO_TRY(index_operand(node, 1, have->dims[axis], &indices));
  RONDO_TRY(rondo_onnx_operand(node, 0, &value));
  RONDO_TRY(rondo_onnx_operand(node, 2, &updates));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  RONDO_TRY(rondo_op_scatter_reduce(program, value, axis, indices, updates, reduction, &value));
  return rondo_onnx_set_typed(node, 0, value, have->type);
}

static rondo_status add_scatter_nd(rondo_onnx_node *node, const void *data) {
  rondo_scatter_reduction reduction;
  rondo_program *program;
  rondo_value value, indices, updates;
  (void)data;
  RONDO_TRY(read_reduction(node, &reduction));
  if (rondo_onnx_shape_count(rondo_onnx_input_shape(node, 1)) == 0) {
    rondo_onnx_set_input(node, 0, 0);
    return RONDO_OK;
  }
  RONDO_TRY(rondo_onnx_operand(node, 0, &value));
  RONDO_TRY(rondo_onnx_operand(node, 1, &indices));
  RONDO_TRY(rondo_onnx_operand(node, 2, &updates));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  RONDO_TRY(rondo_op_scatter_nd(program, value, indices, updates, reduction, &value));
  return rondo_onnx_set_typed(node, 0, value, rondo_onnx_input_shape(node, 0)->type);
}

/* TensorScatter ---------------------------------------------------------------------------------------------------- */

/* A cache, and an update that replaces part of it along an axis. */
typedef struct cache_update {
  const rondo_onnx_shape *cache, *update;
  size_t axis;
  bool is_circular; /* places beyond the end are those from the begin on */
} cache_update;

static rondo_status read_cache_update(rondo_onnx_node *node, cache_update *out) {
  const char *mode;
  *out = (cache_update){.cache = rondo_onnx_input_shape(node, 0), .update = rondo_onnx_input_shape(node, 1)};
  RONDO_TRY(rondo_onnx_attribute_text(node, "mode", "linear", &mode));
  RONDO_TRY(read_axis(node, -2, out->cache->rank, &out->axis));
  out->is_circular = strcmp(mode, "circular") == 0;
  if (!out->is_circular && strcmp(mode, "linear") != 0)
    return rondo_onnx_refuse_attribute(node, "mode", "it is '%s'", mode);
  if (out->axis == 0) return rondo_onnx_refuse_attribute(node, "axis", "it is that of the batch");
  bool fits = out->update->rank == out->cache->rank;
  for (size_t i = 0; fits && i < out->cache->rank; i++)
    fits = i == out->axis ? out->update->dims[i] <= out->cache->dims[i] : out->update->dims[i] == out->cache->dims[i];
  if (!fits) return rondo_onnx_refuse(node, "the update does not fit the cache along axis %zu", out->axis);
  if (!rondo_onnx_has_input(node, 2)) return RONDO_OK;
  const rondo_onnx_shape *first = rondo_onnx_input_shape(node, 2);
  if (first->rank == 1 && first->dims[0] == out->cache->dims[0]) return RONDO_OK;
  return rondo_onnx_refuse(node, "input 2 has not one index for each of a batch of %zu", out->cache->dims[0]);
}

/* The index in the cache of each element of the update: that of input 2, or 0, and those after it. */
static rondo_status cache_indices(rondo_onnx_node *node, const cache_update *of, rondo_value *out) {
  size_t batch[RONDO_MAX_DIMENSIONS], steps[RONDO_MAX_DIMENSIONS];
  const size_t rank = of->update->rank;
  rondo_program *program;
  rondo_value first, size;
  for (size_t i = 0; i < rank; i++) {
    batch[i] = i == 0 ? of->update->dims[0] : 1;
    steps[i] = i == of->axis ? of->update->dims[i] : 1;
  }
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  RONDO_TRY(rondo_op_arange(program, RONDO_I64, steps[of->axis], 0, 1, out));
  RONDO_TRY(rondo_onnx_reshape(node, *out, steps, rank, out));
  if (rondo_onnx_has_input(node, 2)) {
    RONDO_TRY(rondo_onnx_operand(node, 2, &first));
    RONDO_TRY(rondo_op_cast(program, first, RONDO_I64, &first));
    RONDO_TRY(rondo_onnx_reshape(node, first, batch, rank, &first));
    RONDO_TRY(rondo_op_add(program, *out, first, out));
  }
  if (of->is_circular) {
    RONDO_TRY(rondo_op_full(program, RONDO_I64, NULL, 0, (double)of->cache->dims[of->axis], &size));
    RONDO_TRY(rondo_op_remainder(program, *out, size, out));
  }
  return rondo_op_expand(program, *out, of->update->dims, rank, out);
}

static rondo_status add_tensor_scatter(rondo_onnx_node *node, const void *data) {
  cache_update of;
  rondo_program *program;
  rondo_value cache, update, indices;
  (void)data;
  RONDO_TRY(read_cache_update(node, &of));
  if (rondo_onnx_shape_count(of.update) == 0) {
    rondo_onnx_set_input(node, 0, 0);
    return RONDO_OK;
  }
  RONDO_TRY(rondo_onnx_operand(node, 0, &cache));
  RONDO_TRY(rondo_onnx_operand(node, 1, &update));
  RONDO_TRY(cache_indices(node, &of, &indices));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  RONDO_TRY(rondo_op_scatter(program, cache, of.axis, indices, update, &cache));
  return rondo_onnx_set_typed(node, 0, cache, of.cache->type);
}

/* OneHot ----------------------------------------------------------------------------------------------------------- */

/* Elements 0 and 1 of input 2: what is outside, and what is at the index. */
static rondo_status split_values(rondo_onnx_node *node, rondo_value *out_off, rondo_value *out_on) {
  static const size_t first[] = {0}, second[] = {1}, one[] = {1};
  rondo_program *program;
  rondo_value values;
  if (rondo_onnx_shape_count(rondo_onnx_input_shape(node, 2)) != 2)
    return rondo_onnx_refuse(node, "input 2 has not two elements");
  RONDO_TRY(rondo_onnx_operand_as(node, 2, (const size_t[]){2}, 1, &values));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  RONDO_TRY(rondo_op_slice(program, values, first, one, NULL, out_off));
  return rondo_op_slice(program, values, second, one, NULL, out_on);
}

static rondo_status add_one_hot(rondo_onnx_node *node, const void *data) {
  const rondo_onnx_shape *have = rondo_onnx_input_shape(node, 0);
  const double *depth;
  size_t axis, count;
  rondo_program *program;
  rondo_value indices, off, on, y;
  (void)data;
  RONDO_TRY(read_axis(node, -1, have->rank + 1, &axis));
  RONDO_TRY(rondo_onnx_known_numbers(node, 1, &depth, &count));
  if (count != 1 || !(depth[0] >= 1 && depth[0] < 1e15)) return rondo_onnx_refuse(node, "its depth is no size");
  RONDO_TRY(rondo_onnx_operand(node, 0, &indices));
  RONDO_TRY(split_values(node, &off, &on));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  if (have->type != RONDO_ONNX_INT32) RONDO_TRY(rondo_op_cast(program, indices, RONDO_I64, &indices));
  RONDO_TRY(rondo_op_one_hot_values(program, indices, (size_t)depth[0], axis, off, on, &y));
  return rondo_onnx_set_typed(node, 0, y, rondo_onnx_input_shape(node, 2)->type);
}

/* TopK ------------------------------------------------------------------------------------------------------------- */

/* k is an attribute up to operator set 9. */
static rondo_status read_k(rondo_onnx_node *node, size_t size, size_t *out) {
  const int64_t *known;
  int64_t k;
  size_t count = 1;
  if (node->opset < 10) {
    RONDO_TRY(rondo_onnx_attribute_int(node, "k", -1, &k));
  } else {
    RONDO_TRY(rondo_onnx_known_integers(node, 1, &known, &count));
    k = count == 1 ? known[0] : -1;
  }
  *out = (size_t)k;
  return k >= 0 && (uint64_t)k <= size ? RONDO_OK
                                       : rondo_onnx_refuse(node, "k is %lld of %zu elements", (long long)k, size);
}

static rondo_status set_none(rondo_onnx_node *node, size_t axis) {
  rondo_onnx_shape shape = *rondo_onnx_input_shape(node, 0);
  shape.dims[axis] = 0;
  RONDO_TRY(rondo_onnx_set_empty(node, 0, &shape));
  shape.type = RONDO_ONNX_INT64;
  return rondo_onnx_set_empty(node, 1, &shape);
}

/* They are always sorted, also if `sorted` does not ask for it. */
static rondo_status add_top_k(rondo_onnx_node *node, const void *data) {
  const rondo_onnx_shape *have = rondo_onnx_input_shape(node, 0);
  int64_t largest, sorted;
  size_t axis, k;
  rondo_program *program;
  rondo_value x, values, indices;
  (void)data;
  RONDO_TRY(rondo_onnx_attribute_int(node, "largest", 1, &largest));
  RONDO_TRY(rondo_onnx_attribute_int(node, "sorted", 1, &sorted));
  RONDO_TRY(read_axis(node, -1, have->rank, &axis));
  RONDO_TRY(read_k(node, have->dims[axis], &k));
  if (k == 0) return set_none(node, axis);
  RONDO_TRY(rondo_onnx_operand(node, 0, &x));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  const bool is_unsigned_long = have->type == RONDO_ONNX_UINT64;
  if (is_unsigned_long) RONDO_TRY(rondo_onnx_unsigned_order(program, x, &x));
  RONDO_TRY(rondo_op_topk(program, x, k, axis, largest == 0, &values, &indices));
  if (is_unsigned_long) RONDO_TRY(rondo_onnx_unsigned_order(program, values, &values));
  RONDO_TRY(rondo_op_cast(program, indices, RONDO_I64, &indices));
  RONDO_TRY(rondo_onnx_set_typed(node, 0, values, have->type));
  return rondo_onnx_set_typed(node, 1, indices, RONDO_ONNX_INT64);
}

/* The table -------------------------------------------------------------------------------------------------------- */

#define WIDE RONDO_ONNX_ROW_WIDE

static const rondo_onnx_row rows[] = {
    {"Gather", 1, 0, 2, 2, WIDE, add_gather, NULL},
    {"GatherElements", 11, 0, 2, 2, WIDE, add_gather_elements, NULL},
    {"GatherND", 11, 0, 2, 2, WIDE, add_gather_nd, NULL},
    {"OneHot", 9, 0, 3, 3, 0, add_one_hot, NULL},
    {"Scatter", 9, 10, 3, 3, 0, add_scatter_elements, NULL},
    {"ScatterElements", 11, 0, 3, 3, 0, add_scatter_elements, NULL},
    {"ScatterND", 11, 0, 3, 3, 0, add_scatter_nd, NULL},
    {"TensorScatter", 24, 0, 2, 3, 0, add_tensor_scatter, NULL},
    {"TopK", 1, 9, 1, 1, WIDE, add_top_k, NULL},
    {"TopK", 10, 0, 2, 2, WIDE, add_top_k, NULL},
};

RONDO_ONNX_FAMILY(rondo_onnx_indexing, rows);
