/* SPDX-License-Identifier: MIT
 * Attention and RotaryEmbedding. Inputs of three dimensions have the heads side by side in their rows.
 */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "onnx/import/constant.h"
#include "onnx/import/node_attributes.h"
#include "onnx/operators/operator_families.h"

/* Heads ------------------------------------------------------------------------------------------------------------ */

/* [b, t, heads d] -> [b, heads, t, d] */
static rondo_status split_heads(rondo_onnx_node *node, size_t heads, const rondo_onnx_shape *have, rondo_value *inout) {
  rondo_program *program;
  if (heads == 0 || have->dims[2] % heads != 0)
    return rondo_onnx_refuse(node, "rows of %zu elements are not those of %zu heads", have->dims[2], heads);
  const size_t dims[] = {have->dims[0], have->dims[1], heads, have->dims[2] / heads};
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  RONDO_TRY(rondo_onnx_reshape(node, *inout, dims, 4, inout));
  return rondo_op_transpose(program, *inout, 1, 2, inout);
}

/* The inverse, to this shape. */
static rondo_status join_heads(rondo_onnx_node *node, const size_t dims[3], rondo_value *inout) {
  rondo_program *program;
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  RONDO_TRY(rondo_op_transpose(program, *inout, 1, 2, inout));
  return rondo_onnx_reshape(node, *inout, dims, 3, inout);
}

/* An input as [b, heads, t, d]; `heads` is an attribute, for three dimensions. */
static rondo_status heads_operand(rondo_onnx_node *node, size_t index, int64_t heads, rondo_value *out,
                                  size_t dims[4]) {
  const rondo_onnx_shape *have = rondo_onnx_input_shape(node, index);
  rondo_program *program;
  rondo_type type;
  size_t rank;
  if (have->rank != 3 && have->rank != 4)
    return rondo_onnx_refuse(node, "input %zu has %zu dimensions, not 3 or 4", index, have->rank);
  RONDO_TRY(rondo_onnx_operand(node, index, out));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  if (have->rank == 3) RONDO_TRY(split_heads(node, heads > 0 ? (size_t)heads : 0, have, out));
  size_t shape[RONDO_MAX_DIMENSIONS];
  RONDO_TRY(rondo_value_shape(program, *out, &type, shape, &rank));
  memcpy(dims, shape, 4 * sizeof *dims);
  return RONDO_OK;
}

/* Attention -------------------------------------------------------------------------------------------------------- */

enum { Q, K, V, MASK, PAST_KEY, PAST_VALUE, LENGTHS };

typedef struct attention_node {
  rondo_onnx_node *node;
  int64_t q_heads, kv_heads, is_causal;
  rondo_value q, k, v;
  size_t q_dims[4], k_dims[4], v_dims[4]; /* those of k and v are without the past */
  size_t past, all;                       /* rows of k */
  float softcap;
  int64_t score_stage, left_window, right_window; /* windows: -1: none */
  rondo_attention_options options;
} attention_node;

static rondo_status read_attention(attention_node *of) {
  int64_t precision; /* softmax is in float, which is not less */
  rondo_onnx_node *node = of->node;
  RONDO_TRY(rondo_onnx_attribute_int(node, "q_num_heads", 0, &of->q_heads));
  RONDO_TRY(rondo_onnx_attribute_int(node, "kv_num_heads", 0, &of->kv_heads));
  RONDO_TRY(rondo_onnx_attribute_int(node, "is_causal", 0, &of->is_causal));
  RONDO_TRY(rondo_onnx_attribute_float(node, "scale", 0, &of->options.scale));
  RONDO_TRY(rondo_onnx_attribute_float(node, "softcap", 0, &of->softcap));
  RONDO_TRY(rondo_onnx_attribute_int(node, "qk_matmul_output_mode", 0, &of->score_stage));
  RONDO_TRY(rondo_onnx_attribute_int(node, "softmax_precision", RONDO_ONNX_FLOAT, &precision));
  RONDO_TRY(rondo_onnx_attribute_int(node, "left_window_size", -1, &of->left_window));
  return rondo_onnx_attribute_int(node, "right_window_size", -1, &of->right_window);
}

/* Adds the rows of earlier calls, and returns all as an output. */
static rondo_status add_past(attention_node *of, size_t input, size_t output, rondo_value *inout) {
  rondo_onnx_node *node = of->node;
  rondo_program *program;
  rondo_value parts[2];
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  if (rondo_onnx_has_input(node, input) && rondo_onnx_shape_count(rondo_onnx_input_shape(node, input)) > 0) {
    RONDO_TRY(rondo_onnx_operand(node, input, &parts[0]));
    parts[1] = *inout;
    RONDO_TRY(rondo_op_concat(program, parts, 2, 2, inout));
  }
  return rondo_onnx_set_typed(node, output, *inout, rondo_onnx_input_shape(node, Q)->type);
}

static rondo_status add_operands(attention_node *of) {
  rondo_onnx_node *node = of->node;
  RONDO_TRY(heads_operand(node, Q, of->q_heads, &of->q, of->q_dims));
  RONDO_TRY(heads_operand(node, K, of->kv_heads, &of->k, of->k_dims));
  RONDO_TRY(heads_operand(node, V, of->kv_heads, &of->v, of->v_dims));
  if (rondo_onnx_has_input(node, PAST_KEY)) {
    const rondo_onnx_shape *past = rondo_onnx_input_shape(node, PAST_KEY);
    if (past->rank != 4) return rondo_onnx_refuse(node, "the past has %zu dimensions, not 4", past->rank);
    of->past = past->dims[2];
  }
  of->all = of->past + of->k_dims[2];
  RONDO_TRY(add_past(of, PAST_KEY, 1, &of->k));
  return add_past(of, PAST_VALUE, 2, &of->v);
}

/* A mask may be shorter than the keys, and hides those behind it. */
static rondo_status mask_operand(attention_node *of, rondo_value *out) {
  const rondo_onnx_shape *have = rondo_onnx_input_shape(of->node, MASK);
  const int64_t before[RONDO_ONNX_MOST_DIMENSIONS] = {0};
  int64_t after[RONDO_ONNX_MOST_DIMENSIONS] = {0};
  rondo_program *program;
  RONDO_TRY(rondo_onnx_operand(of->node, MASK, out));
  RONDO_TRY(rondo_onnx_node_program(of->node, &program));
  if (have->rank == 0 || have->dims[have->rank - 1] <= 1 || have->dims[have->rank - 1] >= of->all) return RONDO_OK;
  after[have->rank - 1] = (int64_t)(of->all - have->dims[have->rank - 1]);
  const double hidden = have->type == RONDO_ONNX_BOOL ? 0 : -(double)INFINITY;
  return rondo_op_pad(program, *out, before, after, RONDO_PAD_CONSTANT, hidden, out);
}

/* Query i sees keys up to i + past. Programs align the last query with the last key, so another alignment is a mask. */
static rondo_status add_causal(attention_node *of, rondo_value *mask) {
  const size_t dims[] = {of->q_dims[2], of->all};
  rondo_program *program;
  rondo_type type;
  rondo_value visible, hidden;
  if (of->is_causal == 0) return RONDO_OK;
  of->options.causal = of->k_dims[2] == of->q_dims[2];
  if (of->options.causal) return RONDO_OK;
  RONDO_TRY(rondo_onnx_node_program(of->node, &program));
  RONDO_TRY(rondo_op_full(program, RONDO_BOOL, dims, 2, 1, &visible));
  RONDO_TRY(rondo_op_tril(program, visible, (int64_t)of->past, &visible));
  if (mask->id == 0) {
    *mask = visible;
    return RONDO_OK;
  }
  if (rondo_onnx_input_shape(of->node, MASK)->type == RONDO_ONNX_BOOL)
    return rondo_op_logical_and(program, *mask, visible, mask);
  RONDO_TRY(rondo_onnx_program_type(of->node->importer, rondo_onnx_input_shape(of->node, MASK)->type, &type));
  RONDO_TRY(rondo_op_full(program, type, NULL, 0, -(double)INFINITY, &hidden));
  return rondo_op_select(program, visible, *mask, hidden, mask);
}

static rondo_status add_lengths(attention_node *of) {
  rondo_program *program;
  if (!rondo_onnx_has_input(of->node, LENGTHS)) return RONDO_OK;
  RONDO_TRY(rondo_onnx_operand(of->node, LENGTHS, &of->options.lengths));
  RONDO_TRY(rondo_onnx_node_program(of->node, &program));
  return rondo_op_cast(program, of->options.lengths, RONDO_I32, &of->options.lengths);
}

static rondo_status attend(attention_node *of, rondo_value *out) {
  rondo_program *program;
  if (rondo_onnx_has_input(of->node, MASK)) RONDO_TRY(mask_operand(of, &of->options.mask));
  RONDO_TRY(add_causal(of, &of->options.mask));
  RONDO_TRY(add_lengths(of));
  RONDO_TRY(rondo_onnx_node_program(of->node, &program));
  return rondo_op_attention(program, of->q, of->k, of->v, &of->options, out);
}

/* Attention in its steps ------------------------------------------------------------------------------------------- */

/* Whether rondo_op_attention has no option for what the node does. The steps store all scores. */
static bool needs_steps(const attention_node *of) {
  return of->softcap != 0 || rondo_onnx_wants_output(of->node, 3) || of->v_dims[3] != of->q_dims[3] ||
         of->q_dims[3] > 256 || of->left_window != -1 || of->right_window != -1 ||
         (of->is_causal != 0 && rondo_onnx_has_input(of->node, LENGTHS));
}

/* Repeats the heads of keys or values for each query's. */
static rondo_status repeat_heads(attention_node *of, rondo_value *inout) {
  rondo_program *program;
  rondo_type type;
  size_t dims[RONDO_MAX_DIMENSIONS], rank;
  RONDO_TRY(rondo_onnx_node_program(of->node, &program));
  RONDO_TRY(rondo_value_shape(program, *inout, &type, dims, &rank));
  const size_t heads = of->q_dims[1], groups = dims[1];
  if (heads == groups) return RONDO_OK;
  if (groups == 0 || heads % groups != 0)
    return rondo_onnx_refuse(of->node, "%zu heads of queries for %zu of keys", heads, groups);
  RONDO_TRY(rondo_onnx_reshape(of->node, *inout, (const size_t[]){dims[0], groups, 1, dims[2], dims[3]}, 5, inout));
  const size_t wide[] = {dims[0], groups, heads / groups, dims[2], dims[3]};
  RONDO_TRY(rondo_op_expand(program, *inout, wide, 5, inout));
  return rondo_onnx_reshape(of->node, *inout, (const size_t[]){dims[0], heads, dims[2], dims[3]}, 4, inout);
}

static rondo_status both(rondo_program *program, rondo_value condition, rondo_value *inout) {
  if (inout->id == 0) {
    *inout = condition;
    return RONDO_OK;
  }
  return rondo_op_logical_and(program, *inout, condition, inout);
}

/* Whether key j is at most, or at least, `distance` behind position i. */
static rondo_status limit_distance(rondo_program *program, rondo_value keys, rondo_value positions, int64_t distance,
                                   bool is_most, rondo_value *inout) {
  rondo_value limit;
  RONDO_TRY(rondo_op_full(program, RONDO_I64, NULL, 0, (double)distance, &limit));
  RONDO_TRY(rondo_op_add(program, positions, limit, &limit));
  RONDO_TRY(is_most ? rondo_op_less_equal(program, keys, limit, &limit)
                    : rondo_op_greater_equal(program, keys, limit, &limit));
  return both(program, limit, inout);
}

/* The keys that a query sees, BOOL, by its position: query i has that of i, after the keys of the past. */
static rondo_status find_visible(attention_node *of, rondo_value *out) {
  rondo_onnx_node *node = of->node;
  rondo_program *program;
  rondo_value keys, positions, lengths, count;
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  RONDO_TRY(rondo_op_arange(program, RONDO_I64, of->all, 0, 1, &keys));
  RONDO_TRY(rondo_op_arange(program, RONDO_I64, of->q_dims[2], (double)of->past, 1, &positions));
  RONDO_TRY(rondo_onnx_reshape(node, positions, (const size_t[]){of->q_dims[2], 1}, 2, &positions));
  if (rondo_onnx_has_input(node, LENGTHS)) {
    RONDO_TRY(rondo_onnx_operand(node, LENGTHS, &lengths));
    RONDO_TRY(rondo_op_cast(program, lengths, RONDO_I64, &lengths));
    RONDO_TRY(rondo_onnx_reshape(node, lengths, (const size_t[]){of->q_dims[0], 1, 1, 1}, 4, &lengths));
    RONDO_TRY(rondo_op_less(program, keys, lengths, out));
    RONDO_TRY(rondo_op_full(program, RONDO_I64, NULL, 0, (double)of->q_dims[2], &count));
    RONDO_TRY(rondo_op_sub(program, lengths, count, &lengths));
    RONDO_TRY(rondo_op_add(program, positions, lengths, &positions));
  }
  if (of->is_causal != 0) RONDO_TRY(limit_distance(program, keys, positions, 0, true, out));
  if (of->right_window >= 0) RONDO_TRY(limit_distance(program, keys, positions, of->right_window, true, out));
  if (of->left_window >= 0) RONDO_TRY(limit_distance(program, keys, positions, -of->left_window, false, out));
  return RONDO_OK;
}

/* Adds the mask, or hides keys by it. */
static rondo_status add_mask(attention_node *of, rondo_value *scores, rondo_value *visible) {
  rondo_program *program;
  rondo_type type;
  rondo_value mask, hidden;
  RONDO_TRY(rondo_onnx_node_program(of->node, &program));
  RONDO_TRY(find_visible(of, visible));
  if (rondo_onnx_has_input(of->node, MASK)) {
    RONDO_TRY(mask_operand(of, &mask));
    const bool is_bool = rondo_onnx_input_shape(of->node, MASK)->type == RONDO_ONNX_BOOL;
    RONDO_TRY(is_bool ? both(program, mask, visible) : rondo_op_add(program, *scores, mask, scores));
  }
  if (visible->id == 0) return RONDO_OK;
  RONDO_TRY(rondo_onnx_program_type(of->node->importer, rondo_onnx_input_shape(of->node, Q)->type, &type));
  RONDO_TRY(rondo_op_full(program, type, NULL, 0, -(double)INFINITY, &hidden));
  return rondo_op_select(program, *visible, *scores, hidden, scores);
}

/* Scores of a stage as output 3: of the product, after softcap, with masks, after softmax. */
static rondo_status set_scores(attention_node *of, int64_t stage, rondo_value scores) {
  if (of->score_stage != stage) return RONDO_OK;
  return rondo_onnx_set_typed(of->node, 3, scores, rondo_onnx_input_shape(of->node, Q)->type);
}

/* A query that sees no key has probabilities of 0. */
static rondo_status add_softmax(attention_node *of, rondo_value visible, rondo_value *inout) {
  rondo_program *program;
  rondo_type type;
  rondo_value zero;
  RONDO_TRY(rondo_onnx_node_program(of->node, &program));
  RONDO_TRY(rondo_op_softmax(program, *inout, inout));
  if (visible.id == 0) return RONDO_OK;
  RONDO_TRY(rondo_onnx_program_type(of->node->importer, rondo_onnx_input_shape(of->node, Q)->type, &type));
  RONDO_TRY(rondo_op_full(program, type, NULL, 0, 0, &zero));
  return rondo_op_select(program, visible, *inout, zero, inout);
}

static rondo_status attend_in_steps(attention_node *of, rondo_value *out) {
  const rondo_matmul_options transposed = {RONDO_MATMUL_OPTIONS_INIT, .transpose_b = true};
  const float scale = of->options.scale != 0 ? of->options.scale : 1 / sqrtf((float)of->q_dims[3]);
  rondo_program *program;
  rondo_value scores, visible = {0};
  RONDO_TRY(rondo_onnx_node_program(of->node, &program));
  RONDO_TRY(repeat_heads(of, &of->k));
  RONDO_TRY(repeat_heads(of, &of->v));
  RONDO_TRY(rondo_op_scale(program, of->q, scale, &of->q));
  RONDO_TRY(rondo_op_matmul_with(program, of->q, of->k, &transposed, &scores));
  RONDO_TRY(set_scores(of, 0, scores));
  if (of->softcap != 0) {
    RONDO_TRY(rondo_op_scale(program, scores, 1 / of->softcap, &scores));
    RONDO_TRY(rondo_op_tanh(program, scores, &scores));
    RONDO_TRY(rondo_op_scale(program, scores, of->softcap, &scores));
  }
  RONDO_TRY(set_scores(of, 1, scores));
  RONDO_TRY(add_mask(of, &scores, &visible));
  RONDO_TRY(set_scores(of, 2, scores));
  RONDO_TRY(add_softmax(of, visible, &scores));
  RONDO_TRY(set_scores(of, 3, scores));
  return rondo_op_matmul(program, scores, of->v, (rondo_value){0}, out);
}

static rondo_status add_attention(rondo_onnx_node *node, const void *data) {
  const rondo_onnx_shape *have = rondo_onnx_input_shape(node, Q);
  attention_node of = {.node = node, .options = {RONDO_ATTENTION_OPTIONS_INIT}};
  rondo_value y;
  (void)data;
  RONDO_TRY(read_attention(&of));
  RONDO_TRY(add_operands(&of));
  RONDO_TRY(needs_steps(&of) ? attend_in_steps(&of, &y) : attend(&of, &y));
  const size_t rows[] = {of.q_dims[0], of.q_dims[2], of.q_dims[1] * of.v_dims[3]};
  if (have->rank == 3) RONDO_TRY(join_heads(node, rows, &y));
  return rondo_onnx_set_typed(node, 0, y, have->type);
}

/* RotaryEmbedding -------------------------------------------------------------------------------------------------- */

enum { X, COS, SIN, POSITIONS };

/* Sines or cosines of the positions, [b, 1, t, pairs], or [b, 1, t, pairs, 1] if pairs are neighbours. */
static rondo_status table_operand(rondo_onnx_node *node, size_t index, bool interleaved, const size_t x_dims[4],
                                  rondo_value *out) {
  const rondo_onnx_shape *have = rondo_onnx_input_shape(node, index);
  const size_t rank = rondo_onnx_has_input(node, POSITIONS) ? 2 : 3;
  rondo_program *program;
  rondo_value positions;
  if (have->rank != rank)
    return rondo_onnx_refuse(node, "input %zu has %zu dimensions, not %zu", index, have->rank, rank);
  RONDO_TRY(rondo_onnx_operand(node, index, out));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  const size_t dims[] = {x_dims[0], 1, x_dims[2], have->dims[rank - 1], 1};
  if (rondo_onnx_has_input(node, POSITIONS)) {
    RONDO_TRY(rondo_onnx_operand(node, POSITIONS, &positions));
    RONDO_TRY(rondo_op_index_select(program, *out, positions, 0, out));
  }
  return rondo_onnx_reshape(node, *out, dims, interleaved ? 5 : 4, out);
}

/* Both elements of each pair, along the last dimension: the first half and the second one, or neighbours. */
static rondo_status rotate(rondo_program *program, rondo_value x, rondo_value cosines, rondo_value sines,
                           rondo_value *out) {
  rondo_type type;
  rondo_value halves[2], rotated[2], product;
  size_t dims[RONDO_MAX_DIMENSIONS], rank;
  RONDO_TRY(rondo_value_shape(program, x, &type, dims, &rank));
  const size_t half = dims[rank - 1] / 2;
  RONDO_TRY(rondo_op_split(program, x, rank - 1, (const size_t[]){half, half}, 2, halves));
  RONDO_TRY(rondo_op_mul(program, cosines, halves[0], &rotated[0]));
  RONDO_TRY(rondo_op_mul(program, sines, halves[1], &product));
  RONDO_TRY(rondo_op_sub(program, rotated[0], product, &rotated[0]));
  RONDO_TRY(rondo_op_mul(program, sines, halves[0], &rotated[1]));
  RONDO_TRY(rondo_op_mul(program, cosines, halves[1], &product));
  RONDO_TRY(rondo_op_add(program, rotated[1], product, &rotated[1]));
  return rondo_op_concat(program, rotated, 2, rank - 1, out);
}

typedef struct rotary_node {
  int64_t heads, rotated, interleaved;
} rotary_node;

/* Rotates the first elements of each head, [b, n, t, d]; the others stay. */
static rondo_status rotate_heads(rondo_onnx_node *node, const rotary_node *of, const size_t dims[4],
                                 rondo_value *inout) {
  const size_t rotated = of->rotated > 0 ? (size_t)of->rotated : dims[3];
  rondo_program *program;
  rondo_value parts[2], cosines, sines;
  if (rotated % 2 != 0 || rotated > dims[3])
    return rondo_onnx_refuse(node, "it rotates %zu of %zu elements", rotated, dims[3]);
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  RONDO_TRY(table_operand(node, COS, of->interleaved != 0, dims, &cosines));
  RONDO_TRY(table_operand(node, SIN, of->interleaved != 0, dims, &sines));
  parts[0] = *inout;
  if (rotated < dims[3])
    RONDO_TRY(rondo_op_split(program, *inout, 3, (const size_t[]){rotated, dims[3] - rotated}, 2, parts));
  const size_t pairs[] = {dims[0], dims[1], dims[2], rotated / 2, 2}, flat[] = {dims[0], dims[1], dims[2], rotated};
  if (of->interleaved != 0) RONDO_TRY(rondo_onnx_reshape(node, parts[0], pairs, 5, &parts[0]));
  RONDO_TRY(rotate(program, parts[0], cosines, sines, &parts[0]));
  RONDO_TRY(rondo_onnx_reshape(node, parts[0], flat, 4, inout));
  parts[0] = *inout;
  return rotated < dims[3] ? rondo_op_concat(program, parts, 2, 3, inout) : RONDO_OK;
}

static rondo_status add_rotary(rondo_onnx_node *node, const void *data) {
  const rondo_onnx_shape *have = rondo_onnx_input_shape(node, X);
  rotary_node of;
  rondo_value x;
  size_t dims[4];
  (void)data;
  RONDO_TRY(rondo_onnx_attribute_int(node, "num_heads", 0, &of.heads));
  RONDO_TRY(rondo_onnx_attribute_int(node, "rotary_embedding_dim", 0, &of.rotated));
  RONDO_TRY(rondo_onnx_attribute_int(node, "interleaved", 0, &of.interleaved));
  RONDO_TRY(heads_operand(node, X, of.heads, &x, dims));
  RONDO_TRY(rotate_heads(node, &of, dims, &x));
  if (have->rank == 3) RONDO_TRY(join_heads(node, have->dims, &x));
  return rondo_onnx_set_typed(node, 0, x, have->type);
}

/* The table -------------------------------------------------------------------------------------------------------- */

static const rondo_onnx_row rows[] = {
    {"Attention", 23, 0, 3, 7, 0, add_attention, NULL},
    {"RotaryEmbedding", 23, 0, 3, 4, 0, add_rotary, NULL},
};

RONDO_ONNX_FAMILY(rondo_onnx_attention, rows);
