/* SPDX-License-Identifier: MIT
 * Element-wise operators with one input: a row for each operator, with its value in plain C and the range of inputs.
 */
#include <math.h>

#include "support/test_operator.h"
#include "support/test_program.h"

/* The table -------------------------------------------------------------------------------------------------------- */

typedef struct unary {
  rondo_status (*op)(rondo_program *program, rondo_value value, rondo_value *out_value);
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

static double negative(double x) { return -x; }
static double relu(double x) { return x > 0 ? x : 0; }
static double rsqrt(double x) { return 1 / sqrt(x); }
static double sigmoid(double x) { return 1 / (1 + exp(-x)); }
static double silu(double x) { return x / (1 + exp(-x)); }
static double square(double x) { return x * x; }

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

static void test_gelu_form(void **state) {
  rondo_program *program = test_new_program();
  rondo_value x, y;
  (void)state;
  assert_ok(rondo_program_input(program, "x", RONDO_F32, NULL, 0, &x));
  assert_int_equal(rondo_op_gelu(program, x, (rondo_gelu_form)2, &y), RONDO_INVALID_ARGUMENT);
  assert_int_equal(rondo_last_error()->reason, RONDO_REASON_OUT_OF_RANGE);
  assert_true(y.id == 0);
  rondo_program_destroy(program);
}

/* The whole -------------------------------------------------------------------------------------------------------- */

#define UNARY(op, value_at, low, high) \
  .draw = draw, .build = build, .reference = reference, .family = &(const unary) { op, value_at, low, high }
#define RANGE(low, high) \
  .family = &(const unary) { NULL, NULL, low, high }

static const test_operator rows[] = {
    {.name = "abs", UNARY(rondo_op_abs, fabs, -3, 3)},
    {.name = "exp", UNARY(rondo_op_exp, exp, -4, 3)},
    {.name = "log", UNARY(rondo_op_log, log, 0.05, 8)},
    {.name = "neg", UNARY(rondo_op_neg, negative, -4, 4)},
    {.name = "relu", UNARY(rondo_op_relu, relu, -4, 4)},
    {.name = "rsqrt", UNARY(rondo_op_rsqrt, rsqrt, 0.1, 9)},
    {.name = "sigmoid", UNARY(rondo_op_sigmoid, sigmoid, -9, 9)},
    {.name = "silu", UNARY(rondo_op_silu, silu, -9, 9)},
    {.name = "sqrt", UNARY(rondo_op_sqrt, sqrt, 0.1, 9)},
    {.name = "square", UNARY(rondo_op_square, square, -3, 3)},
    {.name = "tanh", UNARY(rondo_op_tanh, tanh, -4, 4)},
    {.name = "gelu", .draw = draw_gelu, .build = build_gelu, .reference = reference_gelu, RANGE(-6, 6)},
    {.name = "scale", .draw = draw_with_number, .build = build_scale, .reference = reference_scale, RANGE(-4, 4)},
    {.name = "add_constant",
     .draw = draw_with_number,
     .build = build_add_constant,
     .reference = reference_add_constant,
     RANGE(-4, 4)},
};

int main(void) {
  const struct CMUnitTest others[] = {cmocka_unit_test(test_gelu_form)};
  return TEST_OPERATOR_MAIN(rows, others);
}
