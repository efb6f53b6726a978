/* SPDX-License-Identifier: MIT
 * mse: mean and sum.
 */
#include "support/test_operator.h"

enum { COMBINE }; /* sizes */

static void draw(uint64_t *seed, test_call *call) {
  size_t shape[RONDO_MAX_DIMENSIONS];
  const size_t rank = test_draw_between(seed, 0, 4);
  test_draw_shape(seed, rank, 7, shape);
  test_add_float(call, shape, rank, -1, 1);
  test_add_float(call, shape, rank, -1, 1);
  call->sizes[COMBINE] = test_random_below(seed, 2) == 0 ? RONDO_COMBINE_MEAN : RONDO_COMBINE_SUM;
}

/* More than a part of the sum. */
static void draw_many(uint64_t *seed, test_call *call) {
  const size_t count = test_draw_between(seed, 8000, 40000);
  test_add_float(call, &count, 1, -1, 1);
  test_add_float(call, &count, 1, -1, 1);
  call->sizes[COMBINE] = RONDO_COMBINE_MEAN;
}

static rondo_status build(const test_call *call, rondo_program *program, const rondo_value *in, rondo_value *result) {
  return rondo_op_mse(program, in[0], in[1], (rondo_combine)call->sizes[COMBINE], result);
}

static void reference(const test_call *call, double *const *in, double *y) {
  const size_t count = test_input_elements(call, 0);
  y[0] = 0;
  for (size_t i = 0; i < count; i++) y[0] += (in[0][i] - in[1][i]) * (in[0][i] - in[1][i]);
  if (call->sizes[COMBINE] == RONDO_COMBINE_MEAN) y[0] /= (double)count;
}

TEST_OPERATOR(test_mse, .name = "mse", .draw = draw, .build = build, .reference = reference)
TEST_OPERATOR(test_many, .name = "mse", .draw = draw_many, .build = build, .reference = reference)

static void test_what_does_not_fit(void **state) {
  rondo_program *program = NULL;
  rondo_value a, b, y;
  (void)state;
  assert_ok(rondo_program_create(NULL, &program));
  assert_ok(rondo_program_input(program, "a", RONDO_F32, (size_t[]){4}, 1, &a));
  assert_ok(rondo_program_input(program, "b", RONDO_F16, (size_t[]){4}, 1, &b));
  assert_error(rondo_op_mse(program, a, b, RONDO_COMBINE_MEAN, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE);
  assert_message("'b' [4] f16");
  assert_error(rondo_op_mse(program, a, a, (rondo_combine)7, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE);
  rondo_program_destroy(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {test_case(test_mse), test_case(test_many), test_case(test_what_does_not_fit)};
  return test_main(tests);
}
