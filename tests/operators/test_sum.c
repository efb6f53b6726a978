/* SPDX-License-Identifier: MIT
 * sum.
 */
#include <math.h>
#include <stdlib.h>

#include "operators/reduction_reference.h"

static void draw(uint64_t *seed, test_call *call) { draw_reduction(seed, call, -1, 2); }

static rondo_status build(const test_call *call, rondo_program *program, const rondo_value *inputs,
                          rondo_value *result) {
  return build_reduction(call, program, inputs[0], rondo_op_sum, result);
}

static void reference(const test_call *call, double *const *inputs, double *result) {
  const size_t count = test_input_elements(call, 0), results = result_count(call);
  for (size_t i = 0; i < results; i++) result[i] = 0;
  for (size_t i = 0; i < count; i++) {
    double *into = &result[result_of(call, i)];
    *into = *into + inputs[0][i];
  }
}

TEST_OPERATOR(test_sum, .name = "sum", .draw = draw, .build = build, .reference = reference, .tolerance = 1e-5,
              .gradient_tolerance = 1e-3)

static void test_dimensions_that_are_not_there(void **state) {
  const size_t shape[] = {2, 3}, dims[] = {1, 2}, twice[] = {1, 1}, many[7] = {0};
  rondo_program *program = NULL;
  rondo_value x, y;
  (void)state;
  assert_ok(rondo_program_create(NULL, &program));
  assert_ok(rondo_program_input(program, "x", RONDO_F32, shape, 2, &x));
  assert_int_equal(rondo_op_sum(program, x, dims, 2, false, &y), RONDO_INVALID_ARGUMENT);
  assert_int_equal(rondo_last_error()->reason, RONDO_REASON_SHAPE);
  assert_int_equal(rondo_op_sum(program, x, twice, 2, false, &y), RONDO_INVALID_ARGUMENT);
  assert_int_equal(rondo_op_sum(program, x, many, 7, false, &y), RONDO_INVALID_ARGUMENT);
  assert_true(y.id == 0);
  assert_ok(rondo_program_input(program, "i", RONDO_I32, shape, 2, &x));
  assert_int_equal(rondo_op_sum(program, x, NULL, 0, false, &y), RONDO_INVALID_ARGUMENT);
  assert_int_equal(rondo_last_error()->reason, RONDO_REASON_TYPE);
  rondo_program_destroy(program);
}

/* Sums whose results are made of parts, of rows and of columns, keep the precision that few additions in a row give. */
static void check_long_sum(test_fixture *t, size_t rows, size_t columns, size_t dimension) {
  const size_t shape[] = {rows, columns}, count = rows * columns, results = dimension == 0 ? columns : rows;
  float *x = malloc(count * sizeof *x), *y = malloc(results * sizeof *y);
  double *wanted = calloc(results, sizeof *wanted);
  rondo_program *program = NULL;
  rondo_compiled *compiled = NULL;
  rondo_value in, out;
  uint64_t seed = 3;
  assert_true(x != NULL && y != NULL && wanted != NULL);
  for (size_t i = 0; i < count; i++) {
    x[i] = (float)test_random_below(&seed, 1000) / 1000;
    wanted[dimension == 0 ? i % columns : i / columns] += (double)x[i];
  }
  assert_ok(rondo_program_create(NULL, &program));
  assert_ok(rondo_program_input(program, "x", RONDO_F32, shape, 2, &in));
  assert_ok(rondo_op_sum(program, in, &dimension, 1, false, &out));
  assert_ok(rondo_program_output(program, "y", out));
  assert_ok(rondo_compile(program, t->device, NULL, &compiled));
  assert_ok(rondo_compiled_write(compiled, "x", x, count * sizeof *x));
  assert_ok(rondo_compiled_run(compiled));
  assert_ok(rondo_compiled_read(compiled, "y", y, results * sizeof *y));
  for (size_t i = 0; i < results; i++) assert_true(fabs((double)y[i] - wanted[i]) < 2e-6 * wanted[i]);
  assert_ok(rondo_compiled_destroy(compiled));
  rondo_program_destroy(program);
  free(x);
  free(y);
  free(wanted);
}

static void test_long_sums(void **state) {
  check_long_sum(*state, 3, 40001, 1);
  check_long_sum(*state, 9001, 5, 0);
  check_long_sum(*state, 700, 301, 0);
  check_long_sum(*state, 600, 2500, 1);
  check_long_sum(*state, 8192, 3, 0); /* the most rows without parts */
  check_long_sum(*state, 8193, 3, 0);
  check_long_sum(*state, 257, 300, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {test_case(test_sum), cmocka_unit_test(test_dimensions_that_are_not_there),
                                     test_case(test_long_sums)};
  return test_main(tests);
}
