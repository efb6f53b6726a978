/* SPDX-License-Identifier: MIT
 * Combining numbers that are special: NaNs, integers that wrap, 16-bit numbers that are rounded (TR-16, MM-3).
 */
#include <stdlib.h>

#include "base/numbers/half_float.h"
#include "exec/collective/collective_reduce.h"
#include "support/rondo_test.h"

/* Reducing -------------------------------------------------------------------------------------------------------- */

static float combine_f32(rondo_reduction reduction, float a, float b) {
  rondo_combine_find(RONDO_F32, reduction)(&a, &b, 1);
  return a;
}

static double combine_f64(rondo_reduction reduction, double a, double b) {
  rondo_combine_find(RONDO_F64, reduction)(&a, &b, 1);
  return a;
}

static bool is_nan(double value) { return value != value; }

UNIT_TEST(no_number_stays_none_tr_16) {
  const float none = strtof("nan", NULL);
  for (int r = RONDO_REDUCE_SUM; r <= RONDO_REDUCE_MIN; r++) {
    const rondo_reduction reduction = (rondo_reduction)r;
    assert_true(is_nan((double)combine_f32(reduction, none, 1)));
    assert_true(is_nan((double)combine_f32(reduction, 1, none)));
    assert_true(is_nan(combine_f64(reduction, (double)none, 1)));
    assert_true(is_nan(combine_f64(reduction, 1, (double)none)));
  }
  assert_true(combine_f32(RONDO_REDUCE_MAX, -1, 2) == 2 && combine_f32(RONDO_REDUCE_MIN, -1, 2) == -1);
  assert_true(combine_f64(RONDO_REDUCE_MAX, 3, 2) == 3 && combine_f64(RONDO_REDUCE_MIN, 3, 2) == 2);
}

UNIT_TEST(sums_of_integers_wrap_tr_16) {
  int32_t small[] = {INT32_MAX, INT32_MIN};
  const int32_t more[] = {1, -1};
  int64_t large = INT64_MAX;
  const int64_t one = 1;
  rondo_combine_find(RONDO_I32, RONDO_REDUCE_SUM)(small, more, 2);
  rondo_combine_find(RONDO_I64, RONDO_REDUCE_SUM)(&large, &one, 1);
  assert_int_equal(small[0], INT32_MIN);
  assert_int_equal(small[1], INT32_MAX);
  assert_true(large == INT64_MIN);
}

UNIT_TEST(what_has_no_function_is_known_tr_16) {
  assert_true(rondo_combine_find((rondo_type)77, RONDO_REDUCE_SUM) == NULL);
  assert_true(rondo_combine_find((rondo_type)0, RONDO_REDUCE_SUM) == NULL);
  assert_true(rondo_combine_find(RONDO_F32, (rondo_reduction)0) == NULL);
  assert_true(rondo_combine_find(RONDO_F32, RONDO_REDUCE_AVERAGE) == NULL);
  assert_true(rondo_combine_find(RONDO_F32, (rondo_reduction)5) == NULL);
}

/* 16-bit types ----------------------------------------------------------------------------------------------------- */

static float combine_halves(rondo_type type, rondo_reduction reduction, float a, float b) {
  const bool is_f16 = type == RONDO_F16;
  uint16_t to = is_f16 ? rondo_to_f16(a) : rondo_to_bf16(a);
  const uint16_t from = is_f16 ? rondo_to_f16(b) : rondo_to_bf16(b);
  rondo_combine_find(type, reduction)(&to, &from, 1);
  return is_f16 ? rondo_from_f16(to) : rondo_from_bf16(to);
}

UNIT_TEST(halves_are_summed_up_as_floats_and_rounded_mm_3) {
  assert_true(combine_halves(RONDO_F16, RONDO_REDUCE_SUM, 2048, 1) == 2048); /* a tie, to even */
  assert_true(combine_halves(RONDO_F16, RONDO_REDUCE_SUM, 2048, 3) == 2052); /* likewise */
  assert_true(combine_halves(RONDO_F16, RONDO_REDUCE_SUM, 65504, 15) == 65504);
  assert_true(combine_halves(RONDO_F16, RONDO_REDUCE_SUM, 65504, 16) == strtof("inf", NULL));
  assert_true(combine_halves(RONDO_BF16, RONDO_REDUCE_SUM, 256, 1) == 256);
  assert_true(combine_halves(RONDO_BF16, RONDO_REDUCE_SUM, 256, 3) == 260);
}

UNIT_TEST(halves_are_compared_mm_3) {
  static const rondo_type types[] = {RONDO_F16, RONDO_BF16};
  const float none = strtof("nan", NULL);
  for (int i = 0; i < 2; i++) {
    assert_true(combine_halves(types[i], RONDO_REDUCE_MAX, -3, 2) == 2);
    assert_true(combine_halves(types[i], RONDO_REDUCE_MAX, 2, -3) == 2);
    assert_true(combine_halves(types[i], RONDO_REDUCE_MIN, -3, 2) == -3);
    for (int r = RONDO_REDUCE_SUM; r <= RONDO_REDUCE_MIN; r++) {
      assert_true(is_nan((double)combine_halves(types[i], (rondo_reduction)r, none, 1)));
      assert_true(is_nan((double)combine_halves(types[i], (rondo_reduction)r, 1, none)));
    }
  }
}

UNIT_TEST(averages_are_rounded_mm_3) {
  float f32 = 1;
  double f64 = 1;
  uint16_t f16 = rondo_to_f16(1), bf16 = rondo_to_bf16(1);
  rondo_reduce_divide(RONDO_F32, &f32, 1, 3);
  rondo_reduce_divide(RONDO_F64, &f64, 1, 3);
  rondo_reduce_divide(RONDO_F16, &f16, 1, 3);
  rondo_reduce_divide(RONDO_BF16, &bf16, 1, 3);
  assert_true(f32 == 1.0f / 3 && f64 == 1.0 / 3);
  assert_int_equal(f16, 0x3555);
  assert_int_equal(bf16, 0x3eab);
}
