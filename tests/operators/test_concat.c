/* SPDX-License-Identifier: MIT
 * concat and stack along any dimension.
 */
#include "support/test_operator.h"

enum { DIMENSION, STACKS, COUNT }; /* sizes */

static void draw(uint64_t *seed, test_call *call) {
  size_t shape[RONDO_MAX_DIMENSIONS];
  const size_t rank = test_draw_between(seed, 1, 4), count = test_draw_between(seed, 2, TEST_MAX_TENSORS);
  const bool is_even = test_random_below(seed, 2) == 0; /* so that several elements go together */
  test_draw_shape(seed, rank, 6, shape);
  call->sizes[DIMENSION] = test_random_below(seed, (uint32_t)rank);
  for (size_t i = 0; i < count; i++) {
    shape[call->sizes[DIMENSION]] = is_even ? 8 * test_draw_between(seed, 1, 2) : test_draw_between(seed, 1, 9);
    test_add_float(call, shape, rank, -1, 1);
  }
}

/* Parts of which one is long and not a multiple of anything, and rows of several parts of one length. */
static void draw_long(uint64_t *seed, test_call *call) {
  const size_t rows = test_draw_between(seed, 1, 60), count = test_draw_between(seed, 2, TEST_MAX_TENSORS);
  call->sizes[DIMENSION] = 1;
  for (size_t i = 0; i < count; i++) {
    const size_t shape[] = {rows, i == 1 ? test_draw_between(seed, 700, 745) : 16};
    test_add_float(call, shape, 2, -1, 1);
  }
}

static void draw_stack(uint64_t *seed, test_call *call) {
  size_t shape[RONDO_MAX_DIMENSIONS];
  const size_t rank = test_draw_between(seed, 0, 4), count = test_draw_between(seed, 2, TEST_MAX_TENSORS);
  test_draw_shape(seed, rank, 6, shape);
  call->sizes[STACKS] = 1;
  call->sizes[DIMENSION] = test_random_below(seed, (uint32_t)rank + 1);
  for (size_t i = 0; i < count; i++) test_add_float(call, shape, rank, -1, 1);
}

static rondo_status build(const test_call *call, rondo_program *program, const rondo_value *in, rondo_value *result) {
  return (call->sizes[STACKS] == 1 ? rondo_op_stack : rondo_op_concat)(program, in, call->input_count,
                                                                       call->sizes[DIMENSION], result);
}

static void reference(const test_call *call, double *const *in, double *y) {
  const size_t dimension = call->sizes[DIMENSION];
  const size_t rows = test_elements(call->inputs[0].shape, dimension);
  for (size_t row = 0; row < rows; row++) {
    for (size_t i = 0; i < call->input_count; i++) {
      const size_t run = test_input_elements(call, i) / rows;
      for (size_t k = 0; k < run; k++) *y++ = in[i][row * run + k];
    }
  }
}

TEST_OPERATOR(test_concat, .name = "concat", .draw = draw, .build = build, .reference = reference)
TEST_OPERATOR(test_concat_of_long_parts, .name = "long concat", .draw = draw_long, .build = build,
              .reference = reference, .has_no_gradient = true)
TEST_OPERATOR(test_stack, .name = "stack", .draw = draw_stack, .build = build, .reference = reference)

static void test_what_does_not_fit(void **state) {
  rondo_program *program = NULL;
  rondo_value x[9], y;
  (void)state;
  assert_ok(rondo_program_create(NULL, &program));
  assert_ok(rondo_program_input(program, "x", RONDO_F32, (size_t[]){4, 6}, 2, &x[0]));
  assert_ok(rondo_program_input(program, "z", RONDO_F32, (size_t[]){5, 6}, 2, &x[1]));
  assert_error(rondo_op_concat(program, x, 2, 1, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE);
  assert_message("concat(a 'x' [4, 6], b 'z' [5, 6]");
  assert_error(rondo_op_concat(program, x, 2, 2, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE);
  assert_message("there is no dimension 2: a has 2, counted from 0");
  assert_error(rondo_op_stack(program, x, 2, 0, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE);
  assert_error(rondo_op_stack(program, x, 2, 3, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE);
  assert_message("a dimension 3 cannot be put into a value that has 2: it goes to 0 .. 2");
  for (size_t i = 1; i < 9; i++) x[i] = x[0];
  for (size_t count = 0; count <= 9; count += count == 0 ? 1 : 8)
    assert_error(rondo_op_concat(program, x, count, 0, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE);
  assert_ok(rondo_op_concat(program, x, 8, 0, &y));
  x[3] = (rondo_value){0};
  assert_error(rondo_op_concat(program, x, 8, 0, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_NULL_ARGUMENT);
  rondo_program_destroy(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {test_case(test_concat), test_case(test_concat_of_long_parts),
                                     test_case(test_stack), test_case(test_what_does_not_fit)};
  return test_main(tests);
}
