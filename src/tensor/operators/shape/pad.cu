/* SPDX-License-Identifier: MIT
 * The CUDA kernel of pad in pad.c: a thread computes an element of the result.
 */
#include "tensor/operators/common/units.cuh"

#define DIMENSIONS 6 /* RONDO_MAX_DIMENSIONS */

/* As rondo_pad_mode. */
enum { CONSTANT, REFLECT, REPLICATE, CIRCULAR };

struct pad_shape {
  size_t count, unit_bytes, mode;
  u64 fill;
  size_t dims[DIMENSIONS], sizes[DIMENSIONS];
  long long before[DIMENSIONS];
};

/* -1: the constant. */
__device__ inline long long source_of(const pad_shape &shape, long long size, long long at) {
  if (at >= 0 && at < size) return at;
  if (shape.mode == REFLECT) return at < 0 ? -at : 2 * (size - 1) - at;
  if (shape.mode == REPLICATE) return at < 0 ? 0 : size - 1;
  if (shape.mode == CIRCULAR) return at < 0 ? at + size : at - size;
  return -1;
}

struct pad_all {
  const pad_shape &shape;
  const void *x;
  void *y;

  /* The element of x for element `rest` of y; -1: the constant. */
  template <class number>
  __device__ long long place_of(number rest) const {
    long long from = 0, weight = 1;
#pragma unroll
    for (int d = DIMENSIONS - 1; d >= 0; d--) {
      const number size = (number)shape.dims[d], above = rest / size;
      const long long at =
          source_of(shape, (long long)shape.sizes[d], (long long)(rest - above * size) - shape.before[d]);
      if (at < 0) return -1;
      from += at * weight;
      weight *= (long long)shape.sizes[d];
      rest = above;
    }
    return from;
  }

  template <class unit, class number>
  __device__ void walk() const {
    for (size_t i = first_element(); i < shape.count; i += element_stride()) {
      const long long from = place_of((number)i);
      ((unit *)y)[i] = from < 0 ? (unit)shape.fill : ((const unit *)x)[from];
    }
  }
};

extern "C" __global__ void pad(pad_shape shape, const void *__restrict__ x, void *__restrict__ y) {
  const pad_all work = {shape, x, y};
  if (shape.unit_bytes == 1)
    walk_by_count<unsigned char>(shape.count, work);
  else if (shape.unit_bytes == 2)
    walk_by_count<unsigned short>(shape.count, work);
  else if (shape.unit_bytes == 4)
    walk_by_count<unsigned>(shape.count, work);
  else
    walk_by_count<u64>(shape.count, work);
}
