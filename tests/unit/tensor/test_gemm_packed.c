/* SPDX-License-Identifier: MIT
 * Products with a packed factor: every form that the processor runs, compared with the definition in double precision,
 * for all numbers of rows of a tile, panels that are not full, both storage orders, accumulation, and no more columns
 * written than there are. A row has the same bits whatever rows are multiplied with it. The same of products that read
 * their factor in place, with a bias and without negative results.
 */
#define _GNU_SOURCE
#include "tensor/operators/matmul/gemm_packed.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/environment.h"
#include "support/rondo_test.h"
#include "tensor/operators/common/vectors.h"

enum { MOST_ROWS = 20, MOST_COLUMNS = 100, MOST_DEPTH = 40, WIDER = 3 };

static float a[MOST_DEPTH * (MOST_ROWS + WIDER)], b[MOST_COLUMNS * (MOST_DEPTH + MOST_COLUMNS)];
static float packed[(MOST_COLUMNS + RONDO_PANEL) * MOST_DEPTH], c[MOST_ROWS * (MOST_COLUMNS + WIDER)];

static void fill(float *values, size_t count, uint64_t seed) {
  for (size_t i = 0; i < count; i++) values[i] = (float)test_random_below(&seed, 2001) / 1000.0f - 1.0f;
}
#define FILL(array, seed) fill(array, sizeof(array) / sizeof *(array), seed)

static void use_vectors(const char *widest) {
  assert_int_equal(setenv("RONDO_CPU_VECTORS", widest, 1), 0);
  rondo_options_reload();
  (void)rondo_vectors_choose();
}

static void use_all_vectors(void) {
  unsetenv("RONDO_CPU_VECTORS");
  rondo_options_reload();
  (void)rondo_vectors_choose();
}

static void pack_all(const rondo_gemm_factor *factor, size_t k, size_t n) {
  memset(packed, 0xff, sizeof packed); /* NaN */
  for (size_t i = 0; i < rondo_gemm_panels(n); i++) rondo_gemm_pack(factor, k, n, i, packed);
}

/* Element [row, column] of the factor, or of its transpose. */
static double element(const rondo_gemm_factor *factor, size_t row, size_t column) {
  return (double)factor->at[factor->is_transposed ? column * factor->stride + row : row * factor->stride + column];
}

static double exact(const rondo_gemm_packed *g, const rondo_gemm_factor *factor, size_t row, size_t column) {
  double sum = 0;
  for (size_t p = 0; p < g->k; p++) sum += element(&g->a, row, p) * element(factor, p, column);
  return sum;
}

static void check(size_t m, size_t n, size_t k, bool across_a, bool across, bool accumulates) {
  float before[sizeof c / sizeof *c];
  const rondo_gemm_factor factor = {b, (across ? k : n) + WIDER, across};
  const rondo_gemm_packed g = {m, n, k, {a, (across_a ? m : k) + WIDER, across_a}, packed, {c, n + WIDER, accumulates}};
  FILL(c, 3);
  memcpy(before, c, sizeof c);
  pack_all(&factor, k, n);
  rondo_gemm_run_packed(&g);
  for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
    const size_t row = i / (n + WIDER), column = i % (n + WIDER);
    const bool inside = row < m && column < n;
    const double sum = inside ? exact(&g, &factor, row, column) : 0;
    const double wanted = inside && !accumulates ? sum : (double)before[i] + sum;
    if (fabs((double)c[i] - wanted) > 2e-5)
      fail_msg("%zu x %zu x %zu, element %zu: %.9g, not %.9g", m, n, k, i, (double)c[i], wanted);
  }
}

UNIT_TEST(test_every_form) {
  static const char *const widths[] = {"plain", "avx2", "avx512"};
  static const size_t columns[] = {1, 15, 16, 17, 33, 64, 72, 100};
  FILL(a, 1);
  FILL(b, 2);
  for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++) {
    use_vectors(widths[i]);
    for (size_t m = 1; m <= MOST_ROWS; m++) {
      for (size_t j = 0; j < sizeof columns / sizeof columns[0]; j++) {
        check(m, columns[j], 1 + (m * 7 + j) % MOST_DEPTH, (m + j) % 2 == 0, j % 2 == 0, m % 2 == 0);
        check(m, columns[j], MOST_DEPTH, (m + j) % 3 == 0, j % 2 != 0, m % 2 != 0);
      }
    }
  }
  use_all_vectors();
}

/* Small products --------------------------------------------------------------------------------------------------- */

/* Deeper than what is added to c at once, and factors for that. */
enum { DEEP = RONDO_GEMM_SMALL_DEPTH + 37, SMALL_ROWS = 9, SMALL_COLUMNS = 49 };
static float deep_a[SMALL_ROWS * DEEP], deep_b[DEEP * (SMALL_COLUMNS + WIDER)];

static double small_result(const rondo_gemm_small *g, size_t row, size_t column, double before) {
  double sum = (g->c.accumulates ? before : 0) + (g->bias == NULL ? 0 : (double)g->bias[row]);
  for (size_t p = 0; p < g->k; p++) sum += element(&g->a, row, p) * element(&g->b, p, column);
  return g->rectifies && sum < 0 ? 0 : sum;
}

static void check_small(size_t m, size_t n, size_t k, bool across, bool has_bias, bool accumulates, bool rectifies) {
  float before[sizeof c / sizeof *c], bias[SMALL_ROWS];
  const rondo_gemm_small g = {m,
                              n,
                              k,
                              {deep_a, across ? m : k, across},
                              {deep_b, n + WIDER, false},
                              {c, n + WIDER, accumulates},
                              has_bias ? bias : NULL,
                              rectifies};
  FILL(c, 3);
  FILL(bias, 4);
  memcpy(before, c, sizeof c);
  rondo_gemm_run_small(&g);
  for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
    const size_t row = i / (n + WIDER), column = i % (n + WIDER);
    const bool inside = row < m && column < n;
    const double wanted = inside ? small_result(&g, row, column, (double)before[i]) : (double)before[i];
    if (fabs((double)c[i] - wanted) > 1e-4)
      fail_msg("%zu x %zu x %zu, element %zu: %.9g, not %.9g", m, n, k, i, (double)c[i], wanted);
  }
}

static void check_all_small(void) {
  static const size_t columns[] = {1, 15, 16, 31, 32, 48, SMALL_COLUMNS};
  static const size_t depths[] = {1, 17, RONDO_GEMM_SMALL_DEPTH, DEEP};
  size_t number = 0;
  for (size_t m = 1; m <= SMALL_ROWS; m++)
    for (size_t j = 0; j < sizeof columns / sizeof columns[0]; j++)
      for (size_t k = 0; k < sizeof depths / sizeof depths[0]; k++, number++)
        check_small(m, columns[j], depths[k], number % 7 < 3, number % 2 == 0, number % 3 == 0, number % 5 < 3);
}

UNIT_TEST(test_small_products_in_every_form) {
  static const char *const widths[] = {"plain", "avx2", "avx512"};
  FILL(deep_a, 1);
  FILL(deep_b, 2);
  for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++) {
    use_vectors(widths[i]);
    check_all_small();
  }
  use_all_vectors();
}

/* In whole panels and in the rest. */
UNIT_TEST(test_rectifying_keeps_nan) {
  static const char *const widths[] = {"plain", "avx2", "avx512"};
  enum { N = 19 };
  float one = 1, row[N], result[N];
  for (size_t i = 0; i < N; i++) row[i] = i % 3 == 0 ? NAN : i % 3 == 1 ? -1.0f : 2.0f;
  for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++) {
    use_vectors(widths[i]);
    rondo_gemm_run_small(
        &(rondo_gemm_small){1, N, 1, {&one, 1, false}, {row, N, false}, {result, N, false}, .rectifies = true});
    for (size_t j = 0; j < N; j++) {
      assert_true(j % 3 == 0 ? isnan(result[j]) : result[j] == (j % 3 == 1 ? 0.0f : 2.0f));
      assert_true(j % 3 != 1 || !signbit(result[j]));
    }
  }
  use_all_vectors();
}

UNIT_TEST(test_no_rows) {
  const float before = c[0];
  const rondo_gemm_packed g = {0, 1, 1, {a, 1, false}, packed, {c, 1, false}};
  rondo_gemm_run_packed(&g);
  assert_true(c[0] == before);
}

UNIT_TEST(test_rows_do_not_depend_on_others) {
  enum { N = 40, K = 33 };
  const rondo_gemm_factor factor = {b, N, false};
  float alone[MOST_ROWS * N];
  FILL(a, 1);
  FILL(b, 2);
  pack_all(&factor, K, N);
  for (size_t i = 0; i < MOST_ROWS; i++)
    rondo_gemm_run_packed(&(rondo_gemm_packed){1, N, K, {a + i * K, K, false}, packed, {alone + i * N, N, false}});
  for (size_t m = 1; m <= MOST_ROWS; m++) {
    rondo_gemm_run_packed(&(rondo_gemm_packed){m, N, K, {a, K, false}, packed, {c, N, false}});
    assert_memory_equal(c, alone, m * N * sizeof *c);
  }
}
