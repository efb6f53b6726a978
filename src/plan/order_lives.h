/* SPDX-License-Identifier: MIT
 * The lifetimes of a problem's items on its order, and which of them conflict: two that no edges keep apart and no
 * choice makes exclusive. Trees over the items tell for whole groups at once whether they conflict with a given
 * lifetime; nothing is kept a pair. Immutable once made.
 *
 * Items fall into streams, a tree each: by the chain, counted within its part, that both allocates and frees them;
 * items with two chains are a stream of their own.
 */
#ifndef RONDO_PLAN_ORDER_LIVES_H
#define RONDO_PLAN_ORDER_LIVES_H

#include "plan/order_branch.h"
#include "plan/order_relation.h"

#define RONDO_LIVES_MIXED UINT32_MAX
#define RONDO_LIVES_STREAMS 16
#define RONDO_LIVES_CROSSING (RONDO_LIVES_STREAMS - 1) /* the stream of what has two chains, or a very high one */

typedef struct rondo_life {
  uint32_t alloc, free; /* slots; the last slot: never freed */
  uint32_t alloc_chain, free_chain;
  uint32_t alloc_time, free_time; /* 1 + the node: what comes before has the smaller; 0: the beginning */
  uint32_t branch;                /* a number of rondo_branches */
} rondo_life;

/* A group of items. Its left half is the group that follows it in the list. */
typedef struct rondo_lives_group {
  uint32_t alloc_low, alloc_high, alloc_chain; /* chains and branch: RONDO_LIVES_MIXED when not all the same */
  uint32_t free_low, free_high, free_chain;
  uint32_t alloc_first, alloc_last, free_first, free_last; /* times */
  uint32_t branch;
  uint32_t begin, end; /* its items: rondo_lives.items[begin] up to items[end] */
  uint32_t right;      /* number of its right half; 0: not split */
} rondo_lives_group;

typedef struct rondo_lives {
  const rondo_plan_problem *problem;
  const rondo_relation *relation;
  const rondo_branches *branches;
  rondo_life *lives;     /* one an item */
  rondo_life *obstacles; /* one an obstacle */
  uint32_t *items;       /* those with bytes, in the groups' order */
  rondo_life *by_place;  /* the lives of `items` */
  uint32_t count;        /* with bytes */
  RONDO_ARRAY(rondo_lives_group) groups;
  struct {
    uint32_t group; /* of all items of the stream */
    uint32_t stream;
  } roots[RONDO_LIVES_STREAMS];
  uint32_t root_count;
} rondo_lives;

/* The problem must be checked and have an order. Errors: INVALID_ARGUMENT naming an item or obstacle that is freed by a
 * node that does not come behind the one that allocates it; OUT_OF_MEMORY. *out can be freed either way. */
RONDO_MUST_USE rondo_status rondo_lives_make(const rondo_allocator *allocator, const rondo_plan_problem *problem,
                                             const rondo_relation *relation, const rondo_branches *branches,
                                             rondo_lives *out);
void rondo_lives_free(const rondo_allocator *allocator, rondo_lives *lives);

/* How many slots a life may meet: all but those before its alloc and behind its free. */
uint32_t rondo_lives_span(const rondo_lives *lives, const rondo_life *life);

/* One life, made ready for being compared with many. */
typedef struct rondo_conflict {
  const uint32_t *future, *past;     /* rows of free and alloc */
  uint32_t future_chain, past_chain; /* the chains of their first entries */
  uint32_t behind;                   /* slots from here on come behind the free */
  uint32_t free_first, free_end;     /* slots of its part */
  uint32_t before;                   /* slots below come before the alloc */
  uint32_t alloc_first, alloc_end;   /* slots of its part */
  uint32_t last;                     /* what is allocated at later times comes behind the free */
  uint32_t first;                    /* what is freed at earlier times comes before the alloc */
  uint32_t branch;
} rondo_conflict;

rondo_conflict rondo_conflict_of(const rondo_lives *lives, const rondo_life *life);

typedef enum rondo_share { RONDO_SHARE_NONE, RONDO_SHARE_SOME, RONDO_SHARE_ALL } rondo_share;

/* Which of the group's items conflict with it. */
rondo_share rondo_conflict_group(const rondo_lives *lives, const rondo_conflict *conflict,
                                 const rondo_lives_group *group);
bool rondo_conflict_one(const rondo_lives *lives, const rondo_conflict *conflict, const rondo_life *life);

/* Writes the places (in lives->items) of all items that conflict, itself included if it is an item's life; returns how
 * many. `out` has room for lives->count. */
uint32_t rondo_conflict_list(const rondo_lives *lives, const rondo_conflict *conflict, uint32_t *out);

#endif
