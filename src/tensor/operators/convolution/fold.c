/* SPDX-License-Identifier: MIT
 * fold: windows are added to their places by a conv_transpose whose weights are the identity of a window. Threads: as
 * tensor/program/operator.h says.
 */
#include <string.h>

#include "tensor/operators/common/composition.h"
#include "tensor/operators/convolution/window.h"

/* A call's sizes along each dimension: of the image, of a window, and how many windows there are. */
typedef struct folding {
  size_t rank, taps, channels;
  size_t kernel[RONDO_MAX_SPATIAL], windows[RONDO_MAX_SPATIAL];
  rondo_conv_transpose_options options;
} folding;

static rondo_status add_fold(rondo_program *program, rondo_value x, const rondo_shape *shape, folding *f,
                             rondo_value *out_value) {
  const size_t taps = f->taps, rows = f->channels * taps;
  size_t windows[2 + RONDO_MAX_SPATIAL] = {shape->dims[0], rows}, weights[2 + RONDO_MAX_SPATIAL] = {rows, 1};
  rondo_value weight;
  memcpy(windows + 2, f->windows, sizeof f->windows);
  memcpy(weights + 2, f->kernel, sizeof f->kernel);
  RONDO_TRY(rondo_op_arange(program, RONDO_I32, taps, 0, 1, &weight));
  RONDO_TRY(rondo_op_one_hot(program, weight, taps, shape->type, &weight));
  RONDO_TRY(rondo_op_expand(program, weight, (const size_t[]){f->channels, taps, taps}, 3, &weight));
  RONDO_TRY(rondo_op_reshape(program, weight, weights, 2 + f->rank, &weight));
  RONDO_TRY(rondo_op_reshape(program, x, windows, 2 + f->rank, &x));
  return rondo_op_conv_transpose(program, x, weight, &f->options, out_value);
}

/* Sets the windows along a dimension, and how much of the image is after the last; false if they do not fit. */
static bool set_axis(const rondo_conv_options *given, size_t image, size_t axis, folding *f) {
  const size_t stride = given->stride[axis] == 0 ? 1 : given->stride[axis];
  const size_t dilation = given->dilation[axis] == 0 ? 1 : given->dilation[axis];
  const size_t all[] = {image,
                        f->kernel[axis],
                        stride,
                        dilation,
                        given->padding[axis],
                        given->padding_before[axis],
                        given->padding_after[axis]};
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
    if (all[i] > RONDO_WINDOW_MAX) return false;
  if (image == 0 || f->kernel[axis] == 0) return false;
  const size_t padded = image + 2 * given->padding[axis] + given->padding_before[axis] + given->padding_after[axis];
  const size_t extent = dilation * (f->kernel[axis] - 1) + 1;
  if (extent > padded) return false;
  f->windows[axis] = (padded - extent) / stride + 1;
  f->options.output_padding[axis] = (padded - extent) % stride;
  return true;
}

static rondo_status set_sizes(const rondo_conv_options *given, const size_t *image, const size_t *kernel,
                              const rondo_shape *x, folding *f) {
  char text[RONDO_SHAPE_TEXT];
  size_t windows = 1;
  memcpy(f->kernel, kernel, f->rank * sizeof *kernel);
  f->taps = 1;
  for (size_t axis = 0; axis < f->rank; axis++) {
    if (!set_axis(given, image[axis], axis, f) || f->taps > RONDO_WINDOW_MAX || windows > RONDO_WINDOW_MAX)
      return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE,
                        "fold: windows of %zu elements do not fit along dimension %zu of the image, which has %zu "
                        "elements: use another kernel, dilation or padding, and sizes of at most %zu",
                        kernel[axis], axis, image[axis], RONDO_WINDOW_MAX);
    f->taps *= kernel[axis];
    windows *= f->windows[axis];
  }
  const bool has_rank = rondo_shape_is_float(x) && x->rank == 3;
  f->channels = has_rank ? x->dims[1] / f->taps : 0;
  if (f->channels > 0 && x->dims[1] == f->channels * f->taps && x->dims[2] == windows) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, rondo_shape_is_float(x) ? RONDO_REASON_SHAPE : RONDO_REASON_TYPE,
                    "fold: x is %s; it must be [n, c %zu, %zu] of floats, for %zu windows of %zu elements",
                    rondo_shape_text(text, x), f->taps, windows, windows, f->taps);
}

rondo_status rondo_op_fold(rondo_program *program, rondo_value x, const size_t *image, const size_t *kernel,
                           const rondo_conv_options *options, size_t rank, rondo_value *out_value) {
  rondo_conv_options given;
  folding f = {.rank = rank, .options = {RONDO_CONV_TRANSPOSE_OPTIONS_INIT}};
  rondo_shape shape;
  rondo_value made = {0};
  RONDO_TRY(rondo_program_begin(program, "fold", out_value));
  RONDO_TRY(rondo_given_shape(program, x, "fold", "x", &shape));
  RONDO_TRY(rondo_require("fold", "image", image));
  RONDO_TRY(rondo_require("fold", "kernel", kernel));
  RONDO_TRY(rondo_versioned_read("rondo_conv_options", options, &given, sizeof given));
  if (rank == 0 || rank > RONDO_MAX_SPATIAL)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE, "fold: images have %zu dimensions: use 1 to %d", rank,
                      RONDO_MAX_SPATIAL);
  RONDO_TRY(set_sizes(&given, image, kernel, &shape, &f));
  f.options.groups = (uint32_t)f.channels;
  memcpy(f.options.stride, given.stride, sizeof given.stride);
  memcpy(f.options.dilation, given.dilation, sizeof given.dilation);
  memcpy(f.options.padding, given.padding, sizeof given.padding);
  memcpy(f.options.padding_before, given.padding_before, sizeof given.padding_before);
  memcpy(f.options.padding_after, given.padding_after, sizeof given.padding_after);
  const rondo_program_mark mark = rondo_program_get_mark(program);
  const rondo_status status = add_fold(program, x, &shape, &f, &made);
  return rondo_compose_end(program, "fold", mark, status, made, out_value);
}
