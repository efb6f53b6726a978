/* SPDX-License-Identifier: MIT
 * embedding: tables of each type, indices of both; wrong indices.
 */
#include "support/test_operator.h"

static void draw(uint64_t *seed, test_call *call) {
  size_t shape[RONDO_MAX_DIMENSIONS];
  const size_t rows = test_draw_between(seed, 1, 30), rank = test_draw_between(seed, 0, 3);
  const size_t columns =
      test_random_below(seed, 6) == 0 ? test_draw_between(seed, 250, 1200) : test_draw_between(seed, 1, 40);
  test_draw_shape(seed, rank, 6, shape);
  test_add_float(call, (size_t[]){rows, columns}, 2, -2, 2);
  test_tensor *indices = test_add_index(call, shape, rank, rows);
  if (test_random_below(seed, 2) == 0) indices->type = RONDO_I64;
}

static rondo_status build(const test_call *call, rondo_program *program, const rondo_value *in, rondo_value *result) {
  (void)call;
  return rondo_op_embedding(program, in[0], in[1], result);
}

static void reference(const test_call *call, double *const *in, double *y) {
  const size_t columns = call->inputs[0].shape[1];
  for (size_t i = 0; i < test_input_elements(call, 1); i++) {
    for (size_t k = 0; k < columns; k++) y[i * columns + k] = in[0][(size_t)in[1][i] * columns + k];
  }
}

TEST_OPERATOR(test_embedding, .name = "embedding", .draw = draw, .build = build, .reference = reference)

static void test_wrong_indices(void **state) {
  test_fixture *t = *state;
  rondo_program *program = NULL;
  rondo_value table, indices, y;
  const int64_t wrong[] = {0, 4, 5, -7};
  float result[12];
  assert_ok(rondo_program_create(NULL, &program));
  assert_ok(rondo_program_state(program, "table", RONDO_F32, (size_t[]){5, 3}, 2, &table));
  assert_ok(rondo_program_input(program, "indices", RONDO_I64, (size_t[]){4}, 1, &indices));
  assert_ok(rondo_op_embedding(program, table, indices, &y));
  test_wrong_index(
      t, program, y, wrong, sizeof wrong,
      "embedding (operator 0): indices has 5 at position 2, which is not in 0 .. 4; row 0 was used instead", result,
      sizeof result);
  rondo_program_destroy(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {test_case(test_embedding), test_case(test_wrong_indices)};
  return test_main(tests);
}
