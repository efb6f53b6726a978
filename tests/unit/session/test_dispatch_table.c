/* SPDX-License-Identifier: MIT
 * The dispatch table (SE-8), compared with every possible split for small random sizes; rows beyond the table; and that
 * dispatching is one lookup.
 */
#include "session/sizing/dispatch_table.h"

#include <math.h>
#include <stdlib.h>

#include "support/rondo_test.h"
#include "support/test_effort.h"

enum { MOST_SIZES = 4, MOST_ROWS = 12 };

typedef struct reference {
  const rondo_dispatch_size *sizes;
  size_t count;
  double best;
} reference;

/* Tries every multiset of graphs that is large enough for the rows, in descending order of indices. */
static void try_parts(reference *r, size_t last, size_t left, size_t parts, double shares, double longest) {
  if (left == 0) {
    r->best = fmin(r->best, parts == 1 ? longest : fmax(shares, longest));
    return;
  }
  if (parts == RONDO_SESSION_MAX_PARTS) return;
  for (size_t i = 0; i <= last; i++) {
    const size_t rows = r->sizes[i].rows;
    try_parts(r, i, left > rows ? left - rows : 0, parts + 1, shares + r->sizes[i].share_us,
              fmax(longest, r->sizes[i].run_us));
  }
}

static double line(const rondo_dispatch_size *a, const rondo_dispatch_size *b, size_t rows) {
  return a->eager_us +
         (b->eager_us - a->eager_us) * ((double)rows - (double)a->rows) / ((double)b->rows - (double)a->rows);
}

static double eager(const rondo_dispatch_size *sizes, size_t count, size_t rows) {
  if (rows <= sizes[0].rows) return sizes[0].eager_us;
  for (size_t i = 1; i < count; i++)
    if (rows <= sizes[i].rows) return line(&sizes[i - 1], &sizes[i], rows);
  return sizes[count - 1].eager_us * (double)rows / (double)sizes[count - 1].rows;
}

static size_t room_of(const rondo_dispatch_size *sizes, const rondo_dispatch_entry *entry) {
  size_t rows = 0;
  for (size_t i = 0; i < entry->count; i++) rows += sizes[entry->graphs[i]].rows;
  return rows;
}

static void check_entry(const rondo_dispatch_size *sizes, size_t count, bool has_eager,
                        const rondo_dispatch_table *table, size_t rows) {
  const rondo_dispatch_entry *entry = rondo_dispatch_table_find(table, rows).entry;
  reference r = {.sizes = sizes, .count = count, .best = INFINITY};
  try_parts(&r, count - 1, rows, 0, 0, 0);
  if (has_eager) r.best = fmin(r.best, eager(sizes, count, rows));
  assert_true(fabs((double)entry->us - r.best) <= 1e-4 * r.best);
  if (entry->mode == RONDO_RUN_EAGER) {
    assert_true(has_eager);
    return;
  }
  assert_int_equal(entry->mode, entry->count == 1 ? RONDO_RUN_RECORDED : RONDO_RUN_SPLIT);
  assert_true(room_of(sizes, entry) >= rows);
  for (size_t i = 1; i < entry->count; i++)
    assert_true(sizes[entry->graphs[i - 1]].rows >= sizes[entry->graphs[i]].rows);
}

static rondo_status make_table(const rondo_dispatch_size *sizes, size_t count, double margin,
                               rondo_dispatch_table **out) {
  const rondo_allocator allocator = rondo_allocator_default();
  const rondo_dispatch_input input = {.sizes = sizes, .count = count, .margin = margin};
  return rondo_dispatch_table_make(&allocator, &input, out);
}

UNIT_TEST(test_se8_no_split_is_cheaper) {
  uint64_t random = 3;
  for (uint32_t round = 0; round < test_effort(200); round++) {
    rondo_dispatch_size sizes[MOST_SIZES];
    const size_t count = 1 + test_random_below(&random, MOST_SIZES);
    const bool has_eager = test_random_below(&random, 2) == 0;
    const double overlap = 0.25 + 0.25 * test_random_below(&random, 4);
    const bool is_whole = test_random_below(&random, 3) == 0;
    size_t rows = 0;
    for (size_t i = 0; i < count; i++) {
      rows += 1 + test_random_below(&random, MOST_ROWS / MOST_SIZES);
      const double run_us = 3 + (double)rows + test_random_below(&random, 4);
      const double part =
          is_whole ? 1 : overlap * (0.75 + 0.25 * test_random_below(&random, 2)); /* which differs between sizes */
      sizes[i] = (rondo_dispatch_size){.rows = rows, .run_us = run_us, .share_us = run_us * part};
      if (has_eager) sizes[i].eager_us = 5 + 1.2 * (double)rows;
    }
    rondo_dispatch_table *table = NULL;
    assert_ok(make_table(sizes, count, 0, &table));
    assert_int_equal(table->rows, 2 * rows);
    for (size_t r = 1; r <= table->rows; r++) check_entry(sizes, count, has_eager, table, r);
    rondo_dispatch_table_free(table);
  }
}

UNIT_TEST(test_se8_more_rows_than_the_table_has) {
  const rondo_dispatch_size sizes[] = {{.rows = 4, .run_us = 4, .share_us = 4},
                                       {.rows = 16, .run_us = 8, .share_us = 8}};
  rondo_dispatch_table *table = NULL;
  assert_ok(make_table(sizes, 2, 0, &table));
  for (size_t rows = 1; rows < 200; rows++) {
    const rondo_dispatch d = rondo_dispatch_table_find(table, rows);
    const size_t room = d.repeats * 16 + (d.entry == NULL ? 0 : room_of(sizes, d.entry));
    assert_true(room >= rows && room < rows + 16);
    assert_true(d.entry == NULL || d.entry->mode != RONDO_RUN_EAGER);
    assert_int_equal(d.repeats > 0, rows > 32);
  }
  rondo_dispatch_table_free(table);
}

UNIT_TEST(test_se8_of_equal_times_the_least_padding) {
  const rondo_dispatch_size sizes[] = {{.rows = 16, .run_us = 8, .share_us = 8},
                                       {.rows = 4, .run_us = 8, .share_us = 8},
                                       {.rows = 8, .run_us = 8, .share_us = 8}};
  const size_t rows[] = {3, 4, 5, 8, 9, 16}, wanted[] = {1, 1, 2, 2, 0, 0};
  rondo_dispatch_table *table = NULL;
  assert_ok(make_table(sizes, 3, 0, &table));
  for (size_t i = 0; i < 6; i++)
    assert_int_equal(rondo_dispatch_table_find(table, rows[i]).entry->graphs[0], wanted[i]);
  rondo_dispatch_table_free(table);
}

/* An alternative to one graph is used only if it is cheaper by the margin. */
UNIT_TEST(test_se8_one_graph_within_the_margin) {
  rondo_dispatch_size sizes[] = {{.rows = 10, .run_us = 100, .share_us = 100, .eager_us = 98},
                                 {.rows = 20, .run_us = 206, .share_us = 206, .eager_us = 190}};
  rondo_dispatch_table *table = NULL;
  assert_ok(make_table(sizes, 2, 0.03, &table));
  assert_int_equal(rondo_dispatch_table_find(table, 10).entry->mode, RONDO_RUN_RECORDED);
  assert_int_equal(rondo_dispatch_table_find(table, 20).entry->mode, RONDO_RUN_EAGER);
  assert_true(fabsf(rondo_dispatch_table_find(table, 20).entry->us - 190) < 0.01f);
  rondo_dispatch_table_free(table);
  sizes[0].share_us = 90;
  assert_ok(make_table(sizes, 2, 0.03, &table));
  assert_int_equal(rondo_dispatch_table_find(table, 20).entry->mode, RONDO_RUN_SPLIT);
  assert_true(fabsf(rondo_dispatch_table_find(table, 20).entry->us - 180) < 0.01f);
  rondo_dispatch_table_free(table);
}
