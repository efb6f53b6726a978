/* SPDX-License-Identifier: MIT
 * Panels of quantised matrices (PR-9): all forms give the bits of rondo_dequantize_row, for whole lines and parts of
 * one, and for panels past the last row. The matrix ends where its memory does.
 */
#include "tensor/operators/quantized/quantized_panel.h"

#include <stdlib.h>

#include "support/rondo_test.h"
#include "tensor/operators/common/vectors.h"

enum { MOST_COLUMNS = 400, MOST_GROUPS = MOST_COLUMNS / 32 + 1, MOST_ROWS = 35 };

typedef struct sample {
  rondo_quantized_scheme scheme;
  uint8_t *values, zeros[MOST_ROWS * MOST_GROUPS];
  float scales[MOST_ROWS * MOST_GROUPS];
} sample;

static void draw(sample *s, uint64_t *seed, uint32_t bits, size_t group, size_t rows, size_t columns) {
  s->scheme = rondo_quantized_scheme_of(bits, group, rows, columns);
  s->values = malloc(rows * s->scheme.row_bytes);
  assert_non_null(s->values);
  for (size_t i = 0; i < rows * s->scheme.row_bytes; i++) s->values[i] = (uint8_t)test_random_below(seed, 256);
  for (size_t i = 0; i < rows * s->scheme.groups; i++) {
    s->scales[i] = (float)test_random_below(seed, 2001) / 1000 - 1;
    s->zeros[i] = (uint8_t)test_random_below(seed, bits == 4 ? 16 : 256);
  }
}

static void check_panel(const sample *s, bool has_zeros, size_t row, size_t first, size_t depth) {
  const rondo_quantized_matrix matrix = {s->values, s->scales, has_zeros ? s->zeros : NULL};
  static float panel[RONDO_PANEL * MOST_COLUMNS], elements[MOST_COLUMNS];
  rondo_quantized_panel(&s->scheme, &matrix, row, first, depth, panel);
  for (size_t j = 0; j < RONDO_PANEL; j++) {
    const bool is_there = row + j < s->scheme.rows;
    if (is_there) rondo_dequantize_row(&s->scheme, &matrix, row + j, first, depth, elements);
    for (size_t p = 0; p < depth; p++) {
      if (is_there) assert_memory_equal(&panel[p * RONDO_PANEL + j], &elements[p], sizeof *elements);
      if (!is_there) assert_true(panel[p * RONDO_PANEL + j] == 0);
    }
  }
}

UNIT_TEST(test_pr9_panels_of_a_quantized_matrix) {
  static const size_t groups[] = {0, 32, 96, 128}, columns[] = {1, 15, 16, 31, 33, 64, 127, 130, 256, 395};
  const rondo_vectors usual = rondo_vectors_used();
  uint64_t seed = 1;
  for (uint32_t kind = 0; kind < 160; kind++) {
    const size_t rows = kind % 3 == 0 ? MOST_ROWS : 1 + kind % 20, depth = columns[kind / 4 % 10];
    sample s;
    draw(&s, &seed, kind % 2 == 0 ? 8 : 4, groups[kind / 2 % 4], rows, depth);
    for (int form = RONDO_VECTORS_PLAIN; form <= RONDO_VECTORS_AVX512; form++) {
      atomic_store(&rondo_vectors_chosen, (rondo_vectors)form < usual ? (rondo_vectors)form : usual);
      for (size_t row = 0; row < rows; row += RONDO_PANEL) check_panel(&s, kind / 40 % 2 == 1, row, 0, depth);
      if (depth > 64) check_panel(&s, kind / 40 % 2 == 1, 0, 64, depth - 64);
    }
    free(s.values);
  }
  atomic_store(&rondo_vectors_chosen, usual);
}
