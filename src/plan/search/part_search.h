/* SPDX-License-Identifier: MIT
 * Search in one part at a time: the search is kept for as long as the same part is worked on, and what it has learnt
 * with it. Parts with obstacles, or whose offsets have to be aligned one by one, are not searched.
 */
#ifndef RONDO_PLAN_SEARCH_PART_SEARCH_H
#define RONDO_PLAN_SEARCH_PART_SEARCH_H

#include "plan/search/improve_parts.h"
#include "plan/search/parallel_search.h"

typedef struct rondo_part_search {
  rondo_search *search;
  const rondo_part *part; /* that it searches */
} rondo_part_search;

/* Improves the part's plan with about `steps` steps, until it ends at `goal` above the part's base or the improvement's
 * budget is over, and counts the steps. Sets part->optimal when that is proved, part->unsearchable when it is too
 * large. Errors: OUT_OF_MEMORY; the part's plan is still one. */
RONDO_MUST_USE rondo_status rondo_part_search_run(const rondo_allocator *allocator, rondo_part_search *search,
                                                  rondo_part *part, rondo_improvement *improvement, uint64_t goal,
                                                  uint64_t steps, uint64_t *offsets);
void rondo_part_search_free(rondo_part_search *search);

#endif
