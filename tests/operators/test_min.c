/* SPDX-License-Identifier: MIT
 * min.
 */
#include <math.h>

#include "operators/reduction_reference.h"

static void draw(uint64_t *seed, test_call *call) { draw_reduction(seed, call, -2, 1); }

static rondo_status build(const test_call *call, rondo_program *program, const rondo_value *inputs,
                          rondo_value *result) {
  return build_reduction(call, program, inputs[0], rondo_op_min, result);
}

static void reference(const test_call *call, double *const *inputs, double *result) {
  const size_t count = test_input_elements(call, 0), results = result_count(call);
  for (size_t i = 0; i < results; i++) result[i] = INFINITY;
  for (size_t i = 0; i < count; i++) {
    double *into = &result[result_of(call, i)];
    *into = fmin(*into, inputs[0][i]);
  }
}

TEST_OPERATOR(test_min, .name = "min", .draw = draw, .build = build, .reference = reference, .tolerance = 1e-7,
              .gradient_tolerance = 1e-3, .has_ties = true)

static void test_shares(void **state) {
  check_extreme(*state, rondo_op_min, (float[]){1, 3, 1, 1, INFINITY, NAN, 5, -5});
}

int main(void) {
  const struct CMUnitTest tests[] = {test_case(test_min), test_case(test_shares)};
  return test_main(tests);
}
