/* SPDX-License-Identifier: MIT
 * The CUDA form of sqrt.c.
 */
#include "tensor/operators/elementwise/unary.cuh"

__device__ inline float sqrt_of(float x) { return sqrtf(x); }
__device__ inline float sqrt_gradient_of(float y, float dy) { return 0.5f * dy / y; }

extern "C" __global__ void sqrt_TYPE(const element *x, element *y, size_t count) {
  map(x, y, count, [](float v) { return sqrt_of(v); });
}

extern "C" __global__ void sqrt_gradient_TYPE(const element *kept, const element *dy, element *dx, size_t count) {
  map_slope(kept, dy, dx, count, [](float k, float d) { return sqrt_gradient_of(k, d); });
}
