/* SPDX-License-Identifier: MIT
 * Constants of each type: full, zeros, arange.
 */
#include "support/test_operator.h"
#include "support/test_program.h"

enum { COUNT = 15 };

/* Runs the program of outputs "first" and, unless `second` is NULL, "second", recorded and not. */
static void read_outputs(test_fixture *t, rondo_program *program, rondo_type type, void *first, void *second) {
  rondo_compiled *compiled = test_compile(program, t->device, NULL);
  for (int run = 0; run < 2; run++) {
    assert_ok(run == 0 ? rondo_compiled_run(compiled) : rondo_compiled_run_eager(compiled));
    assert_ok(rondo_compiled_read(compiled, "first", first, COUNT * rondo_type_bytes(type)));
    if (second != NULL) assert_ok(rondo_compiled_read(compiled, "second", second, COUNT * rondo_type_bytes(type)));
  }
  assert_ok(rondo_compiled_destroy(compiled));
}

/* full ------------------------------------------------------------------------------------------------------------- */

static void read_constants(test_fixture *t, rondo_type type, void *full, void *zeros) {
  rondo_program *program = test_new_program();
  rondo_value y;
  const size_t shape[] = {3, 5};
  assert_ok(rondo_op_full(program, type, shape, 2, -2, &y));
  assert_ok(rondo_program_output(program, "first", y));
  assert_ok(rondo_op_full(program, type, shape, 2, 0, &y));
  assert_ok(rondo_program_output(program, "second", y));
  read_outputs(t, program, type, full, zeros);
}

static void test_floats_of_full(void **state) {
  float full[15], zeros[15];
  read_constants(*state, RONDO_F32, full, zeros);
  for (int i = 0; i < 15; i++) assert_true(full[i] == -2 && zeros[i] == 0);
}

static void test_halves_of_full(void **state) {
  uint16_t full[15], zeros[15];
  read_constants(*state, RONDO_F16, full, zeros);
  assert_int_equal(full[14], 0xc000);
  read_constants(*state, RONDO_BF16, full, zeros);
  assert_int_equal(full[14], 0xc000);
  assert_int_equal(zeros[14], 0);
}

static void test_integers_of_full(void **state) {
  int32_t full[15], zeros[15];
  int64_t wide[2][15];
  read_constants(*state, RONDO_I32, full, zeros);
  read_constants(*state, RONDO_I64, wide[0], wide[1]);
  for (int i = 0; i < 15; i++) {
    assert_true(full[i] == -2 && zeros[i] == 0);
    assert_true(wide[0][i] == -2 && wide[1][i] == 0);
  }
}

static void test_what_does_not_fit_of_full(void **state) {
  rondo_program *program = test_new_program();
  rondo_value y;
  (void)state;
  assert_invalid(rondo_op_full(program, RONDO_I32, NULL, 0, 0.5, &y), RONDO_REASON_OUT_OF_RANGE);
  assert_invalid(rondo_op_full(program, RONDO_I32, NULL, 0, 3e9, &y), RONDO_REASON_OUT_OF_RANGE);
  assert_invalid(rondo_op_full(program, RONDO_F64, NULL, 0, 1, &y), RONDO_REASON_TYPE);
  rondo_program_destroy(program);
}

/* arange ----------------------------------------------------------------------------------------------------------- */

static void read_series(test_fixture *t, rondo_type type, void *series) {
  rondo_program *program = test_new_program();
  rondo_value y;
  assert_ok(rondo_op_arange(program, type, COUNT, -3, 2, &y));
  assert_ok(rondo_program_output(program, "first", y));
  read_outputs(t, program, type, series, NULL);
}

static void test_floats_of_arange(void **state) {
  float series[15];
  uint16_t halves[15];
  read_series(*state, RONDO_F32, series);
  for (int i = 0; i < 15; i++) assert_true(series[i] == (float)(2 * i - 3));
  read_series(*state, RONDO_F16, halves);
  assert_int_equal(halves[14], 0x4e40); /* 25 */
  read_series(*state, RONDO_BF16, halves);
  assert_int_equal(halves[14], 0x41c8);
}

static void test_integers_of_arange(void **state) {
  int32_t series[15];
  int64_t wide[15];
  read_series(*state, RONDO_I32, series);
  read_series(*state, RONDO_I64, wide);
  for (int i = 0; i < 15; i++) assert_true(series[i] == 2 * i - 3 && wide[i] == 2 * i - 3);
}

static void test_what_does_not_fit_of_arange(void **state) {
  rondo_program *program = test_new_program();
  rondo_value y;
  (void)state;
  assert_invalid(rondo_op_arange(program, RONDO_I32, 4, 2e9, 1e8, &y), RONDO_REASON_OUT_OF_RANGE);
  assert_message("arange: type i32 cannot represent all numbers from 2e+09 to 2.3e+09 with step 1e+08 exactly");
  assert_invalid(rondo_op_arange(program, RONDO_I64, 2, 0, 0.5, &y), RONDO_REASON_OUT_OF_RANGE);
  assert_invalid(rondo_op_arange(program, RONDO_F32, 0, 0, 1, &y), RONDO_REASON_SHAPE);
  rondo_program_destroy(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      test_case(test_floats_of_full),
      test_case(test_halves_of_full),
      test_case(test_integers_of_full),
      test_case(test_what_does_not_fit_of_full),
      test_case(test_floats_of_arange),
      test_case(test_integers_of_arange),
      test_case(test_what_does_not_fit_of_arange),
  };
  return test_main(tests);
}
