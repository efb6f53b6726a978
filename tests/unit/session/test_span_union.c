/* SPDX-License-Identifier: MIT
 * The union of time spans, compared with an array of cells, for random spans that arrive in order of their ends or
 * nearly so; and which spans are dropped when there are too many (SE-11).
 */
#include "session/serve/span_union.h"

#include <math.h>
#include <string.h>

#include "support/rondo_test.h"
#include "support/test_effort.h"

enum { CELLS = 1000 };

static size_t count_cells(const bool *cells) {
  size_t count = 0;
  for (size_t i = 0; i < CELLS; i++) count += cells[i];
  return count;
}

UNIT_TEST(test_se11_utilisation_is_the_union_of_spans) {
  uint64_t random = 5;
  for (uint32_t round = 0; round < test_effort(200); round++) {
    static bool cells[CELLS];
    rondo_span_union spans = {.count = 0};
    memset(cells, 0, sizeof cells);
    for (uint32_t i = 0; i < 60; i++) {
      const uint32_t end = 1 + i * 15 + test_random_below(&random, 40);
      const uint32_t longest = end < 60 ? end : 60;
      const uint32_t length = test_random_below(&random, longest + 1);
      memset(cells + end - length, true, length);
      rondo_span_union_add(&spans, end - length, end);
      rondo_span_union_check(&spans);
      assert_true(fabs(rondo_span_union_us(&spans) - (double)count_cells(cells)) < 1e-9);
    }
  }
}

UNIT_TEST(test_se11_more_spans_than_are_kept) {
  rondo_span_union spans = {.count = 0};
  for (size_t i = 0; i < 10 * RONDO_SPAN_UNION_CAPACITY; i++)
    rondo_span_union_add(&spans, (double)(4 * i), (double)(4 * i + 3));
  assert_int_equal(spans.count, RONDO_SPAN_UNION_CAPACITY);
  rondo_span_union_check(&spans);
  assert_true(fabs(rondo_span_union_us(&spans) - 30.0 * RONDO_SPAN_UNION_CAPACITY) < 1e-9);
  rondo_span_union_add(&spans, 0, 40.0 * RONDO_SPAN_UNION_CAPACITY); /* settled spans are not counted twice */
  const double settled = 27.0 * RONDO_SPAN_UNION_CAPACITY, end = 36.0 * RONDO_SPAN_UNION_CAPACITY - 1;
  assert_true(fabs(rondo_span_union_us(&spans) - (settled + 40.0 * RONDO_SPAN_UNION_CAPACITY - end)) < 1e-9);
  rondo_span_union_add(&spans, 1, 1);
  rondo_span_union_add(&spans, NAN, NAN);
  assert_int_equal(spans.count, 1);
}
