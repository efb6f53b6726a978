/* SPDX-License-Identifier: MIT
 * The windows of convolutions and pooling: kernel, strides, dilations and padding from the attributes that these
 * operators share. Entries are those of spatial dimensions, of which programs have one to three.
 * Threads: one at a time.
 */
#ifndef RONDO_ONNX_OPERATORS_SPATIAL_WINDOW_H
#define RONDO_ONNX_OPERATORS_SPATIAL_WINDOW_H

#include <rondo/operators.h>

#include "onnx/import/import_node.h"

typedef enum rondo_onnx_auto_pad {
  RONDO_ONNX_PADS,       /* those of the attribute pads, or none */
  RONDO_ONNX_SAME_UPPER, /* as many results as strides, with what is odd after them */
  RONDO_ONNX_SAME_LOWER  /* likewise, before them */
} rondo_onnx_auto_pad;

typedef struct rondo_onnx_window {
  size_t rank; /* of spatial dimensions */
  rondo_onnx_auto_pad auto_pad;
  size_t kernel[RONDO_MAX_SPATIAL], stride[RONDO_MAX_SPATIAL], dilation[RONDO_MAX_SPATIAL];
  size_t before[RONDO_MAX_SPATIAL], after[RONDO_MAX_SPATIAL];
} rondo_onnx_window;

/* Reads kernel_shape, strides, dilations, auto_pad and pads. `kernel` is that of the weights, or NULL: the attribute is
 * required. Errors: UNSUPPORTED. */
RONDO_MUST_USE rondo_status rondo_onnx_read_window(rondo_onnx_node *node, const size_t *kernel, rondo_onnx_window *out);

/* With auto_pad SAME, sets the padding so that a size becomes ceil(size / stride). */
void rondo_onnx_pad_window(rondo_onnx_window *window, const size_t *sizes);

/* Divides padding into the parts before and after, by auto_pad. */
void rondo_onnx_divide_padding(rondo_onnx_window *window, size_t dimension, size_t padding);

/* Elements from the first to the last that a window covers. */
size_t rondo_onnx_window_extent(const rondo_onnx_window *window, size_t dimension);

#endif
