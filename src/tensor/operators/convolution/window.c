/* SPDX-License-Identifier: MIT
 * Windows: their attributes and sizes. Threads: any.
 */
#include "tensor/operators/convolution/window.h"

#include <assert.h>

#include "tensor/program/operation.h"

static size_t or_one(const size_t *sizes, size_t i) { return sizes == NULL || sizes[i] == 0 ? 1 : sizes[i]; }

static size_t sum_of(size_t a, size_t b) { return a > RONDO_WINDOW_MAX || b > RONDO_WINDOW_MAX ? SIZE_MAX : a + b; }

void rondo_window_attributes(size_t rank, const rondo_window_given *given, rondo_attributes *out) {
  size_t *sizes = out->sizes;
  assert(rondo_window_has_rank(rank));
  for (size_t axis = 0; axis < RONDO_WINDOW_AXES; axis++)
    sizes[RONDO_WINDOW_KERNEL + axis] = sizes[RONDO_WINDOW_STRIDE + axis] = sizes[RONDO_WINDOW_DILATION + axis] = 1;
  for (size_t i = 0, axis = rondo_window_first_axis(rank); axis < RONDO_WINDOW_AXES; i++, axis++) {
    sizes[RONDO_WINDOW_KERNEL + axis] = given->kernel[i];
    sizes[RONDO_WINDOW_STRIDE + axis] = or_one(given->stride, i);
    sizes[RONDO_WINDOW_PADDING + axis] = sum_of(given->padding[i], given->before[i]);
    sizes[RONDO_WINDOW_AFTER + axis] = sum_of(given->padding[i], given->after[i]);
    sizes[RONDO_WINDOW_DILATION + axis] = or_one(given->dilation, i);
  }
  out->size_count = RONDO_WINDOW_SIZES;
}

rondo_shape rondo_window_image(rondo_type type, size_t rank, size_t n, size_t c, const size_t *sizes) {
  rondo_shape made = {.type = type, .rank = (uint32_t)rank, .dims = {n, c}};
  const size_t first = rondo_window_first_axis(rank);
  for (size_t axis = first; axis < RONDO_WINDOW_AXES; axis++) made.dims[2 + axis - first] = sizes[axis];
  return made;
}

/* Windows that begin in the image or before it. */
static size_t beginning_inside(const rondo_window *w, size_t axis) {
  return (w->in[axis] + w->padding[axis] - 1) / w->stride[axis] + 1;
}

rondo_window rondo_window_of(const rondo_shape *image, const rondo_attributes *attributes) {
  const size_t *sizes = attributes->sizes;
  rondo_window w;
  for (size_t axis = 0; axis < RONDO_WINDOW_AXES; axis++) {
    w.in[axis] = rondo_window_image_size(image, axis);
    assert(sizes[RONDO_WINDOW_KERNEL + axis] > 0 && sizes[RONDO_WINDOW_STRIDE + axis] > 0);
    w.kernel[axis] = sizes[RONDO_WINDOW_KERNEL + axis];
    w.stride[axis] = sizes[RONDO_WINDOW_STRIDE + axis];
    w.padding[axis] = sizes[RONDO_WINDOW_PADDING + axis];
    w.after[axis] = sizes[RONDO_WINDOW_AFTER + axis];
    w.dilation[axis] = sizes[RONDO_WINDOW_DILATION + axis];
    const size_t extent = w.dilation[axis] * (w.kernel[axis] - 1) + 1;
    const size_t room = w.in[axis] + w.padding[axis] + w.after[axis] - extent;
    const size_t rounded = attributes->flags[RONDO_WINDOW_ROUNDS_UP] ? room + w.stride[axis] - 1 : room;
    w.out[axis] = rounded / w.stride[axis] + 1;
    if (attributes->flags[RONDO_WINDOW_ROUNDS_UP] && w.out[axis] > beginning_inside(&w, axis))
      w.out[axis] = room / w.stride[axis] + 1;
  }
  return w;
}

static rondo_status check_sizes(const rondo_program *program, const rondo_operation *operation,
                                const rondo_shape *image) {
  for (size_t i = 0; i < RONDO_WINDOW_SIZES; i++) {
    if (operation->attributes.sizes[i] <= RONDO_WINDOW_MAX &&
        rondo_window_image_size(image, i % RONDO_WINDOW_AXES) <= RONDO_WINDOW_MAX)
      continue;
    return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE,
                                "a size is larger than %zu: use a smaller image, kernel, stride, padding or dilation",
                                RONDO_WINDOW_MAX);
  }
  return RONDO_OK;
}

rondo_status rondo_window_make(const rondo_program *program, const rondo_operation *operation, const rondo_shape *image,
                               rondo_window *out) {
  const size_t *sizes = operation->attributes.sizes;
  RONDO_TRY(check_sizes(program, operation, image));
  for (size_t axis = 0; axis < RONDO_WINDOW_AXES; axis++) {
    const size_t kernel = sizes[RONDO_WINDOW_KERNEL + axis], size = rondo_window_image_size(image, axis);
    const size_t before = sizes[RONDO_WINDOW_PADDING + axis], after = sizes[RONDO_WINDOW_AFTER + axis];
    const size_t extent = kernel == 0 ? 0 : sizes[RONDO_WINDOW_DILATION + axis] * (kernel - 1) + 1;
    if (kernel > 0 && extent <= size + before + after) continue;
    return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE,
                                "a window of %zu does not fit into an image of %zu with a padding of %zu before and "
                                "%zu after it: use another kernel, dilation or padding",
                                extent, size, before, after);
  }
  *out = rondo_window_of(image, &operation->attributes);
  return RONDO_OK;
}
