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

static rondo_status add_lifetime(const rondo_allocator *allocator, rondo_chain_problem *chain, uint32_t lower,
                                 uint32_t upper) {
  RONDO_TRY(rondo_array_push(allocator, &chain->steps, &lower));
  return upper == RONDO_PLAN_FOREVER ? RONDO_OK : rondo_array_push(allocator, &chain->steps, &upper);
}

static rondo_status list_steps(const rondo_allocator *allocator, const rondo_plan_problem *given,
                               rondo_chain_problem *chain) {
  for (size_t i = 0; i < given->count; i++) {
    RONDO_TRY(add_lifetime(allocator, chain, given->items[i].lower, given->items[i].upper));
  }
  for (size_t i = 0; i < given->obstacle_count; i++) {
    RONDO_TRY(add_lifetime(allocator, chain, given->obstacles[i].lower, given->obstacles[i].upper));
  }
  size_t kept = 0;
  if (chain->steps.count > 1) qsort(chain->steps.items, chain->steps.count, sizeof(uint32_t), compare_steps);
  for (size_t i = 0; i < chain->steps.count; i++) {
    if (kept == 0 || chain->steps.items[i] != chain->steps.items[kept - 1]) {
      chain->steps.items[kept++] = chain->steps.items[i];
    }
  }
  chain->steps.count = kept;
  return RONDO_OK;
}

static uint32_t find_step(const rondo_chain_problem *chain, uint32_t step) {
  const uint32_t *found = bsearch(&step, chain->steps.items, chain->steps.count, sizeof(uint32_t), compare_steps);
  return (uint32_t)(found - chain->steps.items);
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

rondo_status rondo_chain_problem_make(const rondo_allocator *allocator, const rondo_plan_problem *given,
                                      rondo_chain_problem *out) {
  *out = (rondo_chain_problem){.problem = *given};
  RONDO_TRY(list_steps(allocator, given, out));
  const size_t nodes = 2 * out->steps.count;
  if (nodes >= RONDO_PLAN_FOREVER) {
    return rondo_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_BAD_SIZE, "a plan of %zu different steps; the most is %u",
                      out->steps.count, (RONDO_PLAN_FOREVER - 1) / 2);
  }
  out->order.node_count = (uint32_t)nodes;
  RONDO_TRY(rondo_allocate_items(allocator, given->count, sizeof *out->items, &out->items));
  RONDO_TRY(rondo_allocate_items(allocator, given->obstacle_count, sizeof *out->obstacles, &out->obstacles));
  RONDO_TRY(rondo_allocate_items(allocator, nodes + 1, sizeof(uint32_t), &out->successor_start));
  RONDO_TRY(rondo_allocate_items(allocator, nodes, sizeof(uint32_t), &out->successors));
  fill_lists(given, out);
  out->order.successor_start = out->successor_start;
  out->order.successors = out->successors;
  out->problem.items = out->items;
  out->problem.obstacles = out->obstacles;
  out->problem.order = &out->order;
  return RONDO_OK;
}

void rondo_chain_problem_free(const rondo_allocator *allocator, rondo_chain_problem *chain) {
  const size_t nodes = chain->order.node_count;
  rondo_release(allocator, chain->items, chain->problem.count, sizeof *chain->items);
  rondo_release(allocator, chain->obstacles, chain->problem.obstacle_count, sizeof *chain->obstacles);
  rondo_release(allocator, chain->successor_start, nodes + 1, sizeof(uint32_t));
  rondo_release(allocator, chain->successors, nodes, sizeof(uint32_t));
  rondo_array_free(allocator, &chain->steps);
  *chain = (rondo_chain_problem){0};
}
