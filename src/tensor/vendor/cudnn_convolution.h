/* SPDX-License-Identifier: MIT
 * Convolutions by cuDNN (cudnn_plan.h). Threads: a convolution belongs to one thread at a time, but bound convolutions
 * may run concurrently.
 */
#ifndef RONDO_TENSOR_VENDOR_CUDNN_CONVOLUTION_H
#define RONDO_TENSOR_VENDOR_CUDNN_CONVOLUTION_H

#include "tensor/vendor/cudnn_plan.h"

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
  bool adds;          /* adds to the values of the result; unless they are F32, this rounds twice */
  bool channels_last; /* flat images [images, height, width, channels], and weights [out_channels, height, width,
                         in_channels] of one group; forward only. The next three are for them alone: */
  bool has_bias;      /* adds a number of the type to each channel of the result */
  bool has_addend;    /* adds values like the result */
  bool has_relu;      /* applies relu to the sum */
  size_t images, groups;
  size_t in_channels, out_channels; /* of a group */
  size_t in[RONDO_CONVOLUTION_AXES], out[RONDO_CONVOLUTION_AXES], kernel[RONDO_CONVOLUTION_AXES];
  size_t stride[RONDO_CONVOLUTION_AXES], padding[RONDO_CONVOLUTION_AXES], after[RONDO_CONVOLUTION_AXES];
  size_t dilation[RONDO_CONVOLUTION_AXES];
} rondo_convolution_shape;

typedef struct rondo_convolution rondo_convolution;

/* The tensors of a convolution, in device memory, aligned to 256 bytes: x, weight and y, or their gradients. */
typedef struct rondo_convolution_memory {
  const void *x, *weight, *y; /* the pass writes its result to one of them */
  const void *bias, *addend;  /* NULL without has_bias and has_addend */
  void *workspace;            /* rondo_convolution_workspace bytes */
} rondo_convolution_memory;

/* Prepares a convolution. *out is NULL, with status OK, if own kernels are to compute it: the device does not run
 * libraries, own kernels are faster for a convolution of this size (RONDO_CUDNN_LEAST; at 1 or less, the
 * library computes all), cuDNN is not available, or it has no such engine for this shape. Errors: OUT_OF_MEMORY,
 * DEVICE_LOST, EXECUTION_FAILED with the library's code and message. */
RONDO_MUST_USE rondo_status rondo_convolution_create(rondo_cudnn_maker *maker, const rondo_convolution_shape *shape,
                                                     rondo_convolution **out);
void rondo_convolution_destroy(rondo_convolution *convolution); /* NULL is allowed */

size_t rondo_convolution_workspace(const rondo_convolution *convolution);

bool rondo_convolution_has_relu(const rondo_convolution *convolution);

/* Sets the memory, once, before the first run. Errors: as rondo_convolution_create. */
RONDO_MUST_USE rondo_status rondo_convolution_bind(rondo_convolution *convolution,
                                                   const rondo_convolution_memory *memory);

/* Enqueues the convolution on the stream, or captures it. Errors: DEVICE_LOST, EXECUTION_FAILED with the library's code
 * and message. */
RONDO_MUST_USE rondo_status rondo_convolution_run(const rondo_convolution *convolution, rondo_stream *stream);

#endif
