/* SPDX-License-Identifier: MIT
 * The 8-bit floating-point types, as bits: E4M3FN, which has no infinity and up to 448, and E5M2, the upper half of a
 * binary16, up to 57344 (Micikevicius et al. 2022, FP8 Formats for Deep Learning). Conversions round to nearest, ties
 * to even, and keep NaNs; what is larger than the largest number, infinity too, becomes the largest number. They have
 * no branches, so that compilers vectorise loops. Threads: any.
 */
#ifndef RONDO_BASE_NUMBERS_FLOAT8_H
#define RONDO_BASE_NUMBERS_FLOAT8_H

#include "base/numbers/half_float.h"

/* A subnormal is a multiple of 2^-9, so float arithmetic converts it exactly. */
RONDO_INLINE float rondo_from_f8_e4m3(uint8_t bits) {
  const uint32_t sign = (uint32_t)(bits & 0x80u) << 24;
  const uint32_t magnitude = bits & 0x7fu;
  const uint32_t subnormal = rondo_float_bits((float)(int32_t)magnitude * 0x1p-9f);
  const uint32_t finite = rondo_choose_bits(magnitude >= 8, (magnitude << 20) + 0x3c000000u, subnormal);
  return rondo_float_of(sign | rondo_choose_bits(magnitude == 0x7fu, 0x7fc00000u, finite));
}

RONDO_INLINE float rondo_from_f8_e5m2(uint8_t bits) { return rondo_from_f16((uint16_t)(bits << 8)); }

/* A float of `magnitude` with fewer bits of mantissa: `dropped` bits less. `largest`: the largest number, as the bits
 * of a float. `least`: the least that is no subnormal, likewise. `even`: a power of two of which a float's last bit is
 * the least subnormal. */
RONDO_INLINE uint8_t rondo_to_f8(float x, unsigned dropped, uint32_t largest, uint32_t least, float even) {
  const uint32_t magnitude = rondo_float_bits(x) & 0x7fffffffu;
  const uint32_t sign = rondo_float_bits(x) >> 24 & 0x80u;
  const uint32_t within = rondo_choose_bits(magnitude > largest, largest, magnitude);
  const uint32_t subnormal = rondo_float_bits(rondo_float_of(within) + even) - rondo_float_bits(even);
  const uint32_t half = (1u << (dropped - 1)) - 1u;
  const uint32_t normal = ((within - least + half + (within >> dropped & 1u)) >> dropped) + (1u << (23 - dropped));
  const uint32_t finite = rondo_choose_bits(within < least, subnormal, normal);
  return (uint8_t)(sign | rondo_choose_bits(magnitude > 0x7f800000u, 0x7fu, finite));
}

RONDO_INLINE uint8_t rondo_to_f8_e4m3(float x) { return rondo_to_f8(x, 20, 0x43e00000u, 0x3c800000u, 16384); }
RONDO_INLINE uint8_t rondo_to_f8_e5m2(float x) { return rondo_to_f8(x, 21, 0x47600000u, 0x38800000u, 128); }

#endif
