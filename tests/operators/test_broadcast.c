/* SPDX-License-Identifier: MIT
 * Element-wise operators whose inputs are broadcast: a row for each operator and kind of input, with its value in plain
 * C. Inputs have random shapes that fit together.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "support/test_operator.h"
#include "support/test_program.h"

/* Shapes ----------------------------------------------------------------------------------------------------------- */

#define MOST_COARSE 4096

/* Numbers of which many are equal, for inputs of up to MOST_COARSE elements. */
static const double *coarse_numbers(void) {
  static double numbers[2 * MOST_COARSE];
  uint64_t seed = 5;
  for (size_t i = 0; numbers[0] == 0 && i < 2 * MOST_COARSE; i++)
    numbers[i] = ((double)test_random_below(&seed, 5) + 1) / 2;
  return numbers;
}

/* `count` inputs, random in low .. high, whose shapes broadcast: dimensions of a common shape, of which each may lack
 * the first ones and have others as 1. */
static void draw_broadcast(uint64_t *seed, test_call *call, size_t count, double low, double high) {
  size_t shape[RONDO_MAX_DIMENSIONS];
  const size_t rank = test_draw_between(seed, 0, 6);
  test_draw_shape(seed, rank, rank > 4 ? 3 : 6, shape);
  if (rank > 0 && rank < 4 && test_random_below(seed, 4) == 0)
    shape[rank - 1] = test_draw_between(seed, 250, 600) & ~3u;
  for (size_t i = 0; i < count; i++) {
    const size_t lacks = test_random_below(seed, 3) == 0 ? test_draw_between(seed, 0, rank) : 0;
    size_t own[RONDO_MAX_DIMENSIONS];
    for (size_t d = lacks; d < rank; d++) own[d - lacks] = test_random_below(seed, 4) == 0 ? 1 : shape[d];
    test_add_float(call, own, rank - lacks, low, high);
  }
}

/* The same of integers. U8 from 0 on. */
static void draw_broadcast_integers(uint64_t *seed, test_call *call, size_t count, double low, double high) {
  static const rondo_type types[] = {RONDO_I32, RONDO_I64, RONDO_I8, RONDO_U8};
  const rondo_type type = types[test_random_below(seed, 4)];
  draw_broadcast(seed, call, count, type == RONDO_U8 ? 0 : low, high);
  for (size_t i = 0; i < count; i++) call->inputs[i].type = type;
}

/* Elements of the shape that the inputs have together. */
static size_t broadcast_shape(const test_call *call, size_t *shape, size_t *rank) {
  *rank = 0;
  for (size_t d = 0; d < RONDO_MAX_DIMENSIONS; d++) shape[d] = 1;
  for (size_t i = 0; i < call->input_count; i++) *rank = call->inputs[i].rank > *rank ? call->inputs[i].rank : *rank;
  for (size_t i = 0; i < call->input_count; i++) {
    const test_tensor *input = &call->inputs[i];
    for (size_t d = 0; d < input->rank; d++) {
      size_t *dim = &shape[*rank - input->rank + d];
      if (input->shape[d] > *dim) *dim = input->shape[d];
    }
  }
  return test_elements(shape, *rank);
}

/* Which element of an input the element `at` of the result is made of. */
static size_t broadcast_index(const test_call *call, size_t input, const size_t *shape, size_t rank, size_t at) {
  const test_tensor *of = &call->inputs[input];
  size_t index = 0, stride = 1;
  for (size_t d = rank; d > 0; d--) {
    const size_t position = at % shape[d - 1];
    at /= shape[d - 1];
    if (rank - d >= of->rank) continue;
    const size_t dim = of->shape[of->rank - 1 - (rank - d)];
    if (dim != 1) index += position * stride;
    stride *= dim;
  }
  return index;
}

/* result[i] = value_at(a, b) */
static void reference_broadcast(const test_call *call, double *const *inputs, double *result,
                                double (*value_at)(double a, double b)) {
  size_t shape[RONDO_MAX_DIMENSIONS], rank;
  const size_t count = broadcast_shape(call, shape, &rank);
  for (size_t i = 0; i < count; i++) {
    result[i] = value_at(inputs[0][broadcast_index(call, 0, shape, rank, i)],
                         inputs[1][broadcast_index(call, 1, shape, rank, i)]);
  }
}

/* The table of operators with two inputs --------------------------------------------------------------------------- */

typedef struct binary {
  rondo_status (*op)(rondo_program *program, rondo_value a, rondo_value b, rondo_value *out_value);
  double (*value_at)(double a, double b);
} binary;

static rondo_status build(const test_call *call, rondo_program *program, const rondo_value *in, rondo_value *result) {
  const binary *family = call->op->family;
  return family->op(program, in[0], in[1], result);
}

static void reference(const test_call *call, double *const *in, double *y) {
  const binary *family = call->op->family;
  reference_broadcast(call, in, y, family->value_at);
  const rondo_type type = call->inputs[0].type;
  if (type != RONDO_I8 && type != RONDO_U8) return;
  size_t shape[RONDO_MAX_DIMENSIONS], rank;
  const size_t count = broadcast_shape(call, shape, &rank);
  for (size_t i = 0; i < count; i++) {
    const int wide = (int)y[i];
    y[i] = type == RONDO_I8 ? (double)(int8_t)(uint8_t)wide : (double)(uint8_t)wide;
  }
}

/* Two inputs of which many elements are equal. */
static void draw_coarse(uint64_t *seed, test_call *call) {
  draw_broadcast(seed, call, 2, -3, 3);
  for (size_t i = 0; i < 2; i++) {
    if (test_input_elements(call, i) <= MOST_COARSE) call->inputs[i].values = coarse_numbers() + i * MOST_COARSE;
  }
}

static void draw_floats(uint64_t *seed, test_call *call) { draw_broadcast(seed, call, 2, -3, 3); }
static void draw_integers(uint64_t *seed, test_call *call) { draw_broadcast_integers(seed, call, 2, -50, 50); }
static void draw_few_integers(uint64_t *seed, test_call *call) { draw_broadcast_integers(seed, call, 2, -2, 2); }

static void draw_bool(uint64_t *seed, test_call *call) {
  draw_broadcast(seed, call, 2, 0, 2);
  for (size_t i = 0; i < 2; i++) call->inputs[i].type = RONDO_BOOL;
}

static void draw_positive(uint64_t *seed, test_call *call) { draw_broadcast(seed, call, 2, 0.5, 3); }

/* Of small types, the numbers wrap around: see reference. */
static double sum_of(double a, double b) { return a + b; }
static double difference_of(double a, double b) { return a - b; }
static double product_of(double a, double b) { return a * b; }
static double quotient_of(double a, double b) { return a / b; }
static double is_less(double a, double b) { return a < b; }
static double is_less_equal(double a, double b) { return a <= b; }
static double is_greater(double a, double b) { return a > b; }
static double is_greater_equal(double a, double b) { return a >= b; }
static double is_equal(double a, double b) { return a == b; }
static double is_not_equal(double a, double b) { return a != b; }
static double is_both(double a, double b) { return a != 0 && b != 0; }
static double is_any(double a, double b) { return a != 0 || b != 0; }
static double is_one(double a, double b) { return (a != 0) != (b != 0); }

/* Quotients and rests of integers, of which none is divided by 0, and powers that an I32 holds. */
static double whole_quotient(double a, double b) { return trunc(a / b); }
static double remainder_of(double a, double b) { return a - floor(a / b) * b; }
static double both_bits(double a, double b) { return (double)((int64_t)a & (int64_t)b); }
static double any_bits(double a, double b) { return (double)((int64_t)a | (int64_t)b); }
static double other_bits(double a, double b) { return (double)((int64_t)a ^ (int64_t)b); }
static double shifted_left(double a, double b) { return a * exp2(b); }
static double shifted_right(double a, double b) { return floor(a * exp2(-b)); }
static void draw_divisor(uint64_t *seed, test_call *call) {
  draw_integers(seed, call);
  call->inputs[1].low = 1;
}
static void draw_negative_divisor(uint64_t *seed, test_call *call) {
  draw_broadcast(seed, call, 2, -50, 50);
  for (size_t i = 0; i < 2; i++) call->inputs[i].type = RONDO_I32;
  call->inputs[1].high = 0;
}
static void draw_small_powers(uint64_t *seed, test_call *call) {
  draw_broadcast_integers(seed, call, 2, -6, 6);
  call->inputs[1].low = 0;
  call->inputs[1].high = 5;
}
static void draw_shift(uint64_t *seed, test_call *call) {
  draw_integers(seed, call);
  call->inputs[1].low = 0;
  call->inputs[1].high = 7;
}

/* Away from the steps, where there is no gradient. */
static void draw_rest(uint64_t *seed, test_call *call) {
  static double numbers[2 * MOST_COARSE];
  draw_broadcast(seed, call, 2, 1, 2);
  for (size_t i = 0; i < 2 * MOST_COARSE; i++)
    numbers[i] = i < MOST_COARSE ? ((double)test_random_below(seed, 15) - 7.5) / 2 : 0.5 + 0.5 * (double)(i % 3);
  for (size_t i = 0; i < 2; i++) {
    if (test_input_elements(call, i) <= MOST_COARSE) call->inputs[i].values = numbers + i * MOST_COARSE;
  }
}

/* The base is positive or the exponent is an integer, where pow has a value and a gradient. */
static void draw_pow(uint64_t *seed, test_call *call) {
  draw_broadcast(seed, call, 2, -2, 2);
  call->inputs[0].low = 0.25;
}

/* Pairs of special values, as C's pow has them. */
TEST(test_pow_of_special_values) {
  static const float numbers[] = {0,         -0.0f, 1,         -1,         2,        -2,        0.5f,
                                  -0.5f,     3,     -3,        1e30f,      -1e30f,   33554432,  INFINITY,
                                  -INFINITY, NAN,   0x1p-140f, -0x1p-140f, 16777215, 1.0000001f};
  enum { N = sizeof numbers / sizeof numbers[0] };
  static float y[N][N];
  rondo_program *program = test_new_program();
  rondo_value a, b, out;
  assert_ok(rondo_program_input(program, "a", RONDO_F32, (size_t[]){N, 1}, 2, &a));
  assert_ok(rondo_program_input(program, "b", RONDO_F32, (size_t[]){N}, 1, &b));
  assert_ok(rondo_op_pow(program, a, b, &out));
  assert_ok(rondo_program_output(program, "y", out));
  test_run_program(t, program, (const test_bytes[]){TEST_BYTES("a", numbers), TEST_BYTES("b", numbers), {.name = NULL}},
                   (const test_bytes[]){TEST_BYTES("y", y), {.name = NULL}});
  for (int i = 0; i < N; i++) {
    for (int k = 0; k < N; k++) {
      const double wanted = (double)(float)pow((double)numbers[i], (double)numbers[k]), got = (double)y[i][k];
      if ((isnan(wanted) && isnan(got)) || (got == wanted && signbit(got) == signbit(wanted))) continue;
      if (fabs(got - wanted) > 4e-7 * fabs(wanted) + 2e-45)
        fail_msg("%g to the power of %g is %.9g, not %.9g", (double)numbers[i], (double)numbers[k], got, wanted);
    }
  }
}

typedef struct gradient_case {
  rondo_status (*op)(rondo_program *program, rondo_value a, rondo_value b, rondo_value *out_value);
  float a, b, dy, da, db;
} gradient_case;

static void check_gradients(test_fixture *t, const gradient_case *of) {
  static const char *const names[] = {"a", "b", "dy"};
  rondo_program *program = test_new_program();
  rondo_value in[3], y, loss, gradients[2];
  float da, db;
  for (int k = 0; k < 3; k++) assert_ok(rondo_program_input(program, names[k], RONDO_F32, NULL, 0, &in[k]));
  assert_ok(of->op(program, in[0], in[1], &y));
  assert_ok(rondo_op_mul(program, y, in[2], &loss));
  assert_ok(rondo_program_gradients(program, loss, in, 2, gradients));
  assert_ok(rondo_program_output(program, "da", gradients[0]));
  assert_ok(rondo_program_output(program, "db", gradients[1]));
  test_run_program(
      t, program,
      (const test_bytes[]){TEST_BYTES("a", of->a), TEST_BYTES("b", of->b), TEST_BYTES("dy", of->dy), {.name = NULL}},
      (const test_bytes[]){TEST_BYTES("da", da), TEST_BYTES("db", db), {.name = NULL}});
  if (da != of->da || db != of->db)
    fail_msg("%g and %g: the gradients are %g and %g, not %g and %g", (double)of->a, (double)of->b, (double)da,
             (double)db, (double)of->da, (double)of->db);
}

/* As in PyTorch: if a value is NaN, both inputs of maximum get the gradient; an input that is not selected gets 0, also
 * of an infinite one; -0 to the power of -1 is -infinity, and grows with the exponent. */
TEST(test_pr8_gradients_of_special_values) {
  const gradient_case cases[] = {
      {rondo_op_maximum, NAN, 2, 3, 3, 3},
      {rondo_op_maximum, 1, NAN, 3, 3, 3},
      {rondo_op_minimum, NAN, 2, 3, 3, 3},
      {rondo_op_minimum, 1, 2, INFINITY, INFINITY, 0},
      {rondo_op_maximum, 1, 2, -INFINITY, 0, -INFINITY},
      {rondo_op_maximum, INFINITY, INFINITY, 3, 1.5f, 1.5f},
      {rondo_op_pow, -0.0f, -1, 1, -INFINITY, INFINITY},
      {rondo_op_pow, 0, 0, 3, 0, 0},
      {rondo_op_pow, 0, 2, 3, 0, 0},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) check_gradients(t, &cases[i]);
}

UNIT_TEST(test_what_does_not_broadcast) {
  const size_t shape[] = {2, 3}, other[] = {4}, six[] = {1, 1, 1, 1, 2, 3};
  rondo_program *program = test_new_program();
  rondo_value a, b, c, d, y;
  assert_ok(rondo_program_input(program, "a", RONDO_F32, shape, 2, &a));
  assert_ok(rondo_program_input(program, "b", RONDO_F32, other, 1, &b));
  assert_ok(rondo_program_input(program, "c", RONDO_F16, shape, 2, &c));
  assert_ok(rondo_program_input(program, "d", RONDO_F32, six, 6, &d));
  assert_int_equal(rondo_op_add(program, a, b, &y), RONDO_INVALID_ARGUMENT);
  assert_int_equal(rondo_last_error()->reason, RONDO_REASON_SHAPE);
  assert_non_null(strstr(rondo_last_error()->message, "'b' [4]"));
  assert_int_equal(rondo_op_add(program, a, c, &y), RONDO_INVALID_ARGUMENT);
  assert_int_equal(rondo_last_error()->reason, RONDO_REASON_TYPE);
  assert_true(y.id == 0);
  assert_ok(rondo_op_add(program, a, d, &y));
  rondo_program_destroy(program);
}

/* I32 and I64 wrap around at their ends. */
TEST(test_wrapping) {
  const int32_t a = INT32_MAX, b = 2;
  const int64_t c = INT64_MAX, d = 2;
  int32_t y;
  int64_t z;
  rondo_program *program = test_new_program();
  rondo_value in[4], out[2];
  assert_ok(rondo_program_input(program, "a", RONDO_I32, NULL, 0, &in[0]));
  assert_ok(rondo_program_input(program, "b", RONDO_I32, NULL, 0, &in[1]));
  assert_ok(rondo_program_input(program, "c", RONDO_I64, NULL, 0, &in[2]));
  assert_ok(rondo_program_input(program, "d", RONDO_I64, NULL, 0, &in[3]));
  assert_ok(rondo_op_mul(program, in[0], in[1], &out[0]));
  assert_ok(rondo_op_mul(program, in[2], in[3], &out[1]));
  assert_ok(rondo_program_output(program, "y", out[0]));
  assert_ok(rondo_program_output(program, "z", out[1]));
  test_run_program(t, program,
                   (const test_bytes[]){
                       TEST_BYTES("a", a), TEST_BYTES("b", b), TEST_BYTES("c", c), TEST_BYTES("d", d), {.name = NULL}},
                   (const test_bytes[]){TEST_BYTES("y", y), TEST_BYTES("z", z), {.name = NULL}});
  assert_int_equal(y, -2);
  assert_int_equal(z, -2);
}

/* The ends of integers: division by 0 and by -1, powers with negative exponents, shifts of all bits. */
TEST(test_pr8_ends_of_integers) {
  enum { N = 7, OPS = 6 };
  static const int64_t a[N] = {7, -7, INT64_MIN, -1, 1, 2, -1}, b[N] = {0, 0, -1, -3, -9, -1, 64};
  static const int32_t of_a[N] = {7, -7, INT32_MIN, -1, 1, 2, -1}, of_b[N] = {0, 0, -1, -3, -9, -1, 64};
  static rondo_status (*const ops[OPS])(rondo_program *, rondo_value, rondo_value, rondo_value *) = {
      rondo_op_div, rondo_op_remainder, rondo_op_fmod, rondo_op_pow, rondo_op_shift_left, rondo_op_shift_right};
  static const int64_t wanted[OPS][N] = {{0, 0, INT64_MIN, 0, 0, -2, 0}, {0, 0, 0, -1, -8, 0, 63},
                                         {0, 0, 0, -1, 1, 0, -1},        {1, 1, 0, -1, 1, 0, 1},
                                         {7, -7, 0, 0, 0, 0, 0},         {7, -7, -1, -1, 0, 0, -1}};
  for (int o = 0; o < OPS; o++) {
    int64_t y[N];
    int32_t z[N];
    rondo_program *program = test_new_program();
    rondo_value in[4], out[2];
    assert_ok(rondo_program_input(program, "a", RONDO_I64, (size_t[]){N}, 1, &in[0]));
    assert_ok(rondo_program_input(program, "b", RONDO_I64, (size_t[]){N}, 1, &in[1]));
    assert_ok(rondo_program_input(program, "c", RONDO_I32, (size_t[]){N}, 1, &in[2]));
    assert_ok(rondo_program_input(program, "d", RONDO_I32, (size_t[]){N}, 1, &in[3]));
    assert_ok(ops[o](program, in[0], in[1], &out[0]));
    assert_ok(ops[o](program, in[2], in[3], &out[1]));
    assert_ok(rondo_program_output(program, "y", out[0]));
    assert_ok(rondo_program_output(program, "z", out[1]));
    test_run_program(
        t, program,
        (const test_bytes[]){
            TEST_BYTES("a", a), TEST_BYTES("b", b), TEST_BYTES("c", of_a), TEST_BYTES("d", of_b), {.name = NULL}},
        (const test_bytes[]){TEST_BYTES("y", y), TEST_BYTES("z", z), {.name = NULL}});
    for (int i = 0; i < N; i++) {
      const int32_t narrow = (int32_t)(uint32_t)(uint64_t)wanted[o][i];
      if (y[i] != wanted[o][i] || (i != 2 && z[i] != narrow))
        fail_msg("operator %d of %" PRId64 " and %" PRId64 ": %" PRId64 " and %" PRId32, o, a[i], b[i], y[i], z[i]);
    }
  }
}

UNIT_TEST(test_pr8_floats_have_no_bits) {
  rondo_program *program = test_new_program();
  rondo_value x, y;
  assert_ok(rondo_program_input(program, "x", RONDO_F32, (size_t[]){4}, 1, &x));
  assert_error(rondo_op_bitwise_and(program, x, x, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_TYPE);
  assert_error(rondo_op_shift_left(program, x, x, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_TYPE);
  assert_error(rondo_op_bitwise_not(program, x, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_TYPE);
  rondo_program_destroy(program);
}

/* select ----------------------------------------------------------------------------------------------------------- */

/* BOOL, or integers, of which some are negative. */
static void set_condition(uint64_t *seed, test_call *call) {
  static const rondo_type types[] = {RONDO_BOOL, RONDO_BOOL, RONDO_I32, RONDO_I64, RONDO_I8};
  call->inputs[0].type = types[test_random_below(seed, 5)];
  call->inputs[0].low = call->inputs[0].type == RONDO_BOOL ? 0 : -1;
  call->inputs[0].high = 2;
}

static void draw_select(uint64_t *seed, test_call *call) {
  draw_broadcast(seed, call, 3, -3, 3);
  set_condition(seed, call);
}

static void draw_select_of_integers(uint64_t *seed, test_call *call) {
  draw_broadcast_integers(seed, call, 3, -9, 9);
  set_condition(seed, call);
}

static rondo_status build_select(const test_call *call, rondo_program *program, const rondo_value *inputs,
                                 rondo_value *result) {
  (void)call;
  return rondo_op_select(program, inputs[0], inputs[1], inputs[2], result);
}

static void reference_select(const test_call *call, double *const *inputs, double *result) {
  size_t shape[RONDO_MAX_DIMENSIONS], rank;
  const size_t count = broadcast_shape(call, shape, &rank);
  for (size_t i = 0; i < count; i++) {
    const size_t from = inputs[0][broadcast_index(call, 0, shape, rank, i)] != 0 ? 1 : 2;
    result[i] = inputs[from][broadcast_index(call, from, shape, rank, i)];
  }
}

/* The gradient of what comparisons choose flows through the values, not through the comparison. */
static rondo_status build_clipped(const test_call *call, rondo_program *program, const rondo_value *inputs,
                                  rondo_value *result) {
  rondo_value less;
  (void)call;
  const rondo_status status = rondo_op_less(program, inputs[0], inputs[1], &less);
  return status != RONDO_OK ? status : rondo_op_select(program, less, inputs[0], inputs[1], result);
}

static double smaller_of(double a, double b) { return a < b ? a : b; }

static void reference_clipped(const test_call *call, double *const *inputs, double *result) {
  reference_broadcast(call, inputs, result, smaller_of);
}

/* Predicates ------------------------------------------------------------------------------------------------------- */

typedef struct predicate {
  rondo_status (*op)(rondo_program *program, rondo_value value, rondo_value *out_value);
  bool (*is_true)(double x);
} predicate;

static bool is_zero(double x) { return x == 0; }
static bool is_nan(double x) { return isnan(x) != 0; }
static bool is_inf(double x) { return isinf(x) != 0; }
static bool is_finite(double x) { return isfinite(x) != 0; }

static void draw_special(uint64_t *seed, test_call *call) {
  static const double numbers[] = {0, -0.0, NAN, INFINITY, -INFINITY, 1.5, -2, 0x1p-120, 3};
  const size_t shape[] = {3, 3};
  (void)seed;
  test_add_float(call, shape, 2, 0, 1)->values = numbers;
}

static void draw_integer(uint64_t *seed, test_call *call) { draw_broadcast_integers(seed, call, 1, -2, 2); }
static void draw_one_bool(uint64_t *seed, test_call *call) {
  draw_broadcast(seed, call, 1, 0, 2);
  call->inputs[0].type = RONDO_BOOL;
}

static rondo_status build_predicate(const test_call *call, rondo_program *program, const rondo_value *in,
                                    rondo_value *result) {
  const predicate *family = call->op->family;
  return family->op(program, in[0], result);
}

static void reference_predicate(const test_call *call, double *const *in, double *y) {
  const predicate *family = call->op->family;
  for (size_t i = 0; i < test_input_elements(call, 0); i++) y[i] = family->is_true(in[0][i]);
}

/* Bytes other than 0 and 1 are true, and copies keep them. PyTorch and ONNX have no difference of BOOL either. */
TEST(test_bytes_of_bool) {
  const uint8_t x[] = {0, 1, 2, 255};
  uint8_t same[4], either[4];
  int32_t numbers[4];
  rondo_program *program = test_new_program();
  rondo_value in, out[3], y;
  assert_ok(rondo_program_input(program, "x", RONDO_BOOL, (size_t[]){4}, 1, &in));
  assert_ok(rondo_op_logical_or(program, in, in, &out[0]));
  assert_ok(rondo_op_cast(program, in, RONDO_I32, &out[1]));
  assert_ok(rondo_op_reshape(program, in, (size_t[]){2, 2}, 2, &out[2]));
  assert_error(rondo_op_sub(program, in, in, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_TYPE);
  assert_ok(rondo_program_output(program, "either", out[0]));
  assert_ok(rondo_program_output(program, "numbers", out[1]));
  assert_ok(rondo_program_output(program, "same", out[2]));
  test_run_program(
      t, program, (const test_bytes[]){TEST_BYTES("x", x), {.name = NULL}},
      (const test_bytes[]){
          TEST_BYTES("either", either), TEST_BYTES("numbers", numbers), TEST_BYTES("same", same), {.name = NULL}});
  for (int i = 0; i < 4; i++) assert_true(either[i] == (x[i] != 0) && numbers[i] == (x[i] != 0) && same[i] == x[i]);
}

/* expand ----------------------------------------------------------------------------------------------------------- */

/* The second input only says the shape. */
static void draw_expand(uint64_t *seed, test_call *call) {
  draw_broadcast(seed, call, 2, -3, 3);
  call->inputs[1].has_no_gradient = true;
}

static rondo_status build_expand(const test_call *call, rondo_program *program, const rondo_value *inputs,
                                 rondo_value *result) {
  size_t shape[RONDO_MAX_DIMENSIONS], rank;
  (void)broadcast_shape(call, shape, &rank);
  return rondo_op_expand(program, inputs[0], shape, rank, result);
}

static double first_of(double a, double b) {
  (void)b;
  return a;
}

static void reference_expand(const test_call *call, double *const *inputs, double *result) {
  reference_broadcast(call, inputs, result, first_of);
}

UNIT_TEST(test_what_does_not_expand) {
  const size_t shape[] = {2, 3}, wide[] = {4, 3}, row[] = {3};
  rondo_program *program = test_new_program();
  rondo_value x, y;
  assert_ok(rondo_program_input(program, "x", RONDO_F32, shape, 2, &x));
  assert_int_equal(rondo_op_expand(program, x, wide, 2, &y), RONDO_INVALID_ARGUMENT);
  assert_int_equal(rondo_last_error()->reason, RONDO_REASON_SHAPE);
  assert_int_equal(rondo_op_expand(program, x, row, 1, &y), RONDO_INVALID_ARGUMENT);
  assert_int_equal(rondo_op_expand(program, x, NULL, 7, &y), RONDO_INVALID_ARGUMENT);
  rondo_program_destroy(program);
}

/* The whole -------------------------------------------------------------------------------------------------------- */

#define BINARY(op, value_at) \
  .build = build, .reference = reference, .family = &(const binary) { op, value_at }
#define FLOATS .draw = draw_floats, .gradient_tolerance = 4e-4
#define OF_INTEGERS .only_f32 = true, .has_no_gradient = true
#define INTEGERS .draw = draw_integers, OF_INTEGERS
#define EQUAL_NUMBERS .draw = draw_coarse, .gradient_tolerance = 4e-4
#define COMPARED .draw = draw_coarse, .has_no_gradient = true
#define OF_BOOL .draw = draw_bool, OF_INTEGERS
#define TESTED(op, is_true) \
  .build = build_predicate, .reference = reference_predicate, .family = &(const predicate) { op, is_true }
#define SPECIAL .draw = draw_special, OF_INTEGERS
#define AN_INTEGER .draw = draw_integer, OF_INTEGERS
#define A_BOOL .draw = draw_one_bool, OF_INTEGERS
#define COMPARED_INTEGERS .draw = draw_few_integers, OF_INTEGERS
#define SELECT .build = build_select, .reference = reference_select
#define EXPAND .build = build_expand, .reference = reference_expand

static const test_operator rows[] = {
    {.name = "add",
     BINARY(rondo_op_add, sum_of),
     .draw = draw_floats,
     .tolerance = 2e-6,
     .gradient_tolerance = 1e-5,
     .gradient_samples = 64},
    {.name = "add", BINARY(rondo_op_add, sum_of), INTEGERS},
    {.name = "sub", BINARY(rondo_op_sub, difference_of), FLOATS},
    {.name = "sub", BINARY(rondo_op_sub, difference_of), INTEGERS},
    {.name = "mul", BINARY(rondo_op_mul, product_of), FLOATS},
    {.name = "mul", BINARY(rondo_op_mul, product_of), INTEGERS},
    {.name = "div", BINARY(rondo_op_div, quotient_of), .draw = draw_positive, .gradient_tolerance = 4e-4},
    {.name = "div", BINARY(rondo_op_div, whole_quotient), .draw = draw_divisor, OF_INTEGERS},
    {.name = "div", BINARY(rondo_op_div, whole_quotient), .draw = draw_negative_divisor, OF_INTEGERS},
    {.name = "remainder", BINARY(rondo_op_remainder, remainder_of), .draw = draw_divisor, OF_INTEGERS},
    {.name = "remainder", BINARY(rondo_op_remainder, remainder_of), .draw = draw_negative_divisor, OF_INTEGERS},
    {.name = "remainder",
     BINARY(rondo_op_remainder, remainder_of),
     .draw = draw_rest,
     .gradient_tolerance = 4e-4,
     .has_ties = true},
    {.name = "fmod", BINARY(rondo_op_fmod, fmod), .draw = draw_divisor, OF_INTEGERS},
    {.name = "fmod", BINARY(rondo_op_fmod, fmod), .draw = draw_negative_divisor, OF_INTEGERS},
    {.name = "fmod", BINARY(rondo_op_fmod, fmod), .draw = draw_rest, .gradient_tolerance = 4e-4, .has_ties = true},
    {.name = "pow", BINARY(rondo_op_pow, pow), .draw = draw_small_powers, OF_INTEGERS},
    {.name = "bitwise_and", BINARY(rondo_op_bitwise_and, both_bits), INTEGERS},
    {.name = "bitwise_or", BINARY(rondo_op_bitwise_or, any_bits), INTEGERS},
    {.name = "bitwise_xor", BINARY(rondo_op_bitwise_xor, other_bits), INTEGERS},
    {.name = "bitwise_and", BINARY(rondo_op_bitwise_and, is_both), OF_BOOL},
    {.name = "bitwise_or", BINARY(rondo_op_bitwise_or, is_any), OF_BOOL},
    {.name = "bitwise_xor", BINARY(rondo_op_bitwise_xor, is_one), OF_BOOL},
    {.name = "shift_left", BINARY(rondo_op_shift_left, shifted_left), .draw = draw_shift, OF_INTEGERS},
    {.name = "shift_right", BINARY(rondo_op_shift_right, shifted_right), .draw = draw_shift, OF_INTEGERS},
    {.name = "bitwise_not", TESTED(rondo_op_bitwise_not, is_zero), A_BOOL},
    {.name = "pow", BINARY(rondo_op_pow, pow), .draw = draw_pow, .tolerance = 1e-6, .gradient_tolerance = 4e-4},
    {.name = "maximum", BINARY(rondo_op_maximum, fmax), FLOATS},
    {.name = "maximum", BINARY(rondo_op_maximum, fmax), INTEGERS},
    {.name = "maximum", BINARY(rondo_op_maximum, fmax), EQUAL_NUMBERS},
    {.name = "minimum", BINARY(rondo_op_minimum, fmin), FLOATS},
    {.name = "minimum", BINARY(rondo_op_minimum, fmin), INTEGERS},
    {.name = "minimum", BINARY(rondo_op_minimum, fmin), EQUAL_NUMBERS},
    {.name = "less", BINARY(rondo_op_less, is_less), COMPARED},
    {.name = "less", BINARY(rondo_op_less, is_less), COMPARED_INTEGERS},
    {.name = "less_equal", BINARY(rondo_op_less_equal, is_less_equal), COMPARED},
    {.name = "less_equal", BINARY(rondo_op_less_equal, is_less_equal), COMPARED_INTEGERS},
    {.name = "greater", BINARY(rondo_op_greater, is_greater), COMPARED},
    {.name = "greater", BINARY(rondo_op_greater, is_greater), COMPARED_INTEGERS},
    {.name = "greater_equal", BINARY(rondo_op_greater_equal, is_greater_equal), COMPARED},
    {.name = "greater_equal", BINARY(rondo_op_greater_equal, is_greater_equal), COMPARED_INTEGERS},
    {.name = "equal", BINARY(rondo_op_equal, is_equal), COMPARED},
    {.name = "equal", BINARY(rondo_op_equal, is_equal), COMPARED_INTEGERS},
    {.name = "not_equal", BINARY(rondo_op_not_equal, is_not_equal), COMPARED},
    {.name = "not_equal", BINARY(rondo_op_not_equal, is_not_equal), COMPARED_INTEGERS},
    {.name = "equal", BINARY(rondo_op_equal, is_equal), OF_BOOL},
    {.name = "add", BINARY(rondo_op_add, is_any), OF_BOOL},
    {.name = "mul", BINARY(rondo_op_mul, is_both), OF_BOOL},
    {.name = "maximum", BINARY(rondo_op_maximum, is_any), OF_BOOL},
    {.name = "minimum", BINARY(rondo_op_minimum, is_both), OF_BOOL},
    {.name = "logical_and", BINARY(rondo_op_logical_and, is_both), OF_BOOL},
    {.name = "logical_and", BINARY(rondo_op_logical_and, is_both), COMPARED_INTEGERS},
    {.name = "logical_or", BINARY(rondo_op_logical_or, is_any), OF_BOOL},
    {.name = "logical_or", BINARY(rondo_op_logical_or, is_any), COMPARED_INTEGERS},
    {.name = "logical_xor", BINARY(rondo_op_logical_xor, is_one), OF_BOOL},
    {.name = "logical_xor", BINARY(rondo_op_logical_xor, is_one), COMPARED},
    {.name = "logical_not", TESTED(rondo_op_logical_not, is_zero), SPECIAL},
    {.name = "logical_not", TESTED(rondo_op_logical_not, is_zero), AN_INTEGER},
    {.name = "is_nan", TESTED(rondo_op_is_nan, is_nan), SPECIAL},
    {.name = "is_nan", TESTED(rondo_op_is_nan, is_nan), AN_INTEGER},
    {.name = "is_inf", TESTED(rondo_op_is_inf, is_inf), SPECIAL},
    {.name = "is_inf", TESTED(rondo_op_is_inf, is_inf), AN_INTEGER},
    {.name = "is_finite", TESTED(rondo_op_is_finite, is_finite), SPECIAL},
    {.name = "is_finite", TESTED(rondo_op_is_finite, is_finite), AN_INTEGER},
    {.name = "select", SELECT, .draw = draw_select},
    {.name = "select", SELECT, .draw = draw_select_of_integers, OF_INTEGERS},
    {.name = "select", .draw = draw_floats, .build = build_clipped, .reference = reference_clipped, .has_ties = true},
    {.name = "expand", EXPAND, .draw = draw_expand, .gradient_tolerance = 4e-4},
    {.name = "expand", EXPAND, INTEGERS},
};

TEST_OPERATOR_MAIN(rows)
