/* SPDX-License-Identifier: MIT
 * The CUDA form of gelu_tanh.c.
 */
#include "tensor/operators/elementwise/unary.cuh"

/* 2 u */
__device__ inline float gelu_twice(float x) { return 1.59576912f * x * (1.0f + 0.044715f * x * x); }

__device__ inline float gelu_tanh_of(float x) { return x / (1.0f + expf(-gelu_twice(x))); }

/* s + x s (1 - s) 2 u', s = sigmoid(2 u). Beyond 16 s (1 - s) is 0, and u' may be infinite. */
__device__ inline float gelu_tanh_gradient_of(float x, float dy) {
  const float s = 1.0f / (1.0f + expf(-gelu_twice(x)));
  const float z = fabsf(x) > 16.0f ? 16.0f : x;
  return dy * (s + z * s * (1.0f - s) * (1.59576912f + 0.214065595f * z * z));
}

extern "C" __global__ void gelu_tanh_TYPE(const element *x, element *y, size_t count) {
  map(x, y, count, [](float v) { return gelu_tanh_of(v); });
}

extern "C" __global__ void gelu_tanh_gradient_TYPE(const element *kept, const element *dy, element *dx, size_t count) {
  map_slope(kept, dy, dx, count, [](float k, float d) { return gelu_tanh_gradient_of(k, d); });
}
