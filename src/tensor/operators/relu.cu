/* SPDX-License-Identifier: MIT
 * The CUDA form of relu.c.
 */
#include "tensor/operators/unary.cuh"

extern "C" __global__ void relu_TYPE(const element *x, element *y, size_t count) {
  map(x, y, count, [](float v) { return v < 0.0f ? 0.0f : v; });
}

extern "C" __global__ void relu_gradient_TYPE(const element *kept, const element *dy, element *dx, size_t count) {
  map_slope(kept, dy, dx, count, [](float y, float d) { return y > 0.0f ? d : 0.0f; });
}
