/* SPDX-License-Identifier: MIT
 * rms_norm, with and without scale.
 */
#include <math.h>

#include "support/test_operator.h"

enum { DIMENSIONS, HAS_SCALE, COLUMNS }; /* sizes */

#define EPSILON 1e-3

static void draw(uint64_t *seed, test_call *call) {
  size_t shape[RONDO_MAX_DIMENSIONS];
  const size_t rank = test_draw_between(seed, 1, 4);
  const size_t dimensions = test_draw_between(seed, 1, rank < 2 ? rank : 2);
  test_draw_shape(seed, rank, 7, shape);
  if (test_random_below(seed, 6) == 0) shape[0] = test_draw_between(seed, 60, 300);
  call->sizes[DIMENSIONS] = dimensions;
  call->sizes[COLUMNS] = test_elements(shape + rank - dimensions, dimensions);
  test_add_float(call, shape, rank, -2, 3);
  call->sizes[HAS_SCALE] = test_random_below(seed, 3) != 0;
  if (!call->sizes[HAS_SCALE]) return;
  test_tensor *scale = test_add_float(call, shape + rank - dimensions, dimensions, 0.5, 2);
  if (test_random_below(seed, 2) == 0) scale->type = RONDO_F32;
}

static rondo_status build(const test_call *call, rondo_program *program, const rondo_value *in, rondo_value *result) {
  const rondo_value scale = call->sizes[HAS_SCALE] ? in[1] : (rondo_value){0};
  return rondo_op_rms_norm(program, in[0], scale, call->sizes[DIMENSIONS], (float)EPSILON, result);
}

static void reference(const test_call *call, double *const *in, double *y) {
  const size_t columns = call->sizes[COLUMNS], rows = test_input_elements(call, 0) / columns;
  for (size_t row = 0; row < rows; row++) {
    const double *x = in[0] + row * columns;
    double squares = 0;
    for (size_t i = 0; i < columns; i++) squares += x[i] * x[i] / (double)columns;
    for (size_t i = 0; i < columns; i++) {
      const double scale = call->sizes[HAS_SCALE] ? in[1][i] : 1;
      y[row * columns + i] = x[i] / sqrt(squares + (double)(float)EPSILON) * scale;
    }
  }
}

TEST_OPERATOR(test_rms_norm, .name = "rms_norm", .draw = draw, .build = build, .reference = reference,
              .tolerance = 1e-5, .gradient_tolerance = 3e-4)

int main(void) {
  const struct CMUnitTest tests[] = {test_case(test_rms_norm)};
  return test_main(tests);
}
