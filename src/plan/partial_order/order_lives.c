/* SPDX-License-Identifier: MIT
 * A lifetime is kept by the slots that stand for its ends. What comes after a free, or before an alloc, is all of
 * other stages, and of its own part a range of each chain.
 */
#include "plan/partial_order/order_lives.h"

#include "base/array.h"
#include "base/error.h"
#include "plan/partial_order/order_reach.h"

/* Lives ------------------------------------------------------------------------------------------------------------ */

static rondo_life life_of(const rondo_lives *lives, rondo_plan_item of) {
  const rondo_relation *relation = lives->relation;
  const uint32_t end = relation->slot_count - 1;
  rondo_life life = {.branch = of.branch};
  life.alloc = of.lower < relation->order->node_count ? rondo_relation_begin_slot(relation, of.lower) : 0;
  life.free = of.upper == RONDO_PLAN_FOREVER ? end : rondo_relation_end_slot(relation, of.upper);
  life.alloc_chain = relation->slot_chain[life.alloc];
  life.free_chain = relation->slot_chain[life.free];
  life.alloc_time = life.alloc == 0 ? 0 : relation->slot_node[life.alloc] + 1;
  life.free_time = life.free == end ? UINT32_MAX : relation->slot_node[life.free] + 1;
  return life;
}

/* False when the relation cannot tell, because both nodes are loose. */
static bool ask_relation(const rondo_relation *relation, uint32_t lower, uint32_t upper, bool *out) {
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

/* Each free comes after its alloc. What the relation does not know is found by propagating bits. */
static rondo_status check_directions(const rondo_allocator *allocator, const rondo_lives *lives) {
  const rondo_plan_problem *problem = lives->problem;
  RONDO_ARRAY(rondo_reach_question) questions = {0};
  rondo_status status = RONDO_OK;
  const uint32_t pieces = (uint32_t)(problem->count + problem->obstacle_count);
  for (uint32_t i = 0; i < pieces && status == RONDO_OK; i++) {
    const rondo_plan_item life = rondo_plan_piece(problem, i);
    bool forward = true;
    if (life.upper == RONDO_PLAN_FOREVER) continue;
    if (!ask_relation(lives->relation, life.lower, life.upper, &forward)) {
      const rondo_reach_question question = {.from = life.lower, .to = life.upper, .number = i};
      status = rondo_array_push(allocator, &questions, &question);
    } else if (!forward) {
      status = rondo_plan_fail_backward(problem, i);
    }
  }
  if (status == RONDO_OK) {
    status = rondo_reach_answer(allocator, lives->relation->order, questions.items, questions.count);
  }
  for (size_t i = 0; i < questions.count && status == RONDO_OK; i++) {
    if (!questions.items[i].answer) status = rondo_plan_fail_backward(problem, questions.items[i].number);
  }
  rondo_array_free(allocator, &questions);
  return status;
}

/* Lists the obstacles with bytes by offset. */
static rondo_status sort_obstacles(rondo_scratch *scratch, rondo_lives *lives) {
  const rondo_plan_problem *problem = lives->problem;
  if (problem->obstacle_count == 0) return RONDO_OK;
  RONDO_TRY(rondo_scratch_take(scratch, problem->obstacle_count, 2 * sizeof *lives->by_offset, &lives->by_offset));
  for (uint32_t i = 0; i < problem->obstacle_count; i++) {
    if (problem->obstacles[i].bytes == 0) continue;
    lives->by_offset[lives->by_offset_count++] = (rondo_sort_entry){problem->obstacles[i].offset, i};
  }
  rondo_sort_entries(lives->by_offset, lives->by_offset + lives->by_offset_count, lives->by_offset_count);
  return RONDO_OK;
}

/* The whole -------------------------------------------------------------------------------------------------------- */

rondo_status rondo_lives_make(rondo_scratch *scratch, const rondo_plan_problem *problem, const rondo_relation *relation,
                              const rondo_branches *branches, rondo_lives *out) {
  *out = (rondo_lives){.problem = problem, .relation = relation, .branches = branches};
  RONDO_TRY(check_directions(scratch->allocator, out));
  const size_t pieces = problem->count + problem->obstacle_count;
  RONDO_TRY(rondo_scratch_take(scratch, pieces, sizeof *out->lives, &out->lives));
  RONDO_TRY(rondo_scratch_take(scratch, problem->count, sizeof *out->items, &out->items));
  out->obstacles = problem->obstacle_count == 0 ? NULL : out->lives + problem->count;
  for (size_t i = 0; i < pieces; i++) out->lives[i] = life_of(out, rondo_plan_piece(problem, i));
  for (uint32_t i = 0; i < problem->count; i++) {
    if (problem->items[i].bytes > 0) out->items[out->count++] = i;
  }
  return sort_obstacles(scratch, out);
}

uint32_t rondo_lives_span(const rondo_lives *lives, const rondo_life *life) {
  return lives->relation->slot_count - rondo_relation_count_before(lives->relation, life->alloc) -
         rondo_relation_count_after(lives->relation, life->free);
}

/* Conflicts -------------------------------------------------------------------------------------------------------- */

/* The last time in the free's stage that does not come after it; slots and times of a stage are the same range. */
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
  conflict->behind = relation->stage_slot.items[part->stage + 1];
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

rondo_conflict rondo_conflict_of(const rondo_lives *lives, const rondo_life *life) {
  const rondo_relation *relation = lives->relation;
  rondo_conflict conflict = {.branch = life->branch};
  /* Slots are below UINT32_MAX, so that a life without end has nothing after it, and none is in its free's part. */
  conflict.behind = conflict.free_first = conflict.free_end = conflict.last = UINT32_MAX;
  if (life->free != relation->slot_count - 1) read_future(relation, life->free, &conflict);
  if (life->alloc != 0) read_past(relation, life->alloc, &conflict);
  return conflict;
}

bool rondo_conflict_one(const rondo_lives *lives, const rondo_conflict *conflict, const rondo_life *life) {
  if (rondo_conflict_is_behind(conflict, life->alloc, life->alloc_chain)) return false;
  if (rondo_conflict_is_before(conflict, life->free, life->free_chain)) return false;
  if (conflict->branch == 0 || life->branch == 0) return true;
  return !rondo_branches_exclude(lives->branches, conflict->branch, life->branch);
}
