/* SPDX-License-Identifier: MIT
 * The CUDA kernel of one_hot.c: a thread computes an element of the result.
 */
#include "tensor/operators/common/kernel_support.cuh"

struct one_hot_shape {
  size_t count, size;
  u64 one;
  unsigned wide_indices, unit_bytes;
};

template <class unit>
__device__ inline void put_rows(const one_hot_shape &shape, const void *indices, unit *__restrict__ y,
                                const index_cell &to) {
  for (size_t i = first_element(); i < shape.count * shape.size; i += element_stride()) {
    const size_t row = i / shape.size, column = i - row * shape.size;
    const long long index = index_at(indices, shape.wide_indices, row);
    if (column == 0) check_index(to, row, index, shape.size);
    y[i] = index >= 0 && (u64)index == column ? (unit)shape.one : (unit)0;
  }
}

extern "C" __global__ void one_hot(one_hot_shape shape, const void *__restrict__ indices, void *__restrict__ y, CHECK) {
  const index_cell to = begin_check(TO_CHECK);
  if (shape.unit_bytes == 1)
    put_rows(shape, indices, (unsigned char *)y, to);
  else if (shape.unit_bytes == 2)
    put_rows(shape, indices, (unsigned short *)y, to);
  else if (shape.unit_bytes == 4)
    put_rows(shape, indices, (unsigned *)y, to);
  else
    put_rows(shape, indices, (u64 *)y, to);
}
