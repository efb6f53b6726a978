/* SPDX-License-Identifier: MIT
 * greater and greater_equal.
 */
#include "operators/broadcast_reference.h"

/* Many are equal. */
static void draw(uint64_t *seed, test_call *call) {
  draw_broadcast(seed, call, 2, -3, 3);
  for (size_t i = 0; i < 2; i++) {
    if (test_input_elements(call, i) <= MOST_COARSE) call->inputs[i].values = coarse_numbers() + i * MOST_COARSE;
  }
}

static void draw_integers(uint64_t *seed, test_call *call) { draw_broadcast_integers(seed, call, 2, -2, 2); }

static rondo_status build_greater(const test_call *call, rondo_program *program, const rondo_value *inputs,
                                  rondo_value *result) {
  (void)call;
  return rondo_op_greater(program, inputs[0], inputs[1], result);
}

static double value_of_greater(double a, double b) { return a > b; }

static void reference_greater(const test_call *call, double *const *inputs, double *result) {
  reference_broadcast(call, inputs, result, value_of_greater);
}

TEST_OPERATOR(test_greater, .name = "greater", .draw = draw, .build = build_greater, .reference = reference_greater,
              .has_no_gradient = true)
TEST_OPERATOR(test_greater_of_integers, .name = "greater", .draw = draw_integers, .build = build_greater,
              .reference = reference_greater, .only_f32 = true, .has_no_gradient = true)

static rondo_status build_greater_equal(const test_call *call, rondo_program *program, const rondo_value *inputs,
                                        rondo_value *result) {
  (void)call;
  return rondo_op_greater_equal(program, inputs[0], inputs[1], result);
}

static double value_of_greater_equal(double a, double b) { return a >= b; }

static void reference_greater_equal(const test_call *call, double *const *inputs, double *result) {
  reference_broadcast(call, inputs, result, value_of_greater_equal);
}

TEST_OPERATOR(test_greater_equal, .name = "greater_equal", .draw = draw, .build = build_greater_equal,
              .reference = reference_greater_equal, .has_no_gradient = true)
TEST_OPERATOR(test_greater_equal_of_integers, .name = "greater_equal", .draw = draw_integers,
              .build = build_greater_equal, .reference = reference_greater_equal, .only_f32 = true,
              .has_no_gradient = true)

int main(void) {
  const struct CMUnitTest tests[] = {test_case(test_greater), test_case(test_greater_of_integers),
                                     test_case(test_greater_equal), test_case(test_greater_equal_of_integers)};
  return test_main(tests);
}
