/* SPDX-License-Identifier: MIT
 * Convolutions of images in blocks by oneDNN (ON-5): the library computes those that a program gets blocks for, packed
 * or not, of any number of channels, groups and images, cut into rows or slices of channels or not. Their values are
 * tested by conformance/blocked_images. Without oneDNN 2 there is nothing to test.
 */
#include "support/rondo_test.h"
#include "tensor/operators/convolution/conv_onednn.h"
#include "tensor/program/operator.h"
#include "tensor/vendor/compute_libraries.h"

enum { ROUNDS = 200 };

static size_t draw(uint64_t *seed, const size_t *from, size_t count) {
  return from[test_random_below(seed, (uint32_t)count)];
}
#define DRAW(...) draw(seed, (const size_t[]){__VA_ARGS__}, sizeof((const size_t[]){__VA_ARGS__}) / sizeof(size_t))

static rondo_conv_shape draw_shape(uint64_t *seed) {
  const bool has_groups = test_random_below(seed, 4) == 0;
  rondo_conv_shape s = {.window = {.in = {1, DRAW(1, 7, 14, 40, 61), DRAW(1, 7, 13, 40, 62)},
                                   .kernel = {1, DRAW(1, 3, 5), DRAW(1, 3, 5)},
                                   .stride = {1, DRAW(1, 2), DRAW(1, 2)},
                                   .dilation = {1, DRAW(1, 1, 2), DRAW(1, 1, 2)},
                                   .out = {1}},
                        .images = DRAW(1, 2, 9),
                        .groups = has_groups ? DRAW(2, 32) : 1,
                        .in_channels = has_groups ? DRAW(1, 8) : DRAW(1, 2, 3, 16, 20, 64, 256),
                        .out_channels = has_groups ? DRAW(1, 8) : DRAW(2, 3, 16, 40, 64, 256, 512),
                        .activation = DRAW(RONDO_ACTIVATION_NONE, RONDO_ACTIVATION_RELU, RONDO_ACTIVATION_SILU)};
  rondo_window *w = &s.window;
  for (int axis = RONDO_HEIGHT; axis <= RONDO_WIDTH; axis++) {
    const size_t extent = (w->kernel[axis] - 1) * w->dilation[axis] + 1;
    w->padding[axis] = w->after[axis] = extent / 2;
    w->out[axis] = (w->in[axis] + 2 * w->padding[axis] - extent) / w->stride[axis] + 1;
  }
  return s;
}

/* The blocks of channels that an image gets (pattern_blocked_images.c). */
static size_t block_of(size_t channels) {
  const size_t block = rondo_onednn_image_block();
  if (block == RONDO_CONV_ALL_CHANNELS) return channels;
  return channels % block == 0 ? block : 1;
}

static void create(const rondo_conv_shape *s, rondo_conv_blocks blocks, bool has_bias, bool packs) {
  const rondo_allocator allocator = rondo_allocator_default();
  rondo_packed_state *packed = NULL;
  rondo_onednn_convolution *made;
  assert_ok(rondo_onednn_convolution_create(&allocator, RONDO_CONVOLUTION_FORWARD, s, blocks, has_bias,
                                            packs ? &packed : NULL, &made));
  if (made == NULL && !packs)
    fail_msg("%zu images [%zu x %zu, %zu, %zu] by %zu windows of [%zu, %zu]: blocks, but no convolution", s->images,
             s->groups, s->in_channels, s->window.in[RONDO_HEIGHT], s->window.in[RONDO_WIDTH], s->out_channels,
             s->window.kernel[RONDO_HEIGHT], s->window.kernel[RONDO_WIDTH]);
  assert_true((packed != NULL) == (packs && made != NULL));
  rondo_onednn_convolution_destroy(made);
  if (packed != NULL) assert_ok(rondo_packed_state_release(packed));
}

UNIT_TEST(test_on5_the_library_computes_images_that_get_blocks) {
  uint64_t seed = 11;
  if (rondo_onednn_image_block() == 1) skip();
  for (size_t round = 0; round < ROUNDS; round++) {
    const rondo_conv_shape s = draw_shape(&seed);
    const bool has_bias = test_random_below(&seed, 2) == 0;
    const rondo_conv_blocks blocks = {.x = block_of(s.groups * s.in_channels),
                                      .y = block_of(s.groups * s.out_channels),
                                      .are_last = rondo_onednn_image_block() == RONDO_CONV_ALL_CHANNELS};
    if (blocks.y == 1 || !rondo_onednn_makes_blocks(&s, has_bias, blocks)) continue;
    create(&s, blocks, has_bias, false);
    create(&s, blocks, has_bias, true);
  }
}

int main(void) { return test_run_registered(); }
