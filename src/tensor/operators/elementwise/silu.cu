/* SPDX-License-Identifier: MIT
 * The CUDA form of silu.c.
 */
#include "tensor/operators/elementwise/unary.cuh"

__device__ inline float silu_of(float x) { return x / (1.0f + expf(-x)); }

/* s (1 + x (1 - s)), s = sigmoid(x) */
__device__ inline float silu_gradient_of(float x, float dy) {
  const float s = 1.0f / (1.0f + expf(-x));
  return dy * (s * (1.0f + x * (1.0f - s)));
}

extern "C" __global__ void silu_TYPE(const element *x, element *y, size_t count) {
  map(x, y, count, [](float v) { return silu_of(v); });
}

extern "C" __global__ void silu_gradient_TYPE(const element *kept, const element *dy, element *dx, size_t count) {
  map_slope(kept, dy, dx, count, [](float k, float d) { return silu_gradient_of(k, d); });
}
