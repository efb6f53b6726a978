/* SPDX-License-Identifier: MIT
 * The rows of pooling on a CPU: pool2d_row.c, called by the kernels of pool2d.c. A block of a kernel has some rows of
 * the results, or of the image's gradient. Threads: any.
 */
#ifndef RONDO_TENSOR_OPERATORS_CONVOLUTION_POOL2D_H
#define RONDO_TENSOR_OPERATORS_CONVOLUTION_POOL2D_H

#include "tensor/operators/convolution/window.h"

/* A scalar argument of the kernels; without padding. */
typedef struct rondo_pool2d_shape {
  rondo_window window; /* without dilation */
  size_t planes;
  uint64_t counts_padding;
} rondo_pool2d_shape;

/* Kernels: the shape, x, y, and for maxima their indices in the plane, I32, which may be NULL. */
void rondo_max_pool2d_cpu(rondo_type type, rondo_blocks blocks, void *const *args);
void rondo_avg_pool2d_cpu(rondo_type type, rondo_blocks blocks, void *const *args);

/* The shape, dy, dx, and for maxima their indices. An element of dx adds the gradients of the windows that contain it
 * in their order, in F32. */
void rondo_max_pool2d_gradient_cpu(rondo_type type, rondo_blocks blocks, void *const *args);
void rondo_avg_pool2d_gradient_cpu(rondo_type type, rondo_blocks blocks, void *const *args);

#endif
