/* SPDX-License-Identifier: MIT
 * interpolate (PR-8): modes, coordinates, roundings, smoothing, and one to four dimensions. The reference computes each
 * element from all of its neighbours, in all dimensions at once.
 */
#include <math.h>
#include <string.h>

#include "support/test_operator.h"
#include "support/test_program.h"

enum { MODE, COORDINATES, NEAREST, HAS_SCALE, ANTIALIAS, EXCLUDES, OUT }; /* sizes; OUT: of each dimension */

#define SCALE 1.375
#define OUTSIDE 1.5

static void draw_mode(uint64_t *seed, test_call *call, rondo_interpolation mode) {
  const size_t rank = test_draw_between(seed, 3, mode == RONDO_INTERPOLATE_CUBIC ? 4 : 6);
  size_t shape[RONDO_MAX_DIMENSIONS] = {test_draw_between(seed, 1, 2), test_draw_between(seed, 1, 2)};
  call->sizes[MODE] = mode;
  call->sizes[COORDINATES] = test_draw_between(seed, 0, 5);
  call->sizes[NEAREST] = test_draw_between(seed, 0, 3);
  call->sizes[HAS_SCALE] = test_random_below(seed, 3) == 0;
  for (size_t d = 2; d < rank; d++) {
    shape[d] = test_draw_between(seed, 1, rank > 4 ? 3 : 7);
    call->sizes[OUT + d] = test_draw_between(seed, 1, rank > 4 ? 4 : 12);
    if (test_random_below(seed, 6) == 0) call->sizes[OUT + d] = shape[d];
  }
  test_add_float(call, shape, rank, -2, 2);
}

/* Dimensions shrink, as far as to one element. */
static void draw_smooth(uint64_t *seed, test_call *call) {
  const size_t rank = test_draw_between(seed, 3, 4);
  size_t shape[RONDO_MAX_DIMENSIONS] = {1, test_draw_between(seed, 1, 3)};
  call->sizes[MODE] = test_draw_between(seed, RONDO_INTERPOLATE_LINEAR, RONDO_INTERPOLATE_CUBIC);
  call->sizes[COORDINATES] = test_draw_between(seed, 0, 5);
  call->sizes[ANTIALIAS] = 1;
  call->sizes[EXCLUDES] = test_draw_between(seed, 0, 1);
  for (size_t d = 2; d < rank; d++) {
    shape[d] = test_draw_between(seed, 3, rank == 3 ? 300 : 9);
    call->sizes[OUT + d] = test_draw_between(seed, 1, shape[d]);
  }
  test_add_float(call, shape, rank, -2, 2);
}

static void draw_excluding(uint64_t *seed, test_call *call) {
  draw_mode(seed, call, RONDO_INTERPOLATE_CUBIC);
  call->sizes[EXCLUDES] = 1;
}

static void draw_nearest(uint64_t *seed, test_call *call) { draw_mode(seed, call, RONDO_INTERPOLATE_NEAREST); }
static void draw_linear(uint64_t *seed, test_call *call) { draw_mode(seed, call, RONDO_INTERPOLATE_LINEAR); }
static void draw_cubic(uint64_t *seed, test_call *call) { draw_mode(seed, call, RONDO_INTERPOLATE_CUBIC); }

/* Much smaller and much larger than before, over several chunks. */
static void draw_far(uint64_t *seed, test_call *call) {
  const bool shrinks = test_random_below(seed, 2) == 0;
  const size_t large = test_draw_between(seed, 300, 700), small = test_draw_between(seed, 3, 9);
  const size_t shape[] = {1, 2, 3, shrinks ? large : small};
  call->sizes[MODE] = test_draw_between(seed, 0, 2);
  call->sizes[OUT + 2] = 3;
  call->sizes[OUT + 3] = shrinks ? small : large;
  test_add_float(call, shape, 4, -2, 2);
}

static rondo_status build(const test_call *call, rondo_program *program, const rondo_value *in, rondo_value *result) {
  rondo_interpolate_options options = {RONDO_INTERPOLATE_OPTIONS_INIT,
                                       .mode = (rondo_interpolation)call->sizes[MODE],
                                       .coordinates = (rondo_coordinates)call->sizes[COORDINATES],
                                       .nearest = (rondo_nearest)call->sizes[NEAREST],
                                       .antialias = call->sizes[ANTIALIAS] != 0,
                                       .exclude_outside = call->sizes[EXCLUDES] != 0,
                                       .outside = (float)OUTSIDE,
                                       .crop_first = {0.25, 0.75, -0.125, 0},
                                       .crop_last = {0.875, 0.125, 1.25, 1}};
  for (size_t d = 2; d < call->inputs[0].rank; d++) {
    options.size[d - 2] = call->sizes[OUT + d];
    options.scale[d - 2] = call->sizes[HAS_SCALE] ? SCALE : 0;
  }
  return rondo_op_interpolate(program, in[0], &options, result);
}

static double crop_coordinate(double in, double out, size_t d, double at) {
  static const double first[] = {0.25, 0.75, -0.125, 0}, last[] = {0.875, 0.125, 1.25, 1};
  const double from = first[d - 2], to = last[d - 2];
  if (out == 1) return (from + to) * (in - 1) / 2;
  return (at * (to - from) + from * (out - 1)) * (in - 1) / (out - 1);
}

static double coordinate(const test_call *call, size_t d, size_t i) {
  const double in = (double)call->inputs[0].shape[d], out = (double)call->sizes[OUT + d];
  const double scale = call->sizes[HAS_SCALE] ? SCALE : out / in, at = (double)i;
  switch (call->sizes[COORDINATES]) {
    case RONDO_COORDINATES_ALIGN_CORNERS:
      return out > 1 ? at * (in - 1) / (out - 1) : 0;
    case RONDO_COORDINATES_ASYMMETRIC:
      return at / scale;
    case RONDO_COORDINATES_HALF_PIXEL_OR_0:
      return out > 1 ? (at + 0.5) / scale - 0.5 : 0;
    case RONDO_COORDINATES_HALF_PIXEL_SYMMETRIC:
      return in / 2 * (1 - out / (scale * in)) + (at + 0.5) / scale - 0.5;
    case RONDO_COORDINATES_CROP:
      return crop_coordinate(in, out, d, at);
    default:
      return (at + 0.5) / scale - 0.5;
  }
}

static double rounded(size_t how, double x) {
  const double low = floor(x), rest = x - low;
  if (rest == 0 || how == RONDO_NEAREST_FLOOR) return low;
  if (how == RONDO_NEAREST_CEIL || rest > 0.5) return low + 1;
  return rest == 0.5 && how == RONDO_NEAREST_ROUND_PREFER_CEIL ? low + 1 : low;
}

/* The weight of an element at this distance. */
static double weight_at(const test_call *call, double d) {
  const double a = -0.75;
  if (call->sizes[MODE] == RONDO_INTERPOLATE_LINEAR) return d < 1 ? 1 - d : 0;
  return d < 1   ? (a + 2) * pow(d, 3) - (a + 3) * pow(d, 2) + 1
         : d < 2 ? a * pow(d, 3) - 5 * a * pow(d, 2) + 8 * a * d - 4 * a
                 : 0;
}

/* The weight of element k, which may be beyond the edge, for coordinate x in dimension d. */
static double weight(const test_call *call, size_t d, double x, double k) {
  const double in = (double)call->inputs[0].shape[d], out = (double)call->sizes[OUT + d];
  const double squeeze = call->sizes[ANTIALIAS] && out < in ? out / in : 1;
  if (call->sizes[MODE] == RONDO_INTERPOLATE_NEAREST) return rounded(call->sizes[NEAREST], x) == k;
  if (call->sizes[EXCLUDES] && (k < 0 || k >= in)) return 0;
  return weight_at(call, fabs(x - k) * squeeze);
}

static bool is_outside(const test_call *call, const size_t *at) {
  bool is_out = false;
  for (size_t d = 2; d < call->inputs[0].rank && call->sizes[COORDINATES] == RONDO_COORDINATES_CROP; d++) {
    const double x = coordinate(call, d, at[d]);
    is_out = is_out || x < 0 || x > (double)(call->inputs[0].shape[d] - 1);
  }
  return is_out;
}

/* The sum of the neighbours in dimension d and those after it. `first` is the first element of the plane. */
static double sum_of(const test_call *call, const double *x, const size_t *at, size_t d, size_t first) {
  const test_tensor *value = &call->inputs[0];
  if (d == value->rank) return x[first];
  const double here = coordinate(call, d, at[d]), size = (double)value->shape[d];
  const double reach = 3 + ceil(call->sizes[ANTIALIAS] ? 2 * size / (double)call->sizes[OUT + d] : 0);
  double sum = 0, weights = 0;
  for (double k = floor(here) - reach; k <= floor(here) + reach; k++) {
    const double w = weight(call, d, here, k), inside = fmin(fmax(k, 0), size - 1);
    if (w != 0) sum += w * sum_of(call, x, at, d + 1, first * value->shape[d] + (size_t)inside);
    weights += w;
  }
  if (weights != 0) return sum / weights;
  return sum_of(call, x, at, d + 1, first * value->shape[d] + (size_t)fmin(fmax(floor(here), 0), size - 1));
}

static void reference(const test_call *call, double *const *in, double *y) {
  const test_tensor *value = &call->inputs[0];
  size_t shape[RONDO_MAX_DIMENSIONS];
  for (size_t d = 0; d < value->rank; d++) shape[d] = d < 2 ? value->shape[d] : call->sizes[OUT + d];
  for (size_t i = 0; i < test_elements(shape, value->rank); i++) {
    size_t at[RONDO_MAX_DIMENSIONS], rest = i;
    for (size_t d = value->rank; d > 0; d--) {
      at[d - 1] = rest % shape[d - 1];
      rest /= shape[d - 1];
    }
    y[i] = is_outside(call, at) ? OUTSIDE : sum_of(call, in[0], at, 2, at[0] * shape[1] + at[1]);
  }
}

/* Every third of 147 elements has a coordinate that is an integer, also where 1 / 3 was rounded. */
TEST(test_whole_coordinates) {
  float x[49], y[147];
  const rondo_interpolate_options options = {RONDO_INTERPOLATE_OPTIONS_INIT,
                                             .coordinates = RONDO_COORDINATES_ASYMMETRIC, .size = {147}};
  rondo_program *program = test_new_program();
  rondo_value in, out;
  for (int i = 0; i < 49; i++) x[i] = (float)i;
  assert_ok(rondo_program_input(program, "x", RONDO_F32, (size_t[]){1, 1, 49}, 3, &in));
  assert_ok(rondo_op_interpolate(program, in, &options, &out));
  assert_ok(rondo_program_output(program, "y", out));
  test_run_program(t, program, (const test_bytes[]){TEST_BYTES("x", x), {.name = NULL}},
                   (const test_bytes[]){TEST_BYTES("y", y), {.name = NULL}});
  for (int i = 0; i < 147; i++) assert_true(y[i] == (float)(i / 3));
}

UNIT_TEST(test_pr8_a_size_follows_from_the_scale) {
  const rondo_interpolate_options options = {RONDO_INTERPOLATE_OPTIONS_INIT, .size = {0, 0, 5}, .scale = {2.5, 0.5, 2}};
  rondo_program *program = test_new_program();
  size_t shape[RONDO_MAX_DIMENSIONS], rank;
  rondo_type type;
  rondo_value x, y;
  assert_ok(rondo_program_input(program, "x", RONDO_F32, (size_t[]){1, 2, 3, 7, 4}, 5, &x));
  assert_ok(rondo_op_interpolate(program, x, &options, &y));
  assert_ok(rondo_value_shape(program, y, &type, shape, &rank));
  assert_int_equal(rank, 5);
  assert_memory_equal(shape, ((const size_t[]){1, 2, 7, 3, 5}), 5 * sizeof *shape);
  rondo_program_destroy(program);
}

UNIT_TEST(test_what_cannot_be_interpolated) {
  rondo_interpolate_options options = {RONDO_INTERPOLATE_OPTIONS_INIT, .size = {4, 4}};
  rondo_program *program = test_new_program();
  rondo_value x, flat, whole, y;
  assert_ok(rondo_program_input(program, "x", RONDO_F32, (size_t[]){1, 2, 3, 3}, 4, &x));
  assert_ok(rondo_program_input(program, "flat", RONDO_F32, (size_t[]){3, 3}, 2, &flat));
  assert_ok(rondo_program_input(program, "whole", RONDO_I32, (size_t[]){1, 2, 3, 3}, 4, &whole));
  assert_ok(rondo_op_interpolate(program, x, &options, &y));
  assert_error(rondo_op_interpolate(program, flat, &options, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE);
  assert_error(rondo_op_interpolate(program, whole, &options, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_TYPE);
  assert_error(rondo_op_interpolate(program, x, NULL, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_NULL_ARGUMENT);
  options.size[1] = 0;
  assert_error(rondo_op_interpolate(program, x, &options, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE);
  assert_message("interpolate: dimension 3 of [1, 2, 3, 3] gets 0 elements");
  options.scale[1] = 0.25;
  assert_error(rondo_op_interpolate(program, x, &options, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE);
  options.scale[1] = 1e9;
  assert_error(rondo_op_interpolate(program, x, &options, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE);
  options.scale[1] = 0;
  options.size[1] = 4;
  options.scale[0] = -1;
  assert_error(rondo_op_interpolate(program, x, &options, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE);
  options.scale[0] = NAN;
  assert_error(rondo_op_interpolate(program, x, &options, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE);
  options.scale[0] = 1e-310; /* coordinates would be infinite */
  assert_error(rondo_op_interpolate(program, x, &options, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE);
  options.scale[0] = 0;
  options.cubic = INFINITY;
  assert_error(rondo_op_interpolate(program, x, &options, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE);
  options.cubic = 0;
  options.coordinates = RONDO_COORDINATES_CROP;
  options.crop_last[1] = NAN;
  assert_error(rondo_op_interpolate(program, x, &options, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE);
  assert_message("interpolate: dimension 3 is cropped from 0 to nan");
  options.coordinates = (rondo_coordinates)6;
  assert_error(rondo_op_interpolate(program, x, &options, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE);
  options.coordinates = RONDO_COORDINATES_HALF_PIXEL;
  options.antialias = true;
  options.scale[0] = 1e-9; /* neighbours would be without number */
  assert_error(rondo_op_interpolate(program, x, &options, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE);
  options.scale[0] = 0;
  options.mode = (rondo_interpolation)3;
  assert_error(rondo_op_interpolate(program, x, &options, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE);
  assert_true(y.id == 0);
  rondo_program_destroy(program);
}

#define INTERPOLATE .build = build, .reference = reference, .tolerance = 1e-5, .gradient_tolerance = 1e-3

static const test_operator rows[] = {
    {.name = "resize", .draw = draw_nearest, INTERPOLATE},
    {.name = "resize", .draw = draw_linear, INTERPOLATE},
    {.name = "resize", .draw = draw_cubic, INTERPOLATE},
    {.name = "smooth resize", .draw = draw_smooth, INTERPOLATE},
    {.name = "excluding resize", .draw = draw_excluding, INTERPOLATE},
    {.name = "resize", .draw = draw_far, INTERPOLATE, .only_f32 = true},
};

TEST_OPERATOR_MAIN(rows)
