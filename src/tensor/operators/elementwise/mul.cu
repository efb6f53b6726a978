/* SPDX-License-Identifier: MIT
 * The CUDA form of mul.c.
 */
#include "tensor/operators/elementwise/broadcast.cuh"

/* Integers wrap around. */
__device__ inline float mul_of(float a, float b) { return a * b; }
__device__ inline i64 mul_of(i64 a, i64 b) { return (i64)((u64)a * (u64)b); }

extern "C" __global__ void mul_NUMBER(broadcast shape, const element *a, const element *b, element *y) {
  broadcast_2(shape, a, b, y, [](element p, element q) { return to_element(mul_of(to_number(p), to_number(q))); });
}
