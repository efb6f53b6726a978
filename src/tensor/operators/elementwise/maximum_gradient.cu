/* SPDX-License-Identifier: MIT
 * The CUDA form of the gradient in maximum.c.
 */
#include "tensor/operators/elementwise/broadcast.cuh"

__device__ inline float maximum_gradient_of(float dy, float larger, float smaller) {
  return dy * (larger > smaller ? 1.0f : larger == smaller ? 0.5f : 0.0f);
}

extern "C" __global__ void maximum_gradient_TYPE(broadcast shape, const element *dy, const element *larger,
                                                 const element *smaller, element *dx) {
  broadcast_3(shape, dy, larger, smaller, dx, [](element d, element p, element q) {
    return to_element(maximum_gradient_of(to_float(d), to_float(p), to_float(q)));
  });
}
