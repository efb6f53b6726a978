/* SPDX-License-Identifier: MIT
 * sub.
 */
#include "operators/broadcast_reference.h"

static void draw(uint64_t *seed, test_call *call) { draw_broadcast(seed, call, 2, -3, 3); }

static void draw_integers(uint64_t *seed, test_call *call) { draw_broadcast_integers(seed, call, 2, -50, 50); }

static rondo_status build(const test_call *call, rondo_program *program, const rondo_value *inputs,
                          rondo_value *result) {
  (void)call;
  return rondo_op_sub(program, inputs[0], inputs[1], result);
}

static double value_at(double a, double b) { return a - b; }

static void reference(const test_call *call, double *const *inputs, double *result) {
  reference_broadcast(call, inputs, result, value_at);
}

TEST_OPERATOR(test_floats, .name = "sub", .draw = draw, .build = build, .reference = reference,
              .gradient_tolerance = 4e-4)
TEST_OPERATOR(test_integers, .name = "sub", .draw = draw_integers, .build = build, .reference = reference,
              .only_f32 = true, .has_no_gradient = true)

int main(void) {
  const struct CMUnitTest tests[] = {test_case(test_floats), test_case(test_integers)};
  return test_main(tests);
}
