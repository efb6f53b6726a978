/* SPDX-License-Identifier: MIT
 * gather along each dimension, by indices of both types; wrong indices.
 */
#include "support/test_operator.h"

enum { DIMENSION }; /* sizes */

static void draw(uint64_t *seed, test_call *call) {
  size_t shape[RONDO_MAX_DIMENSIONS];
  const size_t rank = test_draw_between(seed, 1, 4), dimension = test_random_below(seed, (uint32_t)rank);
  test_draw_shape(seed, rank, 8, shape);
  test_add_float(call, shape, rank, -2, 2);
  const size_t size = shape[dimension];
  shape[dimension] = test_draw_between(seed, 1, 9);
  test_tensor *indices = test_add_index(call, shape, rank, size);
  if (test_random_below(seed, 2) == 0) indices->type = RONDO_I64;
  call->sizes[DIMENSION] = dimension;
}

static rondo_status build(const test_call *call, rondo_program *program, const rondo_value *in, rondo_value *result) {
  return rondo_op_gather(program, in[0], in[1], call->sizes[DIMENSION], result);
}

static void reference(const test_call *call, double *const *in, double *y) {
  const test_tensor *value = &call->inputs[0], *indices = &call->inputs[1];
  const size_t dimension = call->sizes[DIMENSION];
  const size_t inner = test_elements(value->shape + dimension + 1, value->rank - dimension - 1);
  const size_t outer = test_elements(value->shape, dimension);
  for (size_t o = 0; o < outer; o++) {
    for (size_t k = 0; k < indices->shape[dimension]; k++) {
      for (size_t i = 0; i < inner; i++, y++) {
        const double picked = in[1][(o * indices->shape[dimension] + k) * inner + i];
        *y = in[0][(o * value->shape[dimension] + (size_t)picked) * inner + i];
      }
    }
  }
}

TEST_OPERATOR(test_gather, .name = "gather", .draw = draw, .build = build, .reference = reference)

static void test_wrong_indices(void **state) {
  test_fixture *t = *state;
  rondo_program *program = NULL;
  rondo_value value, indices, y;
  const int32_t wrong[] = {0, 2, 1, 3};
  float result[4];
  assert_ok(rondo_program_create(NULL, &program));
  assert_ok(rondo_program_input(program, "value", RONDO_F32, (size_t[]){2, 3}, 2, &value));
  assert_ok(rondo_program_input(program, "indices", RONDO_I32, (size_t[]){2, 2}, 2, &indices));
  assert_error(rondo_op_gather(program, value, indices, 2, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE);
  assert_message("there is no dimension 2: value has 2, counted from 0");
  assert_error(rondo_op_gather(program, value, indices, 0, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE);
  assert_error(rondo_op_gather(program, value, value, 1, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_TYPE);
  assert_ok(rondo_op_gather(program, value, indices, 1, &y));
  test_wrong_index(
      t, program, y, wrong, sizeof wrong,
      "gather (operator 0): indices has 3 at position 3, which is not in 0 .. 2; element 0 was used instead", result,
      sizeof result);
  rondo_program_destroy(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {test_case(test_gather), test_case(test_wrong_indices)};
  return test_main(tests);
}
