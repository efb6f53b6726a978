/* SPDX-License-Identifier: MIT
 * full, of each type; zeros.
 */
#include "support/test_operator.h"

static void read_constants(test_fixture *t, rondo_type type, void *full, void *zeros) {
  rondo_program *program = NULL;
  rondo_compiled *compiled = NULL;
  rondo_value y;
  const size_t shape[] = {3, 5};
  assert_ok(rondo_program_create(NULL, &program));
  assert_ok(rondo_op_full(program, type, shape, 2, -2, &y));
  assert_ok(rondo_program_output(program, "full", y));
  assert_ok(rondo_op_full(program, type, shape, 2, 0, &y));
  assert_ok(rondo_program_output(program, "zeros", y));
  assert_ok(rondo_compile(program, t->device, NULL, &compiled));
  for (int run = 0; run < 2; run++) {
    assert_ok(run == 0 ? rondo_compiled_run(compiled) : rondo_compiled_run_unrecorded(compiled));
    assert_ok(rondo_compiled_read(compiled, "full", full, 15 * rondo_type_bytes(type)));
    assert_ok(rondo_compiled_read(compiled, "zeros", zeros, 15 * rondo_type_bytes(type)));
  }
  assert_ok(rondo_compiled_destroy(compiled));
  rondo_program_destroy(program);
}

static void test_floats(void **state) {
  float full[15], zeros[15];
  read_constants(*state, RONDO_F32, full, zeros);
  for (int i = 0; i < 15; i++) assert_true(full[i] == -2 && zeros[i] == 0);
}

static void test_halves(void **state) {
  uint16_t full[15], zeros[15];
  read_constants(*state, RONDO_F16, full, zeros);
  assert_int_equal(full[14], 0xc000);
  read_constants(*state, RONDO_BF16, full, zeros);
  assert_int_equal(full[14], 0xc000);
  assert_int_equal(zeros[14], 0);
}

static void test_integers(void **state) {
  int32_t full[15], zeros[15];
  int64_t wide[2][15];
  read_constants(*state, RONDO_I32, full, zeros);
  read_constants(*state, RONDO_I64, wide[0], wide[1]);
  for (int i = 0; i < 15; i++) {
    assert_true(full[i] == -2 && zeros[i] == 0);
    assert_true(wide[0][i] == -2 && wide[1][i] == 0);
  }
}

static void test_what_does_not_fit(void **state) {
  rondo_program *program = NULL;
  rondo_value y;
  (void)state;
  assert_ok(rondo_program_create(NULL, &program));
  assert_error(rondo_op_full(program, RONDO_I32, NULL, 0, 0.5, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE);
  assert_error(rondo_op_full(program, RONDO_I32, NULL, 0, 3e9, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE);
  assert_error(rondo_op_full(program, RONDO_F64, NULL, 0, 1, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_TYPE);
  rondo_program_destroy(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {test_case(test_floats), test_case(test_halves), test_case(test_integers),
                                     test_case(test_what_does_not_fit)};
  return test_main(tests);
}
