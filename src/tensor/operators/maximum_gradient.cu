/* SPDX-License-Identifier: MIT
 * The CUDA form of the gradient in maximum.c.
 */
#include "tensor/operators/broadcast.cuh"

extern "C" __global__ void maximum_gradient_TYPE(broadcast shape, const element *dy, const element *larger,
                                                 const element *smaller, element *dx) {
  broadcast_3(shape, dy, larger, smaller, dx, [](element d, element p, element q) {
    const float a = to_float(p), b = to_float(q);
    return to_element(to_float(d) * (a > b ? 1.0f : a == b ? 0.5f : 0.0f));
  });
}
