/* SPDX-License-Identifier: MIT
 * Checks the caller's problem, copies problems, and reports faults. An error names the item, obstacle, branch or edge
 * by its number.
 */
#include <assert.h>
#include <string.h>

#include "base/error.h"
#include "base/versioned_struct.h"
#include "plan/plan_internal.h"

/* Lifetimes -------------------------------------------------------------------------------------------------------- */

static const char *kind_of(const rondo_plan_problem *problem, uint32_t number) {
  return number < problem->count ? "item" : "obstacle";
}

static uint32_t index_of(const rondo_plan_problem *problem, uint32_t number) {
  return number < problem->count ? number : number - (uint32_t)problem->count;
}

static rondo_status check_lifetime(const rondo_plan_problem *problem, size_t piece) {
  const uint32_t number = (uint32_t)piece;
  const rondo_plan_item life = rondo_plan_piece(problem, number);
  if (life.lower >= life.upper) {
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                      "%s %u of a plan lives from %u up to %u: upper must be greater than lower",
                      kind_of(problem, number), index_of(problem, number), life.lower, life.upper);
  }
  if (problem->order == NULL) return RONDO_OK;
  const uint32_t nodes = problem->order->node_count;
  if (life.lower >= nodes || (life.upper >= nodes && life.upper != RONDO_PLAN_FOREVER)) {
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                      "%s %u of a plan lives from node %u to node %u of an order of %u nodes", kind_of(problem, number),
                      index_of(problem, number), life.lower, life.upper, nodes);
  }
  return RONDO_OK;
}

/* Items ------------------------------------------------------------------------------------------------------------ */

static rondo_status check_item(const rondo_plan_problem *problem, size_t index) {
  const rondo_plan_item *item = &problem->items[index];
  if ((item->alignment & (item->alignment - 1)) != 0) {
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_SIZE,
                      "item %zu of a plan has alignment %zu, which is not a power of two", index, item->alignment);
  }
  if (item->branch > problem->branch_count) {
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                      "item %zu of a plan is in branch %u of %u: give 1 + the index of the branch, or 0 for none",
                      index, item->branch, problem->branch_count);
  }
  return check_lifetime(problem, index);
}

static rondo_status check_items(const rondo_plan_problem *problem) {
  size_t sum = 0;
  for (size_t i = 0; i < problem->count; i++) {
    RONDO_TRY(check_item(problem, i));
    if (rondo_checked_add(sum, problem->items[i].bytes, &sum)) continue;
    return rondo_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_BAD_SIZE,
                      "the sum of the bytes of items 0 to %zu of a plan does not fit in %zu bits (item %zu has %zu): "
                      "make them smaller",
                      i, 8 * sizeof(size_t), i, problem->items[i].bytes);
  }
  return RONDO_OK;
}

static rondo_status check_obstacles(const rondo_plan_problem *problem) {
  for (size_t i = 0; i < problem->obstacle_count; i++) {
    const rondo_plan_obstacle *obstacle = &problem->obstacles[i];
    const bool always = obstacle->lower == 0 && obstacle->upper == RONDO_PLAN_FOREVER; /* valid without nodes too */
    if (!always) RONDO_TRY(check_lifetime(problem, problem->count + i));
    size_t end = 0;
    if (rondo_checked_add(obstacle->offset, obstacle->bytes, &end)) continue;
    return rondo_fail(
        RONDO_LIMIT_EXCEEDED, RONDO_REASON_BAD_SIZE,
        "obstacle %zu of a plan has %zu bytes at %zu, which end past %zu bits: move it down, or make it smaller", i,
        obstacle->bytes, obstacle->offset, 8 * sizeof(size_t));
  }
  return RONDO_OK;
}

/* Order and branches ----------------------------------------------------------------------------------------------- */

static rondo_status check_successors(const rondo_plan_order *order, uint32_t node) {
  if (order->successor_start[node + 1] < order->successor_start[node]) {
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                      "the successors of node %u of a plan's order start at %u and end at %u", node,
                      order->successor_start[node], order->successor_start[node + 1]);
  }
  for (uint32_t i = order->successor_start[node]; i < order->successor_start[node + 1]; i++) {
    const uint32_t successor = order->successors[i];
    if (successor > node && successor < order->node_count) continue;
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                      "edge %u of a plan's order goes from node %u to node %u: of %u nodes in topological order, an "
                      "edge goes to a later one",
                      i, node, successor, order->node_count);
  }
  return RONDO_OK;
}

static rondo_status check_order(const rondo_plan_order *order) {
  if (order == NULL || order->node_count == 0) return RONDO_OK;
  if (order->node_count >= RONDO_PLAN_FOREVER) {
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                      "a plan's order has %u nodes; the maximum is %u: split the plan", order->node_count,
                      RONDO_PLAN_FOREVER - 1);
  }
  if (order->successor_start == NULL || (order->successors == NULL && order->successor_start[order->node_count] > 0)) {
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_NULL_ARGUMENT,
                      "a plan's order has %u nodes, but a list of successors is NULL", order->node_count);
  }
  if (order->successor_start[0] != 0) {
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                      "the successors of node 0 of a plan's order start at %u instead of 0", order->successor_start[0]);
  }
  for (uint32_t i = 0; i < order->node_count; i++) RONDO_TRY(check_successors(order, i));
  return RONDO_OK;
}

static rondo_status check_branches(const rondo_plan_problem *problem) {
  for (uint32_t i = 0; i < problem->branch_count; i++) {
    const uint32_t parent = problem->branches[i].parent;
    if (parent == RONDO_PLAN_NO_BRANCH || parent < i) continue;
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                      "branch %u of a plan has parent %u: list a parent before its branches", i, parent);
  }
  return RONDO_OK;
}

/* The whole -------------------------------------------------------------------------------------------------------- */

static rondo_status check_list(const char *what, const void *list, size_t count) {
  if (count > 0 && list == NULL) {
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_NULL_ARGUMENT, "a plan has %zu %s, but their list is NULL",
                      count, what);
  }
  if (count <= RONDO_PLAN_MAX_ITEMS) return RONDO_OK;
  return rondo_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_BAD_SIZE,
                    "a plan has %zu %s; the maximum is %zu: split the plan", count, what, RONDO_PLAN_MAX_ITEMS);
}

rondo_status rondo_plan_problem_read(const rondo_plan_problem *given, rondo_plan_problem *out) {
  if (given == NULL) {
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_NULL_ARGUMENT, "the problem of a plan is NULL");
  }
  RONDO_TRY(rondo_versioned_read("rondo_plan_problem", given, out, sizeof *out));
  RONDO_TRY(check_list("items", out->items, out->count));
  RONDO_TRY(check_list("obstacles", out->obstacles, out->obstacle_count));
  RONDO_TRY(check_list("branches", out->branches, out->branch_count));
  RONDO_TRY(check_order(out->order));
  RONDO_TRY(check_branches(out));
  RONDO_TRY(check_items(out));
  return check_obstacles(out);
}

/* Pieces ----------------------------------------------------------------------------------------------------------- */

rondo_status rondo_plan_fail_overlap(const rondo_plan_problem *problem, const size_t *offsets, uint32_t a, uint32_t b) {
  const rondo_plan_item x = rondo_plan_piece(problem, a), y = rondo_plan_piece(problem, b);
  const char *unit = problem->order == NULL ? "steps" : "nodes";
  return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_OVERLAP,
                    "%s %u (%zu bytes at %zu, %s %u up to %u) and %s %u (%zu bytes at %zu, %s %u up to %u) of a plan "
                    "may live at the same time, but share bytes",
                    kind_of(problem, a), index_of(problem, a), x.bytes, rondo_plan_piece_offset(problem, offsets, a),
                    unit, x.lower, x.upper, kind_of(problem, b), index_of(problem, b), y.bytes,
                    rondo_plan_piece_offset(problem, offsets, b), unit, y.lower, y.upper);
}

rondo_status rondo_plan_fail_backward(const rondo_plan_problem *problem, uint32_t number) {
  const rondo_plan_item life = rondo_plan_piece(problem, number);
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                    "%s %u of a plan is freed by node %u, but no path leads there from node %u, which allocates it",
                    kind_of(problem, number), index_of(problem, number), life.upper, life.lower);
}

rondo_status rondo_plan_copy_make(rondo_scratch *scratch, const rondo_plan_problem *given, rondo_plan_copy *out) {
  *out = (rondo_plan_copy){.problem = *given};
  RONDO_TRY(rondo_scratch_take(scratch, given->count, sizeof *out->items, &out->items));
  RONDO_TRY(rondo_scratch_take(scratch, given->obstacle_count, sizeof *out->obstacles, &out->obstacles));
  if (given->count > 0) memcpy(out->items, given->items, given->count * sizeof *out->items);
  if (given->obstacle_count > 0) {
    memcpy(out->obstacles, given->obstacles, given->obstacle_count * sizeof *out->obstacles);
  }
  out->problem.items = out->items;
  out->problem.obstacles = out->obstacles;
  return RONDO_OK;
}

void rondo_plan_copy_set_lifetime(rondo_plan_copy *copy, size_t number, uint32_t lower, uint32_t upper) {
  const size_t items = copy->problem.count;
  assert(number < items + copy->problem.obstacle_count);
  *(number < items ? &copy->items[number].lower : &copy->obstacles[number - items].lower) = lower;
  *(number < items ? &copy->items[number].upper : &copy->obstacles[number - items].upper) = upper;
}
