/* SPDX-License-Identifier: MIT
 * The CUDA kernel of dropout_advance in dropout.c.
 */
#include "tensor/operators/common/kernel_support.cuh"

extern "C" __global__ void dropout_advance(GATE, u64 *state) {
  if (threadIdx.x == 0 && may_update(TO_GATE)) state[1] += 4;
}
