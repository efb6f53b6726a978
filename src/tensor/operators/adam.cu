/* SPDX-License-Identifier: MIT
 * The CUDA form of adam.c.
 */
#include "tensor/operators/kernel_support.cuh"

struct adam_numbers {
  float beta1, beta2, epsilon, decay;
  unsigned is_controlled;
};

/* One thread works. */
extern "C" __global__ void adam_step(adam_numbers numbers, int *step, float *factors, const float *control) {
  if (first_element() > 0) return;
  const bool is_counted = !numbers.is_controlled || control[1] != 0;
  if (is_counted && *step < 0x7fffffff) *step += 1;
  factors[0] = (float)(1.0 / (1.0 - pow((double)numbers.beta1, (double)*step)));
  factors[1] = (float)(1.0 / (1.0 - pow((double)numbers.beta2, (double)*step)));
}

extern "C" __global__ void adam(adam_numbers numbers, float *__restrict__ p, float *__restrict__ m,
                                float *__restrict__ v, const float *__restrict__ g, const float *__restrict__ rate,
                                const float *__restrict__ factors, const float *__restrict__ control, size_t count) {
  const float first = *rate * factors[0];
  const float second = factors[1];
  const float keep = 1.0f - *rate * numbers.decay;
  const float scale = numbers.is_controlled ? control[0] : 1.0f;
  if (numbers.is_controlled && control[1] == 0) return;
  for (size_t i = first_element(); i < count; i += element_stride()) {
    const float gradient = g[i] * scale;
    const float mean = numbers.beta1 * m[i] + (1.0f - numbers.beta1) * gradient;
    const float square = numbers.beta2 * v[i] + (1.0f - numbers.beta2) * (gradient * gradient);
    m[i] = mean;
    v[i] = square;
    p[i] = p[i] * keep - first * mean / (sqrtf(square * second) + numbers.epsilon);
  }
}
