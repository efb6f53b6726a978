/* SPDX-License-Identifier: MIT
 * The kernels of the predicates, which have one input, in the table of operators with two inputs.
 */
#include "tensor/operators/elementwise/broadcast.cuh"
#include "tensor/operators/elementwise/elementary.cuh"

#include "tensor/operators/elementwise/binary_operators.cu"

extern "C" __global__ void PREDICATE_NUMBER(broadcast shape, const element *a, boolean *y) {
  broadcast_3(shape, a, (const no_term *)0, (const no_term *)0, y,
              [](element p, no_term, no_term) { return rounded<boolean>::of(PREDICATE_of(to_number(p))); });
}
