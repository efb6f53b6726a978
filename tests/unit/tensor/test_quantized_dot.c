/* SPDX-License-Identifier: MIT
 * The forms of dot products of quantised rows (PR-9): all give the same bits, and the sum that they should give.
 */
#include "tensor/operators/quantized/quantized_dot.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/rondo_test.h"
#include "tensor/operators/common/vectors.h"
#include "tensor/operators/quantized/quantized_rows.h"
#include "tensor/operators/quantized/quantized_scheme.h"

_Static_assert(RONDO_DOT_FACTORS == 4, "dot_in has so many");

enum { MOST = 1100, MOST_GROUPS = MOST / 32 + 1 };

/* A row and a factor with random bytes. The row ends where its memory does. */
typedef struct sample {
  rondo_quantized_scheme scheme;
  bool is_int8;
  uint8_t *values, zeros[MOST_GROUPS];
  float scales[MOST_GROUPS];
  float floats[MOST + 32], float_starts[MOST_GROUPS * RONDO_DOT_LANES];
  int8_t integers[MOST + 32];
  int32_t integer_starts[MOST_GROUPS * RONDO_DOT_LANES];
} sample;

static void draw(sample *s, uint64_t *seed, uint32_t bits, size_t group, size_t columns, bool is_int8) {
  s->scheme = rondo_quantized_scheme_of(bits, group, 1, columns);
  s->is_int8 = is_int8;
  s->values = malloc(s->scheme.row_bytes);
  assert_non_null(s->values);
  for (size_t i = 0; i < s->scheme.row_bytes; i++) s->values[i] = (uint8_t)test_random_below(seed, 256);
  if (bits == 4 && columns % 2 == 1) s->values[columns / 2] &= 15; /* no column */
  for (size_t i = 0; i < columns + 32; i++) {
    s->floats[i] = i < columns ? (float)test_random_below(seed, 2001) / 700 - 1 : 0;
    s->integers[i] = (int8_t)(i < columns ? (int)test_random_below(seed, 255) - 127 : 0);
  }
  for (size_t i = 0; i < s->scheme.groups; i++) {
    s->scales[i] = (float)test_random_below(seed, 2001) / 1000;
    s->zeros[i] = (uint8_t)test_random_below(seed, bits == 4 ? 16 : 256);
  }
  for (size_t i = 0; i < s->scheme.groups * RONDO_DOT_LANES; i++) {
    s->float_starts[i] = (float)test_random_below(seed, 2001) / 300;
    s->integer_starts[i] = (int32_t)test_random_below(seed, 5001) - 2500;
  }
}

/* With one factor, and with several that are alike. */
static float dot_in(rondo_vectors form, const sample *s, bool has_zeros) {
  const rondo_dot_row row = {s->values, s->scales, has_zeros ? s->zeros : NULL, s->scheme.columns, s->scheme.group};
  const void *starts = s->is_int8 ? (const void *)s->integer_starts : s->float_starts;
  const rondo_dot_factor factor = {s->is_int8 ? (const void *)s->integers : s->floats,
                                   has_zeros || s->scheme.bits == 4 ? starts : NULL};
  const rondo_vectors usual = rondo_vectors_used();
  atomic_store(&rondo_vectors_chosen, form < usual ? form : usual);
  const rondo_dot_factor factors[] = {factor, factor, factor, factor};
  float dots[RONDO_DOT_FACTORS], dot;
  rondo_quantized_dots_for(s->scheme.bits, s->is_int8)(&row, factors, 1, &dot);
  for (size_t count = 2; count <= RONDO_DOT_FACTORS; count++) {
    rondo_quantized_dots_for(s->scheme.bits, s->is_int8)(&row, factors, count, dots);
    for (size_t i = 0; i < count; i++) assert_memory_equal(&dots[i], &dot, sizeof dot);
  }
  atomic_store(&rondo_vectors_chosen, usual);
  return dot;
}

/* The value that is multiplied by element `at` of the factor. */
static int value_at(const sample *s, size_t at) {
  const size_t unit = s->is_int8 ? RONDO_INT8_UNIT : RONDO_FLOAT_UNIT, half = at % unit / (unit / 2);
  const size_t column = at / unit * unit + 2 * (at % (unit / 2)) + half;
  if (s->scheme.bits == 8) return (int8_t)s->values[at];
  return column < s->scheme.columns ? s->values[column / 2] >> 4 * (column % 2) & 15 : 0;
}

/* In the order of the factor, which keeps groups together. */
static double reference(const sample *s, bool has_zeros, double *magnitude) {
  double sum = 0;
  *magnitude = 0;
  for (size_t at = 0; at < s->scheme.columns + (s->scheme.bits == 4 ? 31 : 0); at++) {
    const size_t group = at / s->scheme.group;
    if (group >= s->scheme.groups) break;
    const double x = s->is_int8 ? s->integers[at] : (double)s->floats[at];
    const double term = (double)s->scales[group] * value_at(s, at) * x;
    sum += term;
    *magnitude += fabs(term);
  }
  const bool has_starts = has_zeros || s->scheme.bits == 4;
  for (size_t i = 0; has_starts && i < s->scheme.groups * RONDO_DOT_LANES; i++) {
    const size_t group = i / RONDO_DOT_LANES;
    const double zero = !has_zeros ? 1 : s->scheme.bits == 4 ? s->zeros[group] : (int8_t)s->zeros[group];
    const double start = s->is_int8 ? s->integer_starts[i] : (double)s->float_starts[i];
    sum += (double)s->scales[group] * zero * start;
    *magnitude += fabs((double)s->scales[group] * zero * start);
  }
  return sum;
}

static void check(uint64_t *seed, uint32_t kind, size_t group, size_t columns) {
  const bool has_zeros = kind / 4 % 2 == 1;
  double magnitude;
  sample s;
  draw(&s, seed, kind % 2 == 0 ? 8 : 4, group, columns, kind / 2 % 2 == 1);
  const double wanted = reference(&s, has_zeros, &magnitude);
  const float plain = dot_in(RONDO_VECTORS_PLAIN, &s, has_zeros);
  for (int form = RONDO_VECTORS_AVX2; form <= RONDO_VECTORS_AVX512; form++) {
    const float dot = dot_in((rondo_vectors)form, &s, has_zeros);
    assert_memory_equal(&dot, &plain, sizeof dot);
  }
  if (!(fabs((double)plain - wanted) <= 1e-6 * (1 + magnitude)))
    fail_msg("kind %u, groups of %zu, %zu columns: %g, not %g", kind, group, columns, (double)plain, wanted);
  free(s.values);
}

/* Whole steps and parts of one, in one group and in many. */
UNIT_TEST(test_pr9_dot_products) {
  static const size_t groups[] = {0, 32, 64, 96, 1024}, columns[] = {1, 7, 16, 31, 32, 33, 63, 64, 96, 100, 511, 1100};
  uint64_t seed = 1;
  for (uint32_t kind = 0; kind < 8; kind++) {
    for (size_t g = 0; g < sizeof groups / sizeof groups[0]; g++) {
      for (size_t c = 0; c < sizeof columns / sizeof columns[0]; c++) check(&seed, kind, groups[g], columns[c]);
    }
  }
}

/* The largest sums of products of 8 bits do not overflow. */
UNIT_TEST(test_pr9_largest_products) {
  const size_t columns = RONDO_INT8_COLUMNS;
  uint8_t *values = malloc(columns);
  int8_t *x = malloc(columns);
  const float scale = 1;
  assert_true(values != NULL && x != NULL);
  memset(values, 0x80, columns);
  memset(x, 127, columns);
  const rondo_dot_row row = {values, &scale, NULL, columns, columns};
  const rondo_dot_factor factor = {x, NULL};
  float dot;
  rondo_quantized_dots_for(8, true)(&row, &factor, 1, &dot);
  assert_true(dot == -128.0f * 127 * (float)columns);
  free(values);
  free(x);
}

/* Bytes of the prepared integers of 4 rows of 64 columns, with two groups. */
static size_t bytes_of_rows(uint32_t bits, bool has_zeros, bool for_dots) {
  rondo_quantized_scheme scheme = rondo_quantized_scheme_of(bits, 32, 1, 64);
  rondo_quantized_rows_layout layout;
  scheme.has_zeros = has_zeros;
  const rondo_quantized_rows rows = rondo_quantized_rows_of(&scheme, 4, true, for_dots);
  assert_true(rondo_quantized_rows_place(&rows, 0, &layout));
  return layout.end;
}

/* Only sums of a group that start at another number than 0 have memory. */
UNIT_TEST(test_pr9_starts_have_memory_where_they_are_used) {
  const size_t values = 256, scales = 256, starts = 4 * 2 * RONDO_DOT_LANES * sizeof(int32_t);
  for (uint32_t bits = 4; bits <= 8; bits += 4) {
    assert_int_equal(bytes_of_rows(bits, true, false), values + scales);
    assert_int_equal(bytes_of_rows(bits, false, false), values + scales);
    assert_int_equal(bytes_of_rows(bits, true, true), values + scales + starts);
    assert_int_equal(bytes_of_rows(bits, false, true), values + scales + (bits == 4 ? starts : 0));
  }
}
