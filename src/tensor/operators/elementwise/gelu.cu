/* SPDX-License-Identifier: MIT
 * The CUDA form of gelu.c.
 */
#include "tensor/operators/elementwise/unary.cuh"

/* Phi(x) */
__device__ inline float gelu_share(float x) { return 0.5f + 0.5f * erff(x * 0.707106781f); }

__device__ inline float gelu_of(float x) { return x * gelu_share(x); }

/* Phi(x) + x exp(-x^2 / 2) / sqrt(2 pi) */
__device__ inline float gelu_gradient_of(float x, float dy) {
  return dy * (gelu_share(x) + x * 0.398942280f * expf(-0.5f * x * x));
}

extern "C" __global__ void gelu_TYPE(const element *x, element *y, size_t count) {
  map(x, y, count, [](float v) { return gelu_of(v); });
}

extern "C" __global__ void gelu_gradient_TYPE(const element *kept, const element *dy, element *dx, size_t count) {
  map_slope(kept, dy, dx, count, [](float k, float d) { return gelu_gradient_of(k, d); });
}
