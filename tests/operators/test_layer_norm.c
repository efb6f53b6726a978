/* SPDX-License-Identifier: MIT
 * layer_norm and rms_norm, with and without scale and shift; what they do not take.
 */
#include <math.h>

#include "support/test_operator.h"
#include "support/test_program.h"

enum { DIMENSIONS, HAS_SCALE, HAS_SHIFT, COLUMNS }; /* sizes */

#define EPSILON 1e-3

static void draw_value(uint64_t *seed, test_call *call) {
  size_t shape[RONDO_MAX_DIMENSIONS];
  const size_t rank = test_draw_between(seed, 1, 4);
  const size_t dimensions = test_draw_between(seed, 1, rank < 2 ? rank : 2);
  const size_t *last = shape + rank - dimensions;
  test_draw_shape(seed, rank, 7, shape);
  if (test_random_below(seed, 6) == 0) shape[rank - 1] = test_draw_between(seed, 200, 1400);
  call->sizes[DIMENSIONS] = dimensions;
  call->sizes[COLUMNS] = test_elements(last, dimensions);
  test_add_float(call, shape, rank, -2, 3);
  call->sizes[HAS_SCALE] = test_random_below(seed, 3) != 0;
  if (call->sizes[HAS_SCALE]) test_add_float(call, last, dimensions, 0.5, 2);
}

/* Parameters of F32 now and then, beside values that are not. */
static void widen(uint64_t *seed, test_call *call) {
  const bool is_wide = test_random_below(seed, 2) == 0;
  for (size_t i = 1; i < call->input_count && is_wide; i++) call->inputs[i].type = RONDO_F32;
}

static void draw_all(uint64_t *seed, test_call *call) {
  draw_value(seed, call);
  call->sizes[HAS_SHIFT] = test_random_below(seed, 3) != 0;
  const size_t dimensions = call->sizes[DIMENSIONS];
  const test_tensor *value = &call->inputs[0];
  if (call->sizes[HAS_SHIFT]) test_add_float(call, value->shape + value->rank - dimensions, dimensions, -1, 1);
  widen(seed, call);
}

/* More rows than a part of a sum over rows has. */
static void draw_rows(uint64_t *seed, test_call *call) {
  const size_t columns = test_draw_between(seed, 5, 40), rows = test_draw_between(seed, 60, 300);
  test_add_float(call, (size_t[]){rows, columns}, 2, -2, 3);
  test_add_float(call, &columns, 1, 0.5, 2);
  test_add_float(call, &columns, 1, -1, 1);
  call->sizes[DIMENSIONS] = call->sizes[HAS_SCALE] = call->sizes[HAS_SHIFT] = 1;
  call->sizes[COLUMNS] = columns;
}

static rondo_status build(const test_call *call, rondo_program *program, const rondo_value *in, rondo_value *result) {
  const rondo_value none = {0};
  const rondo_value scale = call->sizes[HAS_SCALE] ? in[1] : none;
  const rondo_value shift = call->sizes[HAS_SHIFT] ? in[1 + call->sizes[HAS_SCALE]] : none;
  return rondo_op_layer_norm(program, in[0], scale, shift, call->sizes[DIMENSIONS], (float)EPSILON, result);
}

static void draw_rms(uint64_t *seed, test_call *call) {
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

static rondo_status build_rms(const test_call *call, rondo_program *program, const rondo_value *in,
                              rondo_value *result) {
  const rondo_value scale = call->sizes[HAS_SCALE] ? in[1] : (rondo_value){0};
  return rondo_op_rms_norm(program, in[0], scale, call->sizes[DIMENSIONS], (float)EPSILON, result);
}

static void reference(const test_call *call, double *const *in, double *y) {
  const size_t columns = call->sizes[COLUMNS], rows = test_input_elements(call, 0) / columns;
  const bool is_rms = call->op->build == build_rms; /* its mean is 0 */
  const double *scale = call->sizes[HAS_SCALE] ? in[1] : NULL;
  const double *shift = call->sizes[HAS_SHIFT] ? in[1 + call->sizes[HAS_SCALE]] : NULL;
  for (size_t row = 0; row < rows; row++) {
    const double *x = in[0] + row * columns;
    double mean = 0, variance = 0;
    for (size_t i = 0; i < columns && !is_rms; i++) mean += x[i] / (double)columns;
    for (size_t i = 0; i < columns; i++) variance += (x[i] - mean) * (x[i] - mean) / (double)columns;
    for (size_t i = 0; i < columns; i++) {
      const double h = (x[i] - mean) / sqrt(variance + (double)(float)EPSILON);
      y[row * columns + i] = h * (scale == NULL ? 1 : scale[i]) + (shift == NULL ? 0 : shift[i]);
    }
  }
}

static void test_what_does_not_fit(void **state) {
  rondo_program *program = test_new_program();
  rondo_value x, scale, half, y;
  (void)state;
  assert_ok(rondo_program_input(program, "x", RONDO_F32, (size_t[]){4, 6}, 2, &x));
  assert_ok(rondo_program_state(program, "scale", RONDO_F32, (size_t[]){4}, 1, &scale));
  assert_ok(rondo_program_state(program, "half", RONDO_F16, (size_t[]){6}, 1, &half));
  assert_invalid(rondo_op_layer_norm(program, x, scale, (rondo_value){0}, 1, 1e-5f, &y), RONDO_REASON_SHAPE);
  assert_message("'scale' [4]");
  assert_invalid(rondo_op_layer_norm(program, x, half, (rondo_value){0}, 1, 1e-5f, &y), RONDO_REASON_TYPE);
  for (size_t dimensions = 0; dimensions <= 3; dimensions += 3) {
    assert_invalid(rondo_op_rms_norm(program, x, (rondo_value){0}, dimensions, 1e-5f, &y), RONDO_REASON_SHAPE);
  }
  const float epsilons[] = {0, -1, INFINITY, NAN};
  for (size_t i = 0; i < 4; i++) {
    assert_invalid(rondo_op_rms_norm(program, x, (rondo_value){0}, 1, epsilons[i], &y), RONDO_REASON_OUT_OF_RANGE);
  }
  rondo_program_destroy(program);
}

#define NORM .reference = reference, .tolerance = 1e-5, .gradient_tolerance = 3e-4

static const test_operator rows[] = {
    {.name = "layer_norm", .draw = draw_all, .build = build, NORM},
    {.name = "layer_norm", .draw = draw_rows, .build = build, NORM},
    {.name = "rms_norm", .draw = draw_rms, .build = build_rms, NORM},
};

int main(void) {
  const struct CMUnitTest others[] = {test_case(test_what_does_not_fit)};
  return TEST_OPERATOR_MAIN(rows, others);
}
