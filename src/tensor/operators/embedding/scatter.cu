/* SPDX-License-Identifier: MIT
 * The CUDA kernel of scatter.c: a thread applies the updates of a column, in their order.
 */
#include "tensor/operators/common/element.cuh"

struct scatter_shape {
  size_t outer, size, picked, inner;
  unsigned wide_indices, reduction;
};

/* As rondo_scatter_reduction; REPLACE of scatter.c. */
enum { REPLACE, ADD, MUL, MAX, MIN };

template <class N>
__device__ inline N combine(unsigned reduction, N old, N update) {
  switch (reduction) {
    case ADD:
      return old + update;
    case MUL:
      return old * update;
    case MAX:
      return old > update || old != old ? old : update;
    case MIN:
      return old < update || old != old ? old : update;
    default:
      return update;
  }
}

extern "C" __global__ void scatter_NUMBER(scatter_shape shape, const void *__restrict__ indices,
                                          const element *__restrict__ updates, element *y, CHECK) {
  const index_cell to_cell = begin_check(TO_CHECK);
  for (size_t i = first_element(); i < shape.outer * shape.inner; i += element_stride()) {
    const size_t outer = i / shape.inner, inside = i % shape.inner;
    for (size_t k = 0; k < shape.picked; k++) {
      const size_t from = (outer * shape.picked + k) * shape.inner + inside;
      const long long index = index_at(indices, shape.wide_indices, from);
      if (!check_index(to_cell, from, index, shape.size)) continue;
      element *to = y + (outer * shape.size + (size_t)index) * shape.inner + inside;
      *to = shape.reduction == REPLACE ? updates[from]
                                       : to_element(combine(shape.reduction, to_number(*to), to_number(updates[from])));
    }
  }
}
