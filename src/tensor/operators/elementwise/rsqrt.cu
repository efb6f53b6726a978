/* SPDX-License-Identifier: MIT
 * The CUDA form of rsqrt.c.
 */
#include "tensor/operators/elementwise/unary.cuh"

__device__ inline float rsqrt_of(float x) { return rsqrtf(x); }
__device__ inline float rsqrt_gradient_of(float y, float dy) { return -0.5f * dy * (y * y * y); }

extern "C" __global__ void rsqrt_TYPE(const element *x, element *y, size_t count) {
  map(x, y, count, [](float v) { return rsqrt_of(v); });
}

extern "C" __global__ void rsqrt_gradient_TYPE(const element *kept, const element *dy, element *dx, size_t count) {
  map_slope(kept, dy, dx, count, [](float k, float d) { return rsqrt_gradient_of(k, d); });
}
