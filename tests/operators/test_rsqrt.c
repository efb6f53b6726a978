/* SPDX-License-Identifier: MIT
 * rsqrt.
 */
#include <math.h>

#include "support/test_operator.h"

static void draw(uint64_t *seed, test_call *call) {
  size_t shape[RONDO_MAX_DIMENSIONS];
  const size_t rank = test_draw_between(seed, 0, 4);
  test_draw_shape(seed, rank, 9, shape);
  test_add_float(call, shape, rank, 0.1, 9);
}

static rondo_status build(const test_call *call, rondo_program *program, const rondo_value *inputs,
                          rondo_value *result) {
  (void)call;
  return rondo_op_rsqrt(program, inputs[0], result);
}

static double value_at(double x) { return 1 / sqrt(x); }

static void reference(const test_call *call, double *const *inputs, double *result) {
  for (size_t i = 0; i < test_input_elements(call, 0); i++) result[i] = value_at(inputs[0][i]);
}

TEST_OPERATOR(test_rsqrt, .name = "rsqrt", .draw = draw, .build = build, .reference = reference)

int main(void) {
  const struct CMUnitTest tests[] = {test_case(test_rsqrt)};
  return test_main(tests);
}
