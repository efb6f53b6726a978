/* SPDX-License-Identifier: MIT
 * group_norm and instance_norm (PR-8), with and without scale and shift.
 */
#include <math.h>

#include "support/test_operator.h"
#include "support/test_program.h"

enum { GROUPS, HAS_SCALE, HAS_SHIFT, IS_INSTANCE }; /* sizes */
enum { X, SCALE, SHIFT };                           /* inputs */

static void draw_groups(uint64_t *seed, test_call *call) {
  const size_t groups = test_draw_between(seed, 1, 4), rank = test_draw_between(seed, 2, 5);
  const size_t channels = groups * test_draw_between(seed, 2, 3);
  size_t shape[RONDO_MAX_DIMENSIONS] = {test_draw_between(seed, 1, 3), channels};
  for (size_t d = 2; d < rank; d++) shape[d] = test_draw_between(seed, 2, 5);
  call->sizes[GROUPS] = groups;
  call->sizes[HAS_SCALE] = test_draw_between(seed, 0, 1);
  call->sizes[HAS_SHIFT] = call->sizes[HAS_SCALE] && test_draw_between(seed, 0, 1);
  test_add_float(call, shape, rank, -3, 3);
  if (call->sizes[HAS_SCALE]) test_add_float(call, &channels, 1, 0.5, 2);
  if (call->sizes[HAS_SHIFT]) test_add_float(call, &channels, 1, -1, 1);
}

static void draw_instances(uint64_t *seed, test_call *call) {
  do {
    call->input_count = 0;
    draw_groups(seed, call);
  } while (call->inputs[X].rank < 4);
  call->sizes[IS_INSTANCE] = 1;
  call->sizes[GROUPS] = call->inputs[X].shape[1];
}

static rondo_status build(const test_call *call, rondo_program *program, const rondo_value *in, rondo_value *y) {
  const rondo_value scale = call->sizes[HAS_SCALE] ? in[SCALE] : (rondo_value){0};
  const rondo_value shift = call->sizes[HAS_SHIFT] ? in[SHIFT] : (rondo_value){0};
  if (call->sizes[IS_INSTANCE]) return rondo_op_instance_norm(program, in[X], scale, shift, 0, y);
  return rondo_op_group_norm(program, in[X], call->sizes[GROUPS], scale, shift, 1e-3f, y);
}

static void reference(const test_call *call, double *const *in, double *y) {
  const size_t *shape = call->inputs[X].shape, channels = shape[1];
  const size_t count = test_input_elements(call, X), inner = count / (shape[0] * channels);
  const size_t length = channels / call->sizes[GROUPS] * inner;
  const double epsilon = call->sizes[IS_INSTANCE] ? 1e-5 : (double)1e-3f;
  for (size_t first = 0; first < count; first += length) {
    double mean = 0, variance = 0;
    for (size_t i = 0; i < length; i++) mean += in[X][first + i] / (double)length;
    for (size_t i = 0; i < length; i++) variance += pow(in[X][first + i] - mean, 2) / (double)length;
    for (size_t i = first; i < first + length; i++) {
      const size_t channel = i / inner % channels;
      const double scale = call->sizes[HAS_SCALE] ? in[SCALE][channel] : 1;
      y[i] = (in[X][i] - mean) / sqrt(variance + epsilon) * scale + (call->sizes[HAS_SHIFT] ? in[SHIFT][channel] : 0);
    }
  }
}

UNIT_TEST(test_what_has_no_groups) {
  const rondo_value none = {0};
  rondo_program *program = test_new_program();
  rondo_value x, row, whole, scale, y;
  assert_ok(rondo_program_input(program, "x", RONDO_F32, (size_t[]){2, 6, 4}, 3, &x));
  assert_ok(rondo_program_input(program, "row", RONDO_F32, (size_t[]){6}, 1, &row));
  assert_ok(rondo_program_input(program, "whole", RONDO_I32, (size_t[]){2, 6}, 2, &whole));
  assert_ok(rondo_program_input(program, "scale", RONDO_F32, (size_t[]){5}, 1, &scale));
  assert_error(rondo_op_group_norm(program, x, 4, none, none, 0, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE);
  assert_message("group_norm: value is [2, 6, 4]; it must be [n, c, ..] with c a multiple of the groups, 4");
  assert_error(rondo_op_group_norm(program, x, 0, none, none, 0, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE);
  assert_error(rondo_op_instance_norm(program, row, none, none, 0, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE);
  assert_message("instance_norm: value is [6]; it must be [n, c, ..]");
  assert_error(rondo_op_instance_norm(program, whole, none, none, 0, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_TYPE);
  assert_error(rondo_op_group_norm(program, x, 2, scale, none, 0, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE);
  assert_message("group_norm: scale is [5]");
  assert_error(rondo_op_group_norm(program, x, 2, none, scale, 0, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE);
  assert_error(rondo_op_group_norm(program, x, 2, whole, none, 0, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_TYPE);
  assert_error(rondo_op_group_norm(program, x, 2, none, none, -1, &y), RONDO_INVALID_ARGUMENT,
               RONDO_REASON_OUT_OF_RANGE);
  assert_message("group_norm: epsilon is -1");
  assert_error(rondo_op_instance_norm(program, x, none, none, NAN, &y), RONDO_INVALID_ARGUMENT,
               RONDO_REASON_OUT_OF_RANGE);
  assert_true(y.id == 0);
  assert_ok(rondo_op_group_norm(program, x, 2, row, row, 0, &y));
  rondo_program_destroy(program);
}

#define NORM .build = build, .reference = reference, .tolerance = 1e-5, .gradient_tolerance = 1e-3

static const test_operator rows[] = {
    {.name = "group_norm", .draw = draw_groups, NORM},
    {.name = "instance_norm", .draw = draw_instances, NORM},
};

TEST_OPERATOR_MAIN(rows)
