/* SPDX-License-Identifier: MIT
 * The CUDA form of add.c. y may be a or b.
 */
#include "tensor/operators/kernel_support.cuh"

extern "C" __global__ void add(const float *a, const float *b, float *y, size_t count) {
  for (size_t i = first_element(); i < count; i += element_stride()) y[i] = a[i] + b[i];
}
