/* SPDX-License-Identifier: MIT
 * The CUDA form of tanh.c.
 */
#include "tensor/operators/element.cuh"

extern "C" __global__ void tanh_TYPE(const element *__restrict__ x, element *__restrict__ y, size_t count) {
  for (size_t i = first_element(); i < count; i += element_stride()) y[i] = to_element(tanhf(to_float(x[i])));
}

extern "C" __global__ void tanh_gradient_TYPE(const element *__restrict__ kept, const element *__restrict__ dy,
                                              element *__restrict__ dx, size_t count) {
  for (size_t i = first_element(); i < count; i += element_stride()) {
    const float y = to_float(kept[i]);
    dx[i] = to_element(to_float(dy[i]) * (1.0f - y * y));
  }
}
