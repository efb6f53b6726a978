/* SPDX-License-Identifier: MIT
 * Dropout, which keeps all elements: models are imported for inference.
 */
#include <string.h>

#include "base/error.h"
#include "onnx/import/constant.h"
#include "onnx/import/node_attributes.h"
#include "onnx/operators/operator_families.h"

/* Refuses a node that drops elements: in training, with a ratio above 0. */
static rondo_status check_keeps_all(rondo_onnx_node *node) {
  const rondo_onnx_constant *training;
  const double *ratio;
  size_t count;
  if (!rondo_onnx_has_input(node, 2)) return RONDO_OK;
  RONDO_TRY(rondo_onnx_known_input(node, 2, &training));
  if (training->shape.type != RONDO_ONNX_BOOL || training->count != 1)
    return rondo_onnx_refuse(node, "input 2 (training_mode) is not one bool");
  if (*(const unsigned char *)training->elements == 0) return RONDO_OK;
  if (rondo_onnx_has_input(node, 1)) {
    RONDO_TRY(rondo_onnx_known_numbers(node, 1, &ratio, &count));
    if (count == 1 && ratio[0] == 0) return RONDO_OK;
  }
  return rondo_onnx_refuse(node, "it trains: export the model for inference, with training_mode false");
}

/* The mask is of ones. Before operator set 10, it has the type of the input; models then list it as an output without
 * using it. */
static rondo_status set_mask(rondo_onnx_node *node) {
  rondo_onnx_shape shape = *rondo_onnx_input_shape(node, 0);
  rondo_onnx_constant *mask;
  void *elements;
  if (!rondo_onnx_wants_output(node, 1)) return RONDO_OK;
  if (node->opset >= 10) shape.type = RONDO_ONNX_BOOL;
  if (shape.type != RONDO_ONNX_BOOL && shape.type != RONDO_ONNX_FLOAT)
    return rondo_onnx_refuse(node, "output 1 is neither of truth values nor of floats");
  RONDO_TRY(rondo_onnx_constant_make(node->importer, &shape, &mask, &elements));
  if (shape.type == RONDO_ONNX_BOOL && mask->bytes > 0) memset(elements, 1, mask->bytes);
  for (size_t i = 0; shape.type == RONDO_ONNX_FLOAT && i < mask->count; i++) ((float *)elements)[i] = 1;
  rondo_onnx_set_constant(node, 1, mask);
  return RONDO_OK;
}

static rondo_status add_dropout(rondo_onnx_node *node, const void *data) {
  float ratio;
  int64_t seed, is_test;
  (void)data;
  if (node->opset < 12) RONDO_TRY(rondo_onnx_attribute_float(node, "ratio", 0.5f, &ratio));
  if (node->opset < 7) RONDO_TRY(rondo_onnx_attribute_int(node, "is_test", 0, &is_test));
  if (node->opset >= 12) RONDO_TRY(rondo_onnx_attribute_int(node, "seed", 0, &seed));
  RONDO_TRY(check_keeps_all(node));
  RONDO_TRY(set_mask(node));
  rondo_onnx_set_input(node, 0, 0);
  return RONDO_OK;
}

static const rondo_onnx_row rows[] = {
    {"Dropout", 6, 11, 1, 1, 0, add_dropout, NULL},
    {"Dropout", 12, 0, 1, 3, 0, add_dropout, NULL},
};

RONDO_ONNX_FAMILY(rondo_onnx_dropout, rows);
