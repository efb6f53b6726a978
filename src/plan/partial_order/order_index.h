/* SPDX-License-Identifier: MIT
 * Lives by where they begin, so that all that conflict with one are found without a look at many others: what begins
 * while it may live is a few ranges of entries, and what lives across its beginning a short list. Immutable once made.
 *
 * An entry stands for an item with bytes. Those that one chain allocates and soon frees come first, then those that it
 * frees later, in two kinds, then those of two chains; each kind is sorted by the slots that allocate them.
 */
#ifndef RONDO_PLAN_PARTIAL_ORDER_ORDER_INDEX_H
#define RONDO_PLAN_PARTIAL_ORDER_ORDER_INDEX_H

#include "plan/partial_order/order_lives.h"

enum { RONDO_INDEX_KINDS = 4, RONDO_INDEX_LEVELS = 7, RONDO_INDEX_GRADES = 3 };

/* Of a list of entries, and of groups of them, groups of groups and so on: the last time of a free. */
typedef struct rondo_index_times {
  uint32_t count;
  uint32_t *latest[RONDO_INDEX_LEVELS];
} rondo_index_times;

/* The first entry of each kind that does not begin before a slot. */
typedef struct rondo_index_firsts {
  uint32_t of[RONDO_INDEX_KINDS];
} rondo_index_firsts;

typedef struct rondo_order_index {
  const rondo_lives *lives;
  uint32_t count;
  size_t grain;               /* the smallest alignment of an entry, at least 1: a divisor of all others */
  uint32_t *items;            /* of each entry */
  rondo_life *by_entry;       /* and its life */
  rondo_index_firsts *firsts; /* of each slot, and of one more */
  uint32_t *crossing;         /* entries of two chains, by how long they live, then by when they begin */
  uint32_t grade_begin[RONDO_INDEX_GRADES + 1]; /* of `crossing`: each grade lives for longer than the one before */
  rondo_life *crossing_lives;
  rondo_index_times times;          /* of all entries */
  rondo_index_times crossing_times; /* of `crossing` */
  uint32_t most_ranges;             /* that a question may be answered with */
} rondo_order_index;

/* Entries begin..end - 1. */
typedef struct rondo_index_range {
  uint32_t begin, end;
} rondo_index_range;

/* Room for an answer. */
typedef struct rondo_index_answer {
  rondo_index_range *ranges; /* index->most_ranges */
  uint32_t *others;          /* index->count */
  uint32_t range_count, other_count;
} rondo_index_answer;

/* Errors: OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_order_index_make(rondo_scratch *scratch, const rondo_lives *lives,
                                                   rondo_order_index *out);
RONDO_MUST_USE rondo_status rondo_index_answer_make(rondo_scratch *scratch, const rondo_order_index *index,
                                                    rondo_index_answer *out);

/* All entries that conflict with the entry's life, each once, itself among them. */
void rondo_order_index_ask(const rondo_order_index *index, uint32_t entry, rondo_index_answer *out);

#endif
