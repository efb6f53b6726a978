/* SPDX-License-Identifier: MIT
 * Layers that carry a state from token to token, as of gated delta networks and Mamba: LinearAttention and
 * CausalConvWithState. The state of attention is a matrix of keys and values for each head, which the tokens of a node
 * change one after another; each is a few operators. States are computed in F32.
 */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "onnx/import/constant.h"
#include "onnx/import/graph_import.h"
#include "onnx/import/node_attributes.h"
#include "onnx/operators/operator_families.h"

/* CausalConvWithState ---------------------------------------------------------------------------------------------- */

enum { CONV_X, CONV_WEIGHT, CONV_BIAS, CONV_PAST };

/* x after the last elements before it, or zeros: [n, c, k - 1 + length]. */
static rondo_status add_padded(rondo_onnx_node *node, const rondo_onnx_shape *x, size_t before, rondo_value *out) {
  const size_t dims[] = {x->dims[0], x->dims[1], before};
  rondo_program *program;
  rondo_type type;
  rondo_value both[2];
  RONDO_TRY(rondo_onnx_program_type(node->importer, x->type, &type));
  RONDO_TRY(rondo_onnx_operand(node, CONV_X, out));
  if (before == 0) return RONDO_OK;
  both[1] = *out;
  if (rondo_onnx_has_input(node, CONV_PAST)) RONDO_TRY(rondo_onnx_operand(node, CONV_PAST, &both[0]));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  if (!rondo_onnx_has_input(node, CONV_PAST)) RONDO_TRY(rondo_op_full(program, type, dims, 3, 0, &both[0]));
  return rondo_op_concat(program, both, 2, 2, out);
}

static rondo_status check_causal_shapes(rondo_onnx_node *node) {
  const rondo_onnx_shape *x = rondo_onnx_input_shape(node, CONV_X);
  const rondo_onnx_shape *weight = rondo_onnx_input_shape(node, CONV_WEIGHT);
  if (x->rank != 3 || weight->rank != 3 || weight->dims[0] != x->dims[1] || weight->dims[1] != 1 ||
      weight->dims[2] == 0 || rondo_onnx_shape_count(x) == 0)
    return rondo_onnx_refuse(node, "the input must be [n, c, length], and the weights [c, 1, k]");
  if (!rondo_onnx_has_input(node, CONV_PAST)) return RONDO_OK;
  const rondo_onnx_shape *past = rondo_onnx_input_shape(node, CONV_PAST);
  const bool fits = past->rank == 3 && past->dims[0] == x->dims[0] && past->dims[1] == x->dims[1];
  return fits && past->dims[2] == weight->dims[2] - 1 ? RONDO_OK
                                                      : rondo_onnx_refuse(node, "the state must be [n, c, k - 1]");
}

/* The last elements of the padded input are the state. */
static rondo_status set_conv_state(rondo_onnx_node *node, rondo_value padded, size_t before) {
  const rondo_onnx_shape *x = rondo_onnx_input_shape(node, CONV_X);
  rondo_onnx_shape shape = *x;
  rondo_program *program;
  rondo_value state;
  shape.dims[2] = before;
  if (before == 0) return rondo_onnx_set_empty(node, 1, &shape);
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  RONDO_TRY(rondo_op_slice(program, padded, (const size_t[]){0, 0, x->dims[2]}, shape.dims, NULL, &state));
  return rondo_onnx_set_typed(node, 1, state, x->type);
}

static rondo_status read_silu(rondo_onnx_node *node, bool *out) {
  const char *activation;
  RONDO_TRY(rondo_onnx_attribute_text(node, "activation", "none", &activation));
  *out = strcmp(activation, "silu") == 0 || strcmp(activation, "swish") == 0;
  return *out || strcmp(activation, "none") == 0
             ? RONDO_OK
             : rondo_onnx_refuse_attribute(node, "activation", "it is '%s'", activation);
}

static rondo_status add_causal_conv(rondo_onnx_node *node, const void *data) {
  rondo_conv_options options = {RONDO_CONV_OPTIONS_INIT, .stride = {1}, .dilation = {1}};
  rondo_program *program;
  rondo_value padded, weight, y;
  bool has_silu;
  (void)data;
  RONDO_TRY(check_causal_shapes(node));
  RONDO_TRY(read_silu(node, &has_silu));
  const rondo_onnx_shape *x = rondo_onnx_input_shape(node, CONV_X);
  const size_t before = rondo_onnx_input_shape(node, CONV_WEIGHT)->dims[2] - 1;
  if (x->dims[1] > UINT32_MAX) return rondo_onnx_refuse(node, "%zu channels", x->dims[1]);
  options.groups = (uint32_t)x->dims[1];
  RONDO_TRY(add_padded(node, x, before, &padded));
  RONDO_TRY(rondo_onnx_operand(node, CONV_WEIGHT, &weight));
  if (rondo_onnx_has_input(node, CONV_BIAS)) RONDO_TRY(rondo_onnx_operand(node, CONV_BIAS, &options.bias));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  RONDO_TRY(rondo_op_conv(program, padded, weight, &options, &y));
  if (has_silu) RONDO_TRY(rondo_op_silu(program, y, &y));
  RONDO_TRY(rondo_onnx_set_typed(node, 0, y, x->type));
  return set_conv_state(node, padded, before);
}

/* LinearAttention -------------------------------------------------------------------------------------------------- */

enum { QUERY, KEY, VALUE, PAST, DECAY, BETA };

typedef struct linear_attention {
  rondo_onnx_node *node;
  rondo_program *program;
  size_t batches, tokens, heads, shared; /* heads of keys, each shared by so many of queries */
  size_t key_size, value_size;
  float scale;
  bool decays, corrects;
  rondo_value q, k, v, decay, beta; /* F32, [b, heads, tokens, ..] */
  rondo_value state;                /* [b, heads, key_size, value_size] */
} linear_attention;

/* S decays by exp(g); what it holds for the key is replaced by the value in part (Yang et al. 2024). */
static rondo_status read_rule(linear_attention *of) {
  static const struct {
    const char *name;
    bool decays, corrects;
  } rules[] = {{"linear", false, false}, {"gated", true, false}, {"delta", false, true}, {"gated_delta", true, true}};
  const char *name;
  RONDO_TRY(rondo_onnx_attribute_text(of->node, "update_rule", "gated_delta", &name));
  for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
    of->decays = rules[i].decays;
    of->corrects = rules[i].corrects;
    if (strcmp(name, rules[i].name) != 0) continue;
    if (rondo_onnx_has_input(of->node, DECAY) == of->decays && rondo_onnx_has_input(of->node, BETA) == of->corrects)
      return RONDO_OK;
    return rondo_onnx_refuse_attribute(of->node, "update_rule", "'%s' and the inputs decay and beta do not fit", name);
  }
  return rondo_onnx_refuse_attribute(of->node, "update_rule", "it is '%s'", name);
}

static rondo_status check_last(const linear_attention *of, size_t input, size_t a, size_t b) {
  const rondo_onnx_shape *shape = rondo_onnx_input_shape(of->node, input);
  const bool fits = shape->rank == 3 && shape->dims[0] == of->batches && shape->dims[1] == of->tokens &&
                    (shape->dims[2] == a || shape->dims[2] == b);
  return fits ? RONDO_OK : rondo_onnx_refuse(of->node, "input %zu does not fit the others and the heads", input);
}

static rondo_status read_sizes(linear_attention *of) {
  const rondo_onnx_shape *q = rondo_onnx_input_shape(of->node, QUERY), *v = rondo_onnx_input_shape(of->node, VALUE);
  int64_t q_heads, heads, chunk;
  RONDO_TRY(rondo_onnx_attribute_int(of->node, "q_num_heads", 0, &q_heads));
  RONDO_TRY(rondo_onnx_attribute_int(of->node, "kv_num_heads", 0, &heads));
  RONDO_TRY(rondo_onnx_attribute_int(of->node, "chunk_size", 64, &chunk)); /* a hint */
  RONDO_TRY(rondo_onnx_attribute_float(of->node, "scale", 0, &of->scale));
  if (q_heads < 1 || heads < 1 || q_heads % heads != 0)
    return rondo_onnx_refuse_attribute(of->node, "kv_num_heads", "%lld heads of queries and %lld of keys",
                                       (long long)q_heads, (long long)heads);
  if (q->rank != 3 || v->rank != 3 || rondo_onnx_shape_count(q) == 0 || rondo_onnx_shape_count(v) == 0)
    return rondo_onnx_refuse(of->node, "queries and values must be [n, tokens, size]");
  of->heads = (size_t)heads;
  of->shared = (size_t)(q_heads / heads);
  of->batches = q->dims[0];
  of->tokens = q->dims[1];
  of->key_size = q->dims[2] / (size_t)q_heads;
  of->value_size = v->dims[2] / of->heads;
  if (of->scale == 0 && of->key_size > 0) of->scale = 1 / sqrtf((float)of->key_size);
  RONDO_TRY(check_last(of, QUERY, of->key_size * (size_t)q_heads, 0));
  RONDO_TRY(check_last(of, KEY, of->key_size * of->heads, 0));
  RONDO_TRY(check_last(of, VALUE, of->value_size * of->heads, 0));
  if (of->decays) RONDO_TRY(check_last(of, DECAY, of->heads, of->key_size * of->heads));
  return of->corrects ? check_last(of, BETA, of->heads, 1) : RONDO_OK;
}

/* [b, tokens, heads size] as F32 [b, heads, tokens, size] */
static rondo_status head_operand(linear_attention *of, size_t input, size_t heads, rondo_value *out) {
  const size_t size = rondo_onnx_input_shape(of->node, input)->dims[2] / heads;
  const size_t dims[] = {of->batches, of->tokens, heads, size};
  RONDO_TRY(rondo_onnx_operand(of->node, input, out));
  RONDO_TRY(rondo_onnx_node_program(of->node, &of->program));
  RONDO_TRY(rondo_op_cast(of->program, *out, RONDO_F32, out));
  RONDO_TRY(rondo_op_reshape(of->program, *out, dims, 4, out));
  return rondo_op_permute(of->program, *out, (const size_t[]){0, 2, 1, 3}, out);
}

static rondo_status read_state(linear_attention *of) {
  const size_t dims[] = {of->batches, of->heads, of->key_size, of->value_size};
  if (!rondo_onnx_has_input(of->node, PAST)) return rondo_op_full(of->program, RONDO_F32, dims, 4, 0, &of->state);
  const rondo_onnx_shape *past = rondo_onnx_input_shape(of->node, PAST);
  if (past->rank != 4 || memcmp(past->dims, dims, sizeof dims) != 0)
    return rondo_onnx_refuse(of->node, "the state must be [n, heads, size of keys, size of values]");
  RONDO_TRY(rondo_onnx_operand(of->node, PAST, &of->state));
  return rondo_op_cast(of->program, of->state, RONDO_F32, &of->state);
}

/* Queries that share a head of keys are rows of one matrix: [b, heads, tokens, shared size]. */
static rondo_status read_operands(linear_attention *of) {
  RONDO_TRY(head_operand(of, QUERY, of->heads, &of->q));
  RONDO_TRY(head_operand(of, KEY, of->heads, &of->k));
  RONDO_TRY(head_operand(of, VALUE, of->heads, &of->v));
  if (of->decays) {
    RONDO_TRY(head_operand(of, DECAY, of->heads, &of->decay));
    RONDO_TRY(rondo_op_exp(of->program, of->decay, &of->decay));
  }
  if (of->corrects) RONDO_TRY(head_operand(of, BETA, rondo_onnx_input_shape(of->node, BETA)->dims[2], &of->beta));
  return read_state(of);
}

/* Token t of a value, as matrices of so many rows. */
static rondo_status take_token(const linear_attention *of, rondo_value value, size_t t, size_t rows, rondo_value *out) {
  size_t dims[RONDO_MAX_DIMENSIONS], rank;
  rondo_type type;
  RONDO_TRY(rondo_value_shape(of->program, value, &type, dims, &rank));
  dims[2] = 1;
  RONDO_TRY(rondo_op_slice(of->program, value, (const size_t[]){0, 0, t, 0}, dims, NULL, out));
  dims[3] /= rows;
  dims[2] = rows;
  return rondo_op_reshape(of->program, *out, dims, 4, out);
}

/* One step: decay, correction, the outer product of key and value, and what the queries read. */
static rondo_status add_token(linear_attention *of, size_t t, rondo_value *out) {
  rondo_program *const program = of->program;
  const rondo_value none = {0};
  rondo_value q, k, column, v, factor, held;
  RONDO_TRY(take_token(of, of->q, t, of->shared, &q));
  RONDO_TRY(take_token(of, of->k, t, 1, &k));
  RONDO_TRY(take_token(of, of->k, t, of->key_size, &column));
  RONDO_TRY(take_token(of, of->v, t, 1, &v));
  if (of->decays) {
    const size_t each = rondo_onnx_input_shape(of->node, DECAY)->dims[2] / of->heads;
    RONDO_TRY(take_token(of, of->decay, t, each, &factor));
    RONDO_TRY(rondo_op_mul(program, of->state, factor, &of->state));
  }
  if (of->corrects) {
    RONDO_TRY(take_token(of, of->beta, t, 1, &factor));
    RONDO_TRY(rondo_op_matmul(program, k, of->state, none, &held));
    RONDO_TRY(rondo_op_sub(program, v, held, &v));
    RONDO_TRY(rondo_op_mul(program, v, factor, &v));
  }
  RONDO_TRY(rondo_op_mul(program, column, v, &v));
  RONDO_TRY(rondo_op_add(program, of->state, v, &of->state));
  RONDO_TRY(rondo_op_matmul(program, q, of->state, none, out));
  const size_t dims[] = {of->batches, 1, of->heads * of->shared * of->value_size};
  return rondo_op_reshape(program, *out, dims, 3, out);
}

static rondo_status add_tokens(linear_attention *of, rondo_value *out) {
  enum { OPERATORS_OF_A_TOKEN = 16 };
  rondo_value *tokens;
  size_t values;
  if (!rondo_checked_multiply(of->tokens, OPERATORS_OF_A_TOKEN, &values)) values = SIZE_MAX;
  RONDO_TRY(rondo_onnx_count_values(of->node->importer, values));
  RONDO_TRY(rondo_scratch_take(&of->node->importer->scratch, of->tokens, sizeof *tokens, &tokens));
  for (size_t t = 0; t < of->tokens; t++) RONDO_TRY(add_token(of, t, &tokens[t]));
  RONDO_TRY(rondo_op_concat(of->program, tokens, of->tokens, 1, out));
  return rondo_op_scale(of->program, *out, of->scale, out);
}

static rondo_status set_as(linear_attention *of, size_t index, rondo_value value, rondo_onnx_type type) {
  rondo_type program_type;
  RONDO_TRY(rondo_onnx_program_type(of->node->importer, type, &program_type));
  RONDO_TRY(rondo_op_cast(of->program, value, program_type, &value));
  return rondo_onnx_set_typed(of->node, index, value, type);
}

static rondo_status add_linear_attention(rondo_onnx_node *node, const void *data) {
  linear_attention of = {.node = node};
  rondo_value y;
  (void)data;
  RONDO_TRY(read_rule(&of));
  RONDO_TRY(read_sizes(&of));
  RONDO_TRY(read_operands(&of));
  RONDO_TRY(add_tokens(&of, &y));
  const rondo_onnx_type type = rondo_onnx_input_shape(node, QUERY)->type;
  RONDO_TRY(set_as(&of, 0, y, type));
  return set_as(&of, 1, of.state, rondo_onnx_has_input(node, PAST) ? rondo_onnx_input_shape(node, PAST)->type : type);
}

/* The table -------------------------------------------------------------------------------------------------------- */

static const rondo_onnx_row rows[] = {
    {"CausalConvWithState", 27, 0, 2, 4, 0, add_causal_conv, NULL},
    {"LinearAttention", 27, 0, 3, 6, 0, add_linear_attention, NULL},
};

RONDO_ONNX_FAMILY(rondo_onnx_state_space, rows);
