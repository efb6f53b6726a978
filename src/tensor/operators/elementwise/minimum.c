/* SPDX-License-Identifier: MIT
 * minimum: the smaller of a and b, broadcast; not-a-number where one is. Its gradient is that of maximum, with a and b
 * changed.
 */
#include "tensor/operators/elementwise/broadcast.h"

#include "tensor/program/operation.h"

RONDO_TERM_CHUNK(minimum_floats, float, float, ((a < b) | (a != a)) ? a : b)
RONDO_TERM_CHUNK(minimum_integers, int64_t, int64_t, a < b ? a : b)

static void minimum_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  const bool is_integer = type == RONDO_I32 || type == RONDO_I64;
  const rondo_broadcast_form form = {is_integer ? minimum_integers : minimum_floats, 2, {type, type}, type};
  rondo_broadcast_cpu(&form, blocks, args);
}

RONDO_NUMBER_KERNEL(minimum, minimum, RONDO_BROADCAST_PARAMETERS_2);

static rondo_status differentiate_minimum(rondo_program *program, const rondo_operation *operation,
                                          const uint32_t *result_gradients, uint32_t *input_gradients) {
  for (uint32_t i = 0; i < 2; i++) {
    const uint32_t terms[] = {result_gradients[0], operation->inputs[1 - i], operation->inputs[i]};
    uint32_t wide;
    RONDO_TRY(rondo_program_add(program, &rondo_operator_maximum_gradient, terms, 3, NULL, &wide));
    RONDO_TRY(rondo_add_sum_to(program, wide, operation->inputs[i], &input_gradients[i]));
  }
  return RONDO_OK;
}

static const rondo_broadcast_row minimum_family = {
    .code = minimum_code, .floats = minimum_floats, .integers = minimum_integers, .of_integers = true};

const rondo_operator rondo_operator_minimum = {.name = "minimum",
                                               .types = RONDO_NUMBERS,
                                               .inputs = {"a", "b"},
                                               .required = 2,
                                               .result_count = 1,
                                               .family = &minimum_family,
                                               .element = RONDO_ELEMENT(rondo_compute_broadcast, minimum, minimum),
                                               .infer = rondo_infer_broadcast,
                                               .differentiate = differentiate_minimum,
                                               .emit = rondo_emit_broadcast};

rondo_status rondo_op_minimum(rondo_program *program, rondo_value a, rondo_value b, rondo_value *out_value) {
  return rondo_program_apply(program, &rondo_operator_minimum, (rondo_value[]){a, b}, 2, NULL, out_value);
}
