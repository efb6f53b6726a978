/* SPDX-License-Identifier: MIT
 * F16 and BF16: all values there and back, and rounding to nearest with ties to even (MM-3).
 */
#include <math.h>

#include "base/numbers/half_float.h"
#include "support/rondo_test.h"

/* A plain reference: the value of the bits. */
static double value_of_f16(uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 0x3ff;
  const double sign = bits >> 15 != 0 ? -1 : 1;
  if (exponent == 31) return fraction != 0 ? (double)NAN : sign * (double)INFINITY;
  return sign * (exponent == 0 ? ldexp(fraction, -24) : ldexp(1024 + fraction, exponent - 25));
}

UNIT_TEST(all_f16_go_there_and_back_mm_3) {
  for (uint32_t i = 0; i <= UINT16_MAX; i++) {
    const uint16_t bits = (uint16_t)i;
    const float x = rondo_from_f16(bits);
    const double value = value_of_f16(bits);
    if (isnan(value)) {
      assert_true(isnan(x) && isnan(rondo_from_f16(rondo_to_f16(x))));
      continue;
    }
    assert_true((double)x == value && !signbit(x) == !signbit(value));
    assert_int_equal(rondo_to_f16(x), bits);
  }
}

UNIT_TEST(all_bf16_go_there_and_back_mm_3) {
  for (uint32_t i = 0; i <= UINT16_MAX; i++) {
    const uint16_t bits = (uint16_t)i;
    const float x = rondo_from_bf16(bits);
    if (isnan(x))
      assert_true(isnan(rondo_from_bf16(rondo_to_bf16(x))));
    else
      assert_int_equal(rondo_to_bf16(x), bits);
  }
}

/* Halfway between two neighbours the even one is next; a little less and a little more go to the nearer one. Floats
 * hold the halfway points exactly. */
static void check_between(uint16_t (*to)(float), float (*from)(uint16_t), uint16_t lower) {
  const uint16_t upper = (uint16_t)(lower + 1);
  const float halfway = from(lower) + (from(upper) - from(lower)) / 2;
  const uint16_t even = lower % 2 == 0 ? lower : upper;
  assert_int_equal(to(halfway), even);
  assert_int_equal(to(-halfway), even | 0x8000);
  assert_int_equal(to(nextafterf(halfway, 0)), lower);
  assert_int_equal(to(nextafterf(halfway, INFINITY)), upper);
}

static uint16_t to_f16(float x) { return rondo_to_f16(x); }
static float from_f16(uint16_t bits) { return rondo_from_f16(bits); }
static uint16_t to_bf16(float x) { return rondo_to_bf16(x); }
static float from_bf16(uint16_t bits) { return rondo_from_bf16(bits); }

UNIT_TEST(ties_of_f16_go_to_even_mm_3) {
  for (uint16_t i = 0; i < 0x7bff; i++) check_between(to_f16, from_f16, i);
}

UNIT_TEST(ties_of_bf16_go_to_even_mm_3) {
  for (uint16_t i = 0x80; i < 0x7f7f; i++) check_between(to_bf16, from_bf16, i); /* 0x80: the first normal one */
}

UNIT_TEST(what_is_too_large_is_infinite_mm_3) {
  assert_int_equal(rondo_to_f16(65519.996f), 0x7bff);
  assert_int_equal(rondo_to_f16(65520), 0x7c00);
  assert_int_equal(rondo_to_f16(-1e30f), 0xfc00);
  assert_int_equal(rondo_to_f16(INFINITY), 0x7c00);
  assert_int_equal(rondo_to_bf16(3.4e38f), 0x7f80);
  assert_int_equal(rondo_to_bf16(-INFINITY), 0xff80);
  assert_int_equal(rondo_to_f16(0x1p-25f), 0);
  assert_int_equal(rondo_to_f16(nextafterf(0x1p-25f, 1)), 1);
  assert_int_equal(rondo_to_f16(-0.0f), 0x8000);
}
