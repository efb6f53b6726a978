/* SPDX-License-Identifier: MIT
 * The CUDA form of sgd.c.
 */
#include "tensor/operators/kernel_support.cuh"

extern "C" __global__ void sgd(float *__restrict__ p, const float *__restrict__ g, const float *__restrict__ rate,
                               size_t count) {
  for (size_t i = first_element(); i < count; i += element_stride()) p[i] -= *rate * g[i];
}

extern "C" __global__ void sgd_momentum(float *__restrict__ p, const float *__restrict__ g,
                                        const float *__restrict__ rate, float *__restrict__ v,
                                        const float *__restrict__ momentum, size_t count) {
  for (size_t i = first_element(); i < count; i += element_stride()) {
    const float velocity = *momentum * v[i] + g[i];
    v[i] = velocity;
    p[i] -= *rate * velocity;
  }
}
