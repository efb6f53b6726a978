/* SPDX-License-Identifier: MIT
 * concat and stack along any dimension.
 */
#include "support/test_operator.h"
#include "support/test_program.h"

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
  rondo_program *program = test_new_program();
  rondo_value x[9], y;
  (void)state;
  assert_ok(rondo_program_input(program, "x", RONDO_F32, (size_t[]){4, 6}, 2, &x[0]));
  assert_ok(rondo_program_input(program, "z", RONDO_F32, (size_t[]){5, 6}, 2, &x[1]));
  assert_invalid(rondo_op_concat(program, x, 2, 1, &y), RONDO_REASON_SHAPE);
  assert_message("concat(a 'x' [4, 6], b 'z' [5, 6]");
  assert_invalid(rondo_op_concat(program, x, 2, 2, &y), RONDO_REASON_SHAPE);
  assert_message("there is no dimension 2: a has 2, counted from 0");
  assert_invalid(rondo_op_stack(program, x, 2, 0, &y), RONDO_REASON_SHAPE);
  assert_invalid(rondo_op_stack(program, x, 2, 3, &y), RONDO_REASON_SHAPE);
  assert_message("dimension 3 cannot be inserted into a value with 2 dimensions: choose 0 to 2");
  for (size_t i = 1; i < 9; i++) x[i] = x[0];
  for (size_t count = 0; count < 2; count++)
    assert_invalid(rondo_op_concat(program, x, count, 0, &y), RONDO_REASON_OUT_OF_RANGE);
  assert_ok(rondo_op_concat(program, x, 8, 0, &y));
  x[3] = (rondo_value){0};
  assert_invalid(rondo_op_concat(program, x, 8, 0, &y), RONDO_REASON_NULL_ARGUMENT);
  rondo_program_destroy(program);
}

/* x is split into many parts, which are put together again from the last to the first, or stacked so where all have one
 * length: the result, and the gradient of its sum weighted by w. */
static void run_many(test_fixture *t, size_t count, bool stacks) {
  enum { ROWS = 2, MOST = 513 };
  static rondo_value parts[MOST], turned[MOST];
  static size_t lengths[MOST], starts[MOST];
  static float x[ROWS * 3 * MOST], w[ROWS * 3 * MOST], y[ROWS * 3 * MOST], g[ROWS * 3 * MOST];
  size_t width = 0;
  rondo_program *program = test_new_program();
  rondo_value in, weights, whole, loss, gradient;
  for (size_t i = 0; i < count; i++) starts[i] = width, width += lengths[i] = stacks ? 2 : 1 + i % 3;
  const size_t shape[] = {ROWS, width};
  assert_ok(rondo_program_input(program, "x", RONDO_F32, shape, 2, &in));
  assert_ok(rondo_program_input(program, "w", RONDO_F32, shape, 2, &weights));
  assert_ok(rondo_op_split(program, in, 1, lengths, count, parts));
  for (size_t i = 0; i < count; i++) turned[i] = parts[count - 1 - i];
  assert_ok((stacks ? rondo_op_stack : rondo_op_concat)(program, turned, count, 1, &whole));
  assert_ok(rondo_op_reshape(program, whole, shape, 2, &whole));
  assert_ok(rondo_program_output(program, "y", whole));
  assert_ok(rondo_op_mul(program, whole, weights, &loss));
  assert_ok(rondo_op_sum(program, loss, (const size_t[]){0, 1}, 2, false, &loss));
  assert_ok(rondo_program_gradients(program, loss, &in, 1, &gradient));
  assert_ok(rondo_program_output(program, "g", gradient));
  rondo_compiled *compiled = test_compile(program, t->device, NULL);
  for (size_t i = 0; i < ROWS * width; i++) x[i] = (float)i, w[i] = (float)(i % 17);
  const size_t bytes = ROWS * width * sizeof *x;
  assert_ok(rondo_compiled_write(compiled, "x", x, bytes));
  assert_ok(rondo_compiled_write(compiled, "w", w, bytes));
  assert_ok(rondo_compiled_run(compiled));
  assert_ok(rondo_compiled_read(compiled, "y", y, bytes));
  assert_ok(rondo_compiled_read(compiled, "g", g, bytes));
  for (size_t row = 0; row < ROWS; row++) {
    for (size_t i = count, at = row * width; i-- > 0;) {
      for (size_t k = 0; k < lengths[i]; k++, at++) {
        const size_t from = row * width + starts[i] + k;
        assert_true(y[at] == x[from] && g[from] == w[at]);
      }
    }
  }
  assert_ok(rondo_compiled_destroy(compiled));
}

static void test_pr6_any_number_of_values(void **state) {
  static const size_t counts[] = {2, 8, 9, 15, 64, 65, 200, 513};
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
    run_many(*state, counts[i], false);
    run_many(*state, counts[i], true);
  }
}

/* What fails far down the list leaves the program as it was. */
static void test_pr6_one_of_many_does_not_fit(void **state) {
  enum { MANY = 100 };
  rondo_program *program = test_new_program();
  rondo_value x[MANY], y[MANY], other, z;
  size_t lengths[MANY];
  (void)state;
  assert_ok(rondo_program_input(program, "x", RONDO_F32, (size_t[]){MANY, 6}, 2, &x[0]));
  assert_ok(rondo_program_input(program, "z", RONDO_F32, (size_t[]){MANY, 5}, 2, &other));
  for (size_t i = 0; i < MANY; i++) x[i] = x[0], lengths[i] = 1;
  x[90] = other;
  assert_invalid(rondo_op_concat(program, x, MANY, 0, &z), RONDO_REASON_SHAPE);
  assert_invalid(rondo_op_stack(program, x, MANY, 0, &z), RONDO_REASON_SHAPE);
  lengths[0] = 0, lengths[1] = 2;
  assert_invalid(rondo_op_split(program, x[0], 0, lengths, MANY, y), RONDO_REASON_SHAPE);
  for (size_t i = 0; i < MANY; i++) assert_true(y[i].id == 0);
  assert_ok(rondo_op_concat(program, x, 2, 0, &z));
  assert_ok(rondo_program_output(program, "z and z", z));
  assert_int_equal((uint32_t)z.id, 3); /* the third value: nothing is left of those that failed */
  rondo_program_destroy(program);
}

/* The result may go into an entry of the list, also of a call that fails. */
static void test_the_result_goes_into_the_list(void **state) {
  rondo_program *program = test_new_program();
  rondo_value x[3], none = {0};
  (void)state;
  assert_ok(rondo_program_input(program, "x", RONDO_F32, (size_t[]){4, 6}, 2, &x[0]));
  x[1] = x[2] = x[0];
  assert_ok(rondo_op_concat(program, x, 3, 0, &x[0]));
  size_t dims[RONDO_MAX_DIMENSIONS], rank;
  rondo_type type;
  assert_ok(rondo_value_shape(program, x[0], &type, dims, &rank));
  assert_int_equal(dims[0], 12);
  assert_ok(rondo_op_stack(program, x + 1, 2, 0, &x[2]));
  assert_ok(rondo_value_shape(program, x[2], &type, dims, &rank));
  assert_int_equal(rank, 3);
  x[0] = none;
  assert_invalid(rondo_op_concat(program, x, 2, 0, &x[1]), RONDO_REASON_NULL_ARGUMENT);
  assert_message("entry 0 is not a value");
  assert_true(x[1].id == 0);
  rondo_program_destroy(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {test_case(test_concat),
                                     test_case(test_concat_of_long_parts),
                                     test_case(test_stack),
                                     test_case(test_what_does_not_fit),
                                     test_case(test_pr6_any_number_of_values),
                                     test_case(test_pr6_one_of_many_does_not_fit),
                                     test_case(test_the_result_goes_into_the_list)};
  return test_main(tests);
}
