/* SPDX-License-Identifier: MIT
 * argmax along each dimension, of floats and integers; not-a-number.
 */
#include <math.h>

#include "operators/argmax_reference.h"

static rondo_status build(const test_call *call, rondo_program *program, const rondo_value *in, rondo_value *result) {
  return rondo_op_argmax(program, in[0], call->sizes[PLACE_DIMENSION], call->sizes[PLACE_KEEPS] != 0, result);
}

static void reference(const test_call *call, double *const *in, double *y) { find_places(call, in[0], 1, y); }

TEST_OPERATOR(test_argmax, .name = "argmax", .draw = draw_places, .build = build, .reference = reference,
              .has_no_gradient = true)
TEST_OPERATOR(test_argmax_of_integers, .name = "argmax", .draw = draw_places_of_integers, .build = build,
              .reference = reference, .only_f32 = true, .has_no_gradient = true)

/* Along dimension 1 and 0 of a value with a not-a-number in each. */
static void test_nan_and_what_does_not_fit(void **state) {
  test_fixture *t = *state;
  rondo_program *program = NULL;
  rondo_compiled *compiled = NULL;
  rondo_value x, y;
  const float given[2][3] = {{1, NAN, 3}, {-INFINITY, 2, -INFINITY}};
  int32_t across[2], down[3];
  assert_ok(rondo_program_create(NULL, &program));
  assert_ok(rondo_program_input(program, "x", RONDO_F32, (size_t[]){2, 3}, 2, &x));
  assert_error(rondo_op_argmax(program, x, 2, false, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE);
  assert_message("there is no dimension 2: value has 2, counted from 0");
  assert_ok(rondo_op_argmax(program, x, 1, false, &y));
  assert_ok(rondo_program_output(program, "across", y));
  assert_ok(rondo_op_argmin(program, x, 0, false, &y));
  assert_ok(rondo_program_output(program, "down", y));
  assert_ok(rondo_compile(program, t->device, NULL, &compiled));
  assert_ok(rondo_compiled_write(compiled, "x", given, sizeof given));
  assert_ok(rondo_compiled_run(compiled));
  assert_ok(rondo_compiled_read(compiled, "across", across, sizeof across));
  assert_ok(rondo_compiled_read(compiled, "down", down, sizeof down));
  assert_memory_equal(across, ((int32_t[]){1, 1}), sizeof across);
  assert_memory_equal(down, ((int32_t[]){1, 0, 1}), sizeof down);
  assert_ok(rondo_compiled_destroy(compiled));
  rondo_program_destroy(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {test_case(test_argmax), test_case(test_argmax_of_integers),
                                     test_case(test_nan_and_what_does_not_fit)};
  return test_main(tests);
}
