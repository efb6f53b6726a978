/* SPDX-License-Identifier: MIT
 * Activations that products apply to their results: the functions of their operators, whose sources give these alone
 * here.
 */
#include "tensor/operators/elementwise/gelu.cu"
#include "tensor/operators/elementwise/gelu_tanh.cu"
#include "tensor/operators/elementwise/relu.cu"
#include "tensor/operators/elementwise/silu.cu"

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
