/* SPDX-License-Identifier: MIT
 * The CUDA form of op_tanh.c.
 */
#include "tensor/kernel_support.cuh"

extern "C" __global__ void tanh_forward(const float *__restrict__ x, float *__restrict__ y, size_t count) {
  for (size_t i = first_element(); i < count; i += element_stride()) y[i] = tanhf(x[i]);
}

extern "C" __global__ void tanh_gradient(const float *__restrict__ y, const float *__restrict__ dy,
                                         float *__restrict__ dx, size_t count) {
  for (size_t i = first_element(); i < count; i += element_stride()) dx[i] = dy[i] * (1.0f - y[i] * y[i]);
}
