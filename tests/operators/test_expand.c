/* SPDX-License-Identifier: MIT
 * expand.
 */
#include "operators/broadcast_reference.h"

/* The second input only says the shape. */
static void draw(uint64_t *seed, test_call *call) {
  draw_broadcast(seed, call, 2, -3, 3);
  call->inputs[1].has_no_gradient = true;
}

static rondo_status build(const test_call *call, rondo_program *program, const rondo_value *inputs,
                          rondo_value *result) {
  size_t shape[RONDO_MAX_DIMENSIONS], rank;
  (void)broadcast_shape(call, shape, &rank);
  return rondo_op_expand(program, inputs[0], shape, rank, result);
}

static double first_of(double a, double b) {
  (void)b;
  return a;
}

static void reference(const test_call *call, double *const *inputs, double *result) {
  reference_broadcast(call, inputs, result, first_of);
}

TEST_OPERATOR(test_floats, .name = "expand", .draw = draw, .build = build, .reference = reference,
              .gradient_tolerance = 4e-4)
TEST_OPERATOR(test_integers, .name = "expand", .draw = draw_integers, .build = build, .reference = reference,
              .only_f32 = true, .has_no_gradient = true)

static void test_what_does_not_fit(void **state) {
  const size_t shape[] = {2, 3}, wide[] = {4, 3}, row[] = {3};
  rondo_program *program = NULL;
  rondo_value x, y;
  (void)state;
  assert_ok(rondo_program_create(NULL, &program));
  assert_ok(rondo_program_input(program, "x", RONDO_F32, shape, 2, &x));
  assert_int_equal(rondo_op_expand(program, x, wide, 2, &y), RONDO_INVALID_ARGUMENT);
  assert_int_equal(rondo_last_error()->reason, RONDO_REASON_SHAPE);
  assert_int_equal(rondo_op_expand(program, x, row, 1, &y), RONDO_INVALID_ARGUMENT);
  assert_int_equal(rondo_op_expand(program, x, NULL, 7, &y), RONDO_INVALID_ARGUMENT);
  rondo_program_destroy(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {test_case(test_floats), test_case(test_integers),
                                     cmocka_unit_test(test_what_does_not_fit)};
  return test_main(tests);
}
