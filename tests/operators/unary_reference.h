/* SPDX-License-Identifier: MIT
 * What the tests of operators of one input, element by element, share.
 */
#ifndef RONDO_TESTS_OPERATORS_UNARY_REFERENCE_H
#define RONDO_TESTS_OPERATORS_UNARY_REFERENCE_H

#include "support/test_operator.h"

/* One float input of any shape, random in low .. high. */
static inline void draw_unary(uint64_t *seed, test_call *call, double low, double high) {
  size_t shape[RONDO_MAX_DIMENSIONS];
  const size_t rank = test_draw_between(seed, 0, 4);
  test_draw_shape(seed, rank, 9, shape);
  test_add_float(call, shape, rank, low, high);
}

/* The test test_`op` of rondo_op_`op`, whose value at x is value_at(x), of inputs random in low .. high. */
#define TEST_UNARY(op, low, high)                                                                     \
  static void draw(uint64_t *seed, test_call *call) { draw_unary(seed, call, low, high); }            \
  static rondo_status build(const test_call *call, rondo_program *program, const rondo_value *inputs, \
                            rondo_value *result) {                                                    \
    (void)call;                                                                                       \
    return rondo_op_##op(program, inputs[0], result);                                                 \
  }                                                                                                   \
  static void reference(const test_call *call, double *const *inputs, double *result) {               \
    for (size_t i = 0; i < test_input_elements(call, 0); i++) result[i] = value_at(inputs[0][i]);     \
  }                                                                                                   \
  TEST_OPERATOR(test_##op, .name = #op, .draw = draw, .build = build, .reference = reference)

#endif
