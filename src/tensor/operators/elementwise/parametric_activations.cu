/* SPDX-License-Identifier: MIT
 * The kernels of the activations with numbers. The build makes a source for each row of the table and each type, in
 * which the row's name replaces PARAMETRIC.
 */
#include "tensor/operators/elementwise/unary.cuh"

#define PARAMETRIC(name, formula, gradient)                                        \
  __device__ inline float name##_of(float x, float p, float q) { return formula; } \
  __device__ inline float name##_gradient_of(float x, float dy, float p, float q) { return gradient; }
#include "tensor/operators/elementwise/parametric_activations.inc"
#undef PARAMETRIC

extern "C" __global__ void PARAMETRIC_TYPE(const element *x, element *y, size_t count, float p, float q) {
  map(
      y, count, [p, q](float v) { return PARAMETRIC_of(v, p, q); }, x);
}

extern "C" __global__ void PARAMETRIC_gradient_TYPE(const element *x, const element *dy, element *dx, size_t count,
                                                    float p, float q) {
  map(
      dx, count, [p, q](float v, float d) { return PARAMETRIC_gradient_of(v, d, p, q); }, x, dy);
}
