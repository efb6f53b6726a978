/* SPDX-License-Identifier: MIT
 * Repeated greedy placement. An episode begins with keys of random weights, and aims at a peak between the target and
 * the best plan. A run ends as soon as it cannot reach that. Boxes that should have been placed earlier then get a
 * higher preference for the next run (Joslin, Clements 1999, "squeaky wheel optimization"). After a success, the aim is
 * lowered; after many failures, it is raised.
 *
 * Runs are numbered, and the first of the best counts: with a limit on runs, the result depends on neither time nor
 * threads, and more runs are never worse.
 */
#ifndef RONDO_PLAN_SEARCH_RANDOM_RESTARTS_H
#define RONDO_PLAN_SEARCH_RANDOM_RESTARTS_H

#include "plan/interval/boxes.h"

#define RONDO_RUNS_PER_EPISODE 128

typedef struct rondo_restarts {
  const rondo_boxes *boxes;
  uint64_t target;        /* stop when peak <= target */
  uint64_t deadline_ns;   /* of rondo_clock_ns; 0: none */
  uint64_t first_episode; /* earlier calls have done those before it */
  uint64_t runs;          /* at most */
  uint64_t seed;
  uint32_t threads; /* including the caller's; fewer if the system does not allow more */
} rondo_restarts;

/* Improves a plan in place; the peak never rises. *out_runs: how many runs were made. Errors: OUT_OF_MEMORY; the plan
 * is then unchanged. */
RONDO_MUST_USE rondo_status rondo_restarts_improve(const rondo_allocator *allocator, const rondo_restarts *restarts,
                                                   uint64_t *inout_offsets, uint64_t *inout_peak, uint64_t *out_runs);

#endif
