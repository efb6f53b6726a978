/* SPDX-License-Identifier: MIT
 * exp, expm1, log, log1p, tanh, erf, the normal distribution, sigmoid, sin, cos and pow in a form that compilers
 * vectorise: no branch, no table, no call, and no comparison of floats, which could trap. The relative error of all is
 * at most 4e-7, of the normal distribution 5e-7; NaN gives NaN. Threads: any.
 *
 * Method (Muller, Elementary Functions, 3rd ed., chapters 3 and 11): y = n ln 2 + r with |r| <= ln 2 / 2, and
 * exp(y) - 1 = 2^n q(r) + (2^n - 1), q the Taylor polynomial of exp(r) - 1, which keeps the relative accuracy near 0.
 * n is rounded by adding 1.5 * 2^23, which leaves it in the low bits of the sum. The fits are those of the functions'
 * definitions (Abramowitz and Stegun, 4.1.28, 7.1.1) at Chebyshev's points.
 *
 * sin, cos and pow compute with doubles: x = n pi / 2 + r with |r| <= pi / 4, where pi / 2 has three parts, of which
 * the first two have so few bits that their products with n are exact (Cody and Waite); a^b = 2^(b log2 a).
 */
#ifndef RONDO_TENSOR_OPERATORS_ELEMENTWISE_ELEMENTARY_H
#define RONDO_TENSOR_OPERATORS_ELEMENTWISE_ELEMENTARY_H

#include "base/numbers/half_float.h"
#include "tensor/operators/common/vectors.h"

/* Integers that wrap around. */
#define WRAP(a, operator, b) (int64_t)((uint64_t)(a) operator(uint64_t)(b))

RONDO_INLINE uint32_t rondo_magnitude(float x) { return rondo_float_bits(x) & 0x7fffffffu; }

/* All ones if the condition is true, else 0; and if x is above 0. */
RONDO_INLINE uint32_t rondo_mask(bool condition) { return 0u - (uint32_t)condition; }
RONDO_INLINE uint32_t rondo_positive_mask(float x) { return rondo_mask(rondo_float_bits(x) - 1u < 0x7f800000u); }

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

/* exp(x) - 1. Beyond 17, the 1 is smaller than what F32 rounds; below -18, the result is -1. */
RONDO_INLINE float rondo_expm1(float x) {
  const uint32_t magnitude = rondo_magnitude(x), sign = rondo_float_bits(x) & 0x80000000u;
  float power;
  const float q =
      rondo_split_exponent(rondo_float_of((magnitude < 0x41900000u ? magnitude : 0x41900000u) | sign), &power);
  const uint32_t result = (rondo_float_bits(power * q + (power - 1.0f)) & 0x7fffffffu) | sign;
  const float near = rondo_float_of(result | (magnitude & rondo_nan_mask(magnitude)));
  return rondo_choose(rondo_positive_mask(x) & rondo_mask(magnitude > 0x41880000u), rondo_exp(x), near);
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

/* log(1 + x): the logarithm of the rounded sum, plus the relative error of the sum. */
RONDO_INLINE float rondo_log1p(float x) {
  const float sum = 1.0f + x, log = rondo_log(sum);
  const uint32_t is_finite = rondo_mask(rondo_magnitude(sum) - 1u < 0x7f7fffffu);
  const float corrected = rondo_choose(is_finite, log + (x - (sum - 1.0f)) / sum, log);
  return rondo_choose(rondo_mask(rondo_float_bits(sum) == 0x3f800000u), x, corrected);
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

/* Phi(x), the distribution function of the normal distribution, from bell = exp(-x^2 / 2), which gradients need, too.
 * Phi(-t) = bell u p(u) with u = 1 / (1 + 0.3 t), the form of Abramowitz and Stegun, 26.2.17, but p is a fit of the
 * relative error up to t = 7.5. Beyond, where Phi(-t) < 1e-13, the relative error is at most 3e-6. */
RONDO_INLINE float rondo_normal(float x, float bell) {
  const float u = 1.0f / (1.0f + 0.3f * rondo_float_of(rondo_magnitude(x)));
  float p = 0.03725676169f;
  p = p * u - 0.1637019005f;
  p = p * u + 0.217356902f;
  p = p * u - 0.06358317757f;
  p = p * u + 0.1336378824f;
  p = p * u + 0.09844337896f;
  p = p * u + 0.1209736599f;
  p = p * u + 0.1196165164f;
  const float tail = bell * (p * u);
  return rondo_choose(rondo_positive_mask(x), 1.0f - tail, tail);
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

/* With doubles ----------------------------------------------------------------------------------------------------- */

RONDO_INLINE uint64_t rondo_double_bits(double x) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

RONDO_INLINE double rondo_double_of(uint64_t bits) {
  double x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

RONDO_INLINE double rondo_choose_double(uint64_t mask, double a, double b) {
  return rondo_double_of((rondo_double_bits(a) & mask) | (rondo_double_bits(b) & ~mask));
}

/* 1.5 * 2^52: the low bits of the sum with it are the nearest integer. */
#define RONDO_TO_INTEGER 0x1.8p52

/* sin and cos lose their accuracy beyond this magnitude, 2^27, and are not meant for it. */
#define RONDO_FAR_BITS 0x4d000000u
RONDO_INLINE uint32_t rondo_is_far(float x) { return (rondo_float_bits(x) & 0x7fffffffu) > RONDO_FAR_BITS; }

/* sin(x + quarters pi / 2) */
RONDO_INLINE float rondo_sine(float x, uint64_t quarters) {
  const double shifted = (double)x * 0x1.45f306dc9c883p-1 + RONDO_TO_INTEGER; /* 2 / pi */
  const double n = shifted - RONDO_TO_INTEGER;
  const double r = (((double)x - n * 0x1.921fb50p0) - n * 0x1.110b460p-26) - n * 0x1.1a62633145c07p-54;
  const uint64_t quadrant = rondo_double_bits(shifted) + quarters;
  const double z = r * r;
  const double sine = r + r * z * (-1.0 / 6 + z * (1.0 / 120 + z * (-1.0 / 5040 + z * (1.0 / 362880))));
  const double cosine = 1 + z * (-0.5 + z * (1.0 / 24 + z * (-1.0 / 720 + z * (1.0 / 40320 + z * (-1.0 / 3628800)))));
  const double y = rondo_choose_double(0u - (quadrant & 1), cosine, sine);
  return (float)rondo_double_of(rondo_double_bits(y) ^ (quadrant & 2) << 62);
}

RONDO_INLINE float rondo_sin(float x) { return rondo_sine(x, 0); }
RONDO_INLINE float rondo_cos(float x) { return rondo_sine(x, 1); }

/* log2(a) of a positive, finite double that is not subnormal: a = 2^e m with m between sqrt(1/2) and sqrt(2), and
 * log(m) = 2 atanh(t), t = (m - 1) / (m + 1), by its series. */
RONDO_INLINE double rondo_log2(double a) {
  const uint64_t root = 0x3fe6a09e667f3bcdu, mantissa = 0x000fffffffffffffu; /* sqrt(1/2) */
  const uint64_t moved = rondo_double_bits(a) + (0x3ff0000000000000u - root);
  const double e = rondo_double_of(moved >> 52 | 0x4330000000000000u) - (0x1p52 + 1023); /* 2^52 and the exponent */
  const double m = rondo_double_of((moved & mantissa) + root);
  const double t = (m - 1) / (m + 1), z = t * t;
  const double series = 1.0 / 3 + z * (1.0 / 5 + z * (1.0 / 7 + z * (1.0 / 9 + z * (1.0 / 11 + z * (1.0 / 13)))));
  return e + 2.8853900817779268 * (t + t * z * series); /* 2 / ln 2 */
}

/* 2^y for |y| <= 1000 */
RONDO_INLINE double rondo_exp2(double y) {
  const double shifted = y + RONDO_TO_INTEGER;
  const double r = (y - (shifted - RONDO_TO_INTEGER)) * 0.69314718055994531; /* ln 2 */
  double q = 1.0 / 40320;
  q = q * r + 1.0 / 5040;
  q = q * r + 1.0 / 720;
  q = q * r + 1.0 / 120;
  q = q * r + 1.0 / 24;
  q = q * r + 1.0 / 6;
  q = q * r + 0.5;
  q = q * r + 1;
  return (q * r + 1) * rondo_double_of((rondo_double_bits(shifted) + 1023) << 52);
}

/* The double with a magnitude of at most `limit` that is nearest to x. */
RONDO_INLINE double rondo_within(double x, double limit) {
  const uint64_t sign = rondo_double_bits(x) & 0x8000000000000000u, magnitude = rondo_double_bits(x) & ~sign;
  const uint64_t most = rondo_double_bits(limit);
  return rondo_double_of((magnitude < most ? magnitude : most) | sign);
}

/* As pow of C, for infinities, zeros and NaNs too. */
RONDO_INLINE float rondo_pow(float a, float b) {
  const uint32_t of_a = rondo_float_bits(a) & 0x7fffffffu, of_b = rondo_float_bits(b) & 0x7fffffffu;
  const uint64_t is_zero = 0u - (uint64_t)(of_a == 0), is_infinite = 0u - (uint64_t)(of_a == 0x7f800000u);
  const double log = rondo_log2((double)rondo_float_of(of_a - 1u < 0x7f7fffffu ? of_a : 0x3f800000u));
  const double ends = rondo_choose_double(is_zero, -0x1p200, 0x1p200); /* times the smallest b, still far beyond */
  const double y = (double)b * rondo_choose_double(is_zero | is_infinite, ends, log);
  const double power = rondo_exp2(rondo_within(y, 200)); /* as a float it is 0 or infinite at the ends */
  const double whole = rondo_within((double)b, 0x1p40) + RONDO_TO_INTEGER; /* larger floats are even, too */
  const uint32_t is_odd = 0u - (uint32_t)(rondo_double_bits(whole) & 1);
  const uint32_t is_whole = 0u - (uint32_t)(rondo_double_bits(whole - RONDO_TO_INTEGER) ==
                                                rondo_double_bits(rondo_within((double)b, 0x1p40)) ||
                                            of_b == 0);
  const uint32_t is_negative = 0u - (rondo_float_bits(a) >> 31);
  const uint32_t is_finite_number = 0u - (uint32_t)(of_a - 1u < 0x7f7fffffu);
  const uint32_t is_one = 0u - (uint32_t)(of_b == 0 || rondo_float_bits(a) == 0x3f800000u ||
                                          (rondo_float_bits(a) == 0xbf800000u && of_b == 0x7f800000u));
  const uint32_t is_nan = rondo_nan_mask(of_a) | rondo_nan_mask(of_b) | (is_negative & is_finite_number & ~is_whole);
  const float signed_power =
      rondo_float_of(rondo_float_bits((float)power) | (is_negative & is_odd & is_whole & 0x80000000u));
  return rondo_choose(is_one, 1.0f, rondo_choose(is_nan, rondo_float_of(0x7fc00000u), signed_power));
}

#endif
