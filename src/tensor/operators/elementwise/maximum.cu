/* SPDX-License-Identifier: MIT
 * The CUDA form of maximum.c.
 */
#include "tensor/operators/elementwise/broadcast.cuh"

__device__ inline float maximum_of(float a, float b) { return a > b || a != a ? a : b; }
__device__ inline i64 maximum_of(i64 a, i64 b) { return a > b ? a : b; }

extern "C" __global__ void maximum_NUMBER(broadcast shape, const element *a, const element *b, element *y) {
  broadcast_2(shape, a, b, y, [](element p, element q) { return to_element(maximum_of(to_number(p), to_number(q))); });
}
