/* SPDX-License-Identifier: MIT
 * A step becomes two nodes: the first frees what ends there, the second allocates what begins there, so that what ends
 * up to a step and what begins in it do not meet.
 */
#include "plan/partial_order/order_chain.h"

#include <stdlib.h>

#include "base/error.h"

static int compare_steps(const void *a, const void *b) {
  const uint32_t x = *(const uint32_t *)a;
  const uint32_t y = *(const uint32_t *)b;
  return (x > y) - (x < y);
}

static void add_lifetime(rondo_chain_problem *chain, uint32_t lower, uint32_t upper) {
  chain->steps[chain->step_count++] = lower;
  if (upper != RONDO_PLAN_FOREVER) chain->steps[chain->step_count++] = upper;
}

static void list_steps(const rondo_plan_problem *given, rondo_chain_problem *chain) {
  size_t kept = 0;
  for (size_t i = 0; i < given->count; i++) add_lifetime(chain, given->items[i].lower, given->items[i].upper);
  for (size_t i = 0; i < given->obstacle_count; i++) {
    add_lifetime(chain, given->obstacles[i].lower, given->obstacles[i].upper);
  }
  if (chain->step_count > 1) qsort(chain->steps, chain->step_count, sizeof(uint32_t), compare_steps);
  for (size_t i = 0; i < chain->step_count; i++) {
    if (kept == 0 || chain->steps[i] != chain->steps[kept - 1]) chain->steps[kept++] = chain->steps[i];
  }
  chain->step_count = kept;
}

static uint32_t find_step(const rondo_chain_problem *chain, uint32_t step) {
  const uint32_t *found = bsearch(&step, chain->steps, chain->step_count, sizeof(uint32_t), compare_steps);
  return (uint32_t)(found - chain->steps);
}

static uint32_t alloc_node(const rondo_chain_problem *chain, uint32_t lower) { return 2 * find_step(chain, lower) + 1; }

static uint32_t free_node(const rondo_chain_problem *chain, uint32_t upper) {
  return upper == RONDO_PLAN_FOREVER ? RONDO_PLAN_FOREVER : 2 * find_step(chain, upper);
}

static void fill_lists(const rondo_plan_problem *given, rondo_chain_problem *chain) {
  for (size_t i = 0; i < given->count; i++) {
    chain->items[i] = given->items[i];
    chain->items[i].lower = alloc_node(chain, given->items[i].lower);
    chain->items[i].upper = free_node(chain, given->items[i].upper);
  }
  for (size_t i = 0; i < given->obstacle_count; i++) {
    chain->obstacles[i] = given->obstacles[i];
    const bool always = given->obstacles[i].lower == 0 && given->obstacles[i].upper == RONDO_PLAN_FOREVER;
    chain->obstacles[i].lower = always ? 0 : alloc_node(chain, given->obstacles[i].lower);
    chain->obstacles[i].upper = free_node(chain, given->obstacles[i].upper);
  }
  const uint32_t nodes = chain->order.node_count;
  for (uint32_t i = 0; i < nodes; i++) {
    chain->successor_start[i] = i;
    if (i + 1 < nodes) chain->successors[i] = i + 1;
  }
  chain->successor_start[nodes] = nodes > 0 ? nodes - 1 : 0;
}

rondo_status rondo_chain_problem_make(rondo_scratch *scratch, const rondo_plan_problem *given,
                                      rondo_chain_problem *out) {
  *out = (rondo_chain_problem){.problem = *given};
  const size_t most = 2 * (given->count + given->obstacle_count);
  RONDO_TRY(rondo_scratch_take(scratch, most, sizeof *out->steps, &out->steps));
  list_steps(given, out);
  const size_t nodes = 2 * out->step_count;
  if (nodes >= RONDO_PLAN_FOREVER) {
    return rondo_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_BAD_SIZE, "a plan of %zu different steps; the most is %u",
                      out->step_count, (RONDO_PLAN_FOREVER - 1) / 2);
  }
  out->order.node_count = (uint32_t)nodes;
  RONDO_TRY(rondo_scratch_take(scratch, given->count, sizeof *out->items, &out->items));
  RONDO_TRY(rondo_scratch_take(scratch, given->obstacle_count, sizeof *out->obstacles, &out->obstacles));
  RONDO_TRY(rondo_scratch_take(scratch, nodes + 1, sizeof(uint32_t), &out->successor_start));
  RONDO_TRY(rondo_scratch_take(scratch, nodes, sizeof(uint32_t), &out->successors));
  fill_lists(given, out);
  out->order.successor_start = out->successor_start;
  out->order.successors = out->successors;
  out->problem.items = out->items;
  out->problem.obstacles = out->obstacles;
  out->problem.order = &out->order;
  return RONDO_OK;
}
