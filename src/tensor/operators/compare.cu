/* SPDX-License-Identifier: MIT
 * The CUDA form of compare.c.
 */
#include "tensor/operators/broadcast.cuh"

extern "C" __global__ void less_NUMBER(broadcast shape, const element *a, const element *b, int *y) {
  broadcast_2(shape, a, b, y, [](element p, element q) { return (int)(to_number(p) < to_number(q)); });
}

extern "C" __global__ void less_equal_NUMBER(broadcast shape, const element *a, const element *b, int *y) {
  broadcast_2(shape, a, b, y, [](element p, element q) { return (int)(to_number(p) <= to_number(q)); });
}

extern "C" __global__ void greater_NUMBER(broadcast shape, const element *a, const element *b, int *y) {
  broadcast_2(shape, a, b, y, [](element p, element q) { return (int)(to_number(p) > to_number(q)); });
}

extern "C" __global__ void greater_equal_NUMBER(broadcast shape, const element *a, const element *b, int *y) {
  broadcast_2(shape, a, b, y, [](element p, element q) { return (int)(to_number(p) >= to_number(q)); });
}

extern "C" __global__ void equal_NUMBER(broadcast shape, const element *a, const element *b, int *y) {
  broadcast_2(shape, a, b, y, [](element p, element q) { return (int)(to_number(p) == to_number(q)); });
}

extern "C" __global__ void not_equal_NUMBER(broadcast shape, const element *a, const element *b, int *y) {
  broadcast_2(shape, a, b, y, [](element p, element q) { return (int)(to_number(p) != to_number(q)); });
}
