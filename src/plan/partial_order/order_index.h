/* SPDX-License-Identifier: MIT
 * An index of lifetimes by alloc. It finds all entries that conflict with one without visiting many others: those that
 * begin while it may live are a few ranges, and those that live across its alloc a short list. Immutable once made.
 *
 * An entry is an item with bytes. Entries have four kinds: allocated and freed on the same chain, with a short, medium
 * or long lifetime, and crossing: allocated on one chain and freed on another. Entries are sorted by kind, and then by
 * alloc slot.
 */
#ifndef RONDO_PLAN_PARTIAL_ORDER_ORDER_INDEX_H
#define RONDO_PLAN_PARTIAL_ORDER_ORDER_INDEX_H

#include "plan/partial_order/order_lifetimes.h"

enum { RONDO_INDEX_KINDS = 4, RONDO_INDEX_LEVELS = 7, RONDO_INDEX_GRADES = 3 };

/* The latest free time of each entry of a list (level 0), of each group of entries (level 1), and so on. */
typedef struct rondo_index_times {
  uint32_t count;
  uint32_t *latest[RONDO_INDEX_LEVELS];
} rondo_index_times;

/* The first entry of each kind that begins at a slot or later. */
typedef struct rondo_index_firsts {
  uint32_t of[RONDO_INDEX_KINDS];
} rondo_index_firsts;

typedef struct rondo_order_index {
  const rondo_lifetimes *lifetimes;
  uint32_t count;
  size_t grain;               /* the smallest alignment of an entry, at least 1: it divides all others */
  uint32_t *items;            /* of each entry */
  rondo_lifetime *by_entry;   /* lifetime of each entry */
  rondo_index_firsts *firsts; /* of each slot, and one more */
  uint32_t *crossing;         /* crossing entries, by grade and then by alloc time */
  uint32_t grade_begin[RONDO_INDEX_GRADES + 1]; /* where each grade begins in `crossing`; later grades live longer */
  rondo_lifetime *crossing_lifetimes;
  rondo_index_times times;          /* of all entries */
  rondo_index_times crossing_times; /* of the entries in `crossing` */
  uint32_t max_ranges;              /* maximum number of ranges that a search finds */
} rondo_order_index;

/* Entries begin..end - 1. */
typedef struct rondo_index_range {
  uint32_t begin, end;
} rondo_index_range;

/* The result of a search, with its memory. */
typedef struct rondo_index_conflicts {
  rondo_index_range *ranges; /* capacity: index->max_ranges */
  uint32_t *others;          /* capacity: index->count */
  uint32_t range_count, other_count;
} rondo_index_conflicts;

/* Errors: OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_order_index_make(rondo_scratch *scratch, const rondo_lifetimes *lifetimes,
                                                   rondo_order_index *out);
RONDO_MUST_USE rondo_status rondo_index_conflicts_make(rondo_scratch *scratch, const rondo_order_index *index,
                                                       rondo_index_conflicts *out);

/* Finds all entries that conflict with an entry, each once, including itself. */
void rondo_order_index_find(const rondo_order_index *index, uint32_t entry, rondo_index_conflicts *out);

#endif
