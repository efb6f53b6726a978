/* SPDX-License-Identifier: MIT
 * topk (PR-8): values and indices, along each dimension, the largest and the smallest, of floats and integers.
 */
#include <math.h>
#include <string.h>

#include "support/test_operator.h"
#include "support/test_program.h"

enum { DIMENSION, K, SMALLEST }; /* sizes */

static void draw(uint64_t *seed, test_call *call) {
  size_t shape[RONDO_MAX_DIMENSIONS];
  const size_t rank = test_draw_between(seed, 1, 4);
  test_draw_shape(seed, rank, 6, shape);
  if (test_random_below(seed, 3) == 0) shape[rank - 1] = test_draw_between(seed, 200, 700);
  call->sizes[DIMENSION] = test_draw_between(seed, 0, rank - 1);
  call->sizes[K] = test_draw_between(seed, 1, shape[call->sizes[DIMENSION]]);
  call->sizes[SMALLEST] = test_draw_between(seed, 0, 1);
  test_add_float(call, shape, rank, -2, 2);
}

/* Of which many are equal. */
static void draw_integers(uint64_t *seed, test_call *call) {
  static const rondo_type types[] = {RONDO_I32, RONDO_I64, RONDO_I8, RONDO_U8};
  draw(seed, call);
  call->inputs[0].type = types[test_random_below(seed, 4)];
  call->inputs[0].low = call->inputs[0].type == RONDO_U8 ? 0 : -4;
  call->inputs[0].high = 5;
}

static rondo_status build_values(const test_call *call, rondo_program *program, const rondo_value *in,
                                 rondo_value *result) {
  rondo_value indices;
  return rondo_op_topk(program, in[0], call->sizes[K], call->sizes[DIMENSION], call->sizes[SMALLEST] != 0, result,
                       &indices);
}

static rondo_status build_indices(const test_call *call, rondo_program *program, const rondo_value *in,
                                  rondo_value *result) {
  rondo_value values;
  return rondo_op_topk(program, in[0], call->sizes[K], call->sizes[DIMENSION], call->sizes[SMALLEST] != 0, &values,
                       result);
}

/* How many elements of the column come before element `at`. */
static size_t place_of(const test_call *call, const double *column, size_t size, size_t inner, size_t at) {
  size_t before = 0;
  for (size_t i = 0; i < size; i++) {
    const double own = column[at * inner], other = column[i * inner];
    const bool is_better = call->sizes[SMALLEST] ? other < own : other > own;
    before += is_better || (other == own && i < at);
  }
  return before;
}

static void find(const test_call *call, const double *x, double *y, bool wants_indices) {
  const test_tensor *value = &call->inputs[0];
  const size_t dimension = call->sizes[DIMENSION], size = value->shape[dimension], k = call->sizes[K];
  const size_t inner = test_elements(value->shape + dimension + 1, value->rank - dimension - 1);
  for (size_t i = 0; i < test_input_elements(call, 0); i++) {
    const size_t outer = i / (size * inner), at = i / inner % size, inside = i % inner;
    const size_t place = place_of(call, x + outer * size * inner + inside, size, inner, at);
    if (place < k) y[(outer * k + place) * inner + inside] = wants_indices ? (double)at : x[i];
  }
}

static void reference_values(const test_call *call, double *const *in, double *y) { find(call, in[0], y, false); }
static void reference_indices(const test_call *call, double *const *in, double *y) { find(call, in[0], y, true); }

/* NaN is larger than all numbers, and zeros of both signs are equal. */
TEST(test_special_values_in_order) {
  static const float x[] = {0, -INFINITY, NAN, -0.0f, INFINITY, -1, NAN, 1};
  static const int32_t largest[] = {2, 6, 4, 7, 0, 3, 5, 1}, smallest[] = {1, 5, 0, 3, 7, 4, 2, 6};
  int32_t y[2][8];
  rondo_program *program = test_new_program();
  rondo_value in, values, indices[2];
  assert_ok(rondo_program_input(program, "x", RONDO_F32, (size_t[]){8}, 1, &in));
  assert_ok(rondo_op_topk(program, in, 8, 0, false, &values, &indices[0]));
  assert_ok(rondo_op_topk(program, in, 8, 0, true, &values, &indices[1]));
  assert_ok(rondo_program_output(program, "largest", indices[0]));
  assert_ok(rondo_program_output(program, "smallest", indices[1]));
  test_run_program(t, program, (const test_bytes[]){TEST_BYTES("x", x), {.name = NULL}},
                   (const test_bytes[]){TEST_BYTES("largest", y[0]), TEST_BYTES("smallest", y[1]), {.name = NULL}});
  assert_memory_equal(y[0], largest, sizeof largest);
  assert_memory_equal(y[1], smallest, sizeof smallest);
}

UNIT_TEST(test_what_cannot_be_chosen) {
  rondo_program *program = test_new_program();
  rondo_value x, flags, y, indices;
  assert_ok(rondo_program_input(program, "x", RONDO_F32, (size_t[]){3}, 1, &x));
  assert_ok(rondo_program_input(program, "flags", RONDO_BOOL, (size_t[]){3}, 1, &flags));
  assert_error(rondo_op_topk(program, x, 0, 0, false, &y, &indices), RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE);
  assert_error(rondo_op_topk(program, x, 4, 0, false, &y, &indices), RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE);
  assert_message("topk(value 'x' [3]): 4 elements of 3");
  assert_error(rondo_op_topk(program, x, 1, 1, false, &y, &indices), RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE);
  assert_error(rondo_op_topk(program, flags, 1, 0, false, &y, &indices), RONDO_INVALID_ARGUMENT, RONDO_REASON_TYPE);
  assert_error(rondo_op_topk(program, x, 1, 0, false, &y, NULL), RONDO_INVALID_ARGUMENT, RONDO_REASON_NULL_ARGUMENT);
  assert_true(y.id == 0 && indices.id == 0);
  rondo_program_destroy(program);
}

#define VALUES .build = build_values, .reference = reference_values
#define INDICES .build = build_indices, .reference = reference_indices, .has_no_gradient = true

static const test_operator rows[] = {
    {.name = "topk", .draw = draw, VALUES, .has_ties = true},
    {.name = "topk", .draw = draw, INDICES},
    {.name = "topk", .draw = draw_integers, VALUES, .only_f32 = true, .has_no_gradient = true},
    {.name = "topk", .draw = draw_integers, INDICES, .only_f32 = true},
};

TEST_OPERATOR_MAIN(rows)
