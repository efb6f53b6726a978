/* SPDX-License-Identifier: MIT
 * Products of matrices, and determinants.
 */
#include <string.h>

#include "base/error.h"
#include "onnx/import/constant.h"
#include "onnx/import/node_attributes.h"
#include "onnx/operators/operator_families.h"
#include "onnx/operators/quantized_operand.h"

/* The right factor. A constant that the model transposes first is read as it is stored, so that its transpose is not
 * computed at import, and an operator that looks up its rows shares the state. */
static rondo_status right_operand(rondo_onnx_node *node, bool *inout_transposes, rondo_value *out) {
  const rondo_onnx_import_value *input = &node->inputs[1];
  if (node->folds || input->transposed == NULL || input->constant->state.id != 0)
    return rondo_onnx_quantized_operand(node, 1, *inout_transposes ? NULL : inout_transposes, out);
  *inout_transposes = !*inout_transposes;
  return rondo_onnx_constant_operand(node, input->transposed, out);
}

/* As numpy.matmul: a vector is a row on the left and a column on the right, and this dimension is then removed. */
static rondo_status add_matmul(rondo_onnx_node *node, const void *data) {
  const rondo_onnx_shape *a_shape = rondo_onnx_input_shape(node, 0), *b_shape = rondo_onnx_input_shape(node, 1);
  rondo_program *program;
  rondo_type type;
  rondo_value a, b, y;
  size_t dims[RONDO_MAX_DIMENSIONS], rank;
  rondo_matmul_options options = {RONDO_MATMUL_OPTIONS_INIT};
  (void)data;
  RONDO_TRY(rondo_onnx_operand(node, 0, &a));
  RONDO_TRY(right_operand(node, &options.transpose_b, &b));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  const bool is_row = a_shape->rank == 1, is_column = b_shape->rank == 1;
  if (is_row) RONDO_TRY(rondo_onnx_reshape(node, a, (const size_t[]){1, a_shape->dims[0]}, 2, &a));
  if (is_column) RONDO_TRY(rondo_onnx_reshape(node, b, (const size_t[]){b_shape->dims[0], 1}, 2, &b));
  RONDO_TRY(rondo_op_matmul_with(program, a, b, &options, &y));
  RONDO_TRY(rondo_value_shape(program, y, &type, dims, &rank));
  if (is_column) rank--;
  if (is_row) {
    dims[rank - (is_column ? 1 : 2)] = dims[rank - 1];
    rank--;
  }
  RONDO_TRY(rondo_onnx_reshape(node, y, dims, rank, &y));
  return rondo_onnx_set_result(node, 0, y);
}

typedef struct gemm {
  float alpha, beta;
  int64_t transpose_a, transpose_b;
} gemm;

static rondo_status read_gemm(rondo_onnx_node *node, gemm *out) {
  int64_t broadcast; /* C is always broadcast */
  RONDO_TRY(rondo_onnx_attribute_float(node, "alpha", 1, &out->alpha));
  RONDO_TRY(rondo_onnx_attribute_float(node, "beta", 1, &out->beta));
  if (node->opset < 7) RONDO_TRY(rondo_onnx_attribute_int(node, "broadcast", 0, &broadcast));
  RONDO_TRY(rondo_onnx_attribute_int(node, "transA", 0, &out->transpose_a));
  return rondo_onnx_attribute_int(node, "transB", 0, &out->transpose_b);
}

/* Whether C is added within the product: one number for each column. */
static bool is_bias(const rondo_onnx_node *node, const gemm *of) {
  if (!rondo_onnx_has_input(node, 2) || of->alpha != 1 || of->beta != 1) return false;
  const rondo_onnx_shape *b = rondo_onnx_input_shape(node, 1), *c = rondo_onnx_input_shape(node, 2);
  return c->rank == 1 && b->rank == 2 && c->dims[0] == b->dims[of->transpose_b != 0 ? 0 : 1];
}

static rondo_status add_summand(rondo_onnx_node *node, rondo_program *program, const gemm *of, rondo_value *inout) {
  rondo_value c;
  if (of->alpha != 1) RONDO_TRY(rondo_op_scale(program, *inout, of->alpha, inout));
  if (!rondo_onnx_has_input(node, 2) || of->beta == 0) return RONDO_OK;
  RONDO_TRY(rondo_onnx_operand(node, 2, &c));
  if (of->beta != 1) RONDO_TRY(rondo_op_scale(program, c, of->beta, &c));
  return rondo_op_add(program, *inout, c, inout);
}

/* alpha A B + beta C */
static rondo_status add_gemm(rondo_onnx_node *node, const void *data) {
  gemm of;
  rondo_program *program;
  rondo_value a, b, y;
  (void)data;
  RONDO_TRY(read_gemm(node, &of));
  rondo_matmul_options options = {RONDO_MATMUL_OPTIONS_INIT, .transpose_a = of.transpose_a != 0,
                                  .transpose_b = of.transpose_b != 0};
  RONDO_TRY(rondo_onnx_operand(node, 0, &a));
  RONDO_TRY(right_operand(node, &options.transpose_b, &b));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  const bool has_bias = is_bias(node, &of);
  if (has_bias) RONDO_TRY(rondo_onnx_operand(node, 2, &options.bias));
  RONDO_TRY(rondo_op_matmul_with(program, a, b, &options, &y));
  if (!has_bias) RONDO_TRY(add_summand(node, program, &of, &y));
  return rondo_onnx_set_result(node, 0, y);
}

static rondo_status add_det(rondo_onnx_node *node, const void *data) {
  rondo_program *program;
  rondo_value x;
  (void)data;
  RONDO_TRY(rondo_onnx_operand(node, 0, &x));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  RONDO_TRY(rondo_op_det(program, x, &x));
  return rondo_onnx_set_result(node, 0, x);
}

static rondo_status add_einsum(rondo_onnx_node *node, const void *data) {
  const size_t count = rondo_onnx_input_count(node);
  const char *equation;
  rondo_program *program;
  rondo_value *values, y;
  (void)data;
  RONDO_TRY(rondo_onnx_attribute_text(node, "equation", "", &equation));
  RONDO_TRY(rondo_scratch_take(&node->importer->scratch, count, sizeof *values, &values));
  for (size_t i = 0; i < count; i++) RONDO_TRY(rondo_onnx_operand(node, i, &values[i]));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  RONDO_TRY(rondo_op_einsum(program, equation, values, count, &y));
  return rondo_onnx_set_result(node, 0, y);
}

static const rondo_onnx_row rows[] = {
    {"Det", 11, 0, 1, 1, 0, add_det, NULL},
    {"Einsum", 12, 0, RONDO_ONNX_ANY_NUMBER, RONDO_ONNX_ANY_NUMBER, 0, add_einsum, NULL},
    {"Gemm", 6, 0, 2, 3, 0, add_gemm, NULL},
    {"MatMul", 1, 0, 2, 2, 0, add_matmul, NULL},
};

RONDO_ONNX_FAMILY(rondo_onnx_products, rows);
