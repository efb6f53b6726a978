/* SPDX-License-Identifier: MIT
 * Checks a plan: a sweep over time that keeps the live items sorted by offset. As long as no two live items overlap, a
 * new item can only overlap its neighbours in that order. Obstacles may overlap each other, so a tree finds the live
 * obstacle that ends highest among those that begin below the end of an item. Shares no code with the planner.
 */
#include <assert.h>
#include <stdlib.h>

#include "base/binary_search.h"
#include "base/error.h"
#include "plan/plan_internal.h"
#include "plan/rank_set.h"

#define NONE UINT32_MAX

typedef struct change {
  uint32_t step;
  bool begins; /* at one step, ends come before beginnings */
  bool of_obstacle;
  uint32_t number; /* of the item or obstacle */
} change;

typedef struct placed {
  size_t offset;
  uint32_t number;
} placed;

typedef struct checker {
  const rondo_plan_problem *problem;
  const size_t *offsets;
  placed *items; /* with bytes, by offset */
  size_t item_count;
  uint32_t *item_ranks;
  rondo_rank_set live;
  placed *obstacles; /* with bytes, by offset */
  size_t obstacle_count;
  uint32_t *obstacle_ranks;
  uint32_t *highest; /* a tree over the obstacles' ranks: the live one that ends highest */
  size_t leaves;     /* of that tree */
  change *changes;
  size_t change_count;
} checker;

/* Order ------------------------------------------------------------------------------------------------------------ */

static int compare_placed(const void *a, const void *b) {
  const placed *x = a;
  const placed *y = b;
  if (x->offset != y->offset) return x->offset < y->offset ? -1 : 1;
  return (x->number > y->number) - (x->number < y->number);
}

static int compare_changes(const void *a, const void *b) {
  const change *x = a;
  const change *y = b;
  if (x->step != y->step) return x->step < y->step ? -1 : 1;
  if (x->begins != y->begins) return x->begins ? 1 : -1;
  if (x->of_obstacle != y->of_obstacle) return x->of_obstacle ? 1 : -1;
  return (x->number > y->number) - (x->number < y->number);
}

static void add_changes(checker *c, uint32_t lower, uint32_t upper, uint32_t number, bool of_obstacle) {
  c->changes[c->change_count++] = (change){lower, true, of_obstacle, number};
  c->changes[c->change_count++] = (change){upper, false, of_obstacle, number};
}

static void list_items(checker *c) {
  for (uint32_t i = 0; i < c->problem->count; i++) {
    const rondo_plan_item *item = &c->problem->items[i];
    if (item->bytes == 0) continue;
    c->items[c->item_count++] = (placed){c->offsets[i], i};
    add_changes(c, item->lower, item->upper, i, false);
  }
  qsort(c->items, c->item_count, sizeof *c->items, compare_placed);
  for (uint32_t i = 0; i < c->item_count; i++) c->item_ranks[c->items[i].number] = i;
}

static void list_obstacles(checker *c) {
  for (uint32_t i = 0; i < c->problem->obstacle_count; i++) {
    const rondo_plan_obstacle *obstacle = &c->problem->obstacles[i];
    if (obstacle->bytes == 0) continue;
    c->obstacles[c->obstacle_count++] = (placed){obstacle->offset, i};
    add_changes(c, obstacle->lower, obstacle->upper, i, true);
  }
  if (c->obstacle_count > 0) qsort(c->obstacles, c->obstacle_count, sizeof *c->obstacles, compare_placed);
  for (uint32_t i = 0; i < c->obstacle_count; i++) c->obstacle_ranks[c->obstacles[i].number] = i;
}

/* How many begin below the offset. */
static size_t count_below(const placed *list, size_t count, size_t offset) {
  size_t low = 0, high = count;
  RONDO_BINARY_SEARCH(low, high, middle, list[middle].offset < offset)
  return low;
}

/* Obstacles -------------------------------------------------------------------------------------------------------- */

static size_t end_of_obstacle(const checker *c, uint32_t number) {
  return c->problem->obstacles[number].offset + c->problem->obstacles[number].bytes;
}

static uint32_t higher(const checker *c, uint32_t a, uint32_t b) {
  if (a == NONE || b == NONE) return a == NONE ? b : a;
  return end_of_obstacle(c, b) > end_of_obstacle(c, a) ? b : a;
}

static void set_live_obstacle(checker *c, uint32_t number, bool live) {
  size_t node = c->leaves + c->obstacle_ranks[number];
  c->highest[node] = live ? number : NONE;
  for (node /= 2; node > 0; node /= 2) c->highest[node] = higher(c, c->highest[2 * node], c->highest[2 * node + 1]);
}

/* The live obstacle that ends highest among those that begin below the offset. */
static uint32_t highest_obstacle(const checker *c, size_t offset) {
  uint32_t found = NONE;
  size_t low = c->leaves;
  size_t high = c->leaves + count_below(c->obstacles, c->obstacle_count, offset);
  for (; low < high; low /= 2, high /= 2) {
    if (low % 2 == 1) found = higher(c, found, c->highest[low++]);
    if (high % 2 == 1) found = higher(c, found, c->highest[--high]);
  }
  return found;
}

/* Faults ----------------------------------------------------------------------------------------------------------- */

static rondo_status fail_pair(const checker *c, uint32_t a, uint32_t b) {
  const rondo_plan_item *x = &c->problem->items[a];
  const rondo_plan_item *y = &c->problem->items[b];
  return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_OVERLAP,
                    "items %u (%zu bytes at %zu, steps %u up to %u) and %u (%zu bytes at %zu, steps %u up to %u) of a "
                    "plan are live at once and overlap",
                    a, x->bytes, c->offsets[a], x->lower, x->upper, b, y->bytes, c->offsets[b], y->lower, y->upper);
}

static rondo_status fail_obstacle(const checker *c, uint32_t item, uint32_t obstacle) {
  const rondo_plan_item *x = &c->problem->items[item];
  const rondo_plan_obstacle *y = &c->problem->obstacles[obstacle];
  return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_OVERLAP,
                    "item %u (%zu bytes at %zu, steps %u up to %u) of a plan overlaps obstacle %u (%zu bytes at %zu, "
                    "steps %u up to %u)",
                    item, x->bytes, c->offsets[item], x->lower, x->upper, obstacle, y->bytes, y->offset, y->lower,
                    y->upper);
}

static rondo_status check_alone(const rondo_plan_item *item, size_t index, size_t offset) {
  if (item->alignment > 1 && offset % item->alignment != 0) {
    return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_MISALIGNED,
                      "item %zu of a plan is at offset %zu, which is not aligned to %zu", index, offset,
                      item->alignment);
  }
  size_t end = 0;
  if (rondo_checked_add(offset, item->bytes, &end)) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_OUT_OF_RANGE,
                    "item %zu of a plan (%zu bytes at %zu) ends past %zu bits", index, item->bytes, offset,
                    8 * sizeof(size_t));
}

/* Sweep ------------------------------------------------------------------------------------------------------------ */

static rondo_status begin_item(checker *c, uint32_t number) {
  const size_t rank = c->item_ranks[number];
  const size_t end = c->offsets[number] + c->problem->items[number].bytes;
  const size_t below = rondo_rank_set_below(&c->live, rank);
  if (below != RONDO_NO_RANK) {
    const placed *other = &c->items[below];
    if (other->offset + c->problem->items[other->number].bytes > c->offsets[number]) {
      return fail_pair(c, other->number, number);
    }
  }
  const size_t above = rondo_rank_set_from(&c->live, rank);
  if (above != RONDO_NO_RANK && c->items[above].offset < end) return fail_pair(c, number, c->items[above].number);
  const uint32_t obstacle = highest_obstacle(c, end);
  if (obstacle != NONE && end_of_obstacle(c, obstacle) > c->offsets[number]) return fail_obstacle(c, number, obstacle);
  rondo_rank_set_insert(&c->live, rank);
  return RONDO_OK;
}

static rondo_status begin_obstacle(checker *c, uint32_t number) {
  const size_t below = rondo_rank_set_below(&c->live, count_below(c->items, c->item_count, end_of_obstacle(c, number)));
  if (below != RONDO_NO_RANK) {
    const placed *item = &c->items[below];
    if (item->offset + c->problem->items[item->number].bytes > c->problem->obstacles[number].offset) {
      return fail_obstacle(c, item->number, number);
    }
  }
  set_live_obstacle(c, number, true);
  return RONDO_OK;
}

static rondo_status apply(checker *c, const change *of) {
  if (of->begins) return of->of_obstacle ? begin_obstacle(c, of->number) : begin_item(c, of->number);
  if (of->of_obstacle) {
    set_live_obstacle(c, of->number, false);
  } else {
    rondo_rank_set_remove(&c->live, c->item_ranks[of->number]);
  }
  return RONDO_OK;
}

/* The whole -------------------------------------------------------------------------------------------------------- */

static rondo_status prepare(rondo_scratch *scratch, checker *c) {
  const size_t items = c->problem->count;
  const size_t obstacles = c->problem->obstacle_count;
  RONDO_TRY(rondo_scratch_take(scratch, items, sizeof *c->items, &c->items));
  RONDO_TRY(rondo_scratch_take(scratch, items, sizeof *c->item_ranks, &c->item_ranks));
  RONDO_TRY(rondo_scratch_take(scratch, obstacles, sizeof *c->obstacles, &c->obstacles));
  RONDO_TRY(rondo_scratch_take(scratch, obstacles, sizeof *c->obstacle_ranks, &c->obstacle_ranks));
  RONDO_TRY(rondo_scratch_take(scratch, items + obstacles, 2 * sizeof *c->changes, &c->changes));
  RONDO_TRY(rondo_rank_set_make(scratch, items, &c->live));
  size_t leaves = 1;
  while (leaves < obstacles) leaves *= 2;
  RONDO_TRY(rondo_scratch_take(scratch, leaves, 2 * sizeof *c->highest, &c->highest));
  c->leaves = leaves;
  for (size_t i = 0; i < 2 * leaves; i++) c->highest[i] = NONE;
  return RONDO_OK;
}

static rondo_status check_together(checker *c) {
  list_items(c);
  list_obstacles(c);
  qsort(c->changes, c->change_count, sizeof *c->changes, compare_changes);
  for (size_t i = 0; i < c->change_count; i++) RONDO_TRY(apply(c, &c->changes[i]));
  rondo_rank_set_check(&c->live);
  return RONDO_OK;
}

rondo_status rondo_interval_check(const rondo_allocator *allocator, const rondo_plan_problem *problem,
                                  const size_t *offsets) {
  for (size_t i = 0; i < problem->count; i++) RONDO_TRY(check_alone(&problem->items[i], i, offsets[i]));
  checker c = {.problem = problem, .offsets = offsets};
  rondo_scratch scratch = {.allocator = allocator};
  rondo_status status = prepare(&scratch, &c);
  if (status == RONDO_OK) status = check_together(&c);
  rondo_scratch_free(&scratch);
  return status;
}
