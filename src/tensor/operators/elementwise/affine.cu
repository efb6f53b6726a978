/* SPDX-License-Identifier: MIT
 * The CUDA kernel of affine.c.
 */
#include "tensor/operators/elementwise/unary.cuh"

__device__ inline float affine_of(float x, float slope, float offset) { return slope * x + offset; }

extern "C" __global__ void affine_TYPE(const element *x, element *y, size_t count, float slope, float offset) {
  map(
      y, count, [slope, offset](float v) { return affine_of(v, slope, offset); }, x);
}
