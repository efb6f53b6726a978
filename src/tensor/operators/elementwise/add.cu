/* SPDX-License-Identifier: MIT
 * The CUDA form of add.c.
 */
#include "tensor/operators/elementwise/broadcast.cuh"

/* Integers wrap around. */
__device__ inline float add_of(float a, float b) { return a + b; }
__device__ inline i64 add_of(i64 a, i64 b) { return (i64)((u64)a + (u64)b); }

extern "C" __global__ void add_NUMBER(broadcast shape, const element *a, const element *b, element *y) {
  broadcast_2(shape, a, b, y, [](element p, element q) { return to_element(add_of(to_number(p), to_number(q))); });
}
