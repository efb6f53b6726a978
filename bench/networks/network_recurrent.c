/* SPDX-License-Identifier: MIT
 * Language models with an LSTM (Hochreiter and Schmidhuber 1997) or a GRU (Cho et al. 2014). Sequences are [steps,
 * batch].
 */
#include <stdio.h>

#include "bench_check.h"
#include "networks/network_layers.h"

enum { MOST_LAYERS = 4 };

static rondo_value add_weight(network_builder *b, const char *name, size_t layer, const size_t *shape, size_t rank) {
  char full[NETWORK_NAME];
  snprintf(full, sizeof full, "%s_l%zu", name, layer);
  return network_state(b, full, shape, rank, NULL);
}

static void add_weights(network_builder *b, const network_recurrent_sizes *s, size_t gates,
                        rondo_recurrent_weights *weights) {
  const size_t outer = network_enter(b, "recurrent"), rows = gates * s->hidden;
  for (size_t i = 0; i < s->layers; i++) {
    const size_t from = i == 0 ? s->width : s->hidden;
    weights[i] = (rondo_recurrent_weights){.input = add_weight(b, "weight_ih", i, (size_t[]){rows, from}, 2)};
    weights[i].hidden = add_weight(b, "weight_hh", i, (size_t[]){rows, s->hidden}, 2);
    weights[i].input_bias = add_weight(b, "bias_ih", i, &rows, 1);
    weights[i].hidden_bias = add_weight(b, "bias_hh", i, &rows, 1);
  }
  network_leave(b, outer);
}

static rondo_value look_up_tokens(network_builder *b, const network_recurrent_sizes *s) {
  const size_t shape[] = {s->steps, s->batch};
  const rondo_value tokens = network_input_add(b, "tokens", RONDO_I32, shape, 2, s->vocabulary);
  return network_look_up(b, network_table(b, "tokens", s->vocabulary, s->width), tokens);
}

static rondo_value add_head(network_builder *b, const network_recurrent_sizes *s, rondo_value x) {
  return network_cross_entropy(b, network_linear(b, "head", x, s->vocabulary, true, RONDO_ACTIVATION_NONE));
}

rondo_value network_lstm(network_builder *b, const void *sizes) {
  const network_recurrent_sizes *s = sizes;
  const rondo_recurrent_options options = {RONDO_RECURRENT_OPTIONS_INIT, .layers = s->layers};
  rondo_recurrent_weights weights[MOST_LAYERS];
  rondo_value x = look_up_tokens(b, s);
  add_weights(b, s, 4, weights);
  check(rondo_op_lstm(b->program, x, weights, &options, &x, NULL, NULL));
  return add_head(b, s, x);
}

rondo_value network_gru(network_builder *b, const void *sizes) {
  const network_recurrent_sizes *s = sizes;
  const rondo_recurrent_options options = {RONDO_RECURRENT_OPTIONS_INIT, .layers = s->layers};
  rondo_recurrent_weights weights[MOST_LAYERS];
  rondo_value x = look_up_tokens(b, s);
  add_weights(b, s, 3, weights);
  check(rondo_op_gru(b->program, x, weights, &options, &x, NULL));
  return add_head(b, s, x);
}
