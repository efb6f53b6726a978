/* SPDX-License-Identifier: MIT
 * Mending a plan where it is too high: of many boxes a few stand out, and what is around them in time can be placed
 * again while all else stays, as obstacles. A window costs what its boxes cost, and a look at all.
 */
#ifndef RONDO_PLAN_SEARCH_WINDOW_SEARCH_H
#define RONDO_PLAN_SEARCH_WINDOW_SEARCH_H

#include "plan/search/random_restarts.h"

typedef struct rondo_window {
  uint32_t boxes;      /* about so many that begin around the highest one are placed again */
  uint64_t most_steps; /* boxes placed, in all runs */
  bool lowered;        /* out: whatever stood out there ends lower now */
} rondo_window;

/* Restarts in a window around the highest box; `restarts` is of all boxes, which have no obstacles, and its runs are
 * those of the window. *inout_peak becomes that of all boxes; *out_steps: how many boxes have been placed.
 * Errors: OUT_OF_MEMORY; the plan is then as it was. */
RONDO_MUST_USE rondo_status rondo_window_improve(const rondo_allocator *allocator, const rondo_restarts *restarts,
                                                 rondo_window *window, uint64_t *inout_offsets, uint64_t *inout_peak,
                                                 uint64_t *out_steps);

#endif
