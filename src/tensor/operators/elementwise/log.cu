/* SPDX-License-Identifier: MIT
 * The CUDA form of log_operator.c.
 */
#include "tensor/operators/elementwise/unary.cuh"

__device__ inline float log_of(float x) { return logf(x); }
__device__ inline float log_gradient_of(float x, float dy) { return dy / x; }

extern "C" __global__ void log_TYPE(const element *x, element *y, size_t count) {
  map(x, y, count, [](float v) { return log_of(v); });
}

extern "C" __global__ void log_gradient_TYPE(const element *kept, const element *dy, element *dx, size_t count) {
  map_slope(kept, dy, dx, count, [](float k, float d) { return log_gradient_of(k, d); });
}
