/* SPDX-License-Identifier: MIT
 * The activations that matrix products apply to their results, from the table of operators with one input.
 */
#include "tensor/operators/elementwise/elementary.cuh"

#define FORM_UNARY UNARY
#define UNARY(name, kept_value, formula, gradient) \
  __device__ inline float name##_of(float x) { return formula; }
#define FAR_UNARY(name, kept_value, near, near_gradient, formula, gradient) UNARY(name, kept_value, formula, gradient)
#define NUMBER_UNARY(name, kept_value, formula, integers, gradient) UNARY(name, kept_value, formula, gradient)
#include "tensor/operators/elementwise/unary_operators.inc"
#undef NUMBER_UNARY
#undef FAR_UNARY
#undef UNARY
#undef FORM_UNARY

#define ACTIVATION_RELU 1u /* RONDO_ACTIVATION_RELU and so on */
#define ACTIVATION_GELU 2u
#define ACTIVATION_GELU_TANH 3u
#define ACTIVATION_SILU 4u

__device__ inline float activate(unsigned activation, float x) {
  switch (activation) {
    case ACTIVATION_RELU:
      return relu_of(x);
    case ACTIVATION_GELU:
      return gelu_of(x);
    case ACTIVATION_GELU_TANH:
      return gelu_tanh_of(x);
    case ACTIVATION_SILU:
      return silu_of(x);
    default:
      return x;
  }
}
