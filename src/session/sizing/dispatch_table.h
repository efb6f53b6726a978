/* SPDX-License-Identifier: MIT
 * The dispatch table: whether a batch of each number of rows is padded to one graph, split over several graphs, or run
 * eagerly (SE-8). It is computed in advance from the times of the graphs, so that dispatching is one lookup. Pure; a
 * table is read-only once it is made.
 *
 * One graph costs its time. Several graphs, on several streams, cost the sum of their shares of all streams' time, but
 * at least the time of the longest. An eager run costs its time, interpolated between the sizes that were measured. A
 * table for a loaded session uses shares in place of times.
 */
#ifndef RONDO_SESSION_SIZING_DISPATCH_TABLE_H
#define RONDO_SESSION_SIZING_DISPATCH_TABLE_H

#include <rondo/session.h>

#include "base/allocation.h"

typedef struct rondo_dispatch_size {
  size_t rows;
  double run_us;   /* while nothing else runs */
  double share_us; /* of the time of all streams, when all of them run it; at most run_us */
  double eager_us; /* of an eager run; 0: not known */
} rondo_dispatch_size;

typedef struct rondo_dispatch_entry {
  float us;
  uint8_t mode; /* RECORDED, SPLIT or EAGER */
  uint8_t count;
  uint8_t graphs[RONDO_SESSION_MAX_PARTS]; /* indices, the largest graph first */
} rondo_dispatch_entry;

typedef struct rondo_dispatch_table {
  rondo_allocator allocator;
  size_t rows; /* entries[1 .. rows] are valid; twice largest_rows */
  size_t largest_rows;
  uint32_t largest;    /* index of the graph with the most rows */
  double largest_us;   /* its share */
  double least_row_us; /* lowest cost of a row in a full graph */
  rondo_dispatch_entry *entries;
} rondo_dispatch_table;

/* The cost of one row when `rows` rows, at most table->rows, run together. */
static inline double rondo_dispatch_table_row_us(const rondo_dispatch_table *table, size_t rows) {
  return (double)table->entries[rows].us / (double)rows;
}

typedef struct rondo_dispatch_input {
  const rondo_dispatch_size *sizes; /* by index of the graph, in any order */
  size_t count;                     /* from 1 to RONDO_SESSION_MAX_SIZES */
  double margin;                    /* alternatives to one graph must be cheaper by this share of its time */
  bool is_whole;                    /* what fits into one graph is not split */
} rondo_dispatch_input;

RONDO_MUST_USE rondo_status rondo_dispatch_table_make(const rondo_allocator *allocator,
                                                      const rondo_dispatch_input *input, rondo_dispatch_table **out);
/* Walks the table and asserts that each entry is complete. */
void rondo_dispatch_table_check(const rondo_dispatch_table *table);
void rondo_dispatch_table_free(rondo_dispatch_table *table); /* NULL is allowed */

/* How a batch runs: `repeats` launches of the largest graph, then the entry. */
typedef struct rondo_dispatch {
  size_t repeats;
  const rondo_dispatch_entry *entry; /* NULL: no rows are left */
} rondo_dispatch;

static inline rondo_dispatch rondo_dispatch_table_find(const rondo_dispatch_table *table, size_t rows) {
  if (__builtin_expect(rows <= table->rows, 1)) return (rondo_dispatch){0, &table->entries[rows]};
  const size_t repeats = (rows - table->rows + table->largest_rows - 1) / table->largest_rows;
  const size_t rest = rows - repeats * table->largest_rows;
  return (rondo_dispatch){repeats, rest == 0 ? NULL : &table->entries[rest]};
}

#endif
