/* SPDX-License-Identifier: MIT
 * The functions of elementary.h in CUDA, by CUDA's own functions. The formulas of operators (unary_operators.inc) use
 * them.
 */
#define FORMULA __device__ inline

/* Integers that wrap around. */
typedef long long integer;
#define WRAP(a, operator, b) (integer)((unsigned long long)(a) operator(unsigned long long)(b))

__device__ inline unsigned rondo_float_bits(float x) { return __float_as_uint(x); }
__device__ inline float rondo_float_of(unsigned bits) { return __uint_as_float(bits); }

/* a if the mask is all ones, b if it is 0. */
__device__ inline float rondo_choose(unsigned mask, float a, float b) {
  return rondo_float_of((rondo_float_bits(a) & mask) | (rondo_float_bits(b) & ~mask));
}

__device__ inline unsigned rondo_magnitude(float x) { return rondo_float_bits(x) & 0x7fffffffu; }

/* All ones if the condition is true, else 0; and if x is above 0. */
__device__ inline unsigned rondo_mask(bool condition) { return 0u - (unsigned)condition; }
__device__ inline unsigned rondo_positive_mask(float x) { return rondo_mask(rondo_float_bits(x) - 1u < 0x7f800000u); }

__device__ inline float rondo_exp(float x) { return expf(x); }
__device__ inline float rondo_exp_negative(float x) { return expf(x); }
__device__ inline float rondo_expm1(float x) { return expm1f(x); }
__device__ inline float rondo_log(float x) { return logf(x); }
__device__ inline float rondo_log1p(float x) { return log1pf(x); }
__device__ inline float rondo_erf(float x) { return erff(x); }
__device__ inline float rondo_normal(float x, float) { return 0.5f * erfcf(x * -0.707106781f); }
__device__ inline float rondo_tanh(float x) { return tanhf(x); }
__device__ inline float rondo_sin(float x) { return sinf(x); }
__device__ inline float rondo_cos(float x) { return cosf(x); }
__device__ inline float rondo_pow(float a, float b) { return powf(a, b); }
__device__ inline float rondo_rsqrt(float x) { return rsqrtf(x); }
__device__ inline float rondo_sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }
