/* SPDX-License-Identifier: MIT
 * Trains a small GPT on a rhyme. The whole step is recorded as one graph: embeddings, blocks of causal attention and an
 * MLP with residual connections and layer normalization, cross entropy for each byte, and AdamW. Then a second program
 * with the weights of the first generates text. The last function serves it: as a shared object, this file is a model
 * for Triton Inference Server (<rondo/triton.h>), with the weights that FILE has got.
 *
 *   gpt [DEVICE [FILE]]
 *
 * Prints: after 80 replayed steps: the cow jumped over the moon
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rondo/rondo.h>
#include <rondo/triton.h>

#define TRY(call)                                  \
  do {                                             \
    const rondo_status try_status = (call);        \
    if (try_status != RONDO_OK) return try_status; \
  } while (0)

enum { LAYERS = 2, WIDTH = 32, HEADS = 2, CONTEXT = 16, BATCH = 8, BYTES = 128, STEPS = 80, WRITTEN = 28 };

static const char rhyme[] = "hey diddle diddle the cow jumped over the moon ";

typedef struct network {
  rondo_program *program;
  size_t batch;
} network;

/* Parameters are states of the program. One with 0 rows is a vector. */
static rondo_status add_state(const network *n, int layer, const char *name, const char *part, size_t rows,
                              size_t columns, rondo_value *out) {
  char full[32];
  snprintf(full, sizeof full, "%d.%s.%s", layer, name, part);
  return rondo_program_state(n->program, full, RONDO_F32, rows == 0 ? &columns : (size_t[]){rows, columns},
                             rows == 0 ? 1 : 2, out);
}

static rondo_status add_linear(const network *n, int layer, const char *name, size_t from, size_t to,
                               rondo_activation activation, rondo_value *x) {
  rondo_matmul_options options = {RONDO_MATMUL_OPTIONS_INIT, .activation = activation};
  rondo_value weight;
  TRY(add_state(n, layer, name, "weight", from, to, &weight));
  TRY(add_state(n, layer, name, "bias", 0, to, &options.bias));
  return rondo_op_matmul_with(n->program, *x, weight, &options, x);
}

static rondo_status add_norm(const network *n, int layer, const char *name, rondo_value x, rondo_value *out) {
  rondo_value scale, shift;
  TRY(add_state(n, layer, name, "scale", 0, WIDTH, &scale));
  TRY(add_state(n, layer, name, "shift", 0, WIDTH, &shift));
  return rondo_op_layer_norm(n->program, x, scale, shift, 1, 1e-5f, out);
}

static rondo_status add_block(const network *n, int layer, rondo_value *x) {
  const rondo_attention_options causal = {RONDO_ATTENTION_OPTIONS_INIT, .causal = true};
  rondo_value y;
  TRY(add_norm(n, layer, "norm1", *x, &y));
  TRY(add_linear(n, layer, "qkv", WIDTH, 3 * WIDTH, RONDO_ACTIVATION_NONE, &y));
  TRY(rondo_op_attention_packed(n->program, y, HEADS, HEADS, &causal, &y));
  TRY(add_linear(n, layer, "join", WIDTH, WIDTH, RONDO_ACTIVATION_NONE, &y));
  TRY(rondo_op_add(n->program, *x, y, x));
  TRY(add_norm(n, layer, "norm2", *x, &y));
  TRY(add_linear(n, layer, "hidden", WIDTH, 4 * WIDTH, RONDO_ACTIVATION_GELU, &y));
  TRY(add_linear(n, layer, "output", 4 * WIDTH, WIDTH, RONDO_ACTIVATION_NONE, &y));
  return rondo_op_add(n->program, *x, y, x);
}

static rondo_status add_network(const network *n, rondo_value *out_logits) {
  rondo_value tokens, table, places, head, x;
  TRY(rondo_program_input(n->program, "tokens", RONDO_I32, (size_t[]){n->batch, CONTEXT}, 2, &tokens));
  TRY(add_state(n, 0, "tokens", "embedding", BYTES, WIDTH, &table));
  TRY(add_state(n, 0, "places", "embedding", CONTEXT, WIDTH, &places));
  TRY(rondo_op_embedding(n->program, table, tokens, &x));
  TRY(rondo_op_add(n->program, x, places, &x));
  for (int layer = 0; layer < LAYERS; layer++) TRY(add_block(n, layer, &x));
  TRY(add_norm(n, LAYERS, "norm", x, &x));
  TRY(add_state(n, LAYERS, "head", "weight", WIDTH, BYTES, &head));
  TRY(rondo_op_matmul(n->program, x, head, (rondo_value){0}, out_logits));
  return rondo_program_output(n->program, "logits", *out_logits);
}

static rondo_status add_training(const network *n, rondo_value logits) {
  rondo_value labels, loss, rate;
  TRY(rondo_program_input(n->program, "labels", RONDO_I32, (size_t[]){n->batch, CONTEXT}, 2, &labels));
  TRY(rondo_op_cross_entropy(n->program, logits, labels, &loss));
  TRY(rondo_program_cell(n->program, "rate", 0, &rate));
  return rondo_program_adam(n->program, loss,
                            &(rondo_adam_options){RONDO_ADAM_OPTIONS_INIT, .learning_rate = rate, .weight_decay = 0.01f,
                                                  .decay_dimensions = 2});
}

static rondo_status compile(rondo_device *device, size_t batch, bool trains, rondo_compiled **out) {
  network n = {.batch = batch};
  rondo_value logits;
  TRY(rondo_program_create(NULL, &n.program));
  rondo_status status = add_network(&n, &logits);
  if (status == RONDO_OK && trains) status = add_training(&n, logits);
  if (status == RONDO_OK) status = rondo_compile(n.program, device, NULL, out);
  rondo_program_destroy(n.program);
  return status;
}

/* The scales of layer normalization begin as 1, weights as random values around 0, and all others as 0. */
static rondo_status write_first_values(rondo_compiled *compiled) {
  static float values[BYTES * WIDTH + 4 * WIDTH * WIDTH];
  rondo_compiled_value state = {.struct_size = sizeof state};
  unsigned random = 1;
  for (size_t i = 0; rondo_compiled_get_value(compiled, i, &state) == RONDO_OK && state.kind == 's'; i++) {
    const char *end = strrchr(state.name, '.');
    if (strcmp(end, ".m") == 0 || strcmp(end, ".v") == 0 || state.type != RONDO_F32) continue;
    for (size_t k = 0; k < state.bytes / sizeof *values; k++) {
      random = random * 1664525u + 1013904223u;
      values[k] = state.rank == 2 ? (float)(random >> 16) / 65536 * 0.2f - 0.1f : (float)(strcmp(end, ".scale") == 0);
    }
    TRY(rondo_compiled_write(compiled, state.name, values, state.bytes));
  }
  return RONDO_OK;
}

/* Random positions of the rhyme, which repeats. The label of each byte is the next byte. */
static rondo_status train(rondo_compiled *compiled) {
  int32_t tokens[BATCH][CONTEXT], labels[BATCH][CONTEXT];
  for (int step = 0; step < STEPS; step++) {
    for (int row = 0; row < BATCH; row++) {
      for (int i = 0; i < CONTEXT; i++) {
        const size_t at = (size_t)(step * BATCH + row) * 17 + (size_t)i, length = sizeof rhyme - 1;
        tokens[row][i] = rhyme[at % length];
        labels[row][i] = rhyme[(at + 1) % length];
      }
    }
    const float rate = 0.009f * (float)(STEPS - step) / STEPS; /* changes without a new recording */
    TRY(rondo_compiled_write(compiled, "rate", &rate, sizeof rate));
    TRY(rondo_compiled_write(compiled, "tokens", tokens, sizeof tokens));
    TRY(rondo_compiled_write(compiled, "labels", labels, sizeof labels));
    TRY(rondo_compiled_run(compiled)); /* one launch */
  }
  return RONDO_OK;
}

/* Generates text after a prompt by greedy decoding. */
static rondo_status write_on(rondo_compiled *compiled, const char *words, char *out) {
  int32_t window[CONTEXT];
  static float logits[CONTEXT][BYTES];
  for (int i = 0; i < CONTEXT; i++) window[i] = words[i - CONTEXT];
  for (int i = 0; i < WRITTEN; i++) {
    TRY(rondo_compiled_write(compiled, "tokens", window, sizeof window));
    TRY(rondo_compiled_run(compiled));
    TRY(rondo_compiled_read(compiled, "logits", logits, sizeof logits));
    int best = 0;
    for (int byte = 1; byte < BYTES; byte++) best = logits[CONTEXT - 1][byte] > logits[CONTEXT - 1][best] ? byte : best;
    memmove(window, window + 1, (CONTEXT - 1) * sizeof *window);
    window[CONTEXT - 1] = best;
    out[i] = (char)best;
  }
  return RONDO_OK;
}

/* Gives the writer the weights, and writes them to a file if there is a path. */
static rondo_status hand_over(rondo_compiled *trained, rondo_compiled *writer, const char *path) {
  rondo_weights *weights, *kept;
  TRY(rondo_weights_create(NULL, &weights));
  TRY(rondo_weights_create(NULL, &kept));
  TRY(rondo_weights_gather(weights, trained, NULL, NULL));
  TRY(rondo_weights_apply(weights, writer, NULL, NULL));
  TRY(rondo_weights_gather(kept, writer, NULL, NULL)); /* without optimizer states */
  if (path != NULL) TRY(rondo_weights_save(kept, path));
  rondo_weights_destroy(kept);
  rondo_weights_destroy(weights);
  return RONDO_OK;
}

static rondo_status run(const char *device_name, const char *path, char *out_text) {
  rondo_device *device;
  rondo_compiled *trained, *writer;
  TRY(rondo_device_open(device_name, NULL, &device));
  TRY(compile(device, BATCH, true, &trained));
  TRY(write_first_values(trained));
  TRY(train(trained));
  TRY(compile(device, 1, false, &writer));
  TRY(hand_over(trained, writer, path));
  TRY(write_on(writer, strstr(rhyme, "the cow"), out_text));
  TRY(rondo_compiled_destroy(writer));
  TRY(rondo_compiled_destroy(trained));
  return rondo_device_close(device);
}

int main(int argc, char **argv) {
  char text[WRITTEN + 1] = "";
  if (run(argc > 1 ? argv[1] : "cpu", argc > 2 ? argv[2] : NULL, text) != RONDO_OK) {
    fprintf(stderr, "%s: %s\n", argv[0], rondo_last_error()->message);
    return EXIT_FAILURE;
  }
  printf("after %d replayed steps: %s\n", STEPS, text);
  return EXIT_SUCCESS;
}

/* Serving ---------------------------------------------------------------------------------------------------------- */

static rondo_status build_network(void *user, size_t rows, rondo_program *program) {
  const network n = {.program = program, .batch = rows};
  rondo_value logits;
  (void)user;
  return add_network(&n, &logits);
}

static void release(rondo_triton_description *description) { rondo_weights_destroy(description->user); }

/* Its weights are weights.safetensors in the folder of the model's version. */
rondo_status rondo_triton_model(const char *folder, rondo_triton_description *out) {
  char path[4096];
  rondo_weights *weights;
  (void)snprintf(path, sizeof path, "%s/weights.safetensors", folder);
  TRY(rondo_weights_load(path, NULL, &weights));
  out->model.build = build_network;
  out->model.weights = weights;
  out->release = release;
  out->user = weights;
  return RONDO_OK;
}
