/* SPDX-License-Identifier: MIT
 * Llama (Touvron et al. 2023): RMS norms, rotary positions, heads that share keys and values, gated products, no
 * biases. One network trains, the other decodes one token behind a cache of keys and values.
 */
#include "bench_check.h"
#include "networks/network_layers.h"

enum { CACHED = 128 }; /* tokens in the cache when the next one is decoded */

/* What decoding adds to the network; `length` is no value in training. */
typedef struct llama_use {
  const network_llama_sizes *sizes;
  rondo_value positions, length;
} llama_use;

static rondo_value normalise(network_builder *b, const char *name, rondo_value x) {
  const size_t width = network_last_size(b, x), outer = network_enter(b, "%s", name);
  check(rondo_op_rms_norm(b->program, x, network_state(b, "weight", &width, 1, NULL), 1, 1e-5f, &x));
  network_leave(b, outer);
  return x;
}

static rondo_value multiply(network_builder *b, const char *name, rondo_value x, size_t to,
                            rondo_activation activation) {
  return network_linear(b, name, x, to, false, activation);
}

static rondo_value attend(network_builder *b, const llama_use *use, rondo_value x) {
  const network_llama_sizes *s = use->sizes;
  const size_t head = s->width / s->heads, cache[] = {s->batch, s->groups, s->context, head};
  const rondo_rotary_options rotary = {RONDO_ROTARY_OPTIONS_INIT, .heads = s->heads, .groups = s->groups};
  rondo_attention_options options = {RONDO_ATTENTION_OPTIONS_INIT, .causal = true};
  if (use->length.id != 0) {
    const rondo_state_options frozen = {RONDO_STATE_OPTIONS_INIT, .frozen = true};
    options.lengths = use->length;
    options.k_cache = network_state(b, "k_cache", cache, 4, &frozen);
    options.v_cache = network_state(b, "v_cache", cache, 4, &frozen);
  }
  x = multiply(b, "qkv", x, (s->heads + 2 * s->groups) * head, RONDO_ACTIVATION_NONE);
  check(rondo_op_rotary(b->program, x, use->positions, &rotary, &x));
  check(rondo_op_attention_packed(b->program, x, s->heads, s->groups, &options, &x));
  return multiply(b, "join", x, s->width, RONDO_ACTIVATION_NONE);
}

static rondo_value feed_forward(network_builder *b, const network_llama_sizes *s, rondo_value x) {
  const rondo_value gate = multiply(b, "gate", x, s->hidden, RONDO_ACTIVATION_SILU);
  rondo_value up = multiply(b, "up", x, s->hidden, RONDO_ACTIVATION_NONE);
  check(rondo_op_mul(b->program, gate, up, &up));
  return multiply(b, "down", up, s->width, RONDO_ACTIVATION_NONE);
}

static rondo_value add_network(network_builder *b, const llama_use *use, rondo_value tokens) {
  const network_llama_sizes *s = use->sizes;
  rondo_value x = network_look_up(b, network_table(b, "tokens", s->vocabulary, s->width), tokens);
  for (size_t i = 0; i < s->layers; i++) {
    const size_t outer = network_enter(b, "blocks.%zu", i);
    x = network_sum(b, x, attend(b, use, normalise(b, "norm1", x)));
    x = network_sum(b, x, feed_forward(b, s, normalise(b, "norm2", x)));
    network_leave(b, outer);
  }
  return multiply(b, "head", normalise(b, "norm", x), s->vocabulary, RONDO_ACTIVATION_NONE);
}

rondo_value network_llama(network_builder *b, const void *sizes) {
  llama_use use = {.sizes = sizes};
  const size_t shape[] = {use.sizes->batch, use.sizes->context};
  check(rondo_op_arange(b->program, RONDO_I32, use.sizes->context, 0, 1, &use.positions));
  const rondo_value tokens = network_input_add(b, "tokens", RONDO_I32, shape, 2, use.sizes->vocabulary);
  return network_cross_entropy(b, add_network(b, &use, tokens));
}

rondo_value network_llama_decode(network_builder *b, const void *sizes) {
  llama_use use = {.sizes = sizes};
  const size_t shape[] = {use.sizes->batch, 1};
  const rondo_value tokens = network_input_add(b, "tokens", RONDO_I32, shape, 2, use.sizes->vocabulary);
  use.length = network_input_add(b, "length", RONDO_I32, NULL, 0, CACHED + 1);
  check(rondo_op_reshape(b->program, use.length, (size_t[]){1}, 1, &use.positions));
  return add_network(b, &use, tokens);
}
