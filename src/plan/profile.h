/* SPDX-License-Identifier: MIT
 * How many bytes are live at each time of a problem, and the most in any stretch of time: the lower bound of a plan is
 * the most of all, and the most during one item's life says how crowded it is there.
 */
#ifndef RONDO_PLAN_PROFILE_H
#define RONDO_PLAN_PROFILE_H

#include "plan/plan_internal.h"

typedef struct rondo_profile {
  uint64_t *times; /* where the live bytes change, ascending; entry i holds from times[i] to times[i + 1] */
  size_t count;
  size_t *tree; /* maxima over stretches of entries: leaf i at tree[count + i], inner node i over 2i and 2i + 1 */
  size_t room;  /* entries allocated */
} rondo_profile;

/* The items' bytes must add up in a size_t. */
RONDO_MUST_USE rondo_status rondo_profile_make(const rondo_allocator *allocator, const rondo_plan_problem *problem,
                                               rondo_profile *out);
void rondo_profile_free(const rondo_allocator *allocator, rondo_profile *profile);

/* Most bytes live at once while the item lives. Logarithmic. */
size_t rondo_profile_most(const rondo_profile *profile, const rondo_plan_item *item);

/* Most bytes live at once. */
size_t rondo_profile_peak(const rondo_profile *profile);

#endif
