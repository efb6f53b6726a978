/* SPDX-License-Identifier: MIT
 * When a search that runs next to others has to give up: the budget is stopped or over, or a search before it in the
 * order in which results are taken has already reached the target. Reading the clock and the shared words is cheap
 * enough for every few dozen steps.
 */
#ifndef RONDO_PLAN_SEARCH_SEARCH_BUDGET_H
#define RONDO_PLAN_SEARCH_SEARCH_BUDGET_H

#include "base/clock.h"
#include "plan/search/parallel_search.h"

#define RONDO_SEARCH_WATCH_STEPS 32

typedef enum rondo_search_outcome {
  RONDO_SEARCH_PAUSED, /* the steps are used up, or it gave up: run again to go on */
  RONDO_SEARCH_FOUND,  /* a packing within the capacity; the next run begins again */
  RONDO_SEARCH_CLOSED  /* there is none, or no more to try; the next run begins again */
} rondo_search_outcome;

typedef struct rondo_search_watch {
  const rondo_search_budget *budget;
  const _Atomic uint32_t *winner; /* the first search that has reached the target; UINT32_MAX: none */
  uint32_t place;                 /* of this search among those that run in parallel */
} rondo_search_watch;

static inline bool rondo_search_is_over(const rondo_search_budget *budget) {
  return atomic_load_explicit(&budget->stop, memory_order_relaxed) ||
         (budget->deadline_ns != 0 && rondo_clock_ns() >= budget->deadline_ns);
}

static inline bool rondo_search_gives_up(const rondo_search_watch *watch) {
  return atomic_load_explicit(watch->winner, memory_order_relaxed) < watch->place ||
         rondo_search_is_over(watch->budget);
}

#define RONDO_SEARCH_MIX_STEP UINT64_C(0x9e3779b97f4a7c15)

/* SplitMix64 (Steele, Lea, Flood 2014): a number from a number, the same everywhere. */
static inline uint64_t rondo_search_mix(uint64_t value) {
  value += RONDO_SEARCH_MIX_STEP;
  value = (value ^ (value >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  value = (value ^ (value >> 27)) * UINT64_C(0x94d049bb133111eb);
  return value ^ (value >> 31);
}

#endif
