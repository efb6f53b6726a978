/* SPDX-License-Identifier: MIT
 * The CUDA form of exp.c.
 */
#include "tensor/operators/unary.cuh"

extern "C" __global__ void exp_TYPE(const element *x, element *y, size_t count) {
  map(x, y, count, [](float v) { return expf(v); });
}

extern "C" __global__ void exp_gradient_TYPE(const element *kept, const element *dy, element *dx, size_t count) {
  map_slope(kept, dy, dx, count, [](float y, float d) { return d * y; });
}
