/* SPDX-License-Identifier: MIT
 * All lists are filled by counting: first how many entries each list has, then where it starts, then the entries.
 */
#include "plan/search/search_sections.h"

#include <string.h>

#include "base/error.h"

static rondo_status allocate_items(rondo_scratch *scratch, rondo_search_sections *s) {
  uint32_t **const lists[] = {&s->given, &s->twin, &s->cover_index, &s->begins, &s->ends};
  for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
    RONDO_TRY(rondo_scratch_take(scratch, s->item_count, sizeof **lists[i], lists[i]));
  }
  RONDO_TRY(rondo_scratch_take(scratch, s->item_count, sizeof *s->items, &s->items));
  return rondo_scratch_take(scratch, s->item_count, sizeof *s->least, &s->least);
}

static void take_items(rondo_search_sections *s, const rondo_box *items, size_t count) {
  uint32_t n = 0;
  for (size_t i = 0; i < count; i++) {
    if (items[i].bytes == 0) continue;
    s->given[n] = (uint32_t)i;
    s->items[n++] = items[i];
  }
}

static rondo_status find_sections(const rondo_allocator *allocator, rondo_search_sections *s) {
  rondo_sort_entry *entries = NULL;
  RONDO_TRY(rondo_allocate_items(allocator, s->item_count, 4 * sizeof *entries, &entries));
  s->section_count = rondo_sections_number(s->items, s->item_count, entries);
  rondo_release(allocator, entries, s->item_count, 4 * sizeof *entries);
  return RONDO_OK;
}

static rondo_status allocate_sections(rondo_scratch *scratch, rondo_search_sections *s) {
  const size_t n = (size_t)s->section_count + 2;
  RONDO_TRY(rondo_scratch_take(scratch, n, sizeof *s->begin_start, &s->begin_start));
  RONDO_TRY(rondo_scratch_take(scratch, n, sizeof *s->end_start, &s->end_start));
  RONDO_TRY(rondo_scratch_take(scratch, n, sizeof *s->cover_start, &s->cover_start));
  RONDO_TRY(rondo_scratch_take(scratch, n, sizeof *s->load, &s->load));
  return rondo_scratch_take(scratch, s->cover_count, sizeof *s->cover, &s->cover);
}

/* Turns counts at [k + 1] into starts at [k]. */
static void accumulate(uint32_t *starts, uint32_t count) {
  for (uint32_t k = 0; k < count; k++) starts[k + 1] += starts[k];
}

/* Filling has moved each start to the start of the next list; this moves it back. */
static void step_back(uint32_t *starts, uint32_t count) {
  memmove(starts + 1, starts, count * sizeof *starts);
  starts[0] = 0;
}

static void fill_lists(rondo_search_sections *s) {
  const uint32_t sections = s->section_count;
  for (uint32_t i = 0; i < s->item_count; i++) {
    s->begin_start[s->items[i].lower + 1]++;
    s->end_start[s->items[i].upper + 1]++;
    for (uint32_t k = s->items[i].lower; k < s->items[i].upper; k++) {
      s->cover_start[k + 1]++;
      s->load[k] += s->items[i].bytes;
    }
  }
  accumulate(s->begin_start, sections + 1);
  accumulate(s->end_start, sections + 1);
  accumulate(s->cover_start, sections + 1);
  for (uint32_t i = 0; i < s->item_count; i++) {
    s->begins[s->begin_start[s->items[i].lower]++] = i;
    s->ends[s->end_start[s->items[i].upper]++] = i;
    for (uint32_t k = s->items[i].lower; k < s->items[i].upper; k++) s->cover[s->cover_start[k]++] = i;
  }
  step_back(s->begin_start, sections + 1);
  step_back(s->end_start, sections + 1);
  step_back(s->cover_start, sections + 1);
  for (uint32_t k = 0; k < sections; k++) {
    if (s->load[k] > s->max_load) s->max_load = s->load[k];
  }
}

static uint32_t find_twin(const rondo_search_sections *s, uint32_t item) {
  uint32_t twin = RONDO_SEARCH_NONE;
  for (uint32_t k = s->begin_start[s->items[item].lower]; s->begins[k] != item; k++) {
    const uint32_t other = s->begins[k];
    if (s->items[other].upper == s->items[item].upper && s->items[other].bytes == s->items[item].bytes) twin = other;
  }
  return twin;
}

/* The two smallest items of each section give the smallest item that any item overlaps there. */
static void relate_items(rondo_search_sections *s) {
  for (uint32_t i = 0; i < s->item_count; i++) {
    s->least[i] = UINT64_MAX;
    s->twin[i] = find_twin(s, i);
  }
  for (uint32_t k = 0; k < s->section_count; k++) {
    uint32_t first = RONDO_SEARCH_NONE;
    uint64_t second = UINT64_MAX;
    for (uint32_t at = s->cover_start[k]; at < s->cover_start[k + 1]; at++) {
      const uint32_t i = s->cover[at];
      if (first == RONDO_SEARCH_NONE || s->items[i].bytes < s->items[first].bytes) {
        if (first != RONDO_SEARCH_NONE) second = s->items[first].bytes;
        first = i;
      } else if (s->items[i].bytes < second) {
        second = s->items[i].bytes;
      }
    }
    for (uint32_t at = s->cover_start[k]; at < s->cover_start[k + 1]; at++) {
      const uint32_t i = s->cover[at];
      const uint64_t other = i == first ? second : s->items[first].bytes;
      if (other < s->least[i]) s->least[i] = other;
    }
  }
  for (uint32_t i = 0; i < s->item_count; i++) {
    if (s->least[i] == UINT64_MAX) s->least[i] = 1;
  }
}

/* False if there is nothing to search, or too much. */
static bool count_items(const rondo_box *items, size_t count, uint32_t *out) {
  uint32_t kept = 0;
  uint64_t sum = 0;
  for (size_t i = 0; i < count; i++) {
    if (items[i].bytes == 0) continue;
    if (items[i].bytes >= RONDO_SEARCH_MAX_BYTES - sum || kept == RONDO_SEARCH_MAX_ITEMS) return false;
    sum += items[i].bytes;
    kept++;
  }
  *out = kept;
  return kept > 0;
}

static bool count_cover(rondo_search_sections *s) {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < s->item_count; i++) {
    s->cover_index[i] = (uint32_t)sum;
    sum += s->items[i].upper - s->items[i].lower;
    if (sum > RONDO_SEARCH_MAX_COVER) return false;
  }
  s->cover_count = (uint32_t)sum;
  return true;
}

rondo_status rondo_search_sections_make(rondo_scratch *scratch, const rondo_box *items, size_t count,
                                        rondo_search_sections *out, bool *out_made) {
  *out = (rondo_search_sections){0};
  *out_made = false;
  if (!count_items(items, count, &out->item_count)) return RONDO_OK;
  RONDO_TRY(allocate_items(scratch, out));
  take_items(out, items, count);
  RONDO_TRY(find_sections(scratch->allocator, out));
  if (!count_cover(out)) return RONDO_OK;
  RONDO_TRY(allocate_sections(scratch, out));
  fill_lists(out);
  relate_items(out);
  *out_made = true;
  return RONDO_OK;
}
