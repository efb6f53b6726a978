/* SPDX-License-Identifier: MIT
 * Whole numbers as elements of any type, written without Rondo's own conversions.
 */
#ifndef RONDO_TEST_NUMBERS_H
#define RONDO_TEST_NUMBERS_H

#include <assert.h>
#include <rondo/type.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint32_t test_float_bits(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

/* Of a whole number below 2048, which F16 has. */
static inline uint16_t test_f16_bits(int64_t value) {
  const uint32_t bits = test_float_bits((float)value);
  return (uint16_t)(value == 0 ? 0 : (bits >> 16 & 0x8000u) | (((bits & 0x7fffffffu) - (112u << 23)) >> 13));
}

/* Sets element `i` to a small whole number. Collectives and quantised weights, which use this, have no floats of 8
 * bits.
 */
static inline void test_put_number(void *buffer, rondo_type type, size_t i, int64_t value) {
  switch (type) {
    case RONDO_F32:
      ((float *)buffer)[i] = (float)value;
      return;
    case RONDO_F64:
      ((double *)buffer)[i] = (double)value;
      return;
    case RONDO_I32:
      ((int32_t *)buffer)[i] = (int32_t)value;
      return;
    case RONDO_I64:
      ((int64_t *)buffer)[i] = value;
      return;
    case RONDO_I8:
      ((int8_t *)buffer)[i] = (int8_t)value;
      return;
    case RONDO_U8:
    case RONDO_BOOL:
      ((uint8_t *)buffer)[i] = (uint8_t)value;
      return;
    case RONDO_F16:
      ((uint16_t *)buffer)[i] = test_f16_bits(value);
      return;
    case RONDO_BF16:
      ((uint16_t *)buffer)[i] = (uint16_t)(test_float_bits((float)value) >> 16);
      return;
    case RONDO_F8_E4M3:
    case RONDO_F8_E5M2:
      assert(false && "a type without numbers here");
      return;
  }
}

#endif
