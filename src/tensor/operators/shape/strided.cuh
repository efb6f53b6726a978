/* SPDX-License-Identifier: MIT
 * Strided access to elements, as in strided.h.
 */
#define DIMENSIONS 6 /* RONDO_MAX_DIMENSIONS */
#define LAST (DIMENSIONS - 1)

struct strided {
  size_t count, offset, unit_bytes;
  size_t dims[DIMENSIONS], strides[DIMENSIONS];
};

/* The first unit of group number `rest` of the dimensions before `end`. */
template <int end, class number>
__device__ inline size_t place_of(const strided &places, number rest) {
  size_t at = places.offset;
#pragma unroll
  for (int i = end - 1; i > 0; i--) {
    if (places.dims[i] == 1) continue;
    const number size = (number)places.dims[i], above = rest / size;
    at += (size_t)(rest - above * size) * places.strides[i];
    rest = above;
  }
  return at + (size_t)rest * places.strides[0];
}
