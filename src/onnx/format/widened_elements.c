/* SPDX-License-Identifier: MIT
 * Conversions of elements.
 */
#include "onnx/format/widened_elements.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* Types ------------------------------------------------------------------------------------------------------------ */

typedef enum number_kind { NO_INTEGER, SIGNED_INTEGER, UNSIGNED_INTEGER } number_kind;

static number_kind kind_of(rondo_onnx_type type) {
  switch (type) {
    case RONDO_ONNX_INT2:
    case RONDO_ONNX_INT4:
    case RONDO_ONNX_INT8:
    case RONDO_ONNX_INT16:
    case RONDO_ONNX_INT32:
    case RONDO_ONNX_INT64:
      return SIGNED_INTEGER;
    case RONDO_ONNX_BOOL:
    case RONDO_ONNX_UINT2:
    case RONDO_ONNX_UINT4:
    case RONDO_ONNX_UINT8:
    case RONDO_ONNX_UINT16:
    case RONDO_ONNX_UINT32:
    case RONDO_ONNX_UINT64:
      return UNSIGNED_INTEGER;
    default:
      return NO_INTEGER;
  }
}

rondo_type rondo_onnx_widened_type(rondo_onnx_type type) {
  switch (type) {
    case RONDO_ONNX_INT2:
    case RONDO_ONNX_INT4:
      return RONDO_I8;
    case RONDO_ONNX_UINT2:
    case RONDO_ONNX_UINT4:
      return RONDO_U8;
    case RONDO_ONNX_INT16:
    case RONDO_ONNX_UINT16:
      return RONDO_I32;
    case RONDO_ONNX_UINT32:
    case RONDO_ONNX_UINT64:
      return RONDO_I64;
    case RONDO_ONNX_DOUBLE:
      return RONDO_F32;
    default:
      return rondo_onnx_small_float_of(type) != NULL ? RONDO_F32 : (rondo_type)0;
  }
}

rondo_type rondo_onnx_program_type_of(int32_t onnx_type) {
  rondo_type type = rondo_onnx_widened_type((rondo_onnx_type)onnx_type);
  return type != 0 || rondo_onnx_find_type(onnx_type, &type) ? type : (rondo_type)0;
}

bool rondo_onnx_is_narrow_integer(rondo_onnx_type type, unsigned *out_bits, bool *out_signed) {
  const number_kind kind = kind_of(type);
  *out_bits = rondo_onnx_type_bits((int32_t)type);
  *out_signed = kind == SIGNED_INTEGER;
  return kind != NO_INTEGER && rondo_onnx_widened_type(type) != 0 && *out_bits < 64;
}

const rondo_onnx_small_float *rondo_onnx_small_float_of(rondo_onnx_type type) {
  static const rondo_onnx_small_float e4m3fnuz = {3, 8, 240, 0x80, false, false},
                                      e5m2fnuz = {2, 16, 57344, 0x80, false, false}, e2m1 = {1, 1, 6, -1, false, true},
                                      e8m0 = {0, 127, 0x1p127f, 0xff, true, false};
  switch (type) {
    case RONDO_ONNX_FLOAT8E4M3FNUZ:
      return &e4m3fnuz;
    case RONDO_ONNX_FLOAT8E5M2FNUZ:
      return &e5m2fnuz;
    case RONDO_ONNX_FLOAT4E2M1:
      return &e2m1;
    case RONDO_ONNX_FLOAT8E8M0:
      return &e8m0;
    default:
      return NULL;
  }
}

/* Bits ------------------------------------------------------------------------------------------------------------- */

/* Of elements that share a byte, the first ones are its lowest bits. Multi-byte elements have their lowest byte first.
 */
static uint64_t bits_at(unsigned bits, const unsigned char *elements, size_t index) {
  uint64_t value = 0;
  if (bits >= 8) {
    memcpy(&value, elements + index * (bits / 8), bits / 8);
    return value;
  }
  const unsigned in_a_byte = 8 / bits;
  return (unsigned)elements[index / in_a_byte] >> index % in_a_byte * bits & ((1u << bits) - 1);
}

/* Elements are put in their order. */
static void put_bits(unsigned bits, unsigned char *elements, size_t index, uint64_t value) {
  if (bits >= 8) {
    memcpy(elements + index * (bits / 8), &value, bits / 8);
    return;
  }
  const size_t in_a_byte = 8 / bits, at = index / in_a_byte, within = index % in_a_byte;
  const unsigned kept = within > 0 ? elements[at] : 0;
  elements[at] = (unsigned char)(kept | ((unsigned)value & ((1u << bits) - 1)) << within * bits);
}

bool rondo_onnx_integer_at(rondo_onnx_type type, const void *elements, size_t index, int64_t *out) {
  const number_kind kind = kind_of(type);
  const unsigned bits = rondo_onnx_type_bits((int32_t)type);
  if (kind == NO_INTEGER) return false;
  const uint64_t value = bits_at(bits, elements, index);
  const bool is_negative = kind == SIGNED_INTEGER && bits < 64 && (value >> (bits - 1) & 1) != 0;
  *out = (int64_t)(is_negative ? value | UINT64_MAX << bits : value);
  return true;
}

/* Floats ----------------------------------------------------------------------------------------------------------- */

static float small_to_float(const rondo_onnx_small_float *of, unsigned bits, unsigned code) {
  const unsigned sign = of->is_scale ? 0 : 1u << (bits - 1), magnitude = code & ~sign, first = 1u << of->mantissa_bits;
  const int exponent = (int)(magnitude >> of->mantissa_bits), last = -of->bias - (int)of->mantissa_bits;
  const unsigned mantissa = magnitude & (first - 1);
  if ((int)code == of->nan) return NAN;
  const bool is_subnormal = exponent == 0 && !of->is_scale;
  const float size =
      is_subnormal ? ldexpf((float)mantissa, 1 + last) : ldexpf((float)(first + mantissa), exponent + last);
  return (code & sign) != 0 ? -size : size;
}

static unsigned small_of_float(const rondo_onnx_small_float *of, unsigned bits, float x) {
  const int least = of->is_scale ? -of->bias : 1 - of->bias;
  const float size = fminf(fabsf(x), of->largest), smallest = ldexpf(1, least);
  if (isnan(x)) return of->nan < 0 ? 0 : (unsigned)of->nan;
  const int exponent = size >= smallest ? ilogbf(size) : least;
  const float kept = of->is_scale ? fmaxf(size, smallest) : size;
  const long units = lrintf(ldexpf(kept, (int)of->mantissa_bits - exponent)); /* the mantissa with its first bit */
  const int before = exponent + of->bias - (of->is_scale ? 0 : 1);            /* the first bit adds one */
  const unsigned code = ((unsigned)before << of->mantissa_bits) + (unsigned)units - (of->is_scale ? 1u : 0u);
  const bool is_negative = signbit(x) != 0 && !of->is_scale && (code != 0 || of->has_zeros);
  return is_negative ? code | 1u << (bits - 1) : code;
}

/* Both directions -------------------------------------------------------------------------------------------------- */

static void widen_doubles(const unsigned char *from, size_t count, float *out) {
  for (size_t i = 0; i < count; i++) {
    double number;
    memcpy(&number, from + i * sizeof number, sizeof number);
    out[i] = (float)number;
  }
}

static void narrow_to_doubles(const float *from, size_t count, double *out) {
  for (size_t i = 0; i < count; i++) out[i] = (double)from[i];
}

void rondo_onnx_widen(rondo_onnx_type type, const void *elements, size_t count, void *out) {
  const unsigned bits = rondo_onnx_type_bits((int32_t)type),
                 wide = 8 * (unsigned)rondo_type_bytes(rondo_onnx_widened_type(type));
  const rondo_onnx_small_float *small = rondo_onnx_small_float_of(type);
  int64_t integer = 0;
  assert(wide > 0);
  if (type == RONDO_ONNX_DOUBLE) widen_doubles(elements, count, out);
  for (size_t i = 0; i < count && small != NULL; i++)
    ((float *)out)[i] = small_to_float(small, bits, (unsigned)bits_at(bits, elements, i));
  for (size_t i = 0; i < count && rondo_onnx_integer_at(type, elements, i, &integer); i++)
    put_bits(wide, out, i, (uint64_t)integer);
}

void rondo_onnx_narrow(rondo_onnx_type type, const void *wide, size_t count, void *out_elements) {
  const unsigned bits = rondo_onnx_type_bits((int32_t)type);
  const unsigned have = 8 * (unsigned)rondo_type_bytes(rondo_onnx_widened_type(type));
  const rondo_onnx_small_float *small = rondo_onnx_small_float_of(type);
  assert(have > 0);
  if (type == RONDO_ONNX_DOUBLE) narrow_to_doubles(wide, count, out_elements);
  for (size_t i = 0; i < count && small != NULL; i++)
    put_bits(bits, out_elements, i, small_of_float(small, bits, ((const float *)wide)[i]));
  for (size_t i = 0; i < count && kind_of(type) != NO_INTEGER; i++)
    put_bits(bits, out_elements, i, bits_at(have, wide, i));
}
