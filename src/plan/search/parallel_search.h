/* SPDX-License-Identifier: MIT
 * Improves a packing by exact searches (exact_search.h) in parallel: some at the bound, some at capacities below the
 * best peak. Items that live at the same time must not overlap.
 *
 * With a budget of steps, the result depends only on the problem, the seed and the steps, and not on time or the number
 * of threads. More steps never give a higher peak.
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

/* Begins a search. `lower_bound` bounds the peak of every packing. The items are copied; one without bytes overlaps
 * nothing. *out is NULL, with RONDO_OK, for problems that are not searched: no items with bytes, more than 16,384 of
 * them, items that live in more than 2^21 sections in total, or that sum to 2^62 bytes or more. Memory: typically some
 * megabytes, at most about 80. Errors: OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_search_begin(const rondo_allocator *allocator, const rondo_box *items, size_t count,
                                               uint64_t lower_bound, uint64_t seed, rondo_search **out);
void rondo_search_end(rondo_search *search); /* NULL is allowed */

/* Improves a packing in place, until the budget is used up, the target is reached, or this call has made `steps` steps
 * and completed a round (0: no such limit). inout_offsets has one offset for each item; it must be a packing with peak
 * *inout_peak, which never rises. *out_optimal: no packing has a lower peak. `threads` includes the caller's (0 counts
 * as 1); fewer if the system does not allow more. Threads run only during the call. Errors: OUT_OF_MEMORY; offsets and
 * peak are then still a packing, not worse than before, and the search can only be ended. */
RONDO_MUST_USE rondo_status rondo_search_run(rondo_search *search, uint32_t threads, rondo_search_budget *budget,
                                             uint64_t steps, uint64_t *inout_offsets, uint64_t *inout_peak,
                                             bool *out_optimal);

#endif
