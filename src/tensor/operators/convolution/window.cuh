/* SPDX-License-Identifier: MIT
 * Windows that slide over images, as in window.h.
 */
#include "tensor/operators/common/element.cuh"

#define DEPTH_AXIS 0
#define HEIGHT 1
#define WIDTH 2
#define AXES 3

struct window {
  size_t in[AXES], out[AXES], kernel[AXES], stride[AXES], dilation[AXES], padding[AXES], after[AXES];
};

/* a / b. Dividing 32-bit numbers is much faster. */
__device__ inline size_t quotient(size_t a, size_t b) {
  return (a | b) <= 0xffffffffu ? (unsigned)a / (unsigned)b : a / b;
}

/* An element of a volume: its place along each axis. Flat images need one division less. */
struct position {
  size_t at[AXES];
};

__device__ inline position position_of(const size_t *sizes, size_t index) {
  position p;
  const size_t row = quotient(index, sizes[WIDTH]);
  p.at[WIDTH] = index - row * sizes[WIDTH];
  p.at[DEPTH_AXIS] = sizes[DEPTH_AXIS] == 1 ? 0 : quotient(row, sizes[HEIGHT]);
  p.at[HEIGHT] = row - p.at[DEPTH_AXIS] * sizes[HEIGHT];
  return p;
}

__device__ inline size_t index_of(const size_t *sizes, const position &p) {
  return (p.at[DEPTH_AXIS] * sizes[HEIGHT] + p.at[HEIGHT]) * sizes[WIDTH] + p.at[WIDTH];
}

__device__ inline size_t volume_of(const size_t *sizes) { return sizes[DEPTH_AXIS] * sizes[HEIGHT] * sizes[WIDTH]; }

/* The index of a tap in the image; false if it is in the padding. */
__device__ inline bool window_tap(const window &w, int axis, size_t out, size_t tap, size_t &in) {
  const size_t at = out * w.stride[axis] + tap * w.dilation[axis];
  in = at - w.padding[axis];
  return at >= w.padding[axis] && in < w.in[axis];
}

/* The window whose tap is this element of the image; false if there is none. */
__device__ inline bool window_at(const window &w, int axis, size_t in, size_t tap, size_t &out) {
  const size_t at = in + w.padding[axis], from = tap * w.dilation[axis];
  if (at < from) return false;
  out = w.stride[axis] == 1 ? at - from : quotient(at - from, w.stride[axis]);
  return out * w.stride[axis] == at - from && out < w.out[axis];
}

/* The same along all axes. */
__device__ inline bool window_tap(const window &w, const position &out, const position &tap, position &in) {
#pragma unroll
  for (int axis = 0; axis < AXES; axis++)
    if (!window_tap(w, axis, out.at[axis], tap.at[axis], in.at[axis])) return false;
  return true;
}

__device__ inline bool window_at(const window &w, const position &in, const position &tap, position &out) {
#pragma unroll
  for (int axis = 0; axis < AXES; axis++)
    if (!window_at(w, axis, in.at[axis], tap.at[axis], out.at[axis])) return false;
  return true;
}

/* The taps of window `out` before element `end` of the padded image, counted from its beginning. */
__device__ inline size_t taps_before(const window &w, int axis, size_t out, size_t end) {
  const size_t from = out * w.stride[axis];
  if (from >= end) return 0;
  const size_t taps =
      w.dilation[axis] == 1 ? end - from : quotient(end - from + w.dilation[axis] - 1, w.dilation[axis]);
  return taps < w.kernel[axis] ? taps : w.kernel[axis];
}
