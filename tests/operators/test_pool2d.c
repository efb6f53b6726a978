/* SPDX-License-Identifier: MIT
 * avg_pool2d and max_pool2d: kernel, stride, padding.
 */
#include <math.h>

#include "support/test_operator.h"
#include "support/test_program.h"

enum { PLANES, H, W, KH, KW, SH, SW, PH, PW, COUNTS_PADDING }; /* sizes */

static void draw_pool(uint64_t *seed, test_call *call) {
  size_t *s = call->sizes;
  const size_t images = test_draw_between(seed, 1, 3), channels = test_draw_between(seed, 1, 4);
  s[PLANES] = images * channels;
  s[COUNTS_PADDING] = test_draw_between(seed, 0, 1);
  for (size_t axis = 0; axis < 2; axis++) {
    s[KH + axis] = test_draw_between(seed, 1, 4);
    s[SH + axis] = test_draw_between(seed, 1, 5);
    s[PH + axis] = test_draw_between(seed, 0, s[KH + axis] - 1);
    s[H + axis] = test_draw_between(seed, s[KH + axis], 11);
  }
  test_add_float(call, (const size_t[]){images, channels, s[H], s[W]}, 4, -9, 9);
}

static rondo_pool2d_options pool_options(const test_call *call) {
  const size_t *s = call->sizes;
  return (rondo_pool2d_options){RONDO_POOL2D_OPTIONS_INIT, .counts_padding = s[COUNTS_PADDING] != 0,
                                .kernel = {s[KH], s[KW]}, .stride = {s[SH] == s[KH] ? 0 : s[SH], s[SW]},
                                .padding = {s[PH], s[PW]}};
}

typedef struct pool2d {
  rondo_status (*op)(rondo_program *program, rondo_value x, const rondo_pool2d_options *options,
                     rondo_value *out_value);
  double (*pool)(const size_t *s, const double *plane, size_t y, size_t x); /* the result at y, x */
} pool2d;

static rondo_status build(const test_call *call, rondo_program *program, const rondo_value *in, rondo_value *result) {
  const pool2d *family = call->op->family;
  const rondo_pool2d_options options = pool_options(call);
  return family->op(program, in[0], &options, result);
}

static void reference(const test_call *call, double *const *inputs, double *result) {
  const pool2d *family = call->op->family;
  const size_t *s = call->sizes;
  const size_t height = (s[H] + 2 * s[PH] - s[KH]) / s[SH] + 1, width = (s[W] + 2 * s[PW] - s[KW]) / s[SW] + 1;
  for (size_t plane = 0; plane < s[PLANES]; plane++) {
    for (size_t y = 0; y < height; y++) {
      for (size_t x = 0; x < width; x++) *result++ = family->pool(s, inputs[0] + plane * s[H] * s[W], y, x);
    }
  }
}

static double average(const size_t *s, const double *plane, size_t y, size_t x) {
  double sum = 0;
  size_t count = 0;
  for (size_t i = 0; i < s[KH]; i++) {
    for (size_t j = 0; j < s[KW]; j++) {
      const size_t at_y = y * s[SH] + i - s[PH], at_x = x * s[SW] + j - s[PW];
      const bool is_in = at_y < s[H] && at_x < s[W]; /* below 0 they are very large */
      if (is_in) sum += plane[at_y * s[W] + at_x];
      count += is_in || s[COUNTS_PADDING] ? 1 : 0;
    }
  }
  return sum / (double)count;
}

static double largest_of(const size_t *s, const double *plane, size_t y, size_t x) {
  double most = -INFINITY;
  for (size_t i = 0; i < s[KH]; i++) {
    for (size_t j = 0; j < s[KW]; j++) {
      const size_t at_y = y * s[SH] + i - s[PH], at_x = x * s[SW] + j - s[PW];
      if (at_y < s[H] && at_x < s[W]) most = fmax(most, plane[at_y * s[W] + at_x]); /* below 0 they are very large */
    }
  }
  return most;
}

static void check_refusals(const pool2d *pool) {
  rondo_pool2d_options options = {RONDO_POOL2D_OPTIONS_INIT, .kernel = {2, 2}, .padding = {0, 2}};
  rondo_program *program = test_new_program();
  rondo_value x, y;
  assert_ok(rondo_program_input(program, "x", RONDO_F32, (const size_t[]){1, 3, 4, 4}, 4, &x));
  assert_fails(pool->op(program, x, NULL, &y), RONDO_INVALID_ARGUMENT);
  assert_fails(pool->op(program, x, &options, &y), RONDO_INVALID_ARGUMENT);
  assert_message("the padding of 2 must be less than the kernel size 2");

  options.padding[1] = options.kernel[0] = 0;
  assert_fails(pool->op(program, x, &options, &y), RONDO_INVALID_ARGUMENT);
  assert_message("a window of 0 does not fit");
  assert_int_equal(y.id, 0);
  rondo_program_destroy(program);
}

static float pool_one(test_fixture *t, float *x, float *gradient) {
  const rondo_pool2d_options options = {RONDO_POOL2D_OPTIONS_INIT, .kernel = {2, 2}};
  rondo_program *program = test_new_program();
  rondo_value in, y, of_in;
  float largest = 0;
  assert_ok(rondo_program_input(program, "x", RONDO_F32, (const size_t[]){1, 1, 2, 2}, 4, &in));
  assert_ok(rondo_op_max_pool2d(program, in, &options, &y));
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

static const pool2d averaging = {rondo_op_avg_pool2d, average}, maximizing = {rondo_op_max_pool2d, largest_of};

UNIT_TEST(test_what_does_not_fit_is_refused) {
  check_refusals(&averaging);
  check_refusals(&maximizing);
}

#define POOL(pool) .draw = draw_pool, .build = build, .reference = reference, .family = &(pool)

static const test_operator rows[] = {
    {.name = "avg_pool2d", POOL(averaging)},
    {.name = "max_pool2d", POOL(maximizing), .has_ties = true},
};

TEST_OPERATOR_MAIN(rows)
