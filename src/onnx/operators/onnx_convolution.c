/* SPDX-License-Identifier: MIT
 * Conv and ConvTranspose.
 */
#include <string.h>

#include "base/error.h"
#include "onnx/import/constant.h"
#include "onnx/import/node_attributes.h"
#include "onnx/operators/conv_attributes.h"
#include "onnx/operators/operator_families.h"
#include "onnx/operators/spatial_window.h"

static rondo_status read_groups(rondo_onnx_node *node, uint32_t *out) {
  int64_t groups;
  RONDO_TRY(rondo_onnx_attribute_int(node, "group", 1, &groups));
  if (groups < 1 || groups > UINT32_MAX)
    return rondo_onnx_refuse_attribute(node, "group", "it is %lld", (long long)groups);
  *out = (uint32_t)groups;
  return RONDO_OK;
}

/* The window of these weights. */
static rondo_status read_window(rondo_onnx_node *node, size_t input, rondo_onnx_window *out) {
  const rondo_onnx_shape *x = rondo_onnx_input_shape(node, 0), *weight = rondo_onnx_input_shape(node, input);
  if (weight->rank != x->rank)
    return rondo_onnx_refuse(node, "the weights have %zu dimensions, and input 0 has %zu", weight->rank, x->rank);
  return rondo_onnx_read_window(node, weight->dims + 2, out);
}

rondo_status rondo_onnx_read_conv(rondo_onnx_node *node, size_t weight, rondo_conv_options *out) {
  rondo_onnx_window window;
  *out = (rondo_conv_options){RONDO_CONV_OPTIONS_INIT};
  RONDO_TRY(read_groups(node, &out->groups));
  RONDO_TRY(read_window(node, weight, &window));
  rondo_onnx_pad_window(&window, rondo_onnx_input_shape(node, 0)->dims + 2);
  memcpy(out->stride, window.stride, sizeof out->stride);
  memcpy(out->dilation, window.dilation, sizeof out->dilation);
  memcpy(out->padding_before, window.before, sizeof out->padding_before);
  memcpy(out->padding_after, window.after, sizeof out->padding_after);
  return RONDO_OK;
}

static rondo_status add_conv(rondo_onnx_node *node, const void *data) {
  rondo_conv_options options;
  rondo_program *program;
  rondo_value x, weight, y;
  (void)data;
  RONDO_TRY(rondo_onnx_read_conv(node, 1, &options));
  RONDO_TRY(rondo_onnx_operand(node, 0, &x));
  RONDO_TRY(rondo_onnx_operand(node, 1, &weight));
  if (rondo_onnx_has_input(node, 2)) RONDO_TRY(rondo_onnx_operand(node, 2, &options.bias));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  RONDO_TRY(rondo_op_conv(program, x, weight, &options, &y));
  return rondo_onnx_set_typed(node, 0, y, rondo_onnx_input_shape(node, 0)->type);
}

/* ConvTranspose ---------------------------------------------------------------------------------------------------- */

/* The padding that gives these sizes; what is missing is added as output padding. */
static void pad_for(rondo_onnx_window *window, const size_t *have, const size_t *wanted, size_t *output_padding) {
  for (size_t i = 0; i < window->rank; i++) {
    const size_t size = (have[i] - 1) * window->stride[i] + rondo_onnx_window_extent(window, i) + output_padding[i];
    if (size < wanted[i]) output_padding[i] += wanted[i] - size;
    rondo_onnx_divide_padding(window, i, size > wanted[i] ? size - wanted[i] : 0);
  }
}

static rondo_status read_output_padding(rondo_onnx_node *node, const rondo_onnx_window *window, size_t *out) {
  const int64_t *given;
  size_t count;
  RONDO_TRY(rondo_onnx_attribute_ints(node, "output_padding", &given, &count));
  if (given != NULL && count != window->rank)
    return rondo_onnx_refuse_attribute(node, "output_padding", "it has %zu numbers for %zu dimensions", count,
                                       window->rank);
  for (size_t i = 0; i < count; i++) {
    if (given[i] < 0) return rondo_onnx_refuse_attribute(node, "output_padding", "a number is negative");
    out[i] = (size_t)given[i];
  }
  return RONDO_OK;
}

/* The sizes of the result may be given: those of the spatial dimensions, or of all. */
static rondo_status pad_transposed(rondo_onnx_node *node, rondo_onnx_window *window, size_t *output_padding) {
  const size_t *have = rondo_onnx_input_shape(node, 0)->dims + 2;
  const int64_t *given;
  size_t count, wanted[RONDO_MAX_SPATIAL] = {0};
  RONDO_TRY(read_output_padding(node, window, output_padding));
  RONDO_TRY(rondo_onnx_attribute_ints(node, "output_shape", &given, &count));
  if (given == NULL && window->auto_pad == RONDO_ONNX_PADS) return RONDO_OK;
  if (given != NULL && count != window->rank && count != window->rank + 2)
    return rondo_onnx_refuse_attribute(node, "output_shape", "it has %zu sizes for %zu dimensions", count,
                                       window->rank);
  for (size_t i = 0; i < window->rank; i++) {
    const int64_t size = given != NULL ? given[count - window->rank + i] : (int64_t)(have[i] * window->stride[i]);
    if (size < 1) return rondo_onnx_refuse_attribute(node, "output_shape", "%lld is no size", (long long)size);
    wanted[i] = (size_t)size;
  }
  pad_for(window, have, wanted, output_padding);
  return RONDO_OK;
}

static rondo_status add_conv_transpose(rondo_onnx_node *node, const void *data) {
  rondo_conv_transpose_options options = {RONDO_CONV_TRANSPOSE_OPTIONS_INIT};
  rondo_onnx_window window;
  rondo_program *program;
  rondo_value x, weight, y;
  (void)data;
  RONDO_TRY(read_groups(node, &options.groups));
  RONDO_TRY(read_window(node, 1, &window));
  RONDO_TRY(pad_transposed(node, &window, options.output_padding));
  memcpy(options.stride, window.stride, sizeof options.stride);
  memcpy(options.dilation, window.dilation, sizeof options.dilation);
  memcpy(options.padding_before, window.before, sizeof options.padding_before);
  memcpy(options.padding_after, window.after, sizeof options.padding_after);
  RONDO_TRY(rondo_onnx_operand(node, 0, &x));
  RONDO_TRY(rondo_onnx_operand(node, 1, &weight));
  if (rondo_onnx_has_input(node, 2)) RONDO_TRY(rondo_onnx_operand(node, 2, &options.bias));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  RONDO_TRY(rondo_op_conv_transpose(program, x, weight, &options, &y));
  return rondo_onnx_set_typed(node, 0, y, rondo_onnx_input_shape(node, 0)->type);
}

static const rondo_onnx_row rows[] = {
    {"Conv", 1, 0, 2, 3, 0, add_conv, NULL},
    {"ConvTranspose", 1, 0, 2, 3, 0, add_conv_transpose, NULL},
};

RONDO_ONNX_FAMILY(rondo_onnx_convolution, rows);
