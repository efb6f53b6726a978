/* SPDX-License-Identifier: MIT
 * stop_gradient: the value passes, gradients do not (PR-1).
 */
#include "support/test_operator.h"
#include "support/test_program.h"

enum { COUNT = 4 };

static const rondo_value none;

/* x stop(x) has the gradient x, where x x has 2 x. */
TEST(test_pr1_stop_gradient_passes_values_and_no_gradients) {
  static const rondo_type types[] = {RONDO_F32, RONDO_F16, RONDO_BF16};
  for (size_t k = 0; k < 3; k++) {
    const size_t shape[] = {COUNT};
    const float numbers[COUNT] = {1, -2, 0.5f, 3};
    float g[COUNT], y[COUNT];
    rondo_program *program = test_new_program();
    rondo_value x, cast, stopped, product, loss, gradient, back;
    assert_ok(rondo_program_input(program, "x", RONDO_F32, shape, 1, &x));
    assert_ok(rondo_op_cast(program, x, types[k], &cast));
    assert_ok(rondo_op_stop_gradient(program, cast, &stopped));
    assert_ok(rondo_op_mul(program, cast, stopped, &product));
    assert_ok(rondo_op_cast(program, product, RONDO_F32, &product));
    assert_ok(rondo_op_sum(program, product, (const size_t[]){0}, 1, false, &loss));
    assert_ok(rondo_program_gradients(program, loss, &x, 1, &gradient));
    assert_ok(rondo_op_cast(program, stopped, RONDO_F32, &back));
    assert_ok(rondo_program_output(program, "y", back));
    assert_ok(rondo_program_output(program, "g", gradient));
    test_run_program(t, program, (const test_bytes[]){TEST_BYTES("x", numbers), {.name = NULL}},
                     (const test_bytes[]){TEST_BYTES("g", g), TEST_BYTES("y", y), {.name = NULL}});
    assert_memory_equal(g, numbers, sizeof g);
    assert_memory_equal(y, numbers, sizeof y);
  }
}

/* Operators without a gradient may read its result and may precede it; integers are allowed too. */
TEST(test_pr1_operators_without_a_gradient_around_it) {
  const size_t shape[] = {COUNT};
  rondo_program *program = test_new_program();
  rondo_value a, stopped, x, loss, gradient, whole;
  assert_ok(rondo_program_state(program, "a", RONDO_F32, shape, 1, &a));
  assert_ok(rondo_op_stop_gradient(program, a, &stopped));
  assert_ok(rondo_op_greater(program, stopped, a, &x)); /* has none */
  assert_ok(rondo_op_cast(program, x, RONDO_F32, &x));
  assert_ok(rondo_op_stop_gradient(program, x, &x));
  assert_ok(rondo_op_mul(program, x, a, &x));
  assert_ok(rondo_op_sum(program, x, (const size_t[]){0}, 1, false, &loss));
  assert_ok(rondo_program_gradients(program, loss, &a, 1, &gradient));
  assert_ok(rondo_program_input(program, "ids", RONDO_I32, shape, 1, &whole));
  assert_ok(rondo_op_stop_gradient(program, whole, &x));
  assert_invalid(rondo_op_stop_gradient(program, none, &x), RONDO_REASON_NULL_ARGUMENT);
}
