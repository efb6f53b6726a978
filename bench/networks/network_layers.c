/* SPDX-License-Identifier: MIT
 * Layers of several networks.
 */
#include "networks/network_layers.h"

#include "bench_check.h"

/* Shapes ----------------------------------------------------------------------------------------------------------- */

typedef struct value_shape {
  size_t sizes[RONDO_MAX_DIMENSIONS], rank;
} value_shape;

static value_shape shape_of(const network_builder *b, rondo_value value) {
  rondo_type type;
  value_shape shape;
  check(rondo_value_shape(b->program, value, &type, shape.sizes, &shape.rank));
  return shape;
}

size_t network_size(const network_builder *b, rondo_value value, size_t dimension) {
  return shape_of(b, value).sizes[dimension];
}

size_t network_last_size(const network_builder *b, rondo_value value) {
  const value_shape shape = shape_of(b, value);
  return shape.sizes[shape.rank - 1];
}

/* Products --------------------------------------------------------------------------------------------------------- */

/* A parameter in the type of the products. */
static rondo_value as_factor(const network_builder *b, rondo_value parameter) {
  if (parameter.id != 0) check(rondo_op_cast(b->program, parameter, b->type, &parameter));
  return parameter;
}

rondo_value network_product(const network_builder *b, rondo_value x, rondo_value weight, rondo_value bias,
                            rondo_activation activation) {
  const rondo_matmul_options options = {RONDO_MATMUL_OPTIONS_INIT, .bias = as_factor(b, bias), .activation = activation,
                                        .transpose_b = true};
  check(rondo_op_matmul_with(b->program, x, as_factor(b, weight), &options, &x));
  return x;
}

rondo_value network_linear(network_builder *b, const char *name, rondo_value x, size_t to, bool has_bias,
                           rondo_activation activation) {
  const size_t shape[] = {to, network_last_size(b, x)}, outer = network_enter(b, "%s", name);
  const rondo_value weight = network_state(b, "weight", shape, 2, NULL);
  const rondo_value bias = has_bias ? network_state(b, "bias", shape, 1, NULL) : (rondo_value){0};
  network_leave(b, outer);
  return network_product(b, x, weight, bias, activation);
}

rondo_value network_table(network_builder *b, const char *name, size_t rows, size_t columns) {
  const size_t outer = network_enter(b, "%s", name);
  const rondo_value table = network_state(b, "weight", (size_t[]){rows, columns}, 2, NULL);
  network_leave(b, outer);
  return table;
}

rondo_value network_look_up(const network_builder *b, rondo_value table, rondo_value indices) {
  rondo_value rows;
  check(rondo_op_embedding(b->program, table, indices, &rows));
  check(rondo_op_cast(b->program, rows, b->type, &rows));
  return rows;
}

/* Images ----------------------------------------------------------------------------------------------------------- */

rondo_value network_convolution(network_builder *b, const char *name, rondo_value x, size_t to, size_t kernel,
                                size_t stride, bool has_bias) {
  const size_t shape[] = {to, network_size(b, x, 1), kernel, kernel}, outer = network_enter(b, "%s", name);
  const size_t padding = stride == kernel ? 0 : kernel / 2;
  const rondo_value weight = network_state(b, "weight", shape, 4, NULL);
  const rondo_conv_options options = {RONDO_CONV_OPTIONS_INIT, .stride = {stride, stride},
                                      .padding = {padding, padding},
                                      .bias = has_bias ? network_state(b, "bias", shape, 1, NULL) : (rondo_value){0}};
  check(rondo_op_conv(b->program, x, weight, &options, &x));
  network_leave(b, outer);
  return x;
}

rondo_value network_batch_norm(network_builder *b, const char *name, rondo_value x) {
  const size_t channels = network_size(b, x, 1), outer = network_enter(b, "%s", name);
  const rondo_state_options frozen = {RONDO_STATE_OPTIONS_INIT, .frozen = true};
  const rondo_batch_norm_options options = {RONDO_BATCH_NORM_OPTIONS_INIT,
                                            .momentum = 0.1f,
                                            .inference = !b->trains,
                                            .scale = network_state(b, "weight", &channels, 1, NULL),
                                            .shift = network_state(b, "bias", &channels, 1, NULL),
                                            .running_mean = network_state(b, "running_mean", &channels, 1, &frozen),
                                            .running_variance = network_state(b, "running_var", &channels, 1, &frozen)};
  check(rondo_op_batch_norm(b->program, x, &options, &x));
  network_leave(b, outer);
  return x;
}

rondo_value network_relu(const network_builder *b, rondo_value x) {
  check(rondo_op_relu(b->program, x, &x));
  return x;
}

rondo_value network_sum(const network_builder *b, rondo_value x, rondo_value y) {
  check(rondo_op_add(b->program, x, y, &x));
  return x;
}

/* Transformers ----------------------------------------------------------------------------------------------------- */

rondo_value network_layer_norm(network_builder *b, const char *name, rondo_value x) {
  const size_t width = network_last_size(b, x), outer = network_enter(b, "%s", name);
  const rondo_value scale = network_state(b, "weight", &width, 1, NULL),
                    shift = network_state(b, "bias", &width, 1, NULL);
  check(rondo_op_layer_norm(b->program, x, scale, shift, 1, 1e-5f, &x));
  network_leave(b, outer);
  return x;
}

rondo_value network_attention(network_builder *b, rondo_value x, size_t heads, const rondo_attention_options *options) {
  const size_t width = network_last_size(b, x);
  x = network_linear(b, "qkv", x, 3 * width, true, RONDO_ACTIVATION_NONE);
  check(rondo_op_attention_packed(b->program, x, heads, heads, options, &x));
  return network_linear(b, "join", x, width, true, RONDO_ACTIVATION_NONE);
}

rondo_value network_feed_forward(network_builder *b, rondo_value x, rondo_activation activation) {
  const size_t width = network_last_size(b, x);
  x = network_linear(b, "hidden", x, 4 * width, true, activation);
  return network_linear(b, "output", x, width, true, RONDO_ACTIVATION_NONE);
}

rondo_value network_transformer_block(network_builder *b, rondo_value x, size_t heads,
                                      const rondo_attention_options *options, rondo_activation activation) {
  x = network_sum(b, x, network_attention(b, network_layer_norm(b, "norm1", x), heads, options));
  return network_sum(b, x, network_feed_forward(b, network_layer_norm(b, "norm2", x), activation));
}

/* Losses ----------------------------------------------------------------------------------------------------------- */

rondo_value network_cross_entropy(network_builder *b, rondo_value logits) {
  const value_shape shape = shape_of(b, logits);
  const size_t classes = shape.sizes[shape.rank - 1];
  const rondo_value labels = network_input_add(b, "labels", RONDO_I32, shape.sizes, shape.rank - 1, classes);
  rondo_value loss;
  check(rondo_op_cross_entropy(b->program, logits, labels, &loss));
  return loss;
}
