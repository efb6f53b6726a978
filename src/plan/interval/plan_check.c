/* SPDX-License-Identifier: MIT
 * The check of a plan of intervals: a sweep over time. A piece is an item or an obstacle with bytes. When one begins,
 * it must share no byte with the pieces that are live: it shares one if, of those that begin below its end, one ends
 * above its offset. A tree of maxima finds the highest such end. Obstacles have a tree of their own, because they may
 * overlap each other. Shares no code with the planner but the sort.
 */
#include <assert.h>

#include "base/binary_search.h"
#include "base/error.h"
#include "plan/plan_internal.h"
#include "plan/radix_sort.h"

typedef struct piece_set {
  rondo_sort_entry *pieces; /* offsets and numbers, by offset */
  size_t count;
  size_t *ends;  /* tree: node leaves + i is the end of piece i, 0 if it is not live; node i is the maximum of its
                    children  2i and 2i + 1 */
  size_t leaves; /* more than count */
} piece_set;

typedef struct checker {
  rondo_scratch scratch;
  const rondo_plan_problem *problem;
  const size_t *offsets;
  piece_set items, obstacles;
  uint32_t *ranks;           /* index of each piece in its set */
  rondo_sort_entry *changes; /* numbers of pieces, by twice the step, plus 1 for a beginning: ends come first */
  size_t change_count;
} checker;

/* Sets ------------------------------------------------------------------------------------------------------------- */

/* Lists the pieces with numbers from first up to end, and their changes. */
static rondo_status make_set(checker *c, size_t first, size_t end, piece_set *set) {
  const size_t most = end - first;
  for (set->leaves = 1; set->leaves <= most;) set->leaves *= 2;
  RONDO_TRY(rondo_scratch_take(&c->scratch, most, 2 * sizeof *set->pieces, &set->pieces));
  RONDO_TRY(rondo_scratch_take(&c->scratch, set->leaves, 2 * sizeof *set->ends, &set->ends));
  for (size_t i = first; i < end; i++) {
    const rondo_plan_item piece = rondo_plan_piece(c->problem, i);
    if (piece.bytes == 0) continue;
    const uint32_t number = (uint32_t)i;
    set->pieces[set->count++] = (rondo_sort_entry){rondo_plan_piece_offset(c->problem, c->offsets, i), number};
    c->changes[c->change_count++] = (rondo_sort_entry){2 * (uint64_t)piece.lower + 1, number};
    c->changes[c->change_count++] = (rondo_sort_entry){2 * (uint64_t)piece.upper, number};
  }
  if (set->count > 1) rondo_sort_entries(set->pieces, set->pieces + set->count, set->count);
  for (uint32_t i = 0; i < set->count; i++) c->ranks[set->pieces[i].value] = i;
  return RONDO_OK;
}

/* Makes a piece live, or no longer live with end 0. */
static void set_end(checker *c, uint32_t number, size_t end) {
  piece_set *set = number < c->problem->count ? &c->items : &c->obstacles;
  size_t node = set->leaves + c->ranks[number];
  assert(c->ranks[number] < set->count && (set->ends[node] == 0) == (end > 0));
  for (size_t highest = end; node > 0 && set->ends[node] != highest; node /= 2) {
    set->ends[node] = highest;
    if (set->ends[node ^ 1] > highest) highest = set->ends[node ^ 1];
  }
}

/* Whether a live piece that begins below `end` ends above `offset`. */
static bool overlaps(const piece_set *set, size_t offset, size_t end) {
  size_t below = 0, count = set->count;
  RONDO_BINARY_SEARCH(below, count, middle, set->pieces[middle].key < end)
  for (size_t node = set->leaves + below; node > 1; node /= 2) {
    if (node % 2 == 1 && set->ends[node - 1] > offset) return true;
  }
  return false;
}

/* Sweep ------------------------------------------------------------------------------------------------------------ */

static rondo_status check_against(const checker *c, const piece_set *set, uint32_t number, size_t offset, size_t end) {
  if (!overlaps(set, offset, end)) return RONDO_OK;
  size_t i = 0;
  while (set->ends[set->leaves + i] <= offset) i++; /* the first also begins below the end */
  return rondo_plan_fail_overlap(c->problem, c->offsets, set->pieces[i].value, number);
}

static rondo_status begin(checker *c, uint32_t number) {
  const size_t offset = rondo_plan_piece_offset(c->problem, c->offsets, number);
  const size_t end = offset + rondo_plan_piece(c->problem, number).bytes;
  RONDO_TRY(check_against(c, &c->items, number, offset, end));
  if (number < c->problem->count) RONDO_TRY(check_against(c, &c->obstacles, number, offset, end));
  set_end(c, number, end);
  return RONDO_OK;
}

static rondo_status check(checker *c) {
  const size_t items = c->problem->count, pieces = items + c->problem->obstacle_count;
  RONDO_TRY(rondo_scratch_take(&c->scratch, pieces, sizeof *c->ranks, &c->ranks));
  RONDO_TRY(rondo_scratch_take(&c->scratch, pieces, 4 * sizeof *c->changes, &c->changes));
  RONDO_TRY(make_set(c, 0, items, &c->items));
  RONDO_TRY(make_set(c, items, pieces, &c->obstacles));
  if (c->change_count > 1) rondo_sort_entries(c->changes, c->changes + c->change_count, c->change_count);
  for (size_t i = 0; i < c->change_count; i++) {
    if (c->changes[i].key % 2 == 1) {
      RONDO_TRY(begin(c, c->changes[i].value));
    } else {
      set_end(c, c->changes[i].value, 0);
    }
  }
  return RONDO_OK;
}

rondo_status rondo_interval_check(const rondo_allocator *allocator, const rondo_plan_problem *problem,
                                  const size_t *offsets) {
  checker c = {.scratch.allocator = allocator, .problem = problem, .offsets = offsets};
  const rondo_status status = check(&c);
  rondo_scratch_free(&c.scratch);
  return status;
}
