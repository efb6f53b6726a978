/* SPDX-License-Identifier: MIT
 * An obstacle overlaps a range of sections if it begins before the range's end and ends after its beginning. With its
 * beginning and end exchanged, it lives within the exchanged range. So a box tree finds the first such obstacle by
 * offset. To skip obstacles that end too low, their boxes have as many bytes as there are offsets above their ends.
 *
 * The bound is a sweep over the sections with a tree over the stretches between the obstacles' ends. Each node stores
 * how many bytes of its stretch are free, so the offset below which enough bytes are free is found on one way down.
 */
#include "plan/interval/obstacles.h"

#include "base/binary_search.h"
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

/* Bound ------------------------------------------------------------------------------------------------------------ */

typedef struct stretch {
  uint64_t free;    /* bytes without an obstacle, without regard to nodes above */
  uint32_t holders; /* obstacles that cover the whole stretch, and not the whole stretch of the parent */
} stretch;

typedef struct sweep {
  const rondo_obstacles *obstacles;
  uint64_t *cuts; /* offsets and ends, ascending, each once; stretch i reaches from cut i to cut i + 1 */
  size_t cut_count;
  size_t leaves;
  stretch *tree;
  rondo_sort_entry *begins, *ends; /* obstacles by section */
  size_t entry_count;              /* entries in each list: 2 for each obstacle */
} sweep;

static const rondo_obstacle *obstacle(const sweep *s, size_t index) { return &s->obstacles->ranges[index]; }

/* Stretches -------------------------------------------------------------------------------------------------------- */

static uint64_t cut_at(const sweep *s, size_t index) {
  return s->cuts[index < s->cut_count ? index : s->cut_count - 1];
}

static size_t place_of_cut(const sweep *s, uint64_t offset) {
  size_t low = 0, high = s->cut_count;
  RONDO_BINARY_SEARCH(low, high, middle, s->cuts[middle] < offset)
  return low;
}

/* The stretch of a node: cuts [lower, upper). */
typedef struct extent {
  size_t lower, upper;
} extent;

static void refresh(sweep *s, size_t node, extent of) {
  stretch *at = &s->tree[node];
  if (at->holders > 0) {
    at->free = 0;
  } else if (node >= s->leaves) {
    at->free = cut_at(s, of.upper) - cut_at(s, of.lower);
  } else {
    at->free = s->tree[2 * node].free + s->tree[2 * node + 1].free;
  }
}

/* Adds `change` holders to the stretches of `range`. */
static void hold(sweep *s, size_t node, extent of, extent range, uint32_t change) {
  if (range.upper <= of.lower || of.upper <= range.lower) return;
  if (range.lower <= of.lower && of.upper <= range.upper) {
    s->tree[node].holders += change;
  } else {
    const size_t middle = of.lower + (of.upper - of.lower) / 2;
    hold(s, 2 * node, (extent){of.lower, middle}, range, change);
    hold(s, 2 * node + 1, (extent){middle, of.upper}, range, change);
  }
  refresh(s, node, of);
}

static void change_holders(sweep *s, const rondo_sort_entry *entry, uint32_t change) {
  const rondo_obstacle *of = obstacle(s, entry->value);
  const extent range = {place_of_cut(s, of->offset), place_of_cut(s, of->end)};
  hold(s, 1, (extent){0, s->leaves}, range, change);
}

static void build(sweep *s) {
  for (size_t node = 2 * s->leaves - 1; node > 0; node--) {
    size_t width = s->leaves;
    size_t first = 1;
    for (; 2 * first <= node; first *= 2) width /= 2;
    const size_t lower = (node - first) * width;
    refresh(s, node, (extent){lower, lower + width});
  }
}

/* The lowest offset below which `need` bytes are free. */
static uint64_t offset_of_free(const sweep *s, uint64_t need) {
  if (need <= s->cuts[0]) return need;
  need -= s->cuts[0];
  if (s->tree[1].free < need) {
    const uint64_t top = s->cuts[s->cut_count - 1];
    const uint64_t rest = need - s->tree[1].free;
    return rest > UINT64_MAX - top ? UINT64_MAX : top + rest;
  }
  size_t node = 1;
  while (node < s->leaves) {
    node *= 2;
    if (s->tree[node].free >= need) continue;
    need -= s->tree[node].free;
    node++;
  }
  return cut_at(s, node - s->leaves) + need;
}

/* Sweep ------------------------------------------------------------------------------------------------------------ */

static rondo_status prepare_sweep(rondo_scratch *scratch, sweep *s) {
  s->entry_count = 2 * s->obstacles->count;
  RONDO_TRY(rondo_scratch_take(scratch, s->entry_count, sizeof *s->cuts, &s->cuts));
  RONDO_TRY(rondo_scratch_take(scratch, s->entry_count, sizeof *s->begins, &s->begins));
  RONDO_TRY(rondo_scratch_take(scratch, s->entry_count, sizeof *s->ends, &s->ends));
  for (size_t i = 0; i < s->obstacles->count; i++) {
    s->begins[2 * i] = (rondo_sort_entry){obstacle(s, i)->offset, 0};
    s->begins[2 * i + 1] = (rondo_sort_entry){obstacle(s, i)->end, 0};
  }
  rondo_sort_entries(s->begins, s->ends, s->entry_count);
  for (size_t i = 0; i < s->entry_count; i++) {
    if (s->cut_count == 0 || s->cuts[s->cut_count - 1] != s->begins[i].key) s->cuts[s->cut_count++] = s->begins[i].key;
  }
  s->leaves = 1;
  while (s->leaves + 1 < s->cut_count) s->leaves *= 2;
  RONDO_TRY(rondo_scratch_take(scratch, 2 * s->leaves, sizeof *s->tree, &s->tree));
  build(s);
  return RONDO_OK;
}

static void list_by_section(sweep *s) {
  const size_t count = s->obstacles->count;
  for (size_t i = 0; i < count; i++) {
    s->begins[i] = (rondo_sort_entry){obstacle(s, i)->lower, (uint32_t)i};
    s->ends[i] = (rondo_sort_entry){obstacle(s, i)->upper, (uint32_t)i};
  }
  rondo_sort_entries(s->begins, s->begins + count, count);
  rondo_sort_entries(s->ends, s->ends + count, count);
}

static uint64_t sweep_sections(sweep *s, const uint64_t *live, uint32_t section_count) {
  uint64_t bound = 0;
  const size_t count = s->obstacles->count;
  list_by_section(s);
  for (size_t section = 0, begun = 0, ended = 0; section < section_count; section++) {
    for (; ended < count && s->ends[ended].key <= section; ended++) change_holders(s, &s->ends[ended], UINT32_MAX);
    for (; begun < count && s->begins[begun].key <= section; begun++) change_holders(s, &s->begins[begun], 1);
    if (live[section] == 0) continue;
    const uint64_t offset = offset_of_free(s, live[section]);
    if (offset > bound) bound = offset;
  }
  return bound;
}

rondo_status rondo_obstacles_bound(rondo_scratch *scratch, const rondo_obstacles *obstacles, const uint64_t *live,
                                   uint32_t section_count, uint64_t *out_bound) {
  sweep s = {.obstacles = obstacles};
  RONDO_TRY(prepare_sweep(scratch, &s));
  *out_bound = sweep_sections(&s, live, section_count);
  return RONDO_OK;
}
