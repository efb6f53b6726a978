/* SPDX-License-Identifier: MIT
 * The CUDA kernels of the gradients in gather.c.
 */
#include "tensor/operators/common/element.cuh"

struct pick_shape {
  size_t outer, size, picked, inner, unit_bytes;
  unsigned wide_indices, shares;
};

/* The element along the dimension that index k selects; `first` is the column's first element in dy. */
__device__ inline size_t picked_at(const pick_shape &shape, const void *indices, size_t first, size_t k) {
  const long long index = index_at(indices, shape.wide_indices, shape.shares ? k : first + k * shape.inner);
  return is_index(index, shape.size) ? (size_t)index : 0;
}

extern "C" __global__ void gather_gradient_TYPE(pick_shape shape, const element *__restrict__ dy,
                                                const void *__restrict__ indices, element *__restrict__ dx) {
  const size_t along = shape.size * shape.inner;
  for (size_t i = first_element(); i < shape.outer * along; i += element_stride()) {
    const size_t first = i / along * shape.picked * shape.inner + i % shape.inner, mine = i / shape.inner % shape.size;
    float sum = 0;
    for (size_t k = 0; k < shape.picked; k++)
      if (picked_at(shape, indices, first, k) == mine) sum += to_float(dy[first + k * shape.inner]);
    dx[i] = to_element(sum);
  }
}

/* One thread for each column. At the first index with a given value, it adds the elements of all equal indices. */
extern "C" __global__ void gather_add_TYPE(pick_shape shape, const element *__restrict__ dy,
                                           const void *__restrict__ indices, element *__restrict__ sum) {
  for (size_t i = first_element(); i < shape.outer * shape.inner; i += element_stride()) {
    const size_t outer = i / shape.inner, inside = i % shape.inner;
    const size_t first = outer * shape.picked * shape.inner + inside;
    for (size_t k = 0; k < shape.picked; k++) {
      const size_t at = picked_at(shape, indices, first, k);
      size_t before = 0;
      while (before < k && picked_at(shape, indices, first, before) != at) before++;
      if (before < k) continue;
      element *to = sum + (outer * shape.size + at) * shape.inner + inside;
      float total = to_float(*to);
      for (size_t same = k; same < shape.picked; same++)
        if (picked_at(shape, indices, first, same) == at) total += to_float(dy[first + same * shape.inner]);
      *to = to_element(total);
    }
  }
}
