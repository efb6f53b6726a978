/* SPDX-License-Identifier: MIT
 * Element-wise operators with one input: a row for each operator, with its value in plain C and the range of inputs;
 * and their values and gradients at infinities, NaN, zeros and very large numbers.
 */
#include <math.h>

#include "support/test_operator.h"
#include "support/test_program.h"

/* The table -------------------------------------------------------------------------------------------------------- */

typedef rondo_status (*unary_op)(rondo_program *program, rondo_value value, rondo_value *out_value);

typedef struct unary {
  unary_op op;
  double (*value_at)(double x);
  double low, high;
} unary;

/* One float input of any shape, random in low .. high. */
static void draw(uint64_t *seed, test_call *call) {
  const unary *family = call->op->family;
  size_t shape[RONDO_MAX_DIMENSIONS];
  const size_t rank = test_draw_between(seed, 0, 4);
  test_draw_shape(seed, rank, 9, shape);
  test_add_float(call, shape, rank, family->low, family->high);
}

static rondo_status build(const test_call *call, rondo_program *program, const rondo_value *in, rondo_value *result) {
  const unary *family = call->op->family;
  return family->op(program, in[0], result);
}

static void reference(const test_call *call, double *const *in, double *y) {
  const unary *family = call->op->family;
  for (size_t i = 0; i < test_input_elements(call, 0); i++) y[i] = family->value_at(in[0][i]);
}

/* The same of integers, a type of which is drawn. I8 and U8 wrap around. */
static void draw_integers(uint64_t *seed, test_call *call) {
  static const rondo_type types[] = {RONDO_I32, RONDO_I64, RONDO_I8, RONDO_U8};
  const rondo_type type = types[test_random_below(seed, 4)];
  draw(seed, call);
  call->inputs[0].type = type;
  call->inputs[0].low = type == RONDO_U8 ? 0 : -128;
  call->inputs[0].high = type == RONDO_U8 ? 256 : 128;
}

static void reference_of_integers(const test_call *call, double *const *in, double *y) {
  const unary *family = call->op->family;
  const rondo_type type = call->inputs[0].type;
  for (size_t i = 0; i < test_input_elements(call, 0); i++) {
    y[i] = family->value_at(in[0][i]);
    if (type == RONDO_I8) y[i] = (int8_t)(uint8_t)(int)y[i];
    if (type == RONDO_U8) y[i] = (uint8_t)(int)y[i];
  }
}

static double sign(double x) { return (x > 0) - (x < 0); }
static double same(double x) { return x; }
static double complement(double x) { return -x - 1; }
static double within(double x) { return x < -2 ? -2 : x > 3 ? 3 : x; }
static double negative(double x) { return -x; }
static double relu(double x) { return x > 0 ? x : 0; }
static double rsqrt(double x) { return 1 / sqrt(x); }
static double sigmoid(double x) { return 1 / (1 + exp(-x)); }
static double silu(double x) { return x / (1 + exp(-x)); }
static double square(double x) { return x * x; }
static double inverse(double x) { return 1 / x; }
static double softsign(double x) { return x / (1 + fabs(x)); }
static double mish(double x) { return x * tanh(log1p(exp(x))); }
static double log_sigmoid(double x) { return -log1p(exp(-x)); }

/* Operators with a number ------------------------------------------------------------------------------------------ */

static void draw_with_number(uint64_t *seed, test_call *call) {
  draw(seed, call);
  call->numbers[0] = (double)test_draw_between(seed, 0, 16) / 4 - 2;
}

static rondo_status build_scale(const test_call *call, rondo_program *program, const rondo_value *in,
                                rondo_value *result) {
  return rondo_op_scale(program, in[0], (float)call->numbers[0], result);
}

static void reference_scale(const test_call *call, double *const *in, double *y) {
  for (size_t i = 0; i < test_input_elements(call, 0); i++) y[i] = call->numbers[0] * in[0][i];
}

static rondo_status build_add_constant(const test_call *call, rondo_program *program, const rondo_value *in,
                                       rondo_value *result) {
  return rondo_op_add_constant(program, in[0], (float)call->numbers[0], result);
}

static void reference_add_constant(const test_call *call, double *const *in, double *y) {
  for (size_t i = 0; i < test_input_elements(call, 0); i++) y[i] = in[0][i] + call->numbers[0];
}

/* gelu, exact and approximated ------------------------------------------------------------------------------------- */

enum { FORM }; /* sizes */

static void draw_gelu(uint64_t *seed, test_call *call) {
  draw(seed, call);
  call->sizes[FORM] = test_draw_between(seed, 0, 1);
}

static rondo_status build_gelu(const test_call *call, rondo_program *program, const rondo_value *in,
                               rondo_value *result) {
  return rondo_op_gelu(program, in[0], (rondo_gelu_form)call->sizes[FORM], result);
}

static double exact(double x) { return 0.5 * x * (1 + erf(x / sqrt(2))); }

static double approximate(double x) {
  const double pi = acos(-1);
  return 0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x * x * x)));
}

static void reference_gelu(const test_call *call, double *const *in, double *y) {
  const bool is_exact = call->sizes[FORM] == RONDO_GELU_ERF;
  for (size_t i = 0; i < test_input_elements(call, 0); i++) y[i] = is_exact ? exact(in[0][i]) : approximate(in[0][i]);
}

UNIT_TEST(test_gelu_form) {
  rondo_program *program = test_new_program();
  rondo_value x, y;
  assert_ok(rondo_program_input(program, "x", RONDO_F32, NULL, 0, &x));
  assert_int_equal(rondo_op_gelu(program, x, (rondo_gelu_form)2, &y), RONDO_INVALID_ARGUMENT);
  assert_int_equal(rondo_last_error()->reason, RONDO_REASON_OUT_OF_RANGE);
  assert_true(y.id == 0);
  rondo_program_destroy(program);
}

UNIT_TEST(test_clamp_limits) {
  rondo_program *program = test_new_program();
  rondo_value x, y;
  assert_ok(rondo_program_input(program, "x", RONDO_F32, NULL, 0, &x));
  assert_error(rondo_op_clamp(program, x, NAN, 1, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE);
  assert_message("clamp: the limits are nan and 1: use an infinity for no limit");
  assert_error(rondo_op_clamp(program, x, 0, NAN, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE);
  assert_int_equal(y.id, 0);
  assert_ok(rondo_op_clamp(program, x, -INFINITY, INFINITY, &y));
  rondo_program_destroy(program);
}

/* clamp: numbers[0] .. numbers[1] */
static void draw_clamp(uint64_t *seed, test_call *call) {
  draw(seed, call);
  call->numbers[0] = test_random_below(seed, 5) == 0 ? -INFINITY : -1.25;
  call->numbers[1] = test_random_below(seed, 5) == 0 ? INFINITY : 0.75;
}

static rondo_status build_clamp(const test_call *call, rondo_program *program, const rondo_value *in,
                                rondo_value *result) {
  return rondo_op_clamp(program, in[0], (float)call->numbers[0], (float)call->numbers[1], result);
}

static void reference_clamp(const test_call *call, double *const *in, double *y) {
  for (size_t i = 0; i < test_input_elements(call, 0); i++)
    y[i] = fmin(fmax(in[0][i], call->numbers[0]), call->numbers[1]);
}

static rondo_status clamp_by_ends(rondo_program *program, rondo_value value, rondo_value *out_value) {
  return rondo_op_clamp(program, value, -1, 2, out_value);
}

static rondo_status clamp_turned_round(rondo_program *program, rondo_value value, rondo_value *out_value) {
  return rondo_op_clamp(program, value, 2, -1, out_value);
}

/* Of integers: -2 .. 3. */
static rondo_status clamp_within(rondo_program *program, rondo_value value, rondo_value *out_value) {
  return rondo_op_clamp(program, value, -2.75f, 3.75f, out_value);
}

/* Limits that are no integers of the type: infinite, or beyond its ends. */
TEST(test_pr8_clamp_of_large_integers) {
  static const float limits[][2] = {{-INFINITY, INFINITY}, {-1e30f, 5.5f}, {-5.5f, 1e30f}, {7, -7}};
  static const int64_t x[] = {INT64_MIN, -6, 0, 6, INT64_MAX};
  static const int64_t wanted[][5] = {
      {INT64_MIN, -6, 0, 6, INT64_MAX}, {INT64_MIN, -6, 0, 5, 5}, {-5, -5, 0, 6, INT64_MAX}, {-7, -7, -7, -7, -7}};
  for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
    int64_t y[5];
    rondo_program *program = test_new_program();
    rondo_value in, out;
    assert_ok(rondo_program_input(program, "x", RONDO_I64, (size_t[]){5}, 1, &in));
    assert_ok(rondo_op_clamp(program, in, limits[i][0], limits[i][1], &out));
    assert_ok(rondo_program_output(program, "y", out));
    test_run_program(t, program, (const test_bytes[]){TEST_BYTES("x", x), {.name = NULL}},
                     (const test_bytes[]){TEST_BYTES("y", y), {.name = NULL}});
    assert_memory_equal(y, wanted[i], sizeof y);
  }
}

/* Arguments of all magnitudes, for which the reference is that of the C library. */
TEST(test_large_angles) {
  float x[2000], y[2][2000];
  const size_t count = 2000;
  for (size_t i = 0; i < count; i++)
    x[i] = ldexpf((float)(i * 2654435761u % 65536) / 65536 + 0.5f, (int)(i % 200) - 72);
  rondo_program *program = test_new_program();
  rondo_value in, out[2];
  assert_ok(rondo_program_input(program, "x", RONDO_F32, &count, 1, &in));
  assert_ok(rondo_op_sin(program, in, &out[0]));
  assert_ok(rondo_op_cos(program, in, &out[1]));
  assert_ok(rondo_program_output(program, "sin", out[0]));
  assert_ok(rondo_program_output(program, "cos", out[1]));
  test_run_program(t, program, (const test_bytes[]){TEST_BYTES("x", x), {.name = NULL}},
                   (const test_bytes[]){TEST_BYTES("sin", y[0]), TEST_BYTES("cos", y[1]), {.name = NULL}});
  for (size_t i = 0; i < count; i++) {
    const double wanted[] = {sin((double)x[i]), cos((double)x[i])};
    for (int k = 0; k < 2; k++) {
      if (fabs((double)y[k][i] - wanted[k]) > 4e-7 * fabs(wanted[k]) + 1e-37)
        fail_msg("%s(%.9g) is %.9g, not %.9g", k == 0 ? "sin" : "cos", (double)x[i], (double)y[k][i], wanted[k]);
    }
  }
}

/* expm1 and log1p keep their relative accuracy for arguments of all magnitudes. */
TEST(test_near_zero) {
  float x[2000], y[2][2000];
  const size_t count = 2000;
  for (size_t i = 0; i < count; i++) {
    x[i] = ldexpf((float)(i * 2654435761u % 65536) / 65536 + 0.5f, (int)(i % 131) - 125);
    if (i % 3 == 0) x[i] = -fminf(x[i], 0.9999f);
  }
  rondo_program *program = test_new_program();
  rondo_value in, out[2];
  assert_ok(rondo_program_input(program, "x", RONDO_F32, &count, 1, &in));
  assert_ok(rondo_op_expm1(program, in, &out[0]));
  assert_ok(rondo_op_log1p(program, in, &out[1]));
  assert_ok(rondo_program_output(program, "expm1", out[0]));
  assert_ok(rondo_program_output(program, "log1p", out[1]));
  test_run_program(t, program, (const test_bytes[]){TEST_BYTES("x", x), {.name = NULL}},
                   (const test_bytes[]){TEST_BYTES("expm1", y[0]), TEST_BYTES("log1p", y[1]), {.name = NULL}});
  for (size_t i = 0; i < count; i++) {
    const double wanted[] = {expm1((double)x[i]), log1p((double)x[i])};
    for (int k = 0; k < 2; k++) {
      if (fabs((double)y[k][i] - wanted[k]) > 4e-7 * fabs(wanted[k]) + 1e-37)
        fail_msg("%s(%.9g) is %.9g, not %.9g", k == 0 ? "expm1" : "log1p", (double)x[i], (double)y[k][i], wanted[k]);
    }
  }
}

/* Special values --------------------------------------------------------------------------------------------------- */

static rondo_status gelu_exact(rondo_program *program, rondo_value value, rondo_value *out_value) {
  return rondo_op_gelu(program, value, RONDO_GELU_ERF, out_value);
}

static rondo_status gelu_tanh(rondo_program *program, rondo_value value, rondo_value *out_value) {
  return rondo_op_gelu(program, value, RONDO_GELU_TANH, out_value);
}

#define POINTS 7

/* The results and gradients at points; sums of them are the loss. */
static void run_at(test_fixture *t, unary_op op, const float *x, float *y, float *dx) {
  const size_t count = POINTS, row[] = {1, POINTS}, column[] = {POINTS, 1};
  float ones[POINTS];
  rondo_program *program = test_new_program();
  rondo_value in, out, weights, loss, gradient;
  for (size_t i = 0; i < POINTS; i++) ones[i] = 1;
  assert_ok(rondo_program_input(program, "x", RONDO_F32, &count, 1, &in));
  assert_ok(rondo_program_input(program, "weights", RONDO_F32, column, 2, &weights));
  assert_ok(op(program, in, &out));
  assert_ok(rondo_op_reshape(program, out, row, 2, &loss));
  assert_ok(rondo_op_matmul(program, loss, weights, (rondo_value){0}, &loss));
  assert_ok(rondo_op_reshape(program, loss, NULL, 0, &loss));
  assert_ok(rondo_program_gradients(program, loss, &in, 1, &gradient));
  assert_ok(rondo_program_output(program, "y", out));
  assert_ok(rondo_program_output(program, "dx", gradient));
  test_run_program(t, program,
                   (const test_bytes[]){
                       {"x", (void *)(uintptr_t)x, POINTS * sizeof *x}, TEST_BYTES("weights", ones), {.name = NULL}},
                   (const test_bytes[]){{"y", y, POINTS * sizeof *y}, {"dx", dx, POINTS * sizeof *dx}, {.name = NULL}});
}

static void check_at(const char *name, const char *what, const float *x, const float *got, const float *wanted) {
  for (size_t i = 0; i < POINTS; i++) {
    if (got[i] == wanted[i] || fabsf(got[i] - wanted[i]) <= 4e-6f * fabsf(wanted[i]) ||
        (isnan(got[i]) && isnan(wanted[i])))
      continue;
    fail_msg("%s: %s at %g is %.9g, not %g", name, what, (double)x[i], (double)got[i], (double)wanted[i]);
  }
}

TEST(test_ends) {
  static const float x[POINTS] = {0, -INFINITY, INFINITY, NAN, 1e30f, -1e30f, -1};
#define INF INFINITY
#define SIN_FAR -0.791163439f /* of the float 1e30f */
#define COS_FAR -0.611604785f
  static const struct {
    const char *name;
    unary_op op;
    float y[POINTS], dx[POINTS];
  } points[] = {
      {"abs", rondo_op_abs, {0, INF, INF, NAN, 1e30f, 1e30f, 1}, {0, -1, 1, NAN, 1, -1, -1}},
      {"relu", rondo_op_relu, {0, 0, INF, NAN, 1e30f, 0, 0}, {0, 0, 1, 0, 1, 0, 0}},
      {"neg", rondo_op_neg, {0, INF, -INF, NAN, -1e30f, 1e30f, 1}, {-1, -1, -1, -1, -1, -1, -1}},
      {"square", rondo_op_square, {0, INF, INF, NAN, INF, INF, 1}, {0, -INF, INF, NAN, 2e30f, -2e30f, -2}},
      {"sqrt", rondo_op_sqrt, {0, NAN, INF, NAN, 1e15f, NAN, NAN}, {INF, NAN, 0, NAN, 5e-16f, NAN, NAN}},
      {"rsqrt", rondo_op_rsqrt, {INF, NAN, 0, NAN, 1e-15f, NAN, NAN}, {-INF, NAN, 0, NAN, 0, NAN, NAN}},
      {"log", rondo_op_log, {-INF, NAN, INF, NAN, 69.0775528f, NAN, NAN}, {INF, 0, 0, NAN, 1e-30f, -1e-30f, -1}},
      {"expm1", rondo_op_expm1, {0, -1, INF, NAN, INF, -1, -0.632120559f}, {1, 0, INF, NAN, INF, 0, 0.367879441f}},
      {"log1p", rondo_op_log1p, {0, NAN, INF, NAN, 69.0775528f, NAN, -INF}, {1, 0, 0, NAN, 1e-30f, -1e-30f, INF}},
      {"reciprocal", rondo_op_reciprocal, {INF, 0, 0, NAN, 1e-30f, -1e-30f, -1}, {-INF, 0, 0, NAN, 0, 0, -1}},
      {"erf", rondo_op_erf, {0, -1, 1, NAN, 1, -1, -0.842700793f}, {1.12837917f, 0, 0, NAN, 0, 0, 0.415107497f}},
      {"asinh",
       rondo_op_asinh,
       {0, -INF, INF, NAN, 69.7707f, -69.7707f, -0.881373587f},
       {1, 0, 0, NAN, 0, 0, 0.707106781f}},
      {"softsign", rondo_op_softsign, {0, NAN, NAN, NAN, 1, -1, -0.5f}, {1, 0, 0, NAN, 0, 0, 0.25f}},
      {"mish", rondo_op_mish, {0, NAN, INF, NAN, 1e30f, 0, -0.303401461f}, {0.6f, NAN, NAN, NAN, 1, 0, 0.0592167559f}},
      {"sigmoid", rondo_op_sigmoid, {0.5f, 0, 1, NAN, 1, 0, 0.268941432f}, {0.25f, 0, 0, NAN, 0, 0, 0.196611941f}},
      {"tanh", rondo_op_tanh, {0, -1, 1, NAN, 1, -1, -0.761594156f}, {1, 0, 0, NAN, 0, 0, 0.419974342f}},
      {"sin",
       rondo_op_sin,
       {0, NAN, NAN, NAN, SIN_FAR, -SIN_FAR, -0.841470985f},
       {1, NAN, NAN, NAN, COS_FAR, COS_FAR, 0.540302306f}},
      {"cos",
       rondo_op_cos,
       {1, NAN, NAN, NAN, COS_FAR, COS_FAR, 0.540302306f},
       {0, NAN, NAN, NAN, -SIN_FAR, SIN_FAR, 0.841470985f}},
      {"clamp", clamp_by_ends, {0, -1, 2, NAN, 2, -1, -1}, {1, 0, 0, 0, 0, 0, 1}},
      {"clamp", clamp_turned_round, {-1, -1, -1, NAN, -1, -1, -1}, {0, 0, 0, 0, 0, 0, 0}},
      {"gelu", gelu_exact, {0, NAN, INF, NAN, 1e30f, 0, -0.158655256f}, {0.5f, NAN, NAN, NAN, 1, 0, -0.0833154768f}},
      {"gelu_tanh", gelu_tanh, {0, NAN, INF, NAN, 1e30f, 0, -0.158808023f}, {0.5f, 0, 1, NAN, 1, 0, -0.0829641f}},
  };
  for (size_t i = 0; i < sizeof points / sizeof points[0]; i++) {
    float y[POINTS], dx[POINTS];
    run_at(t, points[i].op, x, y, dx);
    check_at(points[i].name, "result", x, y, points[i].y);
    check_at(points[i].name, "gradient", x, dx, points[i].dx);
  }
}

/* The whole -------------------------------------------------------------------------------------------------------- */

#define UNARY(op, value_at, low, high) \
  .draw = draw, .build = build, .reference = reference, .family = &(const unary) { op, value_at, low, high }
#define INTEGERS(op, value_at)                                               \
  .draw = draw_integers, .build = build, .reference = reference_of_integers, \
  .family = &(const unary){op, value_at, 0, 1}, .only_f32 = true, .has_no_gradient = true
#define RANGE(low, high) \
  .family = &(const unary) { NULL, NULL, low, high }

static const test_operator rows[] = {
    {.name = "abs", UNARY(rondo_op_abs, fabs, -3, 3)},
    {.name = "abs", INTEGERS(rondo_op_abs, fabs)},
    {.name = "neg", INTEGERS(rondo_op_neg, negative)},
    {.name = "relu", INTEGERS(rondo_op_relu, relu)},
    {.name = "square", INTEGERS(rondo_op_square, square)},
    {.name = "clamp", INTEGERS(clamp_within, within)},
    {.name = "bitwise_not", INTEGERS(rondo_op_bitwise_not, complement)},
    {.name = "sign", INTEGERS(rondo_op_sign, sign)},
    {.name = "floor", INTEGERS(rondo_op_floor, same)},
    {.name = "ceil", INTEGERS(rondo_op_ceil, same)},
    {.name = "round", INTEGERS(rondo_op_round, same)},
    {.name = "trunc", INTEGERS(rondo_op_trunc, same)},
    {.name = "trunc", UNARY(rondo_op_trunc, trunc, -9, 9), .has_no_gradient = true},
    {.name = "erf", UNARY(rondo_op_erf, erf, -4, 4)},
    {.name = "expm1", UNARY(rondo_op_expm1, expm1, -4, 3)},
    {.name = "log1p", UNARY(rondo_op_log1p, log1p, -0.9, 8)},
    {.name = "reciprocal", UNARY(rondo_op_reciprocal, inverse, 0.2, 4)},
    {.name = "softsign", UNARY(rondo_op_softsign, softsign, -9, 9)},
    {.name = "mish", UNARY(rondo_op_mish, mish, -9, 9)},
    {.name = "log_sigmoid", UNARY(rondo_op_log_sigmoid, log_sigmoid, -9, 9)},
    {.name = "tan", UNARY(rondo_op_tan, tan, -1.2, 1.2)},
    {.name = "asin", UNARY(rondo_op_asin, asin, -0.9, 0.9)},
    {.name = "acos", UNARY(rondo_op_acos, acos, -0.9, 0.9)},
    {.name = "atan", UNARY(rondo_op_atan, atan, -5, 5)},
    {.name = "sinh", UNARY(rondo_op_sinh, sinh, -3, 3)},
    {.name = "cosh", UNARY(rondo_op_cosh, cosh, -3, 3)},
    {.name = "asinh", UNARY(rondo_op_asinh, asinh, -5, 5)},
    {.name = "acosh", UNARY(rondo_op_acosh, acosh, 1.2, 8)},
    {.name = "atanh", UNARY(rondo_op_atanh, atanh, -0.9, 0.9)},
    {.name = "sign", UNARY(rondo_op_sign, sign, -3, 3), .has_no_gradient = true},
    {.name = "floor", UNARY(rondo_op_floor, floor, -9, 9), .has_no_gradient = true},
    {.name = "ceil", UNARY(rondo_op_ceil, ceil, -9, 9), .has_no_gradient = true},
    {.name = "round", UNARY(rondo_op_round, rint, -9, 9), .has_no_gradient = true},
    {.name = "exp", UNARY(rondo_op_exp, exp, -4, 3)},
    {.name = "log", UNARY(rondo_op_log, log, 0.05, 8)},
    {.name = "neg", UNARY(rondo_op_neg, negative, -4, 4)},
    {.name = "relu", UNARY(rondo_op_relu, relu, -4, 4)},
    {.name = "rsqrt", UNARY(rondo_op_rsqrt, rsqrt, 0.1, 9)},
    {.name = "sigmoid", UNARY(rondo_op_sigmoid, sigmoid, -9, 9)},
    {.name = "silu", UNARY(rondo_op_silu, silu, -9, 9)},
    {.name = "sqrt", UNARY(rondo_op_sqrt, sqrt, 0.1, 9)},
    {.name = "square", UNARY(rondo_op_square, square, -3, 3)},
    {.name = "tanh",
     UNARY(rondo_op_tanh, tanh, -4, 4),
     .tolerance = 2e-6,
     .gradient_tolerance = 1e-5,
     .gradient_samples = 200},
    {.name = "sin", UNARY(rondo_op_sin, sin, -20, 20)},
    {.name = "cos", UNARY(rondo_op_cos, cos, -20, 20)},
    {.name = "clamp",
     .draw = draw_clamp,
     .build = build_clamp,
     .reference = reference_clamp,
     RANGE(-4, 4),
     .has_ties = true},
    {.name = "gelu", .draw = draw_gelu, .build = build_gelu, .reference = reference_gelu, RANGE(-6, 6)},
    {.name = "scale", .draw = draw_with_number, .build = build_scale, .reference = reference_scale, RANGE(-4, 4)},
    {.name = "add_constant",
     .draw = draw_with_number,
     .build = build_add_constant,
     .reference = reference_add_constant,
     RANGE(-4, 4)},
};

TEST_OPERATOR_MAIN(rows)
