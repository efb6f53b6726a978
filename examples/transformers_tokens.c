/* SPDX-License-Identifier: MIT
 * Writes tokens with weights of GPT-2 or Llama that the transformers library saved. Rules give each tensor the name
 * that it has in this program, and transpose those of Llama, whose products are stored the other way round. Weights in
 * several files, with an index, are loaded the same way, and weights in BF16 or F16 become F32. Each token is one
 * launch of a recorded graph, with the keys and values of the earlier tokens in caches.
 *
 *   transformers_tokens [DEVICE]
 *   transformers_tokens DEVICE FOLDER COUNT TOKEN...   COUNT tokens after these, which a tokenizer made of a text
 *
 * FOLDER has config.json and model.safetensors, or the index of several files. Without one, the program uses two small
 * models with random weights, which are beside this file: transformers/gpt2 and transformers/llama.
 *
 * Prints: transformers/llama: 22 17 27 60 40 60 60 60
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rondo/rondo.h>

#define TRY(call)                                  \
  do {                                             \
    const rondo_status try_status = (call);        \
    if (try_status != RONDO_OK) return try_status; \
  } while (0)

enum { MOST_TOKENS = 1024 };

/* The names of the files, and those of the states below. A "*" is the number of a layer, or a part of a name. */
static const rondo_weight_rule gpt2_rules[] = {
    {.from = "transformer.wte.weight", .to = "tokens"},
    {.from = "transformer.wpe.weight", .to = "positions"},
    {.from = "transformer.h.*.ln_*.weight", .to = "*.norm*.scale"},
    {.from = "transformer.h.*.ln_*.bias", .to = "*.norm*.shift"},
    {.from = "transformer.h.*.attn.c_attn.*", .to = "*.qkv.*"},
    {.from = "transformer.h.*.attn.c_proj.*", .to = "*.o.*"},
    {.from = "transformer.h.*.mlp.c_fc.*", .to = "*.up.*"},
    {.from = "transformer.h.*.mlp.c_proj.*", .to = "*.down.*"},
    {.from = "transformer.ln_f.weight", .to = "norm.scale"},
    {.from = "transformer.ln_f.bias", .to = "norm.shift"},
};

static const rondo_weight_rule llama_rules[] = {
    {.from = "model.embed_tokens.weight", .to = "tokens"},
    {.from = "model.layers.*.input_layernorm.weight", .to = "*.norm1.scale"},
    {.from = "model.layers.*.post_attention_layernorm.weight", .to = "*.norm2.scale"},
    {.from = "model.layers.*.self_attn.*_proj.weight", .to = "*.*.weight", .transpose = true},
    {.from = "model.layers.*.mlp.*_proj.weight", .to = "*.*.weight", .transpose = true},
    {.from = "model.norm.weight", .to = "norm.scale"},
    {.from = "lm_head.weight", .to = "head.weight", .transpose = true},
};

/* Sizes ------------------------------------------------------------------------------------------------------------ */

typedef struct network {
  rondo_program *program;
  bool is_llama, is_tied; /* tied: the product for the logits has the table of tokens */
  size_t layers, width, heads, groups, head, hidden, words, context;
  float epsilon, rope_base;
  rondo_value length, place; /* length: how many tokens came before; place: the same, [1, 1] */
} network;

/* The first number after the key, wherever in the JSON it is. */
static double read_number(const char *config, const char *key, double otherwise) {
  char quoted[64], *end;
  snprintf(quoted, sizeof quoted, "\"%s\":", key);
  const char *at = strstr(config, quoted);
  if (at == NULL) return otherwise;
  const double number = strtod(at + strlen(quoted), &end);
  return end == at + strlen(quoted) ? otherwise : number; /* null */
}

static size_t read_size(const char *config, const char *key, size_t otherwise) {
  return (size_t)read_number(config, key, (double)otherwise);
}

static void read_config(const char *c, network *n) {
  const bool is_llama = n->is_llama = strstr(c, "\"model_type\": \"llama\"") != NULL;
  n->is_tied =
      strstr(c, "\"tie_word_embeddings\": false") == NULL && (!is_llama || strstr(c, "\"tie_word_embeddings\": true"));
  n->layers = read_size(c, is_llama ? "num_hidden_layers" : "n_layer", 0);
  n->width = read_size(c, is_llama ? "hidden_size" : "n_embd", 0);
  n->heads = read_size(c, is_llama ? "num_attention_heads" : "n_head", 1);
  n->groups = read_size(c, "num_key_value_heads", n->heads);
  n->head = read_size(c, "head_dim", n->width / n->heads);
  n->hidden = read_size(c, is_llama ? "intermediate_size" : "n_inner", 4 * n->width);
  n->words = read_size(c, "vocab_size", 0);
  n->context = read_size(c, is_llama ? "max_position_embeddings" : "n_positions", MOST_TOKENS);
  n->epsilon = (float)read_number(c, is_llama ? "rms_norm_eps" : "layer_norm_epsilon", 1e-5);
  n->rope_base = (float)read_number(c, "rope_theta", 10000);
}

/* Network ---------------------------------------------------------------------------------------------------------- */

/* Parameters are states of the program. One with 0 rows is a vector. Layer -1: of the whole. */
static rondo_status add_state(const network *n, int layer, const char *name, const char *part, size_t rows,
                              size_t columns, rondo_value *out) {
  char full[64], number[16] = "";
  if (layer >= 0) snprintf(number, sizeof number, "%d.", layer);
  snprintf(full, sizeof full, "%s%s%s%s", number, name, part[0] == '\0' ? "" : ".", part);
  return rondo_program_state(n->program, full, RONDO_F32, rows == 0 ? &columns : (size_t[]){rows, columns},
                             rows == 0 ? 1 : 2, out);
}

/* y = x weight, weight [from, to], and a bias in GPT-2. */
static rondo_status add_linear(const network *n, int layer, const char *name, size_t from, size_t to,
                               rondo_activation activation, rondo_value x, rondo_value *out) {
  rondo_matmul_options options = {RONDO_MATMUL_OPTIONS_INIT, .activation = activation};
  rondo_value weight;
  TRY(add_state(n, layer, name, "weight", from, to, &weight));
  if (!n->is_llama) TRY(add_state(n, layer, name, "bias", 0, to, &options.bias));
  return rondo_op_matmul_with(n->program, x, weight, &options, out);
}

static rondo_status add_norm(const network *n, int layer, const char *name, rondo_value x, rondo_value *out) {
  rondo_value scale, shift;
  TRY(add_state(n, layer, name, "scale", 0, n->width, &scale));
  if (n->is_llama) return rondo_op_rms_norm(n->program, x, scale, 1, n->epsilon, out);
  TRY(add_state(n, layer, name, "shift", 0, n->width, &shift));
  return rondo_op_layer_norm(n->program, x, scale, shift, 1, n->epsilon, out);
}

/* q, k and v side by side. */
static rondo_status add_qkv(const network *n, int layer, rondo_value x, rondo_value *out) {
  const size_t q_width = n->heads * n->head, k_width = n->groups * n->head;
  rondo_value parts[3];
  if (!n->is_llama) return add_linear(n, layer, "qkv", n->width, 3 * n->width, RONDO_ACTIVATION_NONE, x, out);
  TRY(add_linear(n, layer, "q", n->width, q_width, RONDO_ACTIVATION_NONE, x, &parts[0]));
  TRY(add_linear(n, layer, "k", n->width, k_width, RONDO_ACTIVATION_NONE, x, &parts[1]));
  TRY(add_linear(n, layer, "v", n->width, k_width, RONDO_ACTIVATION_NONE, x, &parts[2]));
  TRY(rondo_op_concat(n->program, parts, 3, 2, out));
  const rondo_rotary_options options = {RONDO_ROTARY_OPTIONS_INIT, .base = n->rope_base, .heads = n->heads,
                                        .groups = n->groups};
  return rondo_op_rotary(n->program, *out, n->place, &options, out);
}

static rondo_status add_attention(const network *n, int layer, rondo_value x, rondo_value *out) {
  rondo_attention_options options = {RONDO_ATTENTION_OPTIONS_INIT, .lengths = n->length};
  const size_t cache[] = {1, n->groups, n->context, n->head};
  rondo_value *const caches[] = {&options.k_cache, &options.v_cache};
  rondo_value y;
  char name[32];
  for (int i = 0; i < 2; i++) {
    snprintf(name, sizeof name, "cache.%c.%d", "kv"[i], layer);
    TRY(rondo_program_state(n->program, name, RONDO_F32, cache, 4, caches[i]));
  }
  TRY(add_qkv(n, layer, x, &y));
  TRY(rondo_op_attention_packed(n->program, y, n->heads, n->groups, &options, &y));
  return add_linear(n, layer, "o", n->heads * n->head, n->width, RONDO_ACTIVATION_NONE, y, out);
}

/* Llama: silu(gate) up; GPT-2: gelu(up). */
static rondo_status add_mlp(const network *n, int layer, rondo_value x, rondo_value *out) {
  rondo_value gate, up;
  const rondo_activation gelu = n->is_llama ? RONDO_ACTIVATION_NONE : RONDO_ACTIVATION_GELU_TANH;
  TRY(add_linear(n, layer, "up", n->width, n->hidden, gelu, x, &up));
  if (n->is_llama) {
    TRY(add_linear(n, layer, "gate", n->width, n->hidden, RONDO_ACTIVATION_SILU, x, &gate));
    TRY(rondo_op_mul(n->program, gate, up, &up));
  }
  return add_linear(n, layer, "down", n->hidden, n->width, RONDO_ACTIVATION_NONE, up, out);
}

static rondo_status add_block(const network *n, int layer, rondo_value *x) {
  rondo_value y;
  TRY(add_norm(n, layer, "norm1", *x, &y));
  TRY(add_attention(n, layer, y, &y));
  TRY(rondo_op_add(n->program, *x, y, x));
  TRY(add_norm(n, layer, "norm2", *x, &y));
  TRY(add_mlp(n, layer, y, &y));
  return rondo_op_add(n->program, *x, y, x);
}

static rondo_status add_network(network *n) {
  const size_t one[] = {1, 1};
  rondo_value token, table, positions, x, y;
  TRY(rondo_program_input(n->program, "token", RONDO_I32, one, 2, &token));
  TRY(rondo_program_input(n->program, "length", RONDO_I32, NULL, 0, &n->length));
  TRY(rondo_op_reshape(n->program, n->length, one, 2, &n->place));
  TRY(add_state(n, -1, "tokens", "", n->words, n->width, &table));
  TRY(rondo_op_embedding(n->program, table, token, &x));
  if (!n->is_llama) {
    TRY(add_state(n, -1, "positions", "", n->context, n->width, &positions));
    TRY(rondo_op_embedding(n->program, positions, n->place, &y));
    TRY(rondo_op_add(n->program, x, y, &x));
  }
  for (int layer = 0; layer < (int)n->layers; layer++) TRY(add_block(n, layer, &x));
  TRY(add_norm(n, -1, "norm", x, &x));
  if (!n->is_tied) TRY(add_state(n, -1, "head", "weight", n->width, n->words, &table));
  const rondo_matmul_options options = {RONDO_MATMUL_OPTIONS_INIT, .transpose_b = n->is_tied};
  TRY(rondo_op_matmul_with(n->program, x, table, &options, &x));
  TRY(rondo_op_argmax(n->program, x, 2, false, &x));
  return rondo_program_output(n->program, "next", x);
}

/* Weights ---------------------------------------------------------------------------------------------------------- */

static bool is_weight(const char *name, void *user) {
  (void)user;
  return strncmp(name, "cache.", 6) != 0;
}

static rondo_status load_weights(const char *folder, const network *n, rondo_compiled *compiled) {
  rondo_weights_options options = {RONDO_WEIGHTS_OPTIONS_INIT, .rules = gpt2_rules, .convert_floats = true};
  options.rule_count = sizeof gpt2_rules / sizeof *gpt2_rules;
  if (n->is_llama) options.rules = llama_rules, options.rule_count = sizeof llama_rules / sizeof *llama_rules;
  char path[4096];
  rondo_weights *weights;
  snprintf(path, sizeof path, "%s/model.safetensors.index.json", folder);
  rondo_status status = rondo_weights_load(path, &options, &weights);
  if (status == RONDO_NOT_FOUND) { /* they are in one file */
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    status = rondo_weights_load(path, &options, &weights);
  }
  TRY(status);
  status = rondo_weights_apply(weights, compiled, is_weight, NULL);
  rondo_weights_destroy(weights);
  return status;
}

/* Tokens ----------------------------------------------------------------------------------------------------------- */

static rondo_status make_network(const char *folder, rondo_device *device, rondo_compiled **out) {
  static char config[65536];
  network n = {.program = NULL};
  char path[4096];
  snprintf(path, sizeof path, "%s/config.json", folder);
  FILE *file = fopen(path, "r");
  if (file == NULL) {
    perror(path);
    return RONDO_NOT_FOUND;
  }
  config[fread(config, 1, sizeof config - 1, file)] = '\0';
  fclose(file);
  read_config(config, &n);
  if (n.context > MOST_TOKENS) n.context = MOST_TOKENS;
  TRY(rondo_program_create(NULL, &n.program));
  rondo_status status = add_network(&n);
  if (status == RONDO_OK) status = rondo_compile(n.program, device, NULL, out);
  rondo_program_destroy(n.program);
  return status == RONDO_OK ? load_weights(folder, &n, *out) : status;
}

/* Greedy: the most probable token follows. The first `given` tokens are the prompt. */
static rondo_status write_tokens(rondo_compiled *compiled, int32_t *tokens, int32_t given, int32_t count) {
  for (int32_t i = 0; i + 1 < count; i++) {
    int32_t next;
    TRY(rondo_compiled_write(compiled, "token", &tokens[i], sizeof *tokens));
    TRY(rondo_compiled_write(compiled, "length", &i, sizeof i));
    TRY(rondo_compiled_run(compiled)); /* one launch */
    TRY(rondo_compiled_read(compiled, "next", &next, sizeof next));
    if (i + 1 >= given) tokens[i + 1] = next;
  }
  return RONDO_OK;
}

static rondo_status run(rondo_device *device, const char *folder, int32_t *tokens, int32_t given, int32_t count) {
  rondo_compiled *compiled;
  TRY(make_network(folder, device, &compiled));
  TRY(write_tokens(compiled, tokens, given, count));
  printf("%s:", folder);
  for (int32_t i = given; i < count; i++) printf(" %d", (int)tokens[i]);
  printf("\n");
  return rondo_compiled_destroy(compiled);
}

static rondo_status run_all(int argc, char **argv) {
  static int32_t tokens[MOST_TOKENS];
  const int32_t prompt[] = {5, 17, 42};
  rondo_device *device;
  TRY(rondo_device_open(argc > 1 ? argv[1] : "cpu", NULL, &device));
  if (argc > 4) {
    const int32_t given = argc - 4 < MOST_TOKENS ? argc - 4 : MOST_TOKENS, more = (int32_t)strtol(argv[3], NULL, 10);
    for (int32_t i = 0; i < given; i++) tokens[i] = (int32_t)strtol(argv[4 + i], NULL, 10);
    TRY(run(device, argv[2], tokens, given, given + more < MOST_TOKENS ? given + more : MOST_TOKENS));
    return rondo_device_close(device);
  }
  const char *const folders[] = {"transformers/gpt2", "transformers/llama"};
  for (int i = 0; i < 2; i++) {
    memcpy(tokens, prompt, sizeof prompt);
    TRY(run(device, folders[i], tokens, 3, 11));
  }
  return rondo_device_close(device);
}

int main(int argc, char **argv) {
  if (run_all(argc, argv) != RONDO_OK) {
    fprintf(stderr, "%s: %s\n", argv[0], rondo_last_error()->message);
    return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}
