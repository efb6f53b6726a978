/* SPDX-License-Identifier: MIT
 * What the files of this layer share: the checked problem, and the planner for intervals. plan.c checks its
 * arguments once. All other files rely on it: a problem is valid, no needed pointer is NULL, and defaults are resolved.
 */
#ifndef RONDO_PLAN_PLAN_INTERNAL_H
#define RONDO_PLAN_PLAN_INTERNAL_H

#include <rondo/plan.h>

#include "base/allocation.h"

#define RONDO_PLAN_MAX_ITEMS ((size_t)1 << 30)
#define RONDO_PLAN_MAX_THREADS 256

/* Copies and checks every field. The arrays remain the caller's. Errors: as rondo_plan_make. */
RONDO_MUST_USE rondo_status rondo_plan_problem_read(const rondo_plan_problem *given, rondo_plan_problem *out);

/* A piece is an item or, from the number problem->count on, an obstacle. Returns either as an item. */
static inline rondo_plan_item rondo_plan_piece(const rondo_plan_problem *problem, size_t number) {
  if (number < problem->count) return problem->items[number];
  const rondo_plan_obstacle *obstacle = &problem->obstacles[number - problem->count];
  return (rondo_plan_item){.bytes = obstacle->bytes, .lower = obstacle->lower, .upper = obstacle->upper};
}

static inline size_t rondo_plan_piece_offset(const rondo_plan_problem *problem, const size_t *offsets, size_t number) {
  return number < problem->count ? offsets[number] : problem->obstacles[number - problem->count].offset;
}

/* Fails with INVALID_DATA: two pieces overlap. */
RONDO_MUST_USE rondo_status rondo_plan_fail_overlap(const rondo_plan_problem *problem, const size_t *offsets,
                                                    uint32_t a, uint32_t b);

/* Fails with INVALID_ARGUMENT: the node that frees the piece does not come after the node that allocates it. */
RONDO_MUST_USE rondo_status rondo_plan_fail_backward(const rondo_plan_problem *problem, uint32_t number);

/* A copy of a problem whose lifetimes can be changed. */
typedef struct rondo_plan_copy {
  rondo_plan_problem problem; /* its lists are those below */
  rondo_plan_item *items;
  rondo_plan_obstacle *obstacles;
} rondo_plan_copy;

/* Errors: OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_plan_copy_make(rondo_scratch *scratch, const rondo_plan_problem *given,
                                                 rondo_plan_copy *out);

/* Sets the lifetime of a piece. */
void rondo_plan_copy_set_lifetime(rondo_plan_copy *copy, size_t number, uint32_t lower, uint32_t upper);

/* One order of execution, no branches. Fills the offsets (one for each item) and the peak, lower_bound, steps, optimal
 * and method of *info; plan.c fills the rest. Errors: LIMIT_EXCEEDED, OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_interval_plan(const rondo_allocator *allocator, const rondo_plan_problem *problem,
                                                const rondo_plan_options *options, size_t *offsets,
                                                rondo_plan_info *info);

/* As rondo_plan_check, for a checked problem of one order without branches and offsets that are aligned and do not
 * overflow. */
RONDO_MUST_USE rondo_status rondo_interval_check(const rondo_allocator *allocator, const rondo_plan_problem *problem,
                                                 const size_t *offsets);

#endif
