/* SPDX-License-Identifier: MIT
 * add: a + b, broadcast. Sums the gradients of a value that is used more than once, too.
 */
#include "tensor/operators/elementwise/broadcast.h"

#include "tensor/program/operation.h"

RONDO_TERM_CHUNK(add_floats, float, float, a + b)
RONDO_TERM_CHUNK(add_integers, int64_t, int64_t, (int64_t)((uint64_t)a + (uint64_t)b))

static void add_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  const bool is_integer = type == RONDO_I32 || type == RONDO_I64;
  const rondo_broadcast_form form = {is_integer ? add_integers : add_floats, 2, {type, type}, type};
  rondo_broadcast_cpu(&form, blocks, args);
}

RONDO_NUMBER_KERNEL(add, add, RONDO_BROADCAST_PARAMETERS_2);

static rondo_status differentiate_add(rondo_program *program, const rondo_operation *operation,
                                      const uint32_t *result_gradients, uint32_t *input_gradients) {
  for (uint32_t i = 0; i < 2; i++)
    RONDO_TRY(rondo_add_sum_to(program, result_gradients[0], operation->inputs[i], &input_gradients[i]));
  return RONDO_OK;
}

static const rondo_broadcast_row add_family = {
    .code = add_code, .floats = add_floats, .integers = add_integers, .of_integers = true};

const rondo_operator rondo_operator_add = {.name = "add",
                                           .types = RONDO_NUMBERS,
                                           .inputs = {"a", "b"},
                                           .required = 2,
                                           .result_count = 1,
                                           .family = &add_family,
                                           .element = RONDO_ELEMENT(rondo_compute_broadcast, add, add),
                                           .infer = rondo_infer_broadcast,
                                           .differentiate = differentiate_add,
                                           .emit = rondo_emit_broadcast};

rondo_status rondo_op_add(rondo_program *program, rondo_value a, rondo_value b, rondo_value *out_value) {
  return rondo_program_apply(program, &rondo_operator_add, (rondo_value[]){a, b}, 2, NULL, out_value);
}
