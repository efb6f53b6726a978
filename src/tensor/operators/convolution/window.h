/* SPDX-License-Identifier: MIT
 * Windows that slide over images [n, c, h, w]: what convolutions and pools share. A window is at an output's place, its
 * taps lie `dilation` apart, and what lies in the padding is not there.
 */
#ifndef RONDO_TENSOR_OPERATORS_CONVOLUTION_WINDOW_H
#define RONDO_TENSOR_OPERATORS_CONVOLUTION_WINDOW_H

#include "tensor/operators/common/element.h"
#include "tensor/program/program_internal.h"

/* Height, then width. */
enum { RONDO_HEIGHT, RONDO_WIDTH, RONDO_WINDOW_AXES };

/* Kernels get it as part of a scalar; without padding. */
typedef struct rondo_window {
  size_t in[RONDO_WINDOW_AXES], out[RONDO_WINDOW_AXES]; /* sizes of the images */
  size_t kernel[RONDO_WINDOW_AXES], stride[RONDO_WINDOW_AXES], padding[RONDO_WINDOW_AXES], dilation[RONDO_WINDOW_AXES];
} rondo_window;

/* Where attributes keep a window; more of an operator's sizes may follow. */
enum {
  RONDO_WINDOW_KERNEL,
  RONDO_WINDOW_STRIDE = 2,
  RONDO_WINDOW_PADDING = 4,
  RONDO_WINDOW_DILATION = 6,
  RONDO_WINDOW_SIZES = 8
};

/* 0 stands for 1, of stride and dilation. */
void rondo_window_attributes(const size_t kernel[2], const size_t stride[2], const size_t padding[2],
                             const size_t dilation[2], rondo_attributes *out);

/* The window over images of this shape, of rank 4. SHAPE when it does not fit in. */
RONDO_MUST_USE rondo_status rondo_window_make(const rondo_program *program, const rondo_operation *operation,
                                              const rondo_shape *image, rondo_window *out);

/* The same of what was checked. */
rondo_window rondo_window_of(const rondo_shape *image, const rondo_attributes *attributes);

/* The place of a tap in the image; false when it lies in the padding. */
static inline bool rondo_window_tap(const rondo_window *w, int axis, size_t out, size_t tap, size_t *in) {
  const size_t at = out * w->stride[axis] + tap * w->dilation[axis];
  *in = at - w->padding[axis];
  return at >= w->padding[axis] && *in < w->in[axis];
}

/* The windows whose tap lies in the image: first <= out < last. */
static inline rondo_span rondo_window_inside(const rondo_window *w, int axis, size_t tap) {
  const size_t stride = w->stride[axis], from = tap * w->dilation[axis], end = w->in[axis] + w->padding[axis];
  const size_t first = from < w->padding[axis] ? (w->padding[axis] - from + stride - 1) / stride : 0;
  const size_t fits = from < end ? (end - from + stride - 1) / stride : 0;
  const size_t last = fits < w->out[axis] ? fits : w->out[axis];
  return (rondo_span){first < last ? first : last, last};
}

/* The window whose tap lies at this place of the image; false when none does. */
static inline bool rondo_window_at(const rondo_window *w, int axis, size_t in, size_t tap, size_t *out) {
  const size_t at = in + w->padding[axis], from = tap * w->dilation[axis];
  if (at < from || (at - from) % w->stride[axis] != 0) return false;
  *out = (at - from) / w->stride[axis];
  return *out < w->out[axis];
}

#endif
