/* SPDX-License-Identifier: MIT
 * less, less_equal, greater, greater_equal, equal and not_equal: comparisons, broadcast, of any type, which give 1 or 0
 * as I32. They have no gradient: nothing flows through them.
 */
#include "tensor/operators/elementwise/broadcast.h"

#include "tensor/program/operation.h"

/* What one comparison is made of. */
#define COMPARISON(compared, sign)                                                                                 \
  RONDO_TERM_CHUNK(compared##_floats, float, int64_t, a sign b)                                                    \
  RONDO_TERM_CHUNK(compared##_integers, int64_t, int64_t, a sign b)                                                \
  static void compared##_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {                            \
    const bool is_integer = type == RONDO_I32 || type == RONDO_I64;                                                \
    const rondo_broadcast_form form = {                                                                            \
        is_integer ? compared##_integers : compared##_floats, 2, {type, type}, RONDO_I32};                         \
    rondo_broadcast_cpu(&form, blocks, args);                                                                      \
  }                                                                                                                \
  RONDO_NUMBER_KERNEL(compared, compare, RONDO_BROADCAST_PARAMETERS_2);                                            \
  static const rondo_broadcast_row compared##_family = {.code = compared##_code,                                   \
                                                        .floats = compared##_floats,                               \
                                                        .integers = compared##_integers,                           \
                                                        .of_integers = true,                                       \
                                                        .gives_flags = true};                                      \
  const rondo_operator rondo_operator_##compared = {                                                               \
      .name = #compared,                                                                                           \
      .types = RONDO_NUMBERS,                                                                                      \
      .inputs = {"a", "b"},                                                                                        \
      .required = 2,                                                                                               \
      .result_count = 1,                                                                                           \
      .family = &compared##_family,                                                                                \
      .element = RONDO_ELEMENT(rondo_compute_broadcast, compared, compare),                                        \
      .infer = rondo_infer_broadcast,                                                                              \
      .emit = rondo_emit_broadcast};                                                                               \
  rondo_status rondo_op_##compared(rondo_program *program, rondo_value a, rondo_value b, rondo_value *out_value) { \
    return rondo_program_apply(program, &rondo_operator_##compared, (rondo_value[]){a, b}, 2, NULL, out_value);    \
  }

COMPARISON(less, <)
COMPARISON(less_equal, <=)
COMPARISON(greater, >)
COMPARISON(greater_equal, >=)
COMPARISON(equal, ==)
COMPARISON(not_equal, !=)
