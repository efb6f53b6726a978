/* SPDX-License-Identifier: MIT
 * The CUDA form of tanh.c.
 */
#include "tensor/operators/elementwise/unary.cuh"

__device__ inline float tanh_of(float x) { return tanhf(x); }
__device__ inline float tanh_gradient_of(float y, float dy) { return dy * (1.0f - y * y); }

extern "C" __global__ void tanh_TYPE(const element *x, element *y, size_t count) {
  map(x, y, count, [](float v) { return tanh_of(v); });
}

extern "C" __global__ void tanh_gradient_TYPE(const element *kept, const element *dy, element *dx, size_t count) {
  map_slope(kept, dy, dx, count, [](float k, float d) { return tanh_gradient_of(k, d); });
}
