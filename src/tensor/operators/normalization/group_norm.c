/* SPDX-License-Identifier: MIT
 * group_norm and instance_norm: each group of channels of an image [n, c, ..] is one row of a layer_norm without
 * parameters, which are applied to the channels after it. instance_norm has a group for each channel. With parameters,
 * F16 and BF16 become F32 first, so that results are rounded once. Threads: as tensor/program/operator.h says.
 */
#include <assert.h>
#include <math.h>

#include "tensor/operators/common/operator_tools.h"

/* [n, c, ..] to [n groups, the rest] */
static rondo_shape rows_of(const rondo_shape *value, size_t groups) {
  const size_t rows = value->dims[0] * groups;
  return rondo_shape_matrix(value->type, rows, rondo_shape_elements(value) / rows);
}

static rondo_status add_rows_norm(rondo_program *program, uint32_t value, size_t groups, float epsilon,
                                  uint32_t *out_value) {
  const rondo_shape shape = *rondo_program_shape(program, value);
  uint32_t rows, normalized;
  rondo_value result;
  RONDO_TRY(rondo_program_add_shaped(program, &rondo_operator_reshape, value, rows_of(&shape, groups), &rows));
  RONDO_TRY(rondo_op_layer_norm(program, rondo_program_tag(program, rows), (rondo_value){0}, (rondo_value){0}, 1,
                                epsilon, &result));
  RONDO_TRY(rondo_program_resolve(program, result, "group_norm", "rows", &normalized));
  return rondo_program_add_shaped(program, &rondo_operator_reshape, normalized, shape, out_value);
}

/* Applies a parameter [c], which may be no value, to the channels of an F32 value by `row`. */
static rondo_status apply(rondo_program *program, const rondo_operator *row, uint32_t parameter,
                          uint32_t *inout_value) {
  const rondo_shape *value = rondo_program_shape(program, *inout_value);
  const rondo_shape channels = {.type = RONDO_F32, .rank = value->rank - 1, .dims = {value->dims[1], 1, 1, 1, 1}};
  uint32_t terms[] = {*inout_value, parameter};
  if (parameter == RONDO_NO_VALUE) return RONDO_OK;
  RONDO_TRY(rondo_program_add_cast(program, RONDO_F32, &parameter));
  RONDO_TRY(rondo_program_add_shaped(program, &rondo_operator_reshape, parameter, channels, &terms[1]));
  return rondo_program_add(program, row, terms, 2, NULL, inout_value);
}

/* Finds a parameter, which may be no value, and checks it. */
static rondo_status find(const rondo_program *program, const char *call, rondo_value parameter, const char *what,
                         const rondo_shape *value, uint32_t *out_index) {
  char text[RONDO_SHAPE_TEXT];
  *out_index = RONDO_NO_VALUE;
  if (parameter.id == 0) return RONDO_OK;
  RONDO_TRY(rondo_program_resolve(program, parameter, call, what, out_index));
  const rondo_shape *shape = rondo_program_shape(program, *out_index);
  const bool has_type = shape->type == value->type || shape->type == RONDO_F32;
  if (has_type && shape->rank == 1 && shape->dims[0] == value->dims[1]) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, has_type ? RONDO_REASON_SHAPE : RONDO_REASON_TYPE,
                    "%s: %s is %s; it must have an element for each of the %zu channels, of the value's type or f32",
                    call, what, rondo_shape_text(text, shape), value->dims[1]);
}

static rondo_status check(const char *call, const rondo_shape *value, size_t groups, float epsilon) {
  char text[RONDO_SHAPE_TEXT];
  if (!(epsilon >= 0 && epsilon < INFINITY))
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                      "%s: epsilon is %g; it must be finite and above 0, or 0 for 1e-5", call, (double)epsilon);
  if (!rondo_shape_is_float(value))
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_TYPE, "%s: value is %s; it must be f32, f16 or bf16", call,
                      rondo_type_name(value->type));
  if (value->rank >= 2 && groups > 0 && value->dims[1] % groups == 0) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE,
                    "%s: value is %s; it must be [n, c, ..] with c a multiple of the groups, %zu", call,
                    rondo_shape_text(text, value), groups);
}

static rondo_status add_norm(rondo_program *program, uint32_t value, size_t groups, uint32_t scale, uint32_t shift,
                             float epsilon, uint32_t *out_value) {
  const rondo_type type = rondo_program_shape(program, value)->type;
  const bool has_parameters = scale != RONDO_NO_VALUE || shift != RONDO_NO_VALUE;
  if (has_parameters) RONDO_TRY(rondo_program_add_cast(program, RONDO_F32, &value));
  RONDO_TRY(add_rows_norm(program, value, groups, epsilon == 0 ? 1e-5f : epsilon, out_value));
  RONDO_TRY(apply(program, &rondo_operator_mul, scale, out_value));
  RONDO_TRY(apply(program, &rondo_operator_add, shift, out_value));
  return rondo_program_add_cast(program, type, out_value);
}

/* groups 0: one for each channel. */
static rondo_status normalize(rondo_program *program, const char *call, rondo_value value, size_t groups,
                              rondo_value scale, rondo_value shift, float epsilon, rondo_value *out_value) {
  uint32_t index, parameters[2], result = RONDO_NO_VALUE;
  RONDO_TRY(rondo_program_begin_of(program, call, value, "value", out_value, &index));
  const rondo_shape *shape = rondo_program_shape(program, index);
  if (groups == 0) groups = shape->rank >= 2 ? shape->dims[1] : 1;
  RONDO_TRY(check(call, shape, groups, epsilon));
  RONDO_TRY(find(program, call, scale, "scale", shape, &parameters[0]));
  RONDO_TRY(find(program, call, shift, "shift", shape, &parameters[1]));
  const rondo_program_mark mark = rondo_program_get_mark(program);
  const rondo_status status = add_norm(program, index, groups, parameters[0], parameters[1], epsilon, &result);
  return rondo_program_finish(program, mark, status, result, out_value);
}

rondo_status rondo_op_group_norm(rondo_program *program, rondo_value value, size_t groups, rondo_value scale,
                                 rondo_value shift, float epsilon, rondo_value *out_value) {
  if (groups > 0) return normalize(program, "group_norm", value, groups, scale, shift, epsilon, out_value);
  RONDO_TRY(rondo_program_begin(program, "group_norm", out_value));
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE, "group_norm: 0 groups: use at least 1");
}

rondo_status rondo_op_instance_norm(rondo_program *program, rondo_value value, rondo_value scale, rondo_value shift,
                                    float epsilon, rondo_value *out_value) {
  return normalize(program, "instance_norm", value, 0, scale, shift, epsilon, out_value);
}
