/* SPDX-License-Identifier: MIT
 * Repairs a plan where it is too high. If a few of many boxes are too high, the boxes near them in time can be placed
 * again while all others stay, as obstacles. The cost of a window is that of placing its boxes, and one pass over all
 * boxes.
 */
#ifndef RONDO_PLAN_SEARCH_WINDOW_SEARCH_H
#define RONDO_PLAN_SEARCH_WINDOW_SEARCH_H

#include "plan/search/random_restarts.h"

typedef struct rondo_window {
  uint32_t boxes;      /* about how many, which begin around the highest box, are placed again */
  uint64_t most_steps; /* boxes placed, in all runs */
  bool lowered;        /* out: the highest box in the window ends lower now */
} rondo_window;

/* Makes restarts in a window around the highest box. `restarts` describes all boxes, which have no obstacles; its runs
 * are those of the window. *inout_peak becomes the peak of all boxes. *out_steps: how many boxes were placed. Errors:
 * OUT_OF_MEMORY; the plan is then unchanged. */
RONDO_MUST_USE rondo_status rondo_window_improve(const rondo_allocator *allocator, const rondo_restarts *restarts,
                                                 rondo_window *window, uint64_t *inout_offsets, uint64_t *inout_peak,
                                                 uint64_t *out_steps);

#endif
