/* SPDX-License-Identifier: MIT
 * The CUDA kernel of slice_gradient in slice.c.
 */
#include "tensor/operators/common/units.cuh"

#define DIMENSIONS 6 /* RONDO_MAX_DIMENSIONS */

struct place_shape {
  size_t count, unit_bytes;
  size_t dims[DIMENSIONS], starts[DIMENSIONS], steps[DIMENSIONS], lengths[DIMENSIONS];
};

#define NONE ((size_t)-1)

/* The element of dy for element `rest` of the result; NONE if there is none. */
template <class number>
__device__ inline size_t source_of(const place_shape &shape, number rest) {
  size_t from = 0, weight = 1;
#pragma unroll
  for (int i = DIMENSIONS - 1; i >= 0; i--) {
    const number size = (number)shape.dims[i], step = (number)shape.steps[i], start = (number)shape.starts[i];
    const number above = rest / size, here = rest - above * size;
    if (here < start) return NONE;
    const number at = step == 1 ? here - start : (here - start) / step;
    if (at >= (number)shape.lengths[i] || at * step != here - start) return NONE;
    from += at * weight;
    weight *= shape.lengths[i];
    rest = above;
  }
  return from;
}

struct place_all {
  const place_shape &shape;
  const void *dy;
  void *dx;

  template <class unit, class number>
  __device__ void walk() const {
    for (size_t i = first_element(); i < shape.count; i += element_stride()) {
      const size_t from = source_of(shape, (number)i);
      ((unit *)dx)[i] = from == NONE ? unit() : ((const unit *)dy)[from];
    }
  }

  template <class unit>
  __device__ void run() const {
    walk_by_count<unit>(shape.count, *this);
  }
};

extern "C" __global__ void slice_gradient(place_shape shape, const void *__restrict__ dy, void *__restrict__ dx) {
  const place_all work = {shape, dy, dx};
  run_by_unit(shape.unit_bytes, work);
}
