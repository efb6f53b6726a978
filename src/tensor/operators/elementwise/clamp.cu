/* SPDX-License-Identifier: MIT
 * The CUDA kernels of clamp.c.
 */
#include "tensor/operators/elementwise/unary.cuh"

__device__ inline float clamp_of(float x, float lowest, float highest) {
  const float above = x < lowest ? lowest : x;
  return above > highest ? highest : above;
}

/* The nearest integer to a whole number, which may be infinite; `none` for NaN. */
__device__ inline i64 limit_of(float whole, i64 none) { return whole == whole ? __float2ll_rz(whole) : none; }

__device__ inline i64 clamp_of(i64 x, float lowest, float highest) {
  const i64 low = limit_of(ceilf(lowest), (i64)1 << 63), high = limit_of(floorf(highest), ~((i64)1 << 63));
  const i64 above = x < low ? low : x;
  return above > high ? high : above;
}

__device__ inline float clamp_gradient_of(float x, float dy, float lowest, float highest) {
  return x >= lowest && x <= highest ? dy : 0.0f;
}

extern "C" __global__ void clamp_NUMBER(const element *x, element *y, size_t count, float lowest, float highest) {
  map(
      y, count, [lowest, highest](number v) { return clamp_of(v, lowest, highest); }, x);
}

#ifdef ELEMENT_IS_FLOAT
extern "C" __global__ void clamp_gradient_TYPE(const element *x, const element *dy, element *dx, size_t count,
                                               float lowest, float highest) {
  map(
      dx, count, [lowest, highest](float v, float d) { return clamp_gradient_of(v, d, lowest, highest); }, x, dy);
}
#endif
