/* SPDX-License-Identifier: MIT
 * The proof of a plan: a sweep over time that keeps the live items sorted by offset. As long as no two of them overlap,
 * a new one can only touch its neighbours in that order, so each is compared with two.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "plan/plan_internal.h"

typedef struct change {
  uint32_t time;
  uint32_t item;
  uint32_t begins; /* 0: the item ends here; ends come before beginnings of the same time */
} change;

typedef struct checker {
  const rondo_plan_problem *problem;
  const size_t *offsets;
  uint32_t *live; /* items, by offset */
  size_t live_count;
} checker;

static int compare_changes(const void *a, const void *b) {
  const change *x = a;
  const change *y = b;
  if (x->time != y->time) return x->time < y->time ? -1 : 1;
  if (x->begins != y->begins) return x->begins < y->begins ? -1 : 1;
  return (x->item > y->item) - (x->item < y->item);
}

/* How many live items lie below the offset. */
static size_t position_of(const checker *c, size_t offset) {
  size_t low = 0;
  size_t high = c->live_count;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (c->offsets[c->live[middle]] < offset) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

static rondo_status fail_pair(const checker *c, uint32_t a, uint32_t b) {
  const rondo_plan_item *x = &c->problem->items[a];
  const rondo_plan_item *y = &c->problem->items[b];
  return rondo_fail(
      RONDO_INVALID_DATA, RONDO_REASON_NONE,
      "items %u (%zu bytes at %zu, steps %u up to %u) and %u (%zu bytes at %zu, steps %u up to %u) of a memory "
      "plan are live together and overlap",
      a, x->bytes, c->offsets[a], x->lower, x->upper, b, y->bytes, c->offsets[b], y->lower, y->upper);
}

static rondo_status begin_item(checker *c, uint32_t item) {
  const size_t offset = c->offsets[item];
  const size_t at = position_of(c, offset);
  if (at > 0) {
    const uint32_t below = c->live[at - 1];
    if (c->problem->items[below].bytes > offset - c->offsets[below]) return fail_pair(c, below, item);
  }
  if (at < c->live_count) {
    const uint32_t above = c->live[at];
    if (c->problem->items[item].bytes > c->offsets[above] - offset) return fail_pair(c, item, above);
  }
  memmove(c->live + at + 1, c->live + at, (c->live_count - at) * sizeof *c->live);
  c->live[at] = item;
  c->live_count++;
  return RONDO_OK;
}

static void end_item(checker *c, uint32_t item) {
  const size_t at = position_of(c, c->offsets[item]);
  assert(c->live[at] == item);
  c->live_count--;
  memmove(c->live + at, c->live + at + 1, (c->live_count - at) * sizeof *c->live);
}

static rondo_status check_item(const rondo_plan_item *item, size_t index, size_t offset) {
  if (item->alignment > 1 && offset % item->alignment != 0) {
    return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_NONE,
                      "item %zu of a memory plan lies at %zu, which is not aligned to %zu", index, offset,
                      item->alignment);
  }
  size_t end = 0;
  if (rondo_checked_add(offset, item->bytes, &end)) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_NONE,
                    "item %zu of a memory plan (%zu bytes at %zu) ends past %zu bits", index, item->bytes, offset,
                    8 * sizeof(size_t));
}

static size_t list_changes(const rondo_plan_problem *problem, change *changes) {
  size_t count = 0;
  for (uint32_t i = 0; i < problem->count; i++) {
    const rondo_plan_item *item = &problem->items[i];
    if (item->bytes == 0) continue;
    changes[count++] = (change){item->lower, i, 1};
    changes[count++] = (change){item->upper, i, 0};
  }
  qsort(changes, count, sizeof *changes, compare_changes);
  return count;
}

rondo_status rondo_interval_check(const rondo_allocator *allocator, const rondo_plan_problem *problem,
                                  const size_t *offsets) {
  for (size_t i = 0; i < problem->count; i++) RONDO_TRY(check_item(&problem->items[i], i, offsets[i]));
  checker c = {.problem = problem, .offsets = offsets};
  change *changes = NULL;
  rondo_status status = rondo_allocate(allocator, 2 * problem->count, sizeof *changes, (void **)&changes);
  if (status == RONDO_OK) status = rondo_allocate(allocator, problem->count, sizeof *c.live, (void **)&c.live);
  const size_t count = status == RONDO_OK ? list_changes(problem, changes) : 0;
  for (size_t i = 0; i < count && status == RONDO_OK; i++) {
    if (changes[i].begins) {
      status = begin_item(&c, changes[i].item);
    } else {
      end_item(&c, changes[i].item);
    }
  }
  rondo_release(allocator, changes, 2 * problem->count, sizeof *changes);
  rondo_release(allocator, c.live, problem->count, sizeof *c.live);
  return status;
}
