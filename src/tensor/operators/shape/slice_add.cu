/* SPDX-License-Identifier: MIT
 * The CUDA kernel of slice_add in slice.c.
 */
#include "tensor/operators/common/element.cuh"
#include "tensor/operators/shape/strided.cuh"

extern "C" __global__ void slice_add_TYPE(strided places, const element *__restrict__ dy, element *__restrict__ sum) {
  for (size_t i = first_element(); i < places.count; i += element_stride()) {
    element *to = sum + place_of<DIMENSIONS>(places, i);
    *to = to_element(to_float(*to) + to_float(dy[i]));
  }
}
