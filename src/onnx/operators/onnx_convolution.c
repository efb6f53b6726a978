/* SPDX-License-Identifier: MIT
 * Conv, ConvTranspose and DeformConv.
 */
#include <string.h>

#include "base/error.h"
#include "onnx/import/constant.h"
#include "onnx/import/node_attributes.h"
#include "onnx/import/scaled_image.h"
#include "onnx/operators/conv_attributes.h"
#include "onnx/operators/operator_families.h"
#include "onnx/operators/quantized_operand.h"
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
  bool is_made;
  (void)data;
  RONDO_TRY(rondo_onnx_read_conv(node, 1, &options));
  RONDO_TRY(rondo_onnx_operand(node, 0, &x));
  if (node->inputs[1].quantized == NULL) {
    RONDO_TRY(rondo_onnx_make_scaled_conv(node, &options, x, &is_made));
    if (is_made) return RONDO_OK;
  }
  RONDO_TRY(rondo_onnx_quantized_operand(node, 1, NULL, &weight));
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

/* DeformConv ------------------------------------------------------------------------------------------------------- */

/* A convolution of images whose windows have an offset for each element (Dai et al. 2017): samples of the image at
 * these places, for each element of the window (tap) and each place of the result, and a product with the weights. */
typedef struct deformation {
  rondo_conv_options conv;
  const rondo_onnx_shape *x, *weight;
  size_t offset_groups;        /* of channels with the same offsets */
  size_t taps, out[2], places; /* places: out[0] out[1] */
} deformation;

enum { X, WEIGHT, OFFSET, BIAS, MASK };

/* Input `index` is [n, channels, out[0], out[1]]. */
static rondo_status require_places(rondo_onnx_node *node, const deformation *of, size_t index, size_t channels) {
  const rondo_onnx_shape *shape = rondo_onnx_input_shape(node, index);
  if (shape->rank == 4 && shape->dims[0] == of->x->dims[0] && shape->dims[1] == channels &&
      shape->dims[2] == of->out[0] && shape->dims[3] == of->out[1])
    return RONDO_OK;
  return rondo_onnx_refuse(node, "input %zu is not [%zu, %zu, %zu, %zu]", index, of->x->dims[0], channels, of->out[0],
                           of->out[1]);
}

static rondo_status find_places(rondo_onnx_node *node, deformation *of) {
  for (size_t i = 0; i < 2; i++) {
    const size_t covered = of->conv.dilation[i] * (of->weight->dims[2 + i] - 1) + 1;
    const size_t size = of->x->dims[2 + i] + of->conv.padding_before[i] + of->conv.padding_after[i];
    if (size < covered) return rondo_onnx_refuse(node, "its windows of %zu elements do not fit", covered);
    of->out[i] = (size - covered) / of->conv.stride[i] + 1;
  }
  of->taps = of->weight->dims[2] * of->weight->dims[3];
  of->places = of->out[0] * of->out[1];
  return RONDO_OK;
}

static rondo_status read_deformation(rondo_onnx_node *node, deformation *out) {
  int64_t offset_groups;
  *out = (deformation){.x = rondo_onnx_input_shape(node, X), .weight = rondo_onnx_input_shape(node, WEIGHT)};
  if (out->x->rank != 4)
    return rondo_onnx_refuse(node, "input 0 has %zu dimensions, and 4 are supported", out->x->rank);
  RONDO_TRY(rondo_onnx_read_conv(node, WEIGHT, &out->conv));
  RONDO_TRY(rondo_onnx_attribute_int(node, "offset_group", 1, &offset_groups));
  const size_t channels = out->x->dims[1], groups = out->conv.groups;
  if (offset_groups < 1 || channels % (uint64_t)offset_groups != 0)
    return rondo_onnx_refuse_attribute(node, "offset_group", "it is %lld of %zu channels", (long long)offset_groups,
                                       channels);
  if (channels % groups != 0 || out->weight->dims[0] % groups != 0 || out->weight->dims[1] != channels / groups)
    return rondo_onnx_refuse_attribute(node, "group", "%zu groups of %zu channels, and weights for %zu", groups,
                                       channels, out->weight->dims[1]);
  out->offset_groups = (size_t)offset_groups;
  RONDO_TRY(find_places(node, out));
  RONDO_TRY(require_places(node, out, OFFSET, out->offset_groups * out->taps * 2));
  return rondo_onnx_has_input(node, MASK) ? require_places(node, out, MASK, out->offset_groups * out->taps) : RONDO_OK;
}

/* The coordinate of grid_sample of an element of a dimension. */
static float coordinate(const deformation *of, size_t dimension, size_t place, size_t tap) {
  const double element = (double)(place * of->conv.stride[dimension] + tap * of->conv.dilation[dimension]) -
                         (double)of->conv.padding_before[dimension];
  return (float)((2 * element + 1) / (double)of->x->dims[2 + dimension] - 1);
}

/* Coordinates x, y without offsets, [taps, places, 2]. */
static rondo_status plain_coordinates(rondo_onnx_node *node, const deformation *of, rondo_value *out) {
  const rondo_onnx_shape shape = {.type = RONDO_ONNX_FLOAT, .rank = 3, .dims = {of->taps, of->places, 2}};
  rondo_onnx_constant *constant;
  void *elements;
  RONDO_TRY(rondo_onnx_constant_make(node->importer, &shape, &constant, &elements));
  float *at = elements;
  for (size_t tap = 0; tap < of->taps; tap++)
    for (size_t place = 0; place < of->places; place++) {
      *at++ = coordinate(of, 1, place % of->out[1], tap % of->weight->dims[3]);
      *at++ = coordinate(of, 0, place / of->out[1], tap / of->weight->dims[3]);
    }
  return rondo_onnx_constant_operand(node, constant, out);
}

/* The grid of grid_sample, [n offset_groups, taps, places, 2]. Offsets are y, x in elements, of which an image has
 * `size`, and coordinates go from -1 to 1. */
static rondo_status add_grid(rondo_onnx_node *node, const deformation *of, rondo_value *out) {
  const size_t images = of->x->dims[0] * of->offset_groups, last = 3;
  rondo_program *program;
  rondo_value parts[2], plain;
  RONDO_TRY(plain_coordinates(node, of, &plain));
  RONDO_TRY(rondo_onnx_operand(node, OFFSET, out));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  RONDO_TRY(rondo_op_cast(program, *out, RONDO_F32, out));
  RONDO_TRY(rondo_onnx_reshape(node, *out, (const size_t[]){images, of->taps, 2, of->places}, 4, out));
  for (size_t i = 0; i < 2; i++) {
    const size_t start[] = {0, 0, i, 0}, length[] = {images, of->taps, 1, of->places};
    RONDO_TRY(rondo_op_slice(program, *out, start, length, NULL, &parts[1 - i]));
    RONDO_TRY(rondo_op_scale(program, parts[1 - i], 2 / (float)of->x->dims[2 + i], &parts[1 - i]));
    RONDO_TRY(
        rondo_onnx_reshape(node, parts[1 - i], (const size_t[]){images, of->taps, of->places, 1}, 4, &parts[1 - i]));
  }
  RONDO_TRY(rondo_op_concat(program, parts, 2, last, out));
  return rondo_op_add(program, *out, plain, out);
}

/* The samples, times the mask: [n, groups, channels / groups * taps, places]. */
static rondo_status add_samples(rondo_onnx_node *node, const deformation *of, rondo_value grid, rondo_value *out) {
  const rondo_grid_sample_options linear = {RONDO_GRID_SAMPLE_OPTIONS_INIT, .mode = RONDO_INTERPOLATE_LINEAR};
  const size_t *dims = of->x->dims, images = dims[0] * of->offset_groups, groups = of->conv.groups;
  rondo_program *program;
  rondo_value mask;
  RONDO_TRY(rondo_onnx_operand(node, X, out));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  RONDO_TRY(
      rondo_onnx_reshape(node, *out, (const size_t[]){images, dims[1] / of->offset_groups, dims[2], dims[3]}, 4, out));
  RONDO_TRY(rondo_op_grid_sample(program, *out, grid, &linear, out));
  if (rondo_onnx_has_input(node, MASK)) {
    RONDO_TRY(rondo_onnx_operand(node, MASK, &mask));
    RONDO_TRY(rondo_onnx_reshape(node, mask, (const size_t[]){images, 1, of->taps, of->places}, 4, &mask));
    RONDO_TRY(rondo_op_mul(program, *out, mask, out));
  }
  return rondo_onnx_reshape(node, *out, (const size_t[]){dims[0], groups, dims[1] / groups * of->taps, of->places}, 4,
                            out);
}

static rondo_status add_deform_conv(rondo_onnx_node *node, const void *data) {
  deformation of;
  rondo_program *program;
  rondo_value y, weight, bias;
  (void)data;
  RONDO_TRY(read_deformation(node, &of));
  const size_t groups = of.conv.groups, channels = of.weight->dims[0];
  RONDO_TRY(add_grid(node, &of, &y));
  RONDO_TRY(add_samples(node, &of, y, &y));
  RONDO_TRY(rondo_onnx_operand(node, WEIGHT, &weight));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  RONDO_TRY(rondo_onnx_reshape(node, weight, (const size_t[]){groups, channels / groups, of.weight->dims[1] * of.taps},
                               3, &weight));
  RONDO_TRY(rondo_op_matmul(program, weight, y, (rondo_value){0}, &y));
  RONDO_TRY(rondo_onnx_reshape(node, y, (const size_t[]){of.x->dims[0], channels, of.out[0], of.out[1]}, 4, &y));
  if (rondo_onnx_has_input(node, BIAS)) {
    RONDO_TRY(rondo_onnx_operand(node, BIAS, &bias));
    RONDO_TRY(rondo_onnx_reshape(node, bias, (const size_t[]){channels, 1, 1}, 3, &bias));
    RONDO_TRY(rondo_op_add(program, y, bias, &y));
  }
  return rondo_onnx_set_typed(node, 0, y, of.x->type);
}

static const rondo_onnx_row rows[] = {
    {"Conv", 1, 0, 2, 3, 0, add_conv, NULL},
    {"ConvTranspose", 1, 0, 2, 3, 0, add_conv_transpose, NULL},
    {"DeformConv", 19, 0, 3, 5, 0, add_deform_conv, NULL},
};

RONDO_ONNX_FAMILY(rondo_onnx_convolution, rows);
