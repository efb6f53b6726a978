/* SPDX-License-Identifier: MIT
 * One pass for each alignment that occurs, over the boxes that have it or a larger one. A section needs the blocks of
 * those that live in it, without the longest tail there of a last block: sections are met with the longest tails first.
 */
#include "plan/interval/alignment_bound.h"

#include <string.h>

#include "base/error.h"

typedef struct worker {
  const rondo_boxes *boxes;
  const uint8_t *alignments;
  rondo_sort_entry *entries;
  uint32_t entry_count;
  uint64_t *lives; /* of each section: bytes of whole blocks */
  uint32_t *next;  /* of each section and the end: the section itself, or one after it, once it was met */
  uint32_t level;  /* logarithm */
} worker;

static uint64_t rounded(const worker *w, uint32_t box) {
  const uint64_t rest = (UINT64_C(1) << w->level) - 1;
  return (w->boxes->boxes[box].bytes + rest) & ~rest;
}

/* Lists those of the level by their tails, and sums up what lives. False: it does not fit in 64 bits. */
static bool list_level(worker *w) {
  uint64_t sum = 0;
  w->entry_count = 0;
  memset(w->lives, 0, ((size_t)w->boxes->section_count + 1) * sizeof *w->lives);
  for (uint32_t i = 0; i < w->boxes->count; i++) {
    const rondo_box *box = &w->boxes->boxes[i];
    if (w->alignments[i] < w->level) continue;
    const uint64_t bytes = rounded(w, i);
    if (bytes < box->bytes || __builtin_add_overflow(sum, bytes, &sum)) return false;
    w->lives[box->lower] += bytes;
    w->lives[box->upper] -= bytes;
    w->entries[w->entry_count++] = (rondo_sort_entry){UINT64_MAX - (bytes - box->bytes), i};
  }
  for (uint32_t i = 1; i < w->boxes->section_count; i++) w->lives[i] += w->lives[i - 1];
  rondo_sort_entries(w->entries, w->entries + w->boxes->count, w->entry_count);
  return true;
}

/* The next section from `from` on that was not met yet. Halves the path that it walks. */
static uint32_t next_section(uint32_t *next, uint32_t from) {
  while (next[from] != from) {
    next[from] = next[next[from]];
    from = next[from];
  }
  return from;
}

static uint64_t bound_of_level(worker *w) {
  uint64_t bound = 0;
  if (!list_level(w)) return 0;
  for (uint32_t i = 0; i <= w->boxes->section_count; i++) w->next[i] = i;
  for (uint32_t i = 0; i < w->entry_count; i++) {
    const rondo_box *box = &w->boxes->boxes[w->entries[i].value];
    const uint64_t tail = UINT64_MAX - w->entries[i].key;
    for (uint32_t at = next_section(w->next, box->lower); at < box->upper; at = next_section(w->next, at)) {
      if (w->lives[at] - tail > bound) bound = w->lives[at] - tail;
      w->next[at] = at + 1;
    }
  }
  return bound;
}

static uint64_t bound_of_all(worker *w) {
  uint64_t levels = 0;
  uint64_t bound = 0;
  for (uint32_t i = 0; i < w->boxes->count; i++) levels |= UINT64_C(1) << w->alignments[i];
  for (; levels > 0; levels &= levels - 1) {
    w->level = (uint32_t)__builtin_ctzll(levels);
    const uint64_t own = bound_of_level(w);
    if (own > bound) bound = own;
  }
  return bound;
}

rondo_status rondo_alignment_bound(const rondo_allocator *allocator, const rondo_boxes *boxes,
                                   const uint8_t *alignments, rondo_sort_entry *entries, uint64_t *out_bound) {
  const size_t places = (size_t)boxes->section_count + 1;
  worker w = {.boxes = boxes, .alignments = alignments, .entries = entries};
  rondo_scratch scratch = {.allocator = allocator};
  rondo_status status = rondo_scratch_take(&scratch, places, sizeof *w.lives, &w.lives);
  if (status == RONDO_OK) status = rondo_scratch_take(&scratch, places, sizeof *w.next, &w.next);
  if (status == RONDO_OK) *out_bound = bound_of_all(&w);
  rondo_scratch_free(&scratch);
  return status;
}
