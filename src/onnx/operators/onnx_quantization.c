/* SPDX-License-Identifier: MIT
 * Conversions between floats and 8-bit integers, and products and convolutions of these.
 */
#include <string.h>

#include <rondo/quantized.h>

#include "base/error.h"
#include "onnx/import/constant.h"
#include "onnx/import/node_attributes.h"
#include "onnx/import/widened_value.h"
#include "onnx/operators/conv_attributes.h"
#include "onnx/operators/operator_families.h"
#include "onnx/operators/quantized_operand.h"

/* A scale or zero point, which is a scalar if it has one element; no value where it is left out. */
static rondo_status parameter_operand(rondo_onnx_node *node, size_t index, rondo_value *out) {
  *out = (rondo_value){0};
  if (!rondo_onnx_has_input(node, index)) return RONDO_OK;
  const rondo_onnx_shape *shape = rondo_onnx_input_shape(node, index);
  RONDO_TRY(rondo_onnx_operand(node, index, out));
  return rondo_onnx_shape_count(shape) == 1 ? rondo_onnx_reshape(node, *out, NULL, 0, out) : RONDO_OK;
}

static rondo_status scale_operand(rondo_onnx_node *node, size_t index, rondo_value *out) {
  rondo_program *program;
  RONDO_TRY(parameter_operand(node, index, out));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  return rondo_op_cast(program, *out, RONDO_F32, out);
}

/* QuantizeLinear, DequantizeLinear --------------------------------------------------------------------------------- */

/* The type in which numbers of this type are quantised: integers as they are held, floats as F32, which is then cast.
 */
static rondo_status quantized_type(const rondo_onnx_node *node, rondo_onnx_type type, rondo_type *out) {
  RONDO_TRY(rondo_onnx_held_type(node->importer, type, out));
  if (*out == RONDO_F8_E4M3 || *out == RONDO_F8_E5M2) *out = RONDO_F32;
  return RONDO_OK;
}

/* The dimension of scales; `type` is that of the result, if the node does not say another. */
static rondo_status read_scaling(rondo_onnx_node *node, rondo_onnx_type *inout_type,
                                 rondo_onnx_float_rounding *out_rounding, rondo_quantize_linear_options *out) {
  const rondo_onnx_shape *have = rondo_onnx_input_shape(node, 0), *scale = rondo_onnx_input_shape(node, 1);
  int64_t axis, block, type, saturate, precision;
  RONDO_TRY(rondo_onnx_attribute_int(node, "axis", 1, &axis));
  RONDO_TRY(rondo_onnx_attribute_int(node, "block_size", 0, &block));
  RONDO_TRY(rondo_onnx_attribute_int(node, "output_dtype", 0, &type));
  RONDO_TRY(rondo_onnx_attribute_int(node, "saturate", 1, &saturate));                  /* of 8-bit floats */
  RONDO_TRY(rondo_onnx_attribute_int(node, "precision", RONDO_ONNX_FLOAT, &precision)); /* programs divide floats */
  if (type != 0) *inout_type = (rondo_onnx_type)type;
  *out_rounding = (rondo_onnx_float_rounding){.overflows = saturate == 0, .mode = RONDO_ONNX_TO_NEAREST};
  *out = (rondo_quantize_linear_options){RONDO_QUANTIZE_LINEAR_OPTIONS_INIT};
  RONDO_TRY(quantized_type(node, *inout_type, &out->type));
  if (block < 0) return rondo_onnx_refuse_attribute(node, "block_size", "it is negative");
  out->block = (size_t)block;
  return rondo_onnx_shape_count(scale) == 1 ? RONDO_OK : rondo_onnx_axis(axis, have->rank, &out->dimension);
}

/* A value in the type in which numbers of its type are quantised. */
static rondo_status as_quantized(rondo_onnx_node *node, rondo_onnx_type type, rondo_value *inout) {
  rondo_program *program;
  rondo_type held;
  if (inout->id == 0) return RONDO_OK;
  RONDO_TRY(quantized_type(node, type, &held));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  return rondo_op_cast(program, *inout, held, inout);
}

static rondo_onnx_type quantized_zero_type(const rondo_onnx_node *node) {
  return rondo_onnx_has_input(node, 2) ? rondo_onnx_input_shape(node, 2)->type : RONDO_ONNX_UINT8;
}

/* The result has the type of the zero point. */
static rondo_status add_quantize(rondo_onnx_node *node, const void *data) {
  rondo_onnx_type type = quantized_zero_type(node);
  const rondo_onnx_type of_zero = type;
  rondo_onnx_float_rounding rounding;
  rondo_quantize_linear_options options;
  rondo_program *program;
  rondo_value x, scale, zero, y;
  (void)data;
  RONDO_TRY(read_scaling(node, &type, &rounding, &options));
  RONDO_TRY(rondo_onnx_operand(node, 0, &x));
  RONDO_TRY(scale_operand(node, 1, &scale));
  RONDO_TRY(parameter_operand(node, 2, &zero));
  RONDO_TRY(as_quantized(node, of_zero, &zero));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  if (rondo_onnx_input_shape(node, 0)->type == RONDO_ONNX_INT32) RONDO_TRY(rondo_op_cast(program, x, RONDO_F32, &x));
  RONDO_TRY(rondo_op_quantize_linear(program, x, scale, zero, &options, &y));
  if (options.type == RONDO_F32)
    RONDO_TRY(rondo_onnx_cast_value(program, RONDO_ONNX_FLOAT, type, y, &rounding, &y));
  else
    RONDO_TRY(rondo_onnx_saturate_value(program, type, y, &y));
  return rondo_onnx_set_typed(node, 0, y, type);
}

/* The result has the type of the scale. */
static rondo_status add_dequantize(rondo_onnx_node *node, const void *data) {
  const rondo_onnx_type have = rondo_onnx_input_shape(node, 0)->type;
  rondo_onnx_type type = rondo_onnx_input_shape(node, 1)->type;
  rondo_onnx_float_rounding rounding;
  rondo_quantize_linear_options options;
  rondo_program *program;
  rondo_value x, scale, zero, y;
  (void)data;
  RONDO_TRY(read_scaling(node, &type, &rounding, &options));
  RONDO_TRY(rondo_onnx_operand(node, 0, &x));
  RONDO_TRY(as_quantized(node, have, &x));
  RONDO_TRY(scale_operand(node, 1, &scale));
  RONDO_TRY(parameter_operand(node, 2, &zero));
  RONDO_TRY(as_quantized(node, have, &zero));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  RONDO_TRY(rondo_op_dequantize_linear(program, x, scale, zero, &options, &y));
  RONDO_TRY(rondo_onnx_set_typed(node, 0, y, type));
  return rondo_onnx_keep_quantized(node, &options);
}

static rondo_status add_dynamic_quantize(rondo_onnx_node *node, const void *data) {
  rondo_program *program;
  rondo_value x, y, scale, zero;
  (void)data;
  RONDO_TRY(rondo_onnx_operand(node, 0, &x));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  RONDO_TRY(rondo_op_dynamic_quantize_linear(program, x, &y, &scale, &zero));
  RONDO_TRY(rondo_onnx_set_result(node, 0, y));
  RONDO_TRY(rondo_onnx_set_result(node, 1, scale));
  return rondo_onnx_set_result(node, 2, zero);
}

/* Integers --------------------------------------------------------------------------------------------------------- */

/* Adds the product of the inputs a and b, or the convolution of a with b. */
static rondo_status add_product(rondo_onnx_node *node, size_t a_input, size_t b_input, const rondo_conv_options *conv,
                                rondo_integer_product_options *options) {
  rondo_program *program;
  rondo_value a, b, y;
  RONDO_TRY(rondo_onnx_operand(node, a_input, &a));
  RONDO_TRY(conv == NULL ? rondo_onnx_integer_matrix(node, b_input, &options->transpose_b, &b)
                         : rondo_onnx_operand(node, b_input, &b));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  RONDO_TRY(conv == NULL ? rondo_op_matmul_integer(program, a, b, options, &y)
                         : rondo_op_conv_integer(program, a, b, conv, options, &y));
  return rondo_onnx_set_result(node, 0, y);
}

static rondo_status read_zeros(rondo_onnx_node *node, rondo_integer_product_options *out) {
  *out = (rondo_integer_product_options){RONDO_INTEGER_PRODUCT_OPTIONS_INIT};
  RONDO_TRY(parameter_operand(node, 2, &out->a_zero));
  return parameter_operand(node, 3, &out->b_zero);
}

static rondo_status add_matmul_integer(rondo_onnx_node *node, const void *data) {
  rondo_integer_product_options options;
  (void)data;
  RONDO_TRY(read_zeros(node, &options));
  return add_product(node, 0, 1, NULL, &options);
}

static rondo_status add_conv_integer(rondo_onnx_node *node, const void *data) {
  rondo_integer_product_options options;
  rondo_conv_options conv;
  (void)data;
  RONDO_TRY(rondo_onnx_read_conv(node, 1, &conv));
  RONDO_TRY(read_zeros(node, &options));
  return add_product(node, 0, 1, &conv, &options);
}

/* QLinearMatMul, QLinearConv --------------------------------------------------------------------------------------- */

/* Both have inputs a, its scale and zero point, b and those of it, and scale and zero point of the result. */
enum { A, A_SCALE, A_ZERO, B, B_SCALE, B_ZERO, Y_SCALE, Y_ZERO, BIAS };

/* Scale of a * scale of b / scale of the result, which is computed at import if these are constants. */
static rondo_status add_scale(rondo_onnx_node *inner) {
  rondo_program *program;
  rondo_value a, b, y;
  RONDO_TRY(scale_operand(inner, 0, &a));
  RONDO_TRY(scale_operand(inner, 1, &b));
  RONDO_TRY(scale_operand(inner, 2, &y));
  RONDO_TRY(rondo_onnx_node_program(inner, &program));
  RONDO_TRY(rondo_op_mul(program, a, b, &a));
  RONDO_TRY(rondo_op_div(program, a, y, &y));
  return rondo_onnx_set_typed(inner, 0, y, RONDO_ONNX_FLOAT);
}

static rondo_status read_product(rondo_onnx_node *node, rondo_integer_product_options *out) {
  rondo_onnx_import_value scales[] = {node->inputs[A_SCALE], node->inputs[B_SCALE], node->inputs[Y_SCALE]};
  rondo_onnx_inner_node inner;
  *out = (rondo_integer_product_options){RONDO_INTEGER_PRODUCT_OPTIONS_INIT};
  RONDO_TRY(rondo_onnx_program_type(node->importer, rondo_onnx_input_shape(node, Y_ZERO)->type, &out->result_type));
  RONDO_TRY(rondo_onnx_inner_begin(node, scales, 3, &inner));
  RONDO_TRY(add_scale(&inner.node));
  RONDO_TRY(rondo_onnx_inner_operand(node, &inner, &out->scale));
  RONDO_TRY(parameter_operand(node, A_ZERO, &out->a_zero));
  RONDO_TRY(parameter_operand(node, B_ZERO, &out->b_zero));
  return parameter_operand(node, Y_ZERO, &out->result_zero);
}

static rondo_status add_quantized_matmul(rondo_onnx_node *node, const void *data) {
  rondo_integer_product_options options;
  (void)data;
  RONDO_TRY(read_product(node, &options));
  return add_product(node, A, B, NULL, &options);
}

static rondo_status add_quantized_conv(rondo_onnx_node *node, const void *data) {
  rondo_integer_product_options options;
  rondo_conv_options conv;
  (void)data;
  RONDO_TRY(rondo_onnx_read_conv(node, B, &conv));
  RONDO_TRY(read_product(node, &options));
  if (rondo_onnx_has_input(node, BIAS)) RONDO_TRY(rondo_onnx_operand(node, BIAS, &options.bias));
  return add_product(node, A, B, &conv, &options);
}

/* The table -------------------------------------------------------------------------------------------------------- */

static const rondo_onnx_row rows[] = {
    {"ConvInteger", 10, 0, 2, 4, 0, add_conv_integer, NULL},
    {"DequantizeLinear", 10, 0, 2, 3, RONDO_ONNX_ROW_WIDE, add_dequantize, NULL},
    {"DynamicQuantizeLinear", 11, 0, 1, 1, 0, add_dynamic_quantize, NULL},
    {"MatMulInteger", 10, 0, 2, 4, 0, add_matmul_integer, NULL},
    {"QLinearConv", 10, 0, 8, 9, 0, add_quantized_conv, NULL},
    {"QLinearMatMul", 10, 0, 8, 8, 0, add_quantized_matmul, NULL},
    {"QuantizeLinear", 10, 0, 2, 3, RONDO_ONNX_ROW_WIDE, add_quantize, NULL},
};

RONDO_ONNX_FAMILY(rondo_onnx_quantization, rows);
