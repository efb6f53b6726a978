/* SPDX-License-Identifier: MIT
 * rotary (PR-4): both layouts, a part of the elements, positions of each sequence, packed rows, given frequencies;
 * large positions; that calls share their angles; and what is refused.
 */
#include <math.h>
#include <string.h>

#include "support/test_operator.h"
#include "support/test_program.h"

enum { BATCHES, HEADS, GROUPS, ROWS, SIZE, DIMS, INTERLEAVED, PACKED, GIVEN, OF_EACH, LARGE }; /* sizes */
enum { X, POSITIONS, FREQUENCIES };                                                            /* inputs */

static void draw(uint64_t *seed, test_call *call) {
  size_t *s = call->sizes;
  s[BATCHES] = test_draw_between(seed, 1, 3);
  s[HEADS] = test_draw_between(seed, 1, 3);
  s[GROUPS] = test_draw_between(seed, 0, 2);
  s[ROWS] = test_draw_between(seed, 1, 7);
  s[SIZE] = test_draw_between(seed, 2, test_draw_between(seed, 0, 5) ? 20 : 256);
  s[DIMS] = test_draw_between(seed, 0, 1) || s[SIZE] % 2 != 0 ? 2 * test_draw_between(seed, 1, s[SIZE] / 2) : 0;
  s[INTERLEAVED] = test_draw_between(seed, 0, 1);
  s[PACKED] = test_draw_between(seed, 0, 1);
  s[GIVEN] = test_draw_between(seed, 0, 2) == 0;
  s[OF_EACH] = test_draw_between(seed, 0, 2);
  s[LARGE] = test_draw_between(seed, 0, 1);
  const size_t packed[] = {s[BATCHES], s[ROWS], (s[HEADS] + 2 * s[GROUPS]) * s[SIZE]};
  const size_t separate[] = {s[BATCHES], s[HEADS], s[ROWS], s[SIZE]};
  test_add_float(call, s[PACKED] ? packed : separate, s[PACKED] ? 3 : 4, -2, 2);
  const size_t positions[] = {s[OF_EACH] == 1 ? 1 : s[BATCHES], s[ROWS]};
  if (s[OF_EACH] == 0)
    test_add_index(call, &s[ROWS], 1, s[LARGE] ? 1 << 20 : 9);
  else
    test_add_index(call, positions, 2, s[LARGE] ? 1 << 20 : 9);
  if (!s[GIVEN]) return;
  const size_t pairs = (s[DIMS] == 0 ? s[SIZE] : s[DIMS]) / 2;
  test_tensor *frequencies = test_add_float(call, &pairs, 1, 0, 1);
  frequencies->type = RONDO_F32;
  frequencies->has_no_gradient = true;
}

static rondo_status build(const test_call *call, rondo_program *program, const rondo_value *inputs,
                          rondo_value *result) {
  const size_t *s = call->sizes;
  rondo_rotary_options options = {RONDO_ROTARY_OPTIONS_INIT, .dims = s[DIMS], .interleaved = s[INTERLEAVED] != 0,
                                  .position_scale = s[LARGE] ? 0.25f : 0, .base = s[LARGE] ? 500000 : 0};
  if (s[PACKED]) {
    options.heads = s[HEADS];
    options.groups = s[GROUPS];
  }
  if (s[GIVEN]) options.frequencies = inputs[FREQUENCIES];
  const bool is_plain = !s[LARGE] && !s[PACKED] && !s[GIVEN] && s[DIMS] == 0 && !s[INTERLEAVED];
  return rondo_op_rotary(program, inputs[X], inputs[POSITIONS], is_plain ? NULL : &options, result);
}

static double angle_of(const test_call *call, double *const *inputs, size_t batch, size_t row, size_t pair,
                       size_t dims) {
  const size_t *s = call->sizes;
  const double position = inputs[POSITIONS][(s[OF_EACH] == 2 ? batch * s[ROWS] : 0) + row];
  const double base = s[LARGE] ? 500000 : 10000;
  const double frequency = s[GIVEN] ? inputs[FREQUENCIES][pair] : pow(base, -2.0 * (double)pair / (double)dims);
  return position * (s[LARGE] ? 0.25 : 1) * frequency;
}

static void reference(const test_call *call, double *const *inputs, double *result) {
  const size_t *s = call->sizes, dims = s[DIMS] == 0 ? s[SIZE] : s[DIMS];
  const size_t heads = s[PACKED] ? s[HEADS] + 2 * s[GROUPS] : s[HEADS];
  const size_t rotated = s[PACKED] ? s[HEADS] + s[GROUPS] : s[HEADS];
  memcpy(result, inputs[X], test_input_elements(call, X) * sizeof *result);
  for (size_t i = 0; i < s[BATCHES] * heads * s[ROWS]; i++) {
    const size_t batch = i / heads / s[ROWS], head = s[PACKED] ? i % heads : i / s[ROWS] % heads;
    const size_t row = s[PACKED] ? i / heads % s[ROWS] : i % s[ROWS];
    const double *x = inputs[X] + i * s[SIZE];
    double *y = result + i * s[SIZE];
    for (size_t pair = 0; head < rotated && pair < dims / 2; pair++) {
      const double angle = angle_of(call, inputs, batch, row, pair, dims);
      const size_t a = s[INTERLEAVED] ? 2 * pair : pair, b = s[INTERLEAVED] ? a + 1 : a + dims / 2;
      y[a] = x[a] * cos(angle) - x[b] * sin(angle);
      y[b] = x[b] * cos(angle) + x[a] * sin(angle);
    }
  }
}

/* The operators of a run that rotates twice and back. */
static uint32_t count_operators(test_fixture *t, bool by_the_same) {
  rondo_program *program = test_new_program();
  rondo_value x, positions[2], y, sum;
  const size_t rows = 3;
  assert_ok(rondo_program_input(program, "x", RONDO_F32, (const size_t[]){1, 2, rows, 4}, 4, &x));
  assert_ok(rondo_program_input(program, "one", RONDO_I32, &rows, 1, &positions[0]));
  assert_ok(rondo_program_input(program, "other", RONDO_I32, &rows, 1, &positions[1]));
  assert_ok(rondo_op_rotary(program, x, positions[0], NULL, &y));
  assert_ok(rondo_op_rotary(program, y, positions[by_the_same ? 0 : 1], NULL, &y));
  assert_ok(rondo_op_square(program, y, &y));
  assert_ok(rondo_op_sum(program, y, NULL, 0, false, &sum));
  assert_ok(rondo_program_gradients(program, sum, &x, 1, &y));
  assert_ok(rondo_program_output(program, "dx", y));
  rondo_compiled *compiled = test_compile(program, t->device, NULL);
  rondo_compiled_info info = {.struct_size = sizeof info};
  assert_ok(rondo_compiled_get_info(compiled, &info));
  assert_ok(rondo_compiled_destroy(compiled));
  return info.operators;
}

TEST(test_pr4_rotations_of_the_same_rows_share_angles) {
  assert_int_equal(count_operators(t, true) + 1, count_operators(t, false));
}

UNIT_TEST(test_pr4_rotations_that_do_not_fit_are_refused) {
  rondo_rotary_options options = {RONDO_ROTARY_OPTIONS_INIT, .dims = 3};
  rondo_program *program = test_new_program();
  rondo_value x, wide, number, positions, wrong, y;
  assert_ok(rondo_program_input(program, "x", RONDO_F32, (const size_t[]){2, 2, 3, 6}, 4, &x));
  assert_ok(rondo_program_input(program, "wide", RONDO_F32, (const size_t[]){2, 2, 3, 258}, 4, &wide));
  assert_ok(rondo_program_input(program, "number", RONDO_I32, (const size_t[]){2, 2, 3, 6}, 4, &number));
  assert_ok(rondo_op_arange(program, RONDO_I32, 3, 0, 1, &positions));
  assert_error(rondo_op_rotary(program, x, positions, &options, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE);
  assert_message("3 elements of a head cannot be rotated: the number must be even, and at most the head's 6");
  options.dims = 8;
  assert_error(rondo_op_rotary(program, x, positions, &options, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE);
  options = (rondo_rotary_options){RONDO_ROTARY_OPTIONS_INIT, .base = -1};
  assert_error(rondo_op_rotary(program, x, positions, &options, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE);
  options = (rondo_rotary_options){RONDO_ROTARY_OPTIONS_INIT, .heads = 2};
  assert_error(rondo_op_rotary(program, x, positions, &options, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE);
  assert_error(rondo_op_rotary(program, number, positions, NULL, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_TYPE);
  assert_error(rondo_op_rotary(program, wide, positions, NULL, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE);
  assert_ok(rondo_op_arange(program, RONDO_I32, 4, 0, 1, &wrong));
  assert_error(rondo_op_rotary(program, x, wrong, NULL, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE);
  assert_message("positions must be [t] or [b, t], with t 3 and b 2 or 1");
  assert_ok(rondo_op_arange(program, RONDO_F32, 3, 0, 1, &wrong));
  assert_error(rondo_op_rotary(program, x, wrong, NULL, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_TYPE);
  options = (rondo_rotary_options){RONDO_ROTARY_OPTIONS_INIT};
  assert_ok(rondo_op_full(program, RONDO_F32, (const size_t[]){2}, 1, 0, &options.frequencies));
  assert_error(rondo_op_rotary(program, x, positions, &options, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE);
  assert_message("6 rotated elements of a head need 3 frequencies");
  assert_int_equal(y.id, 0);
  rondo_program_destroy(program);
}

static const test_operator rows[] = {
    {.name = "rotary", .draw = draw, .build = build, .reference = reference},
};

TEST_OPERATOR_MAIN(rows)
