/* SPDX-License-Identifier: MIT
 * BERT (Devlin et al. 2019), of the size called mini, with a classifier: blocks that normalise after each sum, and
 * texts of different lengths.
 */
#include "bench_check.h"
#include "networks/network_layers.h"

static rondo_value add_block(network_builder *b, rondo_value x, size_t heads, const rondo_attention_options *options) {
  x = network_layer_norm(b, "norm1", network_sum(b, x, network_attention(b, x, heads, options)));
  return network_layer_norm(b, "norm2", network_sum(b, x, network_feed_forward(b, x, RONDO_ACTIVATION_GELU)));
}

static rondo_value first_token(const network_builder *b, rondo_value x) {
  const size_t start[] = {0, 0, 0}, length[] = {network_size(b, x, 0), 1, network_size(b, x, 2)};
  check(rondo_op_slice(b->program, x, start, length, NULL, &x));
  check(rondo_op_reshape(b->program, x, (size_t[]){length[0], length[2]}, 2, &x));
  return x;
}

rondo_value network_bert(network_builder *b, const void *sizes) {
  const network_bert_sizes *s = sizes;
  const size_t shape[] = {s->batch, s->context};
  rondo_attention_options options = {RONDO_ATTENTION_OPTIONS_INIT};
  const rondo_value tokens = network_input_add(b, "tokens", RONDO_I32, shape, 2, s->vocabulary);
  const rondo_value parts = network_input_add(b, "parts", RONDO_I32, shape, 2, 2);
  options.lengths = network_input_add(b, "lengths", RONDO_I32, shape, 1, s->context + 1);
  rondo_value x = network_look_up(b, network_table(b, "tokens", s->vocabulary, s->width), tokens);
  x = network_sum(b, x, network_table(b, "places", s->context, s->width));
  x = network_sum(b, x, network_look_up(b, network_table(b, "parts", 2, s->width), parts));
  x = network_layer_norm(b, "norm", x);
  for (size_t i = 0; i < s->layers; i++) {
    const size_t outer = network_enter(b, "blocks.%zu", i);
    x = add_block(b, x, s->heads, &options);
    network_leave(b, outer);
  }
  x = network_linear(b, "pool", first_token(b, x), s->width, true, RONDO_ACTIVATION_NONE);
  check(rondo_op_tanh(b->program, x, &x));
  return network_cross_entropy(b, network_linear(b, "head", x, s->classes, true, RONDO_ACTIVATION_NONE));
}
