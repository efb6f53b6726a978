/* SPDX-License-Identifier: MIT
 * Each group of lives (order_lives.h) keeps the lowest offset of its unplaced items, the next higher one, and the
 * preferred of the items at the lowest. Placing an item lifts the lowest offsets of all that conflict with it. A group
 * that conflicts as a whole takes that as one number, as long as it stays below the group's next higher offset:
 * everything at the lowest is lifted together. Only where offsets become equal does one look into the halves, and equal
 * offsets stay equal for such groups, so that is rare (the idea of Ji's "segment tree beats", 2016, on a k-d tree).
 * So no item is looked at again and again while others are placed below it, whatever the preference.
 */
#include "plan/order_place.h"

#include <assert.h>
#include <stdlib.h>

#include "base/error.h"

#define PLACED UINT32_MAX
#define NONE UINT32_MAX

/* What the halves do not know yet: lowest, where it is above theirs. */
struct rondo_order_placer_group {
  size_t lowest; /* SIZE_MAX: all are placed */
  size_t next;   /* the second lowest; SIZE_MAX: none */
  uint32_t best; /* place of the preferred item at the lowest */
};
typedef struct rondo_order_placer_group state;

/* Groups ----------------------------------------------------------------------------------------------------------- */

static void note(state *of, size_t lowest, size_t next) {
  if (lowest < of->lowest) {
    of->next = next < of->lowest ? next : of->lowest;
    of->lowest = lowest;
  } else if (lowest > of->lowest) {
    if (lowest < of->next) of->next = lowest;
  } else if (next < of->next) {
    of->next = next;
  }
}

/* From the items of a group that is not split, whose numbers are up to date. */
static void sum_up_items(rondo_order_placer *p, uint32_t number) {
  const rondo_lives_group *group = &p->lives->groups.items[number];
  state sum = {SIZE_MAX, SIZE_MAX, group->begin};
  for (uint32_t i = group->begin; i < group->end; i++) {
    if (p->ranks[i] == PLACED) continue;
    const bool better = p->lowest[i] < sum.lowest || (p->lowest[i] == sum.lowest && p->ranks[i] < p->ranks[sum.best]);
    if (better) sum.best = i;
    note(&sum, p->lowest[i], SIZE_MAX);
  }
  p->groups[number] = sum;
}

static void sum_up_halves(rondo_order_placer *p, uint32_t number) {
  const state *left = &p->groups[number + 1];
  const state *right = &p->groups[p->lives->groups.items[number].right];
  const bool right_is_better =
      right->lowest < left->lowest || (right->lowest == left->lowest && p->ranks[right->best] < p->ranks[left->best]);
  state sum = *left;
  note(&sum, right->lowest, right->next);
  if (right_is_better) sum.best = right->best;
  p->groups[number] = sum;
}

/* Lets the halves, or the items, know what the group knows. */
static void hand_down(rondo_order_placer *p, uint32_t number) {
  const rondo_lives_group *group = &p->lives->groups.items[number];
  const size_t lowest = p->groups[number].lowest;
  if (group->right == 0) {
    for (uint32_t i = group->begin; i < group->end; i++) {
      if (p->lowest[i] < lowest) p->lowest[i] = lowest;
    }
    return;
  }
  if (p->groups[number + 1].lowest < lowest) p->groups[number + 1].lowest = lowest;
  if (p->groups[group->right].lowest < lowest) p->groups[group->right].lowest = lowest;
}

static void lift_items(rondo_order_placer *p, uint32_t number, const rondo_conflict *conflict, size_t top, bool all) {
  const rondo_lives_group *group = &p->lives->groups.items[number];
  hand_down(p, number);
  for (uint32_t i = group->begin; i < group->end; i++) {
    if (p->lowest[i] >= top || p->ranks[i] == PLACED) continue;
    if (all || rondo_conflict_one(p->lives, conflict, &p->lives->by_place[i])) p->lowest[i] = top;
  }
  sum_up_items(p, number);
}

/* Lifts what conflicts to at least `top`. */
static void lift_group(rondo_order_placer *p, uint32_t number, const rondo_conflict *conflict, size_t top, bool all) {
  state *own = &p->groups[number];
  if (own->lowest >= top) return;
  const rondo_lives_group *group = &p->lives->groups.items[number];
  if (!all) {
    const rondo_share share = rondo_conflict_group(p->lives, conflict, group);
    if (share == RONDO_SHARE_NONE) return;
    all = share == RONDO_SHARE_ALL;
  }
  if (all && top < own->next) {
    own->lowest = top;
  } else if (group->right == 0) {
    lift_items(p, number, conflict, top, all);
  } else {
    hand_down(p, number);
    lift_group(p, number + 1, conflict, top, all);
    lift_group(p, group->right, conflict, top, all);
    sum_up_halves(p, number);
  }
}

/* Sets one item's lowest offset, or with SIZE_MAX takes the item out. */
static void set_one(rondo_order_placer *p, uint32_t number, uint32_t place, size_t lowest) {
  const rondo_lives_group *group = &p->lives->groups.items[number];
  hand_down(p, number);
  if (group->right == 0) {
    p->lowest[place] = lowest;
    if (lowest == SIZE_MAX) p->ranks[place] = PLACED;
    sum_up_items(p, number);
    return;
  }
  set_one(p, place < p->lives->groups.items[group->right].begin ? number + 1 : group->right, place, lowest);
  sum_up_halves(p, number);
}

/* Placing ---------------------------------------------------------------------------------------------------------- */

/* The lowest offset from `from` on at which the item is aligned and meets no obstacle; false when there is none. */
static bool find_fit(const rondo_order_placer *placer, const rondo_conflict *conflict, uint32_t item, size_t from,
                     size_t *out) {
  const rondo_plan_problem *problem = placer->lives->problem;
  const size_t bytes = problem->items[item].bytes;
  const size_t alignment = problem->items[item].alignment == 0 ? 1 : problem->items[item].alignment;
  size_t offset = 0;
  size_t top = 0;
  if (!rondo_checked_align(from, alignment, &offset) || !rondo_checked_add(offset, bytes, &top)) return false;
  for (size_t i = 0; i < placer->obstacle_count; i++) {
    const uint32_t number = placer->obstacles[i];
    const rondo_plan_obstacle *obstacle = &problem->obstacles[number];
    if (obstacle->offset >= top) break;
    if (obstacle->offset + obstacle->bytes <= offset) continue;
    if (!rondo_conflict_one(placer->lives, conflict, &placer->lives->obstacles[number])) continue;
    if (!rondo_checked_align(obstacle->offset + obstacle->bytes, alignment, &offset)) return false;
    if (!rondo_checked_add(offset, bytes, &top)) return false;
  }
  *out = offset;
  return true;
}

static void begin(rondo_order_placer *p, const uint32_t *ranks, size_t *offsets) {
  const rondo_lives *lives = p->lives;
  for (size_t i = 0; i < lives->problem->count; i++) offsets[i] = 0;
  for (uint32_t i = 0; i < lives->count; i++) {
    p->lowest[i] = 0;
    p->ranks[i] = ranks[lives->items[i]];
  }
  for (uint32_t i = (uint32_t)lives->groups.count; i-- > 0;) {
    if (lives->groups.items[i].right == 0) {
      sum_up_items(p, i);
    } else {
      sum_up_halves(p, i);
    }
  }
}

static rondo_status fail_high(const rondo_lives *lives, uint32_t item, size_t offset) {
  return rondo_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_BAD_SIZE,
                    "item %u of a plan, of %zu bytes, does not fit above offset %zu in %zu bits", item,
                    lives->problem->items[item].bytes, offset, 8 * sizeof(size_t));
}

static bool goes_before(const rondo_order_placer *p, uint32_t a, uint32_t b) {
  const state *x = &p->groups[p->lives->roots[a].group];
  const state *y = &p->groups[p->lives->roots[b].group];
  return x->lowest != y->lowest ? x->lowest < y->lowest : p->ranks[x->best] < p->ranks[y->best];
}

/* The root with the item that goes next; NONE when all are placed. */
static uint32_t choose_root(const rondo_order_placer *p) {
  uint32_t best = NONE;
  for (uint32_t i = 0; i < p->lives->root_count; i++) {
    if (p->groups[p->lives->roots[i].group].lowest == SIZE_MAX) continue;
    if (best == NONE || goes_before(p, i, best)) best = i;
  }
  return best;
}

/* Places the best item of a tree, or learns that it cannot lie as low as was thought. *out_top is then 0. */
static rondo_status place_best(rondo_order_placer *p, uint32_t root, size_t *offsets, size_t *out_top) {
  const rondo_lives *lives = p->lives;
  const uint32_t place = p->groups[root].best;
  const uint32_t item = lives->items[place];
  const size_t lowest = p->groups[root].lowest;
  const rondo_conflict conflict = rondo_conflict_of(lives, &lives->lives[item]);
  size_t offset = 0;
  *out_top = 0;
  if (!find_fit(p, &conflict, item, lowest, &offset)) return fail_high(lives, item, lowest);
  if (offset > lowest) {
    set_one(p, root, place, offset);
    return RONDO_OK;
  }
  offsets[item] = offset;
  *out_top = offset + lives->problem->items[item].bytes;
  size_t top = *out_top;
  if (!rondo_checked_align(*out_top, p->grain, &top) && *out_top == SIZE_MAX) return fail_high(lives, item, offset);
  set_one(p, root, place, SIZE_MAX);
  for (uint32_t i = 0; i < lives->root_count; i++) lift_group(p, lives->roots[i].group, &conflict, top, false);
  return RONDO_OK;
}

rondo_status rondo_order_placer_run(rondo_order_placer *placer, const uint32_t *ranks, size_t *offsets,
                                    size_t *out_peak) {
  *out_peak = 0;
  begin(placer, ranks, offsets);
  for (uint32_t root = choose_root(placer); root != NONE; root = choose_root(placer)) {
    size_t top = 0;
    RONDO_TRY(place_best(placer, placer->lives->roots[root].group, offsets, &top));
    if (top > *out_peak) *out_peak = top;
  }
  return RONDO_OK;
}

/* The whole -------------------------------------------------------------------------------------------------------- */

static int compare_offsets(const void *a, const void *b) {
  const rondo_plan_obstacle *const *x = a;
  const rondo_plan_obstacle *const *y = b;
  if ((*x)->offset != (*y)->offset) return (*x)->offset < (*y)->offset ? -1 : 1;
  return (*x > *y) - (*x < *y);
}

static rondo_status sort_obstacles(const rondo_allocator *allocator, rondo_order_placer *p) {
  const rondo_plan_problem *problem = p->lives->problem;
  const rondo_plan_obstacle **sorted = NULL;
  RONDO_TRY(rondo_allocate_items(allocator, problem->obstacle_count, sizeof *sorted, &sorted));
  for (size_t i = 0; i < problem->obstacle_count; i++) {
    if (problem->obstacles[i].bytes > 0) sorted[p->obstacle_count++] = &problem->obstacles[i];
  }
  if (p->obstacle_count > 1) qsort(sorted, p->obstacle_count, sizeof *sorted, compare_offsets);
  for (size_t i = 0; i < p->obstacle_count; i++) p->obstacles[i] = (uint32_t)(sorted[i] - problem->obstacles);
  rondo_release(allocator, sorted, problem->obstacle_count, sizeof *sorted);
  return RONDO_OK;
}

rondo_status rondo_order_placer_make(const rondo_allocator *allocator, const rondo_lives *lives,
                                     rondo_order_placer *out) {
  const rondo_plan_problem *problem = lives->problem;
  *out = (rondo_order_placer){.lives = lives, .grain = SIZE_MAX / 2 + 1};
  for (uint32_t i = 0; i < lives->count; i++) {
    const size_t alignment = problem->items[lives->items[i]].alignment;
    if (alignment < out->grain) out->grain = alignment;
  }
  if (out->grain == 0) out->grain = 1;
  RONDO_TRY(rondo_allocate_items(allocator, lives->groups.count, sizeof *out->groups, &out->groups));
  RONDO_TRY(rondo_allocate_items(allocator, lives->count, sizeof *out->lowest, &out->lowest));
  RONDO_TRY(rondo_allocate_items(allocator, lives->count, sizeof *out->ranks, &out->ranks));
  RONDO_TRY(rondo_allocate_items(allocator, problem->obstacle_count, sizeof *out->obstacles, &out->obstacles));
  return sort_obstacles(allocator, out);
}

void rondo_order_placer_free(const rondo_allocator *allocator, rondo_order_placer *placer) {
  if (placer->lives == NULL) return;
  rondo_release(allocator, placer->groups, placer->lives->groups.count, sizeof *placer->groups);
  rondo_release(allocator, placer->lowest, placer->lives->count, sizeof *placer->lowest);
  rondo_release(allocator, placer->ranks, placer->lives->count, sizeof *placer->ranks);
  rondo_release(allocator, placer->obstacles, placer->lives->problem->obstacle_count, sizeof *placer->obstacles);
  *placer = (rondo_order_placer){0};
}
