/* SPDX-License-Identifier: MIT
 * max_pool2d: kernel, stride, padding.
 */
#include "operators/pool2d_reference.h"

static rondo_status build(const test_call *call, rondo_program *program, const rondo_value *inputs,
                          rondo_value *result) {
  const rondo_pool2d_options options = pool_options(call);
  return rondo_op_max_pool2d(program, inputs[0], &options, result);
}

static double pool(const size_t *s, const double *plane, size_t y, size_t x) {
  double most = -INFINITY;
  for (size_t i = 0; i < s[KH]; i++) {
    for (size_t j = 0; j < s[KW]; j++) {
      const size_t at_y = y * s[SH] + i - s[PH], at_x = x * s[SW] + j - s[PW];
      if (at_y < s[H] && at_x < s[W]) most = fmax(most, plane[at_y * s[W] + at_x]); /* below 0 they are very large */
    }
  }
  return most;
}

static void reference(const test_call *call, double *const *inputs, double *result) {
  reference_pool(call, inputs, result, pool);
}

TEST_OPERATOR(test_max_pool2d, .name = "max_pool2d", .draw = draw_pool, .build = build, .reference = reference,
              .has_ties = true)

static float pool_one(test_fixture *t, const float *x, float *gradient) {
  const rondo_pool2d_options options = {RONDO_POOL2D_OPTIONS_INIT, .kernel = {2, 2}};
  rondo_program *program = NULL;
  rondo_compiled *compiled = NULL;
  rondo_value in, y, of_in;
  float largest = 0;
  assert_ok(rondo_program_create(NULL, &program));
  assert_ok(rondo_program_input(program, "x", RONDO_F32, (const size_t[]){1, 1, 2, 2}, 4, &in));
  assert_ok(rondo_op_max_pool2d(program, in, &options, &y));
  assert_ok(rondo_op_reshape(program, y, NULL, 0, &y));
  assert_ok(rondo_program_output(program, "y", y));
  assert_ok(rondo_program_gradients(program, y, &in, 1, &of_in));
  assert_ok(rondo_program_output(program, "gradient", of_in));
  assert_ok(rondo_compile(program, t->device, NULL, &compiled));
  assert_ok(rondo_compiled_write(compiled, "x", x, 4 * sizeof *x));
  assert_ok(rondo_compiled_run(compiled));
  assert_ok(rondo_compiled_read(compiled, "y", &largest, sizeof largest));
  assert_ok(rondo_compiled_read(compiled, "gradient", gradient, 4 * sizeof *gradient));
  assert_ok(rondo_compiled_destroy(compiled));
  rondo_program_destroy(program);
  return largest;
}

/* The first of equals has the gradient; not-a-number is passed on. */
static void test_equals_and_nan(void **state) {
  float gradient[4];
  assert_true(pool_one(*state, (const float[]){1, 5, 5, 2}, gradient) == 5);
  assert_true(gradient[0] == 0 && gradient[1] == 1 && gradient[2] == 0 && gradient[3] == 0);
  assert_true(isnan(pool_one(*state, (const float[]){1, 5, NAN, 7}, gradient)));
  assert_true(gradient[2] == 1 && gradient[3] == 0);
  assert_true(pool_one(*state, (const float[]){-INFINITY, -INFINITY, -INFINITY, -INFINITY}, gradient) == -INFINITY);
  assert_true(gradient[0] == 1);
}

static void test_what_does_not_fit_is_refused(void **state) {
  (void)state;
  check_pool_refusals(rondo_op_max_pool2d);
}

int main(void) {
  const struct CMUnitTest tests[] = {test_case(test_max_pool2d), test_case(test_equals_and_nan),
                                     cmocka_unit_test(test_what_does_not_fit_is_refused)};
  return test_main(tests);
}
