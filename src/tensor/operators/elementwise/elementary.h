/* SPDX-License-Identifier: MIT
 * exp, log, tanh, erf and sigmoid in a form that compilers vectorise: no branch, no table, no call, and no comparison
 * of floats, which could trap. The relative error of all is at most 4e-7; NaN gives NaN. Threads: any.
 *
 * Method (Muller, Elementary Functions, 3rd ed., chapters 3 and 11): y = n ln 2 + r with |r| <= ln 2 / 2, and
 * exp(y) - 1 = 2^n q(r) + (2^n - 1), q the Taylor polynomial of exp(r) - 1, which keeps the relative accuracy near 0.
 * n is rounded by adding 1.5 * 2^23, which leaves it in the low bits of the sum. The fits are those of the functions'
 * definitions (Abramowitz and Stegun, 4.1.28, 7.1.1) at Chebyshev's points.
 */
#ifndef RONDO_TENSOR_OPERATORS_ELEMENTWISE_ELEMENTARY_H
#define RONDO_TENSOR_OPERATORS_ELEMENTWISE_ELEMENTARY_H

#include "base/numbers/half_float.h"
#include "tensor/operators/common/vectors.h"

/* q(r) for |y| < 105; the low bits of *out_exponent are n. */
RONDO_INLINE float rondo_reduce_exponent(float y, uint32_t *out_exponent) {
  const float shifted = y * 1.44269504f + 12582912.0f;
  const float n = shifted - 12582912.0f;
  const float r = (y - n * 0.693359375f) + n * 2.12194440e-4f; /* ln 2 in two parts, the first exact times n */
  float q = 1.0f / 5040.0f;
  q = q * r + 1.0f / 720.0f;
  q = q * r + 1.0f / 120.0f;
  q = q * r + 1.0f / 24.0f;
  q = q * r + 1.0f / 6.0f;
  q = q * r + 0.5f;
  *out_exponent = rondo_float_bits(shifted);
  return q * r * r + r;
}

/* 2^n and q(r) for |y| < 87.4. */
RONDO_INLINE float rondo_split_exponent(float y, float *out_power) {
  uint32_t exponent;
  const float q = rondo_reduce_exponent(y, &exponent);
  *out_power = rondo_float_of((exponent + 127u) << 23);
  return q;
}

/* All ones for the magnitude of a NaN, else 0. Masks instead of ?:, which compilers turn into branches and then do not
 * vectorise. */
RONDO_INLINE uint32_t rondo_nan_mask(uint32_t magnitude) { return 0u - (uint32_t)(magnitude > 0x7f800000u); }

/* exp(x) for x <= 0; 0 below -87.33, where it would be subnormal. */
RONDO_INLINE float rondo_exp_negative(float x) {
  const uint32_t lowest = 0x42aea8f6u; /* 87.33 */
  const uint32_t magnitude = rondo_float_bits(x) & 0x7fffffffu;
  float power;
  const float q = rondo_split_exponent(-rondo_float_of(magnitude < lowest ? magnitude : lowest), &power);
  const uint32_t result = rondo_float_bits(power * q + power) & (0u - (uint32_t)(magnitude < lowest));
  return rondo_float_of(result | (magnitude & rondo_nan_mask(magnitude)));
}

/* a if the mask is all ones, b if it is 0. */
RONDO_INLINE float rondo_choose(uint32_t mask, float a, float b) {
  return rondo_float_of((rondo_float_bits(a) & mask) | (rondo_float_bits(b) & ~mask));
}

/* 2^n is applied in two halves, so that results may be subnormal, 0 or infinite. */
RONDO_INLINE float rondo_exp(float x) {
  const uint32_t largest = 0x42d00000u; /* 104: exp(104) is infinite, exp(-104) is 0 */
  const uint32_t magnitude = rondo_float_bits(x) & 0x7fffffffu;
  const uint32_t sign = rondo_float_bits(x) & 0x80000000u;
  uint32_t exponent;
  const float q = rondo_reduce_exponent(rondo_float_of((magnitude < largest ? magnitude : largest) | sign), &exponent);
  const uint32_t half = (exponent - 0x4b400000u + 512u) / 2u - 256u; /* n / 2, rounded down; n may be negative */
  const float power = rondo_float_of((half + 127u) << 23);
  const float rest = rondo_float_of((exponent - half + 127u) << 23);
  const uint32_t result = rondo_float_bits((power * q + power) * rest);
  return rondo_float_of(result | (magnitude & rondo_nan_mask(magnitude)));
}

/* x = 2^e (1 + f) with 1 + f between sqrt(1/2) and sqrt(2); log(1 + f) = 2 atanh(s), s = f / (2 + f), by its series. */
RONDO_INLINE float rondo_log(float x) {
  const uint32_t bits = rondo_float_bits(x);
  const uint32_t tiny = 0u - (uint32_t)(bits < 0x00800000u); /* 0 and positive subnormal numbers */
  const uint32_t scaled = rondo_float_bits(x * rondo_float_of((tiny & 0x4b000000u) | (~tiny & 0x3f800000u)));
  const uint32_t moved = scaled - 0x3f3504f3u; /* sqrt(1/2) */
  const float e = (float)((int32_t)(moved & 0xff800000u) / 0x00800000 - (int32_t)(tiny & 23u));
  const float f = rondo_float_of((moved & 0x007fffffu) + 0x3f3504f3u) - 1.0f;
  const float s = f / (2.0f + f);
  const float z = s * s;
  const float series = z * (2.0f / 3 + z * (2.0f / 5 + z * (2.0f / 7 + z * (2.0f / 9))));
  const float square = 0.5f * f * f; /* f - square + s (square + series) is the logarithm, with f exact */
  const float result = e * 0.693359375f - ((square - (s * (square + series) + e * -2.12194440e-4f)) - f);
  const uint32_t is_zero = 0u - (uint32_t)((bits & 0x7fffffffu) == 0);
  const uint32_t is_invalid = 0u - (uint32_t)(bits > 0x80000000u);
  const uint32_t is_kept = 0u - (uint32_t)(bits >= 0x7f800000u && bits <= 0x7fffffffu); /* infinite, not a number */
  return rondo_float_of((rondo_float_bits(rondo_choose(is_kept, x, result)) & ~is_zero & ~is_invalid) |
                        (is_zero & 0xff800000u) | (is_invalid & 0x7fc00000u));
}

/* Up to 1, a polynomial in x^2; from there to 4, a polynomial for the logarithm of 1 - erf. Both are Chebyshev fits. */
RONDO_INLINE float rondo_erf(float x) {
  const uint32_t magnitude = rondo_float_bits(x) & 0x7fffffffu;
  const uint32_t is_small = 0u - (uint32_t)(magnitude < 0x3f800000u);
  const float t = rondo_float_of(magnitude < 0x40800000u ? magnitude : 0x40800000u);
  const float u = rondo_float_of(magnitude < 0x3f800000u ? magnitude : 0x3f800000u);
  const float z = u * u;
  float near = 7.875875063e-5f;
  near = near * z - 8.016864287e-4f;
  near = near * z + 5.189087423e-3f;
  near = near * z - 2.685421201e-2f;
  near = near * z + 0.1128359472f;
  near = near * z - 0.3761262667f;
  near = near * z + 0.1283791658f;
  float far = 1.327236181e-5f;
  far = far * t - 3.169370225e-4f;
  far = far * t + 3.432351381e-3f;
  far = far * t - 2.260477224e-2f;
  far = far * t + 0.1032811176f;
  far = far * t + 0.6391412576f;
  far = far * t + 1.125893652f;
  far = far * t + 7.658977797e-4f;
  const uint32_t result = rondo_float_bits(rondo_choose(is_small, u + u * near, 1.0f - rondo_exp_negative(-far)));
  return rondo_float_of(result | (magnitude & rondo_nan_mask(magnitude)) | (rondo_float_bits(x) & 0x80000000u));
}

/* 1 / (1 + exp(-x)) */
RONDO_INLINE float rondo_sigmoid(float x) { return 1.0f / (1.0f + rondo_exp(-x)); }

RONDO_INLINE float rondo_tanh(float x) {
  const uint32_t saturated = 0x41200000u; /* 10: tanh is 1 already */
  const uint32_t magnitude = rondo_float_bits(x) & 0x7fffffffu;
  const uint32_t sign = rondo_float_bits(x) & 0x80000000u;
  float power;
  const float q = rondo_split_exponent(2.0f * rondo_float_of(magnitude < saturated ? magnitude : saturated), &power);
  const float e = power * q + (power - 1.0f); /* exp(2|x|) - 1 */
  const uint32_t result = rondo_float_bits(e / (e + 2.0f));
  return rondo_float_of(result | (magnitude & rondo_nan_mask(magnitude)) | sign);
}

#endif
