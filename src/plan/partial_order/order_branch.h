/* SPDX-License-Identifier: MIT
 * Branches of choices as a tree, by the numbers that items use: 0 is outside of all choices, b + 1 is branch b of the
 * problem. Two branches with the same parent and the same choice number are ways of one choice, of which one is taken.
 */
#ifndef RONDO_PLAN_PARTIAL_ORDER_ORDER_BRANCH_H
#define RONDO_PLAN_PARTIAL_ORDER_ORDER_BRANCH_H

#include <rondo/plan.h>

#include "base/allocation.h"

typedef struct rondo_branches {
  uint32_t count; /* with number 0 */
  uint32_t choice_count;
  uint32_t *parent;       /* of each number; 0's is 0 */
  uint32_t *choice;       /* the choice that it is a way of, 0 .. choice_count - 1; 0's means nothing */
  uint32_t *depth;        /* 0's is 0 */
  uint32_t *jump;         /* of each number: one around it; 0's is 0 */
  uint32_t *sorted;       /* numbers 1 .. count - 1, by choice */
  uint32_t *choice_begin; /* the ways of choice c are sorted[choice_begin[c]] up to sorted[choice_begin[c + 1]] */
} rondo_branches;

/* The branches must be checked already. Errors: OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_branches_make(rondo_scratch *scratch, const rondo_plan_problem *problem,
                                                rondo_branches *out);

/* Whether two are never taken in the same run. Work: a logarithm of the depth. */
bool rondo_branches_exclude(const rondo_branches *branches, uint32_t a, uint32_t b);

#endif
