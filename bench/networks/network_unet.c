/* SPDX-License-Identifier: MIT
 * A small U-Net (Ronneberger et al. 2015) with batch normalization: three times down and up again, with 16 to 128
 * channels, and a class for each pixel.
 */
#include "bench_check.h"
#include "networks/network_layers.h"

enum { LEVELS = 3, CHANNELS = 16 };

static rondo_value convolve_twice(network_builder *b, rondo_value x, size_t to) {
  x = network_relu(b, network_batch_norm(b, "norm1", network_convolution(b, "conv1", x, to, 3, 1, false)));
  return network_relu(b, network_batch_norm(b, "norm2", network_convolution(b, "conv2", x, to, 3, 1, false)));
}

/* Twice the size, half of the channels. */
static rondo_value enlarge(network_builder *b, rondo_value x) {
  const size_t from = network_size(b, x, 1), to = from / 2;
  const rondo_value weight = network_state(b, "enlarge.weight", (size_t[]){from, to, 2, 2}, 4, NULL);
  const rondo_conv_transpose_options options = {RONDO_CONV_TRANSPOSE_OPTIONS_INIT, .stride = {2, 2},
                                                .bias = network_state(b, "enlarge.bias", &to, 1, NULL)};
  check(rondo_op_conv_transpose(b->program, x, weight, &options, &x));
  return x;
}

static rondo_value go_down(network_builder *b, rondo_value x, rondo_value *sides) {
  const rondo_pooling_options halves = {RONDO_POOLING_OPTIONS_INIT, .kernel = {2, 2}};
  for (size_t i = 0; i < LEVELS; i++) {
    const size_t outer = network_enter(b, "down.%zu", i);
    sides[i] = convolve_twice(b, x, (size_t)CHANNELS << i);
    check(rondo_op_max_pool(b->program, sides[i], &halves, &x, NULL));
    network_leave(b, outer);
  }
  return x;
}

static rondo_value go_up(network_builder *b, rondo_value x, const rondo_value *sides) {
  for (size_t i = LEVELS; i-- > 0;) {
    const size_t outer = network_enter(b, "up.%zu", i);
    rondo_value parts[] = {sides[i], enlarge(b, x)};
    check(rondo_op_concat(b->program, parts, 2, 1, &x));
    x = convolve_twice(b, x, (size_t)CHANNELS << i);
    network_leave(b, outer);
  }
  return x;
}

rondo_value network_unet(network_builder *b, const void *sizes) {
  const network_image_sizes *s = sizes;
  const size_t shape[] = {s->batch, s->channels, s->edge, s->edge};
  rondo_value sides[LEVELS], x = go_down(b, network_input_add(b, "images", RONDO_F32, shape, 4, 0), sides);
  const size_t outer = network_enter(b, "middle");
  x = convolve_twice(b, x, (size_t)CHANNELS << LEVELS);
  network_leave(b, outer);
  x = network_convolution(b, "head", go_up(b, x, sides), s->classes, 1, 1, true);
  check(rondo_op_permute(b->program, x, (const size_t[]){0, 2, 3, 1}, &x));
  return network_cross_entropy(b, x);
}
