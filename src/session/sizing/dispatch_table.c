/* SPDX-License-Identifier: MIT
 * Makes a dispatch table by dynamic programming.
 *
 * sums[p][r] is the lowest sum of shares of p graphs that together have at least r rows. Graphs are added one by one,
 * the fastest first. A new graph either leaves a sum unchanged, or replaces it by its own share plus the sum for the
 * remaining rows. A sum that includes the new graph costs at least the time of that graph, which is the longest so far.
 * Takes O(n p r) for n graphs, p parts and r rows.
 */
#include "session/sizing/dispatch_table.h"

#include <assert.h>
#include <math.h>

#include "base/error.h"

typedef struct maker {
  const rondo_dispatch_size *sizes;
  size_t count;
  double margin;
  bool is_whole;
  rondo_dispatch_table *table;
  float *sums;           /* (RONDO_SESSION_MAX_PARTS + 1) x (rows + 1), by number of parts and rows */
  unsigned char *choice; /* likewise: the graph that was added last to the sum */
} maker;

static size_t at(const maker *m, size_t parts, size_t rows) { return parts * (m->table->rows + 1) + rows; }

/* One graph, or an eager run --------------------------------------------------------------------------------------- */

/* The time of an eager run: interpolated between the two nearest measured sizes, constant below the smallest, and
 * proportional to the rows above the largest. */
static double eager_us(const maker *m, size_t rows) {
  const rondo_dispatch_size *below = NULL, *above = NULL;
  for (size_t i = 0; i < m->count; i++) {
    const rondo_dispatch_size *s = &m->sizes[i];
    if (s->eager_us <= 0) continue;
    if (s->rows <= rows && (below == NULL || s->rows > below->rows)) below = s;
    if (s->rows > rows && (above == NULL || s->rows < above->rows)) above = s;
  }
  if (below == NULL && above == NULL) return INFINITY;
  if (below == NULL) return above->eager_us;
  if (above == NULL) return below->eager_us * ((double)rows / (double)below->rows);
  const double part = (double)(rows - below->rows) / (double)(above->rows - below->rows);
  return below->eager_us + part * (above->eager_us - below->eager_us);
}

/* An alternative replaces the entry if it costs less than this. */
static double cost_to_beat(const maker *m, const rondo_dispatch_entry *entry) {
  return entry->mode == RONDO_RUN_RECORDED ? (double)entry->us * (1 - m->margin) : (double)entry->us;
}

/* Enters the cheapest single graph, or an eager run. Of graphs with equal times, the one with less padding. */
static void enter_single(maker *m, size_t rows) {
  rondo_dispatch_entry best = {.us = INFINITY, .mode = RONDO_RUN_EAGER};
  for (size_t i = 0; i < m->count; i++) {
    const rondo_dispatch_size *s = &m->sizes[i];
    if (s->rows < rows || (float)s->run_us > best.us) continue;
    if (best.count > 0 && (float)s->run_us >= best.us && s->rows > m->sizes[best.graphs[0]].rows) continue;
    best =
        (rondo_dispatch_entry){.us = (float)s->run_us, .mode = RONDO_RUN_RECORDED, .count = 1, .graphs = {(uint8_t)i}};
  }
  const double us = eager_us(m, rows);
  if (us < cost_to_beat(m, &best)) best = (rondo_dispatch_entry){.us = (float)us, .mode = RONDO_RUN_EAGER};
  m->table->entries[rows] = best;
}

/* Several graphs --------------------------------------------------------------------------------------------------- */

/* Largest first, so that the padding is in the last part. */
static void sort_parts(const maker *m, rondo_dispatch_entry *entry) {
  for (size_t i = 1; i < entry->count; i++) {
    const uint8_t moved = entry->graphs[i];
    size_t k = i;
    for (; k > 0 && m->sizes[entry->graphs[k - 1]].rows < m->sizes[moved].rows; k--)
      entry->graphs[k] = entry->graphs[k - 1];
    entry->graphs[k] = moved;
  }
}

static void enter_parts(maker *m, size_t parts, size_t rows, float us) {
  rondo_dispatch_entry *entry = &m->table->entries[rows];
  *entry = (rondo_dispatch_entry){.us = us, .mode = RONDO_RUN_SPLIT};
  for (size_t left = rows; left > 0 && parts > 0; parts--) {
    const unsigned char graph = m->choice[at(m, parts, left)];
    entry->graphs[entry->count++] = graph;
    left = left > m->sizes[graph].rows ? left - m->sizes[graph].rows : 0;
  }
  sort_parts(m, entry);
}

/* Lowers the sums that the graph makes cheaper. It is the slowest graph so far, so each of them takes at least its
 * time. */
static void add_graph(maker *m, unsigned char graph) {
  const rondo_dispatch_size *s = &m->sizes[graph];
  for (size_t parts = 1; parts <= RONDO_SESSION_MAX_PARTS; parts++) {
    for (size_t r = 1; r <= m->table->rows; r++) {
      const float sum = (float)s->share_us + m->sums[at(m, parts - 1, r > s->rows ? r - s->rows : 0)];
      if (sum >= m->sums[at(m, parts, r)]) continue;
      m->sums[at(m, parts, r)] = sum;
      m->choice[at(m, parts, r)] = graph;
      const float us = fmaxf(sum, (float)s->run_us);
      if (parts == 1 || (m->is_whole && r <= m->table->largest_rows)) continue;
      if ((double)us < cost_to_beat(m, &m->table->entries[r])) enter_parts(m, parts, r, us);
    }
  }
}

static void split(maker *m) {
  unsigned char order[RONDO_SESSION_MAX_SIZES]; /* ascending by time */
  for (size_t i = 0; i < m->count; i++) {
    size_t k = i;
    for (; k > 0 && m->sizes[order[k - 1]].run_us > m->sizes[i].run_us; k--) order[k] = order[k - 1];
    order[k] = (unsigned char)i;
  }
  for (size_t parts = 0; parts <= RONDO_SESSION_MAX_PARTS; parts++)
    for (size_t r = 1; r <= m->table->rows; r++) m->sums[at(m, parts, r)] = INFINITY;
  for (size_t i = 0; i < m->count; i++) add_graph(m, order[i]);
}

/* Entry point ------------------------------------------------------------------------------------------------------ */

static rondo_status fill(maker *m) {
  rondo_dispatch_table *table = m->table;
  const size_t cells = (RONDO_SESSION_MAX_PARTS + 1) * (table->rows + 1);
  RONDO_TRY(rondo_allocate_items(&table->allocator, table->rows + 1, sizeof *table->entries, &table->entries));
  RONDO_TRY(rondo_allocate_items(&table->allocator, cells, sizeof *m->sums, &m->sums));
  RONDO_TRY(rondo_allocate_items(&table->allocator, cells, 1, &m->choice));
  for (size_t r = 1; r <= table->rows; r++) enter_single(m, r);
  split(m);
  return RONDO_OK;
}

static void check_entry(const rondo_dispatch_entry *entry) {
  assert(entry->us > 0 && isfinite(entry->us));
  assert(entry->count <= RONDO_SESSION_MAX_PARTS);
  if (entry->mode == RONDO_RUN_RECORDED) assert(entry->count == 1);
  if (entry->mode == RONDO_RUN_SPLIT) assert(entry->count >= 2);
  if (entry->mode == RONDO_RUN_EAGER) assert(entry->count == 0);
  for (size_t i = 0; i < entry->count; i++) assert(entry->graphs[i] < RONDO_SESSION_MAX_SIZES);
  (void)entry;
}

void rondo_dispatch_table_check(const rondo_dispatch_table *table) {
  assert(table->largest_rows > 0 && table->rows == 2 * table->largest_rows);
  assert(table->largest < RONDO_SESSION_MAX_SIZES);
  assert(table->largest_us > 0 && table->least_row_us * (double)table->largest_rows <= table->largest_us * (1 + 1e-9));
  for (size_t r = 1; r <= table->rows; r++) check_entry(&table->entries[r]);
}

rondo_status rondo_dispatch_table_make(const rondo_allocator *allocator, const rondo_dispatch_input *input,
                                       rondo_dispatch_table **out) {
  *out = NULL;
  const rondo_dispatch_size *sizes = input->sizes;
  const size_t count = input->count;
  maker m = {.sizes = sizes, .count = count, .margin = input->margin, .is_whole = input->is_whole};
  RONDO_TRY(rondo_allocate_items(allocator, 1, sizeof *m.table, &m.table));
  m.table->allocator = *allocator;
  m.table->least_row_us = INFINITY;
  for (uint32_t i = 0; i < count; i++) {
    if (i == 0 || sizes[i].rows > sizes[m.table->largest].rows) m.table->largest = i;
    m.table->least_row_us = fmin(m.table->least_row_us, sizes[i].share_us / (double)sizes[i].rows);
  }
  assert(count > 0 && count <= RONDO_SESSION_MAX_SIZES);
  m.table->largest_rows = sizes[m.table->largest].rows;
  m.table->largest_us = sizes[m.table->largest].share_us;
  m.table->rows = 2 * m.table->largest_rows; /* so that a largest graph and a rest are dispatched together */
  const rondo_status status = fill(&m);
  const size_t cells = (RONDO_SESSION_MAX_PARTS + 1) * (m.table->rows + 1);
  rondo_release(allocator, m.sums, cells, sizeof *m.sums);
  rondo_release(allocator, m.choice, cells, 1);
  if (status != RONDO_OK) {
    rondo_dispatch_table_free(m.table);
    return status;
  }
#ifndef NDEBUG
  rondo_dispatch_table_check(m.table);
#endif
  *out = m.table;
  return RONDO_OK;
}

void rondo_dispatch_table_free(rondo_dispatch_table *table) {
  if (table == NULL) return;
  const rondo_allocator allocator = table->allocator;
  rondo_release(&allocator, table->entries, table->rows + 1, sizeof *table->entries);
  rondo_release(&allocator, table, 1, sizeof *table);
}
