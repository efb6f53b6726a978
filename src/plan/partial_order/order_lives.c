/* SPDX-License-Identifier: MIT
 * A lifetime is kept by the slots that stand for its ends. What comes after a free, or before an alloc, is all of
 * other stages, and of its own part a range of each chain.
 */
#include "plan/partial_order/order_lives.h"

#include <assert.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/hash.h"
#include "plan/partial_order/order_reach.h"

/* Lives ------------------------------------------------------------------------------------------------------------ */

static rondo_life life_of(const rondo_lives *lives, uint32_t lower, uint32_t upper, uint32_t branch) {
  const rondo_relation *relation = lives->relation;
  const uint32_t end = relation->slot_count - 1;
  rondo_life life = {.branch = branch};
  life.alloc = lower < relation->order->node_count ? rondo_relation_begin_slot(relation, lower) : 0;
  life.free = upper == RONDO_PLAN_FOREVER ? end : rondo_relation_end_slot(relation, upper);
  life.alloc_chain = relation->slot_chain[life.alloc];
  life.free_chain = relation->slot_chain[life.free];
  life.alloc_time = life.alloc == 0 ? 0 : relation->slot_node[life.alloc] + 1;
  life.free_time = life.free == end ? UINT32_MAX : relation->slot_node[life.free] + 1;
  return life;
}

/* What both lists of a problem have: number i is item i, or after the items obstacle i - count. */
static void nodes_of(const rondo_plan_problem *problem, size_t number, uint32_t *lower, uint32_t *upper) {
  if (number < problem->count) {
    *lower = problem->items[number].lower;
    *upper = problem->items[number].upper;
  } else {
    *lower = problem->obstacles[number - problem->count].lower;
    *upper = problem->obstacles[number - problem->count].upper;
  }
}

static rondo_status fail_backward(const rondo_plan_problem *problem, size_t number) {
  uint32_t lower = 0;
  uint32_t upper = 0;
  nodes_of(problem, number, &lower, &upper);
  const bool is_item = number < problem->count;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                    "%s %zu of a plan is freed by node %u, but no path leads there from node %u, which allocates it",
                    is_item ? "item" : "obstacle", is_item ? number : number - problem->count, upper, lower);
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

static rondo_status ask_in_bulk(const rondo_allocator *allocator, const rondo_lives *lives, size_t count) {
  const rondo_plan_problem *problem = lives->problem;
  rondo_scratch scratch = {.allocator = allocator};
  rondo_reach_question *questions = NULL;
  RONDO_TRY(rondo_scratch_take(&scratch, count, sizeof *questions, &questions));
  size_t asked = 0;
  for (size_t i = 0; i < problem->count + problem->obstacle_count && asked < count; i++) {
    rondo_reach_question question = {.number = (uint32_t)i};
    bool known = false;
    nodes_of(problem, i, &question.from, &question.to);
    if (question.to == RONDO_PLAN_FOREVER || ask_relation(lives->relation, question.from, question.to, &known))
      continue;
    questions[asked++] = question;
  }
  rondo_status status = rondo_reach_answer(allocator, lives->relation->order, questions, asked);
  for (size_t i = 0; i < asked && status == RONDO_OK; i++) {
    if (!questions[i].answer) status = fail_backward(problem, questions[i].number);
  }
  rondo_scratch_free(&scratch);
  return status;
}

/* Each free comes after its alloc. */
static rondo_status check_directions(const rondo_allocator *allocator, const rondo_lives *lives) {
  const rondo_plan_problem *problem = lives->problem;
  size_t unknown = 0;
  for (size_t i = 0; i < problem->count + problem->obstacle_count; i++) {
    uint32_t lower = 0;
    uint32_t upper = 0;
    bool forward = true;
    nodes_of(problem, i, &lower, &upper);
    if (upper == RONDO_PLAN_FOREVER) continue;
    if (!ask_relation(lives->relation, lower, upper, &forward)) unknown++;
    if (!forward) return fail_backward(problem, i);
  }
  return unknown == 0 ? RONDO_OK : ask_in_bulk(allocator, lives, unknown);
}

/* The whole -------------------------------------------------------------------------------------------------------- */

rondo_status rondo_lives_make(rondo_scratch *scratch, const rondo_plan_problem *problem, const rondo_relation *relation,
                              const rondo_branches *branches, rondo_lives *out) {
  *out = (rondo_lives){.problem = problem, .relation = relation, .branches = branches};
  RONDO_TRY(check_directions(scratch->allocator, out));
  RONDO_TRY(rondo_scratch_take(scratch, problem->count, sizeof *out->lives, &out->lives));
  RONDO_TRY(rondo_scratch_take(scratch, problem->obstacle_count, sizeof *out->obstacles, &out->obstacles));
  RONDO_TRY(rondo_scratch_take(scratch, problem->count, sizeof *out->items, &out->items));
  for (uint32_t i = 0; i < problem->count; i++) {
    const rondo_plan_item *item = &problem->items[i];
    out->lives[i] = life_of(out, item->lower, item->upper, item->branch);
    if (item->bytes > 0) out->items[out->count++] = i;
  }
  for (size_t i = 0; i < problem->obstacle_count; i++) {
    out->obstacles[i] = life_of(out, problem->obstacles[i].lower, problem->obstacles[i].upper, 0);
  }
  return RONDO_OK;
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
  uint32_t last = 0;
  for (uint32_t c = 0; c < part->chain_count; c++) {
    if (future[c] == relation->chain_slot.items[part->first_chain + c]) continue;
    if (relation->slot_node[future[c] - 1] >= last) last = relation->slot_node[future[c] - 1] + 1;
  }
  return last;
}

static uint32_t first_time(const rondo_relation *relation, const rondo_relation_part *part, const uint32_t *past) {
  const uint32_t *bounds = &relation->stage_slot.items[part->stage];
  uint32_t first = UINT32_MAX;
  if (part->first_slot != bounds[0] || part->end_slot != bounds[1]) return bounds[0];
  for (uint32_t c = 0; c < part->chain_count; c++) {
    const bool is_last = c + 1 == part->chain_count;
    if (past[c] == (is_last ? part->loose_slot : relation->chain_slot.items[part->first_chain + c + 1])) continue;
    if (relation->slot_node[past[c]] < first) first = relation->slot_node[past[c]] + 1;
  }
  return first;
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
