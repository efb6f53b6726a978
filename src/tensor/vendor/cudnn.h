/* SPDX-License-Identifier: MIT
 * Convolutions by cuDNN (vendor/libraries.h: RONDO_CUDNN_LIBRARY, else libcudnn.so.9). How one is made is chosen once,
 * for its shape, by the library's own heuristics, among the ways that give the same bits each time and whose arithmetic
 * is a sum of products in F32: none that adds parts as they come, none by transforms (Winograd's, Fourier's). The
 * scratch memory that the way needs is the caller's.
 *
 * Threads: a convolution and a maker belong to one thread at a time, but convolutions that are bound may run at once.
 */
#ifndef RONDO_TENSOR_VENDOR_CUDNN_H
#define RONDO_TENSOR_VENDOR_CUDNN_H

#include <pthread.h>
#include <rondo/stream.h>
#include <rondo/type.h>

#include "base/allocation.h"
#include "vendor/cudnn_abi.h"

typedef enum rondo_convolution_pass {
  RONDO_CONVOLUTION_FORWARD,        /* y of x and weight */
  RONDO_CONVOLUTION_INPUT_GRADIENT, /* dx of weight and dy */
  RONDO_CONVOLUTION_WEIGHT_GRADIENT /* dweight of x and dy */
} rondo_convolution_pass;

/* x [images, groups in_channels, in], weight [groups out_channels, in_channels, kernel], y [images, groups
 * out_channels, out], all of one type of float, row by row. Of two sizes the height stands first. */
typedef struct rondo_convolution_shape {
  rondo_convolution_pass pass;
  rondo_type type;
  bool adds; /* to what the result holds before; of another type than F32 it rounds twice */
  size_t images, groups;
  size_t in_channels, out_channels; /* of a group */
  size_t in[2], out[2], kernel[2], stride[2], padding[2], dilation[2];
} rondo_convolution_shape;

/* What convolutions of a device are made with. */
typedef struct rondo_convolution_maker {
  rondo_device *device;
  rondo_allocator allocator;
  cudnn_handle handle; /* NULL before the first convolution */
  bool allow_tf32;     /* for the factors of F32 convolutions made from now on */
  pthread_mutex_t use; /* of the handle, which has one stream, to queue on it */
} rondo_convolution_maker;

void rondo_convolution_maker_init(rondo_convolution_maker *maker, rondo_device *device,
                                  const rondo_allocator *allocator);

typedef struct rondo_convolution rondo_convolution;

/* Where it all lies, in memory of the device, aligned to 256: x, weight and y, or what is their gradient. */
typedef struct rondo_convolution_memory {
  const void *x, *weight, *y; /* the one that the pass makes is written */
  void *workspace;            /* rondo_convolution_workspace bytes */
} rondo_convolution_memory;

/* Makes one ready. *out becomes NULL, with status OK, where convolutions are to be made otherwise: the device takes no
 * work of libraries, the convolution is so small that own kernels are quicker (RONDO_CUDNN_LEAST; from 1 on, all are
 * the library's), there is no cuDNN, or it has no such way for this shape. Errors: OUT_OF_MEMORY, DEVICE_LOST,
 * EXECUTION_FAILED with the library's code and words. */
RONDO_MUST_USE rondo_status rondo_convolution_create(rondo_convolution_maker *maker,
                                                     const rondo_convolution_shape *shape, rondo_convolution **out);
void rondo_convolution_destroy(rondo_convolution *convolution); /* NULL is fine */

size_t rondo_convolution_workspace(const rondo_convolution *convolution);

/* Fixes the memory, once, before the first run. Errors: as rondo_convolution_create. */
RONDO_MUST_USE rondo_status rondo_convolution_bind(rondo_convolution *convolution,
                                                   const rondo_convolution_memory *memory);

/* Queues the convolution on the stream, or captures it. Errors: DEVICE_LOST, EXECUTION_FAILED with the library's code
 * and words. */
RONDO_MUST_USE rondo_status rondo_convolution_run(const rondo_convolution *convolution, rondo_stream *stream);

/* After its convolutions are destroyed. */
void rondo_convolution_maker_deinit(rondo_convolution_maker *maker);

#endif
