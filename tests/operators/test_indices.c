/* SPDX-License-Identifier: MIT
 * Operators with indices: embedding, gather, index_select and one_hot, by indices of both types; wrong indices.
 */
#include "support/test_operator.h"
#include "support/test_program.h"

enum { DIMENSION }; /* sizes of gather and index_select */

/* embedding -------------------------------------------------------------------------------------------------------- */

static void draw_embedding(uint64_t *seed, test_call *call) {
  size_t shape[RONDO_MAX_DIMENSIONS];
  const size_t rows = test_draw_between(seed, 1, 30), rank = test_draw_between(seed, 0, 3);
  const size_t columns =
      test_random_below(seed, 6) == 0 ? test_draw_between(seed, 250, 1200) : test_draw_between(seed, 1, 40);
  test_draw_shape(seed, rank, 6, shape);
  test_add_float(call, (size_t[]){rows, columns}, 2, -2, 2);
  test_tensor *indices = test_add_index(call, shape, rank, rows);
  if (test_random_below(seed, 2) == 0) indices->type = RONDO_I64;
}

static rondo_status build_embedding(const test_call *call, rondo_program *program, const rondo_value *in,
                                    rondo_value *result) {
  (void)call;
  return rondo_op_embedding(program, in[0], in[1], result);
}

static void reference_embedding(const test_call *call, double *const *in, double *y) {
  const size_t columns = call->inputs[0].shape[1];
  for (size_t i = 0; i < test_input_elements(call, 1); i++) {
    for (size_t k = 0; k < columns; k++) y[i * columns + k] = in[0][(size_t)in[1][i] * columns + k];
  }
}

static void test_wrong_indices_embedding(void **state) {
  test_fixture *t = *state;
  rondo_program *program = test_new_program();
  rondo_value table, indices, y;
  const int64_t wrong[] = {0, 4, 5, -7};
  float result[12];
  assert_ok(rondo_program_state(program, "table", RONDO_F32, (size_t[]){5, 3}, 2, &table));
  assert_ok(rondo_program_input(program, "indices", RONDO_I64, (size_t[]){4}, 1, &indices));
  assert_ok(rondo_op_embedding(program, table, indices, &y));
  test_wrong_index(
      t, program, y, wrong, sizeof wrong,
      "embedding (operator 0): indices has 5 at position 2, which is not in 0 .. 4; row 0 was used instead", result,
      sizeof result);
  rondo_program_destroy(program);
}

/* gather and index_select ------------------------------------------------------------------------------------------ */

static void draw_gather(uint64_t *seed, test_call *call) {
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

static rondo_status build_gather(const test_call *call, rondo_program *program, const rondo_value *in,
                                 rondo_value *result) {
  return rondo_op_gather(program, in[0], in[1], call->sizes[DIMENSION], result);
}

static void draw_index_select(uint64_t *seed, test_call *call) {
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

static rondo_status build_index_select(const test_call *call, rondo_program *program, const rondo_value *in,
                                       rondo_value *result) {
  return rondo_op_index_select(program, in[0], in[1], call->sizes[DIMENSION], result);
}

/* index_select has one list of indices for all. */
static void reference_picks(const test_call *call, double *const *in, double *y) {
  const test_tensor *value = &call->inputs[0], *indices = &call->inputs[1];
  const size_t dimension = call->sizes[DIMENSION];
  const bool shares = call->op->family != NULL;
  const size_t picks = indices->shape[shares ? 0 : dimension];
  const size_t inner = test_elements(value->shape + dimension + 1, value->rank - dimension - 1);
  for (size_t o = 0; o < test_elements(value->shape, dimension); o++) {
    for (size_t k = 0; k < picks; k++) {
      for (size_t i = 0; i < inner; i++, y++) {
        const double picked = in[1][shares ? k : (o * picks + k) * inner + i];
        *y = in[0][(o * value->shape[dimension] + (size_t)picked) * inner + i];
      }
    }
  }
}

static void test_wrong_indices_gather(void **state) {
  test_fixture *t = *state;
  rondo_program *program = test_new_program();
  rondo_value value, indices, y;
  const int32_t wrong[] = {0, 2, 1, 3};
  float result[4];
  assert_ok(rondo_program_input(program, "value", RONDO_F32, (size_t[]){2, 3}, 2, &value));
  assert_ok(rondo_program_input(program, "indices", RONDO_I32, (size_t[]){2, 2}, 2, &indices));
  assert_invalid(rondo_op_gather(program, value, indices, 2, &y), RONDO_REASON_SHAPE);
  assert_message("there is no dimension 2: value has 2, counted from 0");
  assert_invalid(rondo_op_gather(program, value, indices, 0, &y), RONDO_REASON_SHAPE);
  assert_invalid(rondo_op_gather(program, value, value, 1, &y), RONDO_REASON_TYPE);
  assert_ok(rondo_op_gather(program, value, indices, 1, &y));
  test_wrong_index(
      t, program, y, wrong, sizeof wrong,
      "gather (operator 0): indices has 3 at position 3, which is not in 0 .. 2; element 0 was used instead", result,
      sizeof result);
  rondo_program_destroy(program);
}

static void test_wrong_indices_index_select(void **state) {
  test_fixture *t = *state;
  rondo_program *program = test_new_program();
  rondo_value value, indices, y;
  const int32_t wrong[] = {1, -1};
  int32_t result[2][2];
  assert_ok(rondo_op_arange(program, RONDO_I32, 6, 1, 1, &value));
  assert_ok(rondo_op_reshape(program, value, (size_t[]){2, 3}, 2, &value));
  assert_ok(rondo_program_input(program, "indices", RONDO_I32, (size_t[]){2}, 1, &indices));
  assert_invalid(rondo_op_index_select(program, value, indices, 2, &y), RONDO_REASON_SHAPE);
  assert_invalid(rondo_op_index_select(program, value, value, 1, &y), RONDO_REASON_SHAPE);
  assert_ok(rondo_op_index_select(program, value, indices, 1, &y));
  test_wrong_index(
      t, program, y, wrong, sizeof wrong,
      "index_select (operator 2): indices has -1 at position 1, which is not in 0 .. 2; element 0 was used instead",
      result, sizeof result);
  assert_memory_equal(result, ((int32_t[2][2]){{2, 1}, {5, 4}}), sizeof result);
  rondo_program_destroy(program);
}

/* one_hot ---------------------------------------------------------------------------------------------------------- */

enum { SIZE, TYPE }; /* sizes of one_hot */

static void draw_one_hot(uint64_t *seed, test_call *call) {
  static const rondo_type types[] = {RONDO_F32, RONDO_F16, RONDO_BF16, RONDO_I32, RONDO_I64};
  size_t shape[RONDO_MAX_DIMENSIONS];
  const size_t rank = test_draw_between(seed, 0, 3);
  test_draw_shape(seed, rank, 6, shape);
  call->sizes[SIZE] = test_draw_between(seed, 1, 12);
  call->sizes[TYPE] = types[test_random_below(seed, 5)];
  test_tensor *indices = test_add_index(call, shape, rank, call->sizes[SIZE]);
  if (test_random_below(seed, 2) == 0) indices->type = RONDO_I64;
}

static rondo_status build_one_hot(const test_call *call, rondo_program *program, const rondo_value *in,
                                  rondo_value *result) {
  return rondo_op_one_hot(program, in[0], call->sizes[SIZE], (rondo_type)call->sizes[TYPE], result);
}

static void reference_one_hot(const test_call *call, double *const *in, double *y) {
  const size_t size = call->sizes[SIZE];
  for (size_t i = 0; i < test_input_elements(call, 0) * size; i++) y[i] = in[0][i / size] == (double)(i % size);
}

static void test_wrong_indices_one_hot(void **state) {
  test_fixture *t = *state;
  rondo_program *program = test_new_program();
  rondo_value indices, y, other;
  const int64_t wrong[] = {1, INT64_C(1) << 40};
  float result[2][2];
  assert_ok(rondo_program_input(program, "indices", RONDO_I64, (size_t[]){2}, 1, &indices));
  assert_invalid(rondo_op_one_hot(program, indices, 0, RONDO_F32, &y), RONDO_REASON_SHAPE);
  assert_invalid(rondo_op_one_hot(program, indices, 2, (rondo_type)77, &y), RONDO_REASON_TYPE);
  assert_ok(rondo_op_one_hot(program, indices, 2, RONDO_F32, &y));
  assert_invalid(rondo_op_one_hot(program, y, 2, RONDO_F32, &other), RONDO_REASON_TYPE);
  test_wrong_index(
      t, program, y, wrong, sizeof wrong,
      "one_hot (operator 0): indices has 2147483647 or more at position 1, which is not in 0 .. 1; its row is zeros",
      result, sizeof result);
  assert_near(result[0], ((float[]){0, 1, 0, 0}), 4, 0);
  rondo_program_destroy(program);
}

/* The whole -------------------------------------------------------------------------------------------------------- */

static const test_operator rows[] = {
    {.name = "embedding", .draw = draw_embedding, .build = build_embedding, .reference = reference_embedding},
    {.name = "gather", .draw = draw_gather, .build = build_gather, .reference = reference_picks},
    {.name = "index_select",
     .draw = draw_index_select,
     .build = build_index_select,
     .reference = reference_picks,
     .family = "shares its indices"},
    {.name = "one_hot",
     .draw = draw_one_hot,
     .build = build_one_hot,
     .reference = reference_one_hot,
     .only_f32 = true,
     .has_no_gradient = true},
};

int main(void) {
  const struct CMUnitTest others[] = {test_case(test_wrong_indices_embedding), test_case(test_wrong_indices_gather),
                                      test_case(test_wrong_indices_index_select),
                                      test_case(test_wrong_indices_one_hot)};
  return TEST_OPERATOR_MAIN(rows, others);
}
