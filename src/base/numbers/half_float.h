/* SPDX-License-Identifier: MIT
 * The 16-bit floating-point types, F16 (IEEE 754 binary16) and BF16, as bits. Conversions round to nearest, ties to
 * even, and keep NaNs. They have no branches, so that compilers vectorise loops. Threads: any.
 */
#ifndef RONDO_BASE_NUMBERS_HALF_FLOAT_H
#define RONDO_BASE_NUMBERS_HALF_FLOAT_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/numbers/always_inline.h"

RONDO_INLINE uint32_t rondo_float_bits(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

RONDO_INLINE float rondo_float_of(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

RONDO_INLINE float rondo_from_bf16(uint16_t bits) { return rondo_float_of((uint32_t)bits << 16); }

RONDO_INLINE uint16_t rondo_to_bf16(float x) {
  const uint32_t bits = rondo_float_bits(x);
  const uint32_t rounded = bits + 0x7fffu + (bits >> 16 & 1u);
  return (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? bits >> 16 | 0x40u : rounded >> 16);
}

/* `condition ? a : b` without a branch, so that compilers vectorise loops. */
RONDO_INLINE uint32_t rondo_choose_bits(bool condition, uint32_t a, uint32_t b) {
  const uint32_t mask = 0u - (uint32_t)condition;
  return (a & mask) | (b & ~mask);
}

/* IEEE 754 binary16. A subnormal is a multiple of 2^-24, so float arithmetic converts it exactly. */
RONDO_INLINE float rondo_from_f16(uint16_t bits) {
  const uint32_t sign = (uint32_t)(bits & 0x8000u) << 16;
  const uint32_t magnitude = bits & 0x7fffu;
  const uint32_t shifted = magnitude << 13;
  const uint32_t subnormal = rondo_float_bits((float)(int32_t)magnitude * 0x1p-24f);
  const uint32_t finite = rondo_choose_bits(magnitude >= 0x0400u, shifted + 0x38000000u, subnormal);
  return rondo_float_of(sign | rondo_choose_bits(magnitude >= 0x7c00u, shifted + 0x70000000u, finite));
}

RONDO_INLINE uint16_t rondo_to_f16(float x) {
  const uint32_t bits = rondo_float_bits(x);
  const uint32_t magnitude = bits & 0x7fffffffu;
  const uint32_t sign = bits >> 16 & 0x8000u;
  const uint32_t infinite = 0x7c00u | (uint32_t)(magnitude > 0x7f800000u) << 9;
  /* Below 2^-14: adding 1/2 leaves the multiple of 2^-24 in the low bits. */
  const uint32_t subnormal = rondo_float_bits(rondo_float_of(magnitude) + 0.5f) - 0x3f000000u;
  const uint32_t normal = (magnitude - 0x38000000u + 0xfffu + (magnitude >> 13 & 1u)) >> 13;
  const uint32_t finite = rondo_choose_bits(magnitude < 0x38800000u, subnormal, normal);
  return (uint16_t)(sign | rondo_choose_bits(magnitude >= 0x477ff000u, infinite, finite)); /* 65520 and more */
}

#endif
