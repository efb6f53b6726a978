/* SPDX-License-Identifier: MIT
 * The spacing of checkpoints is doubled until the boxes that live at all of them fit into the lists.
 */
#include "plan/interval/overlapping_boxes.h"

#include "base/binary_search.h"
#include "base/error.h"

enum { FIRST_SPACING = 64, ENTRIES_PER_BOX = 2 };

static size_t checkpoint_capacity(uint32_t boxes) { return boxes / FIRST_SPACING + 2; }

/* Appends the boxes that live when box `at` begins: from the list of the last checkpoint, and from the boxes after it.
 * False: the lists are full. */
static bool list_living(rondo_neighbours *n, uint32_t checkpoint, uint32_t at) {
  const rondo_box *boxes = n->boxes->boxes;
  const uint64_t capacity = (uint64_t)n->boxes->count * ENTRIES_PER_BOX;
  uint32_t end = n->starts[checkpoint];
  for (uint32_t k = checkpoint == 0 ? end : n->starts[checkpoint - 1]; k < n->starts[checkpoint]; k++) {
    if (boxes[n->lists[k]].upper <= boxes[at].lower) continue;
    if (end == capacity) return false;
    n->lists[end++] = n->lists[k];
  }
  for (uint32_t i = checkpoint == 0 ? at : at - n->spacing; i < at; i++) {
    if (boxes[i].upper <= boxes[at].lower) continue;
    if (end == capacity) return false;
    n->lists[end++] = i;
  }
  n->starts[checkpoint + 1] = end;
  return true;
}

static bool list_all(rondo_neighbours *n) {
  for (uint32_t at = 0, checkpoint = 0; at < n->boxes->count; checkpoint++) {
    if (!list_living(n, checkpoint, at)) return false;
    if (n->boxes->count - at <= n->spacing) break;
    at += n->spacing;
  }
  return true;
}

/* The boxes that overlap a box are those that begin before its end, less those that end before its beginning. */
static rondo_status count_overlaps(rondo_scratch *scratch, rondo_neighbours *n) {
  const rondo_box *boxes = n->boxes->boxes;
  const size_t sections = (size_t)n->boxes->section_count + 1;
  uint32_t *begun = NULL; /* before each section */
  RONDO_TRY(rondo_scratch_take(scratch, sections, 2 * sizeof *begun, &begun));
  uint32_t *const ended = begun + sections;
  for (uint32_t i = 0; i < n->boxes->count; i++) {
    begun[boxes[i].lower + 1]++;
    ended[boxes[i].upper]++;
  }
  for (size_t i = 1; i < sections; i++) {
    begun[i] += begun[i - 1];
    ended[i] += ended[i - 1];
  }
  for (uint32_t i = 0; i < n->boxes->count; i++) {
    n->counts[i] = begun[boxes[i].upper] - ended[boxes[i].lower] - 1;
    n->sum += n->counts[i];
  }
  return RONDO_OK;
}

rondo_status rondo_neighbours_make(rondo_scratch *scratch, const rondo_boxes *boxes, rondo_neighbours *out) {
  const uint32_t count = boxes->count;
  *out = (rondo_neighbours){.boxes = boxes, .spacing = FIRST_SPACING};
  RONDO_TRY(rondo_scratch_take(scratch, checkpoint_capacity(count), sizeof *out->starts, &out->starts));
  RONDO_TRY(rondo_scratch_take(scratch, count, ENTRIES_PER_BOX * sizeof *out->lists, &out->lists));
  RONDO_TRY(rondo_scratch_take(scratch, count, sizeof *out->found, &out->found));
  RONDO_TRY(rondo_scratch_take(scratch, count, sizeof *out->counts, &out->counts));
  while (!list_all(out)) out->spacing *= 2;
  return count_overlaps(scratch, out);
}

/* The first box that begins in `section` or after it. */
static uint32_t first_from(const rondo_boxes *boxes, uint32_t section) {
  uint32_t low = 0, high = boxes->count;
  RONDO_BINARY_SEARCH(low, high, middle, boxes->boxes[middle].lower < section)
  return low;
}

void rondo_neighbours_find(rondo_neighbours *n, uint32_t box) {
  const rondo_box *boxes = n->boxes->boxes;
  const uint32_t lower = boxes[box].lower;
  const uint32_t first = first_from(n->boxes, lower);
  const uint32_t checkpoint = first / n->spacing;
  n->found_count = 0;
  for (uint32_t k = n->starts[checkpoint]; k < n->starts[checkpoint + 1]; k++) {
    if (boxes[n->lists[k]].upper > lower) n->found[n->found_count++] = n->lists[k];
  }
  for (uint32_t i = checkpoint * n->spacing; i < first; i++) {
    if (boxes[i].upper > lower) n->found[n->found_count++] = i;
  }
  for (uint32_t i = first; i < n->boxes->count && boxes[i].lower < boxes[box].upper; i++) {
    if (i != box) n->found[n->found_count++] = i;
  }
}
