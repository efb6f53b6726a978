/* SPDX-License-Identifier: MIT
 * The CUDA form of relu.c.
 */
#include "tensor/operators/elementwise/unary.cuh"

__device__ inline float relu_of(float x) { return x < 0.0f ? 0.0f : x; } /* passes NaN on */
__device__ inline float relu_gradient_of(float y, float dy) { return y > 0.0f ? dy : 0.0f; }

extern "C" __global__ void relu_TYPE(const element *x, element *y, size_t count) {
  map(x, y, count, [](float v) { return relu_of(v); });
}

extern "C" __global__ void relu_gradient_TYPE(const element *kept, const element *dy, element *dx, size_t count) {
  map_slope(kept, dy, dx, count, [](float k, float d) { return relu_gradient_of(k, d); });
}
