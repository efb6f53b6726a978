/* SPDX-License-Identifier: MIT
 * Windows that slide over images, as in window.h.
 */
#include "tensor/operators/common/element.cuh"

#define HEIGHT 0
#define WIDTH 1

struct window {
  size_t in[2], out[2], kernel[2], stride[2], padding[2], dilation[2];
};

/* The index of a tap in the image; false if it is in the padding. */
__device__ inline bool window_tap(const window &w, int axis, size_t out, size_t tap, size_t &in) {
  const size_t at = out * w.stride[axis] + tap * w.dilation[axis];
  in = at - w.padding[axis];
  return at >= w.padding[axis] && in < w.in[axis];
}

/* The window whose tap is this element of the image; false if there is none. */
__device__ inline bool window_at(const window &w, int axis, size_t in, size_t tap, size_t &out) {
  const size_t at = in + w.padding[axis], from = tap * w.dilation[axis];
  if (at < from || (at - from) % w.stride[axis] != 0) return false;
  out = (at - from) / w.stride[axis];
  return out < w.out[axis];
}
