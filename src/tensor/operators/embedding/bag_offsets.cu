/* SPDX-License-Identifier: MIT
 * The CUDA kernel of bag_offsets.c.
 */
#include "tensor/operators/common/kernel_support.cuh"

extern "C" __global__ void bag_offsets(const void *__restrict__ offsets, size_t bags, size_t count, unsigned is_wide,
                                       int *__restrict__ to, CHECK) {
  const index_cell report = begin_check(TO_CHECK);
  for (size_t i = first_element(); i < bags; i += element_stride()) {
    const long long offset = index_at(offsets, is_wide, i);
    const long long lowest = i == 0 ? 0 : index_at(offsets, is_wide, i - 1);
    const bool is_right = offset >= lowest && (i > 0 || offset == 0);
    to[i] = check_index(report, i, offset, is_right ? count + 1 : 0) ? (int)offset : (int)count;
  }
}
