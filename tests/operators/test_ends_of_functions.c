/* SPDX-License-Identifier: MIT
 * Operators of one input where their functions end: infinities, not-a-number, zeros, what is too large.
 */
#include <math.h>

#include "support/test_operator.h"
#include "support/test_program.h"

typedef rondo_status (*unary)(rondo_program *program, rondo_value value, rondo_value *out_value);

static rondo_status gelu_exact(rondo_program *program, rondo_value value, rondo_value *out_value) {
  return rondo_op_gelu(program, value, RONDO_GELU_ERF, out_value);
}

static rondo_status gelu_tanh(rondo_program *program, rondo_value value, rondo_value *out_value) {
  return rondo_op_gelu(program, value, RONDO_GELU_TANH, out_value);
}

#define POINTS 7

/* The results and gradients at points; sums of them are the loss. */
static void run_at(test_fixture *t, unary op, const float *x, float *y, float *dx) {
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

static void test_ends(void **state) {
  test_fixture *t = *state;
  static const float x[POINTS] = {0, -INFINITY, INFINITY, NAN, 1e30f, -1e30f, -1};
#define INF INFINITY
  static const struct {
    const char *name;
    unary op;
    float y[POINTS], dx[POINTS];
  } rows[] = {
      {"abs", rondo_op_abs, {0, INF, INF, NAN, 1e30f, 1e30f, 1}, {0, -1, 1, NAN, 1, -1, -1}},
      {"relu", rondo_op_relu, {0, 0, INF, NAN, 1e30f, 0, 0}, {0, 0, 1, 0, 1, 0, 0}},
      {"neg", rondo_op_neg, {0, INF, -INF, NAN, -1e30f, 1e30f, 1}, {-1, -1, -1, -1, -1, -1, -1}},
      {"square", rondo_op_square, {0, INF, INF, NAN, INF, INF, 1}, {0, -INF, INF, NAN, 2e30f, -2e30f, -2}},
      {"sqrt", rondo_op_sqrt, {0, NAN, INF, NAN, 1e15f, NAN, NAN}, {INF, NAN, 0, NAN, 5e-16f, NAN, NAN}},
      {"rsqrt", rondo_op_rsqrt, {INF, NAN, 0, NAN, 1e-15f, NAN, NAN}, {-INF, NAN, 0, NAN, 0, NAN, NAN}},
      {"log", rondo_op_log, {-INF, NAN, INF, NAN, 69.0775528f, NAN, NAN}, {INF, 0, 0, NAN, 1e-30f, -1e-30f, -1}},
      {"sigmoid", rondo_op_sigmoid, {0.5f, 0, 1, NAN, 1, 0, 0.268941432f}, {0.25f, 0, 0, NAN, 0, 0, 0.196611941f}},
      {"gelu", gelu_exact, {0, NAN, INF, NAN, 1e30f, 0, -0.158655256f}, {0.5f, NAN, NAN, NAN, 1, 0, -0.0833154768f}},
      {"gelu_tanh", gelu_tanh, {0, NAN, INF, NAN, 1e30f, 0, -0.158808023f}, {0.5f, 0, 1, NAN, 1, 0, -0.0829641f}},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    float y[POINTS], dx[POINTS];
    run_at(t, rows[i].op, x, y, dx);
    check_at(rows[i].name, "result", x, y, rows[i].y);
    check_at(rows[i].name, "gradient", x, dx, rows[i].dx);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {test_case(test_ends)};
  return test_main(tests);
}
