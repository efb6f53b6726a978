/* SPDX-License-Identifier: MIT
 * The CUDA kernel of determinant.c: a thread computes a matrix.
 */
#include "tensor/operators/common/element.cuh"

__device__ inline float determinant(float *a, size_t m) {
  float product = 1;
  for (size_t column = 0; column < m; column++) {
    size_t pivot = column;
    for (size_t i = column + 1; i < m; i++)
      if (fabsf(a[i * m + column]) > fabsf(a[pivot * m + column])) pivot = i;
    if (pivot != column) {
      for (size_t k = 0; k < m; k++) {
        const float held = a[pivot * m + k];
        a[pivot * m + k] = a[column * m + k];
        a[column * m + k] = held;
      }
      product = -product;
    }
    const float of = a[column * m + column];
    product *= of;
    for (size_t i = column + 1; i < m && of != 0; i++) {
      const float factor = a[i * m + column] / of;
      for (size_t k = column + 1; k < m; k++) a[i * m + k] -= factor * a[column * m + k];
    }
  }
  return product;
}

extern "C" __global__ void det_TYPE(size_t count, size_t m, const element *__restrict__ x, float *__restrict__ copies,
                                    element *__restrict__ y) {
  for (size_t i = first_element(); i < count; i += element_stride()) {
    float *copy = copies + i * m * m;
    for (size_t k = 0; k < m * m; k++) copy[k] = to_float(x[i * m * m + k]);
    y[i] = to_element(determinant(copy, m));
  }
}
