/* SPDX-License-Identifier: MIT
 * exp and tanh that compilers can vectorise: no branch, no table, no call, and no comparison of floats, which could
 * trap. Against the exact values both are within 4e-7 relative; NaN gives NaN.
 *
 * Method (Muller, Elementary Functions, 3rd ed., chapters 3 and 11): y = n ln 2 + r with |r| <= ln 2 / 2, and
 * exp(y) - 1 = 2^n q(r) + (2^n - 1), q the Taylor polynomial of exp(r) - 1, which keeps the relative accuracy near 0.
 * n is rounded by adding 1.5 * 2^23, which leaves it in the low bits of the sum.
 */
#ifndef RONDO_TENSOR_OPERATORS_ELEMENTARY_H
#define RONDO_TENSOR_OPERATORS_ELEMENTARY_H

#include <stdint.h>
#include <string.h>

static inline uint32_t rondo_float_bits(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

static inline float rondo_float_of(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

/* 2^n and q(r) of a y with |y| < 87.4. */
static inline float rondo_split_exponent(float y, float *out_power) {
  const float shifted = y * 1.44269504f + 12582912.0f;
  const float n = shifted - 12582912.0f;
  const float r = (y - n * 0.693359375f) + n * 2.12194440e-4f; /* ln 2 in two parts, the first exact times n */
  float q = 1.0f / 5040.0f;
  q = q * r + 1.0f / 720.0f;
  q = q * r + 1.0f / 120.0f;
  q = q * r + 1.0f / 24.0f;
  q = q * r + 1.0f / 6.0f;
  q = q * r + 0.5f;
  *out_power = rondo_float_of((rondo_float_bits(shifted) + 127u) << 23);
  return q * r * r + r;
}

/* All ones for the magnitude of a NaN, else 0. Masks, not ?:, because compilers turn that into branches around the
 * arithmetic and do not vectorise it then. */
static inline uint32_t rondo_nan_mask(uint32_t magnitude) { return 0u - (uint32_t)(magnitude > 0x7f800000u); }

/* exp(x) for x <= 0; 0 below -87.33, where it would be subnormal. */
static inline float rondo_exp_negative(float x) {
  const uint32_t lowest = 0x42aea8f6u; /* 87.33 */
  const uint32_t magnitude = rondo_float_bits(x) & 0x7fffffffu;
  float power;
  const float q = rondo_split_exponent(-rondo_float_of(magnitude < lowest ? magnitude : lowest), &power);
  const uint32_t result = rondo_float_bits(power * q + power) & (0u - (uint32_t)(magnitude < lowest));
  return rondo_float_of(result | (magnitude & rondo_nan_mask(magnitude)));
}

static inline float rondo_tanh(float x) {
  const uint32_t saturated = 0x41200000u; /* 10: tanh is 1 long before */
  const uint32_t magnitude = rondo_float_bits(x) & 0x7fffffffu;
  const uint32_t sign = rondo_float_bits(x) & 0x80000000u;
  float power;
  const float q = rondo_split_exponent(2.0f * rondo_float_of(magnitude < saturated ? magnitude : saturated), &power);
  const float e = power * q + (power - 1.0f); /* exp(2|x|) - 1 */
  const uint32_t result = rondo_float_bits(e / (e + 2.0f));
  return rondo_float_of(result | (magnitude & rondo_nan_mask(magnitude)) | sign);
}

#endif
