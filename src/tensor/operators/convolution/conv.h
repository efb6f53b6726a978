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

/* Attributes of the operators: sizes after the window's. The image is that of x. */
enum {
  RONDO_CONV_GROUPS = RONDO_WINDOW_SIZES,
  RONDO_CONV_IMAGE,
  RONDO_CONV_ACTIVATION = RONDO_CONV_IMAGE + RONDO_WINDOW_AXES, /* a rondo_activation, of the result of conv */
  RONDO_CONV_SIZES,
  /* of conv_blocked, which has no image: channels in a block of the result; not 0: channels come last */
  RONDO_CONV_BLOCK = RONDO_CONV_IMAGE,
  RONDO_CONV_LAST
};

/* A scalar argument of the kernels; without padding. */
typedef struct rondo_conv_shape {
  rondo_window window;
  size_t images, groups;
  size_t in_channels, out_channels; /* of a group */
  size_t edge;                      /* of a tile, rows and columns */
  size_t parts, part;               /* on CUDA: parts of the depth, and the depth of each but the last */
  size_t activation;                /* a rondo_activation; on CUDA it is a step of its own, and this is NONE */
} rondo_conv_shape;

/* How many channels of x and y are neighbours in memory: flat images [n, c / block, h, w, block]; 1: [n, c, h, w].
 * Where channels come last, a block has all of them: [n, 1, h, w, c]. A scalar argument of kernels; without padding. */
#define RONDO_CONV_MAX_BLOCK 16
#define RONDO_CONV_ALL_CHANNELS SIZE_MAX
typedef struct rondo_conv_blocks {
  size_t x, y;
  size_t are_last; /* 1: channels come last */
} rondo_conv_blocks;
#define RONDO_CONV_PLAIN ((rondo_conv_blocks){1, 1, 0})

/* The shape of a forward convolution of plain x. */
rondo_conv_shape rondo_conv_shape_of(const rondo_shape *x, const rondo_shape *weight,
                                     const rondo_attributes *attributes);

/* Prepares a convolution of operation `number` by oneDNN, unless the own kernels are to compute it. */
RONDO_MUST_USE rondo_status rondo_conv_prepare_on_cpu(rondo_resources *resources, uint32_t number,
                                                      rondo_convolution_pass pass, const rondo_conv_shape *shape,
                                                      rondo_conv_blocks blocks, bool has_bias,
                                                      size_t *out_workspace_bytes);

/* Prepares a forward convolution of F32 that reads weights of a packed state, if oneDNN is to compute it so; otherwise
 * *out_packed becomes NULL. */
RONDO_MUST_USE rondo_status rondo_conv_pack_on_cpu(rondo_resources *resources, uint32_t number,
                                                   const rondo_conv_shape *shape, rondo_conv_blocks blocks,
                                                   bool has_bias, rondo_packed_state **out_packed);

/* What cuDNN needs to know of it (cudnn_convolution.h), and the call of a convolution that was prepared. */
rondo_convolution_shape rondo_conv_library_shape(const rondo_conv_shape *shape, rondo_convolution_pass pass,
                                                 rondo_type type);
RONDO_MUST_USE rondo_status rondo_conv_emit_call(rondo_emitter *emitter, rondo_convolution *convolution,
                                                 const rondo_convolution_memory *memory);

/* The element of a channel's image at `place`; images have `places` elements. */
static inline size_t rondo_conv_element(size_t channel, size_t place, size_t places, size_t block) {
  return (channel / block * places + place) * block + channel % block;
}

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
