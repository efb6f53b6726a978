/* SPDX-License-Identifier: MIT
 * The kernel loops of element-wise operators with one input. `function` is a lambda of floats.
 */
#include "tensor/operators/common/element.cuh"
#include "tensor/operators/elementwise/elementary.cuh"

/* y[i] = of(x[i]) */
template <class function>
__device__ inline void map(const element *__restrict__ x, element *__restrict__ y, size_t count, function of) {
  const size_t packs = count / PACK;
  for (size_t i = first_element(); i < packs; i += element_stride()) {
    const pack<element> in = ((const pack<element> *)x)[i];
    pack<element> out;
#pragma unroll
    for (unsigned k = 0; k < PACK; k++) out.at[k] = to_element(of(to_float(in.at[k])));
    ((pack<element> *)y)[i] = out;
  }
  for (size_t i = packs * PACK + first_element(); i < count; i += element_stride())
    y[i] = to_element(of(to_float(x[i])));
}

/* dx[i] = of(kept[i], dy[i]) */
template <class function>
__device__ inline void map_slope(const element *__restrict__ kept, const element *__restrict__ dy,
                                 element *__restrict__ dx, size_t count, function of) {
  const size_t packs = count / PACK;
  for (size_t i = first_element(); i < packs; i += element_stride()) {
    const pack<element> from = ((const pack<element> *)kept)[i];
    const pack<element> in = ((const pack<element> *)dy)[i];
    pack<element> out;
#pragma unroll
    for (unsigned k = 0; k < PACK; k++) out.at[k] = to_element(of(to_float(from.at[k]), to_float(in.at[k])));
    ((pack<element> *)dx)[i] = out;
  }
  for (size_t i = packs * PACK + first_element(); i < count; i += element_stride())
    dx[i] = to_element(of(to_float(kept[i]), to_float(dy[i])));
}
