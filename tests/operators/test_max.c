/* SPDX-License-Identifier: MIT
 * max.
 */
#include <math.h>

#include "operators/reduction_reference.h"

static void draw(uint64_t *seed, test_call *call) { draw_reduction(seed, call, -1, 2); }

static rondo_status build(const test_call *call, rondo_program *program, const rondo_value *inputs,
                          rondo_value *result) {
  return build_reduction(call, program, inputs[0], rondo_op_max, result);
}

static void reference(const test_call *call, double *const *inputs, double *result) {
  const size_t count = test_input_elements(call, 0), results = result_count(call);
  for (size_t i = 0; i < results; i++) result[i] = -INFINITY;
  for (size_t i = 0; i < count; i++) {
    double *into = &result[result_of(call, i)];
    *into = fmax(*into, inputs[0][i]);
  }
}

TEST_OPERATOR(test_max, .name = "max", .draw = draw, .build = build, .reference = reference, .tolerance = 1e-7,
              .gradient_tolerance = 1e-3)

/* All that are the largest share the gradient; not-a-number is larger than all. */
static void test_shares(void **state) {
  test_fixture *t = *state;
  const size_t shape[] = {2, 4}, last = 1;
  const float x[] = {3, 1, 3, 3, -INFINITY, NAN, 5, -5};
  float y[2], dx[8];
  rondo_program *program = NULL;
  rondo_compiled *compiled = NULL;
  rondo_value in, out, loss, gradient;
  assert_ok(rondo_program_create(NULL, &program));
  assert_ok(rondo_program_input(program, "x", RONDO_F32, shape, 2, &in));
  assert_ok(rondo_op_max(program, in, &last, 1, false, &out));
  assert_ok(rondo_op_sum(program, out, NULL, 0, false, &loss));
  assert_ok(rondo_program_gradients(program, loss, &in, 1, &gradient));
  assert_ok(rondo_program_output(program, "y", out));
  assert_ok(rondo_program_output(program, "dx", gradient));
  assert_ok(rondo_compile(program, t->device, NULL, &compiled));
  assert_ok(rondo_compiled_write(compiled, "x", x, sizeof x));
  assert_ok(rondo_compiled_run(compiled));
  assert_ok(rondo_compiled_read(compiled, "y", y, sizeof y));
  assert_ok(rondo_compiled_read(compiled, "dx", dx, sizeof dx));
  assert_true(y[0] == 3 && isnan(y[1]));
  assert_near(dx, ((float[]){1.0f / 3, 0, 1.0f / 3, 1.0f / 3}), 4, 1e-6f);
  assert_ok(rondo_compiled_destroy(compiled));
  rondo_program_destroy(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {test_case(test_max), test_case(test_shares)};
  return test_main(tests);
}
