/* SPDX-License-Identifier: MIT
 * softmax over the last dimension.
 */
#include "operators/softmax_reference.h"

static rondo_status build(const test_call *call, rondo_program *program, const rondo_value *in, rondo_value *result) {
  (void)call;
  return rondo_op_softmax(program, in[0], result);
}

static double value_of(double x, double sum) { return exp(x) / sum; }

static void reference(const test_call *call, double *const *in, double *y) { reference_rows(call, in[0], y, value_of); }

TEST_OPERATOR(test_softmax, .name = "softmax", .draw = draw_rows, .build = build, .reference = reference)

int main(void) {
  const struct CMUnitTest tests[] = {test_case(test_softmax)};
  return test_main(tests);
}
