/* SPDX-License-Identifier: MIT
 * The CUDA kernel of select.c.
 */
#include "tensor/operators/elementwise/broadcast.cuh"

template <class N>
__device__ inline N select_of(i64 is_set, N a, N b) {
  return is_set != 0 ? a : b;
}

extern "C" __global__ void select_NUMBER(broadcast shape, const boolean *condition, const element *a, const element *b,
                                         element *y) {
  broadcast_3(shape, condition, a, b, y, [](boolean is_set, element p, element q) {
    return to_element(select_of(to_number(is_set), to_number(p), to_number(q)));
  });
}
