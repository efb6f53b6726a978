/* SPDX-License-Identifier: MIT
 * maximum: the larger of a and b, broadcast; not-a-number where one is. Where floats are equal each gets half of the
 * gradient.
 */
#include "tensor/operators/elementwise/broadcast.h"

#include "tensor/program/operation.h"

RONDO_TERM_CHUNK(maximum_floats, float, float, ((a > b) | (a != a)) ? a : b)
RONDO_TERM_CHUNK(maximum_integers, int64_t, int64_t, a > b ? a : b)

static void maximum_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  const bool is_integer = type == RONDO_I32 || type == RONDO_I64;
  const rondo_broadcast_form form = {is_integer ? maximum_integers : maximum_floats, 2, {type, type}, type};
  rondo_broadcast_cpu(&form, blocks, args);
}

RONDO_NUMBER_KERNEL(maximum, maximum, RONDO_BROADCAST_PARAMETERS_2);

/* The gradient a where b is larger than c, half of it where they are equal. */
RONDO_TERM_CHUNK(maximum_gradient_floats, float, float, a *(0.5f * (float)((b > c) + (b >= c))))

static void maximum_gradient_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  const rondo_broadcast_form form = {maximum_gradient_floats, 3, {type, type, type}, type};
  rondo_broadcast_cpu(&form, blocks, args);
}

RONDO_TYPED_KERNEL(maximum_gradient, maximum_gradient, RONDO_BROADCAST_PARAMETERS_3);

static rondo_status differentiate_maximum(rondo_program *program, const rondo_operation *operation,
                                          const uint32_t *result_gradients, uint32_t *input_gradients) {
  for (uint32_t i = 0; i < 2; i++) {
    const uint32_t terms[] = {result_gradients[0], operation->inputs[i], operation->inputs[1 - i]};
    uint32_t wide;
    RONDO_TRY(rondo_program_add(program, &rondo_operator_maximum_gradient, terms, 3, NULL, &wide));
    RONDO_TRY(rondo_add_sum_to(program, wide, operation->inputs[i], &input_gradients[i]));
  }
  return RONDO_OK;
}

static const rondo_broadcast_row maximum_family = {
    .code = maximum_code, .floats = maximum_floats, .integers = maximum_integers, .of_integers = true};

const rondo_operator rondo_operator_maximum = {.name = "maximum",
                                               .types = RONDO_NUMBERS,
                                               .inputs = {"a", "b"},
                                               .required = 2,
                                               .result_count = 1,
                                               .family = &maximum_family,
                                               .element = RONDO_ELEMENT(rondo_compute_broadcast, maximum, maximum),
                                               .infer = rondo_infer_broadcast,
                                               .differentiate = differentiate_maximum,
                                               .emit = rondo_emit_broadcast};

static const rondo_broadcast_row maximum_gradient_family = {.code = maximum_gradient_code,
                                                            .floats = maximum_gradient_floats};

const rondo_operator rondo_operator_maximum_gradient = {
    .name = "maximum_gradient",
    .inputs = {"gradient", "larger", "smaller"},
    .required = 3,
    .result_count = 1,
    .family = &maximum_gradient_family,
    .element = RONDO_ELEMENT(rondo_compute_broadcast, maximum_gradient, maximum_gradient),
    .infer = rondo_infer_broadcast,
    .emit = rondo_emit_broadcast};

rondo_status rondo_op_maximum(rondo_program *program, rondo_value a, rondo_value b, rondo_value *out_value) {
  return rondo_program_apply(program, &rondo_operator_maximum, (rondo_value[]){a, b}, 2, NULL, out_value);
}
