/* SPDX-License-Identifier: MIT
 * Places that lie evenly spread along each dimension, as strided.h has them.
 */
#define DIMENSIONS 6 /* RONDO_MAX_DIMENSIONS */
#define LAST (DIMENSIONS - 1)

struct strided {
  size_t count, offset, unit_bytes;
  size_t dims[DIMENSIONS], strides[DIMENSIONS];
};

/* Where the `rest`-th group of the dimensions before `end` begins. */
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
