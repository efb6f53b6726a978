/* SPDX-License-Identifier: MIT
 * The kernel loop of element-wise operators whose inputs have the shape of the result.
 */
#include "tensor/operators/common/element.cuh"
#include "tensor/operators/elementwise/elementary.cuh"

/* y[i] = of(x[i] ...), where `of` is a function of numbers. */
template <class F, class... T>
__device__ inline void map(element *y, size_t count, F of, const T *...x) {
  map_from(
      first_element(), count, element_stride(), y, [of](size_t, T... in) { return to_element(of(to_number(in)...)); },
      x...);
}
