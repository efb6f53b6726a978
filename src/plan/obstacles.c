/* SPDX-License-Identifier: MIT
 * A search in a binary tree over the obstacles in the order of their offsets, whose nodes bound the ranges and lives of
 * what is below them.
 */
#include "plan/obstacles.h"

#include "base/error.h"

static const rondo_obstacle nothing = {UINT64_MAX, 0, UINT32_MAX, 0};

static rondo_obstacle bound_of(const rondo_obstacle *a, const rondo_obstacle *b) {
  return (rondo_obstacle){
      .offset = a->offset < b->offset ? a->offset : b->offset,
      .end = a->end > b->end ? a->end : b->end,
      .lower = a->lower < b->lower ? a->lower : b->lower,
      .upper = a->upper > b->upper ? a->upper : b->upper,
  };
}

static void fill(const rondo_obstacle *ranges, const rondo_sort_entry *by_offset, rondo_obstacles *obstacles) {
  rondo_obstacle *leaf = obstacles->tree + obstacles->leaves;
  for (size_t i = 0; i < obstacles->count; i++) leaf[i] = ranges[by_offset[i].value];
  for (size_t i = obstacles->count; i < obstacles->leaves; i++) leaf[i] = nothing;
  for (size_t i = obstacles->leaves - 1; i > 0; i--) {
    obstacles->tree[i] = bound_of(&obstacles->tree[2 * i], &obstacles->tree[2 * i + 1]);
  }
}

rondo_status rondo_obstacles_make(const rondo_allocator *allocator, const rondo_obstacle *ranges, size_t count,
                                  rondo_obstacles *out) {
  *out = (rondo_obstacles){0};
  if (count == 0) return RONDO_OK;
  rondo_sort_entry *entries = NULL;
  size_t leaves = 1;
  while (leaves < count) leaves *= 2;
  RONDO_TRY(rondo_allocate_items(allocator, count, 2 * sizeof *entries, &entries));
  const rondo_status status = rondo_allocate_items(allocator, 2 * leaves, sizeof *out->tree, &out->tree);
  if (status == RONDO_OK) {
    out->count = count;
    out->leaves = leaves;
    for (size_t i = 0; i < count; i++) entries[i] = (rondo_sort_entry){ranges[i].offset, (uint32_t)i};
    rondo_sort_entries(entries, entries + count, count);
    fill(ranges, entries, out);
  }
  rondo_release(allocator, entries, count, 2 * sizeof *entries);
  return status;
}

void rondo_obstacles_free(const rondo_allocator *allocator, rondo_obstacles *obstacles) {
  rondo_release(allocator, obstacles->tree, 2 * obstacles->leaves, sizeof *obstacles->tree);
  *obstacles = (rondo_obstacles){0};
}

static bool may_meet(const rondo_obstacle *node, uint32_t lower, uint32_t upper, uint64_t height) {
  return node->end > height && node->lower < upper && node->upper > lower;
}

/* The next node in the order of offsets that is not below this one; 0 behind the last. */
static size_t next_of(size_t node) {
  while (node % 2 == 1) node /= 2;
  return node == 0 ? 0 : node + 1;
}

const rondo_obstacle *rondo_obstacles_above(const rondo_obstacles *obstacles, uint32_t lower, uint32_t upper,
                                            uint64_t height) {
  for (size_t node = obstacles->leaves == 0 ? 0 : 1; node != 0;) {
    if (!may_meet(&obstacles->tree[node], lower, upper, height)) {
      node = next_of(node);
    } else if (node >= obstacles->leaves) {
      return &obstacles->tree[node];
    } else {
      node *= 2;
    }
  }
  return NULL;
}
