/* SPDX-License-Identifier: MIT
 * The CUDA form of select.c.
 */
#include "tensor/operators/broadcast.cuh"

extern "C" __global__ void select_NUMBER(broadcast shape, const int *condition, const element *a, const element *b,
                                         element *y) {
  broadcast_3(shape, condition, a, b, y, [](int is_set, element p, element q) { return is_set != 0 ? p : q; });
}
