/* SPDX-License-Identifier: MIT
 * The networks that rondo_bench networks measures, written as a user would. bench/networks_torch.py has the same ones
 * in PyTorch: the states have its names, shapes and order of dimensions, so that both can use one file of weights.
 *
 * A builder collects the program of one network. A name is that of the layer, within the scopes that are entered. An
 * error ends the process, as in all benchmarks. One thread.
 */
#ifndef RONDO_BENCH_NETWORK_H
#define RONDO_BENCH_NETWORK_H

#include <rondo/rondo.h>
#include <stdbool.h>
#include <stddef.h>

enum { NETWORK_NAME = 64, NETWORK_INPUTS = 4 };

/* An input of the network. Integers are below `limit`. */
typedef struct network_input {
  const char *name;
  size_t limit;
} network_input;

typedef struct network_builder {
  rondo_program *program;
  rondo_type type; /* of products and what follows them; parameters and losses are F32 */
  bool trains;
  char scope[NETWORK_NAME]; /* "blocks.0." */
  network_input inputs[NETWORK_INPUTS];
  size_t input_count;
} network_builder;

typedef enum network_optimizer {
  NETWORK_NONE,
  NETWORK_ADAMW,
  NETWORK_SGD,
  NETWORK_MOMENTUM,
  NETWORK_ADAGRAD
} network_optimizer;

/* A row of the table: a network with its sizes, and how it is used. */
typedef struct network_row {
  const char *name;
  rondo_value (*build)(network_builder *b, const void *sizes); /* to the loss, or, without an optimizer, the output */
  const void *sizes;
  network_optimizer optimizer;
  rondo_type type;
} network_row;

/* The row of this name; NULL: there is none. */
const network_row *network_find(const char *name);
/* The names of all rows, separated by spaces. */
const char *network_names(void);

/* Adds the network of a row to the program, with its optimizer, and the output "loss" or "y". */
void network_add(network_builder *b, const network_row *row);

/* Enters a scope, such as "blocks.0", and returns the length of the outer scope, with which to leave it. */
size_t network_enter(network_builder *b, const char *format, ...) RONDO_PRINTF(2, 3);
void network_leave(network_builder *b, size_t outer);

rondo_value network_input_add(network_builder *b, const char *name, rondo_type type, const size_t *shape, size_t rank,
                              size_t limit);
/* options may be NULL. */
rondo_value network_state(network_builder *b, const char *name, const size_t *shape, size_t rank,
                          const rondo_state_options *options);

/* Each file of this folder has one network, or two that share its code. */
rondo_value network_bert(network_builder *b, const void *sizes);
rondo_value network_dlrm(network_builder *b, const void *sizes);
rondo_value network_gpt2(network_builder *b, const void *sizes);
rondo_value network_gru(network_builder *b, const void *sizes);
rondo_value network_llama(network_builder *b, const void *sizes);
rondo_value network_llama_decode(network_builder *b, const void *sizes);
rondo_value network_lstm(network_builder *b, const void *sizes);
rondo_value network_resnet18(network_builder *b, const void *sizes);
rondo_value network_unet(network_builder *b, const void *sizes);
rondo_value network_vit(network_builder *b, const void *sizes);

/* The sizes of the rows. */
typedef struct network_gpt2_sizes {
  size_t layers, width, heads, vocabulary, context, batch;
} network_gpt2_sizes;

typedef struct network_llama_sizes {
  size_t layers, width, hidden, heads, groups, vocabulary, context, batch;
} network_llama_sizes;

typedef struct network_image_sizes {
  size_t batch, channels, edge, classes;
} network_image_sizes;

typedef struct network_dlrm_sizes {
  size_t batch, dense, tables, rows, width;
} network_dlrm_sizes;

typedef struct network_bert_sizes {
  size_t layers, width, heads, vocabulary, context, batch, classes;
} network_bert_sizes;

typedef struct network_vit_sizes {
  size_t layers, width, heads, patch, edge, batch, classes;
} network_vit_sizes;

typedef struct network_recurrent_sizes {
  size_t layers, width, hidden, vocabulary, steps, batch;
} network_recurrent_sizes;

#endif
