/* SPDX-License-Identifier: MIT
 * less and less_equal.
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

static rondo_status build_less(const test_call *call, rondo_program *program, const rondo_value *inputs,
                               rondo_value *result) {
  (void)call;
  return rondo_op_less(program, inputs[0], inputs[1], result);
}

static double value_of_less(double a, double b) { return a < b; }

static void reference_less(const test_call *call, double *const *inputs, double *result) {
  reference_broadcast(call, inputs, result, value_of_less);
}

TEST_OPERATOR(test_less, .name = "less", .draw = draw, .build = build_less, .reference = reference_less,
              .has_no_gradient = true)
TEST_OPERATOR(test_less_of_integers, .name = "less", .draw = draw_integers, .build = build_less,
              .reference = reference_less, .only_f32 = true, .has_no_gradient = true)

static rondo_status build_less_equal(const test_call *call, rondo_program *program, const rondo_value *inputs,
                                     rondo_value *result) {
  (void)call;
  return rondo_op_less_equal(program, inputs[0], inputs[1], result);
}

static double value_of_less_equal(double a, double b) { return a <= b; }

static void reference_less_equal(const test_call *call, double *const *inputs, double *result) {
  reference_broadcast(call, inputs, result, value_of_less_equal);
}

TEST_OPERATOR(test_less_equal, .name = "less_equal", .draw = draw, .build = build_less_equal,
              .reference = reference_less_equal, .has_no_gradient = true)
TEST_OPERATOR(test_less_equal_of_integers, .name = "less_equal", .draw = draw_integers, .build = build_less_equal,
              .reference = reference_less_equal, .only_f32 = true, .has_no_gradient = true)

int main(void) {
  const struct CMUnitTest tests[] = {test_case(test_less), test_case(test_less_of_integers), test_case(test_less_equal),
                                     test_case(test_less_equal_of_integers)};
  return test_main(tests);
}
