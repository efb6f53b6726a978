/* SPDX-License-Identifier: MIT
 * The kernels of the element-wise operators with one input. The build makes a source for each row of the table and each
 * type, in which the row's name replaces UNARY.
 */
#include "tensor/operators/elementwise/unary.cuh"

#define FORM_UNARY UNARY
#define UNARY(name, kept_value, formula, gradient)               \
  __device__ inline float name##_of(float x) { return formula; } \
  __device__ inline float name##_gradient_of(float kept, float dy) { return gradient; }
#define FAR_UNARY(name, kept_value, near, near_gradient, formula, gradient) UNARY(name, kept_value, formula, gradient)
#define NUMBER_UNARY(name, kept_value, formula, integers, gradient) \
  UNARY(name, kept_value, formula, gradient)                        \
  __device__ inline i64 name##_of(i64 x) { return integers; }
#include "tensor/operators/elementwise/unary_operators.inc"
#undef NUMBER_UNARY
#undef FAR_UNARY
#undef UNARY
#undef FORM_UNARY

extern "C" __global__ void UNARY_TYPE(const element *x, element *y, size_t count) {
  map(
      y, count, [](number v) { return UNARY_of(v); }, x);
}

#ifdef ELEMENT_IS_FLOAT
extern "C" __global__ void UNARY_gradient_TYPE(const element *kept, const element *dy, element *dx, size_t count) {
  map(
      dx, count, [](float k, float d) { return UNARY_gradient_of(k, d); }, kept, dy);
}
#endif
