/* SPDX-License-Identifier: MIT
 * The CUDA form of the gradient in gather.c.
 */
#include "tensor/operators/element.cuh"

struct pick_shape {
  size_t outer, size, picked, inner, unit_bytes;
  unsigned wide_indices, shares;
};

extern "C" __global__ void gather_gradient_TYPE(pick_shape shape, const element *__restrict__ dy,
                                                const void *__restrict__ indices, element *__restrict__ dx) {
  const size_t along = shape.size * shape.inner;
  for (size_t i = first_element(); i < shape.outer * along; i += element_stride()) {
    const size_t first = i / along * shape.picked * shape.inner + i % shape.inner, mine = i / shape.inner % shape.size;
    float sum = 0;
    for (size_t k = 0; k < shape.picked; k++) {
      const size_t from = first + k * shape.inner;
      const long long index = index_at(indices, shape.wide_indices, shape.shares ? k : from);
      if ((is_index(index, shape.size) ? (size_t)index : 0) == mine) sum += to_float(dy[from]);
    }
    dx[i] = to_element(sum);
  }
}
