/* SPDX-License-Identifier: MIT
 * The lifetimes of a problem's items and obstacles on its order, and which of them conflict: two that no edges order
 * and no choice excludes. Conflicts are computed, not stored. Immutable once made.
 */
#ifndef RONDO_PLAN_PARTIAL_ORDER_ORDER_LIFETIMES_H
#define RONDO_PLAN_PARTIAL_ORDER_ORDER_LIFETIMES_H

#include "plan/partial_order/order_branch.h"
#include "plan/partial_order/order_relation.h"
#include "plan/plan_internal.h"
#include "plan/radix_sort.h"

typedef struct rondo_lifetime {
  uint32_t alloc, free; /* slots; free in the last slot: never freed */
  uint32_t alloc_chain, free_chain;
  uint32_t alloc_time, free_time; /* 1 + the node, so times increase along the order; 0: the beginning */
  uint32_t branch;                /* number in rondo_branches */
} rondo_lifetime;

typedef struct rondo_lifetimes {
  const rondo_plan_problem *problem;
  const rondo_relation *relation;
  const rondo_branches *branches;
  rondo_lifetime *pieces;      /* of each item, then of each obstacle */
  rondo_lifetime *obstacles;   /* within pieces */
  uint32_t *items;             /* items with bytes, ascending */
  uint32_t count;              /* of items with bytes */
  rondo_sort_entry *by_offset; /* obstacles with bytes; the key is the offset */
  size_t by_offset_count;
} rondo_lifetimes;

/* The problem must have been checked and have an order. Errors: INVALID_ARGUMENT, naming an item or obstacle whose free
 * node does not come after its alloc node; OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_lifetimes_make(rondo_scratch *scratch, const rondo_plan_problem *problem,
                                                 const rondo_relation *relation, const rondo_branches *branches,
                                                 rondo_lifetimes *out);

/* The number of slots that a lifetime may overlap: all but those before its alloc and after its free. */
uint32_t rondo_lifetimes_span(const rondo_lifetimes *lifetimes, const rondo_lifetime *life);

/* A lifetime prepared for comparison with many others. */
typedef struct rondo_conflict {
  const uint32_t *future, *past;     /* rows of the free and the alloc */
  uint32_t future_chain, past_chain; /* chains of their first entries */
  uint32_t after;                    /* slots from here on come after the free */
  uint32_t free_first, free_end;     /* slots of the free's part */
  uint32_t before;                   /* slots below this come before the alloc */
  uint32_t alloc_first, alloc_end;   /* slots of the alloc's part */
  uint32_t last;                     /* a piece allocated at a later time comes after the free */
  uint32_t first;                    /* a piece freed at an earlier time comes before the alloc */
  uint32_t branch;
} rondo_conflict;

rondo_conflict rondo_conflict_of(const rondo_lifetimes *lifetimes, const rondo_lifetime *life);

/* Whether a slot of a chain comes after the free. */
static inline bool rondo_conflict_is_after(const rondo_conflict *conflict, uint32_t slot, uint32_t chain) {
  if (slot >= conflict->after) return true;
  if (slot < conflict->free_first || slot >= conflict->free_end) return false;
  return slot >= conflict->future[chain - conflict->future_chain];
}

/* Whether a slot of a chain comes before the alloc. */
static inline bool rondo_conflict_is_before(const rondo_conflict *conflict, uint32_t slot, uint32_t chain) {
  if (slot < conflict->before) return true;
  if (slot < conflict->alloc_first || slot >= conflict->alloc_end) return false;
  return slot < conflict->past[chain - conflict->past_chain];
}

bool rondo_conflict_one(const rondo_lifetimes *lifetimes, const rondo_conflict *conflict, const rondo_lifetime *life);

#endif
