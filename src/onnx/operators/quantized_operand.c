/* SPDX-License-Identifier: MIT
 * Constants of 8-bit integers as operands.
 */
#include "onnx/operators/quantized_operand.h"

#include <string.h>

#include "onnx/import/constant.h"
#include "onnx/import/folding.h"

/* Keeping ---------------------------------------------------------------------------------------------------------- */

static bool is_byte(rondo_onnx_type type) { return type == RONDO_ONNX_INT8 || type == RONDO_ONNX_UINT8; }

/* A constant that depends on no values that the caller gives. */
static bool is_fixed(const rondo_onnx_node *node, size_t index) {
  const rondo_onnx_constant *constant = node->inputs[index].constant;
  return constant != NULL && constant->given == 0;
}

/* A zero of 0 is left out, so that no run subtracts it. */
static rondo_status find_zero(rondo_onnx_node *node, rondo_onnx_constant **out) {
  const rondo_onnx_constant *known;
  *out = NULL;
  if (!rondo_onnx_has_input(node, 2)) return RONDO_OK;
  RONDO_TRY(rondo_onnx_known_input(node, 2, &known));
  const unsigned char *bytes = known->elements;
  for (size_t i = 0; i < known->bytes; i++)
    if (bytes[i] != 0) *out = node->inputs[2].constant;
  return RONDO_OK;
}

rondo_status rondo_onnx_keep_quantized(rondo_onnx_node *node, const rondo_quantize_linear_options *given) {
  const rondo_onnx_shape *x = rondo_onnx_input_shape(node, 0), *scale = rondo_onnx_input_shape(node, 1);
  rondo_onnx_quantized *kept;
  const bool has_zero = rondo_onnx_has_input(node, 2);
  if (!node->folds || !is_byte(x->type) || scale->type != RONDO_ONNX_FLOAT || x->rank < 2 ||
      x->rank > RONDO_MAX_DIMENSIONS || given->block != 0 || given->type != RONDO_F32)
    return RONDO_OK;
  if (!is_fixed(node, 0) || !is_fixed(node, 1) || (has_zero && !is_fixed(node, 2))) return RONDO_OK;
  RONDO_TRY(rondo_scratch_take(&node->importer->scratch, 1, sizeof *kept, &kept));
  *kept = (rondo_onnx_quantized){
      .x = node->inputs[0].constant, .scale = node->inputs[1].constant, .dimension = given->dimension};
  RONDO_TRY(find_zero(node, &kept->zero));
  if (node->message->n_output > 0) node->outputs[0].quantized = kept;
  return RONDO_OK;
}

/* CUDA would dequantise in each run, so there floats are read, if computing them stays within the limit of constants.
 */
static bool reads_floats(const rondo_onnx_node *node, size_t index) {
  return node->importer->options->for_cuda &&
         rondo_onnx_constant_fits(node->importer, node->inputs[index].constant->bytes);
}

/* Reading ---------------------------------------------------------------------------------------------------------- */

static rondo_onnx_import_value value_of(rondo_onnx_constant *constant) {
  return (rondo_onnx_import_value){.kind = RONDO_ONNX_TENSOR_VALUE, .shape = constant->shape, .constant = constant};
}

static rondo_status add_transposed(rondo_onnx_node *inner) {
  rondo_program *program;
  rondo_value x;
  RONDO_TRY(rondo_onnx_operand(inner, 0, &x));
  RONDO_TRY(rondo_onnx_node_program(inner, &program));
  RONDO_TRY(rondo_op_permute(program, x, (const size_t[]){1, 0}, &x));
  return rondo_onnx_set_result(inner, 0, x);
}

/* The transposed matrix, which is computed at import. */
static rondo_status transposed_operand(rondo_onnx_node *node, rondo_onnx_constant *constant, rondo_value *out) {
  rondo_onnx_import_value input = value_of(constant);
  rondo_onnx_inner_node inner;
  RONDO_TRY(rondo_onnx_inner_begin(node, &input, 1, &inner));
  RONDO_TRY(add_transposed(&inner.node));
  return rondo_onnx_inner_operand(node, &inner, out);
}

static rondo_status parameter_operand(rondo_onnx_node *node, rondo_onnx_constant *constant, rondo_value *out) {
  *out = (rondo_value){0};
  if (constant == NULL) return RONDO_OK;
  RONDO_TRY(rondo_onnx_constant_operand(node, constant, out));
  return constant->count == 1 ? rondo_onnx_reshape(node, *out, NULL, 0, out) : RONDO_OK;
}

rondo_status rondo_onnx_quantized_operand(rondo_onnx_node *node, size_t index, bool *out_transposed, rondo_value *out) {
  const rondo_onnx_quantized *of = node->inputs[index].quantized;
  rondo_program *program;
  rondo_value x, scale, zero;
  if (out_transposed != NULL) *out_transposed = false;
  if (of == NULL || node->folds || reads_floats(node, index) || (out_transposed != NULL && of->x->shape.rank != 2))
    return rondo_onnx_operand(node, index, out);
  const bool transposes = out_transposed != NULL;
  if (transposes)
    RONDO_TRY(transposed_operand(node, of->x, &x));
  else
    RONDO_TRY(rondo_onnx_constant_operand(node, of->x, &x));
  RONDO_TRY(parameter_operand(node, of->scale, &scale));
  RONDO_TRY(parameter_operand(node, of->zero, &zero));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  const rondo_quantize_linear_options options = {RONDO_QUANTIZE_LINEAR_OPTIONS_INIT,
                                                 .dimension = transposes ? 1 - of->dimension : of->dimension};
  if (transposes) *out_transposed = true;
  return rondo_op_dequantize_linear(program, x, scale, zero, &options, out);
}

rondo_status rondo_onnx_integer_matrix(rondo_onnx_node *node, size_t index, bool *out_transposed, rondo_value *out) {
  const rondo_onnx_shape *shape = rondo_onnx_input_shape(node, index);
  *out_transposed = !node->folds && is_byte(shape->type) && shape->rank == 2 && is_fixed(node, index) &&
                    rondo_onnx_shape_count(shape) > 0;
  if (!*out_transposed) return rondo_onnx_operand(node, index, out);
  return transposed_operand(node, node->inputs[index].constant, out);
}
