/* SPDX-License-Identifier: MIT
 * The CUDA kernel of ravel_indices.c: a thread has a row of indices.
 */
#include "tensor/operators/common/kernel_support.cuh"

struct ravel_shape {
  size_t count, per_batch, columns;
  u64 is_wide;
  size_t bounds[6]; /* RONDO_MAX_DIMENSIONS */
};

extern "C" __global__ void ravel_indices(ravel_shape shape, const void *__restrict__ indices,
                                         long long *__restrict__ rows, CHECK) {
  const index_cell to = begin_check(TO_CHECK);
  for (size_t i = first_element(); i < shape.count; i += element_stride()) {
    long long row = (long long)(i / shape.per_batch);
    bool is_right = true;
    for (size_t c = 0; c < shape.columns; c++) {
      const size_t position = i * shape.columns + c;
      const long long index = index_at(indices, (unsigned)shape.is_wide, position), bound = (long long)shape.bounds[c];
      if (index < -bound || index >= bound) is_right = check_index(to, position, index, shape.bounds[c]);
      row = is_right ? row * bound + (index < 0 ? index + bound : index) : 0;
    }
    rows[i] = is_right ? row : -1;
  }
}
