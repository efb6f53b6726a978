/* SPDX-License-Identifier: MIT
 * The way to a plan: the relation of the order, lives on it, a first lower bound. Where the hull of intervals needs
 * hardly more than the bound, it is planned; else the order is planned as it is.
 */
#include "plan/partial_order/order_plan.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/error.h"
#include "plan/partial_order/order_chain.h"
#include "plan/partial_order/order_hull.h"
#include "plan/partial_order/order_search.h"

#define HULL_GAP 1.002

typedef struct planner {
  rondo_scratch scratch;
  const rondo_plan_problem *problem; /* with an order */
  const rondo_plan_options *options;
  uint64_t start_ns;
  rondo_branches branches;
  rondo_relation relation;
  rondo_lives lives;
  rondo_hull hull;
  rondo_order_bound bound;
} planner;

/* Bounds ----------------------------------------------------------------------------------------------------------- */

static int compare_obstacles(const void *a, const void *b) {
  const rondo_plan_obstacle *x = a;
  const rondo_plan_obstacle *y = b;
  if (x->offset != y->offset) return x->offset < y->offset ? -1 : 1;
  return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

/* Up to where as many bytes are free of obstacles that are always there. */
static rondo_status raise_over_obstacles(planner *p, size_t *bytes) {
  const rondo_plan_problem *problem = p->problem;
  rondo_plan_obstacle *always = NULL;
  size_t count = 0;
  if (problem->obstacle_count == 0 || *bytes == 0) return RONDO_OK;
  RONDO_TRY(rondo_scratch_take(&p->scratch, problem->obstacle_count, sizeof *always, &always));
  for (size_t i = 0; i < problem->obstacle_count; i++) {
    const rondo_plan_obstacle *obstacle = &problem->obstacles[i];
    if (obstacle->lower == 0 && obstacle->upper == RONDO_PLAN_FOREVER) always[count++] = *obstacle;
  }
  if (count > 1) qsort(always, count, sizeof *always, compare_obstacles);
  size_t at = 0;
  size_t left = *bytes;
  for (size_t i = 0; i < count && (always[i].offset < at || always[i].offset - at < left); i++) {
    if (always[i].offset > at) left -= always[i].offset - at;
    const size_t end = always[i].offset + always[i].bytes;
    if (end > at) at = end;
  }
  if (left <= SIZE_MAX - at) *bytes = at + left;
  return RONDO_OK;
}

/* The ways of planning --------------------------------------------------------------------------------------------- */

/* Ending takes some of the time too. */
static uint64_t deadline_of(const planner *p) {
  const uint64_t budget_ns = (uint64_t)p->options->budget_ms * 1000000;
  return budget_ns == 0 ? UINT64_MAX : p->start_ns + budget_ns - budget_ns / 64;
}

static rondo_status finish(planner *p, rondo_plan_info *info) {
  size_t bytes = p->bound.bytes;
  RONDO_TRY(raise_over_obstacles(p, &bytes));
  if (bytes > info->lower_bound) info->lower_bound = bytes;
  if (info->peak == info->lower_bound) info->optimal = true;
  return RONDO_OK;
}

static bool is_one_chain(const planner *p) {
  return p->problem->branch_count == 0 && p->relation.chain_slot.count == p->relation.stage_slot.count;
}

static rondo_status plan_hull(planner *p, size_t *offsets, rondo_plan_info *info) {
  RONDO_TRY(rondo_interval_plan(p->scratch.allocator, &p->hull.problem, p->options, offsets, info));
  if (!is_one_chain(p)) { /* else the intervals are the order, and what is proved of them is proved */
    info->lower_bound = 0;
    info->optimal = false;
  }
  return finish(p, info);
}

static rondo_status plan_order(planner *p, size_t *offsets, rondo_plan_info *info) {
  rondo_order_search search = {.allocator = p->scratch.allocator, .lives = &p->lives, .options = p->options};
  search.deadline_ns = deadline_of(p);
  search.offsets = offsets;
  search.bound = &p->bound;
  RONDO_TRY(rondo_order_search_run(&search));
  info->peak = search.peak;
  info->lower_bound = 0;
  info->optimal = false;
  info->steps = search.steps;
  info->method = search.method;
  return finish(p, info);
}

static rondo_status plan_with(planner *p, size_t *offsets, rondo_plan_info *info) {
  RONDO_TRY(rondo_branches_make(&p->scratch, p->problem, &p->branches));
  RONDO_TRY(rondo_relation_make(&p->scratch, p->problem->order, 0, &p->relation));
  RONDO_TRY(rondo_lives_make(&p->scratch, p->problem, &p->relation, &p->branches, &p->lives));
  RONDO_TRY(rondo_scratch_take(&p->scratch, p->branches.choice_count, sizeof(uint32_t), &p->bound.taken));
  RONDO_TRY(rondo_serial_bound(p->scratch.allocator, p->problem, &p->branches, &p->bound));
  RONDO_TRY(rondo_hull_make(&p->scratch, &p->lives, &p->hull));
  const bool is_near = (double)p->hull.most_live <= HULL_GAP * (double)p->bound.bytes;
  return is_near ? plan_hull(p, offsets, info) : plan_order(p, offsets, info);
}

static rondo_status plan_order_problem(const rondo_allocator *allocator, const rondo_plan_problem *problem,
                                       const rondo_plan_options *options, size_t *offsets, rondo_plan_info *info) {
  planner p = {.scratch.allocator = allocator, .problem = problem, .options = options, .start_ns = rondo_clock_ns()};
  const rondo_status status = plan_with(&p, offsets, info);
  rondo_relation_free(allocator, &p.relation);
  rondo_scratch_free(&p.scratch);
  return status;
}

rondo_status rondo_order_plan(const rondo_allocator *allocator, const rondo_plan_problem *problem,
                              const rondo_plan_options *options, size_t *offsets, rondo_plan_info *info) {
  if (problem->order != NULL) return plan_order_problem(allocator, problem, options, offsets, info);
  rondo_chain_problem chain;
  rondo_scratch scratch = {.allocator = allocator};
  rondo_status status = rondo_chain_problem_make(&scratch, problem, &chain);
  if (status == RONDO_OK) status = plan_order_problem(allocator, &chain.problem, options, offsets, info);
  rondo_scratch_free(&scratch);
  return status;
}
