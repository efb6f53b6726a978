/* SPDX-License-Identifier: MIT
 * Reductions that are made of others: any, all, log_sum_exp and vector_norm. F16 and BF16 become F32 first, so that
 * results are rounded once and squares do not overflow. Threads: as tensor/program/operator.h says.
 */
#include <float.h>
#include <math.h>

#include "tensor/operators/common/composition.h"

/* A call: the value, its shape, and what is reduced. */
typedef struct reduction_call {
  const char *name;
  rondo_value value;
  rondo_shape shape;
  const size_t *dims;
  size_t dim_count;
  bool keeps;
  float order; /* of vector_norm */
} reduction_call;

typedef rondo_status (*add_reduction)(rondo_program *program, const reduction_call *of, rondo_value *out_value);
typedef rondo_status (*reduction_op)(rondo_program *program, rondo_value value, const size_t *dims, size_t dim_count,
                                     bool keeps, rondo_value *out_value);

static rondo_status require_dimensions(const reduction_call *of) {
  for (size_t i = 0; of->dims != NULL && i < of->dim_count; i++) {
    bool is_wrong = i >= RONDO_MAX_DIMENSIONS || of->dims[i] >= of->shape.rank;
    for (size_t k = 0; !is_wrong && k < i; k++) is_wrong = of->dims[k] == of->dims[i];
    if (is_wrong)
      return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE,
                        "%s: dimension %zu is named twice, or does not exist: the value has %u, counted from 0",
                        of->name, of->dims[i], of->shape.rank);
  }
  return RONDO_OK;
}

static rondo_status apply(rondo_program *program, reduction_call *of, uint32_t types, add_reduction add,
                          rondo_value *out_value) {
  rondo_value made = {0};
  RONDO_TRY(rondo_program_begin(program, of->name, out_value));
  RONDO_TRY(rondo_given_shape(program, of->value, of->name, "value", &of->shape));
  if ((types & RONDO_TYPE_BIT(of->shape.type)) == 0)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_TYPE, "%s: the value is %s; it must be %s", of->name,
                      rondo_type_name(of->shape.type),
                      types == RONDO_FLOATS ? "f32, f16 or bf16" : "bool, an integer, f32, f16 or bf16");
  RONDO_TRY(require_dimensions(of));
  const rondo_program_mark mark = rondo_program_get_mark(program);
  const rondo_status status = add(program, of, &made);
  return rondo_compose_end(program, of->name, mark, status, made, out_value);
}

static rondo_status reduce(rondo_program *program, const reduction_call *of, reduction_op op,
                           rondo_value *inout_value) {
  return op(program, *inout_value, of->dims, of->dim_count, of->keeps, inout_value);
}

/* any and all ------------------------------------------------------------------------------------------------------ */

static rondo_status add_any(rondo_program *program, const reduction_call *of, rondo_value *out_value) {
  RONDO_TRY(rondo_op_cast(program, of->value, RONDO_BOOL, out_value));
  return reduce(program, of, rondo_op_max, out_value);
}

static rondo_status add_all(rondo_program *program, const reduction_call *of, rondo_value *out_value) {
  RONDO_TRY(rondo_op_cast(program, of->value, RONDO_BOOL, out_value));
  return reduce(program, of, rondo_op_min, out_value);
}

rondo_status rondo_op_any(rondo_program *program, rondo_value value, const size_t *dims, size_t dim_count, bool keeps,
                          rondo_value *out_value) {
  reduction_call of = {.name = "any", .value = value, .dims = dims, .dim_count = dim_count, .keeps = keeps};
  return apply(program, &of, RONDO_ALL_TYPES, add_any, out_value);
}

rondo_status rondo_op_all(rondo_program *program, rondo_value value, const size_t *dims, size_t dim_count, bool keeps,
                          rondo_value *out_value) {
  reduction_call of = {.name = "all", .value = value, .dims = dims, .dim_count = dim_count, .keeps = keeps};
  return apply(program, &of, RONDO_ALL_TYPES, add_all, out_value);
}

/* log_sum_exp ------------------------------------------------------------------------------------------------------ */

/* The largest element is subtracted first. It is limited, because the difference of two infinities is NaN. It has no
 * gradient: the result does not depend on what is subtracted. */
static rondo_status add_log_sum_exp(rondo_program *program, const reduction_call *of, rondo_value *out_value) {
  rondo_value x, largest, powers;
  RONDO_TRY(rondo_op_cast(program, of->value, RONDO_F32, &x));
  RONDO_TRY(rondo_op_max(program, x, of->dims, of->dim_count, true, &largest));
  RONDO_TRY(rondo_op_clamp(program, largest, -FLT_MAX, FLT_MAX, &largest));
  RONDO_TRY(rondo_op_stop_gradient(program, largest, &largest));
  RONDO_TRY(rondo_op_sub(program, x, largest, &powers));
  RONDO_TRY(rondo_op_exp(program, powers, &powers));
  RONDO_TRY(reduce(program, of, rondo_op_sum, &powers));
  RONDO_TRY(rondo_op_log(program, powers, out_value));
  const rondo_shape shape = rondo_shape_at(program, *out_value);
  RONDO_TRY(rondo_compose_reshape(program, largest, &shape, &largest));
  RONDO_TRY(rondo_op_add(program, *out_value, largest, out_value));
  return rondo_op_cast(program, *out_value, of->shape.type, out_value);
}

rondo_status rondo_op_log_sum_exp(rondo_program *program, rondo_value value, const size_t *dims, size_t dim_count,
                                  bool keeps, rondo_value *out_value) {
  reduction_call of = {.name = "log_sum_exp", .value = value, .dims = dims, .dim_count = dim_count, .keeps = keeps};
  return apply(program, &of, RONDO_FLOATS, add_log_sum_exp, out_value);
}

/* vector_norm ------------------------------------------------------------------------------------------------------ */

/* sum^(1 / order). Where the sum is 0 the root has no gradient, so the result is 0, or infinity of a negative order,
 * without a gradient. */
static rondo_status add_root(rondo_program *program, float order, rondo_value sum, rondo_value *out_value) {
  rondo_value is_zero, one, exponent, end;
  RONDO_TRY(rondo_op_logical_not(program, sum, &is_zero));
  RONDO_TRY(rondo_compose_number(program, RONDO_F32, 1, &one));
  RONDO_TRY(rondo_compose_number(program, RONDO_F32, order > 0 ? 0 : INFINITY, &end));
  RONDO_TRY(rondo_op_select(program, is_zero, one, sum, out_value));
  if (order == 2) {
    RONDO_TRY(rondo_op_sqrt(program, *out_value, out_value));
  } else {
    RONDO_TRY(rondo_compose_number(program, RONDO_F32, (double)(1.0f / order), &exponent));
    RONDO_TRY(rondo_op_pow(program, *out_value, exponent, out_value));
  }
  return rondo_op_select(program, is_zero, end, *out_value, out_value);
}

/* The sum of |x|^order, or how many x are not 0. */
static rondo_status add_powers(rondo_program *program, const reduction_call *of, rondo_value x, rondo_value *out_sum) {
  rondo_value exponent;
  if (of->order == 2) {
    RONDO_TRY(rondo_op_square(program, x, out_sum));
  } else if (of->order == 0) {
    RONDO_TRY(rondo_op_cast(program, x, RONDO_BOOL, out_sum));
    RONDO_TRY(rondo_op_cast(program, *out_sum, RONDO_F32, out_sum));
  } else {
    RONDO_TRY(rondo_op_abs(program, x, out_sum));
    RONDO_TRY(rondo_compose_number(program, RONDO_F32, (double)of->order, &exponent));
    if (of->order != 1) RONDO_TRY(rondo_op_pow(program, *out_sum, exponent, out_sum));
  }
  return reduce(program, of, rondo_op_sum, out_sum);
}

static rondo_status add_vector_norm(rondo_program *program, const reduction_call *of, rondo_value *out_value) {
  rondo_value x;
  RONDO_TRY(rondo_op_cast(program, of->value, RONDO_F32, &x));
  if (isinf(of->order)) {
    RONDO_TRY(rondo_op_abs(program, x, out_value));
    RONDO_TRY(reduce(program, of, of->order > 0 ? rondo_op_max : rondo_op_min, out_value));
  } else {
    RONDO_TRY(add_powers(program, of, x, out_value));
    if (of->order != 0 && of->order != 1) RONDO_TRY(add_root(program, of->order, *out_value, out_value));
  }
  return rondo_op_cast(program, *out_value, of->shape.type, out_value);
}

rondo_status rondo_op_vector_norm(rondo_program *program, rondo_value value, float order, const size_t *dims,
                                  size_t dim_count, bool keeps, rondo_value *out_value) {
  reduction_call of = {
      .name = "vector_norm", .value = value, .dims = dims, .dim_count = dim_count, .keeps = keeps, .order = order};
  RONDO_TRY(rondo_program_begin(program, of.name, out_value));
  if (isnan(order))
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                      "vector_norm: the order is not a number: use 1, 2, an infinity or another number");
  return apply(program, &of, RONDO_FLOATS, add_vector_norm, out_value);
}
