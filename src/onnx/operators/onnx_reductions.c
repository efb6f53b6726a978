/* SPDX-License-Identifier: MIT
 * Reductions, ArgMax and ArgMin, and Softmax, LogSoftmax and Hardmax.
 */
#include <math.h>

#include "base/error.h"
#include "onnx/import/constant.h"
#include "onnx/import/node_attributes.h"
#include "onnx/operators/operator_families.h"

typedef rondo_status (*unary_function)(rondo_program *program, rondo_value value, rondo_value *out_value);
typedef rondo_status (*reduce_function)(rondo_program *program, rondo_value value, const size_t *dims, size_t dim_count,
                                        bool keeps, rondo_value *out_value);

/* Reductions ------------------------------------------------------------------------------------------------------- */

typedef struct reduction_form {
  unary_function before; /* of each element; NULL: nothing */
  reduce_function reduce;
  unary_function after; /* of each result; NULL: nothing */
  double of_nothing;    /* the result of no elements */
} reduction_form;

typedef struct reduced_axes {
  size_t dims[RONDO_ONNX_MOST_DIMENSIONS], count;
  bool keeps;
} reduced_axes;

/* Axes are an attribute or input 1. Without axes, all are reduced, or none with noop_with_empty_axes. */
static rondo_status find_axes(rondo_onnx_node *node, reduced_axes *out) {
  const size_t rank = rondo_onnx_input_shape(node, 0)->rank;
  int64_t keeps, reduces_none;
  const int64_t *axes;
  bool marks[RONDO_ONNX_MOST_DIMENSIONS] = {false};
  size_t count;
  RONDO_TRY(rondo_onnx_attribute_int(node, "keepdims", 1, &keeps));
  RONDO_TRY(rondo_onnx_attribute_int(node, "noop_with_empty_axes", 0, &reduces_none));
  RONDO_TRY(rondo_onnx_attribute_ints(node, "axes", &axes, &count));
  if (rondo_onnx_has_input(node, 1)) RONDO_TRY(rondo_onnx_known_integers(node, 1, &axes, &count));
  for (size_t i = 0; i < count; i++) {
    size_t axis;
    RONDO_TRY(rondo_onnx_axis(axes[i], rank, &axis));
    marks[axis] = true;
  }
  *out = (reduced_axes){.keeps = keeps != 0};
  for (size_t i = 0; i < rank; i++)
    if (marks[i] || (count == 0 && reduces_none == 0)) out->dims[out->count++] = i;
  return RONDO_OK;
}

/* Of an input without elements. Of integers, infinities are the nearest numbers. */
static rondo_status reduce_nothing(rondo_onnx_node *node, const reduced_axes *axes, double number) {
  const rondo_onnx_shape *have = rondo_onnx_input_shape(node, 0);
  rondo_onnx_shape shape = {.type = have->type};
  rondo_program *program;
  rondo_type type;
  rondo_value y;
  for (size_t i = 0, next = 0; i < have->rank; i++) {
    const bool is_reduced = next < axes->count && axes->dims[next] == i;
    if (!is_reduced || axes->keeps) shape.dims[shape.rank++] = is_reduced ? 1 : have->dims[i];
    next += is_reduced;
  }
  if (rondo_onnx_shape_count(&shape) == 0) return rondo_onnx_set_empty(node, 0, &shape);
  RONDO_TRY(rondo_onnx_program_type(node->importer, shape.type, &type));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  if (type == RONDO_BOOL) number = number > 0 ? 1 : 0;
  RONDO_TRY(rondo_op_full(program, RONDO_F32, shape.dims, shape.rank, number, &y));
  RONDO_TRY(rondo_op_cast(program, y, type, &y));
  return rondo_onnx_set_typed(node, 0, y, shape.type);
}

static rondo_status add_reduction(rondo_onnx_node *node, const void *data) {
  const reduction_form *form = data;
  reduced_axes axes;
  rondo_program *program;
  rondo_value y;
  RONDO_TRY(find_axes(node, &axes));
  if (rondo_onnx_shape_count(rondo_onnx_input_shape(node, 0)) == 0)
    return reduce_nothing(node, &axes, form->of_nothing);
  RONDO_TRY(rondo_onnx_operand(node, 0, &y));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  if (form->before != NULL) RONDO_TRY(form->before(program, y, &y));
  if (axes.count > 0) RONDO_TRY(form->reduce(program, y, axes.dims, axes.count, axes.keeps, &y));
  if (form->after != NULL) RONDO_TRY(form->after(program, y, &y));
  return rondo_onnx_set_result(node, 0, y);
}

/* ArgMax, ArgMin --------------------------------------------------------------------------------------------------- */

typedef rondo_status (*index_function)(rondo_program *program, rondo_value value, size_t dimension, bool keeps,
                                       rondo_value *out_value);

typedef struct index_form {
  index_function first, last; /* of equal elements */
} index_form;

static rondo_status add_index(rondo_onnx_node *node, const void *data) {
  const index_form *form = data;
  int64_t given, keeps, last;
  size_t axis;
  rondo_program *program;
  rondo_value y;
  RONDO_TRY(rondo_onnx_attribute_int(node, "axis", 0, &given));
  RONDO_TRY(rondo_onnx_attribute_int(node, "keepdims", 1, &keeps));
  RONDO_TRY(rondo_onnx_attribute_int(node, "select_last_index", 0, &last));
  RONDO_TRY(rondo_onnx_axis(given, rondo_onnx_input_shape(node, 0)->rank, &axis));
  RONDO_TRY(rondo_onnx_operand(node, 0, &y));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  RONDO_TRY((last != 0 ? form->last : form->first)(program, y, axis, keeps != 0, &y));
  RONDO_TRY(rondo_op_cast(program, y, RONDO_I64, &y));
  return rondo_onnx_set_result(node, 0, y);
}

/* Softmax ---------------------------------------------------------------------------------------------------------- */

typedef struct softmax_form {
  unary_function function; /* over the last dimension */
} softmax_form;

/* 1 at the first maximum of the last dimension, else 0. */
static rondo_status hardmax(rondo_program *program, rondo_value value, rondo_value *out_value) {
  rondo_type type;
  size_t dims[RONDO_MAX_DIMENSIONS], rank;
  RONDO_TRY(rondo_value_shape(program, value, &type, dims, &rank));
  RONDO_TRY(rondo_op_argmax(program, value, rank - 1, false, &value));
  return rondo_op_one_hot(program, value, dims[rank - 1], type, out_value);
}

/* Over one axis, which is exchanged with the last. */
static rondo_status add_softmax(rondo_onnx_node *node, const void *data) {
  const softmax_form *form = data;
  const rondo_onnx_shape *have = rondo_onnx_input_shape(node, 0);
  int64_t given;
  size_t axis;
  rondo_program *program;
  rondo_value y;
  RONDO_TRY(rondo_onnx_attribute_int(node, "axis", -1, &given));
  RONDO_TRY(rondo_onnx_axis(given, have->rank, &axis));
  if (rondo_onnx_shape_count(have) == 0) return rondo_onnx_set_empty(node, 0, have);
  RONDO_TRY(rondo_onnx_operand(node, 0, &y));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  const bool is_last = axis + 1 == have->rank;
  if (!is_last) RONDO_TRY(rondo_op_transpose(program, y, axis, have->rank - 1, &y));
  RONDO_TRY(form->function(program, y, &y));
  if (!is_last) RONDO_TRY(rondo_op_transpose(program, y, axis, have->rank - 1, &y));
  return rondo_onnx_set_result(node, 0, y);
}

/* Up to operator set 12: over all dimensions from the axis on. */
static rondo_status add_flat_softmax(rondo_onnx_node *node, const void *data) {
  const softmax_form *form = data;
  const rondo_onnx_shape *have = rondo_onnx_input_shape(node, 0);
  int64_t given;
  size_t axis, flat[2] = {1, 1};
  rondo_program *program;
  rondo_value y;
  RONDO_TRY(rondo_onnx_attribute_int(node, "axis", 1, &given));
  RONDO_TRY(rondo_onnx_axis(given, have->rank, &axis));
  if (rondo_onnx_shape_count(have) == 0) return rondo_onnx_set_empty(node, 0, have);
  for (size_t i = 0; i < have->rank; i++) flat[i < axis ? 0 : 1] *= have->dims[i];
  RONDO_TRY(rondo_onnx_operand(node, 0, &y));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  RONDO_TRY(rondo_onnx_reshape(node, y, flat, 2, &y));
  RONDO_TRY(form->function(program, y, &y));
  RONDO_TRY(rondo_onnx_reshape(node, y, have->dims, have->rank, &y));
  return rondo_onnx_set_result(node, 0, y);
}

/* The table -------------------------------------------------------------------------------------------------------- */

#define REDUCTION(name, ...)                                                    \
  {                                                                             \
    name, 1, 0, 1, 2, 0, add_reduction, &(const reduction_form) { __VA_ARGS__ } \
  }
#define SOFTMAX(name, function)                                                \
  {name, 1, 12, 1, 1, 0, add_flat_softmax, &(const softmax_form){function}}, { \
    name, 13, 0, 1, 1, 0, add_softmax, &(const softmax_form) { function }      \
  }

static const rondo_onnx_row rows[] = {
    REDUCTION("ReduceL1", rondo_op_abs, rondo_op_sum, NULL, 0),
    REDUCTION("ReduceL2", rondo_op_square, rondo_op_sum, rondo_op_sqrt, 0),
    REDUCTION("ReduceLogSum", NULL, rondo_op_sum, rondo_op_log, -(double)INFINITY),
    REDUCTION("ReduceLogSumExp", NULL, rondo_op_log_sum_exp, NULL, -(double)INFINITY),
    REDUCTION("ReduceMax", NULL, rondo_op_max, NULL, -(double)INFINITY),
    REDUCTION("ReduceMean", NULL, rondo_op_mean, NULL, (double)NAN),
    REDUCTION("ReduceMin", NULL, rondo_op_min, NULL, (double)INFINITY),
    REDUCTION("ReduceProd", NULL, rondo_op_prod, NULL, 1),
    REDUCTION("ReduceSum", NULL, rondo_op_sum, NULL, 0),
    REDUCTION("ReduceSumSquare", rondo_op_square, rondo_op_sum, NULL, 0),
    {"ArgMax", 1, 0, 1, 1, 0, add_index, &(const index_form){rondo_op_argmax, rondo_op_argmax_last}},
    {"ArgMin", 1, 0, 1, 1, 0, add_index, &(const index_form){rondo_op_argmin, rondo_op_argmin_last}},
    SOFTMAX("Softmax", rondo_op_softmax),
    SOFTMAX("Hardmax", hardmax),
    SOFTMAX("LogSoftmax", rondo_op_log_softmax),
};

RONDO_ONNX_FAMILY(rondo_onnx_reductions, rows);
