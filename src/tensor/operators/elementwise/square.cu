/* SPDX-License-Identifier: MIT
 * The CUDA form of square.c.
 */
#include "tensor/operators/elementwise/unary.cuh"

__device__ inline float square_of(float x) { return x * x; }
__device__ inline float square_gradient_of(float x, float dy) { return 2.0f * x * dy; }

extern "C" __global__ void square_TYPE(const element *x, element *y, size_t count) {
  map(x, y, count, [](float v) { return square_of(v); });
}

extern "C" __global__ void square_gradient_TYPE(const element *kept, const element *dy, element *dx, size_t count) {
  map_slope(kept, dy, dx, count, [](float k, float d) { return square_gradient_of(k, d); });
}
