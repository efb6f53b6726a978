/* SPDX-License-Identifier: MIT
 * avg_pool2d: kernel, stride, padding.
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
  return rondo_op_avg_pool2d(program, inputs[0], &options, result);
}

static double pool(const size_t *s, const double *plane, size_t y, size_t x) {
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

static void reference(const test_call *call, double *const *inputs, double *result) {
  const size_t *s = call->sizes;
  const size_t height = (s[H] + 2 * s[PH] - s[KH]) / s[SH] + 1, width = (s[W] + 2 * s[PW] - s[KW]) / s[SW] + 1;
  for (size_t plane = 0; plane < s[PLANES]; plane++) {
    for (size_t y = 0; y < height; y++) {
      for (size_t x = 0; x < width; x++) *result++ = pool(s, inputs[0] + plane * s[H] * s[W], y, x);
    }
  }
}

TEST_OPERATOR(test_avg_pool2d, .name = "avg_pool2d", .draw = draw, .build = build, .reference = reference)

/* Gradients in a type of half the size. */
static rondo_status build_bf16(const test_call *call, rondo_program *program, const rondo_value *inputs,
                               rondo_value *result) {
  rondo_value x, y;
  assert_ok(rondo_op_cast(program, inputs[0], RONDO_BF16, &x));
  assert_ok(build(call, program, &x, &y));
  return rondo_op_cast(program, y, RONDO_F32, result);
}

TEST_OPERATOR(test_avg_pool2d_in_bf16, .name = "avg_pool2d in bf16", .draw = draw, .build = build_bf16,
              .reference = reference, .tolerance = 0.03, .gradient_tolerance = 0.03, .only_f32 = true)

static void test_what_does_not_fit_is_refused(void **state) {
  rondo_pool2d_options options = {RONDO_POOL2D_OPTIONS_INIT, .kernel = {2, 2}, .padding = {0, 2}};
  rondo_program *program = NULL;
  rondo_value x, y;
  (void)state;
  assert_ok(rondo_program_create(NULL, &program));
  assert_ok(rondo_program_input(program, "x", RONDO_F32, (const size_t[]){1, 3, 4, 4}, 4, &x));
  assert_fails(rondo_op_avg_pool2d(program, x, NULL, &y), RONDO_INVALID_ARGUMENT);
  assert_fails(rondo_op_avg_pool2d(program, x, &options, &y), RONDO_INVALID_ARGUMENT);
  assert_message("a padding of 2 leaves windows of 2 without an element");
  options.padding[1] = options.kernel[0] = 0;
  assert_fails(rondo_op_avg_pool2d(program, x, &options, &y), RONDO_INVALID_ARGUMENT);
  assert_message("a window of 0 does not fit");
  assert_int_equal(y.id, 0);
  rondo_program_destroy(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {test_case(test_avg_pool2d), test_case(test_avg_pool2d_in_bf16),
                                     cmocka_unit_test(test_what_does_not_fit_is_refused)};
  return test_main(tests);
}
