/* SPDX-License-Identifier: MIT
 * sub: a - b, broadcast.
 */
#include "tensor/operators/elementwise/broadcast.h"
#include "tensor/operators/elementwise/unary.h"
#include "tensor/program/operation.h"

RONDO_TERM_CHUNK(sub_floats, float, float, a - b)
RONDO_TERM_CHUNK(sub_integers, int64_t, int64_t, (int64_t)((uint64_t)a - (uint64_t)b))

static void sub_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  const bool is_integer = type == RONDO_I32 || type == RONDO_I64;
  const rondo_broadcast_form form = {is_integer ? sub_integers : sub_floats, 2, {type, type}, type};
  rondo_broadcast_cpu(&form, blocks, args);
}

RONDO_NUMBER_KERNEL(sub, sub, RONDO_BROADCAST_PARAMETERS_2);

static rondo_status differentiate_sub(rondo_program *program, const rondo_operation *operation,
                                      const uint32_t *result_gradients, uint32_t *input_gradients) {
  const rondo_attributes minus = rondo_scale_attributes(-1);
  uint32_t negated;
  RONDO_TRY(rondo_add_sum_to(program, result_gradients[0], operation->inputs[0], &input_gradients[0]));
  RONDO_TRY(rondo_add_sum_to(program, result_gradients[0], operation->inputs[1], &negated));
  return rondo_program_add(program, &rondo_operator_neg, &negated, 1, &minus, &input_gradients[1]);
}

static const rondo_broadcast_row sub_family = {
    .code = sub_code, .floats = sub_floats, .integers = sub_integers, .of_integers = true};

const rondo_operator rondo_operator_sub = {.name = "sub",
                                           .types = RONDO_NUMBERS,
                                           .inputs = {"a", "b"},
                                           .required = 2,
                                           .result_count = 1,
                                           .family = &sub_family,
                                           .element = RONDO_ELEMENT(rondo_compute_broadcast, sub, sub),
                                           .infer = rondo_infer_broadcast,
                                           .differentiate = differentiate_sub,
                                           .emit = rondo_emit_broadcast};

rondo_status rondo_op_sub(rondo_program *program, rondo_value a, rondo_value b, rondo_value *out_value) {
  return rondo_program_apply(program, &rondo_operator_sub, (rondo_value[]){a, b}, 2, NULL, out_value);
}
