/* SPDX-License-Identifier: MIT
 * conv_transpose (PR-8): one to three dimensions, stride, padding on each side, output padding, dilation, groups, bias.
 * The reference scatters each element.
 */
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
  DILATION = AFTER + 3,
  MORE = DILATION + 3 /* the output padding */
};
enum { X, WEIGHT, BIAS }; /* inputs */

static size_t result_size(const size_t *s, size_t axis) {
  return (s[SIZE + axis] - 1) * s[STRIDE + axis] + s[DILATION + axis] * (s[KERNEL + axis] - 1) + s[MORE + axis] + 1 -
         s[BEFORE + axis] - s[AFTER + axis];
}

static size_t most_padding(const size_t *s, size_t axis, size_t most) {
  const size_t left = result_size(s, axis) - 1;
  return left < most ? left : most;
}

static void draw_axis(uint64_t *seed, size_t *s, size_t axis, size_t most) {
  s[SIZE + axis] = test_draw_between(seed, 1, most);
  s[KERNEL + axis] = test_draw_between(seed, 1, 4);
  s[STRIDE + axis] = test_draw_between(seed, 1, 3);
  s[DILATION + axis] = test_draw_between(seed, 1, 2);
  s[MORE + axis] = test_draw_between(seed, 0, s[STRIDE + axis] - 1);
  s[BEFORE + axis] = s[AFTER + axis] = 0;
  s[BEFORE + axis] = test_draw_between(seed, 0, most_padding(s, axis, 3) / 2);
  s[AFTER + axis] =
      test_random_below(seed, 3) > 0 ? s[BEFORE + axis] : test_draw_between(seed, 0, most_padding(s, axis, 3));
}

static void draw_no_axis(size_t *s, size_t axis) {
  s[SIZE + axis] = s[KERNEL + axis] = s[STRIDE + axis] = s[DILATION + axis] = 1;
  s[MORE + axis] = s[BEFORE + axis] = s[AFTER + axis] = 0;
}

static void draw_of(uint64_t *seed, test_call *call, bool has_bias, size_t dims, size_t channels, size_t most) {
  size_t *s = call->sizes;
  s[IMAGES] = test_draw_between(seed, 1, 3);
  s[GROUPS] = test_draw_between(seed, 1, 3);
  s[IN] = test_draw_between(seed, 1, channels);
  s[OUT] = test_draw_between(seed, 1, channels);
  s[HAS_BIAS] = has_bias;
  s[DIMS] = dims;
  if (test_random_below(seed, 4) == 0) s[IN] = s[OUT] = 1;
  for (size_t axis = 0; axis < dims; axis++) draw_axis(seed, s, axis, most);
  for (size_t axis = dims; axis < 3; axis++) draw_no_axis(s, axis);
  const size_t in = s[GROUPS] * s[IN], out = s[GROUPS] * s[OUT];
  test_add_float(call, (const size_t[]){s[IMAGES], in, s[SIZE], s[SIZE + 1], s[SIZE + 2]}, 2 + dims, -1, 1);
  test_add_float(call, (const size_t[]){in, s[OUT], s[KERNEL], s[KERNEL + 1], s[KERNEL + 2]}, 2 + dims, -1, 1);
  if (s[HAS_BIAS]) test_add_float(call, &out, 1, -1, 1);
}

static void draw(uint64_t *seed, test_call *call) { draw_of(seed, call, false, 2, 3, 5); }
static void draw_series(uint64_t *seed, test_call *call) { draw_of(seed, call, false, 1, 3, 20); }
static void draw_volume(uint64_t *seed, test_call *call) { draw_of(seed, call, false, 3, 2, 3); }
static void draw_large(uint64_t *seed, test_call *call) { draw_of(seed, call, false, 2, 24, 11); }
static void draw_with_bias(uint64_t *seed, test_call *call) {
  draw_of(seed, call, true, test_draw_between(seed, 1, 3), 3, 3);
}

static rondo_status build(const test_call *call, rondo_program *program, const rondo_value *in, rondo_value *y) {
  const size_t *s = call->sizes;
  rondo_conv_transpose_options options = {RONDO_CONV_TRANSPOSE_OPTIONS_INIT,
                                          .groups = s[GROUPS] == 1 ? 0 : (uint32_t)s[GROUPS],
                                          .bias = s[HAS_BIAS] ? in[BIAS] : (rondo_value){0}};
  for (size_t i = 0; i < s[DIMS]; i++) {
    options.stride[i] = s[STRIDE + i] == 1 ? 0 : s[STRIDE + i];
    options.dilation[i] = s[DILATION + i] == 1 ? 0 : s[DILATION + i];
    options.padding[i] = s[BEFORE + i] < s[AFTER + i] ? s[BEFORE + i] : s[AFTER + i];
    options.padding_before[i] = s[BEFORE + i] - options.padding[i];
    options.padding_after[i] = s[AFTER + i] - options.padding[i];
    options.output_padding[i] = s[MORE + i];
  }
  return rondo_op_conv_transpose(program, in[X], in[WEIGHT], &options, y);
}

static size_t volume(const size_t *s, int sizes) { return s[sizes] * s[sizes + 1] * s[sizes + 2]; }

static size_t results_of(const size_t *s) { return result_size(s, 0) * result_size(s, 1) * result_size(s, 2); }

/* The index in a channel of the result to which element `at` of a channel sends this tap; false if it is cut off. */
static bool find_result(const size_t *s, size_t at, size_t tap, size_t *out_result) {
  size_t stride = 1;
  *out_result = 0;
  for (size_t i = 0; i < 3; i++) {
    const size_t axis = 2 - i, size = result_size(s, axis);
    const size_t to =
        at % s[SIZE + axis] * s[STRIDE + axis] + tap % s[KERNEL + axis] * s[DILATION + axis] - s[BEFORE + axis];
    if (to >= size) return false; /* below 0 it is very large */
    *out_result += to * stride;
    stride *= size;
    at /= s[SIZE + axis];
    tap /= s[KERNEL + axis];
  }
  return true;
}

/* Adds the products of element `at` of a channel, and its weights, to all result channels of the group. */
static void scatter(const size_t *s, double x, size_t at, const double *weight, double *channels) {
  const size_t results = results_of(s), taps = volume(s, KERNEL);
  for (size_t tap = 0; tap < taps; tap++) {
    size_t to;
    if (!find_result(s, at, tap, &to)) continue;
    for (size_t o = 0; o < s[OUT]; o++) channels[o * results + to] += x * weight[o * taps + tap];
  }
}

static void reference(const test_call *call, double *const *in, double *y) {
  const size_t *s = call->sizes, places = volume(s, SIZE), weights = s[OUT] * volume(s, KERNEL);
  const size_t results = results_of(s), channels = s[GROUPS] * s[OUT];
  for (size_t i = 0; i < s[IMAGES] * channels * results; i++) y[i] = s[HAS_BIAS] ? in[BIAS][i / results % channels] : 0;
  for (size_t i = 0; i < s[IMAGES] * s[GROUPS] * s[IN] * places; i++) {
    const size_t channel = i / places % (s[GROUPS] * s[IN]), image = i / places / (s[GROUPS] * s[IN]);
    scatter(s, in[X][i], i % places, in[WEIGHT] + channel * weights,
            y + (image * channels + channel / s[IN] * s[OUT]) * results);
  }
}

UNIT_TEST(test_what_does_not_fit) {
  rondo_conv_transpose_options options = {RONDO_CONV_TRANSPOSE_OPTIONS_INIT};
  rondo_program *program = test_new_program();
  rondo_value x, weight, other, y;
  assert_ok(rondo_program_input(program, "x", RONDO_F32, (size_t[]){2, 4, 5, 5}, 4, &x));
  assert_ok(rondo_program_input(program, "weight", RONDO_F32, (size_t[]){4, 3, 3, 3}, 4, &weight));
  assert_ok(rondo_program_input(program, "other", RONDO_F32, (size_t[]){3, 4, 3, 3}, 4, &other));
  assert_error(rondo_op_conv_transpose(program, x, other, NULL, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE);
  assert_message("conv_transpose(weight 'other' [3, 4, 3, 3], x 'x' [2, 4, 5, 5])");
  options.output_padding[0] = 1;
  assert_error(rondo_op_conv_transpose(program, x, weight, &options, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE);
  assert_message("the output padding must be smaller than the stride");
  options.output_padding[0] = 0;
  options.padding[1] = 4;
  assert_error(rondo_op_conv_transpose(program, x, weight, &options, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE);
  options.padding[1] = SIZE_MAX;
  assert_error(rondo_op_conv_transpose(program, x, weight, &options, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE);
  options.padding[1] = 0;
  options.groups = 3;
  assert_error(rondo_op_conv_transpose(program, x, weight, &options, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE);
  options.groups = 1;
  options.bias = x;
  assert_error(rondo_op_conv_transpose(program, x, weight, &options, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE);
  assert_true(y.id == 0);
  assert_ok(rondo_op_conv_transpose(program, x, weight, NULL, &y));
  rondo_program_destroy(program);
}

#define CONVOLUTION .build = build, .reference = reference, .gradient_tolerance = 1e-3

static const test_operator rows[] = {
    {.name = "conv_transpose", .draw = draw, CONVOLUTION, .tolerance = 2e-5},
    {.name = "conv_transpose of series", .draw = draw_series, CONVOLUTION, .tolerance = 2e-5},
    {.name = "conv_transpose of volumes", .draw = draw_volume, CONVOLUTION, .tolerance = 2e-5},
    {.name = "large conv_transpose", .draw = draw_large, CONVOLUTION, .tolerance = 2e-5},
    {.name = "conv_transpose", .draw = draw_with_bias, CONVOLUTION, .tolerance = 2e-5, .only_f32 = true},
    {.name = "conv_transpose", .draw = draw_with_bias, CONVOLUTION, .tolerance = 0x1p-6}, /* rounded twice */
};

TEST_OPERATOR_MAIN(rows)
