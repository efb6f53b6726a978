/* SPDX-License-Identifier: MIT
 * Branches of choices as a tree, with the numbers that items use: 0 is outside all choices, b + 1 is branch b of the
 * problem. Branches with the same parent and the same choice number belong to one choice. A run takes one of them.
 */
#ifndef RONDO_PLAN_PARTIAL_ORDER_ORDER_BRANCH_H
#define RONDO_PLAN_PARTIAL_ORDER_ORDER_BRANCH_H

#include <rondo/plan.h>

#include "base/allocation.h"

typedef struct rondo_branches {
  uint32_t count; /* including number 0 */
  uint32_t choice_count;
  uint32_t *parent;       /* of each number; 0 for number 0 */
  uint32_t *choice;       /* of each number: its choice, 0 .. choice_count - 1; undefined for number 0 */
  uint32_t *depth;        /* of each number; 0 for number 0 */
  uint32_t *jump;         /* of each number: an ancestor; 0 for number 0 */
  uint32_t *sorted;       /* numbers 1 .. count - 1, by choice */
  uint32_t *choice_begin; /* the branches of choice c are sorted[choice_begin[c] .. choice_begin[c + 1]) */
} rondo_branches;

/* The problem's branches must have been checked. Errors: OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_branches_make(rondo_scratch *scratch, const rondo_plan_problem *problem,
                                                rondo_branches *out);

/* True if no run takes both. Time: logarithmic in the depth. */
bool rondo_branches_exclude(const rondo_branches *branches, uint32_t a, uint32_t b);

#endif
