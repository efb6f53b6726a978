/* SPDX-License-Identifier: MIT
 * The CUDA form of sub.c.
 */
#include "tensor/operators/elementwise/broadcast.cuh"

/* Integers wrap around. */
__device__ inline float sub_of(float a, float b) { return a - b; }
__device__ inline i64 sub_of(i64 a, i64 b) { return (i64)((u64)a - (u64)b); }

extern "C" __global__ void sub_NUMBER(broadcast shape, const element *a, const element *b, element *y) {
  broadcast_2(shape, a, b, y, [](element p, element q) { return to_element(sub_of(to_number(p), to_number(q))); });
}
