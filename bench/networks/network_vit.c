/* SPDX-License-Identifier: MIT
 * A vision transformer (Dosovitskiy et al. 2021), of the size called tiny: patches of the image, and a token before
 * them that becomes the class.
 */
#include "bench_check.h"
#include "networks/network_layers.h"

/* [batch, patches + 1, width] */
static rondo_value add_patches(network_builder *b, const network_vit_sizes *s, rondo_value images) {
  const size_t across = s->edge / s->patch, count = across * across, one[] = {1, 1, s->width};
  rondo_value x = network_convolution(b, "patches", images, s->width, s->patch, s->patch, true);
  rondo_value first = network_state(b, "first", one, 3, NULL);
  check(rondo_op_reshape(b->program, x, (size_t[]){s->batch, s->width, count}, 3, &x));
  check(rondo_op_transpose(b->program, x, 1, 2, &x));
  check(rondo_op_expand(b->program, first, (size_t[]){s->batch, 1, s->width}, 3, &first));
  check(rondo_op_concat(b->program, (rondo_value[]){first, x}, 2, 1, &x));
  return network_sum(b, x, network_table(b, "places", count + 1, s->width));
}

rondo_value network_vit(network_builder *b, const void *sizes) {
  const network_vit_sizes *s = sizes;
  const size_t shape[] = {s->batch, 3, s->edge, s->edge}, none[] = {0, 0, 0};
  rondo_value x = add_patches(b, s, network_input_add(b, "images", RONDO_F32, shape, 4, 0));
  for (size_t i = 0; i < s->layers; i++) {
    const size_t outer = network_enter(b, "blocks.%zu", i);
    x = network_transformer_block(b, x, s->heads, NULL, RONDO_ACTIVATION_GELU);
    network_leave(b, outer);
  }
  check(rondo_op_slice(b->program, x, none, (const size_t[]){s->batch, 1, s->width}, NULL, &x));
  check(rondo_op_reshape(b->program, x, (const size_t[]){s->batch, s->width}, 2, &x));
  x = network_linear(b, "head", network_layer_norm(b, "norm", x), s->classes, true, RONDO_ACTIVATION_NONE);
  return network_cross_entropy(b, x);
}
