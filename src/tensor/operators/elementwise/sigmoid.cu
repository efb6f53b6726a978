/* SPDX-License-Identifier: MIT
 * The CUDA form of sigmoid.c.
 */
#include "tensor/operators/elementwise/unary.cuh"

__device__ inline float sigmoid_of(float x) { return 1.0f / (1.0f + expf(-x)); }
__device__ inline float sigmoid_gradient_of(float y, float dy) { return dy * y * (1.0f - y); }

extern "C" __global__ void sigmoid_TYPE(const element *x, element *y, size_t count) {
  map(x, y, count, [](float v) { return sigmoid_of(v); });
}

extern "C" __global__ void sigmoid_gradient_TYPE(const element *kept, const element *dy, element *dx, size_t count) {
  map_slope(kept, dy, dx, count, [](float k, float d) { return sigmoid_gradient_of(k, d); });
}
