/* SPDX-License-Identifier: MIT
 * The transformer (Radford et al. 2019, section 2.3): embeddings of bytes and of their positions; then blocks that add
 * to a residual stream, first attention of the normalized values, then a hidden layer of them, four times as wide; last
 * a normalization and a product without bias. If the type is not F32, the program casts the parameters of products, so
 * that the optimizer updates them in F32.
 */
#include <math.h>
#include <stdio.h>

#include "common/tool.h"
#include "models/model_quantized.h"

#define EPSILON 1e-5f
#define WIDER 4
#define WIDEST_HEAD 256 /* supported by attention */

/* Indices into the table of parameters: the first two, those of each block, then the last. */
enum { TOKENS, PLACES, FIRST_OF_BLOCKS };
enum {
  NORM1_SCALE,
  NORM1_SHIFT,
  QKV_WEIGHT,
  QKV_BIAS,
  JOIN_WEIGHT,
  JOIN_BIAS,
  NORM2_SCALE,
  NORM2_SHIFT,
  HIDDEN_WEIGHT,
  HIDDEN_BIAS,
  OUTPUT_WEIGHT,
  OUTPUT_BIAS,
  OF_BLOCK
};
enum { NORM_SCALE, NORM_SHIFT, HEAD, LAST };

static const char *const block_names[OF_BLOCK] = {
    [NORM1_SCALE] = "norm1.scale", [NORM1_SHIFT] = "norm1.shift",     [QKV_WEIGHT] = "qkv.weight",
    [QKV_BIAS] = "qkv.bias",       [JOIN_WEIGHT] = "join.weight",     [JOIN_BIAS] = "join.bias",
    [NORM2_SCALE] = "norm2.scale", [NORM2_SHIFT] = "norm2.shift",     [HIDDEN_WEIGHT] = "hidden.weight",
    [HIDDEN_BIAS] = "hidden.bias", [OUTPUT_WEIGHT] = "output.weight", [OUTPUT_BIAS] = "output.bias",
};

/* Parameters ------------------------------------------------------------------------------------------------------ */

/* Same deviation as a normal distribution with deviation 0.02. Weights of the two layers that each block adds to the
 * residual get less. */
static float weight_range(void) { return 0.02f * sqrtf(3); }
static float added_range(uint32_t layers) { return weight_range() / sqrtf(2 * (float)layers); }

static model_parameter of_block(const language_model *model, size_t index) {
  const size_t width = model->sizes[MODEL_WIDTH], hidden = WIDER * width;
  const float some = weight_range(), less = added_range(model->sizes[MODEL_LAYERS]);
  const model_parameter all[OF_BLOCK] = {
      [NORM1_SCALE] = {"", 1, {width, 0}, 1, 0},           [NORM1_SHIFT] = {"", 1, {width, 0}, 0, 0},
      [QKV_WEIGHT] = {"", 2, {width, 3 * width}, 0, some}, [QKV_BIAS] = {"", 1, {3 * width, 0}, 0, 0},
      [JOIN_WEIGHT] = {"", 2, {width, width}, 0, less},    [JOIN_BIAS] = {"", 1, {width, 0}, 0, 0},
      [NORM2_SCALE] = {"", 1, {width, 0}, 1, 0},           [NORM2_SHIFT] = {"", 1, {width, 0}, 0, 0},
      [HIDDEN_WEIGHT] = {"", 2, {width, hidden}, 0, some}, [HIDDEN_BIAS] = {"", 1, {hidden, 0}, 0, 0},
      [OUTPUT_WEIGHT] = {"", 2, {hidden, width}, 0, less}, [OUTPUT_BIAS] = {"", 1, {width, 0}, 0, 0},
  };
  return all[index];
}

static bool parameter(const language_model *model, size_t index, model_parameter *out) {
  const size_t width = model->sizes[MODEL_WIDTH], bytes = model->vocabulary.count;
  const size_t in_blocks = (size_t)model->sizes[MODEL_LAYERS] * OF_BLOCK;
  const model_parameter first[FIRST_OF_BLOCKS] = {
      [TOKENS] = {"tokens.embedding", 2, {bytes, width}, 0, weight_range()},
      [PLACES] = {"places.embedding", 2, {model->sizes[MODEL_CONTEXT], width}, 0, weight_range()},
  };
  const model_parameter last[LAST] = {
      [NORM_SCALE] = {"norm.scale", 1, {width, 0}, 1, 0},
      [NORM_SHIFT] = {"norm.shift", 1, {width, 0}, 0, 0},
      [HEAD] = {"head.weight", 2, {width, bytes}, 0, weight_range()},
  };
  if (index < FIRST_OF_BLOCKS) {
    *out = first[index];
    return true;
  }
  index -= FIRST_OF_BLOCKS;
  if (index >= in_blocks + LAST) return false;
  if (index >= in_blocks) {
    *out = last[index - in_blocks];
    return true;
  }
  *out = of_block(model, index % OF_BLOCK);
  snprintf(out->name, sizeof out->name, "block%u.%s", (unsigned)(index / OF_BLOCK), block_names[index % OF_BLOCK]);
  return true;
}

/* Kept for the gradients of a block: its input, normalized twice; q, k and v; their attention; the hidden layer before
 * and after its activation; and the two sums. */
static double activations(const language_model *model) {
  const double of_block = (1 + 2 + 3 + 1 + 2 * WIDER + 2) * (double)model->sizes[MODEL_WIDTH];
  return model->sizes[MODEL_CONTEXT] * (model->sizes[MODEL_LAYERS] * of_block + model->vocabulary.count);
}

static bool sizes_fit(const language_model *model, char why[MODEL_WHY_BYTES]) {
  const unsigned width = model->sizes[MODEL_WIDTH], heads = model->sizes[MODEL_HEADS];
  if (width % heads != 0)
    (void)snprintf(why, MODEL_WHY_BYTES, "width %u is not a multiple of %u heads", width, heads);
  else if (width / heads > WIDEST_HEAD)
    (void)snprintf(why, MODEL_WHY_BYTES,
                   "width %u with %u heads gives heads of size %u; the maximum is %d: use more heads", width, heads,
                   width / heads, WIDEST_HEAD);
  else
    return true;
  return false;
}

/* Program --------------------------------------------------------------------------------------------------------- */

/* What the program computes: scores after each token or, with caches, after the last token of a prompt, after one more
 * token, or after the last of the next tokens of several sequences. */
typedef enum network_use { TO_SCORE, TO_BEGIN, TO_GO_ON, TO_STEP } network_use;

typedef struct network {
  const language_model *model;
  rondo_program *program;
  const rondo_value *states;
  network_use use;
  rondo_value length;           /* TO_GO_ON, TO_STEP: tokens in the caches; else no value */
  size_t slots;                 /* TO_STEP: of the caches, as are the next two */
  rondo_value slot, new_tokens; /* of each row: its slot, [rows, 1], and how many of the tokens are valid */
} network;

static const rondo_value *last_states(const network *n) {
  return n->states + FIRST_OF_BLOCKS + (size_t)n->model->sizes[MODEL_LAYERS] * OF_BLOCK;
}

static rondo_status multiply(const network *n, rondo_value x, const rondo_value *weight, rondo_value bias,
                             rondo_activation activation, rondo_value *out) {
  return model_multiply(n->model, n->program, x, weight, bias, activation, out);
}

/* The residual stream through the blocks: a sum, and an optional value that is still to be added. */
typedef struct stream {
  rondo_value sum, addend;
} stream;

/* Adds the pending value first, for x->sum. */
static rondo_status normalise(const network *n, stream *x, const rondo_value *scale_and_shift, rondo_value *out) {
  const rondo_value scale = scale_and_shift[0], shift = scale_and_shift[1], addend = x->addend;
  if (addend.id == 0) return rondo_op_layer_norm(n->program, x->sum, scale, shift, 1, EPSILON, out);
  x->addend = (rondo_value){0};
  return rondo_op_add_layer_norm(n->program, x->sum, addend, scale, shift, 1, EPSILON, &x->sum, out);
}

static rondo_status add_cache(const network *n, size_t block, const char *name, rondo_value *out) {
  const uint32_t *sizes = n->model->sizes, heads = sizes[MODEL_HEADS];
  const size_t slots = n->use == TO_STEP ? n->slots : 1;
  const size_t shape[] = {slots, heads, sizes[MODEL_CONTEXT], sizes[MODEL_WIDTH] / heads};
  char full[40];
  snprintf(full, sizeof full, "block%u.%s", (unsigned)block, name);
  return rondo_program_state(n->program, full, n->model->type, shape, 4, out);
}

/* A prompt begins empty caches. A slot is a block of the caches, which has space for the whole context. */
static rondo_status attend(const network *n, size_t block, rondo_value qkv, rondo_value *out) {
  rondo_attention_options options = {RONDO_ATTENTION_OPTIONS_INIT, .causal = true, .lengths = n->length,
                                     .new_rows = n->new_tokens, .block_table = n->slot};
  const size_t heads = n->model->sizes[MODEL_HEADS];
  if (n->use != TO_SCORE) {
    TOOL_TRY(add_cache(n, block, "k_cache", &options.k_cache));
    TOOL_TRY(add_cache(n, block, "v_cache", &options.v_cache));
  }
  return rondo_op_attention_packed(n->program, qkv, heads, heads, &options, out);
}

static rondo_status add_block(const network *n, size_t block, stream *x) {
  const rondo_value *of = n->states + FIRST_OF_BLOCKS + block * OF_BLOCK;
  rondo_value y;
  TOOL_TRY(normalise(n, x, &of[NORM1_SCALE], &y));
  TOOL_TRY(multiply(n, y, &of[QKV_WEIGHT], of[QKV_BIAS], RONDO_ACTIVATION_NONE, &y));
  TOOL_TRY(attend(n, block, y, &y));
  TOOL_TRY(multiply(n, y, &of[JOIN_WEIGHT], of[JOIN_BIAS], RONDO_ACTIVATION_NONE, &x->addend));
  TOOL_TRY(normalise(n, x, &of[NORM2_SCALE], &y));
  TOOL_TRY(multiply(n, y, &of[HIDDEN_WEIGHT], of[HIDDEN_BIAS], RONDO_ACTIVATION_GELU, &y));
  return multiply(n, y, &of[OUTPUT_WEIGHT], of[OUTPUT_BIAS], RONDO_ACTIVATION_NONE, &x->addend);
}

/* From tokens [.., count] and the embeddings of their positions to the input of the last normalization. */
static rondo_status add_blocks(const network *n, rondo_value tokens, rondo_value places, stream *x) {
  *x = (stream){{0}, {0}};
  TOOL_TRY(model_look_up(n->model, n->program, &n->states[TOKENS], tokens, &x->sum));
  TOOL_TRY(rondo_op_add(n->program, x->sum, places, &x->sum));
  TOOL_TRY(rondo_op_cast(n->program, x->sum, n->model->type, &x->sum));
  for (size_t block = 0; block < n->model->sizes[MODEL_LAYERS]; block++) TOOL_TRY(add_block(n, block, x));
  return RONDO_OK;
}

static rondo_status add_head(const network *n, stream *x, rondo_value *out_logits) {
  const rondo_value *last = last_states(n);
  rondo_value y;
  TOOL_TRY(normalise(n, x, &last[NORM_SCALE], &y));
  return multiply(n, y, &last[HEAD], (rondo_value){0}, RONDO_ACTIVATION_NONE, out_logits);
}

/* The shape of the tokens contains the batch size. */
static rondo_status build(const language_model *model, rondo_program *program, const rondo_value *states,
                          rondo_value tokens, size_t batch, rondo_value *out_logits) {
  const network n = {.model = model, .program = program, .states = states, .use = TO_SCORE};
  stream x;
  (void)batch;
  TOOL_TRY(add_blocks(&n, tokens, states[PLACES], &x));
  return add_head(&n, &x, out_logits);
}

static rondo_status build_prompt(const language_model *model, rondo_program *program, const rondo_value *states,
                                 size_t length) {
  const network n = {.model = model, .program = program, .states = states, .use = TO_BEGIN};
  const size_t width = model->sizes[MODEL_WIDTH], none[] = {0, 0};
  rondo_value tokens, last, places, logits;
  stream x;
  TOOL_TRY(rondo_program_input(program, "tokens", RONDO_I32, (size_t[]){1, length}, 2, &tokens));
  TOOL_TRY(rondo_program_input(program, "last", RONDO_I32, (size_t[]){1}, 1, &last));
  TOOL_TRY(rondo_op_slice(program, states[PLACES], none, (size_t[]){length, width}, NULL, &places));
  TOOL_TRY(add_blocks(&n, tokens, places, &x));
  TOOL_TRY(rondo_op_index_select(program, x.sum, last, 1, &x.sum));
  TOOL_TRY(rondo_op_index_select(program, x.addend, last, 1, &x.addend));
  TOOL_TRY(add_head(&n, &x, &logits));
  return rondo_program_output(program, "logits", logits);
}

static rondo_status build_next(const language_model *model, rondo_program *program, const rondo_value *states) {
  network n = {.model = model, .program = program, .states = states, .use = TO_GO_ON};
  rondo_value tokens, place, logits;
  stream x;
  TOOL_TRY(rondo_program_input(program, "tokens", RONDO_I32, (size_t[]){1, 1}, 2, &tokens));
  TOOL_TRY(rondo_program_input(program, "length", RONDO_I32, NULL, 0, &n.length));
  TOOL_TRY(rondo_op_reshape(program, n.length, (size_t[]){1, 1}, 2, &place));
  TOOL_TRY(rondo_op_embedding(program, states[PLACES], place, &place));
  TOOL_TRY(add_blocks(&n, tokens, place, &x));
  TOOL_TRY(add_head(&n, &x, &logits));
  return rondo_program_output(program, "logits", logits);
}

static rondo_status add_row_input(rondo_program *program, const char *name, const rondo_model_size *size, size_t rank,
                                  rondo_value *out) {
  return rondo_program_input(program, name, RONDO_I32, (size_t[]){size->rows, size->length}, rank, out);
}

/* The rows of the last valid tokens. */
static rondo_status select_last(const network *n, const rondo_model_size *size, rondo_value last, rondo_value *x) {
  const size_t shape[] = {size->rows * size->length, n->model->sizes[MODEL_WIDTH]};
  TOOL_TRY(rondo_op_reshape(n->program, *x, shape, 2, x));
  return rondo_op_index_select(n->program, *x, last, 0, x);
}

/* A token for each row. Its random number depends on the sequence's seed and the position of the token. */
static rondo_status draw_tokens(const network *n, const rondo_model_size *size, rondo_value logits) {
  rondo_categorical_options options = {RONDO_CATEGORICAL_OPTIONS_INIT};
  rondo_value seed, position, token;
  TOOL_TRY(rondo_program_input(n->program, "seed", RONDO_I64, &size->rows, 1, &seed));
  TOOL_TRY(rondo_program_input(n->program, "temperature", RONDO_F32, &size->rows, 1, &options.temperature));
  TOOL_TRY(rondo_op_add(n->program, n->length, n->new_tokens, &position));
  TOOL_TRY(rondo_op_categorical(n->program, logits, seed, position, &options, &token));
  return rondo_program_output(n->program, "token", token);
}

static rondo_status build_steps(const language_model *model, rondo_program *program, const rondo_value *states,
                                const rondo_model_size *size) {
  network n = {.model = model, .program = program, .states = states, .use = TO_STEP, .slots = size->slots};
  rondo_value tokens, places, last, logits;
  stream x;
  TOOL_TRY(add_row_input(program, "tokens", size, 2, &tokens));
  TOOL_TRY(add_row_input(program, model_row_inputs.length, size, 1, &n.new_tokens));
  TOOL_TRY(add_row_input(program, model_row_inputs.slot, size, 1, &n.slot));
  TOOL_TRY(add_row_input(program, model_row_inputs.start, size, 1, &n.length));
  TOOL_TRY(add_row_input(program, model_row_inputs.positions, size, 2, &places));
  TOOL_TRY(add_row_input(program, model_row_inputs.last, size, 1, &last));
  TOOL_TRY(rondo_op_reshape(program, n.slot, (size_t[]){size->rows, 1}, 2, &n.slot));
  TOOL_TRY(rondo_op_embedding(program, states[PLACES], places, &places));
  TOOL_TRY(add_blocks(&n, tokens, places, &x));
  TOOL_TRY(select_last(&n, size, last, &x.sum));
  TOOL_TRY(select_last(&n, size, last, &x.addend));
  TOOL_TRY(add_head(&n, &x, &logits));
  return draw_tokens(&n, size, logits);
}

const model_kind model_gpt = {
    .name = "gpt",
    .format = "rondo-byte-gpt",
    .sizes = {[MODEL_CONTEXT] = 64, [MODEL_LAYERS] = 4, [MODEL_WIDTH] = 128, [MODEL_HEADS] = 4},
    .batch = 8,
    .steps = 1000,
    .learning_rate = 0.002,
    .weight_decay = 0.01f,
    .tables = 1,
    .unquantized = 1,
    .predicts_each = true,
    .parameter = parameter,
    .activations = activations,
    .sizes_fit = sizes_fit,
    .build = build,
    .build_prompt = build_prompt,
    .build_next = build_next,
    .build_steps = build_steps,
};
