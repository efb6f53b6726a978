/* SPDX-License-Identifier: MIT
 * Exact search for a packing within a capacity. It searches depth first over decisions at an end of a valley: either
 * this item is placed here, or it is placed higher.
 *
 * - Which end: the one with the fewest choices, divided by how often its section ran out of space. A refuted decision
 *   leaves a higher minimum of the item, which holds for all decisions after it.
 * - Which item: of those that fit there, the one for which the sections lose the least of the space that they can still
 *   lose, in relation to a preference. Items that would leave no space are tried first, and so refuted.
 * - Independent parts: where no item to place crosses a cut, each side is a goal of its own. If one of them has no
 *   packing, the search goes back to the decision that separated them, past everything done in the other.
 * - An item that is as wide as its valley and is not placed at the bottom is placed above the valley: whatever is below
 *   it there could be swapped with it. Items of the same kind are placed in one order.
 * - Goals (their floors and items to place) that were found to have no packing are stored in a table of fixed size,
 *   with hashes of 128 bits.
 * - Restarts after ever more steps (Luby, Sinclair, Zuckerman 1993), with several orders of preference and noise.
 *
 * The method is Rondo's own. Canonical packings, the bound by section, and parting by time are also in MiniMalloc
 * (Moffitt, ASPLOS 2023); the weights are from Boussemart, Hemery, Lecoutre, Sais (ECAI 2004). Threads: one at a time.
 */
#ifndef RONDO_PLAN_SEARCH_EXACT_SEARCH_H
#define RONDO_PLAN_SEARCH_EXACT_SEARCH_H

#include <stdatomic.h>

#include "plan/search/partial_packing.h"

typedef enum rondo_search_outcome {
  RONDO_SEARCH_PAUSED, /* the steps are used up, or it stopped early: run again to continue */
  RONDO_SEARCH_FOUND,  /* a packing within the capacity; the next run begins again */
  RONDO_SEARCH_CLOSED  /* there is none; the next run begins again */
} rondo_search_outcome;

/* When a search stops: at the deadline, or once a search before it has reached the target, because results are taken
 * in order. */
typedef struct rondo_search_watch {
  uint64_t deadline_ns;           /* of rondo_clock_ns; 0: none */
  const _Atomic uint32_t *winner; /* the first search that has reached the target; UINT32_MAX: none */
  uint32_t number;                /* of this search in the order */
} rondo_search_watch;

typedef struct rondo_exact_goal rondo_exact_goal;
typedef struct rondo_exact_frame rondo_exact_frame;

typedef struct rondo_exact {
  rondo_search_state state;
  uint64_t seed;
  bool aimed;            /* a search at state.capacity has begun */
  uint32_t todo;         /* the first goal of the list */
  uint32_t restarts;     /* since the start */
  uint32_t tie;          /* how equal ends are ordered */
  uint64_t steps_left;   /* until the next restart */
  uint64_t *keys;        /* preference of each item; higher first */
  uint64_t *loads;       /* of each item: the largest load of its sections */
  uint32_t *weights;     /* of each section: grows when it has no space */
  uint64_t *memory;      /* pairs of words: the hashes of goals without a packing */
  uint32_t memory_count; /* of pairs; a power of two */
  uint64_t memory_salt;  /* part of the hashes: changed to forget the goals of smaller capacities */
  uint64_t memory_capacity;
  RONDO_ARRAY(rondo_exact_goal) goals;
  RONDO_ARRAY(rondo_exact_frame) frames;
} rondo_exact;

struct rondo_exact_goal {
  uint32_t lower, upper; /* sections */
  uint32_t parent;       /* the frame whose decision made it */
  uint32_t next;
};

struct rondo_exact_frame {
  uint32_t lower, upper, parent, next; /* a copy of its goal */
  uint32_t item;
  bool refuted;      /* the decision is now that the item is placed higher */
  uint64_t minimum;  /* the lowest offset of the item then */
  size_t goal_count; /* of goals before the decision */
  size_t mark;       /* length of the trail before the decision */
  uint64_t hashes[2];
};

/* Errors: OUT_OF_MEMORY; free it also then. */
RONDO_MUST_USE rondo_status rondo_exact_init(rondo_scratch *scratch, const rondo_search_sections *sections,
                                             uint64_t seed, rondo_exact *out);
void rondo_exact_free(rondo_exact *exact);

/* The next run begins again with this capacity, which is at least the largest load. It keeps what was learnt. */
void rondo_exact_aim(rondo_exact *exact, uint64_t capacity);

/* Searches for at most `steps` steps; *out_used is how many were made. CLOSED: there is no packing within the capacity.
 * FOUND: state.minima are the offsets. Errors: OUT_OF_MEMORY; then it can only be freed. */
RONDO_MUST_USE rondo_status rondo_exact_run(rondo_exact *exact, uint64_t steps, const rondo_search_watch *watch,
                                            uint64_t *out_used, rondo_search_outcome *out_outcome);

#endif
