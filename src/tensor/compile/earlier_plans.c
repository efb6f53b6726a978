/* SPDX-License-Identifier: MIT
 * A list of plans, which is short: programs that share have few structures.
 */
#include "tensor/compile/earlier_plans.h"

#include <string.h>

static size_t bytes_of(const rondo_earlier_plan *plan) {
  const size_t offsets = plan->count * (plan->branch_offsets == NULL ? 1 : 2);
  const size_t numbers = 2 * (size_t)plan->positions + plan->before.count + plan->before.capacity;
  const size_t words = plan->structure.capacity;
  return sizeof *plan + offsets * sizeof *plan->offsets + numbers * sizeof *plan->order + words * sizeof(uint32_t);
}

void rondo_earlier_plan_free(const rondo_allocator *allocator, rondo_earlier_plan *plan) {
  rondo_array_free(allocator, &plan->structure);
  rondo_release(allocator, plan->order, plan->positions, sizeof *plan->order);
  rondo_release(allocator, plan->joined, plan->positions, sizeof *plan->joined);
  rondo_edges_free(allocator, &plan->before);
  rondo_release(allocator, plan->offsets, plan->count, sizeof *plan->offsets);
  rondo_release(allocator, plan->branch_offsets, plan->count, sizeof *plan->branch_offsets);
  *plan = (rondo_earlier_plan){.count = 0};
}

static void drop(rondo_earlier_plans *plans, size_t at) {
  rondo_earlier_plan dropped = plans->items.items[at];
  rondo_array_remove(&plans->items, at);
  plans->bytes -= bytes_of(&dropped);
  rondo_earlier_plan_free(&plans->allocator, &dropped);
}

void rondo_earlier_plans_free(rondo_earlier_plans *plans) {
  while (plans->items.count > 0) drop(plans, plans->items.count - 1);
  rondo_array_free(&plans->allocator, &plans->items);
}

static bool is_same(const rondo_structure *a, const rondo_structure *b) {
  return a->count == b->count && (a->count == 0 || memcmp(a->items, b->items, a->count * sizeof *a->items) == 0);
}

static size_t position_of(const rondo_earlier_plans *plans, const rondo_structure *structure) {
  size_t at = 0;
  while (at < plans->items.count && !is_same(&plans->items.items[at].structure, structure)) at++;
  return at;
}

const rondo_earlier_plan *rondo_earlier_plans_find(const rondo_earlier_plans *plans, const rondo_structure *structure) {
  const size_t at = position_of(plans, structure);
  return at < plans->items.count ? &plans->items.items[at] : NULL;
}

rondo_status rondo_earlier_plans_keep(rondo_earlier_plans *plans, rondo_earlier_plan *plan) {
  const size_t bytes = bytes_of(plan), same = position_of(plans, &plan->structure);
  if (same < plans->items.count) drop(plans, same);
  while (plans->items.count > 0 && plans->bytes + bytes > RONDO_EARLIER_PLANS_BYTES) drop(plans, 0);
  rondo_status status = RONDO_OK;
  const bool fits = bytes <= RONDO_EARLIER_PLANS_BYTES;
  if (fits) status = rondo_array_push(&plans->allocator, &plans->items, plan);
  if (!fits || status != RONDO_OK) {
    rondo_earlier_plan_free(&plans->allocator, plan);
    return status;
  }
  plans->bytes += bytes;
  *plan = (rondo_earlier_plan){.count = 0};
  return RONDO_OK;
}
