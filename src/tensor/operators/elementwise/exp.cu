/* SPDX-License-Identifier: MIT
 * The CUDA form of exp.c.
 */
#include "tensor/operators/elementwise/unary.cuh"

__device__ inline float exp_of(float x) { return expf(x); }
__device__ inline float exp_gradient_of(float y, float dy) { return dy * y; }

extern "C" __global__ void exp_TYPE(const element *x, element *y, size_t count) {
  map(x, y, count, [](float v) { return exp_of(v); });
}

extern "C" __global__ void exp_gradient_TYPE(const element *kept, const element *dy, element *dx, size_t count) {
  map_slope(kept, dy, dx, count, [](float k, float d) { return exp_gradient_of(k, d); });
}
