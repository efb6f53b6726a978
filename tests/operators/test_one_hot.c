/* SPDX-License-Identifier: MIT
 * one_hot in each type, by indices of both types; wrong indices.
 */
#include "support/test_operator.h"

enum { SIZE, TYPE }; /* sizes */

static void draw(uint64_t *seed, test_call *call) {
  static const rondo_type types[] = {RONDO_F32, RONDO_F16, RONDO_BF16, RONDO_I32, RONDO_I64};
  size_t shape[RONDO_MAX_DIMENSIONS];
  const size_t rank = test_draw_between(seed, 0, 3);
  test_draw_shape(seed, rank, 6, shape);
  call->sizes[SIZE] = test_draw_between(seed, 1, 12);
  call->sizes[TYPE] = types[test_random_below(seed, 5)];
  test_tensor *indices = test_add_index(call, shape, rank, call->sizes[SIZE]);
  if (test_random_below(seed, 2) == 0) indices->type = RONDO_I64;
}

static rondo_status build(const test_call *call, rondo_program *program, const rondo_value *in, rondo_value *result) {
  return rondo_op_one_hot(program, in[0], call->sizes[SIZE], (rondo_type)call->sizes[TYPE], result);
}

static void reference(const test_call *call, double *const *in, double *y) {
  const size_t size = call->sizes[SIZE];
  for (size_t i = 0; i < test_input_elements(call, 0) * size; i++) y[i] = in[0][i / size] == (double)(i % size);
}

TEST_OPERATOR(test_one_hot, .name = "one_hot", .draw = draw, .build = build, .reference = reference, .only_f32 = true,
              .has_no_gradient = true)

static void test_wrong_indices(void **state) {
  test_fixture *t = *state;
  rondo_program *program = NULL;
  rondo_value indices, y, other;
  const int64_t wrong[] = {1, INT64_C(1) << 40};
  float result[2][2];
  assert_ok(rondo_program_create(NULL, &program));
  assert_ok(rondo_program_input(program, "indices", RONDO_I64, (size_t[]){2}, 1, &indices));
  assert_error(rondo_op_one_hot(program, indices, 0, RONDO_F32, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE);
  assert_error(rondo_op_one_hot(program, indices, 2, (rondo_type)77, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_TYPE);
  assert_ok(rondo_op_one_hot(program, indices, 2, RONDO_F32, &y));
  assert_error(rondo_op_one_hot(program, y, 2, RONDO_F32, &other), RONDO_INVALID_ARGUMENT, RONDO_REASON_TYPE);
  test_wrong_index(
      t, program, y, wrong, sizeof wrong,
      "one_hot (operator 0): indices has 2147483647 or more at position 1, which is not in 0 .. 1; its row is zeros",
      result, sizeof result);
  assert_near(result[0], ((float[]){0, 1, 0, 0}), 4, 0);
  rondo_program_destroy(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {test_case(test_one_hot), test_case(test_wrong_indices)};
  return test_main(tests);
}
