/* SPDX-License-Identifier: MIT
 * div: a / b, broadcast, of floats. The gradient of b, -dy y / b, is of three inputs.
 */
#include "tensor/operators/elementwise/broadcast.h"

#include "tensor/program/operation.h"

RONDO_TERM_CHUNK(div_floats, float, float, a / b)

static void div_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  const rondo_broadcast_form form = {div_floats, 2, {type, type}, type};
  rondo_broadcast_cpu(&form, blocks, args);
}

RONDO_TYPED_KERNEL(div, div, RONDO_BROADCAST_PARAMETERS_2);

RONDO_TERM_CHUNK(div_gradient_floats, float, float, -a *b / c)

static void div_gradient_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  const rondo_broadcast_form form = {div_gradient_floats, 3, {type, type, type}, type};
  rondo_broadcast_cpu(&form, blocks, args);
}

RONDO_TYPED_KERNEL(div_gradient, div, RONDO_BROADCAST_PARAMETERS_3);

static rondo_status differentiate_div(rondo_program *program, const rondo_operation *operation,
                                      const uint32_t *result_gradients, uint32_t *input_gradients) {
  const uint32_t of_a[] = {result_gradients[0], operation->inputs[1]};
  const uint32_t of_b[] = {result_gradients[0], operation->results[0], operation->inputs[1]};
  uint32_t wide;
  RONDO_TRY(rondo_program_add(program, &rondo_operator_div, of_a, 2, NULL, &wide));
  RONDO_TRY(rondo_add_sum_to(program, wide, operation->inputs[0], &input_gradients[0]));
  RONDO_TRY(rondo_program_add(program, &rondo_operator_div_gradient, of_b, 3, NULL, &wide));
  return rondo_add_sum_to(program, wide, operation->inputs[1], &input_gradients[1]);
}

static const rondo_broadcast_row div_family = {.code = div_code, .floats = div_floats};

const rondo_operator rondo_operator_div = {.name = "div",
                                           .types = RONDO_FLOATS,
                                           .inputs = {"a", "b"},
                                           .required = 2,
                                           .result_count = 1,
                                           .family = &div_family,
                                           .element = RONDO_ELEMENT(rondo_compute_broadcast, div, div),
                                           .infer = rondo_infer_broadcast,
                                           .differentiate = differentiate_div,
                                           .emit = rondo_emit_broadcast};

static const rondo_broadcast_row div_gradient_family = {.code = div_gradient_code, .floats = div_gradient_floats};

const rondo_operator rondo_operator_div_gradient = {
    .name = "div_gradient",
    .inputs = {"gradient", "result", "b"},
    .required = 3,
    .result_count = 1,
    .family = &div_gradient_family,
    .element = RONDO_ELEMENT(rondo_compute_broadcast, div_gradient, div),
    .infer = rondo_infer_broadcast,
    .emit = rondo_emit_broadcast};

rondo_status rondo_op_div(rondo_program *program, rondo_value a, rondo_value b, rondo_value *out_value) {
  return rondo_program_apply(program, &rondo_operator_div, (rondo_value[]){a, b}, 2, NULL, out_value);
}
