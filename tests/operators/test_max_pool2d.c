/* SPDX-License-Identifier: MIT
 * max_pool2d: kernel, stride, padding.
 */
#include <math.h>

#include "support/test_operator.h"

enum { PLANES, H, W, KH, KW, SH, SW, PH, PW, COUNTS_PADDING }; /* sizes */

static void draw(uint64_t *seed, test_call *call) {
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

static rondo_status build(const test_call *call, rondo_program *program, const rondo_value *inputs,
                          rondo_value *result) {
  const size_t *s = call->sizes;
  const rondo_pool2d_options options = {RONDO_POOL2D_OPTIONS_INIT, .counts_padding = s[COUNTS_PADDING] != 0,
                                        .kernel = {s[KH], s[KW]}, .stride = {s[SH] == s[KH] ? 0 : s[SH], s[SW]},
                                        .padding = {s[PH], s[PW]}};
  return rondo_op_max_pool2d(program, inputs[0], &options, result);
}

static double pool(const size_t *s, const double *plane, size_t y, size_t x) {
  double most = -INFINITY;
  for (size_t i = 0; i < s[KH]; i++) {
    for (size_t j = 0; j < s[KW]; j++) {
      const size_t at_y = y * s[SH] + i - s[PH], at_x = x * s[SW] + j - s[PW];
      if (at_y < s[H] && at_x < s[W]) most = fmax(most, plane[at_y * s[W] + at_x]); /* below 0 they are very large */
    }
  }
  return most;
}

static void reference(const test_call *call, double *const *inputs, double *result) {
  const size_t *s = call->sizes;
  const size_t height = (s[H] + 2 * s[PH] - s[KH]) / s[SH] + 1, width = (s[W] + 2 * s[PW] - s[KW]) / s[SW] + 1;
  for (size_t plane = 0; plane < s[PLANES]; plane++) {
    for (size_t y = 0; y < height; y++) {
      for (size_t x = 0; x < width; x++) *result++ = pool(s, inputs[0] + plane * s[H] * s[W], y, x);
    }
  }
}

TEST_OPERATOR(test_max_pool2d, .name = "max_pool2d", .draw = draw, .build = build, .reference = reference)

static float pool_one(test_fixture *t, const float *x, float *gradient) {
  const rondo_pool2d_options options = {RONDO_POOL2D_OPTIONS_INIT, .kernel = {2, 2}};
  rondo_program *program = NULL;
  rondo_compiled *compiled = NULL;
  rondo_value in, y, of_in;
  float largest = 0;
  assert_ok(rondo_program_create(NULL, &program));
  assert_ok(rondo_program_input(program, "x", RONDO_F32, (const size_t[]){1, 1, 2, 2}, 4, &in));
  assert_ok(rondo_op_max_pool2d(program, in, &options, &y));
  assert_ok(rondo_op_reshape(program, y, NULL, 0, &y));
  assert_ok(rondo_program_output(program, "y", y));
  assert_ok(rondo_program_gradients(program, y, &in, 1, &of_in));
  assert_ok(rondo_program_output(program, "gradient", of_in));
  assert_ok(rondo_compile(program, t->device, NULL, &compiled));
  assert_ok(rondo_compiled_write(compiled, "x", x, 4 * sizeof *x));
  assert_ok(rondo_compiled_run(compiled));
  assert_ok(rondo_compiled_read(compiled, "y", &largest, sizeof largest));
  assert_ok(rondo_compiled_read(compiled, "gradient", gradient, 4 * sizeof *gradient));
  assert_ok(rondo_compiled_destroy(compiled));
  rondo_program_destroy(program);
  return largest;
}

/* The first of equals has the gradient; not-a-number is passed on. */
static void test_equals_and_nan(void **state) {
  float gradient[4];
  assert_true(pool_one(*state, (const float[]){1, 5, 5, 2}, gradient) == 5);
  assert_true(gradient[0] == 0 && gradient[1] == 1 && gradient[2] == 0 && gradient[3] == 0);
  assert_true(isnan(pool_one(*state, (const float[]){1, 5, NAN, 7}, gradient)));
  assert_true(gradient[2] == 1 && gradient[3] == 0);
  assert_true(pool_one(*state, (const float[]){-INFINITY, -INFINITY, -INFINITY, -INFINITY}, gradient) == -INFINITY);
  assert_true(gradient[0] == 1);
}

static void test_what_does_not_fit_is_refused(void **state) {
  rondo_pool2d_options options = {RONDO_POOL2D_OPTIONS_INIT, .kernel = {2, 2}, .padding = {0, 2}};
  rondo_program *program = NULL;
  rondo_value x, y;
  (void)state;
  assert_ok(rondo_program_create(NULL, &program));
  assert_ok(rondo_program_input(program, "x", RONDO_F32, (const size_t[]){1, 3, 4, 4}, 4, &x));
  assert_fails(rondo_op_max_pool2d(program, x, NULL, &y), RONDO_INVALID_ARGUMENT);
  assert_fails(rondo_op_max_pool2d(program, x, &options, &y), RONDO_INVALID_ARGUMENT);
  assert_message("a padding of 2 leaves windows of 2 without an element");
  options.padding[1] = options.kernel[0] = 0;
  assert_fails(rondo_op_max_pool2d(program, x, &options, &y), RONDO_INVALID_ARGUMENT);
  assert_message("a window of 0 does not fit");
  assert_int_equal(y.id, 0);
  rondo_program_destroy(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {test_case(test_max_pool2d), test_case(test_equals_and_nan),
                                     cmocka_unit_test(test_what_does_not_fit_is_refused)};
  return test_main(tests);
}
