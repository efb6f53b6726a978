/* SPDX-License-Identifier: MIT
 * scatter, scatter_add and scatter_reduce (PR-8): along each dimension, with indices that are equal.
 */
#include <math.h>
#include <string.h>

#include "support/test_operator.h"
#include "support/test_program.h"

enum { DIMENSION };               /* sizes */
enum { VALUE, INDICES, UPDATES }; /* inputs */

typedef rondo_status (*scatter_op)(rondo_program *program, rondo_value value, size_t dimension, rondo_value indices,
                                   rondo_value updates, rondo_value *out_value);

typedef struct scatter {
  scatter_op op;
  double (*combine)(double old, double update);
} scatter;

static void draw(uint64_t *seed, test_call *call) {
  size_t shape[RONDO_MAX_DIMENSIONS];
  const size_t rank = test_draw_between(seed, 1, 4);
  test_draw_shape(seed, rank, 6, shape);
  const size_t dimension = call->sizes[DIMENSION] = test_draw_between(seed, 0, rank - 1), size = shape[dimension];
  test_add_float(call, shape, rank, -2, 2);
  shape[dimension] = test_draw_between(seed, 1, 7);
  for (size_t d = 0; d < rank && test_random_below(seed, 3) == 0; d++)
    if (d != dimension) shape[d] = test_draw_between(seed, 1, shape[d]);
  test_tensor *indices = test_add_index(call, shape, rank, size);
  if (test_random_below(seed, 2) == 0) indices->type = RONDO_I64;
  test_add_float(call, shape, rank, -2, 2);
}

/* No index twice, for which the gradient of a replacement is defined: a permutation's part of each column. */
static void draw_different(uint64_t *seed, test_call *call) {
  static double indices[8];
  const size_t size = test_draw_between(seed, 2, 8), picked = test_draw_between(seed, 1, size);
  for (size_t i = 0; i < picked; i++) indices[i] = (double)((3 * i + 1) % size);
  if (size % 3 == 0)
    for (size_t i = 0; i < picked; i++) indices[i] = (double)(size - 1 - i);
  test_add_float(call, &size, 1, -2, 2);
  test_add_index(call, &picked, 1, size)->values = indices;
  test_add_float(call, &picked, 1, -2, 2);
}

static void draw_integers(uint64_t *seed, test_call *call) {
  static const rondo_type types[] = {RONDO_I32, RONDO_I64, RONDO_I8};
  draw(seed, call);
  for (size_t i = 0; i < 3; i += 2) {
    call->inputs[i].type = i == 0 ? types[test_random_below(seed, 3)] : call->inputs[0].type;
    call->inputs[i].low = -2;
    call->inputs[i].high = 3;
  }
}

/* Several blocks of columns. */
static void draw_wide(uint64_t *seed, test_call *call) {
  size_t shape[] = {3, 4, 3000 + test_draw_between(seed, 0, 7)};
  call->sizes[DIMENSION] = 1;
  test_add_float(call, shape, 3, -2, 2);
  shape[1] = 5;
  test_add_index(call, shape, 3, 4);
  test_add_float(call, shape, 3, -2, 2);
}

static rondo_status build(const test_call *call, rondo_program *program, const rondo_value *in, rondo_value *y) {
  const scatter *family = call->op->family;
  return family->op(program, in[VALUE], call->sizes[DIMENSION], in[INDICES], in[UPDATES], y);
}

/* Where update `at` goes. */
static size_t place_of(const test_call *call, size_t at, size_t index) {
  const test_tensor *value = &call->inputs[VALUE], *updates = &call->inputs[UPDATES];
  size_t place = 0, stride = 1;
  for (size_t d = value->rank; d > 0; d--) {
    place += (d - 1 == call->sizes[DIMENSION] ? index : at % updates->shape[d - 1]) * stride;
    at /= updates->shape[d - 1];
    stride *= value->shape[d - 1];
  }
  return place;
}

static void reference(const test_call *call, double *const *in, double *y) {
  const scatter *family = call->op->family;
  memcpy(y, in[VALUE], test_input_elements(call, VALUE) * sizeof *y);
  for (size_t i = 0; i < test_input_elements(call, UPDATES); i++) {
    double *to = &y[place_of(call, i, (size_t)in[INDICES][i])];
    *to = family->combine(*to, in[UPDATES][i]);
    if (call->inputs[VALUE].type == RONDO_I8) *to = (double)(int8_t)(uint8_t)(int)*to;
  }
}

static double replaced(double old, double update) {
  (void)old;
  return update;
}
static double sum(double old, double update) { return old + update; }
static double product(double old, double update) { return old * update; }

static rondo_status multiply(rondo_program *program, rondo_value value, size_t dimension, rondo_value indices,
                             rondo_value updates, rondo_value *out_value) {
  return rondo_op_scatter_reduce(program, value, dimension, indices, updates, RONDO_SCATTER_MUL, out_value);
}
static rondo_status raise(rondo_program *program, rondo_value value, size_t dimension, rondo_value indices,
                          rondo_value updates, rondo_value *out_value) {
  return rondo_op_scatter_reduce(program, value, dimension, indices, updates, RONDO_SCATTER_MAX, out_value);
}
static rondo_status lower(rondo_program *program, rondo_value value, size_t dimension, rondo_value indices,
                          rondo_value updates, rondo_value *out_value) {
  return rondo_op_scatter_reduce(program, value, dimension, indices, updates, RONDO_SCATTER_MIN, out_value);
}
static rondo_status add_up(rondo_program *program, rondo_value value, size_t dimension, rondo_value indices,
                           rondo_value updates, rondo_value *out_value) {
  return rondo_op_scatter_reduce(program, value, dimension, indices, updates, RONDO_SCATTER_ADD, out_value);
}

TEST(test_wrong_indices_of_scatter) {
  static const int64_t indices[] = {1, 3, -1, 0};
  static const float wanted[] = {7, 7, 0};
  float y[3];
  rondo_program *program = test_new_program();
  rondo_value value, updates, in, out;
  assert_ok(rondo_op_full(program, RONDO_F32, (size_t[]){3}, 1, 0, &value));
  assert_ok(rondo_op_full(program, RONDO_F32, (size_t[]){4}, 1, 7, &updates));
  assert_ok(rondo_program_input(program, "indices", RONDO_I64, (size_t[]){4}, 1, &in));
  assert_ok(rondo_op_scatter(program, value, 0, in, updates, &out));
  test_wrong_index(t, program, out, indices, sizeof indices, "its update was left out", y, sizeof y);
  assert_memory_equal(y, wanted, sizeof wanted);
  rondo_program_destroy(program);
}

UNIT_TEST(test_what_cannot_be_scattered) {
  rondo_program *program = test_new_program();
  rondo_value x, half, indices, many, few, updates, flags, y;
  assert_ok(rondo_program_input(program, "x", RONDO_F32, (size_t[]){3, 4}, 2, &x));
  assert_ok(rondo_program_input(program, "half", RONDO_F16, (size_t[]){2, 4}, 2, &half));
  assert_ok(rondo_program_input(program, "indices", RONDO_I32, (size_t[]){2, 4}, 2, &indices));
  assert_ok(rondo_program_input(program, "many", RONDO_I32, (size_t[]){3, 4}, 2, &many));
  assert_ok(rondo_program_input(program, "few", RONDO_I32, (size_t[]){2, 3}, 2, &few));
  assert_ok(rondo_program_input(program, "updates", RONDO_F32, (size_t[]){2, 4}, 2, &updates));
  assert_ok(rondo_program_input(program, "flags", RONDO_BOOL, (size_t[]){3, 4}, 2, &flags));
  assert_error(rondo_op_scatter(program, x, 2, indices, updates, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE);
  assert_error(rondo_op_scatter(program, updates, 1, many, x, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE);
  assert_error(rondo_op_scatter(program, x, 0, few, updates, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE);
  assert_error(rondo_op_scatter(program, x, 0, indices, half, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_TYPE);
  assert_error(rondo_op_scatter(program, x, 0, updates, updates, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_TYPE);
  assert_error(rondo_op_scatter_add(program, flags, 0, indices, flags, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_TYPE);
  assert_error(rondo_op_scatter_reduce(program, x, 0, indices, updates, (rondo_scatter_reduction)5, &y),
               RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE);
  assert_true(y.id == 0);
  assert_ok(rondo_op_scatter(program, x, 0, indices, updates, &y));
  rondo_program_destroy(program);
}

#define SCATTER(op, combine) \
  .build = build, .reference = reference, .family = &(const scatter) { op, combine }
#define NO_GRADIENT .has_no_gradient = true
#define OF_INTEGERS .draw = draw_integers, .only_f32 = true, NO_GRADIENT
#define ROUNDED .tolerance = 0x1p-4 /* each sum of 16-bit floats is rounded */

static const test_operator rows[] = {
    {.name = "scatter", SCATTER(rondo_op_scatter, replaced), .draw = draw, NO_GRADIENT},
    {.name = "scatter", SCATTER(rondo_op_scatter, replaced), .draw = draw_wide, NO_GRADIENT, .only_f32 = true},
    {.name = "scatter", SCATTER(rondo_op_scatter, replaced), .draw = draw_different},
    {.name = "scatter", SCATTER(rondo_op_scatter, replaced), OF_INTEGERS},
    {.name = "scatter_add", SCATTER(rondo_op_scatter_add, sum), .draw = draw, .only_f32 = true},
    {.name = "scatter_add", SCATTER(rondo_op_scatter_add, sum), .draw = draw, ROUNDED},
    {.name = "scatter_add", SCATTER(add_up, sum), OF_INTEGERS},
    {.name = "scatter_reduce", SCATTER(multiply, product), .draw = draw, NO_GRADIENT, .only_f32 = true},
    {.name = "scatter_reduce", SCATTER(multiply, product), OF_INTEGERS},
    {.name = "scatter_reduce", SCATTER(raise, fmax), .draw = draw, NO_GRADIENT},
    {.name = "scatter_reduce", SCATTER(lower, fmin), .draw = draw, NO_GRADIENT},
    {.name = "scatter_reduce", SCATTER(lower, fmin), OF_INTEGERS},
};

TEST_OPERATOR_MAIN(rows)
