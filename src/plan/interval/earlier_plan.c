/* SPDX-License-Identifier: MIT
 * Stacks intervals. A tree over the steps at which lives begin or end knows how high the stack is: a node has the
 * height that all of its steps have at least, and the highest of its steps.
 */
#include "plan/interval/earlier_plan.h"

#include <assert.h>

#include "base/error.h"
#include "plan/radix_sort.h"

rondo_status rondo_earlier_ranks(rondo_scratch *scratch, const size_t *start, size_t count, uint32_t *ranks) {
  rondo_sort_entry *entries = NULL;
  RONDO_TRY(rondo_scratch_take(scratch, count, 2 * sizeof *entries, &entries));
  for (size_t i = 0; i < count; i++) entries[i] = (rondo_sort_entry){start[i], (uint32_t)i};
  if (count > 1) rondo_sort_entries(entries, entries + count, count);
  for (size_t i = 0; i < count; i++) ranks[entries[i].value] = (uint32_t)i;
  return RONDO_OK;
}

/* Heights ---------------------------------------------------------------------------------------------------------- */

typedef struct node {
  size_t least, highest;
} node;

/* Node 1 has all steps; node i has those of nodes 2 i and 2 i + 1. */
typedef struct heights {
  node *nodes;
  uint32_t leaves; /* a power of two */
} heights;

/* Steps from `first` on, before `last`. */
typedef struct span {
  uint32_t first, last;
} span;

static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

/* Node `at` has the steps from `from` on, before `to`. */
static size_t highest_of(const heights *h, uint32_t at, uint32_t from, uint32_t to, span of) {
  const node *n = &h->nodes[at];
  const uint32_t middle = from + (to - from) / 2;
  size_t highest = n->least;
  if (of.first <= from && to <= of.last) return n->highest;
  if (of.first < middle) highest = larger(highest, highest_of(h, 2 * at, from, middle, of));
  if (of.last > middle) highest = larger(highest, highest_of(h, 2 * at + 1, middle, to, of));
  return highest;
}

static void raise_to(heights *h, uint32_t at, uint32_t from, uint32_t to, span of, size_t height) {
  node *n = &h->nodes[at];
  const uint32_t middle = from + (to - from) / 2;
  n->highest = larger(n->highest, height);
  if (of.first <= from && to <= of.last) {
    n->least = larger(n->least, height);
    return;
  }
  if (of.first < middle) raise_to(h, 2 * at, from, middle, of, height);
  if (of.last > middle) raise_to(h, 2 * at + 1, middle, to, of, height);
}

/* Stacking --------------------------------------------------------------------------------------------------------- */

/* Numbers the steps at which a life begins or ends. Returns how many there are. */
static uint32_t number_steps(const rondo_plan_problem *problem, rondo_sort_entry *entries, span *spans) {
  uint32_t steps = 0;
  for (size_t i = 0; i < problem->count; i++) {
    entries[2 * i] = (rondo_sort_entry){problem->items[i].lower, (uint32_t)(2 * i)};
    entries[2 * i + 1] = (rondo_sort_entry){problem->items[i].upper, (uint32_t)(2 * i + 1)};
  }
  rondo_sort_entries(entries, entries + 2 * problem->count, 2 * problem->count);
  for (size_t k = 0; k < 2 * problem->count; k++) {
    if (k > 0 && entries[k].key != entries[k - 1].key) steps++;
    span *of = &spans[entries[k].value / 2];
    if (entries[k].value % 2 == 0)
      of->first = steps;
    else
      of->last = steps;
  }
  return steps + 1;
}

/* An item without bytes is in nobody's way. */
static bool stack_one(heights *h, const rondo_plan_item *item, span of, size_t *out_offset, size_t *out_top) {
  const size_t alignment = item->alignment == 0 ? 1 : item->alignment;
  assert(of.first < of.last && of.last <= h->leaves);
  *out_offset = *out_top = 0;
  if (item->bytes == 0) return true;
  if (!rondo_checked_align(highest_of(h, 1, 0, h->leaves, of), alignment, out_offset)) return false;
  if (!rondo_checked_add(*out_offset, item->bytes, out_top)) return false;
  raise_to(h, 1, 0, h->leaves, of, *out_top);
  return true;
}

/* `order`: the items in their order. */
static void stack_all(heights *h, const rondo_plan_problem *problem, const uint32_t *order, const span *spans,
                      size_t *offsets, size_t *out_peak) {
  *out_peak = 0;
  for (size_t i = 0; i < problem->count; i++) {
    const uint32_t item = order[i];
    size_t top;
    if (!stack_one(h, &problem->items[item], spans[item], &offsets[item], &top)) {
      *out_peak = SIZE_MAX;
      return;
    }
    *out_peak = larger(*out_peak, top);
  }
}

rondo_status rondo_earlier_stack(rondo_scratch *scratch, const rondo_plan_problem *problem, const size_t *start,
                                 size_t *offsets, size_t *out_peak) {
  const size_t count = problem->count;
  rondo_sort_entry *entries = NULL;
  uint32_t *ranks = NULL, *order = NULL;
  span *spans = NULL;
  heights h = {.leaves = 1};
  assert(count > 0 && problem->order == NULL && problem->obstacle_count == 0);
  RONDO_TRY(rondo_scratch_take(scratch, 2 * count, 2 * sizeof *entries, &entries));
  RONDO_TRY(rondo_scratch_take(scratch, count, sizeof *spans, &spans));
  RONDO_TRY(rondo_scratch_take(scratch, count, sizeof *ranks, &ranks));
  RONDO_TRY(rondo_scratch_take(scratch, count, sizeof *order, &order));
  RONDO_TRY(rondo_earlier_ranks(scratch, start, count, ranks));
  for (uint32_t i = 0; i < count; i++) order[ranks[i]] = i;
  const uint32_t steps = number_steps(problem, entries, spans);
  while (h.leaves < steps) h.leaves *= 2;
  RONDO_TRY(rondo_scratch_take(scratch, 2 * (size_t)h.leaves, sizeof *h.nodes, &h.nodes));
  stack_all(&h, problem, order, spans, offsets, out_peak);
  return RONDO_OK;
}
