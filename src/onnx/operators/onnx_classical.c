/* SPDX-License-Identifier: MIT
 * Operators of classical machine learning, of the domain "ai.onnx.ml".
 */
#include <math.h>

#include "base/error.h"
#include "onnx/import/constant.h"
#include "onnx/import/node_attributes.h"
#include "onnx/operators/operator_families.h"

/* 1 above the threshold, otherwise 0, in the type of the input. */
static rondo_status add_binarizer(rondo_onnx_node *node, const void *data) {
  const rondo_onnx_shape *have = rondo_onnx_input_shape(node, 0);
  float threshold;
  rondo_program *program;
  rondo_type type;
  rondo_value x, limit;
  (void)data;
  RONDO_TRY(rondo_onnx_attribute_float(node, "threshold", 0, &threshold));
  if (rondo_onnx_shape_count(have) == 0) return rondo_onnx_set_empty(node, 0, have);
  RONDO_TRY(rondo_onnx_program_type(node->importer, have->type, &type));
  RONDO_TRY(rondo_onnx_operand(node, 0, &x));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  const bool is_integer = type == RONDO_I32 || type == RONDO_I64; /* above floor(t) is above t */
  RONDO_TRY(rondo_op_full(program, type, NULL, 0, (double)(is_integer ? floorf(threshold) : threshold), &limit));
  RONDO_TRY(rondo_op_greater(program, x, limit, &x));
  RONDO_TRY(rondo_op_cast(program, x, type, &x));
  return rondo_onnx_set_typed(node, 0, x, have->type);
}

/* Columns by their numbers; a vector becomes one row. */
static rondo_status add_feature_extractor(rondo_onnx_node *node, const void *data) {
  const rondo_onnx_shape *have = rondo_onnx_input_shape(node, 0);
  const size_t count = rondo_onnx_shape_count(rondo_onnx_input_shape(node, 1));
  rondo_program *program;
  rondo_value x, columns;
  (void)data;
  if (have->rank == 0) return rondo_onnx_refuse(node, "input 0 has no dimensions");
  RONDO_TRY(rondo_onnx_operand(node, 0, &x));
  RONDO_TRY(rondo_onnx_operand(node, 1, &columns));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  RONDO_TRY(rondo_onnx_reshape(node, columns, &count, 1, &columns));
  RONDO_TRY(rondo_op_wrap_indices(program, columns, have->dims[have->rank - 1], &columns));
  RONDO_TRY(rondo_op_index_select(program, x, columns, have->rank - 1, &x));
  if (have->rank == 1) RONDO_TRY(rondo_onnx_reshape(node, x, (const size_t[]){1, count}, 2, &x));
  return rondo_onnx_set_typed(node, 0, x, have->type);
}

static const rondo_onnx_row rows[] = {
    {"ArrayFeatureExtractor", 1, 0, 2, 2, 0, add_feature_extractor, NULL},
    {"Binarizer", 1, 0, 1, 1, 0, add_binarizer, NULL},
};

const rondo_onnx_family rondo_onnx_classical = {
    .domain = "ai.onnx.ml", .rows = rows, .count = sizeof rows / sizeof *rows};
