/* SPDX-License-Identifier: MIT
 * A range that is met begins before others end and ends after their beginning: with its beginning and end exchanged,
 * it lives within theirs. So the tree of boxes finds the first of them by offset; and those that end too low it leaves
 * out by their bytes, if these are what is above their ends.
 */
#include "plan/interval/obstacles.h"

#include "base/error.h"

static uint64_t above(uint64_t height) { return UINT64_MAX - height; }

static void fill(const rondo_obstacle *ranges, const rondo_sort_entry *by_offset, rondo_obstacles *out) {
  for (uint32_t i = 0; i < out->count; i++) {
    const rondo_obstacle *range = &ranges[by_offset[i].value];
    out->ranges[i] = *range;
    out->lives[i] = (rondo_box){above(range->end), range->upper, range->lower};
  }
  rondo_box_tree_shape(&out->tree, out->lives, out->count, true);
  rondo_box_tree_fill(&out->tree, NULL);
}

rondo_status rondo_obstacles_make(rondo_scratch *scratch, const rondo_obstacle *ranges, uint32_t count,
                                  rondo_obstacles *out) {
  rondo_sort_entry *entries = NULL;
  *out = (rondo_obstacles){.count = count};
  if (count == 0) return RONDO_OK;
  RONDO_TRY(rondo_scratch_take(scratch, count, 2 * sizeof *entries, &entries));
  RONDO_TRY(rondo_scratch_take(scratch, count, sizeof *out->ranges, &out->ranges));
  RONDO_TRY(rondo_scratch_take(scratch, count, sizeof *out->lives, &out->lives));
  RONDO_TRY(rondo_box_tree_make(scratch, count, &out->tree));
  for (uint32_t i = 0; i < count; i++) entries[i] = (rondo_sort_entry){ranges[i].offset, i};
  rondo_sort_entries(entries, entries + count, count);
  fill(ranges, entries, out);
  return RONDO_OK;
}

const rondo_obstacle *rondo_obstacles_above(const rondo_obstacles *obstacles, uint32_t lower, uint32_t upper,
                                            uint64_t height) {
  if (obstacles->count == 0 || height == UINT64_MAX) return NULL;
  const rondo_box_query query = {
      .lower = lower + 1, .upper = upper - 1, .before = RONDO_NO_BOX, .most_bytes = above(height + 1)};
  const uint32_t found = rondo_box_tree_first(&obstacles->tree, &query);
  return found == RONDO_NO_BOX ? NULL : &obstacles->ranges[found];
}
