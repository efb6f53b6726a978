/* SPDX-License-Identifier: MIT
 * grid_sample (ON-3): modes, paddings, corners, images and volumes; affine_grid. The reference adds all elements with
 * the weight of their distance.
 */
#include <math.h>

#include "support/test_operator.h"
#include "support/test_program.h"

enum { MODE, PADDING, ALIGNS, AXES }; /* sizes */
enum { VALUE, GRID };                 /* inputs */

static void draw_of(uint64_t *seed, test_call *call, rondo_interpolation mode, size_t axes, double far) {
  size_t *s = call->sizes, value[5] = {0}, grid[5] = {0};
  s[MODE] = mode;
  s[PADDING] = test_draw_between(seed, 0, 2);
  s[ALIGNS] = test_draw_between(seed, 0, 1);
  s[AXES] = axes;
  value[0] = grid[0] = test_draw_between(seed, 1, 2);
  value[1] = test_draw_between(seed, 1, 3);
  for (size_t i = 0; i < axes; i++) {
    value[2 + i] = far < 1 ? 9 : test_draw_between(seed, 1, 6);
    grid[1 + i] = test_draw_between(seed, 1, 4);
  }
  grid[1 + axes] = axes;
  test_add_float(call, value, 2 + axes, -2, 2);
  test_add_float(call, grid, 2 + axes, -far, far)->has_no_gradient = far >= 1; /* it has kinks */
  call->inputs[GRID].type = RONDO_F32;
}

static void draw_nearest(uint64_t *seed, test_call *call) { draw_of(seed, call, RONDO_INTERPOLATE_NEAREST, 2, 1.7); }
static void draw_linear(uint64_t *seed, test_call *call) { draw_of(seed, call, RONDO_INTERPOLATE_LINEAR, 2, 1.7); }
static void draw_volume(uint64_t *seed, test_call *call) { draw_of(seed, call, RONDO_INTERPOLATE_LINEAR, 3, 1.7); }
static void draw_cubic(uint64_t *seed, test_call *call) { draw_of(seed, call, RONDO_INTERPOLATE_CUBIC, 2, 1.7); }
static void draw_inside(uint64_t *seed, test_call *call) { draw_of(seed, call, RONDO_INTERPOLATE_CUBIC, 2, 0.4); }

static rondo_status build(const test_call *call, rondo_program *program, const rondo_value *in, rondo_value *y) {
  const rondo_grid_sample_options options = {
      RONDO_GRID_SAMPLE_OPTIONS_INIT, .mode = (rondo_interpolation)call->sizes[MODE],
      .padding = (rondo_grid_padding)call->sizes[PADDING], .align_corners = call->sizes[ALIGNS] != 0};
  return rondo_op_grid_sample(program, in[VALUE], in[GRID], &options, y);
}

/* Where a coordinate outside is taken from. */
static double padded(const size_t *s, double x, double size) {
  const double low = s[ALIGNS] ? 0 : -0.5, high = s[ALIGNS] ? size - 1 : size - 0.5;
  if (s[PADDING] == RONDO_GRID_REFLECTION && high <= low) return 0;
  while (s[PADDING] == RONDO_GRID_REFLECTION && (x < low || x > high)) x = x < low ? 2 * low - x : 2 * high - x;
  return s[PADDING] == RONDO_GRID_ZEROS ? x : fmin(fmax(x, 0), size - 1);
}

static double cubic(double d) {
  const double a = -0.75;
  return d < 1   ? (a + 2) * pow(d, 3) - (a + 3) * pow(d, 2) + 1
         : d < 2 ? a * pow(d, 3) - 5 * a * pow(d, 2) + 8 * a * d - 4 * a
                 : 0;
}

/* The weight of element k for the grid's number g. */
static double weight(const size_t *s, double g, size_t k, size_t elements) {
  const double size = (double)elements, at = (double)k;
  const double x = s[ALIGNS] ? (g + 1) / 2 * (size - 1) : ((g + 1) * size - 1) / 2;
  double sum = 0;
  if (s[MODE] == RONDO_INTERPOLATE_NEAREST) return rint(padded(s, x, size)) == at;
  if (s[MODE] == RONDO_INTERPOLATE_LINEAR) return fmax(0, 1 - fabs(padded(s, x, size) - at));
  for (double n = floor(x) - 1; n <= floor(x) + 2; n++)
    if (trunc(padded(s, n, size)) == at && (n >= 0 || s[PADDING] != RONDO_GRID_ZEROS)) sum += cubic(fabs(x - n));
  return sum;
}

/* The sum over the axes from `axis` on; `row`: the index along the axes before. */
static double sum_of(const test_call *call, const double *x, const double *grid, size_t axis, size_t row) {
  const size_t axes = call->sizes[AXES];
  if (axis == axes) return x[row];
  const size_t size = call->inputs[VALUE].shape[2 + axis];
  double sum = 0;
  for (size_t k = 0; k < size; k++) {
    const double w = weight(call->sizes, grid[axes - 1 - axis], k, size);
    if (w != 0) sum += w * sum_of(call, x, grid, axis + 1, row * size + k);
  }
  return sum;
}

static void reference(const test_call *call, double *const *in, double *y) {
  const test_tensor *value = &call->inputs[VALUE], *grid = &call->inputs[GRID];
  const size_t axes = call->sizes[AXES], out = test_elements(grid->shape + 1, axes);
  const size_t plane = test_elements(value->shape + 2, axes), channels = value->shape[1];
  for (size_t i = 0; i < value->shape[0] * channels * out; i++) {
    const size_t channel = i / out, place = channel / channels * out + i % out;
    y[i] = sum_of(call, in[VALUE] + channel * plane, in[GRID] + place * axes, 0, 0);
  }
}

/* The grid of the identity samples the image itself. */
TEST(test_affine_grid_of_the_identity) {
  float x[3 * 4], y[3 * 4], theta[6] = {1, 0, 0, 0, 1, 0};
  const rondo_grid_sample_options linear = {RONDO_GRID_SAMPLE_OPTIONS_INIT, .mode = RONDO_INTERPOLATE_LINEAR};
  rondo_program *program = test_new_program();
  rondo_value image, matrix, grid, sampled;
  for (int i = 0; i < 12; i++) x[i] = (float)(i * 5 % 12);
  assert_ok(rondo_program_input(program, "x", RONDO_F32, (size_t[]){1, 1, 3, 4}, 4, &image));
  assert_ok(rondo_program_input(program, "theta", RONDO_F32, (size_t[]){1, 2, 3}, 3, &matrix));
  assert_ok(rondo_op_affine_grid(program, matrix, (size_t[]){3, 4}, false, &grid));
  assert_ok(rondo_op_grid_sample(program, image, grid, &linear, &sampled));
  assert_ok(rondo_program_output(program, "y", sampled));
  test_run_program(t, program, (const test_bytes[]){TEST_BYTES("x", x), TEST_BYTES("theta", theta), {.name = NULL}},
                   (const test_bytes[]){TEST_BYTES("y", y), {.name = NULL}});
  for (int i = 0; i < 12; i++) assert_true(fabsf(x[i] - y[i]) < 1e-4f);
}

UNIT_TEST(test_what_cannot_be_sampled) {
  rondo_grid_sample_options options = {RONDO_GRID_SAMPLE_OPTIONS_INIT};
  rondo_program *program = test_new_program();
  rondo_value x, grid, y;
  assert_ok(rondo_program_input(program, "x", RONDO_F32, (size_t[]){1, 1, 3, 4}, 4, &x));
  assert_ok(rondo_program_input(program, "grid", RONDO_F32, (size_t[]){2, 3, 4, 2}, 4, &grid));
  assert_error(rondo_op_grid_sample(program, x, grid, NULL, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE);
  options.mode = (rondo_interpolation)3;
  assert_error(rondo_op_grid_sample(program, x, grid, &options, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE);
  assert_error(rondo_op_affine_grid(program, x, (size_t[]){3, 4}, false, &y), RONDO_INVALID_ARGUMENT,
               RONDO_REASON_SHAPE);
  assert_int_equal(y.id, 0);
  rondo_program_destroy(program);
}

#define SAMPLE .build = build, .reference = reference, .tolerance = 1e-4, .gradient_tolerance = 2e-3

static const test_operator rows[] = {
    {.name = "grid_sample, nearest", .draw = draw_nearest, SAMPLE},
    {.name = "grid_sample, linear", .draw = draw_linear, SAMPLE},
    {.name = "grid_sample of volumes", .draw = draw_volume, SAMPLE},
    {.name = "grid_sample, cubic", .draw = draw_cubic, SAMPLE},
    {.name = "grid_sample, cubic, inside", .draw = draw_inside, SAMPLE},
};

TEST_OPERATOR_MAIN(rows)
