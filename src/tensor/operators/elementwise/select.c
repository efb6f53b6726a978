/* SPDX-License-Identifier: MIT
 * select: a where the condition is not 0, else b, broadcast, of any type. A gradient goes where the value came from:
 * those of a and b keep it where the condition holds, or does not, and are 0 elsewhere.
 */
#include "tensor/operators/elementwise/broadcast.h"

#include "tensor/program/operation.h"

/* Forward ---------------------------------------------------------------------------------------------------------- */

RONDO_VECTORISED(select_floats, (const void *const *terms, void *result, size_t count), (terms, result, count)) {
  const int64_t *condition = terms[0];
  const float *a = terms[1], *b = terms[2];
  float *restrict y = result;
  RONDO_EACH_LANE(i, lane, count, y[i] = condition[i] != 0 ? a[i] : b[i]);
}

RONDO_VECTORISED(select_integers, (const void *const *terms, void *result, size_t count), (terms, result, count)) {
  const int64_t *condition = terms[0], *a = terms[1], *b = terms[2];
  int64_t *restrict y = result;
  RONDO_EACH_LANE(i, lane, count, y[i] = condition[i] != 0 ? a[i] : b[i]);
}

static void select_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  const bool is_integer = type == RONDO_I32 || type == RONDO_I64;
  const rondo_broadcast_form form = {is_integer ? select_integers : select_floats, 3, {RONDO_I32, type, type}, type};
  rondo_broadcast_cpu(&form, blocks, args);
}

RONDO_NUMBER_KERNEL(select, select, RONDO_BROADCAST_PARAMETERS_3);

static rondo_status differentiate_select(rondo_program *program, const rondo_operation *operation,
                                         const uint32_t *result_gradients, uint32_t *input_gradients) {
  const uint32_t terms[] = {operation->inputs[0], result_gradients[0]};
  for (uint32_t i = 1; i < 3; i++) {
    const rondo_operator *row = i == 1 ? &rondo_operator_select_gradient_a : &rondo_operator_select_gradient_b;
    uint32_t wide;
    RONDO_TRY(rondo_program_add(program, row, terms, 2, NULL, &wide));
    RONDO_TRY(rondo_add_sum_to(program, wide, operation->inputs[i], &input_gradients[i]));
  }
  return RONDO_OK;
}

static const rondo_broadcast_row select_family = {.code = select_code,
                                                  .floats = select_floats,
                                                  .integers = select_integers,
                                                  .of_integers = true,
                                                  .has_condition = true};

const rondo_operator rondo_operator_select = {.name = "select",
                                              .types = RONDO_NUMBERS,
                                              .typed_input = 1,
                                              .inputs = {"condition", "a", "b"},
                                              .required = 3,
                                              .result_count = 1,
                                              .family = &select_family,
                                              .element = RONDO_ELEMENT(rondo_compute_broadcast, select, select),
                                              .infer = rondo_infer_broadcast,
                                              .differentiate = differentiate_select,
                                              .emit = rondo_emit_broadcast};

rondo_status rondo_op_select(rondo_program *program, rondo_value condition, rondo_value a, rondo_value b,
                             rondo_value *out_value) {
  return rondo_program_apply(program, &rondo_operator_select, (rondo_value[]){condition, a, b}, 3, NULL, out_value);
}

/* Gradients -------------------------------------------------------------------------------------------------------- */

RONDO_VECTORISED(keep_where_set, (const void *const *terms, void *result, size_t count), (terms, result, count)) {
  const int64_t *condition = terms[0];
  const float *dy = terms[1];
  float *restrict dx = result;
  RONDO_EACH_LANE(i, lane, count, dx[i] = condition[i] != 0 ? dy[i] : 0.0f);
}

RONDO_VECTORISED(keep_where_zero, (const void *const *terms, void *result, size_t count), (terms, result, count)) {
  const int64_t *condition = terms[0];
  const float *dy = terms[1];
  float *restrict dx = result;
  RONDO_EACH_LANE(i, lane, count, dx[i] = condition[i] != 0 ? 0.0f : dy[i]);
}

static void select_gradient_a_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  const rondo_broadcast_form form = {keep_where_set, 2, {RONDO_I32, type}, type};
  rondo_broadcast_cpu(&form, blocks, args);
}

static void select_gradient_b_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  const rondo_broadcast_form form = {keep_where_zero, 2, {RONDO_I32, type}, type};
  rondo_broadcast_cpu(&form, blocks, args);
}

RONDO_TYPED_KERNEL(select_gradient_a, select_gradient, RONDO_BROADCAST_PARAMETERS_2);
RONDO_TYPED_KERNEL(select_gradient_b, select_gradient, RONDO_BROADCAST_PARAMETERS_2);

static const rondo_broadcast_row select_gradient_a_family = {
    .code = select_gradient_a_code, .floats = keep_where_set, .has_condition = true};
static const rondo_broadcast_row select_gradient_b_family = {
    .code = select_gradient_b_code, .floats = keep_where_zero, .has_condition = true};

#define GRADIENT_ROW                                                                                     \
  .inputs = {"condition", "gradient"}, .required = 2, .result_count = 1, .infer = rondo_infer_broadcast, \
  .emit = rondo_emit_broadcast

const rondo_operator rondo_operator_select_gradient_a = {
    .name = "select_gradient_a",
    .family = &select_gradient_a_family,
    .element = RONDO_ELEMENT(rondo_compute_broadcast, select_gradient_a, select_gradient),
    GRADIENT_ROW};
const rondo_operator rondo_operator_select_gradient_b = {
    .name = "select_gradient_b",
    .family = &select_gradient_b_family,
    .element = RONDO_ELEMENT(rondo_compute_broadcast, select_gradient_b, select_gradient),
    GRADIENT_ROW};
