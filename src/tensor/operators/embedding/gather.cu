/* SPDX-License-Identifier: MIT
 * The CUDA kernel of gather.c.
 */
#include "tensor/operators/common/units.cuh"

struct pick_shape {
  size_t outer, size, picked, inner, unit_bytes;
  unsigned wide_indices, shares;
};

struct pick_all {
  const pick_shape &shape;
  const void *x, *indices;
  void *y;
  index_cell to;

  template <class unit>
  __device__ void run() const {
    const size_t along = shape.picked * shape.inner;
    for (size_t i = first_element(); i < shape.outer * along; i += element_stride()) {
      const size_t position = shape.shares ? i / shape.inner % shape.picked : i;
      const long long index = index_at(indices, shape.wide_indices, position);
      const size_t at = check_index(to, position, index, shape.size) ? (size_t)index : 0;
      ((unit *)y)[i] = ((const unit *)x)[(i / along * shape.size + at) * shape.inner + i % shape.inner];
    }
  }
};

extern "C" __global__ void gather(pick_shape shape, const void *__restrict__ x, const void *__restrict__ indices,
                                  void *__restrict__ y, CHECK) {
  const pick_all work = {shape, x, indices, y, begin_check(TO_CHECK)};
  run_by_unit((unsigned)shape.unit_bytes, work);
}
