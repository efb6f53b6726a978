/* SPDX-License-Identifier: MIT
 * Every operator of the table against its plain C reference, and its gradient against finite differences of the
 * reference. A row of the table that no case here reaches, and that has no file in tests/operators, fails the last
 * test.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/rondo_test.h"
#include "support/test_program.h"
#include "tensor/operators/elementwise/elementary.h"
#include "tensor/program/operation.h"
#include "tensor/program/operators.h"
#include "tensor/program/program_internal.h"
#include "unit/tensor/reference.h"

#define MAX_INPUTS 3
#define MAX_INDICES 1600

/* A case: F32 inputs and a list of indices, what the program does with them, and what the reference does. */
typedef struct operator_case {
  const char *name;
  size_t input_count;
  struct {
    size_t rank, shape[3];
  } inputs[MAX_INPUTS];
  float scale;                       /* inputs are random in -scale .. scale */
  size_t index_rank, index_shape[2]; /* rank 0: none */
  uint32_t index_bound;
  rondo_value (*build)(rondo_program *program, const rondo_value *inputs, rondo_value indices);
  void (*compute)(const struct operator_case *c, double *const *inputs, const int *indices, double *y);
} operator_case;

/* Programs --------------------------------------------------------------------------------------------------------- */

static rondo_value none;

/* An operator without a public function; flags as its file says. */
static rondo_value apply(rondo_program *program, const rondo_operator *row, const rondo_value *inputs, uint32_t count,
                         bool flag0, bool flag1) {
  rondo_value y;
  const rondo_attributes attributes = {.flags = {flag0, flag1}};
  assert_ok(rondo_program_apply(program, row, inputs, count, &attributes, &y));
  return y;
}

static rondo_value build_tanh(rondo_program *program, const rondo_value *inputs, rondo_value indices) {
  rondo_value y;
  (void)indices;
  assert_ok(rondo_op_tanh(program, inputs[0], &y));
  return y;
}

static rondo_value build_softmax(rondo_program *program, const rondo_value *inputs, rondo_value indices) {
  rondo_value y;
  (void)indices;
  assert_ok(rondo_op_softmax(program, inputs[0], &y));
  return y;
}

static rondo_value build_matmul(rondo_program *program, const rondo_value *inputs, rondo_value indices) {
  rondo_value y;
  (void)indices;
  assert_ok(rondo_op_matmul(program, inputs[0], inputs[1], none, &y));
  return y;
}

static rondo_value build_matmul_bias(rondo_program *program, const rondo_value *inputs, rondo_value indices) {
  rondo_value y;
  (void)indices;
  assert_ok(rondo_op_matmul(program, inputs[0], inputs[1], inputs[2], &y));
  return y;
}

static rondo_value build_matmul_tn(rondo_program *program, const rondo_value *inputs, rondo_value indices) {
  (void)indices;
  return apply(program, &rondo_operator_matmul, inputs, 2, true, false);
}

static rondo_value build_matmul_nt(rondo_program *program, const rondo_value *inputs, rondo_value indices) {
  (void)indices;
  return apply(program, &rondo_operator_matmul, inputs, 2, false, true);
}

static rondo_value build_matmul_tt(rondo_program *program, const rondo_value *inputs, rondo_value indices) {
  (void)indices;
  return apply(program, &rondo_operator_matmul, inputs, 2, true, true);
}

/* x x: both inputs are one value, so its gradient is a sum. */
static rondo_value build_square(rondo_program *program, const rondo_value *inputs, rondo_value indices) {
  rondo_value y;
  (void)indices;
  assert_ok(rondo_op_matmul(program, inputs[0], inputs[0], none, &y));
  return y;
}

static rondo_value build_add(rondo_program *program, const rondo_value *inputs, rondo_value indices) {
  (void)indices;
  return apply(program, &rondo_operator_add, inputs, 2, false, false);
}

static rondo_value build_embedding(rondo_program *program, const rondo_value *inputs, rondo_value indices) {
  rondo_value y;
  assert_ok(rondo_op_embedding(program, inputs[0], indices, &y));
  return y;
}

static rondo_value build_cross_entropy(rondo_program *program, const rondo_value *inputs, rondo_value indices) {
  rondo_value y;
  assert_ok(rondo_op_cross_entropy(program, inputs[0], indices, &y));
  return y;
}

/* References ------------------------------------------------------------------------------------------------------- */

static size_t elements_of(const operator_case *c, size_t input) {
  size_t count = 1;
  for (size_t i = 0; i < c->inputs[input].rank; i++) count *= c->inputs[input].shape[i];
  return count;
}

static void compute_tanh(const operator_case *c, double *const *inputs, const int *indices, double *y) {
  (void)indices;
  reference_tanh(inputs[0], elements_of(c, 0), y);
}

static void compute_softmax(const operator_case *c, double *const *inputs, const int *indices, double *y) {
  const size_t columns = c->inputs[0].shape[c->inputs[0].rank - 1];
  (void)indices;
  reference_softmax(inputs[0], elements_of(c, 0) / columns, columns, y);
}

static void compute_product(const operator_case *c, double *const *inputs, bool transpose_a, bool transpose_b,
                            double *y) {
  const size_t *a = c->inputs[0].shape;
  const size_t *b = c->input_count > 1 ? c->inputs[1].shape : a;
  const double *right = c->input_count > 1 ? inputs[1] : inputs[0];
  reference_matmul(inputs[0], right, c->input_count > 2 ? inputs[2] : NULL, transpose_a ? a[1] : a[0],
                   transpose_b ? b[0] : b[1], transpose_a ? a[0] : a[1], transpose_a, transpose_b, y);
}

static void compute_matmul(const operator_case *c, double *const *inputs, const int *indices, double *y) {
  (void)indices;
  compute_product(c, inputs, false, false, y);
}

static void compute_matmul_tn(const operator_case *c, double *const *inputs, const int *indices, double *y) {
  (void)indices;
  compute_product(c, inputs, true, false, y);
}

static void compute_matmul_nt(const operator_case *c, double *const *inputs, const int *indices, double *y) {
  (void)indices;
  compute_product(c, inputs, false, true, y);
}

static void compute_matmul_tt(const operator_case *c, double *const *inputs, const int *indices, double *y) {
  (void)indices;
  compute_product(c, inputs, true, true, y);
}

static void compute_add(const operator_case *c, double *const *inputs, const int *indices, double *y) {
  (void)indices;
  reference_add(inputs[0], inputs[1], elements_of(c, 0), y);
}

static size_t index_count(const operator_case *c) {
  if (c->index_rank == 0) return 0;
  return c->index_shape[0] * (c->index_rank == 2 ? c->index_shape[1] : 1);
}

static void compute_embedding(const operator_case *c, double *const *inputs, const int *indices, double *y) {
  reference_embedding(inputs[0], c->inputs[0].shape[1], indices, index_count(c), y);
}

static void compute_cross_entropy(const operator_case *c, double *const *inputs, const int *indices, double *y) {
  y[0] = reference_cross_entropy(inputs[0], indices, c->inputs[0].shape[0], c->inputs[0].shape[1]);
}

static const operator_case cases[] = {
    {"tanh of a scalar", 1, {{0}}, 2, 0, {0}, 0, build_tanh, compute_tanh},
    {"tanh of a vector", 1, {{1, {23}}}, 3, 0, {0}, 0, build_tanh, compute_tanh},
    {"tanh of many", 1, {{2, {33, 17}}}, 3, 0, {0}, 0, build_tanh, compute_tanh},
    {"softmax of a vector", 1, {{1, {9}}}, 3, 0, {0}, 0, build_softmax, compute_softmax},
    {"softmax of one column", 1, {{2, {5, 1}}}, 3, 0, {0}, 0, build_softmax, compute_softmax},
    {"softmax of wide rows", 1, {{2, {2, 1500}}}, 3, 0, {0}, 0, build_softmax, compute_softmax},
    {"softmax of rank 3", 1, {{3, {2, 3, 37}}}, 3, 0, {0}, 0, build_softmax, compute_softmax},
    {"matmul of one", 2, {{2, {1, 1}}, {2, {1, 1}}}, 1, 0, {0}, 0, build_matmul, compute_matmul},
    {"matmul", 2, {{2, {3, 5}}, {2, {5, 2}}}, 1, 0, {0}, 0, build_matmul, compute_matmul},
    {"matmul with bias", 3, {{2, {7, 19}}, {2, {19, 11}}, {1, {11}}}, 1, 0, {0}, 0, build_matmul_bias, compute_matmul},
    {"matmul a transposed", 2, {{2, {6, 4}}, {2, {6, 9}}}, 1, 0, {0}, 0, build_matmul_tn, compute_matmul_tn},
    {"matmul b transposed", 2, {{2, {4, 6}}, {2, {9, 6}}}, 1, 0, {0}, 0, build_matmul_nt, compute_matmul_nt},
    {"matmul both transposed", 2, {{2, {6, 4}}, {2, {9, 6}}}, 1, 0, {0}, 0, build_matmul_tt, compute_matmul_tt},
    {"square", 1, {{2, {6, 6}}}, 1, 0, {0}, 0, build_square, compute_matmul},
    {"add", 2, {{2, {3, 21}}, {2, {3, 21}}}, 1, 0, {0}, 0, build_add, compute_add},
    {"embedding", 1, {{2, {7, 21}}}, 1, 1, {12}, 7, build_embedding, compute_embedding},
    {"embedding of a matrix", 1, {{2, {5, 3}}}, 1, 2, {4, 6}, 5, build_embedding, compute_embedding},
    {"cross_entropy", 1, {{2, {6, 37}}}, 3, 1, {6}, 37, build_cross_entropy, compute_cross_entropy},
    {"embedding of many indices", 1, {{2, {5, 3}}}, 1, 1, {1600}, 5, build_embedding, compute_embedding},
    {"embedding of many rows", 1, {{2, {4200, 2}}}, 1, 1, {30}, 4200, build_embedding, compute_embedding},
    {"embedding of wide rows", 1, {{2, {3, 1100}}}, 1, 1, {5}, 3, build_embedding, compute_embedding},
    {"cross_entropy of wide rows", 1, {{2, {2, 1300}}}, 3, 1, {2}, 1300, build_cross_entropy, compute_cross_entropy},
    {"cross_entropy of one row", 1, {{2, {1, 2}}}, 3, 1, {1}, 2, build_cross_entropy, compute_cross_entropy},
};

/* One case --------------------------------------------------------------------------------------------------------- */

typedef struct data {
  float *inputs[MAX_INPUTS];
  double *exact[MAX_INPUTS]; /* the same numbers */
  int indices[MAX_INDICES];
  float *weights; /* the loss is their product with the result */
  size_t result_count;
  float *gradients[MAX_INPUTS];
  float *result;
} data;

static void *allocate(size_t count, size_t bytes) {
  void *memory = calloc(count, bytes);
  assert_non_null(memory);
  return memory;
}

static float random_in(uint64_t *seed, float scale) {
  return scale * ((float)test_random_below(seed, 20001) / 10000.0f - 1.0f);
}

static void make_data(const operator_case *c, size_t result_count, data *d) {
  uint64_t seed = 11;
  memset(d, 0, sizeof *d);
  d->result_count = result_count;
  for (size_t i = 0; i < c->input_count; i++) {
    const size_t count = elements_of(c, i);
    d->inputs[i] = allocate(count, sizeof(float));
    d->exact[i] = allocate(count, sizeof(double));
    d->gradients[i] = allocate(count, sizeof(float));
    for (size_t k = 0; k < count; k++) d->exact[i][k] = (double)(d->inputs[i][k] = random_in(&seed, c->scale));
  }
  for (size_t k = 0; k < index_count(c); k++) d->indices[k] = (int)test_random_below(&seed, c->index_bound);
  d->weights = allocate(result_count, sizeof(float));
  d->result = allocate(result_count, sizeof(float));
  for (size_t k = 0; k < result_count; k++) d->weights[k] = random_in(&seed, 1);
}

static void free_data(data *d) {
  for (size_t i = 0; i < MAX_INPUTS; i++) {
    free(d->inputs[i]);
    free(d->exact[i]);
    free(d->gradients[i]);
  }
  free(d->weights);
  free(d->result);
}

/* The sum of the results times the weights, as a scalar of the program. */
static rondo_value add_loss(rondo_program *program, rondo_value y, size_t count) {
  const size_t row[] = {1, count};
  const size_t column[] = {count, 1};
  rondo_value weights, flat, loss;
  assert_ok(rondo_program_input(program, "weights", RONDO_F32, column, 2, &weights));
  assert_ok(rondo_op_reshape(program, y, row, 2, &flat));
  assert_ok(rondo_op_matmul(program, flat, weights, none, &loss));
  assert_ok(rondo_op_reshape(program, loss, NULL, 0, &loss));
  return loss;
}

static size_t count_elements(const rondo_program *program, rondo_value value) {
  rondo_type type;
  size_t shape[RONDO_MAX_DIMENSIONS], rank, count = 1;
  assert_ok(rondo_value_shape(program, value, &type, shape, &rank));
  for (size_t i = 0; i < rank; i++) count *= shape[i];
  return count;
}

static const char *const input_names[MAX_INPUTS] = {"in 0", "in 1", "in 2"};
static const char *const gradient_names[MAX_INPUTS] = {"gradient 0", "gradient 1", "gradient 2"};

static bool reached[256]; /* rows of the table that a program of these tests had */

static void note_rows(const rondo_program *program) {
  size_t rows = 0;
  const rondo_operator *const *table = rondo_operator_table(&rows);
  assert_true(rows <= sizeof reached / sizeof reached[0]);
  for (size_t i = 0; i < program->operations.count; i++) {
    for (size_t k = 0; k < rows; k++) reached[k] = reached[k] || program->operations.items[i].row == table[k];
  }
}

/* The program of a case, with the result and all gradients as outputs. */
static rondo_program *make_program(const operator_case *c, size_t *out_count) {
  rondo_program *program = test_new_program();
  rondo_value inputs[MAX_INPUTS], gradients[MAX_INPUTS], indices = none;
  for (size_t i = 0; i < c->input_count; i++) {
    assert_ok(
        rondo_program_input(program, input_names[i], RONDO_F32, c->inputs[i].shape, c->inputs[i].rank, &inputs[i]));
  }
  if (c->index_rank > 0) {
    assert_ok(rondo_program_input(program, "indices", RONDO_I32, c->index_shape, c->index_rank, &indices));
  }
  const rondo_value y = c->build(program, inputs, indices);
  *out_count = count_elements(program, y);
  assert_ok(rondo_program_output(program, "result", y));
  const rondo_value loss = add_loss(program, y, *out_count);
  assert_ok(rondo_program_gradients(program, loss, inputs, c->input_count, gradients));
  for (size_t i = 0; i < c->input_count; i++) {
    assert_ok(rondo_program_output(program, gradient_names[i], gradients[i]));
  }
  note_rows(program);
  return program;
}

static void run_program(rondo_device *device, const operator_case *c, rondo_program *program, data *d) {
  rondo_compiled *compiled = test_compile_kept(program, device, NULL);
  for (size_t i = 0; i < c->input_count; i++) {
    assert_ok(rondo_compiled_write(compiled, input_names[i], d->inputs[i], elements_of(c, i) * sizeof(float)));
  }
  if (c->index_rank > 0) {
    assert_ok(rondo_compiled_write(compiled, "indices", d->indices, index_count(c) * sizeof(int)));
  }
  assert_ok(rondo_compiled_write(compiled, "weights", d->weights, d->result_count * sizeof(float)));
  assert_ok(rondo_compiled_run(compiled));
  assert_ok(rondo_compiled_read(compiled, "result", d->result, d->result_count * sizeof(float)));
  for (size_t i = 0; i < c->input_count; i++) {
    assert_ok(rondo_compiled_read(compiled, gradient_names[i], d->gradients[i], elements_of(c, i) * sizeof(float)));
  }
  assert_ok(rondo_compiled_destroy(compiled));
}

static double reference_loss(const operator_case *c, const data *d, double *y) {
  double loss = 0;
  c->compute(c, d->exact, d->indices, y);
  for (size_t i = 0; i < d->result_count; i++) loss += y[i] * (double)d->weights[i];
  return loss;
}

static bool near_enough(double got, double wanted, double tolerance) {
  return fabs(got - wanted) <= tolerance * fmax(1, fabs(wanted));
}

static void check_result(const operator_case *c, const data *d, double *y) {
  (void)reference_loss(c, d, y);
  for (size_t i = 0; i < d->result_count; i++) {
    if (near_enough((double)d->result[i], y[i], 2e-6)) continue;
    fail_msg("%s: result %zu is %.9g, not %.9g", c->name, i, (double)d->result[i], y[i]);
  }
}

static void check_gradients(const operator_case *c, data *d, double *y) {
  const double step = 1e-5;
  for (size_t i = 0; i < c->input_count; i++) {
    for (size_t k = 0; k < elements_of(c, i); k++) {
      const double at = d->exact[i][k];
      d->exact[i][k] = at + step;
      const double above = reference_loss(c, d, y);
      d->exact[i][k] = at - step;
      const double below = reference_loss(c, d, y);
      d->exact[i][k] = at;
      const double wanted = (above - below) / (2 * step);
      if (near_enough((double)d->gradients[i][k], wanted, 1e-5)) continue;
      fail_msg("%s: gradient %zu of input %zu is %.9g, not %.9g", c->name, k, i, (double)d->gradients[i][k], wanted);
    }
  }
}

TEST(test_operators_and_gradients) {
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    size_t count = 0;
    data d;
    rondo_program *program = make_program(&cases[i], &count);
    make_data(&cases[i], count, &d);
    run_program(t->device, &cases[i], program, &d);
    double *y = allocate(count, sizeof *y);
    check_result(&cases[i], &d, y);
    check_gradients(&cases[i], &d, y);
    free(y);
    free_data(&d);
    rondo_program_destroy(program);
  }
}

/* Tiles ------------------------------------------------------------------------------------------------------------ */

/* Products that are cut into several tiles, some of them at the edge. */
TEST(test_products_of_many_tiles) {
  const size_t sizes[][3] = {{130, 257, 65}, {300, 20, 400}, {1, 500, 300},   {500, 1, 300},
                             {64, 96, 700},  {700, 801, 33}, {1407, 1601, 10}};
  for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
    const size_t m = sizes[s][0], n = sizes[s][1], k = sizes[s][2];
    const double tolerance = 2e-6 * sqrt((double)(m + n + k)); /* what rounding adds up to in such sums */
    const operator_case c = {"many tiles",  3, {{2, {m, k}}, {2, {k, n}}, {1, {n}}}, 1, 0, {0}, 0, build_matmul_bias,
                             compute_matmul};
    size_t count = 0;
    data d;
    rondo_program *program = make_program(&c, &count);
    make_data(&c, count, &d);
    run_program(t->device, &c, program, &d);
    double *y = allocate(count, sizeof *y);
    c.compute(&c, d.exact, NULL, y);
    for (size_t i = 0; i < count; i++) assert_true(near_enough((double)d.result[i], y[i], tolerance));
    /* With weights v, the bias' gradient is v's sum over rows; a's is v bᵀ, and b's aᵀ v. */
    double *v = allocate(count, sizeof *v);
    double *wanted = allocate(m * k + k * n + n, sizeof *wanted);
    for (size_t i = 0; i < count; i++) v[i] = (double)d.weights[i];
    reference_column_sum(v, m, n, wanted);
    for (size_t i = 0; i < n; i++) assert_true(near_enough((double)d.gradients[2][i], wanted[i], tolerance));
    reference_matmul(v, d.exact[1], NULL, m, k, n, false, true, wanted);
    for (size_t i = 0; i < m * k; i++) assert_true(near_enough((double)d.gradients[0][i], wanted[i], tolerance));
    reference_matmul(d.exact[0], v, NULL, k, n, m, true, false, wanted);
    for (size_t i = 0; i < k * n; i++) assert_true(near_enough((double)d.gradients[1][i], wanted[i], tolerance));
    free(v);
    free(wanted);
    free(y);
    free_data(&d);
    rondo_program_destroy(program);
  }
}

/* Hard numbers ----------------------------------------------------------------------------------------------------- */

/* Large logits neither overflow nor lose what matters; the gradient of the right label stays between -1 and 0. */
TEST(test_cross_entropy_is_stable) {
  const operator_case c = {"large", 1, {{2, {3, 3}}}, 1, 1, {3}, 3, build_cross_entropy, compute_cross_entropy};
  const float logits[9] = {1e4f, -1e4f, 0, 1e30f, 1e30f, -1e30f, -88, -100, -120};
  const int labels[3] = {0, 1, 2};
  size_t count = 0;
  data d;
  rondo_program *program = make_program(&c, &count);
  make_data(&c, count, &d);
  for (size_t i = 0; i < 9; i++) d.exact[0][i] = (double)(d.inputs[0][i] = logits[i]);
  memcpy(d.indices, labels, sizeof labels);
  d.weights[0] = 1;
  run_program(t->device, &c, program, &d);
  const float wanted = (float)reference_cross_entropy(d.exact[0], labels, 3, 3);
  assert_near(d.result, &wanted, 1, 1e-6f);
  const float gradients[9] = {0, 0, 0, 0.5f / 3, -0.5f / 3, 0, (1 - 6.144e-6f) / 3, 6.144e-6f / 3, -1.0f / 3};
  assert_near(d.gradients[0], gradients, 9, 1e-6f);
  free_data(&d);
  rondo_program_destroy(program);
}

static void assert_within(double got, double wanted, double relative) {
  if (fabs(got - wanted) > relative * fabs(wanted)) fail_msg("%.9g is not %.9g", got, wanted);
}

DEVICE_TEST(test_elementary_functions_are_close) {
  for (uint32_t bits = 0x00800000u; bits < 0x42ae0000u; bits += 1013) {
    const float x = rondo_float_of(bits);
    assert_within((double)rondo_tanh(x), tanh((double)x), 4e-7);
    assert_within((double)rondo_tanh(-x), tanh((double)-x), 4e-7);
    assert_within((double)rondo_exp_negative(-x), exp((double)-x), 4e-7);
    assert_within((double)rondo_exp(-x), exp((double)-x), 4e-7);
    assert_within((double)rondo_exp(x), exp((double)x), 4e-7);
    assert_within((double)rondo_erf(x), erf((double)x), 4e-7);
    assert_within((double)rondo_erf(-x), erf((double)-x), 4e-7);
    assert_within((double)rondo_sigmoid(x), 1 / (1 + exp((double)-x)), 4e-7);
    assert_within((double)rondo_sigmoid(-x), 1 / (1 + exp((double)x)), 4e-7);
  }
  for (uint32_t bits = 1; bits < 0x7f800000u; bits += 997) {
    assert_within((double)rondo_log(rondo_float_of(bits)), log((double)rondo_float_of(bits)), 4e-7);
  }
  for (uint32_t bits = 0x3f700000u; bits < 0x3f900000u; bits++) { /* where it is near 0 */
    assert_within((double)rondo_log(rondo_float_of(bits)), log((double)rondo_float_of(bits)), 4e-7);
  }
}

/* Zeros, infinities, what is too large or too small, and not a number. */
DEVICE_TEST(test_elementary_functions_at_ends) {
  assert_true(rondo_tanh(0) == 0 && !signbit(rondo_tanh(0.0f)) && signbit(rondo_tanh(-0.0f)));
  assert_true(rondo_tanh(INFINITY) == 1 && rondo_tanh(-INFINITY) == -1 && rondo_tanh(1e30f) == 1);
  assert_true(isnan(rondo_tanh(NAN)) && isnan(rondo_exp_negative(NAN)));
  assert_true(rondo_exp_negative(0) == 1 && rondo_exp_negative(-0.0f) == 1);
  assert_true(rondo_exp_negative(-INFINITY) == 0 && rondo_exp_negative(-90) == 0);
  assert_true(rondo_exp(0) == 1 && rondo_exp(-0.0f) == 1 && isnan(rondo_exp(NAN)));
  assert_true(rondo_exp(INFINITY) == INFINITY && rondo_exp(88.8f) == INFINITY && rondo_exp(1e30f) == INFINITY);
  assert_true(rondo_exp(-INFINITY) == 0 && rondo_exp(-104) == 0 && rondo_exp(-1e30f) == 0);
  for (float x = -87.5f; x > -104; x -= 0.01f) /* subnormal results */
    assert_true(fabs((double)rondo_exp(x) - exp((double)x)) < 0x1p-149 + 4e-7 * exp((double)x));
  assert_true(rondo_log(0) == -INFINITY && rondo_log(-0.0f) == -INFINITY && rondo_log(1) == 0);
  assert_true(rondo_log(INFINITY) == INFINITY && isnan(rondo_log(NAN)) && isnan(rondo_log(-NAN)));
  assert_true(isnan(rondo_log(-1)) && isnan(rondo_log(-INFINITY)) && isnan(rondo_log(-1e-45f)));
  assert_true(rondo_erf(0) == 0 && signbit(rondo_erf(-0.0f)) && isnan(rondo_erf(NAN)));
  assert_true(rondo_erf(INFINITY) == 1 && rondo_erf(-INFINITY) == -1 && rondo_erf(1e30f) == 1);
  assert_true(rondo_sigmoid(INFINITY) == 1 && rondo_sigmoid(-INFINITY) == 0 && isnan(rondo_sigmoid(NAN)));
}

/* Not a number shows in the results, it does not become one. */
TEST(test_nan_is_passed_on) {
  for (size_t i = 1; i < sizeof cases / sizeof cases[0]; i += 3) {
    size_t count = 0, found = 0;
    data d;
    rondo_program *program = make_program(&cases[i], &count);
    make_data(&cases[i], count, &d);
    for (size_t k = 0; k < elements_of(&cases[i], 0); k++) d.inputs[0][k] = NAN;
    run_program(t->device, &cases[i], program, &d);
    for (size_t k = 0; k < count; k++) found += isnan(d.result[k]) ? 1 : 0;
    assert_int_equal(found, count);
    free_data(&d);
    rondo_program_destroy(program);
  }
}

/* Updates and zeros ------------------------------------------------------------------------------------------------ */

/* The optimizers' numbers are checked in the conformance suite; here their rows are reached. */
TEST(test_optimizers_and_zeros) {
  for (int kind = 0; kind < 4; kind++) {
    const size_t shape[] = {1, 1};
    rondo_value w, idle, rate, loss, zeros;
    float value = 1;
    rondo_program *program = test_new_program();
    assert_ok(rondo_program_state(program, "w", RONDO_F32, shape, 2, &w));
    assert_ok(rondo_program_state(program, "idle", RONDO_F32, shape, 2, &idle));
    assert_ok(rondo_program_cell(program, "rate", 0.5f, &rate));
    assert_ok(rondo_op_matmul(program, w, w, none, &loss));
    assert_ok(rondo_op_reshape(program, loss, NULL, 0, &loss));
    assert_ok(rondo_program_gradients(program, loss, &idle, 1, &zeros));
    assert_ok(rondo_program_output(program, "zeros", zeros));
    const rondo_gradient_options two_runs = {RONDO_GRADIENT_OPTIONS_INIT, .accumulate = 2, .norm_output = "norm"};
    const rondo_adam_options adam = {RONDO_ADAM_OPTIONS_INIT, .learning_rate = rate,
                                     .gradients = kind == 3 ? &two_runs : NULL};
    const rondo_sgd_options sgd = {RONDO_SGD_OPTIONS_INIT, .learning_rate = rate, .momentum = kind == 1 ? rate : none};
    assert_ok(kind >= 2 ? rondo_program_adam(program, loss, &adam) : rondo_program_sgd(program, loss, &sgd));
    note_rows(program);
    rondo_compiled *compiled = test_compile_kept(program, t->device, NULL);
    assert_ok(rondo_compiled_write(compiled, "w", &value, sizeof value));
    assert_ok(rondo_compiled_write(compiled, "idle", &value, sizeof value));
    for (int i = 0; i < 2; i++) assert_ok(rondo_compiled_run(compiled));
    assert_ok(rondo_compiled_read(compiled, "zeros", &value, sizeof value));
    assert_true(value == 0);
    assert_ok(rondo_compiled_read(compiled, "idle", &value, sizeof value));
    assert_true(value == 1);
    assert_ok(rondo_compiled_read(compiled, "w", &value, sizeof value));
    const float wanted[] = {0, -0.5f}; /* 1 - 0.5 · 2; then 0, or with momentum - 0.5 · (0.5 · 2) */
    if (kind < 2) assert_true(value == wanted[kind]);
    if (kind == 2) assert_near(&value, &(float){0.033908f}, 1, 1e-5f); /* 1 - 0.5, then - 0.5 · 1.4737 / 1.5809 */
    if (kind == 3) assert_near(&value, &(float){0.5f}, 1, 1e-5f);      /* one step of two runs */
    assert_ok(rondo_compiled_destroy(compiled));
    rondo_program_destroy(program);
  }
}

/* Whether tests/operators has cases of this name, or of <beginning> where it is <beginning>_gradient and such. */
static bool has_own_cases(const char *name) {
  static const char *const names[] = {RONDO_TEST_OPERATOR_NAMES};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    const size_t length = strlen(names[i]);
    if (strncmp(name, names[i], length) == 0 && (name[length] == '\0' || name[length] == '_')) return true;
  }
  return false;
}

/* Those of the table that programs are made of, in its order. */
DEVICE_TEST(test_operators_are_listed) {
  size_t rows = 0, listed = 0;
  const rondo_operator *const *table = rondo_operator_table(&rows);
  for (size_t i = 0; i < rows; i++) {
    rondo_operator_info info = {RONDO_OPERATOR_INFO_INIT};
    if (table[i]->types == 0) continue;
    assert_ok(rondo_operator_enumerate(listed++, &info));
    assert_string_equal(info.name, table[i]->name);
    assert_int_equal(info.types, table[i]->types);
  }
  rondo_operator_info info = {RONDO_OPERATOR_INFO_INIT};
  assert_true(listed > 50);
  assert_error(rondo_operator_enumerate(listed, &info), RONDO_NOT_FOUND, RONDO_REASON_OUT_OF_RANGE);
  assert_invalid(rondo_operator_enumerate(0, NULL), RONDO_REASON_NULL_ARGUMENT);
}

DEVICE_TEST(test_every_row_was_reached) {
  size_t rows = 0;
  const rondo_operator *const *table = rondo_operator_table(&rows);
  for (size_t i = 0; i < rows; i++) {
    if (!reached[i] && !has_own_cases(table[i]->name)) fail_msg("operator %s has no case", table[i]->name);
    if (table[i]->differentiate != NULL && table[i]->required > 0 && table[i]->types == 0)
      fail_msg("operator %s does not say its types, so it is not listed", table[i]->name);
    for (size_t k = 0; k < i; k++) assert_string_not_equal(table[i]->name, table[k]->name);
  }
}
