/* SPDX-License-Identifier: MIT
 * matmul: batches that are broadcast, transposed matrices, biases, activations.
 */
#include <math.h>
#include <stdlib.h>

#include "support/test_operator.h"
#include "support/test_program.h"

/* Sizes; the batch dimensions follow BATCH. */
enum { TRANSPOSE_A, TRANSPOSE_B, HAS_BIAS, ACTIVATION, M, N, K, BATCH };

static void draw_matrix(uint64_t *seed, test_call *call, size_t rank, size_t rows, size_t columns) {
  size_t shape[RONDO_MAX_DIMENSIONS];
  for (size_t i = 0; i + 2 < rank; i++) {
    const size_t back = rank - 3 - i; /* of the batch, counted from the last */
    shape[i] = test_draw_between(seed, 0, 3) == 0 ? 1 : call->sizes[BATCH + back];
  }
  shape[rank - 2] = rows;
  shape[rank - 1] = columns;
  test_add_float(call, shape, rank, -1, 1);
}

/* Draws the options and adds the inputs, matrices of the ranks low .. high, for the sizes M, N, K and BATCH. */
static void draw_inputs(uint64_t *seed, test_call *call, size_t low, size_t high) {
  size_t *s = call->sizes;
  s[TRANSPOSE_A] = test_draw_between(seed, 0, 1);
  s[TRANSPOSE_B] = test_draw_between(seed, 0, 1);
  s[HAS_BIAS] = test_draw_between(seed, 0, 1);
  s[ACTIVATION] = test_draw_between(seed, 0, 4);
  draw_matrix(seed, call, test_draw_between(seed, low, high), s[TRANSPOSE_A] ? s[K] : s[M],
              s[TRANSPOSE_A] ? s[M] : s[K]);
  draw_matrix(seed, call, test_draw_between(seed, low, high), s[TRANSPOSE_B] ? s[N] : s[K],
              s[TRANSPOSE_B] ? s[K] : s[N]);
  if (s[HAS_BIAS]) test_add_float(call, &s[N], 1, -1, 1);
}

static void draw_sizes(uint64_t *seed, test_call *call, size_t most, size_t most_batch) {
  for (size_t i = M; i <= K; i++) call->sizes[i] = test_draw_between(seed, 1, most);
  for (size_t i = 0; i < RONDO_MAX_DIMENSIONS; i++) call->sizes[BATCH + i] = test_draw_between(seed, 1, most_batch);
}

static void draw(uint64_t *seed, test_call *call) {
  draw_sizes(seed, call, 9, 3);
  draw_inputs(seed, call, 2, 5);
}

/* A matrix times itself: both inputs are one value, so its gradient is a sum. */
static void draw_square(uint64_t *seed, test_call *call) {
  size_t *s = call->sizes;
  s[M] = s[N] = s[K] = test_draw_between(seed, 1, 9);
  test_add_float(call, &s[M], 2, -1, 1);
}

/* Every product of a matrix that has a NaN everywhere; ReLU's reference has no NaN. */
static void draw_without_activation(uint64_t *seed, test_call *call) {
  draw(seed, call);
  call->sizes[ACTIVATION] = RONDO_ACTIVATION_NONE;
}

/* Results have several tiles, and products several panels. */
static void draw_large(uint64_t *seed, test_call *call) {
  draw_sizes(seed, call, 200, 2);
  draw_inputs(seed, call, 2, 3);
}

/* Shapes of a recommender's products, and odd ones near the sizes at which CUDA kernels change: thin and shallow
 * products, batches of small matrices, deep products of few results. */
static void draw_chosen(uint64_t *seed, test_call *call) {
  static const size_t chosen[][4] = {{30, 27, 16, 27}, {7, 31, 33, 32}, {1, 100, 745, 70}, {1, 400, 256, 1},
                                     {3, 41, 31, 4},   {2, 70, 300, 5}, {1, 400, 64, 16},  {1, 130, 13, 257},
                                     {1, 1, 1023, 1},  {5, 17, 129, 2}, {1, 257, 65, 129}, {70, 33, 32, 64}};
  size_t *s = call->sizes;
  const size_t *shape = chosen[test_random_below(seed, sizeof chosen / sizeof chosen[0])];
  s[M] = shape[1], s[K] = shape[2], s[N] = shape[3], s[BATCH] = shape[0];
  draw_inputs(seed, call, 3, 3);
}

static rondo_status build(const test_call *call, rondo_program *program, const rondo_value *inputs,
                          rondo_value *result) {
  const size_t *s = call->sizes;
  const rondo_matmul_options options = {RONDO_MATMUL_OPTIONS_INIT, .activation = (rondo_activation)s[ACTIVATION],
                                        .bias = s[HAS_BIAS] ? inputs[2] : (rondo_value){0},
                                        .transpose_a = s[TRANSPOSE_A] != 0, .transpose_b = s[TRANSPOSE_B] != 0};
  if (s[ACTIVATION] == 0 && !s[TRANSPOSE_A] && !s[TRANSPOSE_B])
    return rondo_op_matmul(program, inputs[0], inputs[1], options.bias, result);
  return rondo_op_matmul_with(program, inputs[0], inputs[1], &options, result);
}

static rondo_status build_square(const test_call *call, rondo_program *program, const rondo_value *inputs,
                                 rondo_value *result) {
  (void)call;
  return rondo_op_matmul(program, inputs[0], inputs[0], (rondo_value){0}, result);
}

static double activate(size_t activation, double x) {
  switch (activation) {
    case RONDO_ACTIVATION_RELU:
      return fmax(x, 0);
    case RONDO_ACTIVATION_GELU:
      return x * 0.5 * erfc(-x / sqrt(2));
    case RONDO_ACTIVATION_GELU_TANH:
      return 0.5 * x * (1 + tanh(sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x)));
    case RONDO_ACTIVATION_SILU:
      return x / (1 + exp(-x));
    default:
      return x;
  }
}

/* The size of dimension `back` of the batch, counted from the last; 1 where the input has none. */
static size_t batch_size(const test_call *call, size_t input, size_t back) {
  const test_tensor *tensor = &call->inputs[input];
  return back + 2 < tensor->rank ? tensor->shape[tensor->rank - 3 - back] : 1;
}

/* The number of the input's matrix that meets result `product`. */
static size_t matrix_of(const test_call *call, size_t input, size_t product) {
  size_t matrix = 0, step = 1;
  for (size_t back = 0; back + 2 < RONDO_MAX_DIMENSIONS; back++) {
    const size_t own = batch_size(call, input, back), other = batch_size(call, 1 - input, back);
    const size_t all = own > other ? own : other;
    matrix += own == 1 ? 0 : product % all * step;
    product /= all;
    step *= own;
  }
  return matrix;
}

static size_t count_products(const test_call *call) {
  size_t count = 1;
  for (size_t back = 0; back + 2 < RONDO_MAX_DIMENSIONS; back++)
    count *=
        batch_size(call, 0, back) > batch_size(call, 1, back) ? batch_size(call, 0, back) : batch_size(call, 1, back);
  return count;
}

static void reference(const test_call *call, double *const *inputs, double *result) {
  const size_t *s = call->sizes, m = s[M], n = s[N], k = s[K];
  for (size_t product = 0; product < count_products(call); product++) {
    const double *a = inputs[0] + matrix_of(call, 0, product) * m * k;
    const double *b = inputs[1] + matrix_of(call, 1, product) * k * n;
    for (size_t i = 0; i < m; i++) {
      for (size_t j = 0; j < n; j++) {
        double sum = s[HAS_BIAS] ? inputs[2][j] : 0;
        for (size_t p = 0; p < k; p++)
          sum += a[s[TRANSPOSE_A] ? p * m + i : i * k + p] * b[s[TRANSPOSE_B] ? j * k + p : p * n + j];
        *result++ = activate(s[ACTIVATION], sum);
      }
    }
  }
}

static void reference_square(const test_call *call, double *const *inputs, double *result) {
  test_call both = *call;
  both.inputs[1] = both.inputs[0];
  reference(&both, (double *[]){inputs[0], inputs[0]}, result);
}

/* A matrix and a program in which it is multiplied with another one. */
static void refuse(rondo_type type, size_t rank, const size_t *shape, size_t bias, rondo_activation activation,
                   const char *message) {
  rondo_program *program = test_new_program();
  rondo_value a, b, y;
  rondo_matmul_options options = {RONDO_MATMUL_OPTIONS_INIT, .activation = activation};
  assert_ok(rondo_program_input(program, "a", RONDO_F32, (const size_t[]){2, 3, 4}, 3, &a));
  assert_ok(rondo_program_input(program, "b", type, shape, rank, &b));
  if (bias > 0) assert_ok(rondo_program_input(program, "bias", RONDO_F32, &bias, 1, &options.bias));
  assert_fails(rondo_op_matmul_with(program, a, b, &options, &y), RONDO_INVALID_ARGUMENT);
  assert_message(message);
  assert_int_equal(y.id, 0);
  rondo_program_destroy(program);
}

UNIT_TEST(test_what_does_not_fit_is_refused) {
  refuse(RONDO_F32, 1, (const size_t[]){4}, 0, RONDO_ACTIVATION_NONE, "at least 2 dimensions");
  refuse(RONDO_F16, 2, (const size_t[]){4, 5}, 0, RONDO_ACTIVATION_NONE, "b must be f32, not f16");
  refuse(RONDO_F32, 2, (const size_t[]){5, 4}, 0, RONDO_ACTIVATION_NONE, "inner dimensions 4 and 5 differ");
  refuse(RONDO_F32, 3, (const size_t[]){3, 4, 5}, 0, RONDO_ACTIVATION_NONE, "leading dimensions 2 and 3");
  refuse(RONDO_F32, 2, (const size_t[]){4, 5}, 4, RONDO_ACTIVATION_NONE,
         "the bias has 4 elements; it needs one for each of the 5 columns");
  refuse(RONDO_F32, 2, (const size_t[]){4, 5}, 0, (rondo_activation)9, "activation 9 does not exist");
}

/* Tiles ------------------------------------------------------------------------------------------------------------ */

typedef struct matrix {
  size_t rows, columns;
  float *x;
} matrix;

static matrix make_matrix(size_t rows, size_t columns, uint64_t *seed) {
  const matrix m = {rows, columns, malloc(rows * columns * sizeof(float))};
  assert_non_null(m.x);
  for (size_t i = 0; i < rows * columns; i++) m.x[i] = (float)test_random_below(seed, 20001) / 10000 - 1;
  return m;
}

static double at(const matrix *m, bool transposed, size_t row, size_t column) {
  return (double)(transposed ? m->x[column * m->columns + row] : m->x[row * m->columns + column]);
}

/* y is a b, of which one may be transposed, plus a bias. */
static void assert_product(const matrix *y, const matrix *a, bool transpose_a, const matrix *b, bool transpose_b,
                           const matrix *bias, double tolerance) {
  const size_t depth = transpose_a ? a->rows : a->columns;
  for (size_t i = 0; i < y->rows; i++) {
    for (size_t j = 0; j < y->columns; j++) {
      double sum = bias != NULL ? (double)bias->x[j] : 0;
      for (size_t p = 0; p < depth; p++) sum += at(a, transpose_a, i, p) * at(b, transpose_b, p, j);
      assert_true(fabs(at(y, false, i, j) - sum) <= tolerance * fmax(1, fabs(sum)));
    }
  }
}

/* The loss is the sum of the results times weights v: the bias' gradient is v's sum over rows, a's is v bᵀ, b's aᵀ v.
 */
static void check_tiles(test_fixture *t, size_t m, size_t n, size_t k) {
  enum { A, B, BIAS, V, Y, LOSS, INPUTS = 4 };
  static const char *const names[] = {"a", "b", "bias", "v"}, *const gradients[] = {"da", "db", "dbias"};
  const size_t sizes[INPUTS][2] = {{m, k}, {k, n}, {1, n}, {m, n}};
  const double tolerance = 2e-6 * sqrt((double)(m + n + k)); /* what rounding adds up to in such sums */
  uint64_t seed = 11;
  rondo_program *program = test_new_program();
  rondo_value values[LOSS + 1], slopes[V];
  matrix in[INPUTS], out[V], y = make_matrix(m, n, &seed), ones = make_matrix(m, 1, &seed);
  test_bytes inputs[INPUTS + 1] = {{.name = NULL}}, outputs[V + 2] = {{.name = NULL}};
  for (size_t i = 0; i < INPUTS; i++) {
    in[i] = make_matrix(sizes[i][0], sizes[i][1], &seed);
    inputs[i] = (test_bytes){names[i], in[i].x, sizes[i][0] * sizes[i][1] * sizeof(float)};
    const size_t skipped = i == BIAS ? 1 : 0;
    assert_ok(rondo_program_input(program, names[i], RONDO_F32, sizes[i] + skipped, 2 - skipped, &values[i]));
  }
  assert_ok(rondo_op_matmul(program, values[A], values[B], values[BIAS], &values[Y]));
  assert_ok(rondo_op_mul(program, values[Y], values[V], &values[LOSS]));
  assert_ok(rondo_op_sum(program, values[LOSS], NULL, 0, false, &values[LOSS]));
  assert_ok(rondo_program_gradients(program, values[LOSS], values, V, slopes));
  for (size_t i = 0; i < V; i++) {
    out[i] = make_matrix(sizes[i][0], sizes[i][1], &seed);
    outputs[i] = (test_bytes){gradients[i], out[i].x, inputs[i].count};
    assert_ok(rondo_program_output(program, gradients[i], slopes[i]));
  }
  outputs[V] = (test_bytes){"y", y.x, inputs[V].count};
  assert_ok(rondo_program_output(program, "y", values[Y]));
  test_run_program(t, program, inputs, outputs);
  for (size_t i = 0; i < m; i++) ones.x[i] = 1;
  assert_product(&y, &in[A], false, &in[B], false, &in[BIAS], tolerance);
  assert_product(&out[A], &in[V], false, &in[B], true, NULL, tolerance);
  assert_product(&out[B], &in[A], true, &in[V], false, NULL, tolerance);
  assert_product(&out[BIAS], &ones, true, &in[V], false, NULL, tolerance);
  for (size_t i = 0; i < INPUTS; i++) free(in[i].x);
  for (size_t i = 0; i < V; i++) free(out[i].x);
  free(y.x);
  free(ones.x);
}

/* Products that are cut into several tiles, some of them at the edge. */
TEST(test_products_of_many_tiles) {
  static const size_t sizes[][3] = {{7, 11, 19},   {130, 257, 65}, {300, 20, 400}, {1, 500, 300},
                                    {500, 1, 300}, {64, 96, 700},  {700, 801, 33}, {1407, 1601, 10}};
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) check_tiles(t, sizes[i][0], sizes[i][1], sizes[i][2]);
}

/* NaN -------------------------------------------------------------------------------------------------------------- */

typedef struct wide_product {
  size_t rows, depth, columns;
} wide_product;

enum { MOST_FACTOR = 4776 * 64, MOST_RESULT = 3582 * 64 };

static rondo_compiled *compile_product(test_fixture *t, const wide_product *p, rondo_activation activation) {
  const rondo_matmul_options options = {RONDO_MATMUL_OPTIONS_INIT, .activation = activation};
  rondo_program *program = test_new_program();
  rondo_value left, right, result;
  assert_ok(rondo_program_input(program, "a", RONDO_F32, (const size_t[]){p->rows, p->depth}, 2, &left));
  assert_ok(rondo_program_input(program, "b", RONDO_F32, (const size_t[]){p->depth, p->columns}, 2, &right));
  assert_ok(rondo_op_matmul_with(program, left, right, &options, &result));
  assert_ok(rondo_program_output(program, "y", result));
  return test_compile(program, t->device, NULL);
}

/* All results of a row with a NaN are NaN, whatever activation is applied, and no results of other rows are. */
static void assert_stays(test_fixture *t, const wide_product *p, rondo_activation activation) {
  static float a[MOST_FACTOR], b[MOST_FACTOR], y[MOST_RESULT];
  const size_t bad_row = p->rows / 3 * 2, results = p->rows * p->columns;
  rondo_compiled *compiled = compile_product(t, p, activation);
  for (size_t i = 0; i < p->rows * p->depth; i++) a[i] = (float)(i % 7) - 3;
  for (size_t i = 0; i < p->depth * p->columns; i++) b[i] = (float)(i % 5) - 2;
  a[bad_row * p->depth + 5] = NAN;
  assert_ok(rondo_compiled_write(compiled, "a", a, p->rows * p->depth * sizeof *a));
  assert_ok(rondo_compiled_write(compiled, "b", b, p->depth * p->columns * sizeof *b));
  assert_ok(rondo_compiled_run(compiled));
  assert_ok(rondo_compiled_read(compiled, "y", y, results * sizeof *y));
  for (size_t i = 0; i < results; i++)
    if ((isnan(y[i]) != 0) != (i / p->columns == bad_row))
      fail_msg("%zu x %zu x %zu, activation %d: result %zu of row %zu is %g", p->rows, p->depth, p->columns,
               (int)activation, i % p->columns, i / p->columns, (double)y[i]);
  assert_ok(rondo_compiled_destroy(compiled));
}

/* On a GPU, Rondo's kernel computes the first product; the library computes the others, with different algorithms. */
TEST(test_not_a_number_stays_in_its_row) {
  static const wide_product products[] = {{640, 96, 64}, {1200, 96, 64}, {3582, 13, 64}, {4776, 64, 16}};
  for (size_t i = 0; i < sizeof products / sizeof *products; i++)
    for (int activation = RONDO_ACTIVATION_NONE; activation <= RONDO_ACTIVATION_SILU; activation++)
      assert_stays(t, &products[i], (rondo_activation)activation);
}

#define OPERATOR .build = build, .reference = reference

static const test_operator rows[] = {
    {.name = "matmul", .draw = draw, OPERATOR},
    {.name = "matmul",
     .draw = draw_without_activation,
     OPERATOR,
     .tolerance = 2e-6,
     .gradient_tolerance = 1e-5,
     .gradient_samples = 200},
    {.name = "matmul", .draw = draw_without_activation, OPERATOR, .takes_nan = true},
    {.name = "matmul with itself",
     .draw = draw_square,
     .build = build_square,
     .reference = reference_square,
     .tolerance = 2e-6,
     .gradient_tolerance = 1e-5,
     .gradient_samples = 200},
    {.name = "large matmul",
     .draw = draw_large,
     OPERATOR,
     .tolerance = 4e-5,
     .only_f32 = true,
     .has_no_gradient = true},
    {.name = "large matmul", .draw = draw_large, OPERATOR, .tolerance = 0.02, .has_no_gradient = true},
    {.name = "chosen matmul", .draw = draw_chosen, OPERATOR, .tolerance = 0.02, .has_no_gradient = true},
};

TEST_OPERATOR_MAIN(rows)
