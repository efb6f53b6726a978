/* SPDX-License-Identifier: MIT
 * The CUDA form of tanh.c.
 */
#include "tensor/operators/unary.cuh"

extern "C" __global__ void tanh_TYPE(const element *x, element *y, size_t count) {
  map(x, y, count, [](float v) { return tanhf(v); });
}

extern "C" __global__ void tanh_gradient_TYPE(const element *kept, const element *dy, element *dx, size_t count) {
  map_slope(kept, dy, dx, count, [](float y, float d) { return d * (1.0f - y * y); });
}
