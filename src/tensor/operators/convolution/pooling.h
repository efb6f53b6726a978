/* SPDX-License-Identifier: MIT
 * The rows of pooling on a CPU: pooling_row.c, called by the kernels of pooling.c. A block of a kernel has some rows of
 * the results, or of the image's gradient. Threads: any.
 */
#ifndef RONDO_TENSOR_OPERATORS_CONVOLUTION_POOLING_H
#define RONDO_TENSOR_OPERATORS_CONVOLUTION_POOLING_H

#include "tensor/operators/convolution/window.h"

/* A scalar argument of the kernels; without padding. */
typedef struct rondo_pooling_shape {
  rondo_window window;
  size_t channels;         /* of all images */
  uint64_t counts_padding; /* in the number of elements that a sum is divided by */
  uint64_t divisor;        /* divides instead of that number; 0: does not */
} rondo_pooling_shape;

/* The width of images of bytes, at most. */
#define RONDO_POOLED_BYTES 4096

/* Kernels: the shape, x, y, and for maxima their indices in the channel's image, I32, which may be NULL. */
void rondo_max_pool_cpu(rondo_type type, rondo_blocks blocks, void *const *args);
void rondo_max_pool_bytes(rondo_type type, rondo_blocks blocks, void *const *args); /* I8 or U8; without indices */
void rondo_avg_pool_cpu(rondo_type type, rondo_blocks blocks, void *const *args);

/* The shape, dy, dx, and for maxima their indices. An element of dx adds the gradients of the windows that contain it
 * in their order, in F32. */
void rondo_max_pool_gradient_cpu(rondo_type type, rondo_blocks blocks, void *const *args);
void rondo_avg_pool_gradient_cpu(rondo_type type, rondo_blocks blocks, void *const *args);

#endif
