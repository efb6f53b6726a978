/* SPDX-License-Identifier: MIT
 * The CUDA kernel of scatter.c: a thread applies the updates of a column, in their order.
 */
#include "tensor/operators/embedding/scatter_combine.cuh"
#include "tensor/operators/shape/strided.cuh"

struct scatter_shape {
  size_t outer, size, picked, inner, stride;
  strided places;
  unsigned wide_indices, reduction;
};

extern "C" __global__ void scatter_NUMBER(scatter_shape shape, const void *__restrict__ indices,
                                          const element *__restrict__ updates, element *y, CHECK) {
  const index_cell to_cell = begin_check(TO_CHECK);
  for (size_t i = first_element(); i < shape.outer * shape.inner; i += element_stride()) {
    const size_t outer = i / shape.inner, inside = i % shape.inner, first = place_of<DIMENSIONS>(shape.places, i);
    for (size_t k = 0; k < shape.picked; k++) {
      const size_t from = (outer * shape.picked + k) * shape.inner + inside;
      const long long index = index_at(indices, shape.wide_indices, from);
      if (!check_index(to_cell, from, index, shape.size)) continue;
      element *to = y + first + (size_t)index * shape.stride;
      *to = shape.reduction == REPLACE ? updates[from]
                                       : to_element(combine(shape.reduction, to_number(*to), to_number(updates[from])));
    }
  }
}
