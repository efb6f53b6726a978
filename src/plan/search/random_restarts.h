/* SPDX-License-Identifier: MIT
 * Greedy placing repeatedly. An episode begins with a key of random weights and aims at a peak between the target
 * and the best plan. A run ends as soon as it cannot reach that. Boxes that should have been placed earlier then become
 * more preferred, so that the next run looks after them first (Joslin, Clements 1999, "squeaky wheel optimization"). An
 * aim that is reached is followed by a lower one, and an aim that is missed many times by a higher one.
 *
 * Runs are numbered through, and the first of the best counts: with a bound in runs the result depends on neither time
 * nor threads, and more runs are never worse.
 */
#ifndef RONDO_PLAN_SEARCH_RANDOM_RESTARTS_H
#define RONDO_PLAN_SEARCH_RANDOM_RESTARTS_H

#include "plan/interval/boxes.h"

#define RONDO_RUNS_AN_EPISODE 128

typedef struct rondo_restarts {
  const rondo_boxes *boxes;
  uint64_t target;        /* stop when peak <= target */
  uint64_t deadline_ns;   /* of rondo_clock_ns; 0: none */
  uint64_t first_episode; /* those before have been done by earlier calls */
  uint64_t runs;          /* at most */
  uint64_t seed;
  uint32_t threads; /* the caller's included; fewer when the system gives no more */
} rondo_restarts;

/* Improves a plan in place; the peak never rises. *out_runs: how many runs have been done.
 * Errors: OUT_OF_MEMORY; the plan is then as it was. */
RONDO_MUST_USE rondo_status rondo_restarts_improve(const rondo_allocator *allocator, const rondo_restarts *restarts,
                                                   uint64_t *inout_offsets, uint64_t *inout_peak, uint64_t *out_runs);

#endif
