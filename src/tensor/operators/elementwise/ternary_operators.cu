/* SPDX-License-Identifier: MIT
 * The kernels of the operators with three inputs in the table of operators with two inputs.
 */
#include "tensor/operators/elementwise/broadcast.cuh"
#include "tensor/operators/elementwise/elementary.cuh"

#include "tensor/operators/elementwise/binary_operators.cu"

extern "C" __global__ void TERNARY_TYPE(broadcast shape, const element *a, const element *b, const element *c,
                                        element *y) {
  broadcast_3(shape, a, b, c, y, [](element p, element q, element r) {
    return to_element(TERNARY_of(to_float(p), to_float(q), to_float(r)));
  });
}
