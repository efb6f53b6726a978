/* SPDX-License-Identifier: MIT
 * Windows that slide over images [n, c, w], [n, c, h, w] or [n, c, d, h, w], for convolutions and pooling. Each output
 * element has a window. The elements of a window, its taps, are `dilation` apart. Taps in the padding have no element
 * of the image. Axes that an image does not have are of size 1, with a window of 1.
 */
#ifndef RONDO_TENSOR_OPERATORS_CONVOLUTION_WINDOW_H
#define RONDO_TENSOR_OPERATORS_CONVOLUTION_WINDOW_H

#include "tensor/operators/common/element.h"
#include "tensor/program/program_internal.h"

enum { RONDO_DEPTH, RONDO_HEIGHT, RONDO_WIDTH, RONDO_WINDOW_AXES };

/* The largest size of an image, a window, a stride, a dilation or a padding, so that indices do not overflow.
 */
#define RONDO_WINDOW_MAX ((size_t)1 << 30)

/* Part of a scalar argument of kernels; without padding. */
typedef struct rondo_window {
  size_t in[RONDO_WINDOW_AXES], out[RONDO_WINDOW_AXES]; /* sizes of the images */
  size_t kernel[RONDO_WINDOW_AXES], stride[RONDO_WINDOW_AXES], dilation[RONDO_WINDOW_AXES];
  size_t padding[RONDO_WINDOW_AXES], after[RONDO_WINDOW_AXES]; /* before and after the image */
} rondo_window;

/* The sizes of a window in an operator's attributes, three each; other sizes may follow. */
enum {
  RONDO_WINDOW_KERNEL,
  RONDO_WINDOW_STRIDE = 3,
  RONDO_WINDOW_PADDING = 6,
  RONDO_WINDOW_AFTER = 9,
  RONDO_WINDOW_DILATION = 12,
  RONDO_WINDOW_SIZES = 15
};
enum { RONDO_WINDOW_ROUNDS_UP }; /* flag: the last window may reach beyond the padding; other flags may follow */

/* What a public call gives for each dimension of an image, the first one first. */
typedef struct rondo_window_given {
  const size_t *kernel, *stride, *dilation; /* a stride or dilation of 0 means 1; dilation NULL: 1 */
  const size_t *padding, *before, *after;   /* on both sides; and more on one side */
} rondo_window_given;

/* Whether an image of this rank has windows. */
static inline bool rondo_window_has_rank(size_t rank) { return rank >= 3 && rank < 3 + RONDO_WINDOW_AXES; }

/* The axis of the first of an image's dimensions. */
static inline size_t rondo_window_first_axis(size_t rank) { return 2 + RONDO_WINDOW_AXES - rank; }

/* The size of an image along an axis. */
static inline size_t rondo_window_image_size(const rondo_shape *image, size_t axis) {
  const size_t first = rondo_window_first_axis(image->rank);
  return axis < first ? 1 : image->dims[2 + axis - first];
}

/* A shape [n, c, ..] with these sizes along the axes. */
rondo_shape rondo_window_image(rondo_type type, size_t rank, size_t n, size_t c, const size_t *sizes);

/* Sets the attributes for images of this rank. A sum of paddings that is too large becomes SIZE_MAX, which
 * rondo_window_make refuses. */
void rondo_window_attributes(size_t rank, const rondo_window_given *given, rondo_attributes *out);

/* The window over images of this shape, of rank 3 to 5. SHAPE if it does not fit into the image. */
RONDO_MUST_USE rondo_status rondo_window_make(const rondo_program *program, const rondo_operation *operation,
                                              const rondo_shape *image, rondo_window *out);

/* The same for sizes that have been checked. */
rondo_window rondo_window_of(const rondo_shape *image, const rondo_attributes *attributes);

/* Whether an axis has one element and windows of it, as the depth of flat images. */
static inline bool rondo_window_is_trivial(const rondo_window *w, int axis) {
  return w->in[axis] == 1 && w->out[axis] == 1 && w->kernel[axis] == 1 && w->padding[axis] == 0;
}

/* Elements of a window, and of a channel's image and result. */
static inline size_t rondo_window_taps(const rondo_window *w) {
  return w->kernel[RONDO_DEPTH] * w->kernel[RONDO_HEIGHT] * w->kernel[RONDO_WIDTH];
}
static inline size_t rondo_window_in(const rondo_window *w) {
  return w->in[RONDO_DEPTH] * w->in[RONDO_HEIGHT] * w->in[RONDO_WIDTH];
}
static inline size_t rondo_window_out(const rondo_window *w) {
  return w->out[RONDO_DEPTH] * w->out[RONDO_HEIGHT] * w->out[RONDO_WIDTH];
}

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

/* The taps of window `out` before element `end` of the padded image, counted from its beginning. */
static inline size_t rondo_window_taps_before(const rondo_window *w, int axis, size_t out, size_t end) {
  const size_t from = out * w->stride[axis], dilation = w->dilation[axis], kernel = w->kernel[axis];
  if (from >= end) return 0;
  const size_t taps = dilation == 1 ? end - from : rondo_divide_up(end - from, dilation);
  return taps < kernel ? taps : kernel;
}

/* The taps of window `out` in the image: first <= tap < last. */
static inline rondo_span rondo_window_taps_inside(const rondo_window *w, int axis, size_t out) {
  const size_t first = rondo_window_taps_before(w, axis, out, w->padding[axis]);
  return (rondo_span){first, rondo_window_taps_before(w, axis, out, w->padding[axis] + w->in[axis])};
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
