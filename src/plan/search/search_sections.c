/* SPDX-License-Identifier: MIT
 * Making sections: items sorted by lower and by upper are merged; wherever an end follows a beginning, the set of live
 * items is maximal and a section is kept. All lists are then filled by counting.
 */
#include "plan/search/search_sections.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

typedef struct moment {
  uint32_t step;
  uint32_t item;
} moment;

static int compare_moments(const void *a, const void *b) {
  const moment *x = a;
  const moment *y = b;
  if (x->step != y->step) return x->step < y->step ? -1 : 1;
  return (x->item > y->item) - (x->item < y->item);
}

static rondo_status allocate_words(const rondo_allocator *allocator, size_t count, uint32_t **out) {
  void *block = NULL;
  RONDO_TRY(rondo_allocate(allocator, count, sizeof **out, &block));
  *out = block;
  return RONDO_OK;
}

static rondo_status allocate_sizes(const rondo_allocator *allocator, size_t count, uint64_t **out) {
  void *block = NULL;
  RONDO_TRY(rondo_allocate(allocator, count, sizeof **out, &block));
  *out = block;
  return RONDO_OK;
}

static rondo_status allocate_items(const rondo_allocator *allocator, rondo_search_sections *s) {
  const size_t n = s->item_count;
  RONDO_TRY(allocate_words(allocator, n, &s->given));
  RONDO_TRY(allocate_words(allocator, n, &s->lower));
  RONDO_TRY(allocate_words(allocator, n, &s->upper));
  RONDO_TRY(allocate_words(allocator, n, &s->twin));
  RONDO_TRY(allocate_words(allocator, n, &s->cover_index));
  RONDO_TRY(allocate_words(allocator, n, &s->begins));
  RONDO_TRY(allocate_words(allocator, n, &s->ends));
  RONDO_TRY(allocate_sizes(allocator, n, &s->bytes));
  return allocate_sizes(allocator, n, &s->least);
}

static void take_items(rondo_search_sections *s, const rondo_search_item *items, size_t count) {
  uint32_t n = 0;
  for (size_t i = 0; i < count; i++) {
    if (items[i].bytes == 0) continue;
    s->given[n] = (uint32_t)i;
    s->bytes[n] = items[i].bytes;
    n++;
  }
}

/* Merges beginnings and ends in the order of time and numbers the kept sections. Ends come first in a step: what ends
 * there does not live in it. */
static void number_sections(rondo_search_sections *s, const moment *begins, const moment *ends) {
  uint32_t next_begin = 0;
  bool began = false;
  for (uint32_t next_end = 0; next_end < s->item_count; next_end++) {
    while (next_begin < s->item_count && begins[next_begin].step < ends[next_end].step) {
      s->lower[begins[next_begin++].item] = s->section_count;
      began = true;
    }
    if (began) s->section_count++;
    began = false;
    s->upper[ends[next_end].item] = s->section_count;
  }
}

static rondo_status find_sections(const rondo_allocator *allocator, rondo_search_sections *s,
                                  const rondo_search_item *items) {
  const size_t n = s->item_count;
  void *block = NULL;
  RONDO_TRY(rondo_allocate(allocator, 2 * n, sizeof(moment), &block));
  moment *begins = block;
  moment *ends = begins + n;
  for (uint32_t i = 0; i < n; i++) {
    begins[i] = (moment){items[s->given[i]].lower, i};
    ends[i] = (moment){items[s->given[i]].upper, i};
  }
  qsort(begins, n, sizeof *begins, compare_moments);
  qsort(ends, n, sizeof *ends, compare_moments);
  number_sections(s, begins, ends);
  rondo_release(allocator, block, 2 * n, sizeof(moment));
  return RONDO_OK;
}

static rondo_status allocate_sections(const rondo_allocator *allocator, rondo_search_sections *s) {
  const size_t n = (size_t)s->section_count + 2;
  RONDO_TRY(allocate_words(allocator, n, &s->begin_start));
  RONDO_TRY(allocate_words(allocator, n, &s->end_start));
  RONDO_TRY(allocate_words(allocator, n, &s->cover_start));
  RONDO_TRY(allocate_sizes(allocator, n, &s->load));
  return allocate_words(allocator, s->cover_count, &s->cover);
}

/* Turns counts at [k + 1] into starts at [k]. */
static void accumulate(uint32_t *starts, uint32_t count) {
  for (uint32_t k = 0; k < count; k++) starts[k + 1] += starts[k];
}

/* Filling moves each start to the start of the next list; this moves them back. */
static void step_back(uint32_t *starts, uint32_t count) {
  memmove(starts + 1, starts, count * sizeof *starts);
  starts[0] = 0;
}

static void fill_lists(rondo_search_sections *s) {
  const uint32_t sections = s->section_count;
  for (uint32_t i = 0; i < s->item_count; i++) {
    s->begin_start[s->lower[i] + 1]++;
    s->end_start[s->upper[i] + 1]++;
    for (uint32_t k = s->lower[i]; k < s->upper[i]; k++) {
      s->cover_start[k + 1]++;
      s->load[k] += s->bytes[i];
    }
  }
  accumulate(s->begin_start, sections + 1);
  accumulate(s->end_start, sections + 1);
  accumulate(s->cover_start, sections + 1);
  for (uint32_t i = 0; i < s->item_count; i++) {
    s->begins[s->begin_start[s->lower[i]]++] = i;
    s->ends[s->end_start[s->upper[i]]++] = i;
    for (uint32_t k = s->lower[i]; k < s->upper[i]; k++) s->cover[s->cover_start[k]++] = i;
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
  for (uint32_t k = s->begin_start[s->lower[item]]; s->begins[k] != item; k++) {
    const uint32_t other = s->begins[k];
    if (s->upper[other] == s->upper[item] && s->bytes[other] == s->bytes[item]) twin = other;
  }
  return twin;
}

/* The two smallest items of each section tell the smallest that any item meets there. */
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
      if (first == RONDO_SEARCH_NONE || s->bytes[i] < s->bytes[first]) {
        if (first != RONDO_SEARCH_NONE) second = s->bytes[first];
        first = i;
      } else if (s->bytes[i] < second) {
        second = s->bytes[i];
      }
    }
    for (uint32_t at = s->cover_start[k]; at < s->cover_start[k + 1]; at++) {
      const uint32_t i = s->cover[at];
      const uint64_t other = i == first ? second : s->bytes[first];
      if (other < s->least[i]) s->least[i] = other;
    }
  }
  for (uint32_t i = 0; i < s->item_count; i++) {
    if (s->least[i] == UINT64_MAX) s->least[i] = 1;
  }
}

/* False when there is nothing to search or too much. */
static bool count_items(const rondo_search_item *items, size_t count, uint32_t *out) {
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
    sum += s->upper[i] - s->lower[i];
    if (sum > RONDO_SEARCH_MAX_COVER) return false;
  }
  s->cover_count = (uint32_t)sum;
  return true;
}

static rondo_status make_sections(const rondo_allocator *allocator, const rondo_search_item *items, size_t count,
                                  rondo_search_sections *s, bool *out_made) {
  RONDO_TRY(allocate_items(allocator, s));
  take_items(s, items, count);
  RONDO_TRY(find_sections(allocator, s, items));
  if (!count_cover(s)) return RONDO_OK;
  RONDO_TRY(allocate_sections(allocator, s));
  fill_lists(s);
  relate_items(s);
  *out_made = true;
  return RONDO_OK;
}

rondo_status rondo_search_sections_make(const rondo_allocator *allocator, const rondo_search_item *items, size_t count,
                                        rondo_search_sections *out, bool *out_made) {
  *out = (rondo_search_sections){0};
  *out_made = false;
  if (!count_items(items, count, &out->item_count)) return RONDO_OK;
  const rondo_status status = make_sections(allocator, items, count, out, out_made);
  if (!*out_made) rondo_search_sections_free(allocator, out);
  return status;
}

void rondo_search_sections_free(const rondo_allocator *allocator, rondo_search_sections *s) {
  const size_t n = s->item_count;
  const size_t sections = (size_t)s->section_count + 2;
  uint32_t *const of_items[] = {s->given, s->lower, s->upper, s->twin, s->cover_index, s->begins, s->ends};
  for (size_t k = 0; k < sizeof of_items / sizeof *of_items; k++) rondo_release(allocator, of_items[k], n, 4);
  rondo_release(allocator, s->bytes, n, sizeof *s->bytes);
  rondo_release(allocator, s->least, n, sizeof *s->least);
  rondo_release(allocator, s->begin_start, sections, sizeof *s->begin_start);
  rondo_release(allocator, s->end_start, sections, sizeof *s->end_start);
  rondo_release(allocator, s->cover_start, sections, sizeof *s->cover_start);
  rondo_release(allocator, s->load, sections, sizeof *s->load);
  rondo_release(allocator, s->cover, s->cover_count, sizeof *s->cover);
  *s = (rondo_search_sections){0};
}
