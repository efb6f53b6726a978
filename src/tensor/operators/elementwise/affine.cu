/* SPDX-License-Identifier: MIT
 * The CUDA kernel of affine.c.
 */
#include "tensor/operators/elementwise/unary.cuh"

__device__ inline float affine_of(float x, float slope, float offset) { return slope * x + offset; }
__device__ inline i64 affine_of(i64 x, float slope, float offset) {
  const i64 product = WRAP((i64)slope, *, x);
  return WRAP(product, +, (i64)offset);
}

extern "C" __global__ void affine_NUMBER(const element *x, element *y, size_t count, float slope, float offset) {
  map(
      y, count, [slope, offset](number v) { return affine_of(v, slope, offset); }, x);
}
