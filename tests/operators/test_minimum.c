/* SPDX-License-Identifier: MIT
 * minimum.
 */
#include <math.h>

#include "operators/broadcast_reference.h"

static void draw(uint64_t *seed, test_call *call) { draw_broadcast(seed, call, 2, -3, 3); }

static void draw_integers(uint64_t *seed, test_call *call) { draw_broadcast_integers(seed, call, 2, -50, 50); }

/* Many are equal. */
static void draw_coarse(uint64_t *seed, test_call *call) {
  draw_broadcast(seed, call, 2, 0, 0);
  for (size_t i = 0; i < 2; i++) {
    if (test_input_elements(call, i) <= MOST_COARSE) call->inputs[i].values = coarse_numbers() + i * MOST_COARSE;
  }
}

static rondo_status build(const test_call *call, rondo_program *program, const rondo_value *inputs,
                          rondo_value *result) {
  (void)call;
  return rondo_op_minimum(program, inputs[0], inputs[1], result);
}

static double value_at(double a, double b) { return fmin(a, b); }

static void reference(const test_call *call, double *const *inputs, double *result) {
  reference_broadcast(call, inputs, result, value_at);
}

TEST_OPERATOR(test_floats, .name = "minimum", .draw = draw, .build = build, .reference = reference,
              .gradient_tolerance = 4e-4)
TEST_OPERATOR(test_integers, .name = "minimum", .draw = draw_integers, .build = build, .reference = reference,
              .only_f32 = true, .has_no_gradient = true)
TEST_OPERATOR(test_equal_numbers, .name = "minimum", .draw = draw_coarse, .build = build, .reference = reference,
              .gradient_tolerance = 4e-4)

int main(void) {
  const struct CMUnitTest tests[] = {test_case(test_floats), test_case(test_integers), test_case(test_equal_numbers)};
  return test_main(tests);
}
