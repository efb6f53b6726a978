/* SPDX-License-Identifier: MIT
 * The check of a plan on a partial order: a sweep over the offsets. The items of one branch that hold the same byte
 * must form a chain, so they are kept sorted by alloc node. A new item is compared with its two neighbours only: by
 * transitivity, it then comes after all earlier items and before all later ones. It is compared with the items of each
 * branch that its own branch does not exclude, and with the obstacles. Comparisons are collected, and rondo_reach_run
 * decides them.
 */
#include <assert.h>

#include "base/array.h"
#include "base/binary_search.h"
#include "base/error.h"
#include "plan/partial_order/order_branch.h"
#include "plan/partial_order/order_plan.h"
#include "plan/partial_order/order_reach.h"
#include "plan/radix_sort.h"

#define QUESTIONS_AT_ONCE ((size_t)1 << 20)

/* `first` must be freed before `second` begins. If they are the same, its free must come after its alloc. */
typedef struct pair {
  uint32_t first, second;
} pair;

typedef RONDO_ARRAY(uint32_t) live_list; /* pieces, sorted by alloc node or step */

typedef struct checker {
  rondo_scratch scratch;
  const rondo_plan_problem *problem;
  const size_t *offsets;
  rondo_branches branches;
  live_list *lists; /* of each branch, then an unsorted one of the obstacles */
  size_t list_count;
  RONDO_ARRAY(pair) pairs; /* for each query, by its number */
  RONDO_ARRAY(rondo_reach_query) queries;
} checker;

/* Lifetimes -------------------------------------------------------------------------------------------------------- */

static rondo_plan_item piece(const checker *c, uint32_t number) { return rondo_plan_piece(c->problem, number); }

/* Queries ---------------------------------------------------------------------------------------------------------- */

static rondo_status answer_all(checker *c) {
  RONDO_TRY(rondo_reach_run(c->scratch.allocator, c->problem->order, c->queries.items, c->queries.count));
  for (size_t i = 0; i < c->queries.count; i++) {
    const pair asked = c->pairs.items[c->queries.items[i].number];
    if (c->queries.items[i].answer) continue;
    if (asked.first == asked.second) return rondo_plan_fail_backward(c->problem, asked.first);
    return rondo_plan_fail_overlap(c->problem, c->offsets, asked.first, asked.second);
  }
  c->pairs.count = c->queries.count = 0;
  return RONDO_OK;
}

static rondo_status add_query(checker *c, uint32_t from, uint32_t to, pair asked) {
  const rondo_reach_query query = {.from = from, .to = to, .number = (uint32_t)c->pairs.count};
  RONDO_TRY(rondo_array_push(c->scratch.allocator, &c->pairs, &asked));
  RONDO_TRY(rondo_array_push(c->scratch.allocator, &c->queries, &query));
  return c->queries.count < QUESTIONS_AT_ONCE ? RONDO_OK : answer_all(c);
}

/* Requires that `first` ends before `second` begins. */
static rondo_status require_before(checker *c, uint32_t first, uint32_t second) {
  const uint32_t end = piece(c, first).upper;
  const uint32_t start = piece(c, second).lower;
  if (c->problem->order == NULL)
    return end <= start ? RONDO_OK : rondo_plan_fail_overlap(c->problem, c->offsets, first, second);
  if (end >= start) return rondo_plan_fail_overlap(c->problem, c->offsets, first, second);
  return add_query(c, end, start, (pair){first, second});
}

static rondo_status check_directions(checker *c) {
  const size_t count = c->problem->order == NULL ? 0 : c->problem->count + c->problem->obstacle_count;
  for (uint32_t i = 0; i < count; i++) {
    const rondo_plan_item life = piece(c, i);
    if (life.upper != RONDO_PLAN_FOREVER) RONDO_TRY(add_query(c, life.lower, life.upper, (pair){i, i}));
  }
  return RONDO_OK;
}

/* The sweep -------------------------------------------------------------------------------------------------------- */

/* The number of pieces in the list that begin before this one. */
static size_t position_of(const checker *c, const live_list *list, uint32_t number) {
  const uint32_t lower = piece(c, number).lower;
  size_t low = 0, high = list->count;
  RONDO_BINARY_SEARCH(low, high, middle, piece(c, list->items[middle]).lower < lower)
  return low;
}

static rondo_status compare_with_list(checker *c, const live_list *list, uint32_t number) {
  const size_t at = position_of(c, list, number);
  if (at > 0) RONDO_TRY(require_before(c, list->items[at - 1], number));
  return at < list->count ? require_before(c, number, list->items[at]) : RONDO_OK;
}

static rondo_status compare_with_obstacles(checker *c, uint32_t number) {
  const live_list *obstacles = &c->lists[c->branches.count];
  for (size_t i = 0; i < obstacles->count; i++) {
    const uint32_t obstacle = obstacles->items[i];
    const bool is_first = piece(c, obstacle).lower <= piece(c, number).lower;
    RONDO_TRY(require_before(c, is_first ? obstacle : number, is_first ? number : obstacle));
  }
  return RONDO_OK;
}

static rondo_status insert(checker *c, live_list *list, size_t at, uint32_t number) {
  RONDO_TRY(rondo_array_reserve(c->scratch.allocator, list, list->count + 1));
  rondo_array_insert(list, at, number);
  return RONDO_OK;
}

static rondo_status begin(checker *c, uint32_t number) {
  const uint32_t branch = piece(c, number).branch;
  for (uint32_t b = 0; b < c->branches.count; b++) {
    if (c->lists[b].count == 0 || rondo_branches_exclude(&c->branches, b, branch)) continue;
    RONDO_TRY(compare_with_list(c, &c->lists[b], number));
  }
  if (number >= c->problem->count) return insert(c, &c->lists[c->branches.count], 0, number);
  RONDO_TRY(compare_with_obstacles(c, number));
  return insert(c, &c->lists[branch], position_of(c, &c->lists[branch], number), number);
}

static void end(checker *c, uint32_t number) {
  const bool is_item = number < c->problem->count;
  live_list *list = &c->lists[is_item ? piece(c, number).branch : c->branches.count];
  size_t at = is_item ? position_of(c, list, number) : 0;
  while (at < list->count && list->items[at] != number) at++;
  assert(at < list->count &&
         (!is_item || at == position_of(c, list, number))); /* no two items of a list begin together */
  rondo_array_remove(list, at);
}

/* Entries: an offset, and twice the number of the piece that begins or ends there, plus 1 if it begins. The sort is
 * stable, so ends come before beginnings at the same offset. */
static rondo_status sweep(checker *c, rondo_sort_entry *changes) {
  const uint32_t pieces = (uint32_t)(c->problem->count + c->problem->obstacle_count);
  size_t count = 0;
  for (uint32_t begins = 0; begins < 2; begins++) {
    for (uint32_t i = 0; i < pieces; i++) {
      const size_t bytes = piece(c, i).bytes, offset = rondo_plan_piece_offset(c->problem, c->offsets, i);
      if (bytes > 0) changes[count++] = (rondo_sort_entry){begins == 1 ? offset : offset + bytes, 2 * i + begins};
    }
  }
  if (count > 1) rondo_sort_entries(changes, changes + count, count);
  for (size_t i = 0; i < count; i++) {
    if (changes[i].value % 2 == 1) {
      RONDO_TRY(begin(c, changes[i].value / 2));
    } else {
      end(c, changes[i].value / 2);
    }
  }
  return answer_all(c);
}

/* The whole -------------------------------------------------------------------------------------------------------- */

static rondo_status check_with(checker *c) {
  const size_t pieces = c->problem->count + c->problem->obstacle_count;
  rondo_sort_entry *changes = NULL;
  RONDO_TRY(rondo_branches_make(&c->scratch, c->problem, &c->branches));
  c->list_count = (size_t)c->branches.count + 1;
  RONDO_TRY(rondo_scratch_take(&c->scratch, c->list_count, sizeof *c->lists, &c->lists));
  RONDO_TRY(check_directions(c));
  RONDO_TRY(rondo_scratch_take(&c->scratch, pieces, 4 * sizeof *changes, &changes));
  return sweep(c, changes);
}

rondo_status rondo_order_check(const rondo_allocator *allocator, const rondo_plan_problem *problem,
                               const size_t *offsets) {
  checker c = {.scratch.allocator = allocator, .problem = problem, .offsets = offsets};
  const rondo_status status = check_with(&c);
  for (size_t i = 0; i < c.list_count && c.lists != NULL; i++) rondo_array_free(allocator, &c.lists[i]);
  rondo_array_free(allocator, &c.pairs);
  rondo_array_free(allocator, &c.queries);
  rondo_scratch_free(&c.scratch);
  return status;
}
