/* SPDX-License-Identifier: MIT
 * mul.
 */
#include "operators/broadcast_reference.h"

static double value_of_mul(double a, double b) { return a * b; }

TEST_ARITHMETIC(mul)

/* I32 and I64 wrap around at their ends. */
static void test_wrapping(void **state) {
  test_fixture *t = *state;
  const int32_t a = INT32_MAX, b = 2;
  const int64_t c = INT64_MAX, d = 2;
  int32_t y;
  int64_t z;
  rondo_program *program = NULL;
  rondo_compiled *compiled = NULL;
  rondo_value in[4], out[2];
  assert_ok(rondo_program_create(NULL, &program));
  assert_ok(rondo_program_input(program, "a", RONDO_I32, NULL, 0, &in[0]));
  assert_ok(rondo_program_input(program, "b", RONDO_I32, NULL, 0, &in[1]));
  assert_ok(rondo_program_input(program, "c", RONDO_I64, NULL, 0, &in[2]));
  assert_ok(rondo_program_input(program, "d", RONDO_I64, NULL, 0, &in[3]));
  assert_ok(rondo_op_mul(program, in[0], in[1], &out[0]));
  assert_ok(rondo_op_mul(program, in[2], in[3], &out[1]));
  assert_ok(rondo_program_output(program, "y", out[0]));
  assert_ok(rondo_program_output(program, "z", out[1]));
  assert_ok(rondo_compile(program, t->device, NULL, &compiled));
  assert_ok(rondo_compiled_write(compiled, "a", &a, sizeof a));
  assert_ok(rondo_compiled_write(compiled, "b", &b, sizeof b));
  assert_ok(rondo_compiled_write(compiled, "c", &c, sizeof c));
  assert_ok(rondo_compiled_write(compiled, "d", &d, sizeof d));
  assert_ok(rondo_compiled_run(compiled));
  assert_ok(rondo_compiled_read(compiled, "y", &y, sizeof y));
  assert_ok(rondo_compiled_read(compiled, "z", &z, sizeof z));
  assert_int_equal(y, -2);
  assert_int_equal(z, -2);
  assert_ok(rondo_compiled_destroy(compiled));
  rondo_program_destroy(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {test_case(test_floats), test_case(test_integers), test_case(test_wrapping)};
  return test_main(tests);
}
