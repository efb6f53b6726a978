/* SPDX-License-Identifier: MIT
 * ResNet-18 (He et al. 2016): four stages of two blocks; the first block of a stage halves the image, except in the
 * first stage.
 */
#include "bench_check.h"
#include "networks/network_layers.h"

static rondo_value convolve_norm(network_builder *b, const char *convolution, const char *norm, rondo_value x,
                                 size_t to, size_t kernel, size_t stride) {
  return network_batch_norm(b, norm, network_convolution(b, convolution, x, to, kernel, stride, false));
}

/* The shortcut is the block's input, or a convolution of it where the shape changes. */
static rondo_value shortcut(network_builder *b, rondo_value x, size_t to, size_t stride) {
  const rondo_conv_options options = {RONDO_CONV_OPTIONS_INIT, .stride = {stride, stride}};
  const size_t shape[] = {to, network_size(b, x, 1), 1, 1};
  if (stride == 1 && shape[1] == to) return x;
  check(rondo_op_conv(b->program, x, network_state(b, "shortcut.weight", shape, 4, NULL), &options, &x));
  return network_batch_norm(b, "shortcut_norm", x);
}

static rondo_value add_block(network_builder *b, rondo_value x, size_t to, size_t stride) {
  rondo_value y = network_relu(b, convolve_norm(b, "conv1", "norm1", x, to, 3, stride));
  y = convolve_norm(b, "conv2", "norm2", y, to, 3, 1);
  return network_relu(b, network_sum(b, y, shortcut(b, x, to, stride)));
}

rondo_value network_resnet18(network_builder *b, const void *sizes) {
  static const size_t widths[] = {64, 128, 256, 512};
  const network_image_sizes *s = sizes;
  const rondo_pooling_options pool = {RONDO_POOLING_OPTIONS_INIT, .kernel = {3, 3}, .stride = {2, 2},
                                      .padding = {1, 1}};
  const size_t shape[] = {s->batch, s->channels, s->edge, s->edge};
  rondo_value x = network_input_add(b, "images", RONDO_F32, shape, 4, 0);
  x = network_relu(b, convolve_norm(b, "conv", "norm", x, widths[0], 7, 2));
  check(rondo_op_max_pool(b->program, x, &pool, &x, NULL));
  for (size_t i = 0; i < 8; i++) {
    const size_t outer = network_enter(b, "blocks.%zu", i);
    x = add_block(b, x, widths[i / 2], i > 0 && i % 2 == 0 ? 2 : 1);
    network_leave(b, outer);
  }
  check(rondo_op_mean(b->program, x, (const size_t[]){2, 3}, 2, false, &x));
  x = network_linear(b, "head", x, s->classes, true, RONDO_ACTIVATION_NONE);
  return b->trains ? network_cross_entropy(b, x) : x;
}
