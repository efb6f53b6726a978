/* SPDX-License-Identifier: MIT
 * The trees of groups: k-d trees. On one chain a conflict is a quadrant: alloc before a bound, free behind another. So
 * groups of one chain are split by slots, and as long as a group has several chains (of several parts) between these.
 * Crossing items are few for each pair of chains, so they are split by time, and compared one by one where it is not
 * time that keeps them apart.
 */
#include "plan/order_lives.h"

#include <assert.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/hash.h"
#include "plan/order_reach.h"

#define MOST_UNSPLIT 8

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

/* What both lists of a problem have: number i is item i, or behind the items obstacle i - count. */
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
                    "%s %zu of a plan is freed by node %u, which no edges place behind node %u that allocates it",
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
  rondo_reach_question *questions = NULL;
  RONDO_TRY(rondo_allocate_items(allocator, count, sizeof *questions, &questions));
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
  rondo_release(allocator, questions, count, sizeof *questions);
  return status;
}

/* Each free comes behind its alloc. */
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

/* Groups ----------------------------------------------------------------------------------------------------------- */

typedef enum axis { BY_ALLOC, BY_FREE, BY_ALLOC_TIME, BY_FREE_TIME, BY_BRANCH } axis;

static uint32_t key_of(const rondo_lives *lives, axis by, uint32_t item) {
  const rondo_life *life = &lives->lives[item];
  switch (by) {
    case BY_ALLOC:
      return life->alloc;
    case BY_FREE:
      return life->free;
    case BY_ALLOC_TIME:
      return life->alloc_time;
    case BY_FREE_TIME:
      return life->free_time == UINT32_MAX ? UINT32_MAX - 1 : life->free_time; /* so that there is a greater number */
    default:
      return life->branch;
  }
}

static void swap_items(uint32_t *items, uint32_t a, uint32_t b) {
  const uint32_t kept = items[a];
  items[a] = items[b];
  items[b] = kept;
}

/* Moves the items whose key is below the bound to the front; returns where the others begin. */
static uint32_t part_below(rondo_lives *lives, axis by, uint32_t begin, uint32_t end, uint32_t bound) {
  uint32_t at = begin;
  for (uint32_t i = begin; i < end; i++) {
    if (key_of(lives, by, lives->items[i]) < bound) swap_items(lives->items, at++, i);
  }
  return at;
}

/* The key in the middle. Picks pivots at random, so that no input makes it slow. */
static uint32_t median_key(rondo_lives *lives, axis by, uint32_t begin, uint32_t end) {
  const uint32_t middle = begin + (end - begin) / 2;
  for (uint64_t state = RONDO_HASH_START;;) {
    state = rondo_hash_u64(state, end);
    const uint32_t pivot = key_of(lives, by, lives->items[begin + (uint32_t)(state % (end - begin))]);
    const uint32_t below = part_below(lives, by, begin, end, pivot);
    const uint32_t above = part_below(lives, by, below, end, pivot + 1);
    if (middle >= below && middle < above) return pivot;
    if (middle < below) {
      end = below;
    } else {
      begin = above;
    }
  }
}

static uint32_t distance(uint32_t a, uint32_t b) { return a > b ? a - b : b - a; }

/* Splits the items in two by an axis on which they differ; returns where the second half begins. The bounds that come
 * into question are those on either side of the median key, or of its chain where there are several. */
static uint32_t split_by(rondo_lives *lives, axis by, uint32_t begin, uint32_t end, bool at_chain) {
  const uint32_t middle = begin + (end - begin) / 2;
  uint32_t low = median_key(lives, by, begin, end);
  uint32_t high = low + 1;
  if (at_chain) {
    const uint32_t chain = lives->relation->slot_chain[low];
    low = lives->relation->chain_slot.items[chain];
    high = lives->relation->chain_slot.items[chain + 1];
  }
  const uint32_t first = part_below(lives, by, begin, end, low);
  const uint32_t second = part_below(lives, by, first, end, high);
  if (first > begin && (second == end || distance(first, middle) <= distance(second, middle))) return first;
  return second;
}

static rondo_lives_group describe(const rondo_lives *lives, uint32_t begin, uint32_t end) {
  const rondo_life *first = &lives->lives[lives->items[begin]];
  rondo_lives_group group = {.alloc_low = first->alloc, .alloc_high = first->alloc, .alloc_chain = first->alloc_chain};
  group.free_low = group.free_high = first->free;
  group.free_chain = first->free_chain;
  group.alloc_first = group.alloc_last = first->alloc_time;
  group.free_first = group.free_last = first->free_time;
  group.branch = first->branch;
  group.begin = begin;
  group.end = end;
  for (uint32_t i = begin + 1; i < end; i++) {
    const rondo_life *life = &lives->lives[lives->items[i]];
    if (life->alloc < group.alloc_low) group.alloc_low = life->alloc;
    if (life->alloc > group.alloc_high) group.alloc_high = life->alloc;
    if (life->free < group.free_low) group.free_low = life->free;
    if (life->free > group.free_high) group.free_high = life->free;
    if (life->alloc_time < group.alloc_first) group.alloc_first = life->alloc_time;
    if (life->alloc_time > group.alloc_last) group.alloc_last = life->alloc_time;
    if (life->free_time < group.free_first) group.free_first = life->free_time;
    if (life->free_time > group.free_last) group.free_last = life->free_time;
    if (life->alloc_chain != group.alloc_chain) group.alloc_chain = RONDO_LIVES_MIXED;
    if (life->free_chain != group.free_chain) group.free_chain = RONDO_LIVES_MIXED;
    if (life->branch != group.branch) group.branch = RONDO_LIVES_MIXED;
  }
  return group;
}

static uint32_t split_by_time(rondo_lives *lives, const rondo_lives_group *group) {
  const uint32_t allocs = group->alloc_last - group->alloc_first;
  const uint32_t frees = group->free_last - group->free_first;
  const axis by = group->free_last != UINT32_MAX && frees > allocs ? BY_FREE_TIME : BY_ALLOC_TIME;
  return split_by(lives, allocs == 0 ? BY_FREE_TIME : by, group->begin, group->end, false);
}

static uint32_t split(rondo_lives *lives, const rondo_lives_group *group, bool by_time, uint32_t depth) {
  const uint32_t allocs = group->alloc_high - group->alloc_low;
  const uint32_t frees = group->free_high - group->free_low;
  if (group->branch == RONDO_LIVES_MIXED && (depth % 3 == 2 || (allocs == 0 && frees == 0))) {
    return split_by(lives, BY_BRANCH, group->begin, group->end, false);
  }
  if (allocs == 0 && frees == 0) return group->begin + (group->end - group->begin) / 2;
  if (by_time) return split_by_time(lives, group);
  if (allocs >= frees) {
    return split_by(lives, BY_ALLOC, group->begin, group->end, group->alloc_chain == RONDO_LIVES_MIXED);
  }
  return split_by(lives, BY_FREE, group->begin, group->end, group->free_chain == RONDO_LIVES_MIXED);
}

/* Recursive; the depth is a small multiple of the logarithm, as halves are even up to the chains they end at. */
static rondo_status group_items(const rondo_allocator *allocator, rondo_lives *lives, uint32_t begin, uint32_t end,
                                bool by_time, uint32_t depth) {
  const rondo_lives_group group = describe(lives, begin, end);
  const size_t number = lives->groups.count;
  RONDO_TRY(rondo_array_push(allocator, &lives->groups, &group));
  if (end - begin <= MOST_UNSPLIT) return RONDO_OK;
  const uint32_t middle = split(lives, &group, by_time, depth);
  assert(middle > begin && middle < end);
  RONDO_TRY(group_items(allocator, lives, begin, middle, by_time, depth + 1));
  lives->groups.items[number].right = (uint32_t)lives->groups.count;
  return group_items(allocator, lives, middle, end, by_time, depth + 1);
}

static uint32_t chain_in_part(const rondo_relation *relation, uint32_t slot, uint32_t chain) {
  return chain - relation->parts.items[relation->slot_part[slot]].first_chain;
}

static uint32_t stream_of(const rondo_lives *lives, uint32_t item) {
  const rondo_life *life = &lives->lives[item];
  const uint32_t first = chain_in_part(lives->relation, life->alloc, life->alloc_chain);
  const uint32_t last = chain_in_part(lives->relation, life->free, life->free_chain);
  return first == last && first < RONDO_LIVES_CROSSING ? first : RONDO_LIVES_CROSSING;
}

/* Groups the items stream by stream. */
static rondo_status group_all(const rondo_allocator *allocator, rondo_lives *lives) {
  uint32_t ends[RONDO_LIVES_STREAMS] = {0};
  for (uint32_t i = 0; i < lives->problem->count; i++) {
    if (lives->problem->items[i].bytes > 0) ends[stream_of(lives, i)]++;
  }
  for (uint32_t s = 1; s < RONDO_LIVES_STREAMS; s++) ends[s] += ends[s - 1];
  lives->count = ends[RONDO_LIVES_STREAMS - 1];
  for (uint32_t i = (uint32_t)lives->problem->count; i-- > 0;) {
    if (lives->problem->items[i].bytes > 0) lives->items[--ends[stream_of(lives, i)]] = i;
  }
  for (uint32_t s = 0; s < RONDO_LIVES_STREAMS; s++) {
    const uint32_t end = s + 1 < RONDO_LIVES_STREAMS ? ends[s + 1] : lives->count;
    if (ends[s] == end) continue;
    lives->roots[lives->root_count].group = (uint32_t)lives->groups.count;
    lives->roots[lives->root_count++].stream = s;
    RONDO_TRY(group_items(allocator, lives, ends[s], end, s == RONDO_LIVES_CROSSING, 0));
  }
  for (uint32_t i = 0; i < lives->count; i++) lives->by_place[i] = lives->lives[lives->items[i]];
  return RONDO_OK;
}

/* The whole -------------------------------------------------------------------------------------------------------- */

rondo_status rondo_lives_make(const rondo_allocator *allocator, const rondo_plan_problem *problem,
                              const rondo_relation *relation, const rondo_branches *branches, rondo_lives *out) {
  *out = (rondo_lives){.problem = problem, .relation = relation, .branches = branches};
  RONDO_TRY(check_directions(allocator, out));
  RONDO_TRY(rondo_allocate_items(allocator, problem->count, sizeof *out->lives, &out->lives));
  RONDO_TRY(rondo_allocate_items(allocator, problem->obstacle_count, sizeof *out->obstacles, &out->obstacles));
  RONDO_TRY(rondo_allocate_items(allocator, problem->count, sizeof *out->items, &out->items));
  RONDO_TRY(rondo_allocate_items(allocator, problem->count, sizeof *out->by_place, &out->by_place));
  for (uint32_t i = 0; i < problem->count; i++) {
    const rondo_plan_item *item = &problem->items[i];
    out->lives[i] = life_of(out, item->lower, item->upper, item->branch);
  }
  for (size_t i = 0; i < problem->obstacle_count; i++) {
    out->obstacles[i] = life_of(out, problem->obstacles[i].lower, problem->obstacles[i].upper, 0);
  }
  return group_all(allocator, out);
}

void rondo_lives_free(const rondo_allocator *allocator, rondo_lives *lives) {
  const size_t count = lives->problem == NULL ? 0 : lives->problem->count;
  const size_t obstacles = lives->problem == NULL ? 0 : lives->problem->obstacle_count;
  rondo_release(allocator, lives->lives, count, sizeof *lives->lives);
  rondo_release(allocator, lives->obstacles, obstacles, sizeof *lives->obstacles);
  rondo_release(allocator, lives->items, count, sizeof *lives->items);
  rondo_release(allocator, lives->by_place, count, sizeof *lives->by_place);
  rondo_array_free(allocator, &lives->groups);
  *lives = (rondo_lives){0};
}

uint32_t rondo_lives_span(const rondo_lives *lives, const rondo_life *life) {
  return lives->relation->slot_count - rondo_relation_count_before(lives->relation, life->alloc) -
         rondo_relation_count_behind(lives->relation, life->free);
}

/* Conflicts -------------------------------------------------------------------------------------------------------- */

/* The last time in the free's stage that does not come behind it; slots and times of a stage are the same range. */
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

static void look_behind(const rondo_relation *relation, uint32_t slot, rondo_conflict *conflict) {
  const rondo_relation_part *part = &relation->parts.items[relation->slot_part[slot]];
  conflict->behind = relation->stage_slot.items[part->stage + 1];
  conflict->free_first = part->first_slot;
  conflict->free_end = part->end_slot;
  conflict->future = rondo_relation_future(relation, slot);
  conflict->future_chain = part->first_chain;
  conflict->last = last_time(relation, part, conflict->future);
}

static void look_before(const rondo_relation *relation, uint32_t slot, rondo_conflict *conflict) {
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
  /* Slots are below UINT32_MAX, so that a life without end has nothing behind it, and none is in its free's part. */
  conflict.behind = conflict.free_first = conflict.free_end = conflict.last = UINT32_MAX;
  if (life->free != relation->slot_count - 1) look_behind(relation, life->free, &conflict);
  if (life->alloc != 0) look_before(relation, life->alloc, &conflict);
  return conflict;
}

/* Which of the slots low..high, on one chain or several, come behind the free. */
static inline rondo_share come_behind(const rondo_conflict *conflict, uint32_t low, uint32_t high, uint32_t chain) {
  if (low >= conflict->behind) return RONDO_SHARE_ALL;
  if (high < conflict->free_first || (low >= conflict->free_end && high < conflict->behind)) return RONDO_SHARE_NONE;
  if (chain == RONDO_LIVES_MIXED) return RONDO_SHARE_SOME;
  const uint32_t bound = conflict->future[chain - conflict->future_chain];
  return low >= bound ? RONDO_SHARE_ALL : high < bound ? RONDO_SHARE_NONE : RONDO_SHARE_SOME;
}

static inline rondo_share come_before(const rondo_conflict *conflict, uint32_t low, uint32_t high, uint32_t chain) {
  if (high < conflict->before) return RONDO_SHARE_ALL;
  if (low >= conflict->alloc_end || (low >= conflict->before && high < conflict->alloc_first)) return RONDO_SHARE_NONE;
  if (chain == RONDO_LIVES_MIXED) return RONDO_SHARE_SOME;
  const uint32_t bound = conflict->past[chain - conflict->past_chain];
  return high < bound ? RONDO_SHARE_ALL : low >= bound ? RONDO_SHARE_NONE : RONDO_SHARE_SOME;
}

rondo_share rondo_conflict_group(const rondo_lives *lives, const rondo_conflict *conflict,
                                 const rondo_lives_group *group) {
  if (group->alloc_first > conflict->last || group->free_last < conflict->first) return RONDO_SHARE_NONE;
  const rondo_share behind = come_behind(conflict, group->alloc_low, group->alloc_high, group->alloc_chain);
  if (behind == RONDO_SHARE_ALL) return RONDO_SHARE_NONE;
  const rondo_share before = come_before(conflict, group->free_low, group->free_high, group->free_chain);
  if (before == RONDO_SHARE_ALL) return RONDO_SHARE_NONE;
  rondo_share exclusive = RONDO_SHARE_NONE;
  if (lives->branches->count > 1 && conflict->branch != 0) {
    if (group->branch == RONDO_LIVES_MIXED) {
      exclusive = RONDO_SHARE_SOME;
    } else if (rondo_branches_exclude(lives->branches, conflict->branch, group->branch)) {
      return RONDO_SHARE_NONE;
    }
  }
  const bool all = behind == RONDO_SHARE_NONE && before == RONDO_SHARE_NONE && exclusive == RONDO_SHARE_NONE;
  return all ? RONDO_SHARE_ALL : RONDO_SHARE_SOME;
}

bool rondo_conflict_one(const rondo_lives *lives, const rondo_conflict *conflict, const rondo_life *life) {
  if (come_behind(conflict, life->alloc, life->alloc, life->alloc_chain) == RONDO_SHARE_ALL) return false;
  if (come_before(conflict, life->free, life->free, life->free_chain) == RONDO_SHARE_ALL) return false;
  if (conflict->branch == 0 || life->branch == 0) return true;
  return !rondo_branches_exclude(lives->branches, conflict->branch, life->branch);
}

static uint32_t list_group(const rondo_lives *lives, const rondo_conflict *conflict, uint32_t number, uint32_t *out) {
  const rondo_lives_group *group = &lives->groups.items[number];
  const rondo_share share = rondo_conflict_group(lives, conflict, group);
  if (share == RONDO_SHARE_NONE) return 0;
  uint32_t count = 0;
  if (share == RONDO_SHARE_ALL || group->right == 0) {
    for (uint32_t i = group->begin; i < group->end; i++) {
      if (share == RONDO_SHARE_ALL || rondo_conflict_one(lives, conflict, &lives->by_place[i])) out[count++] = i;
    }
    return count;
  }
  count = list_group(lives, conflict, number + 1, out);
  return count + list_group(lives, conflict, group->right, out + count);
}

uint32_t rondo_conflict_list(const rondo_lives *lives, const rondo_conflict *conflict, uint32_t *out) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < lives->root_count; i++) {
    count += list_group(lives, conflict, lives->roots[i].group, out + count);
  }
  return count;
}
