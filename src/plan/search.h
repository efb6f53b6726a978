/* SPDX-License-Identifier: MIT
 * Improving a packing by search: items live over half-open ranges of steps, and those that live together must not
 * overlap. Exact searches (exact.h) work beside each other: some at the bound, some at capacities below the best peak.
 * All place from the bottom up and know how much each section of time can still lose.
 *
 * With a budget of steps the result depends on the problem, the seed and the steps alone: not on time, not on the
 * number of threads. More steps never give a higher peak.
 */
#ifndef RONDO_PLAN_SEARCH_H
#define RONDO_PLAN_SEARCH_H

#include <stdatomic.h>

#include "base/allocation.h"

typedef struct rondo_search_item {
  uint64_t bytes;        /* with its alignment already in it; 0 is in nobody's way */
  uint32_t lower, upper; /* lives while lower <= step < upper */
} rondo_search_item;

/* How long to search; shared by all threads that do, and by several searches one after another. Without deadline and
 * steps, a search ends at the target, when it has proved the optimum, or when it is told to stop. */
typedef struct rondo_search_budget {
  uint64_t deadline_ns;  /* of rondo_clock_ns; 0: none */
  uint64_t steps;        /* in all; 0: no limit. A step is one item placed in one partial packing */
  uint64_t target;       /* stop when peak <= target; 0: only at the lower bound */
  atomic_bool stop;      /* anybody may set it, at any time: the search gives up soon and keeps the best it has */
  _Atomic uint64_t used; /* steps so far; may pass `steps` by none */
} rondo_search_budget;

/* Improves a packing in place. inout_offsets (one an item) must be one, with *inout_peak its peak, and lower_bound a
 * bound on every packing's; the peak never rises. *out_optimal: no packing has a lower peak. `threads` search, the
 * caller's included (0 counts as one); fewer when the system gives no more. Threads are only started while it runs.
 *
 * Problems of more than 16,384 items with bytes, or whose items live in more than 2^21 sections altogether, or that sum
 * to 2^62 bytes or more, are left as they are. Memory: about 60 MB at most, typically some hundred kilobytes.
 * Errors: OUT_OF_MEMORY; offsets and peak are then still a packing, and not worse than before. */
RONDO_MUST_USE rondo_status rondo_search_improve(const rondo_allocator *allocator, const rondo_search_item *items,
                                                 size_t count, uint64_t lower_bound, uint32_t threads, uint64_t seed,
                                                 rondo_search_budget *budget, uint64_t *inout_offsets,
                                                 uint64_t *inout_peak, bool *out_optimal);

#endif
