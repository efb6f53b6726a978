/* SPDX-License-Identifier: MIT
 * The invariant of layouts, in debug builds.
 */
#include "tensor/compile/layout_check.h"

#ifndef NDEBUG

#include <assert.h>

#define MAX_PLACES 3000 /* with more, pairs are not compared */

static void check_order(const rondo_schedule *schedule) {
  const rondo_edges *before = &schedule->before;
  assert(before->count == schedule->count && schedule->count <= schedule->operations);
  for (uint32_t p = 0; p < schedule->count; p++) {
    assert(schedule->order[p] < schedule->operations && schedule->runs[schedule->order[p]]);
    assert(before->start[p] <= before->start[p + 1]);
    for (uint32_t e = before->start[p]; e < before->start[p + 1]; e++) {
      assert(before->items[e] < p);
      assert(e == before->start[p] || before->items[e - 1] < before->items[e]);
    }
  }
}

static void check_kernels(const rondo_schedule *schedule) {
  uint32_t first = 0;
  for (; first < schedule->count; first += schedule->joined[first]) {
    const uint32_t joined = schedule->joined[first];
    assert(joined > 0 && first + joined <= schedule->count);
    for (uint32_t p = first + 1; p < first + joined; p++) assert(schedule->joined[p] == 0);
  }
  assert(first == schedule->count);
}

static void check_location(const rondo_layout *layout, const rondo_location *location) {
  assert(location->offset % RONDO_VALUE_ALIGNMENT == 0 && location->bytes % RONDO_VALUE_ALIGNMENT == 0);
  assert(location->offset + location->bytes <= layout->arena_bytes);
  assert(location->first <= location->last && location->last <= layout->schedule.count);
}

static bool overlap(const rondo_location *a, const rondo_location *b) {
  const bool share_time = a->first <= b->last && b->first <= a->last;
  return share_time && a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
}

static void check_users(const rondo_layout *layout, size_t item, const rondo_location *location) {
  const rondo_edges *users = &layout->users;
  for (uint32_t u = users->start[item]; u < users->start[item + 1]; u++) {
    assert(users->items[u] >= location->first && users->items[u] <= location->last);
    assert(u == users->start[item] || users->items[u - 1] < users->items[u]);
  }
}

static void check_arena(const rondo_layout *layout) {
  const size_t count = layout->schedule.values + layout->schedule.operations;
  assert(layout->arena_bound <= layout->arena_bytes && layout->arena_bytes <= layout->arena_sum);
  assert(layout->users.count == count);
  for (size_t i = 0; i < count; i++) {
    const rondo_location *location = rondo_layout_location(layout, i);
    if (location == NULL) continue;
    check_location(layout, location);
    check_users(layout, i, location);
    for (size_t k = 0; k < i && count <= MAX_PLACES; k++)
      assert(rondo_layout_location(layout, k) == NULL || !overlap(location, rondo_layout_location(layout, k)));
  }
}

void rondo_layout_check(const rondo_program *program, const rondo_layout *layout) {
  assert(layout->schedule.values == program->values.count);
  assert(layout->schedule.operations == program->operations.count);
  for (uint32_t i = 0; i < program->values.count; i++) {
    const uint32_t owner = layout->schedule.owners[i];
    assert(owner <= i && layout->schedule.owners[owner] == owner);
  }
  check_order(&layout->schedule);
  check_kernels(&layout->schedule);
  check_arena(layout);
}

#endif
