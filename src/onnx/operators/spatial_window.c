/* SPDX-License-Identifier: MIT
 * Reads windows.
 */
#include "onnx/operators/spatial_window.h"

#include <string.h>

#include "base/error.h"
#include "onnx/import/node_attributes.h"

/* A list of sizes of at least `least`; all are `otherwise` if the node has none. */
static rondo_status read_sizes(rondo_onnx_node *node, const char *name, size_t rank, int64_t least, size_t otherwise,
                               size_t *out) {
  const int64_t *given;
  size_t count;
  RONDO_TRY(rondo_onnx_attribute_ints(node, name, &given, &count));
  if (given != NULL && count != rank)
    return rondo_onnx_refuse_attribute(node, name, "it has %zu numbers for %zu dimensions", count, rank);
  for (size_t i = 0; i < rank; i++) {
    if (given != NULL && given[i] < least)
      return rondo_onnx_refuse_attribute(node, name, "%lld in dimension %zu", (long long)given[i], i);
    out[i] = given != NULL ? (size_t)given[i] : otherwise;
  }
  return RONDO_OK;
}

static rondo_status read_kernel(rondo_onnx_node *node, const size_t *kernel, rondo_onnx_window *out) {
  RONDO_TRY(read_sizes(node, "kernel_shape", out->rank, 1, 0, out->kernel));
  for (size_t i = 0; i < out->rank; i++) {
    if (out->kernel[i] == 0 && kernel != NULL) out->kernel[i] = kernel[i];
    if (out->kernel[i] == 0) return rondo_onnx_refuse_attribute(node, "kernel_shape", "it is missing");
    if (kernel != NULL && kernel[i] != out->kernel[i])
      return rondo_onnx_refuse_attribute(node, "kernel_shape", "%zu in dimension %zu, and the weights have %zu",
                                         out->kernel[i], i, kernel[i]);
  }
  return RONDO_OK;
}

static rondo_status read_padding(rondo_onnx_node *node, rondo_onnx_window *out) {
  size_t pads[2 * RONDO_MAX_SPATIAL];
  const char *mode;
  RONDO_TRY(rondo_onnx_attribute_text(node, "auto_pad", "NOTSET", &mode));
  RONDO_TRY(read_sizes(node, "pads", 2 * out->rank, 0, 0, pads));
  if (strcmp(mode, "SAME_UPPER") == 0)
    out->auto_pad = RONDO_ONNX_SAME_UPPER;
  else if (strcmp(mode, "SAME_LOWER") == 0)
    out->auto_pad = RONDO_ONNX_SAME_LOWER;
  else if (strcmp(mode, "NOTSET") != 0 && strcmp(mode, "VALID") != 0)
    return rondo_onnx_refuse_attribute(node, "auto_pad", "it is '%s'", mode);
  if (strcmp(mode, "NOTSET") != 0) return RONDO_OK;
  memcpy(out->before, pads, out->rank * sizeof *pads);
  memcpy(out->after, pads + out->rank, out->rank * sizeof *pads);
  return RONDO_OK;
}

rondo_status rondo_onnx_read_window(rondo_onnx_node *node, const size_t *kernel, rondo_onnx_window *out) {
  const size_t rank = rondo_onnx_input_shape(node, 0)->rank;
  if (rank < 3 || rank > 2 + RONDO_MAX_SPATIAL)
    return rondo_onnx_refuse(node, "input 0 has %zu dimensions, and 3 to %d are supported", rank,
                             2 + RONDO_MAX_SPATIAL);
  *out = (rondo_onnx_window){.rank = rank - 2};
  RONDO_TRY(read_kernel(node, kernel, out));
  RONDO_TRY(read_sizes(node, "strides", out->rank, 1, 1, out->stride));
  RONDO_TRY(read_sizes(node, "dilations", out->rank, 1, 1, out->dilation));
  return read_padding(node, out);
}

size_t rondo_onnx_window_extent(const rondo_onnx_window *window, size_t dimension) {
  return window->dilation[dimension] * (window->kernel[dimension] - 1) + 1;
}

void rondo_onnx_divide_padding(rondo_onnx_window *window, size_t dimension, size_t padding) {
  const size_t smaller = padding / 2;
  const bool is_upper = window->auto_pad == RONDO_ONNX_SAME_UPPER;
  window->before[dimension] = is_upper ? smaller : padding - smaller;
  window->after[dimension] = padding - window->before[dimension];
}

void rondo_onnx_pad_window(rondo_onnx_window *window, const size_t *sizes) {
  for (size_t i = 0; i < window->rank && window->auto_pad != RONDO_ONNX_PADS; i++) {
    const size_t results = (sizes[i] + window->stride[i] - 1) / window->stride[i];
    const size_t covered = (results - 1) * window->stride[i] + rondo_onnx_window_extent(window, i);
    rondo_onnx_divide_padding(window, i, covered > sizes[i] ? covered - sizes[i] : 0);
  }
}
