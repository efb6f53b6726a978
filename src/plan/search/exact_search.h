/* SPDX-License-Identifier: MIT
 * Exact search: is there a packing within a capacity? Depth first over decisions at an end of a valley: this item lies
 * here, or it lies higher.
 *
 * - Which end: the one with the fewest ways on, divided by how often its section has been where there was no room. The
 *   decision refuted leaves its mark, an item's higher minimum, on all that follows.
 * - Which item: of those that could lie there, the one for which the sections lose least of what they still can, in
 *   relation to a preference. What would leave no room is tried first, and thus refuted.
 * - Independent parts: where no item to place crosses a cut, each side is a goal of its own. When one of them has no
 *   packing, the search goes back to the decision that parted them, past all that was done in the other.
 * - A full-width item of a valley that does not lie at its bottom lies above the valley: whatever is below it there
 *   could be swapped with it. Items of one kind are placed in one order.
 * - What a goal looked like (its floors and items to place) when it was found to have no packing is remembered in a
 *   table of fixed size, with hashes of 128 bits.
 * - Restarts after ever more steps (Luby, Sinclair, Zuckerman 1993), under several orders of preference with noise.
 *
 * The method is Rondo's own; canonical packings, the bound by section, and parting by time are also in MiniMalloc
 * (Moffitt, ASPLOS 2023), the weights in Boussemart, Hemery, Lecoutre, Sais (ECAI 2004). Threads: one at a time.
 */
#ifndef RONDO_PLAN_SEARCH_EXACT_SEARCH_H
#define RONDO_PLAN_SEARCH_EXACT_SEARCH_H

#include <stdatomic.h>

#include "plan/search/partial_packing.h"

typedef enum rondo_search_outcome {
  RONDO_SEARCH_PAUSED, /* the steps are used up, or it gave up: run again to continue */
  RONDO_SEARCH_FOUND,  /* a packing within the capacity; the next run begins again */
  RONDO_SEARCH_CLOSED  /* there is none; the next run begins again */
} rondo_search_outcome;

/* When a search gives up: at the deadline, or once a search before it has reached the target, because results are taken
 * in order. */
typedef struct rondo_search_watch {
  uint64_t deadline_ns;           /* of rondo_clock_ns; 0: none */
  const _Atomic uint32_t *winner; /* the first search that has reached the target; UINT32_MAX: none */
  uint32_t place;                 /* of this search in the order */
} rondo_search_watch;

typedef struct rondo_exact_goal rondo_exact_goal;
typedef struct rondo_exact_frame rondo_exact_frame;

typedef struct rondo_exact {
  rondo_search_state state;
  uint64_t seed;
  bool aimed;            /* a search at state.capacity is under way */
  uint32_t todo;         /* the first goal of the list */
  uint32_t restarts;     /* since the start */
  uint32_t tie;          /* which of equal ends is preferred */
  uint64_t steps_left;   /* until the next restart */
  uint64_t *keys;        /* an item's preference; higher first */
  uint64_t *loads;       /* an item's: the largest load of its sections */
  uint32_t *weights;     /* a section's failures */
  uint64_t *memory;      /* pairs of words: goals without a packing */
  uint32_t memory_count; /* of pairs; a power of two */
  uint64_t memory_salt;  /* part of the hashes: goals of smaller capacities are forgotten by changing it */
  uint64_t memory_capacity;
  RONDO_ARRAY(rondo_exact_goal) goals;
  RONDO_ARRAY(rondo_exact_frame) frames;
} rondo_exact;

struct rondo_exact_goal {
  uint32_t lower, upper; /* sections */
  uint32_t parent;       /* the frame whose decision left it */
  uint32_t next;
};

struct rondo_exact_frame {
  uint32_t lower, upper, parent, next; /* the goal that it decides about */
  uint32_t item;
  bool refuted;      /* the item lies higher */
  uint64_t minimum;  /* in which case at least there */
  size_t goal_count; /* and trail, before the decision */
  size_t mark;
  uint64_t hashes[2];
};

/* Errors: OUT_OF_MEMORY; it is to be freed all the same. */
RONDO_MUST_USE rondo_status rondo_exact_init(rondo_scratch *scratch, const rondo_search_sections *sections,
                                             uint64_t seed, rondo_exact *out);
void rondo_exact_free(rondo_exact *exact);

/* The next run begins again, at this capacity (at least the largest load). What was learnt is kept. */
void rondo_exact_aim(rondo_exact *exact, uint64_t capacity);

/* Searches for at most `steps` steps; *out_used of them. CLOSED: there is no packing within the capacity. FOUND:
 * state.minima are the offsets. Errors: OUT_OF_MEMORY; it can then only be freed. */
RONDO_MUST_USE rondo_status rondo_exact_run(rondo_exact *exact, uint64_t steps, const rondo_search_watch *watch,
                                            uint64_t *out_used, rondo_search_outcome *out_outcome);

#endif
