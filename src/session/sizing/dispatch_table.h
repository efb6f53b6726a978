/* SPDX-License-Identifier: MIT
 * What runs a batch of so many rows: decided beforehand for every number of rows, from the times of the graphs, so that
 * deciding is one look (SE-8). Pure; a table is made whole and then only read.
 *
 * One graph costs its time. Several, on several streams, cost what they take of all streams' time together, but no less
 * than the longest of them. Un-recorded work costs its time, between and beyond the rows where that was measured on a
 * line. A table for streams that are all busy has what graphs take of all streams' time for their time.
 */
#ifndef RONDO_SESSION_SIZING_DISPATCH_TABLE_H
#define RONDO_SESSION_SIZING_DISPATCH_TABLE_H

#include <rondo/session.h>

#include "base/allocation.h"

typedef struct rondo_dispatch_size {
  size_t rows;
  double run_us;        /* while nothing else runs */
  double share_us;      /* of the time of all streams together, when all of them run it: at most run_us */
  double unrecorded_us; /* 0: not known */
} rondo_dispatch_size;

typedef struct rondo_dispatch_entry {
  float us;
  uint8_t way; /* RECORDED, SPLIT or UNRECORDED */
  uint8_t count;
  uint8_t graphs[RONDO_SESSION_MAX_PARTS]; /* indices, the one with most rows first */
} rondo_dispatch_entry;

typedef struct rondo_dispatch_table {
  rondo_allocator allocator;
  size_t rows; /* entries[0 .. rows]; 0 is not used. The rows of the largest graph, times what it takes at most */
  size_t largest_rows;
  uint32_t largest;    /* the graph with most rows */
  double largest_us;   /* its share */
  double least_row_us; /* share of a row in a graph that is full, of all graphs */
  rondo_dispatch_entry *entries;
} rondo_dispatch_table;

/* Of a row, where so many, at most table->rows, run together. */
static inline double rondo_dispatch_table_row_us(const rondo_dispatch_table *table, size_t rows) {
  return (double)table->entries[rows].us / (double)rows;
}

typedef struct rondo_dispatch_input {
  const rondo_dispatch_size *sizes; /* by index of their graphs, in any order */
  size_t count;                     /* at least one and at most RONDO_SESSION_MAX_SIZES */
  double margin; /* one graph is taken unless another way is cheaper by this share of its time; entries say the way's */
} rondo_dispatch_input;

RONDO_MUST_USE rondo_status rondo_dispatch_table_make(const rondo_allocator *allocator,
                                                      const rondo_dispatch_input *input, rondo_dispatch_table **out);
void rondo_dispatch_table_free(rondo_dispatch_table *table); /* NULL is fine */

/* How a batch runs: `repeats` times the largest graph, then what the entry says. */
typedef struct rondo_dispatch {
  size_t repeats;
  const rondo_dispatch_entry *entry; /* NULL: nothing is left of the rows */
} rondo_dispatch;

static inline rondo_dispatch rondo_dispatch_table_find(const rondo_dispatch_table *table, size_t rows) {
  if (__builtin_expect(rows <= table->rows, 1)) return (rondo_dispatch){0, &table->entries[rows]};
  const size_t repeats = (rows - table->rows + table->largest_rows - 1) / table->largest_rows;
  const size_t rest = rows - repeats * table->largest_rows;
  return (rondo_dispatch){repeats, rest == 0 ? NULL : &table->entries[rest]};
}

#endif
