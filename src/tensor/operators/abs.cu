/* SPDX-License-Identifier: MIT
 * The CUDA form of abs.c.
 */
#include "tensor/operators/unary.cuh"

extern "C" __global__ void abs_TYPE(const element *x, element *y, size_t count) {
  map(x, y, count, [](float v) { return fabsf(v); });
}

extern "C" __global__ void abs_gradient_TYPE(const element *kept, const element *dy, element *dx, size_t count) {
  map_slope(kept, dy, dx, count, [](float x, float d) { return x > 0.0f ? d : x < 0.0f ? -d : 0.0f * x; });
}
