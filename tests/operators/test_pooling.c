/* SPDX-License-Identifier: MIT
 * Pooling (PR-8): max_pool, avg_pool, lp_pool and max_unpool: one to three dimensions, kernel, stride, dilation,
 * padding on each side, sizes that are rounded up, divisors, indices.
 */
#include <math.h>

#include "support/test_operator.h"
#include "support/test_program.h"

/* Sizes; from SIZE on one for each of three dimensions, of which the last may not exist. */
enum {
  CHANNELS, /* of all images */
  DIMS,
  COUNTS_PADDING,
  CEIL,
  DIVISOR,
  SIZE,
  KERNEL = SIZE + 3,
  STRIDE = KERNEL + 3,
  BEFORE = STRIDE + 3,
  AFTER = BEFORE + 3,
  DILATION = AFTER + 3
};

static size_t extent_of(const size_t *s, size_t axis) { return s[DILATION + axis] * (s[KERNEL + axis] - 1) + 1; }

static void draw_axis(uint64_t *seed, size_t *s, size_t axis, size_t most, size_t dilation) {
  s[KERNEL + axis] = test_draw_between(seed, 1, 4);
  s[STRIDE + axis] = test_draw_between(seed, 1, 5);
  s[DILATION + axis] = test_draw_between(seed, 1, dilation);
  s[BEFORE + axis] = s[AFTER + axis] = test_draw_between(seed, 0, s[KERNEL + axis] - 1);
  if (test_random_below(seed, 3) == 0) s[AFTER + axis] = test_draw_between(seed, 0, s[KERNEL + axis] - 1);
  s[SIZE + axis] = test_draw_between(seed, extent_of(s, axis), extent_of(s, axis) + most);
}

static void draw_of(uint64_t *seed, test_call *call, size_t dims, size_t most, size_t dilation) {
  size_t *s = call->sizes;
  const size_t images = test_draw_between(seed, 1, 3), channels = test_draw_between(seed, 1, 4);
  s[CHANNELS] = images * channels;
  s[DIMS] = dims;
  s[COUNTS_PADDING] = test_draw_between(seed, 0, 1);
  s[CEIL] = test_draw_between(seed, 0, 1);
  s[DIVISOR] = test_random_below(seed, 4) == 0 ? test_draw_between(seed, 1, 9) : 0;
  for (size_t axis = 0; axis < 3; axis++) {
    if (axis < dims) {
      draw_axis(seed, s, axis, most, dilation);
      continue;
    }
    s[SIZE + axis] = s[KERNEL + axis] = s[STRIDE + axis] = s[DILATION + axis] = 1;
    s[BEFORE + axis] = s[AFTER + axis] = 0;
  }
  test_add_float(call, (const size_t[]){images, channels, s[SIZE], s[SIZE + 1], s[SIZE + 2]}, 2 + dims, -9, 9);
}

static void draw_pool(uint64_t *seed, test_call *call) { draw_of(seed, call, 2, 7, 1); }
static void draw_dilated(uint64_t *seed, test_call *call) { draw_of(seed, call, 2, 5, 3); }
static void draw_series(uint64_t *seed, test_call *call) { draw_of(seed, call, 1, 300, 2); }
static void draw_volume(uint64_t *seed, test_call *call) { draw_of(seed, call, 3, 2, 2); }

static rondo_pooling_options options_of(const size_t *s) {
  rondo_pooling_options options = {RONDO_POOLING_OPTIONS_INIT, .counts_padding = s[COUNTS_PADDING] != 0,
                                   .ceil_mode = s[CEIL] != 0, .divisor = (uint32_t)s[DIVISOR]};
  for (size_t i = 0; i < s[DIMS]; i++) {
    options.kernel[i] = s[KERNEL + i];
    options.stride[i] = s[STRIDE + i] == s[KERNEL + i] ? 0 : s[STRIDE + i];
    options.dilation[i] = s[DILATION + i] == 1 ? 0 : s[DILATION + i];
    options.padding[i] = s[BEFORE + i] < s[AFTER + i] ? s[BEFORE + i] : s[AFTER + i];
    options.padding_before[i] = s[BEFORE + i] - options.padding[i];
    options.padding_after[i] = s[AFTER + i] - options.padding[i];
  }
  return options;
}

typedef struct pooling {
  rondo_status (*op)(rondo_program *program, rondo_value x, const rondo_pooling_options *options,
                     rondo_value *out_value);
  double (*pool)(const size_t *s, const double *channel, size_t result);
} pooling;

static rondo_status build(const test_call *call, rondo_program *program, const rondo_value *in, rondo_value *result) {
  const pooling *family = call->op->family;
  const rondo_pooling_options options = options_of(call->sizes);
  return family->op(program, in[0], &options, result);
}

static size_t result_size(const size_t *s, size_t axis) {
  const size_t padded = s[SIZE + axis] + s[BEFORE + axis] + s[AFTER + axis], stride = s[STRIDE + axis];
  const size_t room = padded - extent_of(s, axis);
  const size_t rounded = (room + stride - 1) / stride + 1;
  if (s[CEIL] && (rounded - 1) * stride < s[SIZE + axis] + s[BEFORE + axis]) return rounded;
  return room / stride + 1;
}

static size_t volume(const size_t *s, int sizes) { return s[sizes] * s[sizes + 1] * s[sizes + 2]; }

static void reference(const test_call *call, double *const *inputs, double *result) {
  const pooling *family = call->op->family;
  const size_t *s = call->sizes, results = result_size(s, 0) * result_size(s, 1) * result_size(s, 2);
  for (size_t i = 0; i < s[CHANNELS] * results; i++)
    result[i] = family->pool(s, inputs[0] + i / results * volume(s, SIZE), i % results);
}

typedef enum tap_place { IN_IMAGE, IN_PADDING, BEYOND } tap_place;

/* Where a tap of a result is; *out_at is its index in the image. */
static tap_place find_tap(const size_t *s, size_t result, size_t tap, size_t *out_at) {
  size_t stride = 1;
  tap_place place = IN_IMAGE;
  *out_at = 0;
  for (size_t i = 0; i < 3; i++) {
    const size_t axis = 2 - i, size = result_size(s, axis);
    const size_t at = result % size * s[STRIDE + axis] + tap % s[KERNEL + axis] * s[DILATION + axis];
    if (at >= s[SIZE + axis] + s[BEFORE + axis] + s[AFTER + axis]) return BEYOND;
    if (at < s[BEFORE + axis] || at >= s[SIZE + axis] + s[BEFORE + axis]) place = IN_PADDING;
    *out_at += (at - s[BEFORE + axis]) * stride;
    stride *= s[SIZE + axis];
    result /= size;
    tap /= s[KERNEL + axis];
  }
  return place;
}

/* The sum of |x|^p, or of x where p is 0; *out_count: the elements, with those in the padding if they are counted. */
static double sum_of(const size_t *s, const double *channel, size_t result, double p, size_t *out_count) {
  double sum = 0;
  *out_count = 0;
  for (size_t tap = 0; tap < volume(s, KERNEL); tap++) {
    size_t at;
    const tap_place place = find_tap(s, result, tap, &at);
    if (place == IN_IMAGE) sum += p == 0 ? channel[at] : pow(fabs(channel[at]), p);
    *out_count += place == IN_IMAGE || (place == IN_PADDING && s[COUNTS_PADDING]) ? 1 : 0;
  }
  return sum;
}

static double average(const size_t *s, const double *channel, size_t result) {
  size_t count;
  const double sum = sum_of(s, channel, result, 0, &count);
  if (s[DIVISOR] != 0) return sum / (double)s[DIVISOR];
  return count == 0 ? 0 : sum / (double)count;
}

static double largest_of(const size_t *s, const double *channel, size_t result) {
  double most = -INFINITY;
  for (size_t tap = 0; tap < volume(s, KERNEL); tap++) {
    size_t at;
    if (find_tap(s, result, tap, &at) == IN_IMAGE) most = fmax(most, channel[at]);
  }
  return most;
}

static rondo_status max_pool(rondo_program *program, rondo_value x, const rondo_pooling_options *options,
                             rondo_value *out_value) {
  return rondo_op_max_pool(program, x, options, out_value, NULL);
}

static double norm_of(const size_t *s, const double *channel, size_t result, double p) {
  size_t count;
  return pow(sum_of(s, channel, result, p, &count), 1 / p);
}

static double norm_1(const size_t *s, const double *channel, size_t result) { return norm_of(s, channel, result, 1); }
static double norm_2(const size_t *s, const double *channel, size_t result) { return norm_of(s, channel, result, 2); }
static double norm_3(const size_t *s, const double *channel, size_t result) { return norm_of(s, channel, result, 3); }

#define LP_POOL(p)                                                                                             \
  static rondo_status lp_pool_##p(rondo_program *program, rondo_value x, const rondo_pooling_options *options, \
                                  rondo_value *out_value) {                                                    \
    return rondo_op_lp_pool(program, x, p, options, out_value);                                                \
  }
LP_POOL(1)
LP_POOL(2)
LP_POOL(3)

static void check_refusals(const pooling *pool) {
  rondo_pooling_options options = {RONDO_POOLING_OPTIONS_INIT, .kernel = {2, 2}, .padding = {0, 2}};
  rondo_program *program = test_new_program();
  rondo_value x, y;
  assert_ok(rondo_program_input(program, "x", RONDO_F32, (const size_t[]){1, 3, 4, 4}, 4, &x));
  assert_fails(pool->op(program, x, NULL, &y), RONDO_INVALID_ARGUMENT);
  assert_fails(pool->op(program, x, &options, &y), RONDO_INVALID_ARGUMENT);
  assert_message("the padding of 2 must be less than the window, which is 2");

  options.padding[1] = options.kernel[0] = 0;
  assert_fails(pool->op(program, x, &options, &y), RONDO_INVALID_ARGUMENT);
  assert_message("a window of 0 does not fit");
  assert_int_equal(y.id, 0);
  rondo_program_destroy(program);
}

static float pool_one(test_fixture *t, float *x, float *gradient) {
  const rondo_pooling_options options = {RONDO_POOLING_OPTIONS_INIT, .kernel = {2, 2}};
  rondo_program *program = test_new_program();
  rondo_value in, y, of_in;
  float largest = 0;
  assert_ok(rondo_program_input(program, "x", RONDO_F32, (const size_t[]){1, 1, 2, 2}, 4, &in));
  assert_ok(rondo_op_max_pool(program, in, &options, &y, NULL));
  assert_ok(rondo_op_reshape(program, y, NULL, 0, &y));
  assert_ok(rondo_program_output(program, "y", y));
  assert_ok(rondo_program_gradients(program, y, &in, 1, &of_in));
  assert_ok(rondo_program_output(program, "gradient", of_in));
  test_run_program(
      t, program, (const test_bytes[]){{"x", x, 4 * sizeof *x}, {.name = NULL}},
      (const test_bytes[]){TEST_BYTES("y", largest), {"gradient", gradient, 4 * sizeof *gradient}, {.name = NULL}});
  return largest;
}

/* The first of equal elements gets the gradient; NaN is propagated. */
TEST(test_equals_and_nan) {
  float gradient[4];
  assert_true(pool_one(t, (float[]){1, 5, 5, 2}, gradient) == 5);
  assert_true(gradient[0] == 0 && gradient[1] == 1 && gradient[2] == 0 && gradient[3] == 0);
  assert_true(isnan(pool_one(t, (float[]){1, 5, NAN, 7}, gradient)));
  assert_true(gradient[2] == 1 && gradient[3] == 0);
  assert_true(pool_one(t, (float[]){-INFINITY, -INFINITY, -INFINITY, -INFINITY}, gradient) == -INFINITY);
  assert_true(gradient[0] == 1);
}

/* Takes the maxima back to their places, and into a program that has indices, too. */
TEST(test_indices_and_unpooling) {
  const rondo_pooling_options options = {RONDO_POOLING_OPTIONS_INIT, .kernel = {2, 2}};
  rondo_program *program = test_new_program();
  rondo_value in, y, indices, back;
  float x[2 * 2 * 4], to[2 * 2 * 4];
  int32_t places[2 * 2];
  for (size_t i = 0; i < 16; i++) x[i] = (float)(i * 7 % 16);
  assert_ok(rondo_program_input(program, "x", RONDO_F32, (const size_t[]){1, 2, 2, 4}, 4, &in));
  assert_ok(rondo_op_max_pool(program, in, &options, &y, &indices));
  assert_ok(rondo_op_max_unpool(program, y, indices, (const size_t[]){2, 4}, &back));
  assert_ok(rondo_program_output(program, "indices", indices));
  assert_ok(rondo_program_output(program, "back", back));
  test_run_program(t, program, (const test_bytes[]){TEST_BYTES("x", x), {.name = NULL}},
                   (const test_bytes[]){TEST_BYTES("indices", places), TEST_BYTES("back", to), {.name = NULL}});
  for (size_t i = 0; i < 4; i++) {
    const size_t corner = i % 2 * 2;
    size_t best = corner;
    for (size_t k = 1; k < 4; k++) {
      const size_t at = corner + k / 2 * 4 + k % 2;
      if (x[i / 2 * 8 + at] > x[i / 2 * 8 + best]) best = at;
    }
    assert_int_equal(places[i], best);
    for (size_t k = 0; k < 4; k++) {
      const size_t at = corner + k / 2 * 4 + k % 2, whole = i / 2 * 8 + at;
      assert_true(to[whole] == (at == best ? x[whole] : 0));
    }
  }
}

/* Bytes have the same maxima; windows whose taps all miss the image have the lowest number and the index -1. */
TEST(test_bytes_and_windows_without_elements) {
  rondo_pooling_options options = {RONDO_POOLING_OPTIONS_INIT, .kernel = {2}, .dilation = {2}, .padding = {1},
                                   .stride = {1}};
  rondo_program *program = test_new_program();
  rondo_value in, one, y, empty, places;
  int8_t x[4] = {-128, 5, 127, -3}, most[4], none;
  int32_t place;
  assert_ok(rondo_program_input(program, "x", RONDO_I8, (const size_t[]){1, 1, 4}, 3, &in));
  assert_ok(rondo_op_max_pool(program, in, &options, &y, NULL));
  assert_ok(rondo_op_slice(program, in, (const size_t[]){0, 0, 1}, (const size_t[]){1, 1, 1}, NULL, &one));
  assert_ok(rondo_op_max_pool(program, one, &options, &empty, &places));
  assert_ok(rondo_program_output(program, "y", y));
  assert_ok(rondo_program_output(program, "empty", empty));
  assert_ok(rondo_program_output(program, "places", places));
  test_run_program(t, program, (const test_bytes[]){TEST_BYTES("x", x), {.name = NULL}},
                   (const test_bytes[]){
                       TEST_BYTES("y", most), TEST_BYTES("empty", none), TEST_BYTES("places", place), {.name = NULL}});
  assert_true(most[0] == 5 && most[1] == 127 && most[2] == 5 && most[3] == 127);
  assert_true(none == -128 && place == -1);
}

/* lp_pool passes a copy of its options on. */
UNIT_TEST(test_options_of_a_later_version) {
  union {
    rondo_pooling_options known;
    uint8_t bytes[4096];
  } later = {.known = {.struct_size = sizeof later, .kernel = {2}}};
  rondo_program *program = test_new_program();
  rondo_value x, y;
  assert_ok(rondo_program_input(program, "x", RONDO_F32, (const size_t[]){1, 2, 4}, 3, &x));
  assert_ok(rondo_op_lp_pool(program, x, 2, &later.known, &y));
  rondo_program_destroy(program);
}

UNIT_TEST(test_unpooling_refuses_other_shapes) {
  rondo_program *program = test_new_program();
  rondo_value x, indices, y;
  assert_ok(rondo_program_input(program, "x", RONDO_F32, (const size_t[]){1, 2, 3}, 3, &x));
  assert_ok(rondo_program_input(program, "indices", RONDO_I32, (const size_t[]){1, 2, 4}, 3, &indices));
  assert_error(rondo_op_max_unpool(program, x, indices, (const size_t[]){9}, &y), RONDO_INVALID_ARGUMENT,
               RONDO_REASON_SHAPE);
  assert_error(rondo_op_max_unpool(program, x, x, (const size_t[]){9}, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_TYPE);
  assert_error(rondo_op_max_unpool(program, x, indices, NULL, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_NULL_ARGUMENT);
  assert_error(
      rondo_op_lp_pool(program, x, 0.5f, &(rondo_pooling_options){RONDO_POOLING_OPTIONS_INIT, .kernel = {1}}, &y),
      RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE);
  assert_int_equal(y.id, 0);
  rondo_program_destroy(program);
}

static const pooling averaging = {rondo_op_avg_pool, average}, maximizing = {max_pool, largest_of};
static const pooling summing = {lp_pool_1, norm_1}, squares = {lp_pool_2, norm_2}, cubes = {lp_pool_3, norm_3};

UNIT_TEST(test_what_does_not_fit_is_refused) {
  check_refusals(&averaging);
  check_refusals(&maximizing);
}

#define POOL(function, pool) .draw = (function), .build = build, .reference = reference, .family = &(pool)

static const test_operator rows[] = {
    {.name = "avg_pool", POOL(draw_pool, averaging)},
    {.name = "avg_pool of series", POOL(draw_series, averaging)},
    {.name = "avg_pool of volumes", POOL(draw_volume, averaging)},
    {.name = "dilated avg_pool", POOL(draw_dilated, averaging)},
    {.name = "max_pool", POOL(draw_pool, maximizing), .has_ties = true},
    {.name = "max_pool of series", POOL(draw_series, maximizing), .has_ties = true},
    {.name = "max_pool of volumes", POOL(draw_volume, maximizing), .has_ties = true},
    {.name = "dilated max_pool", POOL(draw_dilated, maximizing), .has_ties = true},
    {.name = "lp_pool, p 1", POOL(draw_pool, summing), .tolerance = 1e-5, .has_ties = true},
    {.name = "lp_pool, p 2", POOL(draw_pool, squares), .tolerance = 1e-5, .gradient_tolerance = 1e-3},
    {.name = "lp_pool, p 3", POOL(draw_volume, cubes), .tolerance = 1e-4, .has_no_gradient = true},
};

TEST_OPERATOR_MAIN(rows)
