/* SPDX-License-Identifier: MIT
 * Quantised weights (PR-9): products, look-ups and elements of matrices of 8 and 4 bits against references in plain C,
 * with groups of all sizes, also such that do not divide the columns, with and without zeros; rondo_quantize;
 * gradients; wrong options, shapes and indices.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/test_effort.h"
#include "support/test_numbers.h"
#include "support/test_operator.h"
#include "support/test_program.h"

/* Matrices --------------------------------------------------------------------------------------------------------- */

/* Random values, and scales that are powers of two. */
typedef struct matrix {
  rondo_quantized_options options;
  size_t rows, columns, row_bytes, groups;
  uint8_t *values, *zeros; /* zeros NULL: none */
  float *scales;
  rondo_value in_values, in_scales, in_zeros;
} matrix;

static void *take(size_t count, size_t bytes) {
  void *items = calloc(count, bytes);
  assert_non_null(items);
  return items;
}

static void make_matrix(matrix *m, uint64_t *seed, bool has_zeros) {
  assert_ok(rondo_quantized_sizes(&m->options, m->columns, &m->row_bytes, &m->groups));
  m->values = take(m->rows, m->row_bytes);
  m->scales = take(m->rows * m->groups, sizeof *m->scales);
  m->zeros = has_zeros ? take(m->rows, m->groups) : NULL;
  for (size_t i = 0; i < m->rows * m->row_bytes; i++) m->values[i] = (uint8_t)test_random_below(seed, 256);
  for (size_t i = 0; i < m->rows * m->groups; i++) {
    m->scales[i] = ldexpf(1, -(int)test_random_below(seed, 5));
    if (has_zeros) m->zeros[i] = (uint8_t)test_random_below(seed, m->options.bits == 4 ? 16 : 256);
  }
}

static void free_matrix(matrix *m) {
  free(m->values);
  free(m->scales);
  free(m->zeros);
}

static double element_of(const matrix *m, size_t row, size_t column) {
  const uint8_t *bytes = m->values + row * m->row_bytes;
  const size_t number = row * m->groups + (m->options.group == 0 ? 0 : column / m->options.group);
  const bool is_packed = m->options.bits == 4;
  const int value = is_packed ? (column % 2 == 0 ? bytes[column / 2] % 16 : bytes[column / 2] / 16)
                              : (int)bytes[column] - (bytes[column] > 127 ? 256 : 0);
  int zero = is_packed ? 8 : 0;
  if (m->zeros != NULL) zero = is_packed || m->zeros[number] < 128 ? m->zeros[number] : m->zeros[number] - 256;
  return m->scales[number] * (double)(value - zero);
}

/* Adds the arrays as frozen states. */
static void add_matrix(rondo_program *program, matrix *m) {
  const rondo_state_options frozen = {RONDO_STATE_OPTIONS_INIT, .frozen = true};
  const rondo_type type = m->options.bits == 4 ? RONDO_U8 : RONDO_I8;
  const size_t shape[] = {m->rows, m->row_bytes}, groups[] = {m->rows, m->groups};
  m->in_zeros = (rondo_value){0};
  assert_ok(rondo_program_state_with(program, "values", type, shape, 2, &frozen, &m->in_values));
  assert_ok(rondo_program_state_with(program, "scales", RONDO_F32, groups, 2, &frozen, &m->in_scales));
  if (m->zeros != NULL) assert_ok(rondo_program_state_with(program, "zeros", type, groups, 2, &frozen, &m->in_zeros));
}

static void write_matrix(rondo_compiled *compiled, const matrix *m) {
  const size_t groups = m->rows * m->groups;
  assert_ok(rondo_compiled_write(compiled, "values", m->values, m->rows * m->row_bytes));
  assert_ok(rondo_compiled_write(compiled, "scales", m->scales, groups * sizeof *m->scales));
  if (m->zeros != NULL) assert_ok(rondo_compiled_write(compiled, "zeros", m->zeros, groups));
}

/* Numbers ---------------------------------------------------------------------------------------------------------- */

/* Element i of an array of a float type. */
static double number_at(rondo_type type, const void *items, size_t i) {
  if (type == RONDO_F32) return ((const float *)items)[i];
  const uint32_t bits = ((const uint16_t *)items)[i], whole = bits << 16;
  float number;
  if (type == RONDO_BF16) {
    memcpy(&number, &whole, sizeof number);
    return number;
  }
  const int exponent = (int)(bits >> 10 & 31);
  const double fraction = bits & 1023;
  const double magnitude = exponent == 0 ? ldexp(fraction, -24) : ldexp(fraction + 1024, exponent - 25);
  return bits >> 15 ? -magnitude : magnitude;
}

/* Of a result's rounding. */
static double epsilon_of(rondo_type type) { return type == RONDO_F32 ? 1e-6 : type == RONDO_F16 ? 1e-3 : 8e-3; }

/* Small whole numbers, which all float types represent. */
static void draw_numbers(rondo_type type, void *items, size_t count, uint64_t *seed) {
  for (size_t i = 0; i < count; i++) test_put_number(items, type, i, (int64_t)test_random_below(seed, 41) - 20);
}

/* Runs eagerly and recorded, with the same bits. */
static void run_both(rondo_compiled *compiled, const char *output, void *result, void *again, size_t bytes) {
  assert_ok(rondo_compiled_run(compiled));
  assert_ok(rondo_compiled_read(compiled, output, result, bytes));
  assert_ok(rondo_compiled_run_eager(compiled));
  assert_ok(rondo_compiled_read(compiled, output, again, bytes));
  assert_memory_equal(result, again, bytes);
}

/* matmul_quantized ------------------------------------------------------------------------------------------------- */

typedef struct product {
  matrix weight;
  rondo_type type;
  size_t m;
  bool has_bias;
  uint8_t *x, *bias, *y, *again; /* of the type */
} product;

static void make_product(product *p, uint64_t *seed) {
  const size_t bytes = rondo_type_bytes(p->type);
  p->x = take(p->m * p->weight.columns, bytes);
  p->bias = take(p->weight.rows, bytes);
  p->y = take(p->m * p->weight.rows, bytes);
  p->again = take(p->m * p->weight.rows, bytes);
  draw_numbers(p->type, p->x, p->m * p->weight.columns, seed);
  draw_numbers(p->type, p->bias, p->weight.rows, seed);
}

static void free_product(product *p) {
  free_matrix(&p->weight);
  free(p->x);
  free(p->bias);
  free(p->y);
  free(p->again);
}

/* x[row][column] as the product sees it. */
static double activation_at(const product *p, size_t row, size_t column, float largest) {
  const size_t k = p->weight.columns;
  const float x = (float)number_at(p->type, p->x, row * k + column);
  if (p->weight.options.activations == RONDO_QUANTIZED_FLOAT || largest == 0) return x;
  return (double)nearbyintf(x * (127 / largest)) * (double)(largest / 127);
}

static float largest_of(const product *p, size_t row) {
  float largest = 0;
  for (size_t i = 0; i < p->weight.columns; i++)
    largest = fmaxf(largest, (float)fabs(number_at(p->type, p->x, row * p->weight.columns + i)));
  return largest;
}

/* How far off a result may be. On CUDA, a library may compute from factors that are rounded to the type. */
static double tolerance_of(const product *p, double result, double magnitude) {
  const double of_sum = p->type == RONDO_F32 || !test_device_is("cuda") ? 4e-6 : epsilon_of(p->type);
  return of_sum * magnitude + epsilon_of(p->type) * (1 + fabs(result));
}

static void check_product(const product *p) {
  for (size_t i = 0; i < p->m; i++) {
    const float largest = largest_of(p, i);
    for (size_t j = 0; j < p->weight.rows; j++) {
      double sum = p->has_bias ? number_at(p->type, p->bias, j) : 0, magnitude = fabs(sum);
      for (size_t k = 0; k < p->weight.columns; k++) {
        const double term = activation_at(p, i, k, largest) * element_of(&p->weight, j, k);
        sum += term;
        magnitude += fabs(term);
      }
      const double y = number_at(p->type, p->y, i * p->weight.rows + j);
      if (!(fabs(y - sum) <= tolerance_of(p, sum, magnitude)))
        fail_msg("%zu x %zu x %zu, %u bits, groups of %zu, activations %d, zeros %d: y[%zu][%zu] is %g, not %g", p->m,
                 p->weight.rows, p->weight.columns, p->weight.options.bits, p->weight.options.group,
                 (int)p->weight.options.activations, p->weight.zeros != NULL, i, j, y, sum);
    }
  }
}

static void run_product(test_fixture *t, product *p, bool has_zeros, uint64_t *seed) {
  const size_t bytes = rondo_type_bytes(p->type), n = p->weight.rows, k = p->weight.columns;
  const size_t shape[] = {1, p->m, k}, first = test_random_below(seed, 2);
  rondo_program *program = test_new_program();
  rondo_value x, y;
  make_matrix(&p->weight, seed, has_zeros);
  make_product(p, seed);
  add_matrix(program, &p->weight);
  assert_ok(rondo_program_input(program, "x", p->type, shape + first, 3 - first, &x));
  if (p->has_bias) assert_ok(rondo_program_input(program, "bias", p->type, &n, 1, &p->weight.options.bias));
  assert_ok(rondo_op_matmul_quantized(program, x, p->weight.in_values, p->weight.in_scales, p->weight.in_zeros,
                                      &p->weight.options, &y));
  assert_ok(rondo_program_output(program, "y", y));
  rondo_compiled *compiled = test_compile(program, t->device, NULL);
  write_matrix(compiled, &p->weight);
  assert_ok(rondo_compiled_write(compiled, "x", p->x, p->m * k * bytes));
  if (p->has_bias) assert_ok(rondo_compiled_write(compiled, "bias", p->bias, n * bytes));
  run_both(compiled, "y", p->y, p->again, p->m * n * bytes);
  check_product(p);
  assert_ok(rondo_compiled_destroy(compiled));
  free_product(p);
}

static const size_t group_sizes[] = {0, 32, 64, 96, 128};
static const rondo_type float_types[] = {RONDO_F32, RONDO_F16, RONDO_BF16};

/* All kinds of weights and activations, with shapes on both sides of each limit: of steps, groups, rows and tiles. */
TEST(test_pr9_products_of_matmul_quantized) {
  static const size_t ms[] = {1, 2, 7, 8, 9, 20, 40, 70}, ns[] = {1, 5, 33, 130},
                      ks[] = {1, 31, 32, 33, 64, 100, 129, 300};
  uint64_t seed = 5;
  for (uint32_t turn = 0; turn < test_effort(6); turn++) {
    for (size_t kind = 0; kind < 16; kind++) {
      product p = {.type = kind < 8 ? RONDO_F32 : float_types[1 + test_random_below(&seed, 2)],
                   .m = ms[test_random_below(&seed, 8)],
                   .has_bias = test_random_below(&seed, 2) == 0,
                   .weight = {.options = {RONDO_QUANTIZED_OPTIONS_INIT, .bits = kind % 2 == 0 ? 8 : 4,
                                          .group = group_sizes[test_random_below(&seed, 5)],
                                          .activations = (rondo_quantized_activations)(kind / 2 % 2)},
                              .rows = ns[test_random_below(&seed, 4)],
                              .columns = ks[test_random_below(&seed, 8)]}};
      run_product(t, &p, kind / 4 % 2 == 1, &seed);
    }
  }
}

/* Each group size with columns that it divides and that it does not divide. */
TEST(test_pr9_groups_of_matmul_quantized) {
  uint64_t seed = 7;
  for (size_t g = 0; g < sizeof group_sizes / sizeof group_sizes[0]; g++) {
    for (size_t kind = 0; kind < 8; kind++) {
      product p = {.type = RONDO_F32,
                   .m = 1 + kind % 2 * 10,
                   .weight = {.options = {RONDO_QUANTIZED_OPTIONS_INIT, .bits = kind / 2 % 2 == 0 ? 8 : 4,
                                          .group = group_sizes[g]},
                              .rows = 3,
                              .columns = kind / 4 == 0 ? 384 : 333}};
      run_product(t, &p, false, &seed);
    }
  }
}

/* A large product, which a library computes on CUDA. */
TEST(test_pr9_large_product_of_matmul_quantized) {
  uint64_t seed = 9;
  for (uint32_t activations = 0; activations < 2; activations++) {
    product p = {.type = RONDO_F32,
                 .m = 192,
                 .has_bias = true,
                 .weight = {.options = {RONDO_QUANTIZED_OPTIONS_INIT, .bits = 4, .group = 64,
                                        .activations = (rondo_quantized_activations)activations},
                            .rows = 160,
                            .columns = 200}};
    run_product(t, &p, false, &seed);
  }
}

/* Rows of zeros, of numbers that are nearly 0, and rows that are not finite, do not affect others. */
TEST(test_pr9_special_rows_of_matmul_quantized) {
  enum { ROWS = 5, COLUMNS = 40 };
  float x[ROWS][COLUMNS], y[ROWS][3];
  uint64_t seed = 3;
  matrix w = {.options = {RONDO_QUANTIZED_OPTIONS_INIT, .bits = 8, .activations = RONDO_QUANTIZED_INT8},
              .rows = 3,
              .columns = COLUMNS};
  rondo_program *program = test_new_program();
  rondo_value in, out;
  make_matrix(&w, &seed, false);
  add_matrix(program, &w);
  draw_numbers(RONDO_F32, x, (size_t)ROWS * COLUMNS, &seed);
  memset(x[0], 0, sizeof x[0]);
  x[1][7] = NAN;
  x[2][39] = -INFINITY;
  for (int i = 0; i < COLUMNS; i++) x[4][i] = i % 2 == 0 ? 1e-38f : 0;
  assert_ok(rondo_program_input(program, "x", RONDO_F32, (size_t[]){ROWS, COLUMNS}, 2, &in));
  assert_ok(rondo_op_matmul_quantized(program, in, w.in_values, w.in_scales, w.in_zeros, &w.options, &out));
  assert_ok(rondo_program_output(program, "y", out));
  rondo_compiled *compiled = test_compile(program, t->device, NULL);
  write_matrix(compiled, &w);
  assert_ok(rondo_compiled_write(compiled, "x", x, sizeof x));
  assert_ok(rondo_compiled_run(compiled));
  assert_ok(rondo_compiled_read(compiled, "y", y, sizeof y));
  for (size_t j = 0; j < 3; j++) {
    assert_true(y[0][j] == 0 && isnan(y[1][j]) && isnan(y[2][j]) && isfinite(y[3][j]));
    assert_true(fabsf(y[4][j]) < 1e-33f);
  }
  free_matrix(&w);
}

/* A group that is larger than the row, beyond 32 bits, is that of the whole row. */
TEST(test_pr9_groups_larger_than_a_row) {
  enum { ROWS = 3, COLUMNS = 40 };
  float y[ROWS][COLUMNS];
  uint64_t seed = 5;
  matrix m = {
      .options = {RONDO_QUANTIZED_OPTIONS_INIT, .bits = 8, .group = (size_t)1 << 33}, .rows = ROWS, .columns = COLUMNS};
  rondo_program *program = test_new_program();
  rondo_value out;
  make_matrix(&m, &seed, true);
  assert_int_equal(m.groups, 1);
  add_matrix(program, &m);
  assert_ok(rondo_op_dequantize(program, m.in_values, m.in_scales, m.in_zeros, &m.options, &out));
  assert_ok(rondo_program_output(program, "y", out));
  rondo_compiled *compiled = test_compile(program, t->device, NULL);
  write_matrix(compiled, &m);
  assert_ok(rondo_compiled_run(compiled));
  assert_ok(rondo_compiled_read(compiled, "y", y, sizeof y));
  for (size_t i = 0; i < ROWS * COLUMNS; i++)
    assert_true((double)y[i / COLUMNS][i % COLUMNS] == element_of(&m, i / COLUMNS, i % COLUMNS));
  free_matrix(&m);
}

/* Gradients -------------------------------------------------------------------------------------------------------- */

/* The loss is the sum of y times weights: dx is their product with the elements. */
static void check_gradient(test_fixture *t, const size_t *shape, size_t rank, size_t rows, uint32_t activations) {
  enum { COLUMNS = 70, N = 6, MOST = 24 };
  float x[MOST * COLUMNS] = {0}, factors[MOST * N], dx[MOST * COLUMNS], dbias[N];
  const size_t result_shape[] = {shape[0], rank == 3 ? shape[1] : N, N};
  uint64_t seed = 11;
  matrix w = {.options = {RONDO_QUANTIZED_OPTIONS_INIT, .bits = 4, .group = 32,
                          .activations = (rondo_quantized_activations)activations},
              .rows = N,
              .columns = COLUMNS};
  rondo_program *program = test_new_program();
  rondo_value in, factor, y, loss, wanted[2], gradients[2];
  make_matrix(&w, &seed, true);
  add_matrix(program, &w);
  draw_numbers(RONDO_F32, factors, rows * N, &seed);
  assert_ok(rondo_program_input(program, "x", RONDO_F32, shape, rank, &in));
  assert_ok(rondo_program_input(program, "factors", RONDO_F32, result_shape, rank, &factor));
  assert_ok(rondo_program_state(program, "bias", RONDO_F32, (size_t[]){N}, 1, &w.options.bias));
  assert_ok(rondo_op_matmul_quantized(program, in, w.in_values, w.in_scales, w.in_zeros, &w.options, &y));
  assert_ok(rondo_op_mul(program, y, factor, &y));
  assert_ok(rondo_op_sum(program, y, (size_t[]){0, 1, 2}, rank, false, &loss));
  wanted[0] = in, wanted[1] = w.options.bias;
  assert_ok(rondo_program_gradients(program, loss, wanted, 2, gradients));
  assert_ok(rondo_program_output(program, "dx", gradients[0]));
  assert_ok(rondo_program_output(program, "dbias", gradients[1]));
  rondo_compiled *compiled = test_compile(program, t->device, NULL);
  write_matrix(compiled, &w);
  assert_ok(rondo_compiled_write(compiled, "x", x, rows * COLUMNS * sizeof *x));
  assert_ok(rondo_compiled_write(compiled, "factors", factors, rows * N * sizeof *factors));
  assert_ok(rondo_compiled_run(compiled));
  assert_ok(rondo_compiled_read(compiled, "dx", dx, rows * COLUMNS * sizeof *dx));
  assert_ok(rondo_compiled_read(compiled, "dbias", dbias, sizeof dbias));
  for (size_t i = 0; i < rows * COLUMNS; i++) {
    double sum = 0;
    for (size_t j = 0; j < N; j++) sum += (double)factors[i / COLUMNS * N + j] * element_of(&w, j, i % COLUMNS);
    assert_near(&dx[i], &(float){(float)sum}, 1, 1e-5f);
  }
  for (size_t j = 0; j < N; j++) {
    float sum = 0;
    for (size_t i = 0; i < rows; i++) sum += factors[i * N + j];
    assert_near(&dbias[j], &sum, 1, 1e-5f);
  }
  assert_ok(rondo_compiled_destroy(compiled));
  free_matrix(&w);
}

TEST(test_pr9_gradients_of_matmul_quantized) {
  for (uint32_t activations = 0; activations < 2; activations++) {
    check_gradient(t, (size_t[]){5, 70}, 2, 5, activations);
    check_gradient(t, (size_t[]){3, 8, 70}, 3, 24, activations);
  }
}

/* A gradient through the activations works; one of the scales is refused, whether asked for or needed to train. */
TEST(test_pr9_scales_have_no_gradient) {
  rondo_program *program = test_new_program();
  const rondo_quantized_options options = {RONDO_QUANTIZED_OPTIONS_INIT, .bits = 8};
  const rondo_rate_options rate = {RONDO_RATE_OPTIONS_INIT, .rate = 1};
  rondo_value x, values, scales, y, loss, gradients[2];
  (void)t;
  assert_ok(rondo_program_state(program, "x", RONDO_F32, (size_t[]){2, 8}, 2, &x));
  assert_ok(rondo_program_state(program, "values", RONDO_I8, (size_t[]){3, 8}, 2, &values));
  assert_ok(rondo_program_state(program, "scales", RONDO_F32, (size_t[]){3, 1}, 2, &scales));
  assert_ok(rondo_op_matmul_quantized(program, x, values, scales, (rondo_value){0}, &options, &y));
  assert_ok(rondo_op_sum(program, y, (size_t[]){0, 1}, 2, false, &loss));
  assert_ok(rondo_program_gradients(program, loss, &x, 1, gradients));
  assert_error(rondo_program_gradients(program, loss, (rondo_value[]){x, scales}, 2, gradients), RONDO_UNSUPPORTED,
               RONDO_REASON_NO_FUNCTION);
  assert_message("has no gradient of its scales, 'scales' [3, 1], which is requested: freeze the state");
  assert_invalid(rondo_program_gradients(program, loss, &values, 1, gradients), RONDO_REASON_TYPE);
  const rondo_sgd_options sgd = {RONDO_SGD_OPTIONS_INIT, .schedule = &rate};
  assert_error(rondo_program_sgd(program, loss, &sgd), RONDO_UNSUPPORTED, RONDO_REASON_NO_FUNCTION);
}

/* dequantize and embedding_quantized ------------------------------------------------------------------------------- */

static void check_elements(test_fixture *t, matrix *m, bool has_zeros, uint64_t *seed) {
  enum { PICKS = 5 };
  int64_t picks[PICKS];
  const rondo_type type = m->options.type == 0 ? RONDO_F32 : m->options.type;
  const size_t bytes = rondo_type_bytes(type), count = m->rows * m->columns;
  rondo_program *program = test_new_program();
  rondo_value indices, all, some;
  if (m->options.bits == 8 || m->columns % 2 == 1) m->options.columns = m->columns;
  make_matrix(m, seed, has_zeros);
  add_matrix(program, m);
  assert_ok(rondo_program_input(program, "indices", RONDO_I64, (size_t[]){PICKS, 1}, 2, &indices));
  assert_ok(rondo_op_dequantize(program, m->in_values, m->in_scales, m->in_zeros, &m->options, &all));
  assert_ok(
      rondo_op_embedding_quantized(program, m->in_values, m->in_scales, m->in_zeros, indices, &m->options, &some));
  assert_ok(rondo_program_output(program, "all", all));
  assert_ok(rondo_program_output(program, "some", some));
  rondo_compiled *compiled = test_compile(program, t->device, NULL);
  for (size_t i = 0; i < PICKS; i++) picks[i] = (int64_t)test_random_below(seed, (uint32_t)m->rows);
  write_matrix(compiled, m);
  assert_ok(rondo_compiled_write(compiled, "indices", picks, sizeof picks));
  uint8_t *elements = take(count, bytes), *rows = take(PICKS * m->columns, bytes), *again = take(count, bytes);
  run_both(compiled, "all", elements, again, count * bytes);
  assert_ok(rondo_compiled_read(compiled, "some", rows, PICKS * m->columns * bytes));
  for (size_t i = 0; i < count; i++) {
    const double wanted = element_of(m, i / m->columns, i % m->columns);
    assert_true(fabs(number_at(type, elements, i) - wanted) <= epsilon_of(type) * fabs(wanted));
  }
  for (size_t i = 0; i < PICKS; i++)
    assert_memory_equal(rows + i * m->columns * bytes, elements + (size_t)picks[i] * m->columns * bytes,
                        m->columns * bytes);
  free(elements);
  free(rows);
  free(again);
  assert_ok(rondo_compiled_destroy(compiled));
  free_matrix(m);
}

static void check_all_elements(test_fixture *t) {
  static const size_t columns[] = {1, 31, 64, 77, 300, 1100};
  uint64_t seed = 13;
  for (size_t kind = 0; kind < 12; kind++) {
    for (size_t c = 0; c < sizeof columns / sizeof columns[0]; c++) {
      matrix m = {.options = {RONDO_QUANTIZED_OPTIONS_INIT, .bits = kind % 2 == 0 ? 8 : 4, .group = group_sizes[c % 5],
                              .type = kind / 4 == 0 ? 0 : float_types[kind / 4]},
                  .rows = 7,
                  .columns = columns[c]};
      check_elements(t, &m, kind / 2 % 2 == 1, &seed);
    }
  }
}

TEST(test_pr9_elements_of_dequantize) { check_all_elements(t); }

TEST(test_wrong_indices_of_embedding_quantized) {
  rondo_program *program = test_new_program();
  const rondo_quantized_options options = {RONDO_QUANTIZED_OPTIONS_INIT, .bits = 4};
  rondo_value values, scales, indices, y;
  const int64_t wrong[] = {0, 4, 5, -7};
  float result[4 * 6];
  assert_ok(rondo_program_state(program, "values", RONDO_U8, (size_t[]){5, 3}, 2, &values));
  assert_ok(rondo_program_state(program, "scales", RONDO_F32, (size_t[]){5, 1}, 2, &scales));
  assert_ok(rondo_program_input(program, "indices", RONDO_I64, (size_t[]){4}, 1, &indices));
  assert_ok(rondo_op_embedding_quantized(program, values, scales, (rondo_value){0}, indices, &options, &y));
  test_wrong_index(t, program, y, wrong, sizeof wrong,
                   "embedding_quantized (operator 0): indices has 5 at position 2, which is not in 0 .. 4; row 0 was "
                   "used instead",
                   result, sizeof result);
}

/* Files ------------------------------------------------------------------------------------------------------------ */

/* A set of weights of another group size does not fit a program, and the state is named. */
TEST(test_pr9_weights_of_other_groups) {
  enum { ROWS = 3, COLUMNS = 64 };
  static const int8_t values[ROWS * COLUMNS];
  static const float scales[ROWS * 2];
  const rondo_weight of_values = {
      .name = "values", .type = RONDO_I8, .rank = 2, .shape = {ROWS, COLUMNS}, .data = values, .bytes = sizeof values};
  const rondo_weight of_scales = {
      .name = "scales", .type = RONDO_F32, .rank = 2, .shape = {ROWS, 2}, .data = scales, .bytes = sizeof scales};
  rondo_weights *weights = NULL;
  assert_ok(rondo_weights_create(NULL, &weights));
  assert_ok(rondo_weights_add(weights, &of_values));
  assert_ok(rondo_weights_add(weights, &of_scales));
  for (size_t group = 32; group <= 64; group += 32) {
    matrix m = {.options = {RONDO_QUANTIZED_OPTIONS_INIT, .bits = 8, .group = group}, .rows = ROWS, .columns = COLUMNS};
    uint64_t seed = 1;
    rondo_program *program = test_new_program();
    rondo_value y;
    make_matrix(&m, &seed, false);
    add_matrix(program, &m);
    assert_ok(rondo_op_dequantize(program, m.in_values, m.in_scales, m.in_zeros, &m.options, &y));
    assert_ok(rondo_program_output(program, "y", y));
    rondo_compiled *compiled = test_compile(program, t->device, NULL);
    if (group == 32) {
      assert_ok(rondo_weights_apply(weights, compiled, NULL, NULL));
    } else {
      assert_error(rondo_weights_apply(weights, compiled, NULL, NULL), RONDO_INVALID_DATA, RONDO_REASON_SHAPE);
      assert_message("'scales'");
    }
    assert_ok(rondo_compiled_destroy(compiled));
    free_matrix(&m);
  }
  rondo_weights_destroy(weights);
}

/* rondo_quantize --------------------------------------------------------------------------------------------------- */

/* No element is off by more than half a step, and the ends of a group's range are exact. */
static void check_quantized(uint32_t bits, size_t group, size_t columns, bool has_zeros, uint64_t *seed) {
  enum { ROWS = 3 };
  matrix m = {
      .options = {RONDO_QUANTIZED_OPTIONS_INIT, .bits = bits, .group = group}, .rows = ROWS, .columns = columns};
  make_matrix(&m, seed, has_zeros);
  float *from = take(ROWS * columns, sizeof *from);
  for (size_t i = 0; i < ROWS * columns; i++)
    from[i] = i / columns == 1 ? 0 : (float)test_random_below(seed, 2001) / 500 - 1;
  assert_ok(rondo_quantize(from, ROWS, columns, &m.options, m.values, m.scales, m.zeros));
  for (size_t i = 0; i < ROWS * columns; i++) {
    const size_t in_row = i % columns, number = i / columns * m.groups + (group == 0 ? 0 : in_row / group);
    const double step = m.scales[number] * (has_zeros ? 1.001 : 0.501);
    const double got = element_of(&m, i / columns, in_row);
    if (!(fabs(got - (double)from[i]) <= step))
      fail_msg("%u bits, groups of %zu: element %zu is %g, not %g", bits, group, i, got, (double)from[i]);
  }
  free(from);
  free_matrix(&m);
}

UNIT_TEST(test_pr9_rounding_of_quantize) {
  uint64_t seed = 17;
  for (size_t g = 0; g < sizeof group_sizes / sizeof group_sizes[0]; g++) {
    for (uint32_t bits = 4; bits <= 8; bits += 4) {
      check_quantized(bits, group_sizes[g], 192, false, &seed);
      check_quantized(bits, group_sizes[g], 201, true, &seed);
    }
  }
}

UNIT_TEST(test_pr9_symmetric_values_of_quantize) {
  const float from[] = {-1, 0, 0.75f, 1, 0.25f};
  const rondo_quantized_options eight = {RONDO_QUANTIZED_OPTIONS_INIT, .bits = 8},
                                four = {RONDO_QUANTIZED_OPTIONS_INIT, .bits = 4};
  int8_t values[5], zeros[1];
  uint8_t packed[3];
  float scale;
  assert_ok(rondo_quantize(from, 1, 5, &eight, values, &scale, NULL));
  assert_true(scale == 1.0f / 127);
  assert_memory_equal(values, ((int8_t[]){-127, 0, 95, 127, 32}), sizeof values);
  assert_ok(rondo_quantize(from, 1, 5, &four, packed, &scale, NULL));
  assert_true(scale == 1.0f / 7);
  assert_memory_equal(packed, ((uint8_t[]){8 << 4 | 1, 15 << 4 | 13, 10}), sizeof packed);
  assert_ok(rondo_quantize(from + 1, 1, 4, &eight, values, &scale, zeros));
  assert_true(zeros[0] == -128 && values[0] == -128 && values[2] == 127);
}

/* Bad input -------------------------------------------------------------------------------------------------------- */

UNIT_TEST(test_pr9_wrong_arguments_of_quantize) {
  const float from[] = {1, NAN};
  int8_t values[2];
  float scale;
  size_t bytes, groups;
  rondo_quantized_options options = {RONDO_QUANTIZED_OPTIONS_INIT, .bits = 8};
  assert_invalid(rondo_quantize(from, 1, 2, &options, values, &scale, NULL), RONDO_REASON_OUT_OF_RANGE);
  assert_message("the element in row 0 and column 1 is nan: only finite numbers can be quantised");
  assert_invalid(rondo_quantize(NULL, 1, 2, &options, values, &scale, NULL), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_quantize(from, 1, 2, &options, NULL, &scale, NULL), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_quantize(from, 1, 2, &options, values, NULL, NULL), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_quantize(from, 0, 2, &options, values, &scale, NULL), RONDO_REASON_SHAPE);
  assert_invalid(rondo_quantized_sizes(&options, 0, &bytes, &groups), RONDO_REASON_SHAPE);
  assert_invalid(rondo_quantized_sizes(&options, 2, NULL, &groups), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_quantized_sizes(NULL, 2, &bytes, &groups), RONDO_REASON_OUT_OF_RANGE);
  options.bits = 3;
  assert_invalid(rondo_quantized_sizes(&options, 2, &bytes, &groups), RONDO_REASON_OUT_OF_RANGE);
  assert_message("3 bits: use 8 or 4");
  options = (rondo_quantized_options){RONDO_QUANTIZED_OPTIONS_INIT, .bits = 4, .group = 48};
  assert_invalid(rondo_quantize(from, 1, 2, &options, values, &scale, NULL), RONDO_REASON_OUT_OF_RANGE);
  assert_message("a group of 48 columns: use a multiple of 32, or 0 for the whole row");
  options.struct_size = 5;
  assert_invalid(rondo_quantized_sizes(&options, 2, &bytes, &groups), RONDO_REASON_BAD_OPTIONS);
}

/* The arrays of a weight [3, 64] with groups of 32, and what is wrong with them. */
typedef struct wrong_weight {
  rondo_type values_type, scales_type, zeros_type;
  size_t row_bytes, scales, zeros, group, bias;
  rondo_reason reason;
  const char *message;
} wrong_weight;

TEST(test_pr9_wrong_weights_of_matmul_quantized) {
  static const wrong_weight cases[] = {
      {RONDO_U8, RONDO_F32, RONDO_I8, 64, 2, 2, 32, 3, RONDO_REASON_TYPE, "values must be i8, not u8"},
      {RONDO_I8, RONDO_F16, RONDO_I8, 64, 2, 2, 32, 3, RONDO_REASON_TYPE, "scales must be f32, not f16"},
      {RONDO_I8, RONDO_F32, RONDO_U8, 64, 2, 2, 32, 3, RONDO_REASON_TYPE, "zeros must be i8, not u8"},
      {RONDO_I8, RONDO_F32, RONDO_I8, 32, 2, 2, 32, 3, RONDO_REASON_SHAPE,
       "a row of 64 columns with 8 bits has 64 bytes, not 32"},
      {RONDO_I8, RONDO_F32, RONDO_I8, 64, 2, 2, 64, 3, RONDO_REASON_SHAPE,
       "scales must be [3, 1], one for each 64 of 64 columns, not [3, 2]: was the matrix quantised with another group "
       "size?"},
      {RONDO_I8, RONDO_F32, RONDO_I8, 64, 2, 1, 32, 3, RONDO_REASON_SHAPE, "zeros must be [3, 2]"},
      {RONDO_I8, RONDO_F32, RONDO_I8, 64, 2, 2, 32, 4, RONDO_REASON_SHAPE,
       "the bias has 4 elements; it needs one for each of the 3 rows of the weight"},
  };
  (void)t;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    const wrong_weight *c = &cases[i];
    rondo_program *program = test_new_program();
    rondo_quantized_options options = {RONDO_QUANTIZED_OPTIONS_INIT, .bits = 8, .group = c->group};
    rondo_value x, values, scales, zeros, y;
    assert_ok(rondo_program_input(program, "x", RONDO_F32, (size_t[]){1, 64}, 2, &x));
    assert_ok(rondo_program_input(program, "values", c->values_type, (size_t[]){3, c->row_bytes}, 2, &values));
    assert_ok(rondo_program_input(program, "scales", c->scales_type, (size_t[]){3, c->scales}, 2, &scales));
    assert_ok(rondo_program_input(program, "zeros", c->zeros_type, (size_t[]){3, c->zeros}, 2, &zeros));
    assert_ok(rondo_program_input(program, "bias", RONDO_F32, &c->bias, 1, &options.bias));
    assert_invalid(rondo_op_matmul_quantized(program, x, values, scales, zeros, &options, &y), c->reason);
    assert_message(c->message);
    assert_int_equal(y.id, 0);
  }
}

TEST(test_pr9_wrong_options_of_matmul_quantized) {
  rondo_program *program = test_new_program();
  rondo_quantized_options options = {RONDO_QUANTIZED_OPTIONS_INIT, .bits = 4};
  const size_t wide = (1 << 19) + 2;
  rondo_value x, long_x, values, long_values, scales, scalar, y;
  const rondo_value none = {0};
  (void)t;
  assert_ok(rondo_program_input(program, "x", RONDO_F32, (size_t[]){1, 64}, 2, &x));
  assert_ok(rondo_program_input(program, "scalar", RONDO_F32, NULL, 0, &scalar));
  assert_ok(rondo_program_input(program, "values", RONDO_U8, (size_t[]){3, 32}, 2, &values));
  assert_ok(rondo_program_input(program, "scales", RONDO_F32, (size_t[]){3, 1}, 2, &scales));
  assert_ok(rondo_program_input(program, "long x", RONDO_F32, (size_t[]){wide}, 1, &long_x));
  assert_ok(rondo_program_input(program, "long values", RONDO_U8, (size_t[]){3, wide / 2}, 2, &long_values));
  assert_invalid(rondo_op_matmul_quantized(program, scalar, values, scales, none, &options, &y), RONDO_REASON_SHAPE);
  assert_invalid(rondo_op_matmul_quantized(program, values, values, scales, none, &options, &y), RONDO_REASON_TYPE);
  assert_invalid(rondo_op_matmul_quantized(program, x, none, scales, none, &options, &y), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_op_matmul_quantized(program, x, values, scales, none, NULL, &y), RONDO_REASON_OUT_OF_RANGE);
  assert_ok(rondo_op_matmul_quantized(program, long_x, long_values, scales, none, &options, &y));
  options.activations = RONDO_QUANTIZED_INT8;
  assert_invalid(rondo_op_matmul_quantized(program, long_x, long_values, scales, none, &options, &y),
                 RONDO_REASON_SHAPE);
  assert_message("with activations of 8 bits they can have 524288: use RONDO_QUANTIZED_FLOAT");
  options.activations = (rondo_quantized_activations)2;
  assert_invalid(rondo_op_matmul_quantized(program, x, values, scales, none, &options, &y), RONDO_REASON_OUT_OF_RANGE);
  options = (rondo_quantized_options){RONDO_QUANTIZED_OPTIONS_INIT, .bits = 4, .type = RONDO_I32};
  assert_invalid(rondo_op_dequantize(program, values, scales, none, &options, &y), RONDO_REASON_OUT_OF_RANGE);
  options = (rondo_quantized_options){RONDO_QUANTIZED_OPTIONS_INIT, .bits = 4, .columns = 62};
  assert_invalid(rondo_op_dequantize(program, values, scales, none, &options, &y), RONDO_REASON_SHAPE);
  assert_invalid(rondo_op_embedding_quantized(program, values, scales, none, x, &options, &y), RONDO_REASON_SHAPE);
  options.columns = 63;
  assert_ok(rondo_op_dequantize(program, values, scales, none, &options, &y));
  assert_invalid(rondo_op_embedding_quantized(program, values, scales, none, x, &options, &y), RONDO_REASON_TYPE);
}
