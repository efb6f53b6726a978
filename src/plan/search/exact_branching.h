/* SPDX-License-Identifier: MIT
 * What the exact search decides next: at which end of which valley, and about which item there.
 */
#ifndef RONDO_PLAN_SEARCH_EXACT_BRANCHING_H
#define RONDO_PLAN_SEARCH_EXACT_BRANCHING_H

#include "plan/search/exact_search.h"

#define RONDO_EXACT_TIES 3U /* ways to prefer one of equal ends */

typedef struct rondo_exact_choice {
  uint32_t item;
  uint32_t count;  /* ways on at this end */
  uint32_t weight; /* of its section */
  uint64_t tie;
  uint32_t valley_lower, valley_upper;
  bool at_end; /* of the valley; else at its beginning */
} rondo_exact_choice;

/* The goal has items to place, and the state is settled. state.status says whether it could be looked ahead. */
rondo_exact_choice rondo_exact_choose(rondo_exact *exact, const rondo_exact_goal *goal);

#endif
