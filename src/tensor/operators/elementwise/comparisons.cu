/* SPDX-License-Identifier: MIT
 * The kernels of the comparisons in the table of operators with two inputs.
 */
#include "tensor/operators/elementwise/broadcast.cuh"
#include "tensor/operators/elementwise/elementary.cuh"

#include "tensor/operators/elementwise/binary_operators.cu"

extern "C" __global__ void COMPARISON_NUMBER(broadcast shape, const element *a, const element *b, boolean *y) {
  broadcast_2(shape, a, b, y,
              [](element p, element q) { return rounded<boolean>::of(COMPARISON_of(to_number(p), to_number(q))); });
}
