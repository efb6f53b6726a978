/* SPDX-License-Identifier: MIT
 * The CUDA kernel of pad_gradient in pad.c: a thread computes an element.
 */
#include "tensor/operators/common/element.cuh"

/* As rondo_pad_mode. */
enum { CONSTANT, REFLECT, REPLICATE, CIRCULAR };

struct unpad_shape {
  size_t outer, size, padded, inner, before, mode;
};

/* The sum of elements first .. last - 1 along the dimension. */
__device__ inline float sum_of(const element *dy, size_t first, size_t last, size_t inner) {
  float sum = 0;
  for (size_t k = first; k < last; k++) sum += to_float(dy[k * inner]);
  return sum;
}

/* The sum of the elements of a column of dy that were read from element `at`, in their order. */
__device__ inline float readers_of(const unpad_shape &s, const element *dy, size_t at) {
  const size_t own = s.before + at, after = s.padded - s.size - s.before, from_end = s.size - 1 - at;
  if (s.mode == REPLICATE) return sum_of(dy, at == 0 ? 0 : own, from_end == 0 ? s.padded : own + 1, s.inner);
  const bool is_reflected = s.mode == REFLECT;
  const bool has_first = is_reflected ? at > 0 && at <= s.before : own >= s.size;
  const bool has_last = is_reflected ? from_end > 0 && from_end <= after : own + s.size < s.padded;
  float sum = 0;
  if (has_first) sum += to_float(dy[(is_reflected ? s.before - at : own - s.size) * s.inner]);
  sum += to_float(dy[own * s.inner]);
  if (has_last) sum += to_float(dy[(is_reflected ? own + 2 * from_end : own + s.size) * s.inner]);
  return sum;
}

extern "C" __global__ void pad_gradient_TYPE(unpad_shape shape, const element *__restrict__ dy,
                                             element *__restrict__ dx) {
  const size_t along = shape.size * shape.inner;
  for (size_t i = first_element(); i < shape.outer * along; i += element_stride()) {
    const size_t outer = i / along, at = i % along / shape.inner, inside = i % shape.inner;
    dx[i] = to_element(readers_of(shape, dy + outer * shape.padded * shape.inner + inside, at));
  }
}
