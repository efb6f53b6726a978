/* SPDX-License-Identifier: MIT
 * What the tests of pools share: random windows, and the places that they stop at.
 */
#ifndef RONDO_TESTS_OPERATORS_POOL2D_REFERENCE_H
#define RONDO_TESTS_OPERATORS_POOL2D_REFERENCE_H

#include <math.h>

#include "support/test_operator.h"

enum { PLANES, H, W, KH, KW, SH, SW, PH, PW, COUNTS_PADDING }; /* sizes */

static inline void draw_pool(uint64_t *seed, test_call *call) {
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

static inline rondo_pool2d_options pool_options(const test_call *call) {
  const size_t *s = call->sizes;
  return (rondo_pool2d_options){RONDO_POOL2D_OPTIONS_INIT, .counts_padding = s[COUNTS_PADDING] != 0,
                                .kernel = {s[KH], s[KW]}, .stride = {s[SH] == s[KH] ? 0 : s[SH], s[SW]},
                                .padding = {s[PH], s[PW]}};
}

/* The result at y, x is pool(sizes, plane, y, x). */
static inline void reference_pool(const test_call *call, double *const *inputs, double *result,
                                  double (*pool)(const size_t *s, const double *plane, size_t y, size_t x)) {
  const size_t *s = call->sizes;
  const size_t height = (s[H] + 2 * s[PH] - s[KH]) / s[SH] + 1, width = (s[W] + 2 * s[PW] - s[KW]) / s[SW] + 1;
  for (size_t plane = 0; plane < s[PLANES]; plane++) {
    for (size_t y = 0; y < height; y++) {
      for (size_t x = 0; x < width; x++) *result++ = pool(s, inputs[0] + plane * s[H] * s[W], y, x);
    }
  }
}

typedef rondo_status (*pool_function)(rondo_program *program, rondo_value x, const rondo_pool2d_options *options,
                                      rondo_value *out_value);

static inline void check_pool_refusals(pool_function op) {
  rondo_pool2d_options options = {RONDO_POOL2D_OPTIONS_INIT, .kernel = {2, 2}, .padding = {0, 2}};
  rondo_program *program = NULL;
  rondo_value x, y;
  assert_ok(rondo_program_create(NULL, &program));
  assert_ok(rondo_program_input(program, "x", RONDO_F32, (const size_t[]){1, 3, 4, 4}, 4, &x));
  assert_fails(op(program, x, NULL, &y), RONDO_INVALID_ARGUMENT);
  assert_fails(op(program, x, &options, &y), RONDO_INVALID_ARGUMENT);
  assert_message("a padding of 2 leaves windows of 2 without an element");
  options.padding[1] = options.kernel[0] = 0;
  assert_fails(op(program, x, &options, &y), RONDO_INVALID_ARGUMENT);
  assert_message("a window of 0 does not fit");
  assert_int_equal(y.id, 0);
  rondo_program_destroy(program);
}

#endif
