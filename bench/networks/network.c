/* SPDX-License-Identifier: MIT
 * The table of networks, and the builder: scopes, states, inputs, and the optimizer at the end.
 */
#include "networks/network.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "bench_check.h"

/* The table -------------------------------------------------------------------------------------------------------- */

static const network_gpt2_sizes gpt2_small = {4, 128, 4, 128, 64, 8}, gpt2_middle = {8, 384, 6, 256, 128, 4},
                                gpt2_large = {12, 768, 12, 50257, 128, 1};
static const network_llama_sizes llama = {10, 512, 1376, 8, 4, 3072, 128, 2},
                                 llama_decode = {10, 512, 1376, 8, 4, 3072, 256, 1};
static const network_image_sizes resnet_batch = {8, 3, 128, 100}, resnet_image = {1, 3, 224, 1000},
                                 unet_batch = {4, 1, 64, 2};
static const network_dlrm_sizes dlrm_small = {128, 13, 26, 1000, 16}, dlrm_large = {128, 13, 26, 100000, 16};
static const network_bert_sizes bert = {4, 256, 4, 30522, 128, 8, 2};
static const network_vit_sizes vit = {12, 192, 3, 16, 224, 4, 1000};
static const network_recurrent_sizes recurrent = {2, 64, 256, 128, 64, 16};

/* bench/networks_torch.py has the same table. */
static const network_row table[] = {
    {"gpt2_0.9m", network_gpt2, &gpt2_small, NETWORK_ADAMW, RONDO_F32},
    {"gpt2_14m", network_gpt2, &gpt2_middle, NETWORK_ADAMW, RONDO_F32},
    {"gpt2_124m", network_gpt2, &gpt2_large, NETWORK_ADAMW, RONDO_F32},
    {"gpt2_14m_bf16", network_gpt2, &gpt2_middle, NETWORK_ADAMW, RONDO_BF16},
    {"llama_32m", network_llama, &llama, NETWORK_ADAMW, RONDO_F32},
    {"llama_32m_decode", network_llama_decode, &llama_decode, NETWORK_NONE, RONDO_F32},
    {"resnet18", network_resnet18, &resnet_batch, NETWORK_MOMENTUM, RONDO_F32},
    {"resnet18_eval", network_resnet18, &resnet_image, NETWORK_NONE, RONDO_F32},
    {"dlrm_1000", network_dlrm, &dlrm_small, NETWORK_SGD, RONDO_F32},
    {"dlrm_100000", network_dlrm, &dlrm_large, NETWORK_SGD, RONDO_F32},
    {"bert", network_bert, &bert, NETWORK_ADAMW, RONDO_F32},
    {"vit", network_vit, &vit, NETWORK_ADAMW, RONDO_F32},
    {"lstm", network_lstm, &recurrent, NETWORK_ADAMW, RONDO_F32},
    {"gru", network_gru, &recurrent, NETWORK_ADAMW, RONDO_F32},
    {"unet", network_unet, &unet_batch, NETWORK_ADAMW, RONDO_F32},
};
enum { ROWS = sizeof table / sizeof table[0] };

const network_row *network_find(const char *name) {
  for (size_t i = 0; i < ROWS; i++)
    if (strcmp(table[i].name, name) == 0) return &table[i];
  return NULL;
}

const char *network_names(void) {
  static char names[ROWS * 20];
  size_t end = 0;
  for (size_t i = 0; i < ROWS; i++)
    end += (size_t)snprintf(names + end, sizeof names - end, "%s%s", i > 0 ? " " : "", table[i].name);
  return names;
}

/* Building --------------------------------------------------------------------------------------------------------- */

size_t network_enter(network_builder *b, const char *format, ...) {
  const size_t outer = strlen(b->scope);
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(b->scope + outer, sizeof b->scope - outer, format, arguments);
  va_end(arguments);
  strncat(b->scope, ".", sizeof b->scope - strlen(b->scope) - 1);
  return outer;
}

void network_leave(network_builder *b, size_t outer) { b->scope[outer] = '\0'; }

rondo_value network_input_add(network_builder *b, const char *name, rondo_type type, const size_t *shape, size_t rank,
                              size_t limit) {
  rondo_value value;
  check(rondo_program_input(b->program, name, type, shape, rank, &value));
  b->inputs[b->input_count++] = (network_input){name, limit};
  return value;
}

rondo_value network_state(network_builder *b, const char *name, const size_t *shape, size_t rank,
                          const rondo_state_options *options) {
  char full[2 * NETWORK_NAME];
  rondo_value value;
  snprintf(full, sizeof full, "%s%s", b->scope, name);
  check(rondo_program_state_with(b->program, full, RONDO_F32, shape, rank, options, &value));
  return value;
}

static void add_optimizer(rondo_program *program, rondo_value loss, network_optimizer optimizer) {
  rondo_value rate, momentum = {0};
  check(rondo_program_cell(program, "rate", 0.001f, &rate));
  if (optimizer == NETWORK_ADAMW) {
    const rondo_adam_options adam = {RONDO_ADAM_OPTIONS_INIT, .learning_rate = rate, .weight_decay = 0.01f};
    check(rondo_program_adam(program, loss, &adam));
    return;
  }
  if (optimizer == NETWORK_ADAGRAD) {
    const rondo_adagrad_options adagrad = {RONDO_ADAGRAD_OPTIONS_INIT, .learning_rate = rate};
    check(rondo_program_adagrad(program, loss, &adagrad));
    return;
  }
  if (optimizer == NETWORK_MOMENTUM) check(rondo_program_cell(program, "momentum", 0.9f, &momentum));
  const rondo_sgd_options sgd = {RONDO_SGD_OPTIONS_INIT, .learning_rate = rate, .momentum = momentum};
  check(rondo_program_sgd(program, loss, &sgd));
}

void network_add(network_builder *b, const network_row *row) {
  b->type = row->type;
  b->trains = row->optimizer != NETWORK_NONE;
  const rondo_value result = row->build(b, row->sizes);
  check(rondo_program_output(b->program, b->trains ? "loss" : "y", result));
  if (b->trains) add_optimizer(b->program, result, row->optimizer);
}
