/* SPDX-License-Identifier: MIT
 * interpolate (PR-8): modes, coordinates, roundings, and one to four dimensions. The reference computes each element
 * from all of its neighbours, in all dimensions at once.
 */
#include <math.h>
#include <string.h>

#include "support/test_operator.h"
#include "support/test_program.h"

enum { MODE, COORDINATES, NEAREST, HAS_SCALE, OUT }; /* sizes; OUT: of each dimension */

static void draw_mode(uint64_t *seed, test_call *call, rondo_interpolation mode) {
  const size_t rank = test_draw_between(seed, 3, mode == RONDO_INTERPOLATE_CUBIC ? 4 : 6);
  size_t shape[RONDO_MAX_DIMENSIONS] = {test_draw_between(seed, 1, 2), test_draw_between(seed, 1, 2)};
  call->sizes[MODE] = mode;
  call->sizes[COORDINATES] = test_draw_between(seed, 0, 3);
  call->sizes[NEAREST] = test_draw_between(seed, 0, 3);
  call->sizes[HAS_SCALE] = test_random_below(seed, 3) == 0;
  for (size_t d = 2; d < rank; d++) {
    shape[d] = test_draw_between(seed, 1, rank > 4 ? 3 : 7);
    call->sizes[OUT + d] = test_draw_between(seed, 1, rank > 4 ? 4 : 12);
    if (test_random_below(seed, 6) == 0) call->sizes[OUT + d] = shape[d];
  }
  test_add_float(call, shape, rank, -2, 2);
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
  rondo_interpolate_options options = {RONDO_INTERPOLATE_OPTIONS_INIT, .mode = (rondo_interpolation)call->sizes[MODE],
                                       .coordinates = (rondo_coordinates)call->sizes[COORDINATES],
                                       .nearest = (rondo_nearest)call->sizes[NEAREST]};
  for (size_t d = 2; d < call->inputs[0].rank; d++) {
    options.size[d - 2] = call->sizes[OUT + d];
    options.scale[d - 2] = call->sizes[HAS_SCALE] ? 1.375 : 0;
  }
  return rondo_op_interpolate(program, in[0], &options, result);
}

static double coordinate(const test_call *call, size_t d, size_t i) {
  const double in = (double)call->inputs[0].shape[d], out = (double)call->sizes[OUT + d];
  const double scale = call->sizes[HAS_SCALE] ? 1.375 : out / in, at = (double)i;
  switch (call->sizes[COORDINATES]) {
    case RONDO_COORDINATES_ALIGN_CORNERS:
      return out > 1 ? at * (in - 1) / (out - 1) : 0;
    case RONDO_COORDINATES_ASYMMETRIC:
      return at / scale;
    case RONDO_COORDINATES_HALF_PIXEL_OR_0:
      return out > 1 ? (at + 0.5) / scale - 0.5 : 0;
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

/* The weight of element k, which may be beyond the edge, for coordinate x. */
static double weight(const test_call *call, double x, double k) {
  const double d = fabs(x - k), a = -0.75;
  if (call->sizes[MODE] == RONDO_INTERPOLATE_NEAREST) return rounded(call->sizes[NEAREST], x) == k;
  if (call->sizes[MODE] == RONDO_INTERPOLATE_LINEAR) return d < 1 ? 1 - d : 0;
  return d < 1   ? (a + 2) * pow(d, 3) - (a + 3) * pow(d, 2) + 1
         : d < 2 ? a * pow(d, 3) - 5 * a * pow(d, 2) + 8 * a * d - 4 * a
                 : 0;
}

/* The sum of the neighbours in dimension d and those after it. `first` is the first element of the plane. */
static double sum_of(const test_call *call, const double *x, const size_t *at, size_t d, size_t first) {
  const test_tensor *value = &call->inputs[0];
  if (d == value->rank) return x[first];
  const double here = coordinate(call, d, at[d]), size = (double)value->shape[d];
  double sum = 0;
  for (double k = floor(here) - 2; k <= floor(here) + 3; k++) {
    const double w = weight(call, here, k), inside = fmin(fmax(k, 0), size - 1);
    if (w != 0) sum += w * sum_of(call, x, at, d + 1, first * value->shape[d] + (size_t)inside);
  }
  return sum;
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
    y[i] = sum_of(call, in[0], at, 2, at[0] * shape[1] + at[1]);
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
    {.name = "resize", .draw = draw_far, INTERPOLATE, .only_f32 = true},
};

TEST_OPERATOR_MAIN(rows)
