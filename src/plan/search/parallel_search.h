/* SPDX-License-Identifier: MIT
 * Improving a packing by search: items live over half-open ranges of steps, and those that live at once must not
 * overlap. Exact searches (exact_search.h) work in parallel: some at the bound, some at capacities below the best
 * peak. All place from the bottom up and know how much each section of time can still lose.
 *
 * With a budget of steps the result depends on the problem, the seed and the steps alone: not on time, not on the
 * number of threads. More steps never give a higher peak.
 */
#ifndef RONDO_PLAN_SEARCH_PARALLEL_SEARCH_H
#define RONDO_PLAN_SEARCH_PARALLEL_SEARCH_H

#include "base/allocation.h"
#include "plan/interval/sections.h"

/* How long to search. Several searches can use it one after another. Without a deadline and steps, a search ends at the
 * target, or when it has proved the optimum. */
typedef struct rondo_search_budget {
  uint64_t deadline_ns; /* of rondo_clock_ns; 0: none */
  uint64_t steps;       /* in all; 0: no limit. A step is one decision: an item placed in a partial packing */
  uint64_t target;      /* stop when peak <= target; 0: only at the lower bound */
  uint64_t used;        /* steps so far: never more than `steps` */
} rondo_search_budget;

/* A search that can be continued. Threads: one call at a time. */
typedef struct rondo_search rondo_search;

/* Begins a search of a problem of which `lower_bound` bounds every packing's peak; the items are copied. *out is NULL,
 * and the status OK, for what the search leaves alone: no items with bytes, more than 16,384 of them, items that live
 * in more than 2^21 sections altogether, or that sum to 2^62 bytes or more. Memory: typically some megabytes, about 80
 * at most. Errors: OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_search_begin(const rondo_allocator *allocator, const rondo_box *items, size_t count,
                                               uint64_t lower_bound, uint64_t seed, rondo_search **out);
void rondo_search_end(rondo_search *search); /* NULL is fine */

/* Improves a packing in place, until the budget is over, the target is reached, or `steps` have been made in this call
 * and a round is complete (0: no such end). inout_offsets (one an item given) must be a packing, with *inout_peak its
 * peak, which never rises. *out_optimal: no packing has a lower peak. `threads` search, the caller's included (0 counts
 * as one); fewer when the system gives no more. Threads are only started while it runs.
 * Errors: OUT_OF_MEMORY; offsets and peak are then still a packing, not worse than before, and the search can only be
 * ended. */
RONDO_MUST_USE rondo_status rondo_search_run(rondo_search *search, uint32_t threads, rondo_search_budget *budget,
                                             uint64_t steps, uint64_t *inout_offsets, uint64_t *inout_peak,
                                             bool *out_optimal);

#endif
