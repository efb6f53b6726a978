/* SPDX-License-Identifier: MIT
 * mean.
 */
#include "operators/reduction_reference.h"

static void draw(uint64_t *seed, test_call *call) { draw_reduction(seed, call, -1, 2); }

static rondo_status build(const test_call *call, rondo_program *program, const rondo_value *inputs,
                          rondo_value *result) {
  return build_reduction(call, program, inputs[0], rondo_op_mean, result);
}

static void reference(const test_call *call, double *const *inputs, double *result) {
  const size_t count = test_input_elements(call, 0), results = result_count(call);
  for (size_t i = 0; i < results; i++) result[i] = 0;
  for (size_t i = 0; i < count; i++) {
    double *into = &result[result_of(call, i)];
    *into = *into + inputs[0][i];
  }
  for (size_t i = 0; i < results; i++) result[i] /= (double)count / (double)results;
}

TEST_OPERATOR(test_mean, .name = "mean", .draw = draw, .build = build, .reference = reference, .tolerance = 1e-5,
              .gradient_tolerance = 1e-3)

int main(void) {
  const struct CMUnitTest tests[] = {test_case(test_mean)};
  return test_main(tests);
}
