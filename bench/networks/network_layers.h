/* SPDX-License-Identifier: MIT
 * Layers of several networks. Each adds its parameters, in PyTorch's layout, under `name` in the current scope, and
 * returns the layer's result.
 */
#ifndef RONDO_BENCH_NETWORK_LAYERS_H
#define RONDO_BENCH_NETWORK_LAYERS_H

#include "networks/network.h"

/* x [.., from] -> [.., to], with the weight [to, from]. */
rondo_value network_linear(network_builder *b, const char *name, rondo_value x, size_t to, bool has_bias,
                           rondo_activation activation);
/* The product with a weight [to, from] that exists, such as a tied table. */
rondo_value network_product(const network_builder *b, rondo_value x, rondo_value weight, rondo_value bias,
                            rondo_activation activation);
/* The table [rows, columns], and its look-up. */
rondo_value network_table(network_builder *b, const char *name, size_t rows, size_t columns);
rondo_value network_look_up(const network_builder *b, rondo_value table, rondo_value indices);
rondo_value network_layer_norm(network_builder *b, const char *name, rondo_value x);
rondo_value network_convolution(network_builder *b, const char *name, rondo_value x, size_t to, size_t kernel,
                                size_t stride, bool has_bias);
rondo_value network_batch_norm(network_builder *b, const char *name, rondo_value x);
rondo_value network_relu(const network_builder *b, rondo_value x);
rondo_value network_sum(const network_builder *b, rondo_value x, rondo_value y);
/* Self-attention with heads of one size: "qkv" and "join". options may be NULL. */
rondo_value network_attention(network_builder *b, rondo_value x, size_t heads, const rondo_attention_options *options);
/* The two products of a transformer's block: "hidden", four times as wide, and "output". */
rondo_value network_feed_forward(network_builder *b, rondo_value x, rondo_activation activation);
/* A block that normalises before attention and before its products. */
rondo_value network_transformer_block(network_builder *b, rondo_value x, size_t heads,
                                      const rondo_attention_options *options, rondo_activation activation);
rondo_value network_cross_entropy(network_builder *b, rondo_value logits);

/* The size of a value's dimension; 0 is the first. */
size_t network_size(const network_builder *b, rondo_value value, size_t dimension);
size_t network_last_size(const network_builder *b, rondo_value value);

#endif
