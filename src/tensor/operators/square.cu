/* SPDX-License-Identifier: MIT
 * The CUDA form of square.c.
 */
#include "tensor/operators/unary.cuh"

extern "C" __global__ void square_TYPE(const element *x, element *y, size_t count) {
  map(x, y, count, [](float v) { return v * v; });
}

extern "C" __global__ void square_gradient_TYPE(const element *kept, const element *dy, element *dx, size_t count) {
  map_slope(kept, dy, dx, count, [](float x, float d) { return 2.0f * x * d; });
}
