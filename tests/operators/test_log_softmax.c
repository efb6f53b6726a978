/* SPDX-License-Identifier: MIT
 * log_softmax over the last dimension.
 */
#include "operators/softmax_reference.h"

static rondo_status build(const test_call *call, rondo_program *program, const rondo_value *in, rondo_value *result) {
  (void)call;
  return rondo_op_log_softmax(program, in[0], result);
}

static double value_of(double x, double sum) { return x - log(sum); }

static void reference(const test_call *call, double *const *in, double *y) { reference_rows(call, in[0], y, value_of); }

TEST_OPERATOR(test_log_softmax, .name = "log_softmax", .draw = draw_rows, .build = build, .reference = reference)

int main(void) {
  const struct CMUnitTest tests[] = {test_case(test_log_softmax)};
  return test_main(tests);
}
