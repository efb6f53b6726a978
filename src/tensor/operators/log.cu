/* SPDX-License-Identifier: MIT
 * The CUDA form of log.c.
 */
#include "tensor/operators/unary.cuh"

extern "C" __global__ void log_TYPE(const element *x, element *y, size_t count) {
  map(x, y, count, [](float v) { return logf(v); });
}

extern "C" __global__ void log_gradient_TYPE(const element *kept, const element *dy, element *dx, size_t count) {
  map_slope(kept, dy, dx, count, [](float x, float d) { return d / x; });
}
