/* SPDX-License-Identifier: MIT
 * Operators for types that programs lack.
 */
#include "onnx/import/widened_value.h"

#include <math.h>

#include "base/error.h"

#define LONG_BITS 64

static rondo_status number(rondo_program *program, rondo_type type, float value, rondo_value *out) {
  return rondo_op_full(program, type, NULL, 0, value, out);
}

/* Integers of fewer bits ------------------------------------------------------------------------------------------- */

/* 2^bits - 1; a float holds -2^bits exactly. */
static rondo_status lower_bits(rondo_program *program, rondo_type type, unsigned bits, rondo_value *out) {
  RONDO_TRY(number(program, type, -ldexpf(1, (int)bits), out));
  return rondo_op_bitwise_not(program, *out, out);
}

static rondo_status sign_extend(rondo_program *program, rondo_type type, unsigned bits, rondo_value value,
                                rondo_value *out) {
  rondo_value above;
  RONDO_TRY(number(program, type, (float)(8 * rondo_type_bytes(type) - bits), &above));
  RONDO_TRY(rondo_op_shift_left(program, value, above, out));
  return rondo_op_shift_right(program, *out, above, out);
}

/* U8 has no negative numbers, and its lower bits are below 2^bits in any case. */
static rondo_status wrap(rondo_program *program, rondo_type type, unsigned bits, bool is_signed, rondo_value value,
                         rondo_value *out) {
  rondo_value mask;
  if (is_signed) return sign_extend(program, type, bits, value, out);
  if (type == RONDO_U8)
    RONDO_TRY(number(program, type, ldexpf(1, (int)bits) - 1, &mask));
  else
    RONDO_TRY(lower_bits(program, type, bits, &mask));
  return rondo_op_bitwise_and(program, value, mask, out);
}

static rondo_status limit(rondo_program *program, rondo_type type, unsigned bits, bool is_signed, rondo_value value,
                          rondo_value *out) {
  rondo_value least, largest;
  const unsigned magnitude_bits = is_signed ? bits - 1 : bits;
  RONDO_TRY(number(program, type, is_signed ? -ldexpf(1, (int)magnitude_bits) : 0, &least));
  if (type == RONDO_U8)
    RONDO_TRY(number(program, type, ldexpf(1, (int)bits) - 1, &largest));
  else
    RONDO_TRY(lower_bits(program, type, magnitude_bits, &largest));
  RONDO_TRY(rondo_op_maximum(program, value, least, out));
  return rondo_op_minimum(program, *out, largest, out);
}

/* Small floats ----------------------------------------------------------------------------------------------------- */

/* Where x is nearest to no number of the type, because it is larger than all. */
static rondo_status find_overflow(rondo_program *program, unsigned mantissa_bits, int least, float largest,
                                  rondo_value x, rondo_value *out) {
  rondo_value size, most;
  RONDO_TRY(rondo_op_round_mantissa(program, x, mantissa_bits, least, &size));
  RONDO_TRY(rondo_op_abs(program, size, &size));
  RONDO_TRY(number(program, RONDO_F32, largest, &most));
  return rondo_op_greater(program, size, most, out);
}

/* Powers of two: the nearest one is changed where it lies on the other side. */
static rondo_status round_scale(rondo_program *program, const rondo_onnx_small_float *small,
                                const rondo_onnx_float_rounding *rounding, rondo_value x, rondo_value *out) {
  rondo_value other, is_wrong;
  RONDO_TRY(rondo_op_clamp(program, x, ldexpf(1, -small->bias), small->largest, &x));
  RONDO_TRY(rondo_op_round_mantissa(program, x, 0, -small->bias, out));
  if (rounding->mode == RONDO_ONNX_TO_NEAREST) return RONDO_OK;
  const bool up = rounding->mode == RONDO_ONNX_UP;
  RONDO_TRY(rondo_op_scale(program, *out, up ? 2.0f : 0.5f, &other));
  RONDO_TRY(up ? rondo_op_less(program, *out, x, &is_wrong) : rondo_op_greater(program, *out, x, &is_wrong));
  return rondo_op_select(program, is_wrong, other, *out, out);
}

/* NaN becomes -0 where the type has none. */
static rondo_status round_small(rondo_program *program, const rondo_onnx_small_float *small,
                                const rondo_onnx_float_rounding *rounding, rondo_value x, rondo_value *out) {
  const int least = 1 - small->bias - (int)small->mantissa_bits;
  rondo_value is_nan, other, overflows;
  if (small->is_scale) return round_scale(program, small, rounding, x, out);
  if (rounding->overflows && small->nan >= 0) {
    RONDO_TRY(find_overflow(program, small->mantissa_bits, least, small->largest, x, &overflows));
    RONDO_TRY(number(program, RONDO_F32, NAN, &other));
    RONDO_TRY(rondo_op_select(program, overflows, other, x, &x));
  }
  if (small->nan < 0) {
    RONDO_TRY(rondo_op_is_nan(program, x, &is_nan));
    RONDO_TRY(number(program, RONDO_F32, -0.0f, &other));
    RONDO_TRY(rondo_op_select(program, is_nan, other, x, &x));
  }
  RONDO_TRY(rondo_op_clamp(program, x, -small->largest, small->largest, out));
  return rondo_op_round_mantissa(program, *out, small->mantissa_bits, least, out);
}

static const rondo_onnx_float_rounding saturating = {.mode = RONDO_ONNX_TO_NEAREST};

static rondo_status fit(rondo_program *program, rondo_onnx_type type, bool saturates, rondo_value value,
                        rondo_value *out) {
  const rondo_onnx_small_float *small = rondo_onnx_small_float_of(type);
  const rondo_type wide = rondo_onnx_widened_type(type);
  unsigned bits;
  bool is_signed;
  *out = value;
  if (small != NULL) return round_small(program, small, &saturating, value, out);
  if (!rondo_onnx_is_narrow_integer(type, &bits, &is_signed)) return RONDO_OK;
  return saturates ? limit(program, wide, bits, is_signed, value, out)
                   : wrap(program, wide, bits, is_signed, value, out);
}

rondo_status rondo_onnx_fit_value(rondo_program *program, rondo_onnx_type type, rondo_value value, rondo_value *out) {
  return fit(program, type, false, value, out);
}

rondo_status rondo_onnx_saturate_value(rondo_program *program, rondo_onnx_type type, rondo_value value,
                                       rondo_value *out) {
  return fit(program, type, true, value, out);
}

/* Casts ------------------------------------------------------------------------------------------------------------ */

/* What is too large for an 8-bit float of programs: NaN, which casts keep, or infinity, which they do not make. */
static rondo_status cast_overflowing(rondo_program *program, rondo_type to, rondo_value x, rondo_value *out) {
  const bool has_infinity = to == RONDO_F8_E5M2;
  rondo_value overflows, nan, infinity, negative, minus, zero;
  RONDO_TRY(
      find_overflow(program, has_infinity ? 2 : 3, has_infinity ? -16 : -9, has_infinity ? 57344 : 448, x, &overflows));
  if (!has_infinity) {
    RONDO_TRY(number(program, RONDO_F32, NAN, &nan));
    RONDO_TRY(rondo_op_select(program, overflows, nan, x, &x));
    return rondo_op_cast(program, x, to, out);
  }
  RONDO_TRY(rondo_op_cast(program, x, to, out));
  RONDO_TRY(rondo_op_bitcast(program, *out, RONDO_U8, out));
  RONDO_TRY(number(program, RONDO_F32, 0, &zero));
  RONDO_TRY(rondo_op_less(program, x, zero, &negative));
  RONDO_TRY(number(program, RONDO_U8, 0x7c, &infinity));
  RONDO_TRY(number(program, RONDO_U8, 0xfc, &minus));
  RONDO_TRY(rondo_op_select(program, negative, minus, infinity, &infinity));
  RONDO_TRY(rondo_op_select(program, overflows, infinity, *out, out));
  return rondo_op_bitcast(program, *out, to, out);
}

static bool is_float(rondo_type type) {
  return type == RONDO_F32 || type == RONDO_F16 || type == RONDO_BF16 || type == RONDO_F8_E4M3 || type == RONDO_F8_E5M2;
}

/* Above 2^63, half of the number is cast, with a last bit that stands for the two last ones, and doubled. */
static rondo_status float_of_unsigned(rondo_program *program, rondo_value value, rondo_value *out) {
  rondo_value one, zero, half, last, is_large;
  RONDO_TRY(number(program, RONDO_I64, 1, &one));
  RONDO_TRY(number(program, RONDO_I64, 0, &zero));
  RONDO_TRY(rondo_onnx_unsigned_shift_right(program, value, one, &half));
  RONDO_TRY(rondo_op_bitwise_and(program, value, one, &last));
  RONDO_TRY(rondo_op_bitwise_or(program, half, last, &half));
  RONDO_TRY(rondo_op_cast(program, half, RONDO_F32, &half));
  RONDO_TRY(rondo_op_scale(program, half, 2, &half));
  RONDO_TRY(rondo_op_less(program, value, zero, &is_large));
  RONDO_TRY(rondo_op_cast(program, value, RONDO_F32, out));
  return rondo_op_select(program, is_large, half, *out, out);
}

/* 2^63 and more is cast without its highest bit. Negative numbers are 0. */
static rondo_status unsigned_of_float(rondo_program *program, rondo_value x, rondo_value *out) {
  rondo_value bound, large, is_large;
  RONDO_TRY(rondo_op_cast(program, x, RONDO_F32, &x));
  RONDO_TRY(rondo_op_clamp(program, x, 0, INFINITY, &x));
  RONDO_TRY(number(program, RONDO_F32, 0x1p63f, &bound));
  RONDO_TRY(rondo_op_greater_equal(program, x, bound, &is_large));
  RONDO_TRY(rondo_op_sub(program, x, bound, &large));
  RONDO_TRY(rondo_op_cast(program, large, RONDO_I64, &large));
  RONDO_TRY(rondo_onnx_unsigned_order(program, large, &large));
  RONDO_TRY(rondo_op_cast(program, x, RONDO_I64, out));
  return rondo_op_select(program, is_large, large, *out, out);
}

static rondo_status cast_small(rondo_program *program, const rondo_onnx_small_float *small,
                               const rondo_onnx_float_rounding *rounding, rondo_value x, rondo_value *out) {
  RONDO_TRY(rondo_op_cast(program, x, RONDO_F32, &x));
  return round_small(program, small, rounding, x, out);
}

rondo_status rondo_onnx_cast_value(rondo_program *program, rondo_onnx_type from, rondo_onnx_type to, rondo_value value,
                                   const rondo_onnx_float_rounding *rounding, rondo_value *out) {
  const rondo_onnx_small_float *small = rondo_onnx_small_float_of(to);
  rondo_type have, type = rondo_onnx_widened_type(to);
  size_t dims[RONDO_MAX_DIMENSIONS], rank;
  RONDO_TRY(rondo_value_shape(program, value, &have, dims, &rank));
  if (type == 0 && !rondo_onnx_find_type((int32_t)to, &type))
    return rondo_fail(RONDO_UNSUPPORTED, RONDO_REASON_TYPE, "programs have no values of the type '%s'",
                      rondo_onnx_type_name((int32_t)to));
  const bool to_float = is_float(type) || small != NULL;
  if (from == RONDO_ONNX_UINT64 && to_float) RONDO_TRY(float_of_unsigned(program, value, &value));
  if (small != NULL) return cast_small(program, small, rounding, value, out);
  if (to == RONDO_ONNX_UINT64 && is_float(have)) return unsigned_of_float(program, value, out);
  if (rounding->overflows && (type == RONDO_F8_E4M3 || type == RONDO_F8_E5M2)) {
    RONDO_TRY(rondo_op_cast(program, value, RONDO_F32, &value));
    return cast_overflowing(program, type, value, out);
  }
  if (is_float(have) && rondo_onnx_widened_type(to) != 0 && type != RONDO_F32) /* keep the lower bits of all */
    RONDO_TRY(rondo_op_cast(program, value, RONDO_I64, &value));
  RONDO_TRY(rondo_op_cast(program, value, type, out));
  return rondo_onnx_fit_value(program, to, *out, out);
}

/* Unsigned integers of 64 bits ------------------------------------------------------------------------------------- */

static rondo_status highest_bit(rondo_program *program, rondo_value *out) {
  rondo_value places;
  RONDO_TRY(number(program, RONDO_I64, LONG_BITS - 1, &places));
  RONDO_TRY(number(program, RONDO_I64, 1, out));
  return rondo_op_shift_left(program, *out, places, out);
}

/* Its order as I64 is that of the unsigned value: the highest bit is inverted. */
rondo_status rondo_onnx_unsigned_order(rondo_program *program, rondo_value value, rondo_value *out) {
  rondo_value highest;
  RONDO_TRY(highest_bit(program, &highest));
  return rondo_op_bitwise_xor(program, value, highest, out);
}

typedef rondo_status (*binary_function)(rondo_program *program, rondo_value a, rondo_value b, rondo_value *out);

static rondo_status by_order(rondo_program *program, binary_function function, rondo_value a, rondo_value b,
                             rondo_value *out) {
  RONDO_TRY(rondo_onnx_unsigned_order(program, a, &a));
  RONDO_TRY(rondo_onnx_unsigned_order(program, b, &b));
  return function(program, a, b, out);
}

rondo_status rondo_onnx_unsigned_less(rondo_program *program, rondo_value a, rondo_value b, rondo_value *out) {
  return by_order(program, rondo_op_less, a, b, out);
}

rondo_status rondo_onnx_unsigned_less_equal(rondo_program *program, rondo_value a, rondo_value b, rondo_value *out) {
  return by_order(program, rondo_op_less_equal, a, b, out);
}

rondo_status rondo_onnx_unsigned_greater(rondo_program *program, rondo_value a, rondo_value b, rondo_value *out) {
  return by_order(program, rondo_op_greater, a, b, out);
}

rondo_status rondo_onnx_unsigned_greater_equal(rondo_program *program, rondo_value a, rondo_value b, rondo_value *out) {
  return by_order(program, rondo_op_greater_equal, a, b, out);
}

rondo_status rondo_onnx_unsigned_maximum(rondo_program *program, rondo_value a, rondo_value b, rondo_value *out) {
  RONDO_TRY(by_order(program, rondo_op_maximum, a, b, out));
  return rondo_onnx_unsigned_order(program, *out, out);
}

rondo_status rondo_onnx_unsigned_minimum(rondo_program *program, rondo_value a, rondo_value b, rondo_value *out) {
  RONDO_TRY(by_order(program, rondo_op_minimum, a, b, out));
  return rondo_onnx_unsigned_order(program, *out, out);
}

/* The first place is shifted without the sign, the others after it. */
rondo_status rondo_onnx_unsigned_shift_right(rondo_program *program, rondo_value a, rondo_value b, rondo_value *out) {
  rondo_value one, zero, highest, is_none, rest, shifted;
  RONDO_TRY(number(program, RONDO_I64, 1, &one));
  RONDO_TRY(number(program, RONDO_I64, 0, &zero));
  RONDO_TRY(highest_bit(program, &highest));
  RONDO_TRY(rondo_op_bitwise_not(program, highest, &highest));
  RONDO_TRY(rondo_op_shift_right(program, a, one, &shifted));
  RONDO_TRY(rondo_op_bitwise_and(program, shifted, highest, &shifted));
  RONDO_TRY(rondo_op_sub(program, b, one, &rest));
  RONDO_TRY(rondo_op_shift_right(program, shifted, rest, &shifted));
  RONDO_TRY(rondo_op_equal(program, b, zero, &is_none));
  return rondo_op_select(program, is_none, a, shifted, out);
}

/* Twice the quotient of a half, and one more if the rest is no less than b. A b of 2^63 or more fits once or not at
 * all (Warren, Hacker's Delight, 9-3). */
rondo_status rondo_onnx_unsigned_div(rondo_program *program, rondo_value a, rondo_value b, rondo_value *out) {
  rondo_value one, zero, quotient, product, rest, once, is_large;
  RONDO_TRY(number(program, RONDO_I64, 1, &one));
  RONDO_TRY(number(program, RONDO_I64, 0, &zero));
  RONDO_TRY(rondo_onnx_unsigned_shift_right(program, a, one, &quotient));
  RONDO_TRY(rondo_op_div(program, quotient, b, &quotient));
  RONDO_TRY(rondo_op_shift_left(program, quotient, one, &quotient));
  RONDO_TRY(rondo_op_mul(program, quotient, b, &product));
  RONDO_TRY(rondo_op_sub(program, a, product, &rest));
  RONDO_TRY(rondo_onnx_unsigned_greater_equal(program, rest, b, &once));
  RONDO_TRY(rondo_op_cast(program, once, RONDO_I64, &once));
  RONDO_TRY(rondo_op_add(program, quotient, once, &quotient));
  RONDO_TRY(rondo_onnx_unsigned_greater_equal(program, a, b, &once));
  RONDO_TRY(rondo_op_cast(program, once, RONDO_I64, &once));
  RONDO_TRY(rondo_op_less(program, b, zero, &is_large));
  return rondo_op_select(program, is_large, once, quotient, out);
}

rondo_status rondo_onnx_unsigned_remainder(rondo_program *program, rondo_value a, rondo_value b, rondo_value *out) {
  rondo_value quotient;
  RONDO_TRY(rondo_onnx_unsigned_div(program, a, b, &quotient));
  RONDO_TRY(rondo_op_mul(program, quotient, b, &quotient));
  return rondo_op_sub(program, a, quotient, out);
}
