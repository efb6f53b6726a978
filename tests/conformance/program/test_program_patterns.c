/* SPDX-License-Identifier: MIT
 * Patterns of operators that compiling replaces by one operator (ON-5): each is found in the forms that exporters and
 * people write, with the same values within rounding; what only looks like one stays as it is; all can be switched off
 * by name, and the explanation lists them.
 */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "support/rondo_test.h"
#include "support/test_program.h"

static const rondo_value none;

#define MOST_INPUTS 8
#define MOST_ELEMENTS 8192

/* A program under construction, in a type of floats. */
typedef struct scene {
  rondo_program *program;
  rondo_type type;
  uint32_t inputs;
} scene;

typedef struct pattern_case {
  const char *what, *pattern;
  uint32_t count; /* how often the pattern is replaced */
  void (*build)(scene *s);
} pattern_case;

/* Building --------------------------------------------------------------------------------------------------------- */

#define DIMS(...) (const size_t[]){__VA_ARGS__}, sizeof((const size_t[]){__VA_ARGS__}) / sizeof(size_t)

static rondo_value input(scene *s, const size_t *dims, size_t rank) {
  char name[16];
  rondo_value value;
  assert_true(s->inputs < MOST_INPUTS);
  (void)snprintf(name, sizeof name, "x%u", s->inputs++);
  assert_ok(rondo_program_input(s->program, name, s->type, dims, rank, &value));
  return value;
}

static rondo_value number(scene *s, double x) {
  rondo_value value;
  assert_ok(rondo_op_full(s->program, s->type, NULL, 0, x, &value));
  return value;
}

typedef rondo_status (*unary)(rondo_program *program, rondo_value a, rondo_value *out);
typedef rondo_status (*binary)(rondo_program *program, rondo_value a, rondo_value b, rondo_value *out);

static rondo_value of_one(scene *s, unary op, rondo_value a) {
  assert_ok(op(s->program, a, &a));
  return a;
}

static rondo_value of_two(scene *s, binary op, rondo_value a, rondo_value b) {
  assert_ok(op(s->program, a, b, &a));
  return a;
}

static rondo_value add(scene *s, rondo_value a, rondo_value b) { return of_two(s, rondo_op_add, a, b); }
static rondo_value sub(scene *s, rondo_value a, rondo_value b) { return of_two(s, rondo_op_sub, a, b); }
static rondo_value mul(scene *s, rondo_value a, rondo_value b) { return of_two(s, rondo_op_mul, a, b); }
static rondo_value divide(scene *s, rondo_value a, rondo_value b) { return of_two(s, rondo_op_div, a, b); }
static rondo_value power(scene *s, rondo_value a, double b) { return of_two(s, rondo_op_pow, a, number(s, b)); }

static rondo_value scale(scene *s, rondo_value a, float b) {
  assert_ok(rondo_op_scale(s->program, a, b, &a));
  return a;
}

static rondo_value mean(scene *s, rondo_value a, size_t dimension) {
  assert_ok(rondo_op_mean(s->program, a, &dimension, 1, true, &a));
  return a;
}

static rondo_value permute(scene *s, rondo_value a, const size_t *order) {
  assert_ok(rondo_op_permute(s->program, a, order, &a));
  return a;
}

static rondo_value reshape(scene *s, rondo_value a, const size_t *dims, size_t rank) {
  assert_ok(rondo_op_reshape(s->program, a, dims, rank, &a));
  return a;
}

static rondo_value matmul(scene *s, rondo_value a, rondo_value b, bool transpose_b) {
  const rondo_matmul_options options = {RONDO_MATMUL_OPTIONS_INIT, .transpose_b = transpose_b};
  assert_ok(rondo_op_matmul_with(s->program, a, b, &options, &a));
  return a;
}

static void output(scene *s, const char *name, rondo_value value) {
  assert_ok(rondo_program_output(s->program, name, value));
}
static void finish(scene *s, rondo_value y) { output(s, "y", y); }

/* Layer normalization ---------------------------------------------------------------------------------------------- */

/* As PyTorch's exporter writes it: ReduceMean, Sub, Pow, ReduceMean, Add, Sqrt, Div, Mul, Add. */
static void layer_norm_exported(scene *s) {
  const rondo_value x = input(s, DIMS(3, 5, 24)), w = input(s, DIMS(24)), b = input(s, DIMS(24));
  const rondo_value c = sub(s, x, mean(s, x, 2)), variance = mean(s, power(s, c, 2), 2);
  const rondo_value root = of_one(s, rondo_op_sqrt, add(s, variance, number(s, 1e-3)));
  finish(s, add(s, mul(s, divide(s, c, root), w), b));
}

/* With rsqrt, the parameters first and in three dimensions, and x - mean(x) twice. */
static void layer_norm_by_rsqrt(scene *s) {
  const rondo_value x = input(s, DIMS(3, 5, 24)), w = input(s, DIMS(1, 1, 24)), b = input(s, DIMS(1, 24));
  const rondo_value m = mean(s, x, 2), c = sub(s, x, m), d = sub(s, x, m);
  rondo_value variance = mean(s, of_one(s, rondo_op_square, d), 2);
  assert_ok(rondo_op_add_constant(s->program, variance, 1e-3f, &variance));
  finish(s, add(s, b, mul(s, w, mul(s, of_one(s, rondo_op_rsqrt, variance), c))));
}

static void layer_norm_without_parameters(scene *s) {
  const rondo_value x = input(s, DIMS(4, 31)), c = sub(s, x, mean(s, x, 1));
  const rondo_value root = of_one(s, rondo_op_sqrt, add(s, number(s, 1e-3), mean(s, mul(s, c, c), 1)));
  finish(s, divide(s, c, root));
}

static void layer_norm_of_dimension_0(scene *s) {
  const rondo_value x = input(s, DIMS(4, 31)), c = sub(s, x, mean(s, x, 0));
  const rondo_value root = of_one(s, rondo_op_sqrt, add(s, mean(s, mul(s, c, c), 0), number(s, 1e-3)));
  finish(s, divide(s, c, root));
}

static void layer_norm_that_is_read(scene *s) {
  const rondo_value x = input(s, DIMS(4, 31)), c = sub(s, x, mean(s, x, 1));
  const rondo_value root = of_one(s, rondo_op_sqrt, add(s, mean(s, mul(s, c, c), 1), number(s, 1e-3)));
  output(s, "c", c);
  finish(s, divide(s, c, root));
}

static void layer_norm_of_another_mean(scene *s) {
  const rondo_value x = input(s, DIMS(4, 31)), other = input(s, DIMS(4, 31)), c = sub(s, x, mean(s, other, 1));
  const rondo_value root = of_one(s, rondo_op_sqrt, add(s, mean(s, mul(s, c, c), 1), number(s, 1e-3)));
  finish(s, divide(s, c, root));
}

/* The scale is the normalized value. */
static void layer_norm_scaled_by_itself(scene *s) {
  const rondo_value x = input(s, DIMS(1, 31)), c = sub(s, x, mean(s, x, 1));
  const rondo_value root = of_one(s, rondo_op_sqrt, add(s, mean(s, mul(s, c, c), 1), number(s, 1e-3)));
  const rondo_value y = divide(s, c, root);
  finish(s, mul(s, y, y));
}

/* The shift is a value inside. */
static void layer_norm_shifted_by_itself(scene *s) {
  const rondo_value x = input(s, DIMS(1, 31)), c = sub(s, x, mean(s, x, 1));
  const rondo_value root = of_one(s, rondo_op_sqrt, add(s, mean(s, mul(s, c, c), 1), number(s, 1e-3)));
  finish(s, add(s, divide(s, c, root), c));
}

/* Root mean square normalization ----------------------------------------------------------------------------------- */

static void rms_norm_of_llama(scene *s) {
  const rondo_value x = input(s, DIMS(2, 3, 40)), w = input(s, DIMS(40));
  const rondo_value squares = add(s, mean(s, power(s, x, 2), 2), number(s, 1e-3));
  finish(s, mul(s, w, mul(s, x, divide(s, number(s, 1), of_one(s, rondo_op_sqrt, squares)))));
}

static void rms_norm_by_root(scene *s) {
  const rondo_value x = input(s, DIMS(6, 40));
  finish(s, divide(s, x, of_one(s, rondo_op_sqrt, add(s, mean(s, mul(s, x, x), 1), number(s, 1e-3)))));
}

static void rms_norm_of_another(scene *s) {
  const rondo_value x = input(s, DIMS(6, 40)), z = input(s, DIMS(6, 40));
  finish(s, divide(s, x, of_one(s, rondo_op_sqrt, add(s, mean(s, mul(s, z, z), 1), number(s, 1e-3)))));
}

static void rms_norm_without_epsilon(scene *s) {
  const rondo_value x = input(s, DIMS(6, 40));
  finish(s, divide(s, x, of_one(s, rondo_op_sqrt, mean(s, mul(s, x, x), 1))));
}

/* Rotary embedding ------------------------------------------------------------------------------------------------- */

enum { R_BATCH = 2, R_HEADS = 3, R_ROWS = 5, R_SIZE = 8, R_HALF = R_SIZE / 2 };

static void halves_of(scene *s, rondo_value x, bool slices, rondo_value *halves) {
  const size_t lengths[] = {R_HALF, R_HALF}, part[] = {R_BATCH, R_HEADS, R_ROWS, R_HALF};
  if (!slices) {
    assert_ok(rondo_op_split(s->program, x, 3, lengths, 2, halves));
    return;
  }
  assert_ok(rondo_op_slice(s->program, x, (const size_t[]){0, 0, 0, 0}, part, NULL, &halves[0]));
  assert_ok(rondo_op_slice(s->program, x, (const size_t[]){0, 0, 0, R_HALF}, part, NULL, &halves[1]));
}

static rondo_value concat(scene *s, rondo_value a, rondo_value b, size_t dimension) {
  const rondo_value parts[] = {a, b};
  assert_ok(rondo_op_concat(s->program, parts, 2, dimension, &a));
  return a;
}

/* concat(c x1 - s x2, s x1 + c x2) */
static void rotate(scene *s, bool slices, rondo_value c, rondo_value sine) {
  const rondo_value x = input(s, DIMS(R_BATCH, R_HEADS, R_ROWS, R_SIZE));
  rondo_value h[2];
  halves_of(s, x, slices, h);
  finish(s, concat(s, sub(s, mul(s, c, h[0]), mul(s, sine, h[1])), add(s, mul(s, h[0], sine), mul(s, c, h[1])), 3));
}

static void rotary_of_split(scene *s) {
  const rondo_value c = input(s, DIMS(R_BATCH, 1, R_ROWS, R_HALF));
  rotate(s, false, c, input(s, DIMS(R_BATCH, 1, R_ROWS, R_HALF)));
}

static void rotary_of_slices(scene *s) {
  const rondo_value c = input(s, DIMS(R_ROWS, R_HALF));
  rotate(s, true, c, input(s, DIMS(R_ROWS, R_HALF)));
}

static void rotary_by_heads(scene *s) {
  const rondo_value c = input(s, DIMS(R_HEADS, R_ROWS, R_HALF));
  rotate(s, false, c, input(s, DIMS(R_HEADS, R_ROWS, R_HALF)));
}

static void rotary_in_the_wrong_direction(scene *s) {
  const rondo_value x = input(s, DIMS(R_BATCH, R_HEADS, R_ROWS, R_SIZE)), c = input(s, DIMS(R_ROWS, R_HALF));
  const rondo_value sine = input(s, DIMS(R_ROWS, R_HALF));
  rondo_value h[2];
  halves_of(s, x, false, h);
  finish(s, concat(s, sub(s, mul(s, c, h[0]), mul(s, sine, h[1])), add(s, mul(s, h[1], sine), mul(s, c, h[0])), 3));
}

/* Of two heads of queries and keys: both read the cosines and sines of the angles, whose batch is 1 or R_BATCH. */
static void rotate_as_llama(scene *s, rondo_value angles, size_t batch) {
  rondo_value tables[2], y[2];
  for (int i = 0; i < 2; i++) {
    tables[i] = scale(s, of_one(s, i == 0 ? rondo_op_cos : rondo_op_sin, angles), 0.5f);
    tables[i] = reshape(s, tables[i], DIMS(batch, 1, R_ROWS, R_SIZE));
  }
  for (int i = 0; i < 2; i++) {
    const rondo_value x = input(s, DIMS(R_BATCH, R_HEADS, R_ROWS, R_SIZE));
    rondo_value h[2];
    halves_of(s, x, true, h);
    const rondo_value turned = concat(s, of_one(s, rondo_op_neg, h[1]), h[0], 3);
    y[i] = add(s, mul(s, x, tables[0]), mul(s, turned, tables[1]));
  }
  finish(s, mul(s, y[0], y[1]));
}

static void rotary_of_llama(scene *s) {
  const rondo_value f = input(s, DIMS(R_BATCH, R_ROWS, R_HALF));
  rotate_as_llama(s, concat(s, f, f, 2), R_BATCH);
}

/* The halves of the concatenation are halves of the rows, not of each row. */
static void rotary_of_doubled_rows(scene *s) {
  const rondo_value f = input(s, DIMS(1, R_ROWS * R_HALF));
  rotate_as_llama(s, concat(s, f, f, 1), 1);
}

static void rotary_of_two_angles(scene *s) {
  const rondo_value f = input(s, DIMS(R_BATCH, R_ROWS, R_HALF));
  rotate_as_llama(s, concat(s, f, input(s, DIMS(R_BATCH, R_ROWS, R_HALF)), 2), R_BATCH);
}

/* Activations ------------------------------------------------------------------------------------------------------ */

static void gelu_exported(scene *s) {
  const rondo_value x = input(s, DIMS(7, 33));
  const rondo_value erf = of_one(s, rondo_op_erf, divide(s, x, number(s, sqrt(2))));
  finish(s, mul(s, mul(s, x, add(s, erf, number(s, 1))), number(s, 0.5)));
}

static void gelu_half_first(scene *s) {
  const rondo_value x = input(s, DIMS(7, 33));
  rondo_value gate = scale(s, of_one(s, rondo_op_erf, scale(s, x, (float)sqrt(0.5))), 0.5f);
  assert_ok(rondo_op_add_constant(s->program, gate, 0.5f, &gate));
  finish(s, mul(s, gate, x));
}

static void gelu_tanh_exported(scene *s) {
  const rondo_value x = input(s, DIMS(7, 33)), cube = mul(s, number(s, 0.044715), power(s, x, 3));
  const rondo_value argument = mul(s, add(s, x, cube), number(s, 0.7978845608));
  const rondo_value gate = add(s, number(s, 1), of_one(s, rondo_op_tanh, argument));
  finish(s, mul(s, mul(s, x, number(s, 0.5)), gate));
}

static void gelu_tanh_by_factors(scene *s) {
  const rondo_value x = input(s, DIMS(7, 33));
  const rondo_value inner = add(s, mul(s, mul(s, number(s, 0.044715), x), x), number(s, 1));
  const rondo_value argument = mul(s, mul(s, x, number(s, 0.7978845608)), inner);
  const rondo_value gate = add(s, number(s, 1), of_one(s, rondo_op_tanh, argument));
  finish(s, mul(s, scale(s, gate, 0.5f), x));
}

/* Beyond the rounding of BF16, too. */
static void gelu_of_almost_its_factor(scene *s) {
  const rondo_value x = input(s, DIMS(7, 33));
  const rondo_value erf = of_one(s, rondo_op_erf, divide(s, x, number(s, 1.43)));
  finish(s, mul(s, mul(s, x, add(s, erf, number(s, 1))), number(s, 0.5)));
}

/* A factor of 0.5 that becomes 0. */
static void gelu_of_cast_factor(scene *s) {
  const rondo_value x = input(s, DIMS(7, 33));
  const rondo_value erf = of_one(s, rondo_op_erf, divide(s, x, number(s, sqrt(2))));
  rondo_value half = number(s, 0.5);
  assert_ok(rondo_op_cast(s->program, half, RONDO_I32, &half));
  assert_ok(rondo_op_cast(s->program, half, s->type, &half));
  finish(s, mul(s, mul(s, x, add(s, erf, number(s, 1))), half));
}

static void gelu_of_another_factor(scene *s) {
  const rondo_value x = input(s, DIMS(7, 33));
  const rondo_value erf = of_one(s, rondo_op_erf, divide(s, x, number(s, 1.5)));
  finish(s, mul(s, mul(s, x, add(s, erf, number(s, 1))), number(s, 0.5)));
}

static void gelu_whose_gate_is_read(scene *s) {
  const rondo_value x = input(s, DIMS(7, 33));
  const rondo_value erf = of_one(s, rondo_op_erf, divide(s, x, number(s, sqrt(2))));
  output(s, "erf", erf);
  finish(s, mul(s, mul(s, x, add(s, erf, number(s, 1))), number(s, 0.5)));
}

static void gelu_of_two_values(scene *s) {
  const rondo_value x = input(s, DIMS(7, 33)), z = input(s, DIMS(7, 33));
  const rondo_value erf = of_one(s, rondo_op_erf, divide(s, z, number(s, sqrt(2))));
  finish(s, mul(s, mul(s, x, add(s, erf, number(s, 1))), number(s, 0.5)));
}

static void silu(scene *s) {
  const rondo_value x = input(s, DIMS(7, 33));
  finish(s, mul(s, of_one(s, rondo_op_sigmoid, x), x));
}

static void silu_of_two_values(scene *s) {
  const rondo_value x = input(s, DIMS(7, 33)), z = input(s, DIMS(7, 33));
  finish(s, mul(s, of_one(s, rondo_op_sigmoid, z), x));
}

/* Attention -------------------------------------------------------------------------------------------------------- */

enum { BATCH = 2, HEADS = 4, ROWS = 9, COLUMNS = 13, SIZE = 16 };

/* [b, t, h d] to [b, h, t, d] */
static rondo_value heads(scene *s, size_t rows, size_t count, const size_t *order) {
  return permute(s, reshape(s, input(s, DIMS(BATCH, rows, count * SIZE)), DIMS(BATCH, rows, count, SIZE)), order);
}

static const size_t by_heads[] = {0, 2, 1, 3}, transposed[] = {0, 2, 3, 1}, swapped[] = {0, 1, 3, 2};

/* Keys are transposed in one permute; scores are divided and masked. */
static void attention_exported(scene *s) {
  const rondo_value q = heads(s, ROWS, HEADS, by_heads), k = heads(s, COLUMNS, HEADS, transposed);
  const rondo_value v = heads(s, COLUMNS, HEADS, by_heads), mask = input(s, DIMS(BATCH, 1, 1, COLUMNS));
  const rondo_value scores = divide(s, matmul(s, q, k, false), number(s, 4));
  finish(s, matmul(s, of_one(s, rondo_op_softmax, add(s, scores, mask)), v, false));
}

/* Both factors are scaled, as PyTorch's exporter does it, and rows without keys become zeros. */
static void attention_scaled_twice(scene *s) {
  const rondo_value q = scale(s, input(s, DIMS(BATCH, HEADS, ROWS, SIZE)), 0.5f);
  const rondo_value k = scale(s, permute(s, input(s, DIMS(BATCH, HEADS, COLUMNS, SIZE)), swapped), 0.5f);
  const rondo_value v = input(s, DIMS(BATCH, HEADS, COLUMNS, SIZE)), mask = input(s, DIMS(ROWS, COLUMNS));
  const rondo_value p = of_one(s, rondo_op_softmax, add(s, mask, matmul(s, q, k, false)));
  rondo_value made;
  assert_ok(rondo_op_select(s->program, of_one(s, rondo_op_is_nan, p), number(s, 0), p, &made));
  finish(s, matmul(s, made, v, false));
}

/* PyTorch's exporter transposes the keys as matrices, [b h, s, d]. */
static void attention_of_transposed_matrices(scene *s) {
  const rondo_value q = heads(s, ROWS, HEADS, by_heads), keys = heads(s, COLUMNS, HEADS, by_heads);
  const rondo_value v = heads(s, COLUMNS, HEADS, by_heads);
  rondo_value k = reshape(s, keys, DIMS(BATCH * HEADS, COLUMNS, SIZE));
  k = reshape(s, permute(s, k, (const size_t[]){0, 2, 1}), DIMS(BATCH, HEADS, SIZE, COLUMNS));
  finish(s, matmul(s, of_one(s, rondo_op_softmax, matmul(s, q, scale(s, k, 0.25f), false)), v, false));
}

/* Not the keys: the matrices have other rows. */
static void attention_of_split_matrices(scene *s) {
  const rondo_value q = input(s, DIMS(BATCH, HEADS, ROWS, SIZE)), v = input(s, DIMS(BATCH, HEADS, COLUMNS, SIZE));
  rondo_value k = reshape(s, input(s, DIMS(BATCH, HEADS, COLUMNS, SIZE)), DIMS(BATCH * HEADS, SIZE, COLUMNS));
  k = reshape(s, permute(s, k, (const size_t[]){0, 2, 1}), DIMS(BATCH, HEADS, SIZE, COLUMNS));
  finish(s, matmul(s, of_one(s, rondo_op_softmax, matmul(s, q, k, false)), v, false));
}

static rondo_value attend(scene *s, rondo_value q, rondo_value k, rondo_value v, rondo_value mask) {
  const rondo_attention_options options = {RONDO_ATTENTION_OPTIONS_INIT, .mask = mask};
  rondo_value y;
  assert_ok(rondo_op_attention(s->program, q, k, v, &options, &y));
  return y;
}

static rondo_value layer_norm(scene *s, rondo_value x, rondo_value scale) {
  const rondo_value shift = input(s, DIMS(40));
  assert_ok(rondo_op_layer_norm(s->program, x, scale, shift, 1, 1e-3f, &x));
  return x;
}

static void norm_of_sum(scene *s) {
  const rondo_value x = input(s, DIMS(7, 40)), z = input(s, DIMS(7, 40));
  finish(s, layer_norm(s, add(s, x, z), none));
}

/* As in networks with residual connections. */
static void norms_of_sums_that_are_read(scene *s) {
  const rondo_value x = input(s, DIMS(7, 40)), sum = add(s, x, input(s, DIMS(7, 40)));
  const rondo_value y = layer_norm(s, sum, input(s, DIMS(40)));
  finish(s, layer_norm(s, add(s, of_one(s, rondo_op_tanh, y), sum), input(s, DIMS(40))));
}

static void norm_of_broadcast_sum(scene *s) {
  const rondo_value x = input(s, DIMS(7, 40)), z = input(s, DIMS(40));
  finish(s, layer_norm(s, add(s, x, z), none));
}

static void norm_with_later_scale(scene *s) {
  const rondo_value x = input(s, DIMS(7, 40)), sum = add(s, x, input(s, DIMS(7, 40)));
  rondo_value scale;
  assert_ok(rondo_op_mean(s->program, sum, (const size_t[]){0}, 1, false, &scale));
  finish(s, layer_norm(s, sum, scale));
}

static void attention_in_rows(scene *s) {
  const rondo_value q = heads(s, ROWS, HEADS, by_heads), k = heads(s, COLUMNS, HEADS, by_heads);
  const rondo_value v = heads(s, COLUMNS, HEADS, by_heads), mask = input(s, DIMS(BATCH, 1, ROWS, COLUMNS));
  const rondo_value scores = matmul(s, q, permute(s, k, swapped), false);
  const rondo_value p = of_one(s, rondo_op_softmax, add(s, scores, mask));
  finish(s, reshape(s, permute(s, matmul(s, p, v, false), by_heads), DIMS(BATCH, ROWS, HEADS * SIZE)));
}

static void operator_in_rows(scene *s) {
  const rondo_value q = heads(s, ROWS, HEADS, by_heads), k = heads(s, COLUMNS, 1, by_heads);
  const rondo_value y = attend(s, q, k, heads(s, COLUMNS, 1, by_heads), input(s, DIMS(ROWS, COLUMNS)));
  finish(s, permute(s, y, by_heads));
}

static void operator_of_rows_of_q(scene *s) {
  const rondo_value q = heads(s, ROWS, HEADS, by_heads), k = input(s, DIMS(BATCH, HEADS, COLUMNS, SIZE));
  finish(s, attend(s, q, k, heads(s, COLUMNS, HEADS, by_heads), none));
}

static void operator_of_rows_of_k(scene *s) {
  const rondo_value q = input(s, DIMS(BATCH, HEADS, ROWS, SIZE)), k = heads(s, COLUMNS, HEADS, by_heads);
  finish(s, attend(s, q, k, input(s, DIMS(BATCH, HEADS, COLUMNS, SIZE)), none));
}

static void operator_whose_result_is_read(scene *s) {
  const rondo_value q = input(s, DIMS(BATCH, HEADS, ROWS, SIZE)), k = input(s, DIMS(BATCH, HEADS, COLUMNS, SIZE));
  const rondo_value y = attend(s, q, k, k, none);
  output(s, "attended", y);
  finish(s, permute(s, y, by_heads));
}

static void attention_of_matrices(scene *s) {
  const rondo_value q = input(s, DIMS(6, ROWS, SIZE)), k = input(s, DIMS(6, COLUMNS, SIZE));
  const rondo_value v = input(s, DIMS(6, COLUMNS, SIZE)), mask = input(s, DIMS(6, 1, COLUMNS));
  finish(s, matmul(s, of_one(s, rondo_op_softmax, add(s, matmul(s, q, k, true), mask)), v, false));
}

static void attention_of_one_matrix(scene *s) {
  const rondo_value q = input(s, DIMS(ROWS, SIZE)), k = input(s, DIMS(SIZE, COLUMNS)),
                    v = input(s, DIMS(COLUMNS, SIZE));
  finish(s, matmul(s, of_one(s, rondo_op_softmax, scale(s, matmul(s, q, k, false), 0.25f)), v, false));
}

/* Where puts a large negative number in place of scores. */
static void attention_of_select(scene *s) {
  const rondo_value q = input(s, DIMS(BATCH, HEADS, ROWS, SIZE)), k = input(s, DIMS(BATCH, HEADS, COLUMNS, SIZE));
  const rondo_value v = input(s, DIMS(BATCH, HEADS, COLUMNS, SIZE));
  rondo_value scores = scale(s, matmul(s, q, k, true), 0.25f), visible;
  assert_ok(rondo_op_greater(s->program, input(s, DIMS(BATCH, 1, ROWS, COLUMNS)), number(s, -0.5), &visible));
  assert_ok(rondo_op_select(s->program, visible, scores, number(s, -3e38), &scores));
  finish(s, matmul(s, of_one(s, rondo_op_softmax, scores), v, false));
}

/* Rows whose keys are all hidden have equal weights, which adding the number would not give. */
static void attention_of_small_select(scene *s) {
  const rondo_value q = input(s, DIMS(BATCH, HEADS, ROWS, SIZE)), k = input(s, DIMS(BATCH, HEADS, COLUMNS, SIZE));
  const rondo_value v = input(s, DIMS(BATCH, HEADS, COLUMNS, SIZE));
  rondo_value scores = scale(s, matmul(s, q, k, true), 0.25f), visible;
  assert_ok(rondo_op_greater(s->program, input(s, DIMS(BATCH, 1, ROWS, 1)), number(s, 0), &visible));
  assert_ok(rondo_op_select(s->program, visible, scores, number(s, -30000), &scores));
  finish(s, matmul(s, of_one(s, rondo_op_softmax, scores), v, false));
}

static void attention_with_negative_factor(scene *s) {
  const rondo_value q = input(s, DIMS(6, ROWS, SIZE)), k = input(s, DIMS(6, COLUMNS, SIZE));
  const rondo_value scores = scale(s, matmul(s, q, k, true), -0.25f);
  finish(s, matmul(s, of_one(s, rondo_op_softmax, scores), input(s, DIMS(6, COLUMNS, SIZE)), false));
}

/* The mask of scores are these scores. */
static void attention_masked_by_itself(scene *s) {
  const rondo_value q = input(s, DIMS(6, ROWS, SIZE)), k = input(s, DIMS(6, COLUMNS, SIZE));
  const rondo_value scores = matmul(s, q, k, true);
  finish(s, matmul(s, of_one(s, rondo_op_softmax, add(s, scores, scores)), input(s, DIMS(6, COLUMNS, SIZE)), false));
}

/* The values are the scores. */
static void attention_of_itself(scene *s) {
  const rondo_value q = input(s, DIMS(SIZE, SIZE)), k = input(s, DIMS(SIZE, SIZE)), scores = matmul(s, q, k, true);
  finish(s, matmul(s, of_one(s, rondo_op_softmax, scores), scores, false));
}

/* [b, g, s, d], each head twice. */
static rondo_value repeated(scene *s) {
  rondo_value value = reshape(s, input(s, DIMS(BATCH, 2, COLUMNS, SIZE)), DIMS(BATCH, 2, 1, COLUMNS, SIZE));
  assert_ok(rondo_op_expand(s->program, value, DIMS(BATCH, 2, 2, COLUMNS, SIZE), &value));
  return reshape(s, value, DIMS(BATCH, HEADS, COLUMNS, SIZE));
}

static void attention_of_groups(scene *s) {
  const rondo_value q = input(s, DIMS(BATCH, HEADS, ROWS, SIZE)), k = permute(s, repeated(s), swapped);
  const rondo_value scores = mul(s, matmul(s, q, k, false), number(s, 0.25));
  finish(s, matmul(s, of_one(s, rondo_op_softmax, scores), repeated(s), false));
}

static void attention_that_is_read(scene *s) {
  const rondo_value q = input(s, DIMS(6, ROWS, SIZE)), k = input(s, DIMS(6, COLUMNS, SIZE));
  const rondo_value p = of_one(s, rondo_op_softmax, matmul(s, q, k, true));
  output(s, "p", p);
  finish(s, matmul(s, p, input(s, DIMS(6, COLUMNS, SIZE)), false));
}

static void attention_of_other_values(scene *s) {
  const rondo_value q = input(s, DIMS(6, ROWS, SIZE)), k = input(s, DIMS(6, COLUMNS, SIZE));
  const rondo_value p = of_one(s, rondo_op_softmax, matmul(s, q, k, true));
  finish(s, matmul(s, p, input(s, DIMS(6, COLUMNS, SIZE + 4)), false));
}

static void attention_of_broadcast_keys(scene *s) {
  const rondo_value q = input(s, DIMS(6, ROWS, SIZE)), k = input(s, DIMS(COLUMNS, SIZE));
  const rondo_value p = of_one(s, rondo_op_softmax, matmul(s, q, k, true));
  finish(s, matmul(s, p, input(s, DIMS(6, COLUMNS, SIZE)), false));
}

static void attention_with_a_cell(scene *s) {
  const rondo_value q = input(s, DIMS(6, ROWS, SIZE)), k = input(s, DIMS(6, COLUMNS, SIZE));
  const rondo_value scores = mul(s, matmul(s, q, k, true), input(s, DIMS(1)));
  finish(s, matmul(s, of_one(s, rondo_op_softmax, scores), input(s, DIMS(6, COLUMNS, SIZE)), false));
}

/* Products and convolutions ---------------------------------------------------------------------------------------- */

static void bias_of_product(scene *s) {
  const rondo_value x = input(s, DIMS(2, 5, 12)), w = input(s, DIMS(12, 20)), b = input(s, DIMS(1, 20));
  finish(s, add(s, b, matmul(s, x, w, false)));
}

static void bias_of_itself(scene *s) {
  const rondo_value product = matmul(s, input(s, DIMS(1, 24)), input(s, DIMS(24, 40)), false);
  finish(s, add(s, product, product));
}

static void bias_of_rows(scene *s) {
  const rondo_value x = input(s, DIMS(20, 12)), w = input(s, DIMS(12, 20)), b = input(s, DIMS(20, 1));
  finish(s, add(s, matmul(s, x, w, false), b));
}

static void bias_of_product_that_is_read(scene *s) {
  const rondo_value x = input(s, DIMS(5, 12)), w = input(s, DIMS(12, 20)), y = matmul(s, x, w, false);
  output(s, "product", y);
  finish(s, add(s, y, input(s, DIMS(20))));
}

static void bias_that_broadcasts(scene *s) {
  const rondo_value x = input(s, DIMS(1, 12)), w = input(s, DIMS(12, 20));
  finish(s, add(s, matmul(s, x, w, false), input(s, DIMS(3, 1, 20))));
}

static rondo_value conv(scene *s, size_t images, size_t in, size_t out, size_t size, rondo_value bias) {
  const rondo_value x = input(s, DIMS(images, in, size, size)), w = input(s, DIMS(out, in, 3, 3));
  const rondo_conv_options options = {RONDO_CONV_OPTIONS_INIT, .padding = {1, 1}, .bias = bias};
  rondo_value y;
  assert_ok(rondo_op_conv(s->program, x, w, &options, &y));
  return y;
}

static void bias_of_conv(scene *s) {
  const rondo_value b = input(s, DIMS(1, 6, 1, 1));
  finish(s, add(s, conv(s, 2, 3, 6, 9, none), b));
}

static void bias_of_columns_of_conv(scene *s) { finish(s, add(s, conv(s, 2, 3, 6, 6, none), input(s, DIMS(6)))); }

static void activation_of_product(scene *s) {
  const rondo_value x = input(s, DIMS(5, 12)), w = input(s, DIMS(12, 20)), b = input(s, DIMS(20));
  finish(s, of_one(s, rondo_op_relu, add(s, matmul(s, x, w, false), b)));
}

static void gelu_of_product(scene *s) {
  const rondo_value x = matmul(s, input(s, DIMS(5, 12)), input(s, DIMS(12, 20)), false);
  const rondo_value erf = of_one(s, rondo_op_erf, divide(s, x, number(s, sqrt(2))));
  finish(s, mul(s, mul(s, x, add(s, erf, number(s, 1))), number(s, 0.5)));
}

static void activation_of_conv(scene *s) {
  finish(s, of_one(s, rondo_op_relu, conv(s, 2, 3, 6, 9, input(s, DIMS(6)))));
}

static void activation_of_depthwise_conv(scene *s) {
  const rondo_value x = input(s, DIMS(2, 6, 9, 9)), w = input(s, DIMS(6, 1, 3, 3));
  const rondo_conv_options options = {RONDO_CONV_OPTIONS_INIT, .padding = {1, 1}, .groups = 6};
  rondo_value y;
  assert_ok(rondo_op_conv(s->program, x, w, &options, &y));
  finish(s, of_one(s, rondo_op_silu, y));
}

static void activation_of_pointwise_conv(scene *s) {
  const rondo_value x = input(s, DIMS(2, 6, 7, 9)), w = input(s, DIMS(5, 6, 1, 1));
  rondo_value y;
  assert_ok(rondo_op_conv(s->program, x, w, NULL, &y));
  finish(s, of_one(s, rondo_op_relu, y));
}

static void activation_of_product_that_is_read(scene *s) {
  const rondo_value x = input(s, DIMS(5, 12)), w = input(s, DIMS(12, 20)), y = matmul(s, x, w, false);
  output(s, "product", y);
  finish(s, of_one(s, rondo_op_relu, y));
}

/* The parameters of batch_norm are F32. */
static rondo_value parameter(scene *s, size_t channels) {
  rondo_value value = input(s, &channels, 1);
  if (s->type != RONDO_F32) assert_ok(rondo_op_cast(s->program, value, RONDO_F32, &value));
  return value;
}

/* A variance is at least 0. */
static rondo_value batch_norm(scene *s, rondo_value x, size_t channels, bool inference) {
  rondo_batch_norm_options options = {RONDO_BATCH_NORM_OPTIONS_INIT, .inference = inference, .epsilon = 1e-2f};
  options.scale = parameter(s, channels);
  options.shift = parameter(s, channels);
  if (inference) options.running_mean = parameter(s, channels);
  if (inference) options.running_variance = of_one(s, rondo_op_abs, parameter(s, channels));
  assert_ok(rondo_op_batch_norm(s->program, x, &options, &x));
  return x;
}

static void batch_norm_of_conv(scene *s) {
  finish(s, of_one(s, rondo_op_relu, batch_norm(s, conv(s, 2, 3, 6, 9, none), 6, true)));
}

static void batch_norm_of_conv_with_bias(scene *s) {
  finish(s, batch_norm(s, conv(s, 2, 3, 6, 9, input(s, DIMS(6))), 6, true));
}

static void batch_norm_of_few_results(scene *s) { finish(s, batch_norm(s, conv(s, 1, 6, 6, 3, none), 6, true)); }

static void batch_norm_that_trains(scene *s) { finish(s, batch_norm(s, conv(s, 2, 3, 6, 9, none), 6, false)); }

static const pattern_case cases[] = {
    {"exported layer norm", "layer_norm", 1, layer_norm_exported},
    {"layer norm by rsqrt", "layer_norm", 1, layer_norm_by_rsqrt},
    {"layer norm without parameters", "layer_norm", 1, layer_norm_without_parameters},
    {"layer norm of dimension 0", "layer_norm", 0, layer_norm_of_dimension_0},
    {"layer norm whose distance is an output", "layer_norm", 0, layer_norm_that_is_read},
    {"distance from another mean", "layer_norm", 0, layer_norm_of_another_mean},
    {"layer norm scaled by itself", "layer_norm", 1, layer_norm_scaled_by_itself},
    {"layer norm shifted by itself", "layer_norm", 0, layer_norm_shifted_by_itself},
    {"RMS norm of Llama", "rms_norm", 1, rms_norm_of_llama},
    {"RMS norm by a root", "rms_norm", 1, rms_norm_by_root},
    {"RMS norm of another value", "rms_norm", 0, rms_norm_of_another},
    {"RMS norm without epsilon", "rms_norm", 0, rms_norm_without_epsilon},
    {"rotary of a split", "rotary", 1, rotary_of_split},
    {"rotary of slices", "rotary", 1, rotary_of_slices},
    {"rotary of Llama, twice", "rotary", 2, rotary_of_llama},
    {"rotary of doubled rows", "rotary", 0, rotary_of_doubled_rows},
    {"rotary with tables of heads", "rotary", 0, rotary_by_heads},
    {"rotary in the wrong direction", "rotary", 0, rotary_in_the_wrong_direction},
    {"rotary of two angles", "rotary", 0, rotary_of_two_angles},
    {"exported gelu", "gelu", 1, gelu_exported},
    {"gelu with the half first", "gelu", 1, gelu_half_first},
    {"exported gelu of tanh", "gelu", 1, gelu_tanh_exported},
    {"gelu of tanh by factors", "gelu", 1, gelu_tanh_by_factors},
    {"gelu with another factor", "gelu", 0, gelu_of_another_factor},
    {"gelu with a factor that is almost right", "gelu", 0, gelu_of_almost_its_factor},
    {"gelu with a factor that a cast changes", "gelu", 0, gelu_of_cast_factor},
    {"gelu whose erf is an output", "gelu", 0, gelu_whose_gate_is_read},
    {"gelu of two values", "gelu", 0, gelu_of_two_values},
    {"silu", "silu", 1, silu},
    {"silu of two values", "silu", 0, silu_of_two_values},
    {"exported attention", "attention", 1, attention_exported},
    {"attention with two factors", "attention", 1, attention_scaled_twice},
    {"attention of keys transposed as matrices", "attention", 1, attention_of_transposed_matrices},
    {"attention of keys in other matrices", "attention", 1, attention_of_split_matrices},
    {"attention of rows of heads", "attention_layout", 1, attention_in_rows},
    {"the operator, of rows of heads", "attention_layout", 1, operator_in_rows},
    {"the operator, of rows of q alone", "attention_layout", 1, operator_of_rows_of_q},
    {"the operator, of rows of k alone", "attention_layout", 0, operator_of_rows_of_k},
    {"the operator, whose result is an output", "attention_layout", 0, operator_whose_result_is_read},
    {"attention of matrices", "attention", 1, attention_of_matrices},
    {"attention of one matrix", "attention", 1, attention_of_one_matrix},
    {"attention with a select", "attention", 1, attention_of_select},
    {"attention with a select of a small number", "attention", 0, attention_of_small_select},
    {"attention with a negative factor", "attention", 0, attention_with_negative_factor},
    {"attention masked by its scores", "attention", 0, attention_masked_by_itself},
    {"attention of its scores", "attention", 0, attention_of_itself},
    {"attention of groups", "attention", 1, attention_of_groups},
    {"attention whose softmax is an output", "attention", 0, attention_that_is_read},
    {"attention of values of another size", "attention", 0, attention_of_other_values},
    {"attention of broadcast keys", "attention", 0, attention_of_broadcast_keys},
    {"attention with a factor that is not known", "attention", 0, attention_with_a_cell},
    {"bias of a product", "bias", 1, bias_of_product},
    {"bias of a product that is the product", "bias", 0, bias_of_itself},
    {"bias of rows", "bias", 0, bias_of_rows},
    {"bias of a product that is an output", "bias", 0, bias_of_product_that_is_read},
    {"bias of more dimensions", "bias", 0, bias_that_broadcasts},
    {"bias of a convolution", "bias", 1, bias_of_conv},
    {"bias of the columns of a convolution", "bias", 0, bias_of_columns_of_conv},
    {"activation of a product with a bias", "activation", 1, activation_of_product},
    {"exported gelu of a product", "activation", 1, gelu_of_product},
    {"activation of a convolution", "activation", 1, activation_of_conv},
    {"activation of a depthwise convolution", "activation", 1, activation_of_depthwise_conv},
    {"activation of a pointwise convolution", "activation", 1, activation_of_pointwise_conv},
    {"activation of a product that is an output", "activation", 0, activation_of_product_that_is_read},
    {"norm of a sum", "add_layer_norm", 1, norm_of_sum},
    {"norms of sums that are read", "add_layer_norm", 2, norms_of_sums_that_are_read},
    {"norm of a broadcast sum", "add_layer_norm", 0, norm_of_broadcast_sum},
    {"norm with a scale made from the sum", "add_layer_norm", 0, norm_with_later_scale},
    {"batch norm of a convolution", "batch_norm", 1, batch_norm_of_conv},
    {"batch norm of a convolution with a bias", "batch_norm", 1, batch_norm_of_conv_with_bias},
    {"batch norm of few results", "batch_norm", 0, batch_norm_of_few_results},
    {"batch norm that trains", "batch_norm", 0, batch_norm_that_trains},
};

/* Comparing -------------------------------------------------------------------------------------------------------- */

/* How often the explanation says that a pattern was replaced; NULL: all patterns. */
static uint32_t count_patterns(const rondo_compiled *compiled, const char *name) {
  char *text = NULL;
  json_error_t error;
  json_int_t count = 0;
  assert_ok(rondo_compiled_explain(compiled, RONDO_EXPLAIN_JSON, &text));
  json_t *json = json_loads(text, 0, &error);
  assert_non_null(json);
  const json_t *all = json_object_get(json, "patterns");
  for (size_t i = 0; i < json_array_size(all); i++) {
    const json_t *item = json_array_get(all, i);
    if (name == NULL || strcmp(json_string_value(json_object_get(item, "name")), name) == 0)
      count += json_integer_value(json_object_get(item, "count"));
  }
  json_decref(json);
  rondo_text_free(text);
  return (uint32_t)count;
}

static uint32_t patterns_of(const rondo_compiled *compiled) {
  rondo_compiled_info info = {.struct_size = sizeof info};
  rondo_compiled_pattern pattern = {.struct_size = sizeof pattern};
  size_t listed = 0;
  for (; rondo_compiled_get_pattern(compiled, listed, &pattern) == RONDO_OK; listed++) {
    assert_true(pattern.count > 0);
    assert_int_equal(pattern.count, count_patterns(compiled, pattern.name));
  }
  assert_ok(rondo_compiled_get_info(compiled, &info));
  return info.patterns;
}

static float number_at(rondo_type type, const void *elements, size_t index) {
  if (type == RONDO_F32) return ((const float *)elements)[index];
  const uint32_t bits = (uint32_t)((const uint16_t *)elements)[index] << 16; /* BF16 */
  float number;
  memcpy(&number, &bits, sizeof number);
  return number;
}

static void write_inputs(rondo_compiled *compiled, const scene *s) {
  static unsigned char elements[MOST_ELEMENTS * sizeof(float)];
  uint64_t seed = 7;
  for (uint32_t i = 0; i < s->inputs; i++) {
    char name[16];
    (void)snprintf(name, sizeof name, "x%u", i);
    const rondo_compiled_value value = test_compiled_value(compiled, 'i', name);
    const size_t bytes = rondo_type_bytes(s->type);
    assert_true(value.bytes <= sizeof elements);
    for (size_t k = 0; k < value.bytes / bytes; k++) {
      const float x = (float)test_random_below(&seed, 2001) / 1000.0f - 1.0f;
      uint32_t bits;
      memcpy(&bits, &x, sizeof bits);
      if (s->type != RONDO_F32) bits >>= 16;
      memcpy(elements + k * bytes, &bits, bytes); /* the lower bytes come first */
    }
    assert_ok(rondo_compiled_write(compiled, name, elements, value.bytes));
  }
}

static void read_result(rondo_compiled *compiled, const scene *s, void *out, size_t *out_bytes) {
  *out_bytes = test_compiled_value(compiled, 'o', "y").bytes;
  assert_true(*out_bytes <= MOST_ELEMENTS * sizeof(float));
  write_inputs(compiled, s);
  assert_ok(rondo_compiled_run(compiled));
  assert_ok(rondo_compiled_read(compiled, "y", out, *out_bytes));
}

static scene build(const pattern_case *of, rondo_type type) {
  scene s = {.program = test_new_program(), .type = type};
  of->build(&s);
  return s;
}

/* On a CUDA device, what follows a convolution stays as it is; sums are normalised together there alone. */
static uint32_t count_there(const test_fixture *t, const pattern_case *of) {
  rondo_device_info info = {.struct_size = sizeof info};
  assert_ok(rondo_device_get_info(t->device, &info));
  if (strcmp(of->pattern, "add_layer_norm") == 0) return info.cuda ? of->count : 0;
  const bool follows = strstr(of->what, "convolution") != NULL && strcmp(of->pattern, "batch_norm") != 0;
  return info.cuda && follows ? 0 : of->count;
}

static void compare(test_fixture *t, const pattern_case *of, rondo_type type) {
  static unsigned char y[MOST_ELEMENTS * sizeof(float)], plain[sizeof y];
  const rondo_compile_options off = {RONDO_COMPILE_OPTIONS_INIT, .without_patterns = "all"};
  const scene s = build(of, type);
  size_t bytes;
  rondo_compiled *compiled = test_compile_kept(s.program, t->device, NULL);
  const uint32_t count = count_patterns(compiled, of->pattern), expected = count_there(t, of);
  if (count != expected) fail_msg("%s: %s was replaced %u times, not %u", of->what, of->pattern, count, expected);
  read_result(compiled, &s, y, &bytes);
  rondo_compiled *as_written = test_compile(s.program, t->device, &off);
  assert_int_equal(patterns_of(as_written), 0);
  read_result(as_written, &s, plain, &bytes);
  const double tolerance = type == RONDO_F32 ? 1e-5 : 4e-2;
  double largest = 1;
  for (size_t i = 0; i < bytes / rondo_type_bytes(type); i++)
    largest = fmax(largest, fabs((double)number_at(type, plain, i)));
  for (size_t i = 0; i < bytes / rondo_type_bytes(type); i++) {
    const double a = (double)number_at(type, y, i), b = (double)number_at(type, plain, i);
    if (!(fabs(a - b) <= tolerance * largest)) fail_msg("%s: element %zu is %g, not %g", of->what, i, a, b);
  }
}

TEST(test_on5_patterns_are_replaced) {
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) compare(t, &cases[i], RONDO_F32);
}

/* Numbers such as epsilon are rounded to the type. */
TEST(test_on5_patterns_of_bf16_are_replaced) {
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    pattern_case of = cases[i];
    if (strcmp(of.pattern, "batch_norm") == 0 || strcmp(of.pattern, "rotary") == 0) of.count = 0;
    compare(t, &of, RONDO_BF16);
  }
}

/* Switching off ---------------------------------------------------------------------------------------------------- */

static const pattern_case *case_of(const char *what) {
  size_t i = 0;
  while (strcmp(cases[i].what, what) != 0) i++;
  return &cases[i];
}

TEST(test_on5_patterns_are_switched_off_by_name) {
  const scene s = build(case_of("activation of a product with a bias"), RONDO_F32);
  const rondo_compile_options no_bias = {RONDO_COMPILE_OPTIONS_INIT, .without_patterns = "gelu,bias"};
  const rondo_compile_options no_activation = {RONDO_COMPILE_OPTIONS_INIT, .without_patterns = "activation"};
  const rondo_compile_options never = {RONDO_COMPILE_OPTIONS_INIT, .fusion = RONDO_FUSION_NEVER};
  assert_int_equal(patterns_of(test_compile_kept(s.program, t->device, NULL)), 2);
  assert_int_equal(patterns_of(test_compile_kept(s.program, t->device, &no_bias)), 0); /* nothing is left to activate */
  assert_int_equal(patterns_of(test_compile_kept(s.program, t->device, &no_activation)), 1);
  assert_int_equal(patterns_of(test_compile_kept(s.program, t->device, &never)), 0);
}

TEST(test_on5_recompiling_keeps_the_choice) {
  const scene s = build(case_of("activation of a product with a bias"), RONDO_F32);
  const rondo_compile_options no_activation = {RONDO_COMPILE_OPTIONS_INIT, .without_patterns = "activation"};
  rondo_compiled *compiled = test_compile_kept(s.program, t->device, &no_activation);
  assert_ok(rondo_compiled_recompile(compiled, s.program, NULL));
  assert_int_equal(patterns_of(compiled), 1);
}

TEST(test_on5_unknown_names_are_refused) {
  const scene s = build(case_of("silu"), RONDO_F32);
  static const char *const names[] = {"silou", "silu,,gelu", "silu, gelu", "all "};
  rondo_compiled *compiled;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .without_patterns = names[i]};
    assert_error(rondo_compile(s.program, t->device, &options, &compiled), RONDO_INVALID_ARGUMENT,
                 RONDO_REASON_UNKNOWN_NAME);
  }
  assert_message(
      "attention, attention_layout, layer_norm, rms_norm, rotary, gelu, silu, bias, activation, batch_norm, "
      "attention_mask, add_layer_norm");
}

/* Programs that are differentiated --------------------------------------------------------------------------------- */

TEST(test_on5_gradients_keep_what_they_read) {
  scene s = {.program = test_new_program(), .type = RONDO_F32};
  const rondo_value x = input(&s, DIMS(7, 33)), erf = of_one(&s, rondo_op_erf, divide(&s, x, number(&s, sqrt(2))));
  rondo_value y = mul(&s, mul(&s, x, add(&s, erf, number(&s, 1))), number(&s, 0.5)), gradient;
  assert_ok(rondo_op_sum(s.program, y, NULL, 0, false, &y));
  finish(&s, y);
  assert_ok(rondo_program_gradients(s.program, y, &x, 1, &gradient));
  output(&s, "gradient", gradient);
  assert_int_equal(count_patterns(test_compile_kept(s.program, t->device, NULL), "gelu"), 0);
}

TEST(test_on5_programs_with_an_optimizer_stay) {
  scene s = {.program = test_new_program(), .type = RONDO_F32};
  const rondo_value x = input(&s, DIMS(5, 12)), w = test_value(s.program, 's', "w", 12, 20);
  const rondo_value b = test_value(s.program, 's', "b", 1, 20);
  rondo_value y = add(&s, matmul(&s, x, w, false), b), rate;
  assert_ok(rondo_program_cell(s.program, "rate", 0.1f, &rate));
  assert_ok(rondo_op_mean(s.program, y, NULL, 0, false, &y));
  const rondo_sgd_options sgd = {RONDO_SGD_OPTIONS_INIT, .learning_rate = rate};
  assert_ok(rondo_program_sgd(s.program, y, &sgd));
  assert_int_equal(patterns_of(test_compile_kept(s.program, t->device, NULL)), 0);
}

/* Messages name operators as the caller numbered them, although others before them are gone. */
TEST(test_on5_operators_keep_their_numbers) {
  scene s = {.program = test_new_program(), .type = RONDO_F32};
  const rondo_value x = input(&s, DIMS(7, 33)), y = mul(&s, of_one(&s, rondo_op_sigmoid, x), x); /* 0 and 1 */
  rondo_value indices, picked;
  const int32_t wrong[2] = {0, 7};
  float result[2 * 33];
  assert_ok(rondo_program_input(s.program, "indices", RONDO_I32, DIMS(2), &indices));
  assert_ok(rondo_op_index_select(s.program, y, indices, 0, &picked)); /* 2 */
  finish(&s, picked);
  rondo_compiled *compiled = test_compile_kept(s.program, t->device, NULL);
  assert_int_equal(count_patterns(compiled, "silu"), 1);
  assert_ok(rondo_compiled_write(compiled, "indices", wrong, sizeof wrong));
  assert_ok(rondo_compiled_run(compiled));
  assert_error(rondo_compiled_read(compiled, "y", result, sizeof result), RONDO_EXECUTION_FAILED,
               RONDO_REASON_OUT_OF_RANGE);
  assert_message("(operator 2)");
}

/* A state that is assigned keeps what the run computes, and operators without a result are no pattern. */
TEST(test_on5_states_are_assigned) {
  scene s = {.program = test_new_program(), .type = RONDO_F32};
  const rondo_value x = input(&s, DIMS(4, 5)), sum = test_value(s.program, 's', "sum", 4, 5);
  const rondo_value y = mul(&s, of_one(&s, rondo_op_sigmoid, x), x);
  float values[2][20], expected[20], sums[20];
  finish(&s, y);
  assert_ok(rondo_program_assign(s.program, sum, add(&s, sum, y)));
  rondo_compiled *compiled = test_compile_kept(s.program, t->device, NULL);
  assert_int_equal(count_patterns(compiled, "silu"), 1);
  for (size_t run = 0; run < 2; run++) {
    for (size_t i = 0; i < 20; i++) values[run][i] = (float)i / 10.0f - (float)run;
    assert_ok(rondo_compiled_write(compiled, "x0", values[run], sizeof values[run]));
    assert_ok(rondo_compiled_run(compiled));
  }
  for (size_t i = 0; i < 20; i++)
    expected[i] = values[0][i] / (1 + expf(-values[0][i])) + values[1][i] / (1 + expf(-values[1][i]));
  assert_ok(rondo_compiled_read(compiled, "sum", sums, sizeof sums));
  assert_near(sums, expected, 20, 1e-5f);
}

TEST(test_on5_the_explanation_lists_patterns) {
  const scene s = build(case_of("activation of a product with a bias"), RONDO_F32);
  char *text = NULL;
  assert_ok(rondo_compiled_explain(test_compile_kept(s.program, t->device, NULL), RONDO_EXPLAIN_TEXT, &text));
  if (strstr(text, "bias 1, activation 1") == NULL) fail_msg("no patterns in:\n%s", text);
  rondo_text_free(text);
}
