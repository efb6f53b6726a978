/* SPDX-License-Identifier: MIT
 * Windows: their attributes and sizes. Sizes are limited, so that indices do not overflow. Threads: any.
 */
#include "tensor/operators/convolution/window.h"

#include <assert.h>

#include "tensor/program/operation.h"

#define MAX_SIZE ((size_t)1 << 30)

static size_t or_one(size_t size) { return size == 0 ? 1 : size; }

void rondo_window_attributes(const size_t kernel[2], const size_t stride[2], const size_t padding[2],
                             const size_t dilation[2], rondo_attributes *out) {
  for (size_t axis = 0; axis < RONDO_WINDOW_AXES; axis++) {
    out->sizes[RONDO_WINDOW_KERNEL + axis] = kernel[axis];
    out->sizes[RONDO_WINDOW_STRIDE + axis] = or_one(stride[axis]);
    out->sizes[RONDO_WINDOW_PADDING + axis] = padding[axis];
    out->sizes[RONDO_WINDOW_DILATION + axis] = or_one(dilation[axis]);
  }
  out->size_count = RONDO_WINDOW_SIZES;
}

rondo_window rondo_window_of(const rondo_shape *image, const rondo_attributes *attributes) {
  rondo_window w;
  for (size_t axis = 0; axis < RONDO_WINDOW_AXES; axis++) {
    w.in[axis] = image->dims[2 + axis];
    assert(attributes->sizes[RONDO_WINDOW_KERNEL + axis] > 0 && attributes->sizes[RONDO_WINDOW_STRIDE + axis] > 0);
    w.kernel[axis] = attributes->sizes[RONDO_WINDOW_KERNEL + axis];
    w.stride[axis] = attributes->sizes[RONDO_WINDOW_STRIDE + axis];
    w.padding[axis] = attributes->sizes[RONDO_WINDOW_PADDING + axis];
    w.dilation[axis] = attributes->sizes[RONDO_WINDOW_DILATION + axis];
    const size_t extent = w.dilation[axis] * (w.kernel[axis] - 1) + 1;
    w.out[axis] = (w.in[axis] + 2 * w.padding[axis] - extent) / w.stride[axis] + 1;
  }
  return w;
}

rondo_status rondo_window_make(const rondo_program *program, const rondo_operation *operation, const rondo_shape *image,
                               rondo_window *out) {
  const size_t *sizes = operation->attributes.sizes;
  for (size_t i = 0; i < RONDO_WINDOW_SIZES; i++) {
    if (sizes[i] > MAX_SIZE || image->dims[2 + i % RONDO_WINDOW_AXES] > MAX_SIZE) {
      return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE,
                                  "a size is larger than %zu: use a smaller image, kernel, stride, padding or dilation",
                                  MAX_SIZE);
    }
  }
  for (size_t axis = 0; axis < RONDO_WINDOW_AXES; axis++) {
    const size_t kernel = sizes[RONDO_WINDOW_KERNEL + axis], padding = sizes[RONDO_WINDOW_PADDING + axis];
    const size_t extent = kernel == 0 ? 0 : sizes[RONDO_WINDOW_DILATION + axis] * (kernel - 1) + 1;
    const size_t padded = image->dims[2 + axis] + 2 * padding;
    if (kernel > 0 && extent <= padded) continue;
    return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE,
                                "a window of %zu does not fit into an image of %zu with a padding of %zu: use another "
                                "kernel, dilation or padding",
                                extent, image->dims[2 + axis], padding);
  }
  *out = rondo_window_of(image, &operation->attributes);
  return RONDO_OK;
}
