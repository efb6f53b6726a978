/* SPDX-License-Identifier: MIT
 * div.
 */
#include "operators/broadcast_reference.h"

static void draw(uint64_t *seed, test_call *call) { draw_broadcast(seed, call, 2, 0.5, 3); }

static rondo_status build(const test_call *call, rondo_program *program, const rondo_value *inputs,
                          rondo_value *result) {
  (void)call;
  return rondo_op_div(program, inputs[0], inputs[1], result);
}

static double value_at(double a, double b) { return a / b; }

static void reference(const test_call *call, double *const *inputs, double *result) {
  reference_broadcast(call, inputs, result, value_at);
}

TEST_OPERATOR(test_floats, .name = "div", .draw = draw, .build = build, .reference = reference,
              .gradient_tolerance = 4e-4)

int main(void) {
  const struct CMUnitTest tests[] = {test_case(test_floats)};
  return test_main(tests);
}
