/* SPDX-License-Identifier: MIT
 * add.
 */
#include <string.h>

#include "operators/broadcast_reference.h"

static double value_of_add(double a, double b) { return a + b; }

TEST_ARITHMETIC(add)

static void test_what_does_not_fit(void **state) {
  const size_t shape[] = {2, 3}, other[] = {4}, six[] = {1, 1, 1, 1, 2, 3};
  rondo_program *program = NULL;
  rondo_value a, b, c, d, y;
  (void)state;
  assert_ok(rondo_program_create(NULL, &program));
  assert_ok(rondo_program_input(program, "a", RONDO_F32, shape, 2, &a));
  assert_ok(rondo_program_input(program, "b", RONDO_F32, other, 1, &b));
  assert_ok(rondo_program_input(program, "c", RONDO_F16, shape, 2, &c));
  assert_ok(rondo_program_input(program, "d", RONDO_F32, six, 6, &d));
  assert_int_equal(rondo_op_add(program, a, b, &y), RONDO_INVALID_ARGUMENT);
  assert_int_equal(rondo_last_error()->reason, RONDO_REASON_SHAPE);
  assert_non_null(strstr(rondo_last_error()->message, "'b' [4]"));
  assert_int_equal(rondo_op_add(program, a, c, &y), RONDO_INVALID_ARGUMENT);
  assert_int_equal(rondo_last_error()->reason, RONDO_REASON_TYPE);
  assert_true(y.id == 0);
  assert_ok(rondo_op_add(program, a, d, &y));
  rondo_program_destroy(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {test_case(test_floats), test_case(test_integers),
                                     cmocka_unit_test(test_what_does_not_fit)};
  return test_main(tests);
}
