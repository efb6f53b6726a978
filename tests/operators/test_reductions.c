/* SPDX-License-Identifier: MIT
 * Operators over dimensions: reductions, argmax and argmin, softmax and log_softmax. A row for each operator, with its
 * meaning in plain C.
 */
#include <math.h>
#include <stdlib.h>

#include "support/test_operator.h"
#include "support/test_program.h"

/* Reductions ------------------------------------------------------------------------------------------------------- */

typedef rondo_status (*reduce)(rondo_program *program, rondo_value value, const size_t *dims, size_t dim_count,
                               bool keeps, rondo_value *out_value);

typedef struct reduction {
  reduce op;
  double (*join)(double joined, double x);
  double none;  /* what joining begins with */
  bool is_mean; /* the result is divided by the number of elements */
  double low, high;
  double (*finish)(double joined); /* NULL: none */
} reduction;

/* Sizes: whether NULL means all dimensions, whether they are kept, how many there are, and the first of them. */
enum { ALL, KEEPS, COUNT, FIRST };

static void draw_dimensions(uint64_t *seed, test_call *call, size_t rank) {
  call->sizes[ALL] = test_random_below(seed, 6) == 0;
  call->sizes[KEEPS] = test_random_below(seed, 2);
  call->sizes[COUNT] = 0;
  for (size_t d = rank; d > 0; d--) {
    if (test_random_below(seed, 2) == 0) call->sizes[FIRST + call->sizes[COUNT]++] = d - 1;
  }
}

/* Sometimes one dimension is long, so that results are computed in parts. */
static void draw_reduction(uint64_t *seed, test_call *call) {
  const reduction *family = call->op->family;
  size_t shape[RONDO_MAX_DIMENSIONS];
  const size_t rank = test_draw_between(seed, 0, 6);
  test_draw_shape(seed, rank, rank > 4 ? 3 : 6, shape);
  if (rank > 0 && rank < 4 && test_random_below(seed, 3) == 0)
    shape[test_random_below(seed, (uint32_t)rank)] = test_draw_between(seed, 130, 1400);
  test_add_float(call, shape, rank, family->low, family->high);
  draw_dimensions(seed, call, rank);
}

static bool is_reduced(const test_call *call, size_t dimension) {
  bool named = call->sizes[ALL] != 0;
  for (size_t i = 0; i < call->sizes[COUNT]; i++) named = named || call->sizes[FIRST + i] == dimension;
  return named;
}

/* The index of the result that element `at` contributes to. */
static size_t result_of(const test_call *call, size_t at) {
  const test_tensor *x = &call->inputs[0];
  size_t result = 0, stride = 1;
  for (size_t d = x->rank; d > 0; d--) {
    const size_t position = at % x->shape[d - 1];
    at /= x->shape[d - 1];
    if (is_reduced(call, d - 1)) continue;
    result += position * stride;
    stride *= x->shape[d - 1];
  }
  return result;
}

static size_t result_count(const test_call *call) {
  size_t count = 1;
  for (size_t d = 0; d < call->inputs[0].rank; d++) count *= is_reduced(call, d) ? 1 : call->inputs[0].shape[d];
  return count;
}

static rondo_status build_reduction(const test_call *call, rondo_program *program, const rondo_value *in,
                                    rondo_value *result) {
  const reduction *family = call->op->family;
  return family->op(program, in[0], call->sizes[ALL] ? NULL : call->sizes + FIRST, call->sizes[COUNT],
                    call->sizes[KEEPS] != 0, result);
}

static void reference_reduction(const test_call *call, double *const *in, double *y) {
  const reduction *family = call->op->family;
  const size_t count = test_input_elements(call, 0), results = result_count(call);
  for (size_t i = 0; i < results; i++) y[i] = family->none;
  for (size_t i = 0; i < count; i++) y[result_of(call, i)] = family->join(y[result_of(call, i)], in[0][i]);
  for (size_t i = 0; i < results && family->is_mean; i++) y[i] /= (double)count / (double)results;
  for (size_t i = 0; i < results && family->finish != NULL; i++) y[i] = family->finish(y[i]);
}

static double add(double joined, double x) { return joined + x; }
static double multiply(double joined, double x) { return joined * x; }
static double either(double joined, double x) { return joined != 0 || x != 0; }
static double both(double joined, double x) { return joined != 0 && x != 0; }
static double add_exp(double joined, double x) { return joined + exp(x); }
static double add_square(double joined, double x) { return joined + x * x; }
static double add_cube(double joined, double x) { return joined + fabs(x * x * x); }
static double add_magnitude(double joined, double x) { return joined + fabs(x); }
static double add_if_not_0(double joined, double x) { return joined + (x != 0); }
static double larger_magnitude(double joined, double x) { return fmax(joined, fabs(x)); }
static double smaller_magnitude(double joined, double x) { return fmin(joined, fabs(x)); }

#define NORM(name, order)                                                                                           \
  static rondo_status name(rondo_program *program, rondo_value value, const size_t *dims, size_t count, bool keeps, \
                           rondo_value *out_value) {                                                                \
    return rondo_op_vector_norm(program, value, order, dims, count, keeps, out_value);                              \
  }
NORM(norm_0, 0)
NORM(norm_1, 1)
NORM(norm_2, 2)
NORM(norm_3, 3)
NORM(norm_largest, INFINITY)
NORM(norm_smallest, -INFINITY)

/* Of integers and BOOL: those of a type lower .. upper. I8 and U8 wrap around. */
static void draw_integers(uint64_t *seed, test_call *call) {
  static const rondo_type types[] = {RONDO_I32, RONDO_I64, RONDO_I8, RONDO_U8};
  const reduction *family = call->op->family;
  draw_reduction(seed, call);
  call->inputs[0].type = types[test_random_below(seed, 4)];
  call->inputs[0].low = call->inputs[0].type == RONDO_U8 ? fmax(family->low, 0) : family->low;
  call->inputs[0].high = family->high;
}

static void draw_flags(uint64_t *seed, test_call *call) {
  draw_reduction(seed, call);
  call->inputs[0].type = test_random_below(seed, 3) == 0 ? RONDO_I32 : RONDO_BOOL;
  call->inputs[0].low = 0;
  call->inputs[0].high = 2;
}

static void reference_of_integers(const test_call *call, double *const *in, double *y) {
  const rondo_type type = call->inputs[0].type;
  reference_reduction(call, in, y);
  for (size_t i = 0; i < result_count(call); i++) {
    if (type == RONDO_I8) y[i] = (int8_t)(uint8_t)(int)y[i];
    if (type == RONDO_U8) y[i] = (uint8_t)(int)y[i];
  }
}

/* Products and sums of I64 wrap around; extremes have all of the range. Sums are long enough to have parts. */
TEST(test_on3_reductions_of_large_integers) {
  enum { LENGTH = 9000 };
  int64_t *x = malloc(2 * LENGTH * sizeof *x), y[4][2];
  const size_t last = 1;
  rondo_program *program = test_new_program();
  rondo_value in, out[4];
  assert_non_null(x);
  for (size_t i = 0; i < LENGTH; i++) {
    x[i] = i == 77 ? INT64_MAX : i == 78 ? INT64_MIN : 1;
    x[LENGTH + i] = i % 100 == 0 ? INT64_MAX : -1;
  }
  assert_ok(rondo_program_input(program, "x", RONDO_I64, (size_t[]){2, LENGTH}, 2, &in));
  assert_ok(rondo_op_sum(program, in, &last, 1, false, &out[0]));
  assert_ok(rondo_op_prod(program, in, &last, 1, false, &out[1]));
  assert_ok(rondo_op_max(program, in, &last, 1, false, &out[2]));
  assert_ok(rondo_op_min(program, in, &last, 1, false, &out[3]));
  for (size_t i = 0; i < 4; i++) assert_ok(rondo_program_output(program, (const char[]){(char)('a' + i), 0}, out[i]));
  test_run_program(
      t, program, (const test_bytes[]){{"x", x, 2 * LENGTH * sizeof *x}, {.name = NULL}},
      (const test_bytes[]){
          TEST_BYTES("a", y[0]), TEST_BYTES("b", y[1]), TEST_BYTES("c", y[2]), TEST_BYTES("d", y[3]), {.name = NULL}});
  uint64_t sum = 0, product = 1;
  for (size_t i = 0; i < LENGTH; i++) {
    sum += (uint64_t)x[LENGTH + i];
    product *= (uint64_t)x[LENGTH + i];
  }
  assert_true(y[0][0] == LENGTH - 3 && y[0][1] == (int64_t)sum);
  assert_true(y[1][0] == INT64_MIN && y[1][1] == (int64_t)product);
  assert_true(y[2][0] == INT64_MAX && y[2][1] == INT64_MAX);
  assert_true(y[3][0] == INT64_MIN && y[3][1] == -1);
  free(x);
}

/* Where elements are 0, the gradient of a product is the product of the others; that of a norm of zeros is 0. */
TEST(test_on3_gradients_at_zero) {
  static const float x[4][3] = {{2, 3, 4}, {2, 0, 4}, {0, 0, 4}, {0, 0, 0}};
  float of_product[4][3], of_norm[4][3], norm[4];
  const size_t last = 1;
  rondo_program *program = test_new_program();
  rondo_value in, product, length, losses[2], gradients[2];
  assert_ok(rondo_program_input(program, "x", RONDO_F32, (size_t[]){4, 3}, 2, &in));
  assert_ok(rondo_op_prod(program, in, &last, 1, false, &product));
  assert_ok(rondo_op_vector_norm(program, in, 2, &last, 1, false, &length));
  assert_ok(rondo_op_sum(program, product, NULL, 0, false, &losses[0]));
  assert_ok(rondo_op_sum(program, length, NULL, 0, false, &losses[1]));
  for (int i = 0; i < 2; i++) assert_ok(rondo_program_gradients(program, losses[i], &in, 1, &gradients[i]));
  assert_ok(rondo_program_output(program, "product", gradients[0]));
  assert_ok(rondo_program_output(program, "norm", gradients[1]));
  assert_ok(rondo_program_output(program, "length", length));
  test_run_program(
      t, program, (const test_bytes[]){TEST_BYTES("x", x), {.name = NULL}},
      (const test_bytes[]){
          TEST_BYTES("product", of_product), TEST_BYTES("norm", of_norm), TEST_BYTES("length", norm), {.name = NULL}});
  assert_near(of_product[0], ((float[]){12, 8, 6, 0, 8, 0, 0, 0, 0, 0, 0, 0}), 12, 1e-5f);
  assert_near(of_norm[0], ((float[]){0.371390676f, 0.557086015f, 0.742781353f}), 3, 1e-6f);
  assert_near(of_norm[2], ((float[]){0, 0, 1, 0, 0, 0}), 6, 1e-6f);
  assert_near(norm, ((float[]){5.38516481f, 4.47213595f, 4, 0}), 4, 1e-5f);
}

/* Infinities, and sums of powers that F32 cannot hold. */
TEST(test_on3_log_sum_exp_ends) {
  static const float x[5][2] = {{-INFINITY, -INFINITY}, {INFINITY, 1}, {1000, 1000}, {-1000, -INFINITY}, {NAN, 0}};
  float y[5];
  const size_t last = 1;
  rondo_program *program = test_new_program();
  rondo_value in, out;
  assert_ok(rondo_program_input(program, "x", RONDO_F32, (size_t[]){5, 2}, 2, &in));
  assert_ok(rondo_op_log_sum_exp(program, in, &last, 1, false, &out));
  assert_ok(rondo_program_output(program, "y", out));
  test_run_program(t, program, (const test_bytes[]){TEST_BYTES("x", x), {.name = NULL}},
                   (const test_bytes[]){TEST_BYTES("y", y), {.name = NULL}});
  assert_true(y[0] == -INFINITY && y[1] == INFINITY && y[3] == -1000 && isnan(y[4]));
  assert_near(&y[2], ((float[]){1000.69312f}), 1, 1e-3f);
}

/* Of a negative order, the sum of powers of infinities is 0, and the norm infinite, as in NumPy. */
TEST(test_on3_norms_of_a_negative_order) {
  static const float x[3][2] = {{INFINITY, -INFINITY}, {INFINITY, 4}, {0, 3}};
  float y[3];
  const size_t last = 1;
  rondo_program *program = test_new_program();
  rondo_value in, out;
  assert_ok(rondo_program_input(program, "x", RONDO_F32, (size_t[]){3, 2}, 2, &in));
  assert_ok(rondo_op_vector_norm(program, in, -1, &last, 1, false, &out));
  assert_ok(rondo_program_output(program, "y", out));
  test_run_program(t, program, (const test_bytes[]){TEST_BYTES("x", x), {.name = NULL}},
                   (const test_bytes[]){TEST_BYTES("y", y), {.name = NULL}});
  assert_true(y[0] == INFINITY && fabsf(y[1] - 4) < 1e-5f && y[2] == 0);
}

UNIT_TEST(test_on3_composed_reductions) {
  rondo_program *program = test_new_program();
  rondo_value x, whole, y;
  const size_t twice[] = {1, 1}, missing = 2;
  assert_ok(rondo_program_input(program, "x", RONDO_F32, (size_t[]){2, 3}, 2, &x));
  assert_ok(rondo_program_input(program, "whole", RONDO_I32, (size_t[]){2, 3}, 2, &whole));
  assert_error(rondo_op_any(program, x, twice, 2, false, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE);
  assert_message("any: dimension 1 is named twice, or does not exist: the value has 2, counted from 0");
  assert_error(rondo_op_log_sum_exp(program, x, &missing, 1, false, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE);
  assert_error(rondo_op_log_sum_exp(program, whole, NULL, 0, false, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_TYPE);
  assert_message("log_sum_exp: the value is i32; it must be f32, f16 or bf16");
  assert_error(rondo_op_vector_norm(program, x, NAN, NULL, 0, false, &y), RONDO_INVALID_ARGUMENT,
               RONDO_REASON_OUT_OF_RANGE);
  assert_int_equal(y.id, 0);
  rondo_program_destroy(program);
}

UNIT_TEST(test_dimensions_that_are_not_there) {
  const size_t shape[] = {2, 3}, dims[] = {1, 2}, twice[] = {1, 1}, many[7] = {0};
  rondo_program *program = test_new_program();
  rondo_value x, y;
  assert_ok(rondo_program_input(program, "x", RONDO_F32, shape, 2, &x));
  assert_int_equal(rondo_op_sum(program, x, dims, 2, false, &y), RONDO_INVALID_ARGUMENT);
  assert_int_equal(rondo_last_error()->reason, RONDO_REASON_SHAPE);
  assert_int_equal(rondo_op_sum(program, x, twice, 2, false, &y), RONDO_INVALID_ARGUMENT);
  assert_int_equal(rondo_op_sum(program, x, many, 7, false, &y), RONDO_INVALID_ARGUMENT);
  assert_true(y.id == 0);
  assert_ok(rondo_program_input(program, "i", RONDO_I32, shape, 2, &x));
  assert_int_equal(rondo_op_mean(program, x, NULL, 0, false, &y), RONDO_INVALID_ARGUMENT);
  assert_int_equal(rondo_last_error()->reason, RONDO_REASON_TYPE);
  rondo_program_destroy(program);
}

/* Sums in parts, of rows and of columns, are as precise as sums with few additions in sequence. */
static void check_long_sum(test_fixture *t, size_t rows, size_t columns, size_t dimension) {
  const size_t shape[] = {rows, columns}, count = rows * columns, results = dimension == 0 ? columns : rows;
  float *x = malloc(count * sizeof *x), *y = malloc(results * sizeof *y);
  double *wanted = calloc(results, sizeof *wanted);
  rondo_program *program = test_new_program();
  rondo_value in, out;
  uint64_t seed = 3;
  assert_true(x != NULL && y != NULL && wanted != NULL);
  for (size_t i = 0; i < count; i++) {
    x[i] = (float)test_random_below(&seed, 1000) / 1000;
    wanted[dimension == 0 ? i % columns : i / columns] += (double)x[i];
  }
  assert_ok(rondo_program_input(program, "x", RONDO_F32, shape, 2, &in));
  assert_ok(rondo_op_sum(program, in, &dimension, 1, false, &out));
  assert_ok(rondo_program_output(program, "y", out));
  test_run_program(t, program, (const test_bytes[]){{"x", x, count * sizeof *x}, {.name = NULL}},
                   (const test_bytes[]){{"y", y, results * sizeof *y}, {.name = NULL}});
  for (size_t i = 0; i < results; i++) assert_true(fabs((double)y[i] - wanted[i]) < 2e-6 * wanted[i]);
  free(x);
  free(y);
  free(wanted);
}

TEST(test_long_sums) {
  check_long_sum(t, 3, 40001, 1);
  check_long_sum(t, 9001, 5, 0);
  check_long_sum(t, 700, 301, 0);
  check_long_sum(t, 600, 2500, 1);
  check_long_sum(t, 8192, 3, 0); /* the most rows without parts */
  check_long_sum(t, 8193, 3, 0);
  check_long_sum(t, 257, 300, 0);
}

/* For x [2, 4] along the last dimension: the first, third and fourth elements of the first row are the extreme and
 * share the gradient; the second row has a NaN. */
static void check_extreme(test_fixture *t, reduce op, float x[8]) {
  const size_t shape[] = {2, 4}, last = 1;
  float y[2], dx[8];
  rondo_program *program = test_new_program();
  rondo_value in, out, loss, gradient;
  assert_ok(rondo_program_input(program, "x", RONDO_F32, shape, 2, &in));
  assert_ok(op(program, in, &last, 1, false, &out));
  assert_ok(rondo_op_sum(program, out, NULL, 0, false, &loss));
  assert_ok(rondo_program_gradients(program, loss, &in, 1, &gradient));
  assert_ok(rondo_program_output(program, "y", out));
  assert_ok(rondo_program_output(program, "dx", gradient));
  test_run_program(t, program, (const test_bytes[]){{"x", x, 8 * sizeof *x}, {.name = NULL}},
                   (const test_bytes[]){TEST_BYTES("y", y), TEST_BYTES("dx", dx), {.name = NULL}});
  assert_true(y[0] == x[0] && isnan(y[1]));
  assert_near(dx, ((float[]){1.0f / 3, 0, 1.0f / 3, 1.0f / 3}), 4, 1e-6f);
}

TEST(test_max_shares) { check_extreme(t, rondo_op_max, (float[]){3, 1, 3, 3, -INFINITY, NAN, 5, -5}); }

TEST(test_min_shares) { check_extreme(t, rondo_op_min, (float[]){1, 3, 1, 1, INFINITY, NAN, 5, -5}); }

/* argmax and argmin ------------------------------------------------------------------------------------------------ */

enum { PLACE_DIMENSION, PLACE_KEEPS }; /* sizes */

/* Sometimes a dimension is long, so that a row needs more than a warp or a chunk. */
static void draw_places(uint64_t *seed, test_call *call) {
  size_t shape[RONDO_MAX_DIMENSIONS];
  const size_t rank = test_draw_between(seed, 1, 4);
  test_draw_shape(seed, rank, 6, shape);
  if (test_random_below(seed, 3) == 0)
    shape[test_random_below(seed, (uint32_t)rank)] = test_draw_between(seed, 200, 1300);
  test_add_float(call, shape, rank, -1, 1);
  call->sizes[PLACE_DIMENSION] = test_random_below(seed, (uint32_t)rank);
  call->sizes[PLACE_KEEPS] = test_random_below(seed, 2);
}

static void draw_places_of_integers(uint64_t *seed, test_call *call) {
  draw_places(seed, call);
  call->inputs[0].type = test_random_below(seed, 2) == 0 ? RONDO_I32 : RONDO_I64;
  call->inputs[0].low = -40;
  call->inputs[0].high = 40;
}

typedef struct place {
  rondo_status (*op)(rondo_program *program, rondo_value value, size_t dimension, bool keeps, rondo_value *out_value);
  double sign;  /* the place of the largest of sign x */
  bool is_last; /* of equal ones */
} place;

static rondo_status build_place(const test_call *call, rondo_program *program, const rondo_value *in,
                                rondo_value *result) {
  const place *family = call->op->family;
  return family->op(program, in[0], call->sizes[PLACE_DIMENSION], call->sizes[PLACE_KEEPS] != 0, result);
}

static void reference_place(const test_call *call, double *const *in, double *y) {
  const place *family = call->op->family;
  const double *x = in[0], sign = family->sign;
  const test_tensor *value = &call->inputs[0];
  const size_t dimension = call->sizes[PLACE_DIMENSION], size = value->shape[dimension];
  const size_t inner = test_elements(value->shape + dimension + 1, value->rank - dimension - 1);
  for (size_t i = 0; i < test_input_elements(call, 0) / size; i++) {
    const double *from = x + i / inner * size * inner + i % inner;
    size_t best = 0;
    for (size_t k = 1; k < size; k++) {
      const double difference = sign * (from[k * inner] - from[best * inner]);
      if (difference > 0 || (difference == 0 && family->is_last)) best = k;
    }
    y[i] = (double)best;
  }
}

/* Along dimensions 1 and 0 of a value with a NaN. */
TEST(test_places_of_nan) {
  rondo_program *program = test_new_program();
  rondo_value x, y;
  const float given[2][3] = {{1, NAN, 3}, {-INFINITY, 2, -INFINITY}};
  int32_t across[2], down[3];
  assert_ok(rondo_program_input(program, "x", RONDO_F32, (size_t[]){2, 3}, 2, &x));
  assert_invalid(rondo_op_argmax(program, x, 2, false, &y), RONDO_REASON_SHAPE);
  assert_message("there is no dimension 2: value has 2, counted from 0");
  assert_ok(rondo_op_argmax(program, x, 1, false, &y));
  assert_ok(rondo_program_output(program, "across", y));
  assert_ok(rondo_op_argmin(program, x, 0, false, &y));
  assert_ok(rondo_program_output(program, "down", y));
  test_run_program(t, program, (const test_bytes[]){TEST_BYTES("x", given), {.name = NULL}},
                   (const test_bytes[]){TEST_BYTES("across", across), TEST_BYTES("down", down), {.name = NULL}});
  assert_memory_equal(across, ((int32_t[]){1, 1}), sizeof across);
  assert_memory_equal(down, ((int32_t[]){1, 0, 1}), sizeof down);
}

/* softmax and log_softmax ------------------------------------------------------------------------------------------ */

/* Sometimes rows are long. */
static void draw_rows(uint64_t *seed, test_call *call) {
  size_t shape[RONDO_MAX_DIMENSIONS];
  const size_t rank = test_draw_between(seed, 1, 4);
  test_draw_shape(seed, rank, 7, shape);
  if (test_random_below(seed, 4) == 0) shape[rank - 1] = test_draw_between(seed, 200, 1500);
  test_add_float(call, shape, rank, -4, 4);
}

typedef struct row_operator {
  rondo_status (*op)(rondo_program *program, rondo_value value, rondo_value *out_value);
  double (*value_of)(double x, double sum); /* sum: of exp(x) over the row */
} row_operator;

static rondo_status build_rows(const test_call *call, rondo_program *program, const rondo_value *in,
                               rondo_value *result) {
  const row_operator *family = call->op->family;
  return family->op(program, in[0], result);
}

static void reference_rows(const test_call *call, double *const *in, double *y) {
  const row_operator *family = call->op->family;
  const double *x = in[0];
  const size_t columns = call->inputs[0].shape[call->inputs[0].rank - 1];
  for (size_t row = 0; row < test_input_elements(call, 0); row += columns) {
    double sum = 0;
    for (size_t i = row; i < row + columns; i++) sum += exp(x[i]);
    for (size_t i = row; i < row + columns; i++) y[i] = family->value_of(x[i], sum);
  }
}

static double softmax(double x, double sum) { return exp(x) / sum; }
static double log_softmax(double x, double sum) { return x - log(sum); }

/* The whole -------------------------------------------------------------------------------------------------------- */

#define REDUCTION(op, join, none, is_mean, low, high)                                                             \
  .draw = draw_reduction, .build = build_reduction, .reference = reference_reduction, .gradient_tolerance = 1e-3, \
  .family = &(const reduction) {                                                                                  \
    op, join, none, is_mean, low, high, NULL                                                                      \
  }
#define COMPOSED(op, join, none, low, high, finish)                                                               \
  .draw = draw_reduction, .build = build_reduction, .reference = reference_reduction, .gradient_tolerance = 1e-3, \
  .family = &(const reduction) {                                                                                  \
    op, join, none, false, low, high, finish                                                                      \
  }
#define INTEGERS(draws, op, join, none, low, high)                                               \
  .draw = draws, .build = build_reduction, .reference = reference_of_integers, .only_f32 = true, \
  .has_no_gradient = true, .family = &(const reduction) {                                        \
    op, join, none, false, low, high, NULL                                                       \
  }
#define PLACES(op, sign)                                                                                  \
  .build = build_place, .reference = reference_place, .has_no_gradient = true, .family = &(const place) { \
    op, sign, false                                                                                       \
  }
#define LAST_PLACES(op, sign)                                                                             \
  .build = build_place, .reference = reference_place, .has_no_gradient = true, .family = &(const place) { \
    op, sign, true                                                                                        \
  }
#define ROWS(op, value_of) \
  .draw = draw_rows, .build = build_rows, .reference = reference_rows, .family = &(const row_operator) { op, value_of }

static const test_operator rows[] = {
    {.name = "sum", REDUCTION(rondo_op_sum, add, 0, false, -1, 2), .tolerance = 1e-5},
    {.name = "mean", REDUCTION(rondo_op_mean, add, 0, true, -1, 2), .tolerance = 1e-5},
    {.name = "max", REDUCTION(rondo_op_max, fmax, -INFINITY, false, -1, 2), .tolerance = 1e-7, .has_ties = true},
    {.name = "min", REDUCTION(rondo_op_min, fmin, INFINITY, false, -2, 1), .tolerance = 1e-7, .has_ties = true},
    {.name = "prod", REDUCTION(rondo_op_prod, multiply, 1, false, 0.9, 1.1), .tolerance = 2e-5},
    {.name = "sum", INTEGERS(draw_integers, rondo_op_sum, add, 0, -128, 128)},
    {.name = "prod", INTEGERS(draw_integers, rondo_op_prod, multiply, 1, -1, 2)},
    {.name = "max", INTEGERS(draw_integers, rondo_op_max, fmax, -INFINITY, -128, 128)},
    {.name = "min", INTEGERS(draw_integers, rondo_op_min, fmin, INFINITY, -128, 128)},
    {.name = "max", INTEGERS(draw_flags, rondo_op_max, fmax, -INFINITY, 0, 2)},
    {.name = "any", INTEGERS(draw_flags, rondo_op_any, either, 0, 0, 2)},
    {.name = "all", INTEGERS(draw_flags, rondo_op_all, both, 1, 0, 2)},
    {.name = "log_sum_exp", COMPOSED(rondo_op_log_sum_exp, add_exp, 0, -3, 3, log)},
    {.name = "norm 0", COMPOSED(norm_0, add_if_not_0, 0, -1, 2, NULL), .has_no_gradient = true, .only_f32 = true},
    {.name = "norm 1", COMPOSED(norm_1, add_magnitude, 0, -1, 2, NULL), .has_ties = true, .tolerance = 1e-5},
    {.name = "norm 2", COMPOSED(norm_2, add_square, 0, -1, 2, sqrt), .tolerance = 1e-5},
    {.name = "norm 3", COMPOSED(norm_3, add_cube, 0, -1, 2, cbrt), .tolerance = 1e-5, .only_f32 = true},
    {.name = "norm inf", COMPOSED(norm_largest, larger_magnitude, 0, -1, 2, NULL), .has_ties = true, .only_f32 = true},
    {.name = "norm -inf",
     COMPOSED(norm_smallest, smaller_magnitude, INFINITY, -1, 2, NULL),
     .has_ties = true,
     .only_f32 = true},
    {.name = "argmax_last", LAST_PLACES(rondo_op_argmax_last, 1), .draw = draw_places_of_integers, .only_f32 = true},
    {.name = "argmin_last", LAST_PLACES(rondo_op_argmin_last, -1), .draw = draw_places_of_integers, .only_f32 = true},
    {.name = "argmax", PLACES(rondo_op_argmax, 1), .draw = draw_places},
    {.name = "argmax", PLACES(rondo_op_argmax, 1), .draw = draw_places_of_integers, .only_f32 = true},
    {.name = "argmin", PLACES(rondo_op_argmin, -1), .draw = draw_places},
    {.name = "argmin", PLACES(rondo_op_argmin, -1), .draw = draw_places_of_integers, .only_f32 = true},
    {.name = "softmax",
     ROWS(rondo_op_softmax, softmax),
     .tolerance = 2e-6,
     .gradient_tolerance = 1e-5,
     .gradient_samples = 200},
    {.name = "softmax", ROWS(rondo_op_softmax, softmax), .takes_nan = true},
    {.name = "log_softmax", ROWS(rondo_op_log_softmax, log_softmax)},
};

TEST_OPERATOR_MAIN(rows)
