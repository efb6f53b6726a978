/* SPDX-License-Identifier: MIT
 * conv (PR-8): one to three dimensions, stride, padding on each side, dilation, groups, bias.
 */
#include <math.h>
#include <string.h>

#include "support/test_operator.h"
#include "support/test_program.h"

/* Sizes; IN and OUT of a group; from SIZE on one for each of three dimensions, of which the last may not exist. */
enum {
  IMAGES,
  GROUPS,
  IN,
  OUT,
  HAS_BIAS,
  DIMS,
  SIZE,
  KERNEL = SIZE + 3,
  STRIDE = KERNEL + 3,
  BEFORE = STRIDE + 3,
  AFTER = BEFORE + 3,
  DILATION = AFTER + 3
};
enum { X, WEIGHT, BIAS }; /* inputs */

/* keeps_size: of the image, as most convolutions do. */
static void draw_axis(uint64_t *seed, size_t *s, size_t axis, bool keeps_size, size_t most) {
  s[KERNEL + axis] = test_draw_between(seed, 1, 3);
  s[STRIDE + axis] = test_draw_between(seed, 1, 3);
  s[BEFORE + axis] = s[AFTER + axis] = test_draw_between(seed, 0, 3);
  if (test_random_below(seed, 4) == 0) s[AFTER + axis] = test_draw_between(seed, 0, 3);
  s[DILATION + axis] = test_draw_between(seed, 1, 2);
  if (keeps_size) {
    s[KERNEL + axis] |= 1;
    s[STRIDE + axis] = 1;
    s[BEFORE + axis] = s[AFTER + axis] = s[DILATION + axis] * (s[KERNEL + axis] - 1) / 2;
  }
  const size_t extent = s[DILATION + axis] * (s[KERNEL + axis] - 1) + 1, padding = s[BEFORE + axis] + s[AFTER + axis];
  const size_t least = extent > padding ? extent - padding : 1;
  s[SIZE + axis] = test_draw_between(seed, least, least + most);
}

static void draw_no_axis(size_t *s, size_t axis) {
  s[SIZE + axis] = s[KERNEL + axis] = s[STRIDE + axis] = s[DILATION + axis] = 1;
  s[BEFORE + axis] = s[AFTER + axis] = 0;
}

static void add_inputs(test_call *call) {
  const size_t *s = call->sizes, out = s[GROUPS] * s[OUT];
  const size_t x[] = {s[IMAGES], s[GROUPS] * s[IN], s[SIZE], s[SIZE + 1], s[SIZE + 2]};
  const size_t weight[] = {out, s[IN], s[KERNEL], s[KERNEL + 1], s[KERNEL + 2]};
  test_add_float(call, x, 2 + s[DIMS], -1, 1);
  test_add_float(call, weight, 2 + s[DIMS], -1, 1);
  if (s[HAS_BIAS]) test_add_float(call, &out, 1, -1, 1);
}

static void draw_of(uint64_t *seed, test_call *call, size_t dims, size_t channels, size_t most) {
  size_t *s = call->sizes;
  s[IMAGES] = test_draw_between(seed, 1, 3);
  s[GROUPS] = test_draw_between(seed, 1, 3);
  s[IN] = test_draw_between(seed, 1, channels);
  s[OUT] = test_draw_between(seed, 1, channels);
  s[HAS_BIAS] = test_draw_between(seed, 0, 1);
  s[DIMS] = dims;
  const bool keeps_size = test_random_below(seed, 3) == 0;
  if (test_random_below(seed, 4) == 0) s[IN] = s[OUT] = 1;
  for (size_t axis = 0; axis < dims; axis++) draw_axis(seed, s, axis, keeps_size, most);
  for (size_t axis = dims; axis < 3; axis++) draw_no_axis(s, axis);
  add_inputs(call);
}

static void draw(uint64_t *seed, test_call *call) { draw_of(seed, call, 2, 3, 5); }
static void draw_series(uint64_t *seed, test_call *call) { draw_of(seed, call, 1, 3, 20); }
static void draw_volume(uint64_t *seed, test_call *call) { draw_of(seed, call, 3, 2, 3); }

/* Several tiles and panels. */
static void draw_large(uint64_t *seed, test_call *call) { draw_of(seed, call, 2, 40, 14); }
static void draw_large_volume(uint64_t *seed, test_call *call) { draw_of(seed, call, 3, 20, 6); }

/* Several patches of depthwise convolutions: one channel a group, images that are wide or high. */
static void draw_depthwise(uint64_t *seed, test_call *call) {
  size_t *s = call->sizes;
  const bool keeps_size = test_random_below(seed, 2) == 0, is_wide = test_random_below(seed, 2) == 0;
  s[IMAGES] = test_draw_between(seed, 1, 2);
  s[GROUPS] = test_draw_between(seed, 1, 3);
  s[IN] = s[OUT] = 1;
  s[HAS_BIAS] = test_draw_between(seed, 0, 1);
  s[DIMS] = 2;
  for (size_t axis = 0; axis < 2; axis++) draw_axis(seed, s, axis, keeps_size, is_wide == (axis == 1) ? 300 : 40);
  draw_no_axis(s, 2);
  add_inputs(call);
}

static rondo_status build(const test_call *call, rondo_program *program, const rondo_value *inputs,
                          rondo_value *result) {
  const size_t *s = call->sizes;
  rondo_conv_options options = {RONDO_CONV_OPTIONS_INIT, .groups = s[GROUPS] == 1 ? 0 : (uint32_t)s[GROUPS],
                                .bias = s[HAS_BIAS] ? inputs[BIAS] : (rondo_value){0}};
  for (size_t i = 0; i < s[DIMS]; i++) {
    options.stride[i] = s[STRIDE + i] == 1 ? 0 : s[STRIDE + i];
    options.dilation[i] = s[DILATION + i] == 1 ? 0 : s[DILATION + i];
    options.padding[i] = s[BEFORE + i] < s[AFTER + i] ? s[BEFORE + i] : s[AFTER + i];
    options.padding_before[i] = s[BEFORE + i] - options.padding[i];
    options.padding_after[i] = s[AFTER + i] - options.padding[i];
  }
  return rondo_op_conv(program, inputs[X], inputs[WEIGHT], &options, result);
}

static size_t result_size(const size_t *s, size_t axis) {
  const size_t padded = s[SIZE + axis] + s[BEFORE + axis] + s[AFTER + axis];
  return (padded - s[DILATION + axis] * (s[KERNEL + axis] - 1) - 1) / s[STRIDE + axis] + 1;
}

static size_t volume(const size_t *s, int sizes) { return s[sizes] * s[sizes + 1] * s[sizes + 2]; }

/* The index of a tap of a result in a channel; false in the padding. */
static bool find_tap(const size_t *s, size_t result, size_t tap, size_t *out_at) {
  size_t stride = 1;
  *out_at = 0;
  for (size_t i = 0; i < 3; i++) {
    const size_t axis = 2 - i, size = result_size(s, axis);
    const size_t at = result % size * s[STRIDE + axis] + tap % s[KERNEL + axis] * s[DILATION + axis] - s[BEFORE + axis];
    if (at >= s[SIZE + axis]) return false; /* below 0 it is very large */
    *out_at += at * stride;
    stride *= s[SIZE + axis];
    result /= size;
    tap /= s[KERNEL + axis];
  }
  return true;
}

/* A result of an output channel of an image. */
static double convolve(const size_t *s, const double *image, const double *weight, size_t result) {
  double sum = 0;
  for (size_t tap = 0; tap < volume(s, KERNEL); tap++) {
    size_t at;
    if (!find_tap(s, result, tap, &at)) continue;
    for (size_t c = 0; c < s[IN]; c++) sum += image[c * volume(s, SIZE) + at] * weight[c * volume(s, KERNEL) + tap];
  }
  return sum;
}

static void reference(const test_call *call, double *const *inputs, double *result) {
  const size_t *s = call->sizes, out = s[GROUPS] * s[OUT];
  const size_t results = result_size(s, 0) * result_size(s, 1) * result_size(s, 2);
  for (size_t i = 0; i < s[IMAGES] * out; i++) {
    const size_t o = i % out, first = i / out * s[GROUPS] * s[IN] + o / s[OUT] * s[IN];
    for (size_t k = 0; k < results; k++)
      *result++ = (s[HAS_BIAS] ? inputs[BIAS][o] : 0) +
                  convolve(s, inputs[X] + first * volume(s, SIZE), inputs[WEIGHT] + o * s[IN] * volume(s, KERNEL), k);
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
  s[DIMS] = 2;
  for (size_t axis = 0; axis < 2; axis++) {
    s[SIZE + axis] = 16;
    s[KERNEL + axis] = 3;
    s[STRIDE + axis] = 1;
    s[BEFORE + axis] = s[AFTER + axis] = s[DILATION + axis] = far;
  }
  draw_no_axis(s, 2);
  add_inputs(call);
}

static void draw_middle(uint64_t *seed, test_call *call) { draw_of(seed, call, 2, 20, 12); }

static void draw_small_depthwise(uint64_t *seed, test_call *call) { draw_of(seed, call, 2, 1, 20); }

UNIT_TEST(test_what_does_not_fit_is_refused) {
  rondo_conv_options options = {RONDO_CONV_OPTIONS_INIT, .groups = 2};
  rondo_program *program = test_new_program();
  rondo_value x, weight, y;
  assert_ok(rondo_program_input(program, "x", RONDO_F32, (const size_t[]){1, 3, 4, 4}, 4, &x));
  assert_ok(rondo_program_input(program, "w", RONDO_F32, (const size_t[]){2, 3, 5, 3}, 4, &weight));
  assert_fails(rondo_op_conv(program, x, weight, NULL, &y), RONDO_INVALID_ARGUMENT);
  assert_message("a window of 5 does not fit into an image of 4 with a padding of 0 before and 0 after it");

  options.padding[0] = 1;
  assert_fails(rondo_op_conv(program, x, weight, &options, &y), RONDO_INVALID_ARGUMENT);
  assert_message(
      "x [n, c, ..] has 3 channels, and weight [o, c / groups, ..] gives 2; both must be multiples of the 2 groups");
  assert_int_equal(y.id, 0);
  options.groups = 1;
  assert_ok(rondo_program_input(program, "depthwise", RONDO_F32, (const size_t[]){3, 1, 3, 3}, 4, &weight));
  assert_fails(rondo_op_conv(program, x, weight, &options, &y), RONDO_INVALID_ARGUMENT);
  assert_message("takes 1 channels for each of 1 groups, and x [n, c, ..] has 3 channels in all");
  options.padding_after[0] = SIZE_MAX;
  assert_fails(rondo_op_conv(program, x, weight, &options, &y), RONDO_INVALID_ARGUMENT);
  assert_message("a size is larger than 1073741824: use a smaller image, kernel");
  rondo_program_destroy(program);
}

UNIT_TEST(test_ranks_that_do_not_fit_are_refused) {
  rondo_program *program = test_new_program();
  rondo_value x, weight, flat, y;
  assert_ok(rondo_program_input(program, "x", RONDO_F32, (const size_t[]){1, 3, 4}, 3, &x));
  assert_ok(rondo_program_input(program, "w", RONDO_F32, (const size_t[]){2, 3, 3, 3}, 4, &weight));
  assert_ok(rondo_program_input(program, "flat", RONDO_F32, (const size_t[]){2, 3}, 2, &flat));
  assert_error(rondo_op_conv(program, x, weight, NULL, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE);
  assert_error(rondo_op_conv(program, x, flat, NULL, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE);
  assert_error(rondo_op_conv(program, flat, weight, NULL, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE);
  assert_message("x has 2 dimensions; it needs 3 to 5");
  rondo_program_destroy(program);
}

/* An infinite element makes the gradients of the taps that meet it infinite, and leaves the others as they are. It is
 * at the beginning of a row, beside the end of the row before. */
TEST(test_pr8_an_infinite_image_of_a_depthwise_conv) {
  enum { GROUPS_OF_ONE = 2, EDGE = 20, AT = 4 * EDGE };
  static float image[GROUPS_OF_ONE][EDGE * EDGE], weight[GROUPS_OF_ONE][9], slopes[GROUPS_OF_ONE][9];
  if (strncmp(test_device_name(), "cpu", 3) != 0) skip(); /* a library's kernels may multiply it with padding */
  const size_t x_shape[] = {1, GROUPS_OF_ONE, EDGE, EDGE}, w_shape[] = {GROUPS_OF_ONE, 1, 3, 3};
  const rondo_conv_options options = {RONDO_CONV_OPTIONS_INIT, .groups = GROUPS_OF_ONE, .padding = {1, 1}};
  rondo_program *program = test_new_program();
  rondo_value x, w, y, slope;
  for (size_t i = 0; i < GROUPS_OF_ONE * EDGE * EDGE; i++) image[i / (EDGE * EDGE)][i % (EDGE * EDGE)] = 1;
  image[0][AT] = INFINITY;
  assert_ok(rondo_program_input(program, "x", RONDO_F32, x_shape, 4, &x));
  assert_ok(rondo_program_input(program, "w", RONDO_F32, w_shape, 4, &w));
  assert_ok(rondo_op_conv(program, x, w, &options, &y));
  assert_ok(rondo_op_sum(program, y, NULL, 0, false, &y));
  assert_ok(rondo_program_gradients(program, y, &w, 1, &slope));
  assert_ok(rondo_program_output(program, "dw", slope));
  test_run_program(t, program, (const test_bytes[]){TEST_BYTES("x", image), TEST_BYTES("w", weight), {.name = NULL}},
                   (const test_bytes[]){TEST_BYTES("dw", slopes), {.name = NULL}});
  for (size_t tap = 0; tap < 9; tap++) {
    const float rows = tap / 3 == 1 ? EDGE : EDGE - 1, columns = tap % 3 == 1 ? EDGE : EDGE - 1;
    assert_true(slopes[0][tap] == (tap % 3 < 2 ? INFINITY : rows * columns));
    assert_true(slopes[1][tap] == rows * columns);
  }
}

#define OPERATOR .build = build, .reference = reference

static const test_operator rows[] = {
    {.name = "conv", .draw = draw, OPERATOR, .gradient_tolerance = 2e-4},
    {.name = "conv of series", .draw = draw_series, OPERATOR, .gradient_tolerance = 2e-4},
    {.name = "conv of volumes", .draw = draw_volume, OPERATOR, .tolerance = 1e-5, .gradient_tolerance = 5e-4},
    {.name = "large conv", .draw = draw_large, OPERATOR, .tolerance = 4e-5, .has_no_gradient = true},
    {.name = "large conv of volumes", .draw = draw_large_volume, OPERATOR, .tolerance = 4e-5, .has_no_gradient = true},
    {.name = "middle conv",
     .draw = draw_middle,
     OPERATOR,
     .tolerance = 4e-5,
     .gradient_tolerance = 2e-3,
     .only_f32 = true},
    {.name = "far conv", .draw = draw_far, OPERATOR, .tolerance = 4e-5, .only_f32 = true, .has_no_gradient = true},
    {.name = "depthwise conv", .draw = draw_depthwise, OPERATOR, .tolerance = 4e-5, .has_no_gradient = true},
    {.name = "small depthwise conv",
     .draw = draw_small_depthwise,
     OPERATOR,
     .tolerance = 4e-5,
     .gradient_tolerance = 2e-3},
};

TEST_OPERATOR_MAIN(rows)
