/* SPDX-License-Identifier: MIT
 * The profile: a sweep over the ends of lifetimes, and a bottom-up segment tree of maxima over it. Lifetimes are
 * half-open.
 */
#include "plan/profile.h"

#include <stdlib.h>

#include "base/error.h"

static int compare_times(const void *a, const void *b) {
  const uint64_t x = *(const uint64_t *)a;
  const uint64_t y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

static size_t keep_distinct(uint64_t *times, size_t count) {
  size_t kept = 0;
  for (size_t i = 0; i < count; i++) {
    if (kept == 0 || times[i] != times[kept - 1]) times[kept++] = times[i];
  }
  return kept;
}

static size_t entry_of(const rondo_profile *profile, uint64_t time) {
  size_t low = 0;
  size_t high = profile->count;
  while (high - low > 1) {
    const size_t middle = low + (high - low) / 2;
    if (profile->times[middle] <= time) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

/* Leaves first take the change at their time, modulo the word, then the sum of the changes so far. */
static void fill_tree(const rondo_plan_problem *problem, rondo_profile *profile) {
  size_t *leaves = profile->tree + profile->count;
  for (size_t i = 0; i < problem->count; i++) {
    const rondo_plan_item *item = &problem->items[i];
    leaves[entry_of(profile, item->lower)] += item->bytes;
    leaves[entry_of(profile, item->upper)] -= item->bytes;
  }
  for (size_t i = 1; i < profile->count; i++) leaves[i] += leaves[i - 1];
  for (size_t i = profile->count - 1; i > 0; i--) {
    profile->tree[i] = larger(profile->tree[2 * i], profile->tree[2 * i + 1]);
  }
}

rondo_status rondo_profile_make(const rondo_allocator *allocator, const rondo_plan_problem *problem,
                                rondo_profile *out) {
  *out = (rondo_profile){0};
  if (problem->count == 0) return RONDO_OK;
  const size_t room = 2 * problem->count;
  RONDO_TRY(rondo_allocate(allocator, room, sizeof *out->times, (void **)&out->times));
  const rondo_status status = rondo_allocate(allocator, 2 * room, sizeof *out->tree, (void **)&out->tree);
  out->room = room;
  if (status != RONDO_OK) {
    rondo_profile_free(allocator, out);
    return status;
  }
  for (size_t i = 0; i < problem->count; i++) {
    out->times[2 * i] = problem->items[i].lower;
    out->times[2 * i + 1] = problem->items[i].upper;
  }
  qsort(out->times, room, sizeof *out->times, compare_times);
  out->count = keep_distinct(out->times, room);
  fill_tree(problem, out);
  return RONDO_OK;
}

void rondo_profile_free(const rondo_allocator *allocator, rondo_profile *profile) {
  rondo_release(allocator, profile->times, profile->room, sizeof *profile->times);
  rondo_release(allocator, profile->tree, 2 * profile->room, sizeof *profile->tree);
  *profile = (rondo_profile){0};
}

size_t rondo_profile_most(const rondo_profile *profile, const rondo_plan_item *item) {
  size_t most = 0;
  size_t low = entry_of(profile, item->lower) + profile->count;
  size_t high = entry_of(profile, item->upper) + profile->count; /* not of the stretch */
  for (; low < high; low /= 2, high /= 2) {
    if (low % 2 == 1) most = larger(most, profile->tree[low++]);
    if (high % 2 == 1) most = larger(most, profile->tree[--high]);
  }
  return most;
}

size_t rondo_profile_peak(const rondo_profile *profile) { return profile->count == 0 ? 0 : profile->tree[1]; }
