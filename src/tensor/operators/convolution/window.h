/* SPDX-License-Identifier: MIT
 * Windows that slide over images [n, c, h, w], for convolutions and pooling. Each output element has a window. The
 * elements of a window, its taps, are `dilation` apart. Taps in the padding have no element of the image.
 */
#ifndef RONDO_TENSOR_OPERATORS_CONVOLUTION_WINDOW_H
#define RONDO_TENSOR_OPERATORS_CONVOLUTION_WINDOW_H

#include "tensor/operators/common/element.h"
#include "tensor/program/program_internal.h"

/* Height, then width. */
enum { RONDO_HEIGHT, RONDO_WIDTH, RONDO_WINDOW_AXES };

/* Part of a scalar argument of kernels; without padding. */
typedef struct rondo_window {
  size_t in[RONDO_WINDOW_AXES], out[RONDO_WINDOW_AXES]; /* sizes of the images */
  size_t kernel[RONDO_WINDOW_AXES], stride[RONDO_WINDOW_AXES], padding[RONDO_WINDOW_AXES], dilation[RONDO_WINDOW_AXES];
} rondo_window;

/* The sizes of a window in an operator's attributes; other sizes may follow. */
enum {
  RONDO_WINDOW_KERNEL,
  RONDO_WINDOW_STRIDE = 2,
  RONDO_WINDOW_PADDING = 4,
  RONDO_WINDOW_DILATION = 6,
  RONDO_WINDOW_SIZES = 8
};

/* A stride or dilation of 0 means 1. */
void rondo_window_attributes(const size_t kernel[2], const size_t stride[2], const size_t padding[2],
                             const size_t dilation[2], rondo_attributes *out);

/* The window over images of this shape, of rank 4. SHAPE if it does not fit into the image. */
RONDO_MUST_USE rondo_status rondo_window_make(const rondo_program *program, const rondo_operation *operation,
                                              const rondo_shape *image, rondo_window *out);

/* The same for sizes that have been checked. */
rondo_window rondo_window_of(const rondo_shape *image, const rondo_attributes *attributes);

/* The index of a tap in the image; false if it is in the padding. */
static inline bool rondo_window_tap(const rondo_window *w, int axis, size_t out, size_t tap, size_t *in) {
  const size_t at = out * w->stride[axis] + tap * w->dilation[axis];
  assert(out < w->out[axis] && tap < w->kernel[axis]);
  *in = at - w->padding[axis];
  return at >= w->padding[axis] && *in < w->in[axis];
}

/* The windows whose tap `tap` is in the image: first <= out < last. */
static inline rondo_span rondo_window_inside(const rondo_window *w, int axis, size_t tap) {
  const size_t stride = w->stride[axis], from = tap * w->dilation[axis], end = w->in[axis] + w->padding[axis];
  const size_t first = from < w->padding[axis] ? rondo_divide_up(w->padding[axis] - from, stride) : 0;
  const size_t fits = from < end ? rondo_divide_up(end - from, stride) : 0;
  const size_t last = fits < w->out[axis] ? fits : w->out[axis];
  return (rondo_span){first < last ? first : last, last};
}

/* The window whose tap `tap` is this element of the image; false if there is none. */
static inline bool rondo_window_at(const rondo_window *w, int axis, size_t in, size_t tap, size_t *out) {
  const size_t at = in + w->padding[axis], from = tap * w->dilation[axis];
  assert(in < w->in[axis] && tap < w->kernel[axis]);
  if (at < from || (at - from) % w->stride[axis] != 0) return false;
  *out = (at - from) / w->stride[axis];
  return *out < w->out[axis];
}

#endif
