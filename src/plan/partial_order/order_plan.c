/* SPDX-License-Identifier: MIT
 * Plans a partial order: computes the relation of its nodes, the lifetimes on it, and a first lower bound. If the hull
 * of intervals needs hardly more than the bound, plans the hull; otherwise searches on the order.
 */
#include "plan/partial_order/order_plan.h"

#include "base/clock.h"
#include "base/error.h"
#include "plan/partial_order/order_hull.h"
#include "plan/partial_order/order_search.h"

#define HULL_GAP 1.002

typedef struct planner {
  rondo_scratch scratch;
  const rondo_plan_problem *problem; /* the caller's, or the chain's */
  rondo_plan_copy chain;
  rondo_plan_order order; /* of the chain */
  const rondo_plan_options *options;
  uint64_t start_ns;
  rondo_branches branches;
  rondo_relation relation;
  rondo_lifetimes lifetimes;
  rondo_hull hull;
  rondo_order_bound bound;
} planner;

/* Bounds ----------------------------------------------------------------------------------------------------------- */

/* Raises a bound over the obstacles that are always there: the offset below which as many bytes are free of them. */
static size_t raise_over_obstacles(const rondo_lifetimes *lifetimes, size_t bytes) {
  size_t at = 0;
  size_t left = bytes;
  for (size_t i = 0; i < lifetimes->by_offset_count && bytes > 0; i++) {
    const rondo_plan_obstacle *obstacle = &lifetimes->problem->obstacles[lifetimes->by_offset[i].value];
    if (obstacle->lower != 0 || obstacle->upper != RONDO_PLAN_FOREVER) continue;
    if (obstacle->offset >= at && obstacle->offset - at >= left) break;
    if (obstacle->offset > at) left -= obstacle->offset - at;
    if (obstacle->offset + obstacle->bytes > at) at = obstacle->offset + obstacle->bytes;
  }
  return left <= SIZE_MAX - at ? at + left : bytes;
}

/* Intervals with branches ------------------------------------------------------------------------------------------ */

/* Replaces each step by the node that allocates what begins there or frees what ends there. Returns the number of
 * steps. An entry has the step, and twice the piece's number, plus 1 for an end. */
static size_t number_steps(rondo_plan_copy *chain, rondo_sort_entry *entries) {
  const size_t items = chain->problem.count;
  size_t count = 0;
  for (size_t i = 0; i < items + chain->problem.obstacle_count; i++) {
    const rondo_plan_item life = rondo_plan_piece(&chain->problem, i);
    entries[count++] = (rondo_sort_entry){life.lower, (uint32_t)(2 * i)};
    if (life.upper != RONDO_PLAN_FOREVER) entries[count++] = (rondo_sort_entry){life.upper, (uint32_t)(2 * i + 1)};
  }
  if (count > 1) rondo_sort_entries(entries, entries + count, count);
  size_t steps = 0;
  for (size_t i = 0; i < count; i++) {
    if (i == 0 || entries[i].key != entries[i - 1].key) steps++;
    const size_t number = entries[i].value / 2;
    const uint32_t node = (uint32_t)(2 * (steps - 1));
    const rondo_plan_item life = rondo_plan_piece(&chain->problem, number);
    const bool ends = entries[i].value % 2 == 1;
    const bool always = number >= items && entries[i].key == 0 && life.upper == RONDO_PLAN_FOREVER;
    rondo_plan_copy_set_lifetime(chain, number, ends ? life.lower : always ? 0 : node + 1, ends ? node : life.upper);
  }
  return steps;
}

/* Turns intervals into an order that is a single chain. Each step becomes two nodes: the first frees, the second
 * allocates. So an item that ends at a step does not overlap one that begins there. */
static rondo_status make_chain(planner *p) {
  const size_t pieces = p->problem->count + p->problem->obstacle_count;
  rondo_sort_entry *entries = NULL;
  uint32_t *start = NULL;
  RONDO_TRY(rondo_plan_copy_make(&p->scratch, p->problem, &p->chain));
  RONDO_TRY(rondo_scratch_take(&p->scratch, pieces, 4 * sizeof *entries, &entries));
  const size_t steps = number_steps(&p->chain, entries);
  const size_t nodes = 2 * steps;
  if (nodes >= RONDO_PLAN_FOREVER) {
    return rondo_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_BAD_SIZE,
                      "the lifetimes of a plan have %zu different steps; the maximum is %u: split the plan", steps,
                      (RONDO_PLAN_FOREVER - 1) / 2);
  }
  RONDO_TRY(rondo_scratch_take(&p->scratch, nodes + 1, sizeof *start, &start));
  for (uint32_t i = 0; i < nodes; i++) start[i] = i; /* start + 1 is also the list of successors: i + 1 for node i */
  start[nodes] = (uint32_t)nodes - 1;
  p->order = (rondo_plan_order){(uint32_t)nodes, start, start + 1};
  p->chain.problem.order = &p->order;
  p->problem = &p->chain.problem;
  return RONDO_OK;
}

/* Planning --------------------------------------------------------------------------------------------------------- */

/* Leaves a part of the budget for finishing. */
static uint64_t deadline_of(const planner *p) {
  const uint64_t budget_ns = (uint64_t)p->options->budget_ms * 1000000;
  return budget_ns == 0 ? UINT64_MAX : p->start_ns + budget_ns - budget_ns / 64;
}

static void finish(const planner *p, rondo_plan_info *info) {
  const size_t bytes = raise_over_obstacles(&p->lifetimes, p->bound.bytes);
  if (bytes > info->lower_bound) info->lower_bound = bytes;
  if (info->peak == info->lower_bound) info->optimal = true;
}

static bool is_one_chain(const planner *p) {
  return p->problem->branch_count == 0 && p->relation.chain_slot.count == p->relation.stage_slot.count;
}

/* In the time that is left, at least 1 ms; 0 means no limit. */
static rondo_status plan_hull(planner *p, size_t *offsets, rondo_plan_info *info) {
  rondo_plan_options options = *p->options;
  const uint64_t used_ms = (rondo_clock_ns() - p->start_ns) / 1000000;
  if (options.budget_ms > 0)
    options.budget_ms = used_ms < options.budget_ms ? options.budget_ms - (uint32_t)used_ms : 1;
  RONDO_TRY(rondo_interval_plan(p->scratch.allocator, &p->hull.copy.problem, &options, offsets, info));
  if (is_one_chain(p)) return RONDO_OK; /* the intervals are the order itself, so their bounds hold */
  info->lower_bound = 0;
  info->optimal = false;
  return RONDO_OK;
}

static rondo_status plan_order(planner *p, size_t *offsets, rondo_plan_info *info) {
  rondo_order_search search = {.allocator = p->scratch.allocator,
                               .lifetimes = &p->lifetimes,
                               .options = p->options,
                               .deadline_ns = deadline_of(p),
                               .offsets = offsets,
                               .bound = &p->bound,
                               .info = info};
  return rondo_order_search_run(&search);
}

static rondo_status plan_with(planner *p, size_t *offsets, rondo_plan_info *info) {
  RONDO_TRY(rondo_branches_make(&p->scratch, p->problem, &p->branches));
  RONDO_TRY(rondo_relation_make(&p->scratch, p->problem->order, 0, &p->relation));
  RONDO_TRY(rondo_lifetimes_make(&p->scratch, p->problem, &p->relation, &p->branches, &p->lifetimes));
  RONDO_TRY(rondo_serial_bound(&p->scratch, p->problem, &p->branches, &p->bound));
  RONDO_TRY(rondo_hull_make(&p->scratch, &p->lifetimes, &p->hull));
  const bool is_near = (double)p->hull.max_live <= HULL_GAP * (double)p->bound.bytes;
  RONDO_TRY(is_near ? plan_hull(p, offsets, info) : plan_order(p, offsets, info));
  finish(p, info);
  return RONDO_OK;
}

rondo_status rondo_order_plan(const rondo_allocator *allocator, const rondo_plan_problem *problem,
                              const rondo_plan_options *options, size_t *offsets, rondo_plan_info *info) {
  planner p = {.scratch.allocator = allocator, .problem = problem, .options = options, .start_ns = rondo_clock_ns()};
  rondo_status status = problem->order == NULL ? make_chain(&p) : RONDO_OK;
  if (status == RONDO_OK) status = plan_with(&p, offsets, info);
  rondo_relation_free(allocator, &p.relation);
  rondo_scratch_free(&p.scratch);
  return status;
}
