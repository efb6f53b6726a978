/* SPDX-License-Identifier: MIT
 * FlexAttention: attention whose scores and probabilities go through graphs of the model. Without graphs, it is one
 * kernel where programs have it. With them, scores are stored, unless a pattern of the compiler finds a mask in the
 * graph.
 */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "onnx/import/constant.h"
#include "onnx/import/graph_import.h"
#include "onnx/import/node_attributes.h"
#include "onnx/operators/operator_families.h"

enum { Q, K, V, OPERANDS };

/* Heads of queries share heads of keys and values in groups: q is [batch, shared, group, rows, d], and k and v are
 * [batch, shared, 1, keys, d]. */
typedef struct flex_attention {
  rondo_onnx_node *node;
  rondo_program *program;
  rondo_value values[OPERANDS];
  size_t batch, heads, shared, rows, keys;
  float scale;
  rondo_onnx_type precision; /* of scores and probabilities */
  const RondoOnnx__Graph *score_graph, *probability_graph;
} flex_attention;

static rondo_status read_attributes(flex_attention *of) {
  rondo_onnx_node *node = of->node;
  int64_t precision;
  const bool is_double = rondo_onnx_input_shape(node, Q)->type == RONDO_ONNX_DOUBLE;
  const float width = (float)rondo_onnx_input_shape(node, Q)->dims[3];
  RONDO_TRY(rondo_onnx_attribute_float(node, "scale", 1 / sqrtf(width), &of->scale));
  RONDO_TRY(rondo_onnx_attribute_int(node, "softmax_precision", is_double ? RONDO_ONNX_DOUBLE : RONDO_ONNX_FLOAT,
                                     &precision));
  RONDO_TRY(rondo_onnx_attribute_graph(node, "score_mod", &of->score_graph));
  RONDO_TRY(rondo_onnx_attribute_graph(node, "prob_mod", &of->probability_graph));
  of->precision = (rondo_onnx_type)precision;
  if (precision == RONDO_ONNX_FLOAT || precision == RONDO_ONNX_DOUBLE || precision == RONDO_ONNX_FLOAT16 ||
      precision == RONDO_ONNX_BFLOAT16)
    return RONDO_OK;
  return rondo_onnx_refuse_attribute(node, "softmax_precision", "type %lld is no float", (long long)precision);
}

static rondo_status check_shapes(flex_attention *of) {
  rondo_onnx_node *node = of->node;
  for (size_t i = 0; i < OPERANDS; i++)
    if (node->inputs[i].kind != RONDO_ONNX_TENSOR_VALUE || node->inputs[i].shape.rank != 4)
      return rondo_onnx_refuse(node, "input %zu is no tensor of 4 dimensions", i);
  const size_t *q = node->inputs[Q].shape.dims, *k = node->inputs[K].shape.dims, *v = node->inputs[V].shape.dims;
  if (k[0] != q[0] || v[0] != q[0] || k[3] != q[3] || v[1] != k[1] || v[2] != k[2] || k[1] == 0 || q[1] % k[1] != 0) {
    char text[OPERANDS][RONDO_ONNX_SHAPE_TEXT];
    return rondo_onnx_refuse(node, "the shapes %s, %s and %s of Q, K and V do not fit",
                             rondo_onnx_shape_text(text[Q], &node->inputs[Q].shape),
                             rondo_onnx_shape_text(text[K], &node->inputs[K].shape),
                             rondo_onnx_shape_text(text[V], &node->inputs[V].shape));
  }
  of->batch = q[0];
  of->heads = q[1];
  of->rows = q[2];
  of->shared = k[1];
  of->keys = k[2];
  return RONDO_OK;
}

/* Graphs ----------------------------------------------------------------------------------------------------------- */

/* What the graph makes of the scores or probabilities, [batch, heads, rows, keys], of the precision. */
static rondo_status apply_graph(flex_attention *of, const RondoOnnx__Graph *graph, const char *name,
                                rondo_value *inout) {
  rondo_onnx_node *node = of->node;
  rondo_onnx_import_value result,
      value = {.kind = RONDO_ONNX_TENSOR_VALUE,
               .result = *inout,
               .shape = {.type = of->precision, .rank = 4, .dims = {of->batch, of->heads, of->rows, of->keys}}};
  rondo_onnx_inner_node inner;
  if (graph == NULL) return RONDO_OK;
  if (graph->n_input != 1 || graph->n_output != 1)
    return rondo_onnx_refuse_attribute(node, name, "it has %zu inputs and %zu outputs, not one of each", graph->n_input,
                                       graph->n_output);
  RONDO_TRY(rondo_onnx_import_graph(node->importer, graph, &value, 1, &result));
  node->is_unknown = result.kind == RONDO_ONNX_UNKNOWN;
  if (node->is_unknown) return RONDO_OK;
  if (result.kind != RONDO_ONNX_TENSOR_VALUE || result.shape.type != value.shape.type || result.shape.rank != 4 ||
      memcmp(result.shape.dims, value.shape.dims, 4 * sizeof *value.shape.dims) != 0)
    return rondo_onnx_refuse_attribute(node, name, "its output has another type or shape than its input");
  RONDO_TRY(rondo_onnx_inner_begin(node, &result, 1, &inner));
  inner.node.folds = false; /* a constant becomes a value of the program */
  return rondo_onnx_operand(&inner.node, 0, inout);
}

/* Steps ------------------------------------------------------------------------------------------------------------ */

static rondo_status add_scores(flex_attention *of, rondo_type type, rondo_value *out) {
  const rondo_matmul_options transposed = {RONDO_MATMUL_OPTIONS_INIT, .transpose_b = true};
  const size_t dims[] = {of->batch, of->heads, of->rows, of->keys};
  const float root = sqrtf(of->scale);
  rondo_value q, k;
  if (!(of->scale >= 0)) return rondo_onnx_refuse_attribute(of->node, "scale", "it is %g", (double)of->scale);
  RONDO_TRY(rondo_op_scale(of->program, of->values[Q], root, &q));
  RONDO_TRY(rondo_op_scale(of->program, of->values[K], root, &k));
  RONDO_TRY(rondo_op_matmul_with(of->program, q, k, &transposed, out));
  RONDO_TRY(rondo_onnx_reshape(of->node, *out, dims, 4, out));
  return rondo_op_cast(of->program, *out, type, out);
}

static rondo_status add_product(flex_attention *of, rondo_value probabilities, rondo_type type, rondo_value *out) {
  const size_t group = of->heads / of->shared, width = rondo_onnx_input_shape(of->node, V)->dims[3];
  const size_t wide[] = {of->batch, of->shared, group, of->rows, of->keys};
  const size_t dims[] = {of->batch, of->heads, of->rows, width};
  rondo_value v;
  RONDO_TRY(rondo_op_cast(of->program, of->values[V], type, &v));
  RONDO_TRY(rondo_onnx_reshape(of->node, probabilities, wide, 5, &probabilities));
  RONDO_TRY(rondo_op_matmul(of->program, probabilities, v, (rondo_value){0}, out));
  return rondo_onnx_reshape(of->node, *out, dims, 4, out);
}

static rondo_status attend_in_steps(flex_attention *of, rondo_type result, rondo_value *out) {
  rondo_type type;
  rondo_value scores;
  RONDO_TRY(rondo_onnx_program_type(of->node->importer, of->precision, &type));
  RONDO_TRY(add_scores(of, type, &scores));
  RONDO_TRY(apply_graph(of, of->score_graph, "score_mod", &scores));
  if (of->node->is_unknown) return RONDO_OK;
  RONDO_TRY(rondo_op_softmax(of->program, scores, &scores));
  RONDO_TRY(apply_graph(of, of->probability_graph, "prob_mod", &scores));
  if (of->node->is_unknown) return RONDO_OK;
  RONDO_TRY(add_product(of, scores, type, out));
  return rondo_op_cast(of->program, *out, result, out);
}

/* Whether rondo_op_attention computes it. */
static bool is_kernel(const flex_attention *of) {
  const size_t width = of->node->inputs[Q].shape.dims[3];
  return of->score_graph == NULL && of->probability_graph == NULL && width <= 256 && of->scale > 0 &&
         of->node->inputs[V].shape.dims[3] == width;
}

static rondo_status split_heads(flex_attention *of) {
  for (size_t i = 0; i < OPERANDS; i++) {
    const size_t *have = of->node->inputs[i].shape.dims;
    const size_t dims[] = {have[0], of->shared, have[1] / of->shared, have[2], have[3]};
    RONDO_TRY(rondo_onnx_reshape(of->node, of->values[i], dims, 5, &of->values[i]));
  }
  return RONDO_OK;
}

static rondo_status add_flex_attention(rondo_onnx_node *node, const void *data) {
  flex_attention of = {.node = node};
  rondo_attention_options options = {RONDO_ATTENTION_OPTIONS_INIT};
  rondo_type type;
  rondo_value y;
  (void)data;
  RONDO_TRY(check_shapes(&of));
  RONDO_TRY(read_attributes(&of));
  RONDO_TRY(rondo_onnx_program_type(node->importer, node->inputs[Q].shape.type, &type));
  for (size_t i = 0; i < OPERANDS; i++) RONDO_TRY(rondo_onnx_operand(node, i, &of.values[i]));
  RONDO_TRY(rondo_onnx_node_program(node, &of.program));
  options.scale = of.scale;
  if (is_kernel(&of)) {
    RONDO_TRY(rondo_op_attention(of.program, of.values[Q], of.values[K], of.values[V], &options, &y));
  } else {
    RONDO_TRY(split_heads(&of));
    RONDO_TRY(attend_in_steps(&of, type, &y));
  }
  return node->is_unknown ? RONDO_OK : rondo_onnx_set_typed(node, 0, y, node->inputs[V].shape.type);
}

static const rondo_onnx_row rows[] = {
    {"FlexAttention", 1, 0, OPERANDS, OPERANDS, RONDO_ONNX_ROW_ONCE, add_flex_attention, NULL},
};

const rondo_onnx_family rondo_onnx_flex_attention = {
    .domain = "ai.onnx.preview", .rows = rows, .count = sizeof rows / sizeof *rows};
