/* SPDX-License-Identifier: MIT
 * The CUDA form of sgd.c.
 */
#include "tensor/operators/kernel_support.cuh"

struct sgd_numbers {
  float decay;
  unsigned is_controlled;
};

extern "C" __global__ void sgd(sgd_numbers numbers, float *__restrict__ p, const float *__restrict__ g,
                               const float *__restrict__ rate, const float *__restrict__ control, size_t count) {
  const float scale = numbers.is_controlled ? control[0] : 1.0f;
  if (numbers.is_controlled && control[1] == 0) return;
  for (size_t i = first_element(); i < count; i += element_stride())
    p[i] -= *rate * (g[i] * scale + numbers.decay * p[i]);
}

extern "C" __global__ void sgd_momentum(sgd_numbers numbers, float *__restrict__ p, const float *__restrict__ g,
                                        const float *__restrict__ rate, const float *__restrict__ control, size_t count,
                                        float *__restrict__ v, const float *__restrict__ momentum) {
  const float scale = numbers.is_controlled ? control[0] : 1.0f;
  if (numbers.is_controlled && control[1] == 0) return;
  for (size_t i = first_element(); i < count; i += element_stride()) {
    const float velocity = *momentum * v[i] + (g[i] * scale + numbers.decay * p[i]);
    v[i] = velocity;
    p[i] -= *rate * velocity;
  }
}
