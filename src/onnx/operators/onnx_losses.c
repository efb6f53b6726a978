/* SPDX-License-Identifier: MIT
 * Losses of classes: the logarithm of the probability of each target, weighted and reduced.
 */
#include <string.h>

#include "base/error.h"
#include "onnx/import/constant.h"
#include "onnx/import/node_attributes.h"
#include "onnx/operators/operator_families.h"

typedef enum loss_reduction { LOSS_NONE, LOSS_MEAN, LOSS_SUM } loss_reduction;

/* A loss over [images, classes, places]; places: the product of the sizes behind the classes. */
typedef struct class_loss {
  rondo_onnx_node *node;
  rondo_program *program;
  size_t images, classes, places;
  loss_reduction reduction;
  bool ignores;
  int64_t ignored; /* this target has a loss and a weight of 0 */
} class_loss;

static rondo_status read_reduction(rondo_onnx_node *node, loss_reduction *out) {
  static const char *const names[] = {"none", "mean", "sum"};
  const char *name;
  RONDO_TRY(rondo_onnx_attribute_text(node, "reduction", "mean", &name));
  for (size_t i = 0; i < 3; i++) {
    *out = (loss_reduction)i;
    if (strcmp(name, names[i]) == 0) return RONDO_OK;
  }
  return rondo_onnx_refuse_attribute(node, "reduction", "it is '%s'", name);
}

static rondo_status check_shapes(rondo_onnx_node *node) {
  const rondo_onnx_shape *scores = rondo_onnx_input_shape(node, 0), *target = rondo_onnx_input_shape(node, 1);
  const bool has_rank = scores->rank >= 2 && target->rank + 1 == scores->rank;
  if (!has_rank || scores->dims[0] != target->dims[0] ||
      memcmp(scores->dims + 2, target->dims + 1, (scores->rank - 2) * sizeof *scores->dims) != 0)
    return rondo_onnx_refuse(node, "targets need the shape of the scores without its dimension 1");
  if (!rondo_onnx_has_input(node, 2)) return RONDO_OK;
  const rondo_onnx_shape *weights = rondo_onnx_input_shape(node, 2);
  if (weights->rank == 1 && weights->dims[0] == scores->dims[1]) return RONDO_OK;
  return rondo_onnx_refuse(node, "input 2 has not one weight for each of %zu classes", scores->dims[1]);
}

static rondo_status begin(rondo_onnx_node *node, class_loss *out) {
  *out = (class_loss){.node = node, .ignores = rondo_onnx_has_attribute(node, "ignore_index")};
  RONDO_TRY(rondo_onnx_attribute_int(node, "ignore_index", 0, &out->ignored));
  RONDO_TRY(read_reduction(node, &out->reduction));
  RONDO_TRY(check_shapes(node));
  const rondo_onnx_shape *scores = rondo_onnx_input_shape(node, 0);
  out->images = scores->dims[0];
  out->classes = scores->dims[1];
  out->places = 1;
  for (size_t i = 2; i < scores->rank; i++) out->places *= scores->dims[i];
  return rondo_onnx_node_program(node, &out->program);
}

/* The targets as [images, 1, places]; where they are ignored, 0. *out_ignored is BOOL, or no value. */
static rondo_status add_targets(class_loss *of, rondo_value *out, rondo_value *out_ignored) {
  rondo_type type;
  rondo_value ignored, zero;
  RONDO_TRY(rondo_onnx_program_type(of->node->importer, rondo_onnx_input_shape(of->node, 1)->type, &type));
  RONDO_TRY(rondo_onnx_operand_as(of->node, 1, (const size_t[]){of->images, 1, of->places}, 3, out));
  *out_ignored = (rondo_value){0};
  if (!of->ignores) return RONDO_OK;
  RONDO_TRY(rondo_op_full(of->program, type, NULL, 0, (double)of->ignored, &ignored));
  RONDO_TRY(rondo_op_full(of->program, type, NULL, 0, 0, &zero));
  RONDO_TRY(rondo_op_equal(of->program, *out, ignored, out_ignored));
  return rondo_op_select(of->program, *out_ignored, zero, *out, out);
}

/* The weight of each target, [images, 1, places]; no value if all are 1. */
static rondo_status add_weights(class_loss *of, rondo_value targets, rondo_value ignored, rondo_value *out) {
  const size_t dims[3] = {of->images, 1, of->places}, count = of->images * of->places;
  rondo_type type;
  rondo_value zero;
  RONDO_TRY(rondo_onnx_program_type(of->node->importer, rondo_onnx_input_shape(of->node, 0)->type, &type));
  *out = (rondo_value){0};
  if (rondo_onnx_has_input(of->node, 2)) {
    RONDO_TRY(rondo_onnx_operand(of->node, 2, out));
    RONDO_TRY(rondo_onnx_reshape(of->node, targets, &count, 1, &targets));
    RONDO_TRY(rondo_op_index_select(of->program, *out, targets, 0, out));
    RONDO_TRY(rondo_onnx_reshape(of->node, *out, dims, 3, out));
  } else if (ignored.id != 0) {
    RONDO_TRY(rondo_op_full(of->program, type, dims, 3, 1, out));
  }
  if (ignored.id == 0) return RONDO_OK;
  RONDO_TRY(rondo_op_full(of->program, type, NULL, 0, 0, &zero));
  return rondo_op_select(of->program, ignored, zero, *out, out);
}

static rondo_status reduce(class_loss *of, rondo_value loss, rondo_value weights, rondo_value *out) {
  rondo_value sum;
  *out = loss;
  if (of->reduction == LOSS_NONE) return RONDO_OK;
  if (of->reduction == LOSS_MEAN && weights.id == 0) return rondo_op_mean(of->program, loss, NULL, 0, false, out);
  RONDO_TRY(rondo_op_sum(of->program, loss, NULL, 0, false, out));
  if (of->reduction == LOSS_SUM) return RONDO_OK;
  RONDO_TRY(rondo_op_sum(of->program, weights, NULL, 0, false, &sum));
  return rondo_op_div(of->program, *out, sum, out);
}

/* The loss of the logarithms of probabilities, [images, classes, places]. */
static rondo_status set_loss(class_loss *of, rondo_value logarithms) {
  rondo_value targets, ignored, weights, loss, zero;
  rondo_type type;
  RONDO_TRY(add_targets(of, &targets, &ignored));
  RONDO_TRY(rondo_op_gather(of->program, logarithms, targets, 1, &loss));
  RONDO_TRY(rondo_op_neg(of->program, loss, &loss));
  if (ignored.id != 0) { /* the loss of class 0 may be infinite, and a weight of 0 would make it NaN */
    RONDO_TRY(rondo_onnx_program_type(of->node->importer, rondo_onnx_input_shape(of->node, 0)->type, &type));
    RONDO_TRY(rondo_op_full(of->program, type, NULL, 0, 0, &zero));
    RONDO_TRY(rondo_op_select(of->program, ignored, zero, loss, &loss));
  }
  RONDO_TRY(add_weights(of, targets, ignored, &weights));
  if (weights.id != 0) RONDO_TRY(rondo_op_mul(of->program, loss, weights, &loss));
  RONDO_TRY(reduce(of, loss, weights, &loss));
  rondo_onnx_shape shape = *rondo_onnx_input_shape(of->node, 1);
  shape.type = rondo_onnx_input_shape(of->node, 0)->type;
  if (of->reduction != LOSS_NONE) shape.rank = 0;
  return rondo_onnx_set_shaped(of->node, 0, loss, &shape);
}

static rondo_status add_negative_log_likelihood(rondo_onnx_node *node, const void *data) {
  class_loss of;
  rondo_value scores;
  (void)data;
  RONDO_TRY(begin(node, &of));
  RONDO_TRY(rondo_onnx_operand_as(node, 0, (const size_t[]){of.images, of.classes, of.places}, 3, &scores));
  return set_loss(&of, scores);
}

static rondo_status add_softmax_cross_entropy(rondo_onnx_node *node, const void *data) {
  const rondo_onnx_shape *have = rondo_onnx_input_shape(node, 0);
  class_loss of;
  rondo_value scores, logarithms;
  (void)data;
  RONDO_TRY(begin(node, &of));
  RONDO_TRY(rondo_onnx_operand_as(node, 0, (const size_t[]){of.images, of.classes, of.places}, 3, &scores));
  RONDO_TRY(rondo_op_transpose(of.program, scores, 1, 2, &scores));
  RONDO_TRY(rondo_op_log_softmax(of.program, scores, &logarithms));
  RONDO_TRY(rondo_op_transpose(of.program, logarithms, 1, 2, &logarithms));
  RONDO_TRY(set_loss(&of, logarithms));
  return rondo_onnx_set_shaped(node, 1, logarithms, have);
}

static const rondo_onnx_row rows[] = {
    {"NegativeLogLikelihoodLoss", 12, 0, 2, 3, 0, add_negative_log_likelihood, NULL},
    {"SoftmaxCrossEntropyLoss", 12, 0, 2, 3, 0, add_softmax_cross_entropy, NULL},
};

RONDO_ONNX_FAMILY(rondo_onnx_losses, rows);
