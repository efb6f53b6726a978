/* SPDX-License-Identifier: MIT
 * The CUDA kernel of sequence_lengths.c.
 */
#include "tensor/operators/common/kernel_support.cuh"

extern "C" __global__ void sequence_lengths(const void *__restrict__ lengths, size_t count, size_t steps,
                                            unsigned is_wide, int *__restrict__ to, CHECK) {
  const index_cell report = begin_check(TO_CHECK);
  for (size_t i = first_element(); i < count; i += element_stride()) {
    const long long length = index_at(lengths, is_wide, i);
    to[i] = check_index(report, i, length, steps + 1) ? (int)length : 0;
  }
}
