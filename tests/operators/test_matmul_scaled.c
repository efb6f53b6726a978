/* SPDX-License-Identifier: MIT
 * Products of 8-bit floats (PR-8) against a reference in plain C: both types, scales of factors and of rows, results of
 * each float type, biases, sizes on both sides of tiles and of what libraries take; NaN; what is refused.
 */
#include <math.h>
#include <stdlib.h>

#include "support/test_effort.h"
#include "support/test_operator.h"
#include "support/test_program.h"

enum { MOST_M = 40, MOST_N = 80, MOST_K = 144 };

static const rondo_value none;

typedef struct product {
  rondo_type a_type, b_type, type;
  size_t m, n, k;
  bool scales_a_rows, scales_b_rows, has_bias;
  uint8_t a[MOST_M * MOST_K], b[MOST_N * MOST_K];
  float a_scales[MOST_M], b_scales[MOST_N], bias[MOST_N], y[MOST_M * MOST_N];
} product;

/* The number of these bits, after its definition. */
static double number_of(rondo_type type, uint8_t bits) {
  const int mantissa_bits = type == RONDO_F8_E4M3 ? 3 : 2, bias = type == RONDO_F8_E4M3 ? 7 : 15;
  const int exponent = (bits & 127) >> mantissa_bits, mantissa = bits & ((1 << mantissa_bits) - 1);
  const double sign = bits >= 128 ? -1 : 1;
  if (exponent == 0) return sign * ldexp(mantissa, 1 - bias - mantissa_bits);
  return sign * ldexp((1 << mantissa_bits) + mantissa, exponent - bias - mantissa_bits);
}

/* Of E4M3 any but NaN; of E5M2 such as E4M3 can nearly represent. */
static void draw_factor(uint64_t *seed, rondo_type type, uint8_t *to, size_t count) {
  for (size_t i = 0; i < count; i++) {
    const uint8_t sign = test_random_below(seed, 2) == 0 ? 0 : 128;
    const size_t magnitude = type == RONDO_F8_E4M3 ? test_random_below(seed, 127) : 30 + test_random_below(seed, 60);
    to[i] = (uint8_t)(sign | magnitude);
  }
}

static void draw(uint64_t *seed, product *p) {
  draw_factor(seed, p->a_type, p->a, p->m * p->k);
  draw_factor(seed, p->b_type, p->b, p->n * p->k);
  for (size_t i = 0; i < p->m; i++) p->a_scales[i] = (float)(1 + test_random_below(seed, 9)) / 4096;
  for (size_t i = 0; i < p->n; i++) p->b_scales[i] = (float)(1 + test_random_below(seed, 9)) / 4;
  for (size_t i = 0; i < p->n; i++) p->bias[i] = (float)test_random_below(seed, 9) - 4;
}

static rondo_program *make_program(const product *p) {
  rondo_matmul_scaled_options options = {RONDO_MATMUL_SCALED_OPTIONS_INIT, .type = p->type};
  const size_t a_shape[] = {1, p->m, p->k};
  rondo_program *program = test_new_program();
  rondo_value a, b, a_scale, b_scale, y;
  assert_ok(rondo_program_input(program, "a", p->a_type, a_shape, 3, &a));
  assert_ok(rondo_program_input(program, "b", p->b_type, (const size_t[]){p->n, p->k}, 2, &b));
  assert_ok(rondo_program_input(program, "a_scale", RONDO_F32, &p->m, p->scales_a_rows, &a_scale));
  assert_ok(rondo_program_input(program, "b_scale", RONDO_F32, &p->n, p->scales_b_rows, &b_scale));
  if (p->has_bias) {
    assert_ok(rondo_program_input(program, "bias", RONDO_F32, &p->n, 1, &options.bias));
    if (p->type != RONDO_F32) assert_ok(rondo_op_cast(program, options.bias, p->type, &options.bias));
  }
  assert_ok(rondo_op_matmul_scaled(program, a, b, a_scale, b_scale, &options, &y));
  if (p->type != RONDO_F32) assert_ok(rondo_op_cast(program, y, RONDO_F32, &y));
  assert_ok(rondo_program_output(program, "y", y));
  return program;
}

static void run(test_fixture *t, product *p) {
  static float again[MOST_M * MOST_N];
  const size_t bytes = p->m * p->n * sizeof *p->y;
  rondo_compiled *compiled = test_compile(make_program(p), t->device, NULL);
  assert_ok(rondo_compiled_write(compiled, "a", p->a, p->m * p->k));
  assert_ok(rondo_compiled_write(compiled, "b", p->b, p->n * p->k));
  assert_ok(rondo_compiled_write(compiled, "a_scale", p->a_scales, (p->scales_a_rows ? p->m : 1) * sizeof(float)));
  assert_ok(rondo_compiled_write(compiled, "b_scale", p->b_scales, (p->scales_b_rows ? p->n : 1) * sizeof(float)));
  if (p->has_bias) assert_ok(rondo_compiled_write(compiled, "bias", p->bias, p->n * sizeof *p->bias));
  assert_ok(rondo_compiled_run(compiled));
  assert_ok(rondo_compiled_read(compiled, "y", p->y, bytes));
  assert_ok(rondo_compiled_run_eager(compiled));
  assert_ok(rondo_compiled_read(compiled, "y", again, bytes));
  assert_memory_equal(p->y, again, bytes);
  assert_ok(rondo_compiled_destroy(compiled));
}

static void check(const product *p) {
  const double epsilon = p->type == RONDO_F32 ? 1e-6 : p->type == RONDO_F16 ? 1e-3 : 8e-3;
  for (size_t i = 0; i < p->m; i++) {
    for (size_t j = 0; j < p->n; j++) {
      double sum = 0, magnitude = 0;
      for (size_t k = 0; k < p->k; k++) {
        const double term = number_of(p->a_type, p->a[i * p->k + k]) * number_of(p->b_type, p->b[j * p->k + k]);
        sum += term;
        magnitude += fabs(term);
      }
      const double scale =
          (double)p->a_scales[p->scales_a_rows ? i : 0] * (double)p->b_scales[p->scales_b_rows ? j : 0];
      const double wanted = sum * scale + (p->has_bias ? (double)p->bias[j] : 0), y = (double)p->y[i * p->n + j];
      if (!(fabs(y - wanted) <= 4e-6 * magnitude * scale + epsilon * (1 + fabs(wanted))))
        fail_msg("%s x %s, %zu x %zu x %zu: y[%zu][%zu] is %g, not %g", rondo_type_name(p->a_type),
                 rondo_type_name(p->b_type), p->m, p->n, p->k, i, j, y, wanted);
    }
  }
}

TEST(test_pr8_products_of_8_bit_floats) {
  static const rondo_type types[] = {RONDO_F32, RONDO_F16, RONDO_BF16};
  static const size_t ms[] = {1, 5, 33, 40}, ns[] = {1, 16, 33, 80}, ks[] = {1, 16, 31, 144};
  static product p;
  uint64_t seed = 3;
  for (uint32_t turn = 0; turn < test_effort(2); turn++) {
    for (uint32_t kind = 0; kind < 24; kind++) {
      p.a_type = kind % 2 == 0 ? RONDO_F8_E4M3 : RONDO_F8_E5M2;
      p.b_type = kind / 2 % 2 == 0 ? RONDO_F8_E4M3 : RONDO_F8_E5M2;
      p.type = types[test_random_below(&seed, 3)];
      p.m = ms[test_random_below(&seed, 4)];
      p.n = ns[test_random_below(&seed, 4)];
      p.k = ks[test_random_below(&seed, 4)];
      p.scales_a_rows = kind / 4 % 2 == 1;
      p.scales_b_rows = kind / 4 % 2 == 1 ? kind % 3 != 0 : kind % 3 == 0;
      p.has_bias = kind / 8 == 1;
      draw(&seed, &p);
      run(t, &p);
      check(&p);
    }
  }
}

/* A NaN stays in its row, and infinities of E5M2 are infinite. */
TEST(test_pr8_special_numbers_of_8_bit_floats) {
  static product p = {.a_type = RONDO_F8_E5M2, .b_type = RONDO_F8_E4M3, .type = RONDO_F32, .m = 3, .n = 16, .k = 32};
  uint64_t seed = 5;
  draw(&seed, &p);
  p.a[3] = 0x7f;                                          /* NaN */
  p.a[2 * 32 + 7] = 124;                                  /* infinity */
  for (size_t j = 0; j < p.n; j++) p.b[j * p.k + 7] = 56; /* 1 */
  run(t, &p);
  for (size_t j = 0; j < p.n; j++) {
    assert_true(isnan(p.y[j]));
    assert_true(isfinite(p.y[p.n + j]));
    assert_true(p.y[2 * p.n + j] == INFINITY);
  }
}

TEST(test_pr8_wrong_products_of_8_bit_floats) {
  rondo_program *program = test_new_program();
  rondo_matmul_scaled_options options = {RONDO_MATMUL_SCALED_OPTIONS_INIT};
  rondo_value a, b, wide, singles, scale, rows, y;
  (void)t;
  assert_ok(rondo_program_input(program, "a", RONDO_F8_E4M3, (const size_t[]){3, 8}, 2, &a));
  assert_ok(rondo_program_input(program, "b", RONDO_F8_E4M3, (const size_t[]){5, 8}, 2, &b));
  assert_ok(rondo_program_input(program, "wide", RONDO_F8_E4M3, (const size_t[]){5, 9}, 2, &wide));
  assert_ok(rondo_program_input(program, "singles", RONDO_F32, (const size_t[]){5, 8}, 2, &singles));
  assert_ok(rondo_program_input(program, "scale", RONDO_F32, NULL, 0, &scale));
  assert_ok(rondo_program_input(program, "rows", RONDO_F32, (const size_t[]){3}, 1, &rows));
  assert_ok(rondo_op_matmul_scaled(program, a, b, rows, scale, NULL, &y));
  assert_invalid(rondo_op_matmul_scaled(program, singles, b, scale, scale, NULL, &y), RONDO_REASON_TYPE);
  assert_invalid(rondo_op_matmul_scaled(program, a, singles, scale, scale, NULL, &y), RONDO_REASON_TYPE);
  assert_message("b must be f8_e4m3 or f8_e5m2");
  assert_invalid(rondo_op_matmul_scaled(program, a, wide, scale, scale, NULL, &y), RONDO_REASON_SHAPE);
  assert_message("a must be [.., k], and b [n, k]");
  assert_invalid(rondo_op_matmul_scaled(program, a, b, scale, rows, NULL, &y), RONDO_REASON_SHAPE);
  assert_message("b_scale must have 1 element, or be [5]");
  assert_invalid(rondo_op_matmul_scaled(program, a, b, none, scale, NULL, &y), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_op_matmul_scaled(program, a, b, a, scale, NULL, &y), RONDO_REASON_TYPE);
  options.bias = rows;
  assert_invalid(rondo_op_matmul_scaled(program, a, b, scale, scale, &options, &y), RONDO_REASON_SHAPE);
  options.type = RONDO_F16;
  assert_invalid(rondo_op_matmul_scaled(program, a, b, scale, scale, &options, &y), RONDO_REASON_TYPE);
  options.type = RONDO_I32;
  assert_invalid(rondo_op_matmul_scaled(program, a, b, scale, scale, &options, &y), RONDO_REASON_OUT_OF_RANGE);
}
