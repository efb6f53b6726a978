/* SPDX-License-Identifier: MIT
 * The CUDA form of affine.c.
 */
#include "tensor/operators/unary.cuh"

extern "C" __global__ void affine_TYPE(const element *x, element *y, size_t count, float slope, float offset) {
  map(x, y, count, [slope, offset](float v) { return slope * v + offset; });
}
