/* SPDX-License-Identifier: MIT
 * select: a where the condition is not 0, else b, broadcast, of any type, like torch.where. The gradient goes to the
 * input that was selected; the gradient of the other input is 0. Threads: as tensor/program/operator.h says.
 */
#include "tensor/operators/elementwise/broadcast.h"

#include "tensor/program/operation.h"
#include "tensor/program/program.h"

/* Defines `name`: y = formula of a condition and the elements a and b of type `term`; b may be missing. */
#define CONDITION_CHUNK(name, term, formula)                                                               \
  RONDO_VECTORISED(name, (const void *const *terms, void *result, size_t count), (terms, result, count)) { \
    const int64_t *condition = terms[0];                                                                   \
    const term *a = terms[1], *b = terms[2];                                                               \
    term *restrict y = result;                                                                             \
    (void)b;                                                                                               \
    RONDO_EACH_LANE(i, lane, count, y[i] = condition[i] != 0 ? formula);                                   \
  }

CONDITION_CHUNK(select_floats, float, a[i] : b[i])
CONDITION_CHUNK(select_integers, int64_t, a[i] : b[i])
CONDITION_CHUNK(keep_where_set, float, a[i] : 0.0f)
CONDITION_CHUNK(keep_where_zero, float, 0.0f : a[i])

RONDO_BROADCAST_CPU(select)
RONDO_BROADCAST_CPU(select_gradient_a)
RONDO_BROADCAST_CPU(select_gradient_b)
RONDO_NUMBER_KERNEL(select, select, RONDO_BROADCAST_PARAMETERS_3);
RONDO_TYPED_KERNEL(select_gradient_a, select_gradient, RONDO_BROADCAST_PARAMETERS_2);
RONDO_TYPED_KERNEL(select_gradient_b, select_gradient, RONDO_BROADCAST_PARAMETERS_2);

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

static const rondo_broadcast_row select_family = {
    .code = select_code, .floats = select_floats, .integers = select_integers, .has_condition = true};
static const rondo_broadcast_row select_gradient_a_family = {
    .code = select_gradient_a_code, .floats = keep_where_set, .has_condition = true};
static const rondo_broadcast_row select_gradient_b_family = {
    .code = select_gradient_b_code, .floats = keep_where_zero, .has_condition = true};

RONDO_OPERATOR(select, .types = RONDO_ALL_TYPES, .typed_input = 1, .inputs = {"condition", "a", "b"}, .required = 3,
               .differentiate = differentiate_select, RONDO_BROADCAST_ROW(select, select));
RONDO_OPERATOR(select_gradient_a, .inputs = {"condition", "gradient"}, .required = 2,
               RONDO_BROADCAST_ROW(select_gradient_a, select_gradient));
RONDO_OPERATOR(select_gradient_b, .inputs = {"condition", "gradient"}, .required = 2,
               RONDO_BROADCAST_ROW(select_gradient_b, select_gradient));

rondo_status rondo_op_select(rondo_program *program, rondo_value condition, rondo_value a, rondo_value b,
                             rondo_value *out_value) {
  static const rondo_attributes to_bool = {.sizes = {RONDO_BOOL}, .size_count = 1};
  uint32_t index;
  RONDO_TRY(rondo_program_begin_of(program, "select", condition, "condition", out_value, &index));
  const rondo_type type = rondo_program_shape(program, index)->type;
  if (type == RONDO_BOOL || !rondo_is_integer(type))
    return rondo_program_apply(program, &rondo_operator_select, (rondo_value[]){condition, a, b}, 3, NULL, out_value);
  const rondo_program_mark mark = rondo_program_get_mark(program);
  uint32_t inputs[3], result = RONDO_NO_VALUE;
  rondo_status status =
      rondo_program_resolve_inputs(program, &rondo_operator_select, (rondo_value[]){condition, a, b}, 3, inputs);
  if (status == RONDO_OK) status = rondo_program_add(program, &rondo_operator_cast, &index, 1, &to_bool, &inputs[0]);
  if (status == RONDO_OK) status = rondo_program_add(program, &rondo_operator_select, inputs, 3, NULL, &result);
  return rondo_program_finish(program, mark, status, result, out_value);
}
