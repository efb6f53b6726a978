/* SPDX-License-Identifier: MIT
 * index_select along each dimension, by indices of both types; wrong indices.
 */
#include "support/test_operator.h"

enum { DIMENSION }; /* sizes */

static void draw(uint64_t *seed, test_call *call) {
  size_t shape[RONDO_MAX_DIMENSIONS];
  const size_t rank = test_draw_between(seed, 1, 4), dimension = test_random_below(seed, (uint32_t)rank);
  test_draw_shape(seed, rank, 8, shape);
  if (test_random_below(seed, 8) == 0) shape[rank - 1] = test_draw_between(seed, 200, 600);
  const size_t picked = test_draw_between(seed, 1, 9);
  test_add_float(call, shape, rank, -2, 2);
  test_tensor *indices = test_add_index(call, &picked, 1, shape[dimension]);
  if (test_random_below(seed, 2) == 0) indices->type = RONDO_I64;
  call->sizes[DIMENSION] = dimension;
}

static rondo_status build(const test_call *call, rondo_program *program, const rondo_value *in, rondo_value *result) {
  return rondo_op_index_select(program, in[0], in[1], call->sizes[DIMENSION], result);
}

static void reference(const test_call *call, double *const *in, double *y) {
  const test_tensor *value = &call->inputs[0];
  const size_t dimension = call->sizes[DIMENSION], picked = call->inputs[1].shape[0];
  const size_t inner = test_elements(value->shape + dimension + 1, value->rank - dimension - 1);
  for (size_t o = 0; o < test_elements(value->shape, dimension); o++) {
    for (size_t k = 0; k < picked; k++) {
      for (size_t i = 0; i < inner; i++, y++) *y = in[0][(o * value->shape[dimension] + (size_t)in[1][k]) * inner + i];
    }
  }
}

TEST_OPERATOR(test_index_select, .name = "index_select", .draw = draw, .build = build, .reference = reference)

static void test_wrong_indices(void **state) {
  test_fixture *t = *state;
  rondo_program *program = NULL;
  rondo_value value, indices, y;
  const int32_t wrong[] = {1, -1};
  int32_t result[2][2];
  assert_ok(rondo_program_create(NULL, &program));
  assert_ok(rondo_op_arange(program, RONDO_I32, 6, 1, 1, &value));
  assert_ok(rondo_op_reshape(program, value, (size_t[]){2, 3}, 2, &value));
  assert_ok(rondo_program_input(program, "indices", RONDO_I32, (size_t[]){2}, 1, &indices));
  assert_error(rondo_op_index_select(program, value, indices, 2, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE);
  assert_error(rondo_op_index_select(program, value, value, 1, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE);
  assert_ok(rondo_op_index_select(program, value, indices, 1, &y));
  test_wrong_index(
      t, program, y, wrong, sizeof wrong,
      "index_select (operator 2): indices has -1 at position 1, which is not in 0 .. 2; element 0 was used instead",
      result, sizeof result);
  assert_memory_equal(result, ((int32_t[2][2]){{2, 1}, {5, 4}}), sizeof result);
  rondo_program_destroy(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {test_case(test_index_select), test_case(test_wrong_indices)};
  return test_main(tests);
}
