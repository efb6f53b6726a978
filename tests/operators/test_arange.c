/* SPDX-License-Identifier: MIT
 * arange, of each type.
 */
#include "support/test_operator.h"

static void read_series(test_fixture *t, rondo_type type, void *series) {
  rondo_program *program = NULL;
  rondo_compiled *compiled = NULL;
  rondo_value y;
  assert_ok(rondo_program_create(NULL, &program));
  assert_ok(rondo_op_arange(program, type, 15, -3, 2, &y));
  assert_ok(rondo_program_output(program, "series", y));
  assert_ok(rondo_compile(program, t->device, NULL, &compiled));
  for (int run = 0; run < 2; run++) {
    assert_ok(run == 0 ? rondo_compiled_run(compiled) : rondo_compiled_run_unrecorded(compiled));
    assert_ok(rondo_compiled_read(compiled, "series", series, 15 * rondo_type_bytes(type)));
  }
  assert_ok(rondo_compiled_destroy(compiled));
  rondo_program_destroy(program);
}

static void test_floats(void **state) {
  float series[15];
  uint16_t halves[15];
  read_series(*state, RONDO_F32, series);
  for (int i = 0; i < 15; i++) assert_true(series[i] == (float)(2 * i - 3));
  read_series(*state, RONDO_F16, halves);
  assert_int_equal(halves[14], 0x4e40); /* 25 */
  read_series(*state, RONDO_BF16, halves);
  assert_int_equal(halves[14], 0x41c8);
}

static void test_integers(void **state) {
  int32_t series[15];
  int64_t wide[15];
  read_series(*state, RONDO_I32, series);
  read_series(*state, RONDO_I64, wide);
  for (int i = 0; i < 15; i++) assert_true(series[i] == 2 * i - 3 && wide[i] == 2 * i - 3);
}

static void test_what_does_not_fit(void **state) {
  rondo_program *program = NULL;
  rondo_value y;
  (void)state;
  assert_ok(rondo_program_create(NULL, &program));
  assert_error(rondo_op_arange(program, RONDO_I32, 4, 2e9, 1e8, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE);
  assert_message("arange: numbers from 2e+09 to 2.3e+09 by 1e+08 are not all exactly of type i32");
  assert_error(rondo_op_arange(program, RONDO_I64, 2, 0, 0.5, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE);
  assert_error(rondo_op_arange(program, RONDO_F32, 0, 0, 1, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE);
  rondo_program_destroy(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {test_case(test_floats), test_case(test_integers),
                                     test_case(test_what_does_not_fit)};
  return test_main(tests);
}
