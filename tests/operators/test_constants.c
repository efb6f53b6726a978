/* SPDX-License-Identifier: MIT
 * Constants of each type: full, zeros, arange.
 */
#include <math.h>

#include "support/test_operator.h"
#include "support/test_program.h"

enum { COUNT = 15 };

/* Element `at` of an array of this type. 2-byte floats: small integers, which the upper bits of an F32 represent. */
static double number_at(rondo_type type, const void *bytes, size_t at) {
  if (type == RONDO_F32) return (double)((const float *)bytes)[at];
  if (type == RONDO_I32) return ((const int32_t *)bytes)[at];
  if (type == RONDO_I64) return (double)((const int64_t *)bytes)[at];
  if (type == RONDO_I8) return ((const int8_t *)bytes)[at];
  if (type == RONDO_U8 || type == RONDO_BOOL) return ((const uint8_t *)bytes)[at];
  const uint16_t half = ((const uint16_t *)bytes)[at];
  const int shift = type == RONDO_F16 ? 10 : 7, exponent = half >> shift & (type == RONDO_F16 ? 31 : 255);
  const double magnitude = exponent == 0 ? 0
                                         : ldexp(1 + (half & ((1 << shift) - 1)) / ldexp(1, shift),
                                                 exponent - (type == RONDO_F16 ? 15 : 127));
  return half >> 15 != 0 ? -magnitude : magnitude;
}

/* Runs the program of output y, recorded and eager: its elements are first + i * step. */
static void check_series(test_fixture *t, rondo_program *program, rondo_value y, rondo_type type, double first,
                         double step) {
  int64_t bytes[COUNT];
  assert_ok(rondo_program_output(program, "y", y));
  rondo_compiled *compiled = test_compile(program, t->device, NULL);
  for (int run = 0; run < 2; run++) {
    assert_ok(run == 0 ? rondo_compiled_run(compiled) : rondo_compiled_run_eager(compiled));
    assert_ok(rondo_compiled_read(compiled, "y", bytes, COUNT * rondo_type_bytes(type)));
    for (size_t i = 0; i < COUNT; i++) assert_true(number_at(type, bytes, i) == first + (double)i * step);
  }
  assert_ok(rondo_compiled_destroy(compiled));
}

TEST(test_constants_of_all_types) {
  static const rondo_type types[] = {RONDO_F32, RONDO_F16, RONDO_BF16, RONDO_I32, RONDO_I64, RONDO_I8};
  const size_t shape[] = {3, 5};
  rondo_value y;
  for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
    for (double number = -2; number <= 0; number += 2) {
      rondo_program *program = test_new_program();
      assert_ok(rondo_op_full(program, types[i], shape, 2, number, &y));
      check_series(t, program, y, types[i], number, 0);
    }
    rondo_program *program = test_new_program();
    assert_ok(rondo_op_arange(program, types[i], COUNT, -3, 2, &y));
    check_series(t, program, y, types[i], -3, 2);
  }
}

/* Of 15 bytes, which a fill of words does not divide. */
TEST(test_constants_of_bytes) {
  static const rondo_type types[] = {RONDO_U8, RONDO_BOOL};
  const size_t shape[] = {3, 5};
  rondo_value y;
  for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
    for (double number = 0; number <= 1; number++) {
      rondo_program *program = test_new_program();
      assert_ok(rondo_op_full(program, types[i], shape, 2, number, &y));
      check_series(t, program, y, types[i], number, 0);
    }
  }
  rondo_program *program = test_new_program();
  assert_ok(rondo_op_arange(program, RONDO_U8, COUNT, 3, 18, &y));
  check_series(t, program, y, RONDO_U8, 3, 18);
}

TEST(test_what_does_not_fit_of_full) {
  rondo_program *program = test_new_program();
  rondo_value y;
  assert_invalid(rondo_op_full(program, RONDO_I32, NULL, 0, 0.5, &y), RONDO_REASON_OUT_OF_RANGE);
  assert_invalid(rondo_op_full(program, RONDO_I32, NULL, 0, 3e9, &y), RONDO_REASON_OUT_OF_RANGE);
  assert_invalid(rondo_op_full(program, RONDO_I8, NULL, 0, 128, &y), RONDO_REASON_OUT_OF_RANGE);
  assert_invalid(rondo_op_full(program, RONDO_U8, NULL, 0, -1, &y), RONDO_REASON_OUT_OF_RANGE);
  assert_invalid(rondo_op_full(program, RONDO_BOOL, NULL, 0, 2, &y), RONDO_REASON_OUT_OF_RANGE);
  assert_invalid(rondo_op_full(program, RONDO_F64, NULL, 0, 1, &y), RONDO_REASON_TYPE);
}

TEST(test_what_does_not_fit_of_arange) {
  rondo_program *program = test_new_program();
  rondo_value y;
  assert_invalid(rondo_op_arange(program, RONDO_I32, 4, 2e9, 1e8, &y), RONDO_REASON_OUT_OF_RANGE);
  assert_message("arange: type i32 cannot represent all numbers from 2e+09 to 2.3e+09 with step 1e+08 exactly");
  assert_invalid(rondo_op_arange(program, RONDO_I64, 2, 0, 0.5, &y), RONDO_REASON_OUT_OF_RANGE);
  assert_invalid(rondo_op_arange(program, RONDO_F32, 0, 0, 1, &y), RONDO_REASON_SHAPE);
}
