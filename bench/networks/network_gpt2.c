/* SPDX-License-Identifier: MIT
 * GPT-2 (Radford et al. 2019): learned positions, blocks that normalise first, and a head that is the table of tokens.
 */
#include "bench_check.h"
#include "networks/network_layers.h"

rondo_value network_gpt2(network_builder *b, const void *sizes) {
  const network_gpt2_sizes *s = sizes;
  const rondo_attention_options causal = {RONDO_ATTENTION_OPTIONS_INIT, .causal = true};
  const size_t shape[] = {s->batch, s->context};
  const rondo_value tokens = network_input_add(b, "tokens", RONDO_I32, shape, 2, s->vocabulary);
  const rondo_value table = network_table(b, "tokens", s->vocabulary, s->width);
  rondo_value places = network_table(b, "places", s->context, s->width);
  check(rondo_op_cast(b->program, places, b->type, &places));
  rondo_value x = network_sum(b, network_look_up(b, table, tokens), places);
  for (size_t i = 0; i < s->layers; i++) {
    const size_t outer = network_enter(b, "blocks.%zu", i);
    x = network_transformer_block(b, x, s->heads, &causal, RONDO_ACTIVATION_GELU_TANH);
    network_leave(b, outer);
  }
  x = network_layer_norm(b, "norm", x);
  return network_cross_entropy(b, network_product(b, x, table, (rondo_value){0}, RONDO_ACTIVATION_NONE));
}
