/* SPDX-License-Identifier: MIT
 * conv2d: stride, padding, dilation, groups, bias.
 */
#include "support/test_operator.h"
#include "support/test_program.h"

enum { IMAGES, GROUPS, IN, OUT, HAS_BIAS, H, W, KH, KW, SH, SW, PH, PW, DH, DW }; /* sizes; in and out of a group */

/* keeps_size: of the image, as most convolutions do. */
static void draw_axis(uint64_t *seed, size_t *s, size_t axis, bool keeps_size, size_t most) {
  s[KH + axis] = test_draw_between(seed, 1, 3);
  s[SH + axis] = test_draw_between(seed, 1, 3);
  s[PH + axis] = test_draw_between(seed, 0, 3);
  s[DH + axis] = test_draw_between(seed, 1, 2);
  if (keeps_size) {
    s[KH + axis] |= 1;
    s[SH + axis] = 1;
    s[PH + axis] = s[DH + axis] * (s[KH + axis] - 1) / 2;
  }
  const size_t extent = s[DH + axis] * (s[KH + axis] - 1) + 1;
  const size_t least = extent > 2 * s[PH + axis] ? extent - 2 * s[PH + axis] : 1;
  s[H + axis] = test_draw_between(seed, least, least + most);
}

static void draw_of(uint64_t *seed, test_call *call, size_t channels, size_t most) {
  size_t *s = call->sizes;
  s[IMAGES] = test_draw_between(seed, 1, 3);
  s[GROUPS] = test_draw_between(seed, 1, 3);
  s[IN] = test_draw_between(seed, 1, channels);
  s[OUT] = test_draw_between(seed, 1, channels);
  s[HAS_BIAS] = test_draw_between(seed, 0, 1);
  const bool keeps_size = test_random_below(seed, 3) == 0;
  if (test_random_below(seed, 4) == 0) s[IN] = s[OUT] = 1;
  for (size_t axis = 0; axis < 2; axis++) draw_axis(seed, s, axis, keeps_size, most);
  const size_t out = s[GROUPS] * s[OUT];
  test_add_float(call, (const size_t[]){s[IMAGES], s[GROUPS] * s[IN], s[H], s[W]}, 4, -1, 1);
  test_add_float(call, (const size_t[]){out, s[IN], s[KH], s[KW]}, 4, -1, 1);
  if (s[HAS_BIAS]) test_add_float(call, &out, 1, -1, 1);
}

static void draw(uint64_t *seed, test_call *call) { draw_of(seed, call, 3, 5); }

/* Several tiles and panels. */
static void draw_large(uint64_t *seed, test_call *call) { draw_of(seed, call, 40, 14); }

/* Several patches of depthwise convolutions: one channel a group, images that are wide or high. */
static void draw_depthwise(uint64_t *seed, test_call *call) {
  size_t *s = call->sizes;
  const bool keeps_size = test_random_below(seed, 2) == 0, is_wide = test_random_below(seed, 2) == 0;
  s[IMAGES] = test_draw_between(seed, 1, 2);
  s[GROUPS] = test_draw_between(seed, 1, 3);
  s[IN] = s[OUT] = 1;
  s[HAS_BIAS] = test_draw_between(seed, 0, 1);
  for (size_t axis = 0; axis < 2; axis++) draw_axis(seed, s, axis, keeps_size, is_wide == (axis == 1) ? 300 : 40);
  test_add_float(call, (const size_t[]){s[IMAGES], s[GROUPS], s[H], s[W]}, 4, -1, 1);
  test_add_float(call, (const size_t[]){s[GROUPS], 1, s[KH], s[KW]}, 4, -1, 1);
  if (s[HAS_BIAS]) test_add_float(call, &s[GROUPS], 1, -1, 1);
}

static rondo_status build(const test_call *call, rondo_program *program, const rondo_value *inputs,
                          rondo_value *result) {
  const size_t *s = call->sizes;
  const rondo_conv2d_options options = {RONDO_CONV2D_OPTIONS_INIT,
                                        .groups = s[GROUPS] == 1 ? 0 : (uint32_t)s[GROUPS],
                                        .stride = {s[SH] == 1 ? 0 : s[SH], s[SW]},
                                        .padding = {s[PH], s[PW]},
                                        .dilation = {s[DH], s[DW] == 1 ? 0 : s[DW]},
                                        .bias = s[HAS_BIAS] ? inputs[2] : (rondo_value){0}};
  return rondo_op_conv2d(program, inputs[0], inputs[1], &options, result);
}

/* Result y, x of an output channel of an image. */
static double convolve(const size_t *s, const double *image, const double *weight, size_t y, size_t x) {
  double sum = 0;
  for (size_t c = 0; c < s[IN]; c++) {
    for (size_t i = 0; i < s[KH]; i++) {
      for (size_t j = 0; j < s[KW]; j++) {
        const size_t at_y = y * s[SH] + i * s[DH] - s[PH], at_x = x * s[SW] + j * s[DW] - s[PW];
        if (at_y >= s[H] || at_x >= s[W]) continue; /* below 0 it is very large */
        sum += image[(c * s[H] + at_y) * s[W] + at_x] * weight[(c * s[KH] + i) * s[KW] + j];
      }
    }
  }
  return sum;
}

static void reference(const test_call *call, double *const *inputs, double *result) {
  const size_t *s = call->sizes, out = s[GROUPS] * s[OUT];
  const size_t height = (s[H] + 2 * s[PH] - s[DH] * (s[KH] - 1) - 1) / s[SH] + 1;
  const size_t width = (s[W] + 2 * s[PW] - s[DW] * (s[KW] - 1) - 1) / s[SW] + 1;
  for (size_t i = 0; i < s[IMAGES] * out; i++) {
    const size_t o = i % out, first = i / out * s[GROUPS] * s[IN] + o / s[OUT] * s[IN];
    for (size_t y = 0; y < height; y++) {
      for (size_t x = 0; x < width; x++)
        *result++ = (s[HAS_BIAS] ? inputs[2][o] : 0) +
                    convolve(s, inputs[0] + first * s[H] * s[W], inputs[1] + o * s[IN] * s[KH] * s[KW], y, x);
    }
  }
}

/* Padding and dilation far beyond the image, so that only the middle of a window is inside; with enough work for a
 * library. */
static void draw_far(uint64_t *seed, test_call *call) {
  size_t *s = call->sizes;
  const size_t far = (size_t)1 << test_draw_between(seed, 12, 29);
  s[IMAGES] = 4;
  s[GROUPS] = 1;
  s[IN] = s[OUT] = 8;
  s[HAS_BIAS] = 0;
  for (size_t axis = 0; axis < 2; axis++) {
    s[H + axis] = 16;
    s[KH + axis] = 3;
    s[SH + axis] = 1;
    s[PH + axis] = s[DH + axis] = far;
  }
  test_add_float(call, (const size_t[]){s[IMAGES], s[IN], s[H], s[W]}, 4, -1, 1);
  test_add_float(call, (const size_t[]){s[OUT], s[IN], s[KH], s[KW]}, 4, -1, 1);
}

static void draw_middle(uint64_t *seed, test_call *call) { draw_of(seed, call, 20, 12); }

static void draw_small_depthwise(uint64_t *seed, test_call *call) { draw_of(seed, call, 1, 20); }

UNIT_TEST(test_what_does_not_fit_is_refused) {
  rondo_conv2d_options options = {RONDO_CONV2D_OPTIONS_INIT, .groups = 2};
  rondo_program *program = test_new_program();
  rondo_value x, weight, y;
  assert_ok(rondo_program_input(program, "x", RONDO_F32, (const size_t[]){1, 3, 4, 4}, 4, &x));
  assert_ok(rondo_program_input(program, "w", RONDO_F32, (const size_t[]){2, 3, 5, 3}, 4, &weight));
  assert_fails(rondo_op_conv2d(program, x, weight, NULL, &y), RONDO_INVALID_ARGUMENT);
  assert_message("a window of 5 does not fit into an image of 4 with a padding of 0");

  options.padding[0] = 1;
  assert_fails(rondo_op_conv2d(program, x, weight, &options, &y), RONDO_INVALID_ARGUMENT);
  assert_message(
      "x [n, c, h, w] has 3 channels, and weight [o, c / groups, kh, kw] gives 2; both must be multiples of "
      "the 2 groups");
  assert_int_equal(y.id, 0);
  options.groups = 1;
  assert_ok(rondo_program_input(program, "depthwise", RONDO_F32, (const size_t[]){3, 1, 3, 3}, 4, &weight));
  assert_fails(rondo_op_conv2d(program, x, weight, &options, &y), RONDO_INVALID_ARGUMENT);
  assert_message("takes 1 channels for each of 1 groups, and x [n, c, h, w] has 3 channels in all");
  options.padding[0] = SIZE_MAX;
  assert_fails(rondo_op_conv2d(program, x, weight, &options, &y), RONDO_INVALID_ARGUMENT);
  assert_message("a size is larger than 1073741824: use a smaller image, kernel");
  rondo_program_destroy(program);
}

#define OPERATOR .build = build, .reference = reference

static const test_operator rows[] = {
    {.name = "conv2d", .draw = draw, OPERATOR, .gradient_tolerance = 2e-4},
    {.name = "large conv2d", .draw = draw_large, OPERATOR, .tolerance = 4e-5, .has_no_gradient = true},
    {.name = "middle conv2d",
     .draw = draw_middle,
     OPERATOR,
     .tolerance = 4e-5,
     .gradient_tolerance = 2e-3,
     .only_f32 = true},
    {.name = "far conv2d", .draw = draw_far, OPERATOR, .tolerance = 4e-5, .only_f32 = true, .has_no_gradient = true},
    {.name = "depthwise conv2d", .draw = draw_depthwise, OPERATOR, .tolerance = 4e-5, .has_no_gradient = true},
    {.name = "small depthwise conv2d",
     .draw = draw_small_depthwise,
     OPERATOR,
     .tolerance = 4e-5,
     .gradient_tolerance = 2e-3},
};

TEST_OPERATOR_MAIN(rows)
