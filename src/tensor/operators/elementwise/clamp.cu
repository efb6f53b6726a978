/* SPDX-License-Identifier: MIT
 * The CUDA kernels of clamp.c.
 */
#include "tensor/operators/elementwise/unary.cuh"

__device__ inline float clamp_of(float x, float lowest, float highest) {
  const float above = x < lowest ? lowest : x;
  return above > highest ? highest : above;
}

__device__ inline float clamp_gradient_of(float x, float dy, float lowest, float highest) {
  return x >= lowest && x <= highest ? dy : 0.0f;
}

extern "C" __global__ void clamp_TYPE(const element *x, element *y, size_t count, float lowest, float highest) {
  map(
      y, count, [lowest, highest](float v) { return clamp_of(v, lowest, highest); }, x);
}

extern "C" __global__ void clamp_gradient_TYPE(const element *x, const element *dy, element *dx, size_t count,
                                               float lowest, float highest) {
  map(
      dx, count, [lowest, highest](float v, float d) { return clamp_gradient_of(v, d, lowest, highest); }, x, dy);
}
