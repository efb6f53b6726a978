/* SPDX-License-Identifier: MIT
 * The CUDA form of abs.c.
 */
#include "tensor/operators/elementwise/unary.cuh"

__device__ inline float abs_of(float x) { return fabsf(x); }
__device__ inline float abs_gradient_of(float x, float dy) { return x > 0.0f ? dy : x < 0.0f ? -dy : 0.0f * x; }

extern "C" __global__ void abs_TYPE(const element *x, element *y, size_t count) {
  map(x, y, count, [](float v) { return abs_of(v); });
}

extern "C" __global__ void abs_gradient_TYPE(const element *kept, const element *dy, element *dx, size_t count) {
  map_slope(kept, dy, dx, count, [](float k, float d) { return abs_gradient_of(k, d); });
}
