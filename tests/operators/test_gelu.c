/* SPDX-License-Identifier: MIT
 * gelu, exact and approximated.
 */
#include <math.h>

#include "operators/unary_reference.h"

enum { FORM }; /* sizes */

static void draw(uint64_t *seed, test_call *call) {
  draw_unary(seed, call, -6, 6);
  call->sizes[FORM] = test_draw_between(seed, 0, 1);
}

static rondo_status build(const test_call *call, rondo_program *program, const rondo_value *inputs,
                          rondo_value *result) {
  return rondo_op_gelu(program, inputs[0], (rondo_gelu_form)call->sizes[FORM], result);
}

static double exact(double x) { return 0.5 * x * (1 + erf(x / sqrt(2))); }

static double approximate(double x) {
  const double pi = acos(-1);
  return 0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x * x * x)));
}

static void reference(const test_call *call, double *const *inputs, double *result) {
  const bool is_exact = call->sizes[FORM] == RONDO_GELU_ERF;
  for (size_t i = 0; i < test_input_elements(call, 0); i++)
    result[i] = is_exact ? exact(inputs[0][i]) : approximate(inputs[0][i]);
}

TEST_OPERATOR(test_gelu, .name = "gelu", .draw = draw, .build = build, .reference = reference)

static void test_form(void **state) {
  rondo_program *program = NULL;
  rondo_value x, y;
  (void)state;
  assert_ok(rondo_program_create(NULL, &program));
  assert_ok(rondo_program_input(program, "x", RONDO_F32, NULL, 0, &x));
  assert_int_equal(rondo_op_gelu(program, x, (rondo_gelu_form)2, &y), RONDO_INVALID_ARGUMENT);
  assert_int_equal(rondo_last_error()->reason, RONDO_REASON_OUT_OF_RANGE);
  assert_true(y.id == 0);
  rondo_program_destroy(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {test_case(test_gelu), cmocka_unit_test(test_form)};
  return test_main(tests);
}
