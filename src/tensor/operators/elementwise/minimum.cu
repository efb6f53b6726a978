/* SPDX-License-Identifier: MIT
 * The CUDA form of minimum.c.
 */
#include "tensor/operators/elementwise/broadcast.cuh"

__device__ inline float minimum_of(float a, float b) { return a < b || a != a ? a : b; }
__device__ inline i64 minimum_of(i64 a, i64 b) { return a < b ? a : b; }

extern "C" __global__ void minimum_NUMBER(broadcast shape, const element *a, const element *b, element *y) {
  broadcast_2(shape, a, b, y, [](element p, element q) { return to_element(minimum_of(to_number(p), to_number(q))); });
}
