/* SPDX-License-Identifier: MIT
 * A lifetime is kept as the slots of its alloc and its free. The slots that come after the free, or before the alloc,
 * are all slots of later or earlier stages and, in its own part, a range of each chain.
 */
#include "plan/partial_order/order_lifetimes.h"

#include "base/array.h"
#include "base/error.h"
#include "plan/partial_order/order_reach.h"

/* Lifetimes -------------------------------------------------------------------------------------------------------- */

static rondo_lifetime life_of(const rondo_lifetimes *lifetimes, rondo_plan_item of) {
  const rondo_relation *relation = lifetimes->relation;
  const uint32_t end = relation->slot_count - 1;
  rondo_lifetime life = {.branch = of.branch};
  life.alloc = of.lower < relation->order->node_count ? rondo_relation_begin_slot(relation, of.lower) : 0;
  life.free = of.upper == RONDO_PLAN_FOREVER ? end : rondo_relation_end_slot(relation, of.upper);
  life.alloc_chain = relation->slot_chain[life.alloc];
  life.free_chain = relation->slot_chain[life.free];
  life.alloc_time = life.alloc == 0 ? 0 : relation->slot_node[life.alloc] + 1;
  life.free_time = life.free == end ? UINT32_MAX : relation->slot_node[life.free] + 1;
  return life;
}

/* Writes whether one node comes before another. Returns false if the relation does not know, because both are loose. */
static bool is_ordered(const rondo_relation *relation, uint32_t lower, uint32_t upper, bool *out) {
  const uint32_t u = relation->node_slot[lower];
  const uint32_t v = relation->node_slot[upper];
  const rondo_relation_part *part = &relation->parts.items[relation->slot_part[v]];
  if (relation->slot_chain[u] != RONDO_RELATION_LOOSE || relation->slot_part[u] != relation->slot_part[v]) {
    *out = rondo_relation_precedes(relation, u, v);
    return true;
  }
  if (relation->slot_chain[v] == RONDO_RELATION_LOOSE) return false;
  *out = v >= rondo_relation_future(relation, u)[relation->slot_chain[v] - part->first_chain];
  return true;
}

/* Checks that each free comes after its alloc. rondo_reach_run decides the pairs that the relation does not know. */
static rondo_status check_directions(const rondo_allocator *allocator, const rondo_lifetimes *lifetimes) {
  const rondo_plan_problem *problem = lifetimes->problem;
  RONDO_ARRAY(rondo_reach_query) queries = {0};
  rondo_status status = RONDO_OK;
  const uint32_t pieces = (uint32_t)(problem->count + problem->obstacle_count);
  for (uint32_t i = 0; i < pieces && status == RONDO_OK; i++) {
    const rondo_plan_item life = rondo_plan_piece(problem, i);
    bool forward = true;
    if (life.upper == RONDO_PLAN_FOREVER) continue;
    if (!is_ordered(lifetimes->relation, life.lower, life.upper, &forward)) {
      const rondo_reach_query query = {.from = life.lower, .to = life.upper, .number = i};
      status = rondo_array_push(allocator, &queries, &query);
    } else if (!forward) {
      status = rondo_plan_fail_backward(problem, i);
    }
  }
  if (status == RONDO_OK) {
    status = rondo_reach_run(allocator, lifetimes->relation->order, queries.items, queries.count);
  }
  for (size_t i = 0; i < queries.count && status == RONDO_OK; i++) {
    if (!queries.items[i].answer) status = rondo_plan_fail_backward(problem, queries.items[i].number);
  }
  rondo_array_free(allocator, &queries);
  return status;
}

/* Lists the obstacles with bytes by offset. */
static rondo_status sort_obstacles(rondo_scratch *scratch, rondo_lifetimes *lifetimes) {
  const rondo_plan_problem *problem = lifetimes->problem;
  if (problem->obstacle_count == 0) return RONDO_OK;
  RONDO_TRY(
      rondo_scratch_take(scratch, problem->obstacle_count, 2 * sizeof *lifetimes->by_offset, &lifetimes->by_offset));
  for (uint32_t i = 0; i < problem->obstacle_count; i++) {
    if (problem->obstacles[i].bytes == 0) continue;
    lifetimes->by_offset[lifetimes->by_offset_count++] = (rondo_sort_entry){problem->obstacles[i].offset, i};
  }
  rondo_sort_entries(lifetimes->by_offset, lifetimes->by_offset + lifetimes->by_offset_count,
                     lifetimes->by_offset_count);
  return RONDO_OK;
}

/* The whole -------------------------------------------------------------------------------------------------------- */

rondo_status rondo_lifetimes_make(rondo_scratch *scratch, const rondo_plan_problem *problem,
                                  const rondo_relation *relation, const rondo_branches *branches,
                                  rondo_lifetimes *out) {
  *out = (rondo_lifetimes){.problem = problem, .relation = relation, .branches = branches};
  RONDO_TRY(check_directions(scratch->allocator, out));
  const size_t pieces = problem->count + problem->obstacle_count;
  RONDO_TRY(rondo_scratch_take(scratch, pieces, sizeof *out->pieces, &out->pieces));
  RONDO_TRY(rondo_scratch_take(scratch, problem->count, sizeof *out->items, &out->items));
  out->obstacles = problem->obstacle_count == 0 ? NULL : out->pieces + problem->count;
  for (size_t i = 0; i < pieces; i++) out->pieces[i] = life_of(out, rondo_plan_piece(problem, i));
  for (uint32_t i = 0; i < problem->count; i++) {
    if (problem->items[i].bytes > 0) out->items[out->count++] = i;
  }
  return sort_obstacles(scratch, out);
}

uint32_t rondo_lifetimes_span(const rondo_lifetimes *lifetimes, const rondo_lifetime *life) {
  return lifetimes->relation->slot_count - rondo_relation_count_before(lifetimes->relation, life->alloc) -
         rondo_relation_count_after(lifetimes->relation, life->free);
}

/* Conflicts -------------------------------------------------------------------------------------------------------- */

/* The last time in the free's stage that does not come after the free. A stage's slots and times are the same range. */
static uint32_t last_time(const rondo_relation *relation, const rondo_relation_part *part, const uint32_t *future) {
  const uint32_t *bounds = &relation->stage_slot.items[part->stage];
  if (part->first_slot != bounds[0] || part->end_slot != bounds[1]) return bounds[1] - 1;
  const uint32_t last = rondo_relation_latest_below(relation, part, future);
  return last == RONDO_RELATION_LOOSE ? 0 : relation->slot_node[last] + 1;
}

static uint32_t first_time(const rondo_relation *relation, const rondo_relation_part *part, const uint32_t *past) {
  const uint32_t *bounds = &relation->stage_slot.items[part->stage];
  if (part->first_slot != bounds[0] || part->end_slot != bounds[1]) return bounds[0];
  const uint32_t first = rondo_relation_earliest_from(relation, part, past);
  return first == RONDO_RELATION_LOOSE ? UINT32_MAX : relation->slot_node[first] + 1;
}

static void read_future(const rondo_relation *relation, uint32_t slot, rondo_conflict *conflict) {
  const rondo_relation_part *part = &relation->parts.items[relation->slot_part[slot]];
  conflict->after = relation->stage_slot.items[part->stage + 1];
  conflict->free_first = part->first_slot;
  conflict->free_end = part->end_slot;
  conflict->future = rondo_relation_future(relation, slot);
  conflict->future_chain = part->first_chain;
  conflict->last = last_time(relation, part, conflict->future);
}

static void read_past(const rondo_relation *relation, uint32_t slot, rondo_conflict *conflict) {
  const rondo_relation_part *part = &relation->parts.items[relation->slot_part[slot]];
  conflict->before = relation->stage_slot.items[part->stage];
  conflict->alloc_first = part->first_slot;
  conflict->alloc_end = part->end_slot;
  conflict->past = rondo_relation_past(relation, slot);
  conflict->past_chain = part->first_chain;
  conflict->first = first_time(relation, part, conflict->past);
}

rondo_conflict rondo_conflict_of(const rondo_lifetimes *lifetimes, const rondo_lifetime *life) {
  const rondo_relation *relation = lifetimes->relation;
  rondo_conflict conflict = {.branch = life->branch};
  /* Slots are below UINT32_MAX, so nothing comes after a lifetime that never ends. */
  conflict.after = conflict.free_first = conflict.free_end = conflict.last = UINT32_MAX;
  if (life->free != relation->slot_count - 1) read_future(relation, life->free, &conflict);
  if (life->alloc != 0) read_past(relation, life->alloc, &conflict);
  return conflict;
}

bool rondo_conflict_one(const rondo_lifetimes *lifetimes, const rondo_conflict *conflict, const rondo_lifetime *life) {
  if (rondo_conflict_is_after(conflict, life->alloc, life->alloc_chain)) return false;
  if (rondo_conflict_is_before(conflict, life->free, life->free_chain)) return false;
  if (conflict->branch == 0 || life->branch == 0) return true;
  return !rondo_branches_exclude(lifetimes->branches, conflict->branch, life->branch);
}
