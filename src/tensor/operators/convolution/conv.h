/* SPDX-License-Identifier: MIT
 * Convolutions as matrix products: what their kernels share, and their CPU functions (conv_tile.c,
 * conv_depthwise.c).
 *
 * For each group of channels, with `taps` elements of a window and `places` positions of a channel: y [o, places] =
 * w [o, c taps] · x's windows [c taps, places]; dx [c, places] = w [c, o taps] · dy's windows; dw [o, c taps] =
 * dy [o, images places] · x's windows.
 */
#ifndef RONDO_TENSOR_OPERATORS_CONVOLUTION_CONV_H
#define RONDO_TENSOR_OPERATORS_CONVOLUTION_CONV_H

#include "tensor/operators/convolution/window.h"

/* A scalar argument of the kernels; without padding. */
typedef struct rondo_conv_shape {
  rondo_window window;
  size_t images, groups;
  size_t in_channels, out_channels; /* of a group */
  size_t edge;                      /* of a tile, rows and columns */
  size_t parts, part;               /* on CUDA: parts of the depth, and the depth of each but the last */
} rondo_conv_shape;

/* The rows, columns and depth of a product, and the number of products: one for each group, and for each image or for
 * all images. */
typedef struct rondo_conv_product {
  size_t rows, columns, depth, count;
} rondo_conv_product;

static inline size_t rondo_conv_taps(const rondo_conv_shape *s) { return rondo_window_taps(&s->window); }

/* Elements of a channel of the image, and of the result. */
static inline size_t rondo_conv_in(const rondo_conv_shape *s) { return rondo_window_in(&s->window); }
static inline size_t rondo_conv_out(const rondo_conv_shape *s) { return rondo_window_out(&s->window); }

static inline rondo_conv_product rondo_conv_forward(const rondo_conv_shape *s) {
  return (rondo_conv_product){s->out_channels, rondo_conv_out(s), s->in_channels * rondo_conv_taps(s),
                              s->images * s->groups};
}
static inline rondo_conv_product rondo_conv_input_gradient(const rondo_conv_shape *s) {
  return (rondo_conv_product){s->in_channels, rondo_conv_in(s), s->out_channels * rondo_conv_taps(s),
                              s->images * s->groups};
}
static inline rondo_conv_product rondo_conv_weight_gradient(const rondo_conv_shape *s) {
  return (rondo_conv_product){s->out_channels, s->in_channels * rondo_conv_taps(s), s->images * rondo_conv_out(s),
                              s->groups};
}

static inline size_t rondo_conv_tiles(const rondo_conv_shape *s, rondo_conv_product p) {
  return p.count * rondo_divide_up(p.rows, s->edge) * rondo_divide_up(p.columns, s->edge);
}

#define RONDO_CONV_EDGE 128 /* the largest tile */

/* Depthwise convolutions, which have CPU functions of their own (conv_depthwise.c): each group has one input channel
 * and one output channel, images are flat, and windows and strides have at most these sizes. */
#define RONDO_CONV_DEPTHWISE_EXTENT 16
#define RONDO_CONV_DEPTHWISE_STRIDE 4
bool rondo_conv_is_depthwise(const rondo_conv_shape *s);
size_t rondo_conv_depthwise_tiles(const rondo_conv_shape *s);
size_t rondo_conv_depthwise_input_gradient_tiles(const rondo_conv_shape *s);
size_t rondo_conv_depthwise_weight_gradient_tiles(const rondo_conv_shape *s);

/* shape, x, weight, bias, y; bias may be NULL */
void rondo_conv_cpu(rondo_type type, rondo_blocks blocks, void *const *args);
void rondo_conv_depthwise_cpu(rondo_type type, rondo_blocks blocks, void *const *args);
/* shape, weight, dy, dx */
void rondo_conv_input_gradient_cpu(rondo_type type, rondo_blocks blocks, void *const *args);
void rondo_conv_depthwise_input_gradient_cpu(rondo_type type, rondo_blocks blocks, void *const *args);
/* shape, x, dy, dweight */
void rondo_conv_weight_gradient_cpu(rondo_type type, rondo_blocks blocks, void *const *args);
void rondo_conv_depthwise_weight_gradient_cpu(rondo_type type, rondo_blocks blocks, void *const *args);

#endif
