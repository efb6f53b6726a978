/* SPDX-License-Identifier: MIT
 * The CUDA form of compare.c.
 */
#include "tensor/operators/elementwise/broadcast.cuh"

template <class N>
__device__ inline i64 less_of(N a, N b) {
  return a < b;
}

template <class N>
__device__ inline i64 less_equal_of(N a, N b) {
  return a <= b;
}

template <class N>
__device__ inline i64 greater_of(N a, N b) {
  return a > b;
}

template <class N>
__device__ inline i64 greater_equal_of(N a, N b) {
  return a >= b;
}

template <class N>
__device__ inline i64 equal_of(N a, N b) {
  return a == b;
}

template <class N>
__device__ inline i64 not_equal_of(N a, N b) {
  return a != b;
}

extern "C" __global__ void less_NUMBER(broadcast shape, const element *a, const element *b, int *y) {
  broadcast_2(shape, a, b, y, [](element p, element q) { return (int)less_of(to_number(p), to_number(q)); });
}

extern "C" __global__ void less_equal_NUMBER(broadcast shape, const element *a, const element *b, int *y) {
  broadcast_2(shape, a, b, y, [](element p, element q) { return (int)less_equal_of(to_number(p), to_number(q)); });
}

extern "C" __global__ void greater_NUMBER(broadcast shape, const element *a, const element *b, int *y) {
  broadcast_2(shape, a, b, y, [](element p, element q) { return (int)greater_of(to_number(p), to_number(q)); });
}

extern "C" __global__ void greater_equal_NUMBER(broadcast shape, const element *a, const element *b, int *y) {
  broadcast_2(shape, a, b, y, [](element p, element q) { return (int)greater_equal_of(to_number(p), to_number(q)); });
}

extern "C" __global__ void equal_NUMBER(broadcast shape, const element *a, const element *b, int *y) {
  broadcast_2(shape, a, b, y, [](element p, element q) { return (int)equal_of(to_number(p), to_number(q)); });
}

extern "C" __global__ void not_equal_NUMBER(broadcast shape, const element *a, const element *b, int *y) {
  broadcast_2(shape, a, b, y, [](element p, element q) { return (int)not_equal_of(to_number(p), to_number(q)); });
}
