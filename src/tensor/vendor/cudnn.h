/* SPDX-License-Identifier: MIT
 * Convolutions by cuDNN (compute_libraries.h: RONDO_CUDNN_LIBRARY, else libcudnn.so.9). The library's
 * heuristics list the engines for each shape, the fastest first, and the first that is acceptable is used. It gives
 * the same bits each time, and sums in F32: no partial results are added in order of completion. F32 may be computed by
 * Winograd's or Fourier's transform, as in PyTorch. Engines say these things of themselves in notes; some that
 * transform have no note of it (gradients of weights by "winograd_nonfused", seen with cuDNN 9). The caller provides
 * the workspace.
 *
 * Threads: a convolution and a maker belong to one thread at a time, but bound convolutions may run concurrently.
 */
#ifndef RONDO_TENSOR_VENDOR_CUDNN_H
#define RONDO_TENSOR_VENDOR_CUDNN_H

#include <pthread.h>
#include <rondo/stream.h>
#include <rondo/type.h>

#include "base/allocation.h"
#include "tensor/vendor/cudnn_abi.h"

typedef enum rondo_convolution_pass {
  RONDO_CONVOLUTION_FORWARD,        /* y of x and weight */
  RONDO_CONVOLUTION_INPUT_GRADIENT, /* dx of weight and dy */
  RONDO_CONVOLUTION_WEIGHT_GRADIENT /* dweight of x and dy */
} rondo_convolution_pass;

/* x [images, groups in_channels, in], weight [groups out_channels, in_channels, kernel], y [images, groups
 * out_channels, out], all of one floating-point type, stored by rows. Sizes are depth, height, width; flat images have
 * a depth of 1. */
#define RONDO_CONVOLUTION_AXES 3

typedef struct rondo_convolution_shape {
  rondo_convolution_pass pass;
  rondo_type type;
  bool adds; /* adds to the values of the result; unless they are F32, this rounds twice */
  size_t images, groups;
  size_t in_channels, out_channels; /* of a group */
  size_t in[RONDO_CONVOLUTION_AXES], out[RONDO_CONVOLUTION_AXES], kernel[RONDO_CONVOLUTION_AXES];
  size_t stride[RONDO_CONVOLUTION_AXES], padding[RONDO_CONVOLUTION_AXES], after[RONDO_CONVOLUTION_AXES];
  size_t dilation[RONDO_CONVOLUTION_AXES];
} rondo_convolution_shape;

/* The state that convolutions of a device share. */
typedef struct rondo_convolution_maker {
  rondo_device *device;
  rondo_allocator allocator;
  cudnn_handle handle; /* NULL before the first convolution */
  bool allow_tf32;     /* for the factors of F32 convolutions that are created from now on */
  pthread_mutex_t use; /* guards the handle, which has one stream, while work is enqueued */
} rondo_convolution_maker;

void rondo_convolution_maker_init(rondo_convolution_maker *maker, rondo_device *device,
                                  const rondo_allocator *allocator);

typedef struct rondo_convolution rondo_convolution;

/* The tensors of a convolution, in device memory, aligned to 256 bytes: x, weight and y, or their gradients. */
typedef struct rondo_convolution_memory {
  const void *x, *weight, *y; /* the pass writes its result to one of them */
  void *workspace;            /* rondo_convolution_workspace bytes */
} rondo_convolution_memory;

/* Prepares a convolution. *out is NULL, with status OK, if own kernels are to compute it: the device does not run
 * libraries, own kernels are faster for a convolution of this size (RONDO_CUDNN_LEAST; at 1 or less, the
 * library computes all), cuDNN is not available, or it has no such engine for this shape. Errors: OUT_OF_MEMORY,
 * DEVICE_LOST, EXECUTION_FAILED with the library's code and message. */
RONDO_MUST_USE rondo_status rondo_convolution_create(rondo_convolution_maker *maker,
                                                     const rondo_convolution_shape *shape, rondo_convolution **out);
void rondo_convolution_destroy(rondo_convolution *convolution); /* NULL is allowed */

size_t rondo_convolution_workspace(const rondo_convolution *convolution);

/* Sets the memory, once, before the first run. Errors: as rondo_convolution_create. */
RONDO_MUST_USE rondo_status rondo_convolution_bind(rondo_convolution *convolution,
                                                   const rondo_convolution_memory *memory);

/* Enqueues the convolution on the stream, or captures it. Errors: DEVICE_LOST, EXECUTION_FAILED with the library's code
 * and message. */
RONDO_MUST_USE rondo_status rondo_convolution_run(const rondo_convolution *convolution, rondo_stream *stream);

/* Call it after all convolutions of the maker are destroyed. */
void rondo_convolution_maker_deinit(rondo_convolution_maker *maker);

#endif
