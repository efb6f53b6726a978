/* SPDX-License-Identifier: MIT
 * conv_transpose2d (PR-8): stride, padding, output padding, dilation, groups, bias. The reference scatters each
 * element.
 */
#include <string.h>

#include "support/test_operator.h"
#include "support/test_program.h"

enum {
  IMAGES,
  GROUPS,
  IN,
  OUT,
  HAS_BIAS,
  H,
  W,
  KH,
  KW,
  SH,
  SW,
  PH,
  PW,
  OH,
  OW,
  DH,
  DW
};                        /* sizes; in, out of a group */
enum { X, WEIGHT, BIAS }; /* inputs */

static size_t result_size(const size_t *s, size_t axis) {
  return (s[H + axis] - 1) * s[SH + axis] + s[DH + axis] * (s[KH + axis] - 1) + s[OH + axis] + 1 - 2 * s[PH + axis];
}

static void draw_axis(uint64_t *seed, size_t *s, size_t axis, size_t most) {
  s[H + axis] = test_draw_between(seed, 1, most);
  s[KH + axis] = test_draw_between(seed, 1, 4);
  s[SH + axis] = test_draw_between(seed, 1, 3);
  s[DH + axis] = test_draw_between(seed, 1, 2);
  s[OH + axis] = test_draw_between(seed, 0, s[SH + axis] - 1);
  s[PH + axis] = 0;
  const size_t whole = result_size(s, axis);
  s[PH + axis] = test_draw_between(seed, 0, (whole - 1) / 2 < 3 ? (whole - 1) / 2 : 3);
}

static void draw_of(uint64_t *seed, test_call *call, bool has_bias, size_t channels, size_t most) {
  size_t *s = call->sizes;
  s[IMAGES] = test_draw_between(seed, 1, 3);
  s[GROUPS] = test_draw_between(seed, 1, 3);
  s[IN] = test_draw_between(seed, 1, channels);
  s[OUT] = test_draw_between(seed, 1, channels);
  s[HAS_BIAS] = has_bias;
  if (test_random_below(seed, 4) == 0) s[IN] = s[OUT] = 1;
  for (size_t axis = 0; axis < 2; axis++) draw_axis(seed, s, axis, most);
  const size_t in = s[GROUPS] * s[IN], out = s[GROUPS] * s[OUT];
  test_add_float(call, (const size_t[]){s[IMAGES], in, s[H], s[W]}, 4, -1, 1);
  test_add_float(call, (const size_t[]){in, s[OUT], s[KH], s[KW]}, 4, -1, 1);
  if (s[HAS_BIAS]) test_add_float(call, &out, 1, -1, 1);
}

static void draw(uint64_t *seed, test_call *call) { draw_of(seed, call, false, 3, 5); }
static void draw_large(uint64_t *seed, test_call *call) { draw_of(seed, call, false, 24, 11); }
static void draw_with_bias(uint64_t *seed, test_call *call) { draw_of(seed, call, true, 3, 5); }

static rondo_status build(const test_call *call, rondo_program *program, const rondo_value *in, rondo_value *y) {
  const size_t *s = call->sizes;
  const rondo_conv_transpose2d_options options = {RONDO_CONV_TRANSPOSE2D_OPTIONS_INIT,
                                                  .groups = s[GROUPS] == 1 ? 0 : (uint32_t)s[GROUPS],
                                                  .stride = {s[SH] == 1 ? 0 : s[SH], s[SW]},
                                                  .padding = {s[PH], s[PW]},
                                                  .output_padding = {s[OH], s[OW]},
                                                  .dilation = {s[DH], s[DW] == 1 ? 0 : s[DW]},
                                                  .bias = s[HAS_BIAS] ? in[BIAS] : (rondo_value){0}};
  return rondo_op_conv_transpose2d(program, in[X], in[WEIGHT], &options, y);
}

/* Adds the products of element `at` of a channel, and the weights of a result's channel, to its plane. */
static void scatter(const size_t *s, double x, size_t at, const double *weight, double *plane) {
  for (size_t i = 0; i < s[KH] * s[KW]; i++) {
    const size_t y_at = at / s[W] * s[SH] + i / s[KW] * s[DH] - s[PH];
    const size_t x_at = at % s[W] * s[SW] + i % s[KW] * s[DW] - s[PW];
    if (y_at < result_size(s, 0) && x_at < result_size(s, 1)) plane[y_at * result_size(s, 1) + x_at] += x * weight[i];
  }
}

static void reference(const test_call *call, double *const *in, double *y) {
  const size_t *s = call->sizes, places = s[H] * s[W], taps = s[KH] * s[KW];
  const size_t plane = result_size(s, 0) * result_size(s, 1), channels = s[GROUPS] * s[OUT];
  for (size_t i = 0; i < s[IMAGES] * channels * plane; i++) y[i] = s[HAS_BIAS] ? in[BIAS][i / plane % channels] : 0;
  for (size_t i = 0; i < s[IMAGES] * s[GROUPS] * s[IN] * places; i++) {
    const size_t channel = i / places % (s[GROUPS] * s[IN]), image = i / places / (s[GROUPS] * s[IN]);
    for (size_t o = 0; o < s[OUT]; o++)
      scatter(s, in[X][i], i % places, in[WEIGHT] + (channel * s[OUT] + o) * taps,
              y + (image * channels + channel / s[IN] * s[OUT] + o) * plane);
  }
}

UNIT_TEST(test_what_does_not_fit) {
  rondo_conv_transpose2d_options options = {RONDO_CONV_TRANSPOSE2D_OPTIONS_INIT};
  rondo_program *program = test_new_program();
  rondo_value x, weight, other, y;
  assert_ok(rondo_program_input(program, "x", RONDO_F32, (size_t[]){2, 4, 5, 5}, 4, &x));
  assert_ok(rondo_program_input(program, "weight", RONDO_F32, (size_t[]){4, 3, 3, 3}, 4, &weight));
  assert_ok(rondo_program_input(program, "other", RONDO_F32, (size_t[]){3, 4, 3, 3}, 4, &other));
  assert_error(rondo_op_conv_transpose2d(program, x, other, NULL, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE);
  assert_message("conv_transpose2d(weight 'other' [3, 4, 3, 3], x 'x' [2, 4, 5, 5])");
  options.output_padding[0] = 1;
  assert_error(rondo_op_conv_transpose2d(program, x, weight, &options, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE);
  assert_message("the output padding must be smaller than the stride");
  options.output_padding[0] = 0;
  options.padding[1] = 4;
  assert_error(rondo_op_conv_transpose2d(program, x, weight, &options, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE);
  options.padding[1] = SIZE_MAX;
  assert_error(rondo_op_conv_transpose2d(program, x, weight, &options, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE);
  options.padding[1] = 0;
  options.groups = 3;
  assert_error(rondo_op_conv_transpose2d(program, x, weight, &options, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE);
  options.groups = 1;
  options.bias = x;
  assert_error(rondo_op_conv_transpose2d(program, x, weight, &options, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE);
  assert_true(y.id == 0);
  assert_ok(rondo_op_conv_transpose2d(program, x, weight, NULL, &y));
  rondo_program_destroy(program);
}

#define CONVOLUTION .build = build, .reference = reference, .gradient_tolerance = 1e-3

static const test_operator rows[] = {
    {.name = "conv_transpose2d", .draw = draw, CONVOLUTION, .tolerance = 2e-5},
    {.name = "conv_transpose2d", .draw = draw_large, CONVOLUTION, .tolerance = 2e-5},
    {.name = "conv_transpose2d", .draw = draw_with_bias, CONVOLUTION, .tolerance = 2e-5, .only_f32 = true},
    {.name = "conv_transpose2d", .draw = draw_with_bias, CONVOLUTION, .tolerance = 0x1p-6}, /* rounded twice */
};

TEST_OPERATOR_MAIN(rows)
