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

static size_t list_with_bytes(const rondo_plan_problem *problem, rondo_sort_entry *entries) {
  size_t count = 0;
  for (size_t i = 0; i < problem->obstacle_count; i++) {
    if (problem->obstacles[i].bytes == 0) continue;
    entries[count++] = (rondo_sort_entry){problem->obstacles[i].offset, (uint32_t)i};
  }
  return count;
}

static void fill(const rondo_plan_problem *problem, const rondo_life *lives, const rondo_sort_entry *entries,
                 rondo_obstacles *obstacles) {
  rondo_obstacle *leaf = obstacles->tree + obstacles->leaves;
  for (size_t i = 0; i < obstacles->leaves; i++) leaf[i] = nothing;
  for (size_t i = 0; i < obstacles->count; i++) {
    const rondo_plan_obstacle *given = &problem->obstacles[entries[i].value];
    const rondo_life *life = &lives[entries[i].value];
    leaf[i] = (rondo_obstacle){given->offset, given->offset + given->bytes, life->lower, life->upper};
  }
  for (size_t i = obstacles->leaves - 1; i > 0; i--) {
    obstacles->tree[i] = bound_of(&obstacles->tree[2 * i], &obstacles->tree[2 * i + 1]);
  }
}

rondo_status rondo_obstacles_make(const rondo_allocator *allocator, const rondo_plan_problem *problem,
                                  const rondo_life *lives, rondo_sort_entry *scratch, rondo_obstacles *out) {
  *out = (rondo_obstacles){.count = list_with_bytes(problem, scratch)};
  if (out->count == 0) return RONDO_OK;
  size_t leaves = 1;
  while (leaves < out->count) leaves *= 2;
  RONDO_TRY(rondo_allocate(allocator, 2 * leaves, sizeof *out->tree, (void **)&out->tree));
  out->leaves = leaves;
  rondo_sort_entries(scratch, scratch + out->count, out->count);
  fill(problem, lives, scratch, out);
  return RONDO_OK;
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
