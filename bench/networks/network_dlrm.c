/* SPDX-License-Identifier: MIT
 * DLRM (Naumov et al. 2019) with the layers of its reference for Criteo's data: a bottom and a top MLP, and the
 * products of all pairs of embeddings between them. Updates of tables are sparse.
 */
#include <stdio.h>

#include "bench_check.h"
#include "networks/network_layers.h"

enum { MOST_TABLES = 32 };

static rondo_value add_layers(network_builder *b, const char *name, rondo_value x, const size_t *widths,
                              rondo_activation last) {
  for (size_t i = 0; widths[i] != 0; i++) {
    char full[NETWORK_NAME];
    snprintf(full, sizeof full, "%s.%zu", name, i);
    x = network_linear(b, full, x, widths[i], true, widths[i + 1] != 0 ? RONDO_ACTIVATION_RELU : last);
  }
  return x;
}

/* x and a row of each table: [batch, tables + 1, width]. */
static rondo_value add_rows(network_builder *b, const network_dlrm_sizes *s, rondo_value x) {
  const rondo_state_options sparse = {RONDO_STATE_OPTIONS_INIT, .sparse = true};
  const rondo_value rows = network_input_add(b, "rows", RONDO_I32, (size_t[]){s->tables, s->batch}, 2, s->rows);
  size_t lengths[MOST_TABLES];
  rondo_value indices[MOST_TABLES], parts[MOST_TABLES + 1] = {x};
  for (size_t i = 0; i < s->tables; i++) lengths[i] = 1;
  check(rondo_op_split(b->program, rows, 0, lengths, s->tables, indices));
  for (size_t i = 0; i < s->tables; i++) {
    char name[NETWORK_NAME];
    snprintf(name, sizeof name, "tables.%zu.weight", i);
    const rondo_value table = network_state(b, name, (size_t[]){s->rows, s->width}, 2, &sparse);
    check(rondo_op_reshape(b->program, indices[i], &s->batch, 1, &indices[i]));
    parts[i + 1] = network_look_up(b, table, indices[i]);
  }
  check(rondo_op_stack(b->program, parts, s->tables + 1, 1, &x));
  return x;
}

/* The products of all pairs of rows, of which the input "pairs" selects each once. */
static rondo_value add_products(network_builder *b, rondo_value all) {
  const size_t parts = network_size(b, all, 1), flat[] = {network_size(b, all, 0), parts * parts};
  const size_t count = parts * (parts - 1) / 2;
  const rondo_matmul_options transposed = {RONDO_MATMUL_OPTIONS_INIT, .transpose_b = true};
  const rondo_value pairs = network_input_add(b, "pairs", RONDO_I32, &count, 1, flat[1]);
  check(rondo_op_matmul_with(b->program, all, all, &transposed, &all));
  check(rondo_op_reshape(b->program, all, flat, 2, &all));
  check(rondo_op_index_select(b->program, all, pairs, 1, &all));
  return all;
}

rondo_value network_dlrm(network_builder *b, const void *sizes) {
  const network_dlrm_sizes *s = sizes;
  const size_t bottom[] = {512, 256, 64, s->width, 0}, top[] = {512, 256, 1, 0};
  rondo_value x = network_input_add(b, "dense", RONDO_F32, (size_t[]){s->batch, s->dense}, 2, 0);
  x = add_layers(b, "bottom", x, bottom, RONDO_ACTIVATION_RELU);
  rondo_value parts[] = {x, add_products(b, add_rows(b, s, x))};
  check(rondo_op_concat(b->program, parts, 2, 1, &x));
  x = add_layers(b, "top", x, top, RONDO_ACTIVATION_NONE);
  check(rondo_op_reshape(b->program, x, &s->batch, 1, &x));
  const rondo_value clicks = network_input_add(b, "clicks", RONDO_F32, &s->batch, 1, 0);
  check(rondo_op_bce_with_logits(b->program, x, clicks, RONDO_COMBINE_MEAN, &x));
  return x;
}
