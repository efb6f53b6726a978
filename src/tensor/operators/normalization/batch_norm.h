/* SPDX-License-Identifier: MIT
 * batch_norm: what its kernels share, and their CPU functions (batch_norm_tile.c).
 *
 * A value [images, channels, inner] is split into tiles of one channel or, if inner is 1, of several neighbouring
 * channels. An image has a run of elements of a tile; on CUDA, it has several runs if it is large. A part has some of
 * the runs of a tile, by the shape alone. A first kernel computes two numbers for each part and channel: its mean and
 * its sum of (x - mean)^2, or for the gradient the sums of g and g h. A second kernel combines the numbers of its
 * channel, in their order, and computes the elements of its part.
 */
#ifndef RONDO_TENSOR_OPERATORS_NORMALIZATION_BATCH_NORM_H
#define RONDO_TENSOR_OPERATORS_NORMALIZATION_BATCH_NORM_H

#include "tensor/operators/common/element.h"

/* Of the operator: inputs, numbers, and flags (mean and variance are inputs). */
enum {
  RONDO_BATCH_NORM_VALUE,
  RONDO_BATCH_NORM_SCALE,
  RONDO_BATCH_NORM_SHIFT,
  RONDO_BATCH_NORM_MEAN,
  RONDO_BATCH_NORM_VARIANCE
};
enum { RONDO_BATCH_NORM_EPSILON };
enum { RONDO_BATCH_NORM_FIXED };

/* A scalar argument of the kernels; without padding. */
typedef struct rondo_batch_norm_shape {
  size_t images, channels, inner;
  size_t width;        /* channels of a tile, the last may have fewer; 1 unless inner is 1 */
  size_t run, cuts;    /* elements of a channel in a run, and runs of an image; the last may have fewer */
  size_t parts, share; /* share: runs of a part; the last may have fewer */
  float epsilon;
  uint32_t is_fixed; /* mean and variance are given */
} rondo_batch_norm_shape;

static inline size_t rondo_batch_norm_tiles(const rondo_batch_norm_shape *s) {
  return rondo_divide_up(s->channels, s->width);
}

/* The image of a run, and the elements of the image's channel before it. */
static inline size_t rondo_batch_norm_image(const rondo_batch_norm_shape *s, size_t run) {
  return s->cuts == 1 ? run : run / s->cuts;
}
static inline size_t rondo_batch_norm_begin(const rondo_batch_norm_shape *s, size_t run) {
  return (run - rondo_batch_norm_image(s, run) * s->cuts) * s->run;
}

/* shape, x, sums */
void rondo_batch_norm_statistics_cpu(rondo_type type, rondo_blocks blocks, void *const *args);
/* shape, x, sums, scale, shift, given mean, given variance, y, mean, variance; all but x and y may be NULL */
void rondo_batch_norm_cpu(rondo_type type, rondo_blocks blocks, void *const *args);
/* shape, x, dy, mean, variance, sums */
void rondo_batch_norm_gradient_sums_cpu(rondo_type type, rondo_blocks blocks, void *const *args);
/* shape, x, dy, mean, variance, sums, scale, dx, dscale, dshift; the last two and scale may be NULL */
void rondo_batch_norm_gradient_cpu(rondo_type type, rondo_blocks blocks, void *const *args);

#endif
