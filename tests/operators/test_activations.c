/* SPDX-License-Identifier: MIT
 * Activations with numbers: a row for each, with its value in plain C; prelu, whose slopes are a value; and their
 * values and gradients where the formula changes.
 */
#include <math.h>

#include "support/test_operator.h"
#include "support/test_program.h"

/* The table -------------------------------------------------------------------------------------------------------- */

typedef rondo_status (*build_op)(rondo_program *program, rondo_value value, float p, float q, rondo_value *out_value);

typedef struct activation {
  build_op op;
  double (*value_at)(double x, double p, double q);
  double p, q;
} activation;

#define ONE(name)                                                                                       \
  static rondo_status name(rondo_program *program, rondo_value x, float p, float q, rondo_value *out) { \
    (void)q;                                                                                            \
    return rondo_op_##name(program, x, p, out);                                                         \
  }
#define NONE(name)                                                                                      \
  static rondo_status name(rondo_program *program, rondo_value x, float p, float q, rondo_value *out) { \
    (void)p;                                                                                            \
    (void)q;                                                                                            \
    return rondo_op_##name(program, x, out);                                                            \
  }
ONE(leaky_relu)
ONE(elu)
ONE(celu)
ONE(softplus)
NONE(selu)
NONE(hardswish)

static double leaky_relu_at(double x, double p, double q) {
  (void)q;
  return x > 0 ? x : p * x;
}
static double elu_at(double x, double p, double q) {
  (void)q;
  return x > 0 ? x : p * expm1(x);
}
static double celu_at(double x, double p, double q) {
  (void)q;
  return fmax(x, 0) + fmin(0, p * expm1(x / p));
}
static double selu_at(double x, double p, double q) { return 1.0507009873554805 * elu_at(x, p, q); }
static double softplus_at(double x, double p, double q) {
  (void)q;
  return log1p(exp(p * x)) / p;
}
static double hardsigmoid_at(double x, double p, double q) { return fmax(0, fmin(1, p * x + q)); }
static double hardswish_at(double x, double p, double q) { return x * hardsigmoid_at(x, p, q); }
static double threshold_at(double x, double p, double q) { return x > p ? x : q; }
static double shrink_at(double x, double p, double q) { return x < -p ? x + q : x > p ? x - q : 0; }

static double round_mantissa_at(double x, double p, double q) {
  const double step = fmax(x != 0 ? exp2(ilogb(x) - p) : 0, exp2(q));
  return nearbyint(x / step) * step;
}

static void draw(uint64_t *seed, test_call *call) {
  size_t shape[RONDO_MAX_DIMENSIONS];
  const size_t rank = test_draw_between(seed, 0, 4);
  test_draw_shape(seed, rank, 9, shape);
  test_add_float(call, shape, rank, -6, 6);
}

static rondo_status build(const test_call *call, rondo_program *program, const rondo_value *in, rondo_value *result) {
  const activation *of = call->op->family;
  return of->op(program, in[0], (float)of->p, (float)of->q, result);
}

static void reference(const test_call *call, double *const *in, double *y) {
  const activation *of = call->op->family;
  for (size_t i = 0; i < test_input_elements(call, 0); i++)
    y[i] = of->value_at(in[0][i], (double)(float)of->p, (double)(float)of->q);
}

/* prelu ------------------------------------------------------------------------------------------------------------ */

/* A slope for each channel of [n, c, w], for each element, or one for all. */
static void draw_prelu(uint64_t *seed, test_call *call) {
  size_t shape[3];
  test_draw_shape(seed, 3, 7, shape);
  test_add_float(call, shape, 3, -3, 3);
  switch (test_random_below(seed, 3)) {
    case 0:
      test_add_float(call, (size_t[]){shape[1], 1}, 2, -1, 1);
      break;
    case 1:
      test_add_float(call, shape, 3, -1, 1);
      break;
    default:
      test_add_float(call, NULL, 0, -1, 1);
  }
}

static void draw_prelu_of_integers(uint64_t *seed, test_call *call) {
  static const rondo_type types[] = {RONDO_I32, RONDO_I64, RONDO_I8};
  const rondo_type type = types[test_random_below(seed, 3)];
  draw_prelu(seed, call);
  for (int i = 0; i < 2; i++) {
    call->inputs[i].type = type;
    call->inputs[i].low = -9;
    call->inputs[i].high = 9;
  }
}

static rondo_status build_prelu(const test_call *call, rondo_program *program, const rondo_value *in,
                                rondo_value *result) {
  (void)call;
  return rondo_op_prelu(program, in[0], in[1], result);
}

static void reference_prelu(const test_call *call, double *const *in, double *y) {
  const size_t count = test_input_elements(call, 0), slopes = test_input_elements(call, 1);
  const size_t width = slopes == count ? 1 : call->inputs[0].shape[2];
  for (size_t i = 0; i < count; i++) y[i] = in[0][i] > 0 ? in[0][i] : in[1][i / width % slopes] * in[0][i];
}

/* Rounding --------------------------------------------------------------------------------------------------------- */

static rondo_status round_mantissa(rondo_program *program, rondo_value x, float p, float q, rondo_value *out) {
  return rondo_op_round_mantissa(program, x, (unsigned)p, (int)q, out);
}

/* The numbers of the 8-bit type, ties, subnormals, infinities and NaN among them. */
TEST(test_on3_round_mantissa_as_the_8_bit_type) {
  enum { COUNT = 4096 };
  static float x[COUNT], rounded[COUNT], cast[COUNT];
  const size_t count = COUNT;
  for (size_t i = 0; i < COUNT; i++) x[i] = ldexpf((float)(i % 64 + 64) * (i % 2 == 0 ? 1 : -1), (int)(i / 64) - 56);
  for (size_t i = 0; i < COUNT; i++)
    if (fabsf(x[i]) > 448) x[i] = 448;
  x[0] = NAN, x[1] = 0, x[2] = -0.0f;
  rondo_program *program = test_new_program();
  rondo_value in, out, narrow;
  assert_ok(rondo_program_input(program, "x", RONDO_F32, &count, 1, &in));
  assert_ok(rondo_op_round_mantissa(program, in, 3, -9, &out));
  assert_ok(rondo_program_output(program, "rounded", out));
  assert_ok(rondo_op_cast(program, in, RONDO_F8_E4M3, &narrow));
  assert_ok(rondo_op_cast(program, narrow, RONDO_F32, &narrow));
  assert_ok(rondo_program_output(program, "cast", narrow));
  test_run_program(t, program, (const test_bytes[]){TEST_BYTES("x", x), {.name = NULL}},
                   (const test_bytes[]){TEST_BYTES("rounded", rounded), TEST_BYTES("cast", cast), {.name = NULL}});
  for (size_t i = 1; i < COUNT; i++) assert_memory_equal(&rounded[i], &cast[i], sizeof *cast);
  assert_true(isnan(rounded[0]));
}

TEST(test_on3_round_mantissa_refuses) {
  rondo_program *program = test_new_program();
  rondo_value in, out;
  assert_ok(rondo_program_input(program, "x", RONDO_F32, NULL, 0, &in));
  assert_invalid(rondo_op_round_mantissa(program, in, 24, 0, &out), RONDO_REASON_OUT_OF_RANGE);
  assert_invalid(rondo_op_round_mantissa(program, in, 3, -150, &out), RONDO_REASON_OUT_OF_RANGE);
  assert_invalid(rondo_op_round_mantissa(program, in, 3, 128, &out), RONDO_REASON_OUT_OF_RANGE);
  rondo_program_destroy(program);
}

/* Where the formula changes, and far away -------------------------------------------------------------------------- */

#define POINTS 6

static rondo_status hardsigmoid(rondo_program *program, rondo_value x, float p, float q, rondo_value *out) {
  return rondo_op_hardsigmoid(program, x, p, q, out);
}
static rondo_status threshold(rondo_program *program, rondo_value x, float p, float q, rondo_value *out) {
  return rondo_op_threshold(program, x, p, q, out);
}
static rondo_status shrink(rondo_program *program, rondo_value x, float p, float q, rondo_value *out) {
  return rondo_op_shrink(program, x, p, q, out);
}

TEST(test_on3_activation_ends) {
  static const float x[POINTS] = {0, -INFINITY, INFINITY, NAN, -2, 2};
  static const struct {
    const char *name;
    build_op op;
    float p, q;
    float y[POINTS], dx[POINTS];
  } points[] = {
      {"leaky_relu", leaky_relu, 0.5f, 0, {0, -INFINITY, INFINITY, NAN, -1, 2}, {0.5f, 0.5f, 1, 0.5f, 0.5f, 1}},
      {"elu", elu, 1, 0, {0, -1, INFINITY, NAN, -0.864664717f, 2}, {1, 0, 1, NAN, 0.135335283f, 1}},
      {"softplus",
       softplus,
       1,
       0,
       {0.693147181f, 0, INFINITY, NAN, 0.126928011f, 2.12692801f},
       {0.5f, 0, 1, NAN, 0.119202922f, 0.880797078f}},
      {"hardsigmoid", hardsigmoid, 0.25f, 0.5f, {0.5f, 0, 1, NAN, 0, 1}, {0.25f, 0, 0, 0, 0, 0}},
      {"threshold", threshold, 2, 7, {7, 7, INFINITY, NAN, 7, 7}, {0, 0, 1, 1, 0, 0}},
      {"shrink", shrink, 2, 1, {0, -INFINITY, INFINITY, NAN, 0, 0}, {0, 1, 1, 1, 0, 0}},
  };
  for (size_t i = 0; i < sizeof points / sizeof points[0]; i++) {
    float y[POINTS], dx[POINTS];
    const size_t count = POINTS;
    rondo_program *program = test_new_program();
    rondo_value in, out, loss, gradient;
    assert_ok(rondo_program_input(program, "x", RONDO_F32, &count, 1, &in));
    assert_ok(points[i].op(program, in, points[i].p, points[i].q, &out));
    assert_ok(rondo_op_sum(program, out, NULL, 0, false, &loss));
    assert_ok(rondo_program_gradients(program, loss, &in, 1, &gradient));
    assert_ok(rondo_program_output(program, "y", out));
    assert_ok(rondo_program_output(program, "dx", gradient));
    test_run_program(t, program, (const test_bytes[]){TEST_BYTES("x", x), {.name = NULL}},
                     (const test_bytes[]){TEST_BYTES("y", y), TEST_BYTES("dx", dx), {.name = NULL}});
    for (size_t k = 0; k < POINTS; k++) {
      const float got[] = {y[k], dx[k]}, wanted[] = {points[i].y[k], points[i].dx[k]};
      for (int of = 0; of < 2; of++) {
        if (got[of] == wanted[of] || fabsf(got[of] - wanted[of]) <= 1e-6f || (isnan(got[of]) && isnan(wanted[of])))
          continue;
        fail_msg("%s: %s at %g is %.9g, not %g", points[i].name, of == 0 ? "result" : "gradient", (double)x[k],
                 (double)got[of], (double)wanted[of]);
      }
    }
  }
}

/* gelu(x) = x Phi(x): 1 + erf(x / sqrt(2)) would have no correct digits there. */
TEST(test_on3_gelu_in_the_tail) {
  static const float x[POINTS] = {-3, -4, -5, -5.5f, -6, -7};
  float y[POINTS], dx[POINTS];
  const size_t count = POINTS;
  rondo_program *program = test_new_program();
  rondo_value in, out, loss, gradient;
  assert_ok(rondo_program_input(program, "x", RONDO_F32, &count, 1, &in));
  assert_ok(rondo_op_gelu(program, in, RONDO_GELU_ERF, &out));
  assert_ok(rondo_op_sum(program, out, NULL, 0, false, &loss));
  assert_ok(rondo_program_gradients(program, loss, &in, 1, &gradient));
  assert_ok(rondo_program_output(program, "y", out));
  assert_ok(rondo_program_output(program, "dx", gradient));
  test_run_program(t, program, (const test_bytes[]){TEST_BYTES("x", x), {.name = NULL}},
                   (const test_bytes[]){TEST_BYTES("y", y), TEST_BYTES("dx", dx), {.name = NULL}});
  for (size_t i = 0; i < POINTS; i++) {
    const double at = (double)x[i], phi = erfc(-at / sqrt(2)) / 2, density = exp(-at * at / 2) / sqrt(2 * acos(-1));
    const double wanted[] = {at * phi, phi + at * density}, got[] = {(double)y[i], (double)dx[i]};
    for (int of = 0; of < 2; of++)
      if (!(fabs(got[of] / wanted[of] - 1) <= 2e-5))
        fail_msg("%s at %g is %.9g, not %.9g", of == 0 ? "gelu" : "its gradient", at, got[of], wanted[of]);
  }
}

UNIT_TEST(test_on3_activation_numbers) {
  rondo_program *program = test_new_program();
  rondo_value x, whole, slope, y;
  assert_ok(rondo_program_input(program, "x", RONDO_F32, (size_t[]){2, 3}, 2, &x));
  assert_ok(rondo_program_input(program, "whole", RONDO_I32, (size_t[]){2, 3}, 2, &whole));
  assert_ok(rondo_program_input(program, "slope", RONDO_F32, (size_t[]){2}, 1, &slope));
  assert_error(rondo_op_leaky_relu(program, x, NAN, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE);
  assert_message("leaky_relu: a parameter is not a number");
  assert_error(rondo_op_celu(program, x, 0, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE);
  assert_message("celu: alpha is 0: use a number that is not 0");
  assert_error(rondo_op_softplus(program, x, 0, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE);
  assert_error(rondo_op_shrink(program, x, -1, 0, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE);
  assert_error(rondo_op_elu(program, whole, 1, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_TYPE);
  assert_error(rondo_op_selu(program, whole, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_TYPE);
  assert_message("selu: the value is i32; it must be f32, f16 or bf16");
  assert_error(rondo_op_prelu(program, x, slope, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE);
  assert_message(
      "prelu: slope [2] does not broadcast to value [2, 3]: both need one type; reshape slopes [c] of the channels of "
      "[n, c, h, w] to [c, 1, 1]");
  assert_error(rondo_op_prelu(program, x, whole, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE);
  assert_int_equal(y.id, 0);
  rondo_program_destroy(program);
}

/* The whole -------------------------------------------------------------------------------------------------------- */

#define ACTIVATION(operator, first, second)             \
  .draw = draw, .build = build, .reference = reference, \
  .family = &(const activation){operator, operator##_at, first, second}, .has_ties = true

static const test_operator rows[] = {
    {.name = "leaky_relu", ACTIVATION(leaky_relu, 0.1, 0)},
    {.name = "elu", ACTIVATION(elu, 1.5, 0)},
    {.name = "celu", ACTIVATION(celu, 0.75, 0)},
    {.name = "selu", ACTIVATION(selu, 1.6732632423543772, 0)},
    {.name = "softplus", ACTIVATION(softplus, 2, 0)},
    {.name = "hardsigmoid", ACTIVATION(hardsigmoid, 0.2, 0.5)},
    {.name = "hardswish", ACTIVATION(hardswish, 1.0 / 6, 0.5)},
    {.name = "threshold", ACTIVATION(threshold, 0.6, -1)},
    {.name = "shrink", ACTIVATION(shrink, 1.25, 0.5)},
    {.name = "round_mantissa", ACTIVATION(round_mantissa, 3, -2), .has_no_gradient = true},
    {.name = "prelu", .draw = draw_prelu, .build = build_prelu, .reference = reference_prelu, .has_ties = true},
    {.name = "prelu of integers",
     .draw = draw_prelu_of_integers,
     .build = build_prelu,
     .reference = reference_prelu,
     .only_f32 = true,
     .has_no_gradient = true},
};

TEST_OPERATOR_MAIN(rows)
