/* SPDX-License-Identifier: MIT
 * The lifetimes of a problem's items on its order, and which of them conflict: two that no edges keep apart and no
 * choice makes exclusive. Nothing is kept a pair. Immutable once made.
 */
#ifndef RONDO_PLAN_PARTIAL_ORDER_ORDER_LIVES_H
#define RONDO_PLAN_PARTIAL_ORDER_ORDER_LIVES_H

#include "plan/partial_order/order_branch.h"
#include "plan/partial_order/order_relation.h"
#include "plan/plan_internal.h"
#include "plan/radix_sort.h"

typedef struct rondo_life {
  uint32_t alloc, free; /* slots; the last slot: never freed */
  uint32_t alloc_chain, free_chain;
  uint32_t alloc_time, free_time; /* 1 + the node: what comes before has the smaller; 0: the beginning */
  uint32_t branch;                /* a number of rondo_branches */
} rondo_life;

typedef struct rondo_lives {
  const rondo_plan_problem *problem;
  const rondo_relation *relation;
  const rondo_branches *branches;
  rondo_life *lives;           /* of each item, then of each obstacle */
  rondo_life *obstacles;       /* of each obstacle */
  uint32_t *items;             /* those with bytes, ascending */
  uint32_t count;              /* of these */
  rondo_sort_entry *by_offset; /* obstacles with bytes; the keys are their offsets */
  size_t by_offset_count;
} rondo_lives;

/* The problem must be checked and have an order. Errors: INVALID_ARGUMENT naming an item or obstacle that is freed by a
 * node that does not come after the one that allocates it; OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_lives_make(rondo_scratch *scratch, const rondo_plan_problem *problem,
                                             const rondo_relation *relation, const rondo_branches *branches,
                                             rondo_lives *out);

/* How many slots a life may meet: all but those before its alloc and after its free. */
uint32_t rondo_lives_span(const rondo_lives *lives, const rondo_life *life);

/* One life, made ready for being compared with many. */
typedef struct rondo_conflict {
  const uint32_t *future, *past;     /* rows of free and alloc */
  uint32_t future_chain, past_chain; /* the chains of their first entries */
  uint32_t behind;                   /* slots from here on come after the free */
  uint32_t free_first, free_end;     /* slots of its part */
  uint32_t before;                   /* slots below come before the alloc */
  uint32_t alloc_first, alloc_end;   /* slots of its part */
  uint32_t last;                     /* what is allocated at later times comes after the free */
  uint32_t first;                    /* what is freed at earlier times comes before the alloc */
  uint32_t branch;
} rondo_conflict;

rondo_conflict rondo_conflict_of(const rondo_lives *lives, const rondo_life *life);

/* Whether a slot of the chain comes after the free. */
static inline bool rondo_conflict_is_behind(const rondo_conflict *conflict, uint32_t slot, uint32_t chain) {
  if (slot >= conflict->behind) return true;
  if (slot < conflict->free_first || slot >= conflict->free_end) return false;
  return slot >= conflict->future[chain - conflict->future_chain];
}

/* Whether it comes before the alloc. */
static inline bool rondo_conflict_is_before(const rondo_conflict *conflict, uint32_t slot, uint32_t chain) {
  if (slot < conflict->before) return true;
  if (slot < conflict->alloc_first || slot >= conflict->alloc_end) return false;
  return slot < conflict->past[chain - conflict->past_chain];
}

bool rondo_conflict_one(const rondo_lives *lives, const rondo_conflict *conflict, const rondo_life *life);

#endif
