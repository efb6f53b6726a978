/* SPDX-License-Identifier: MIT
 * A walk over the boxes in the order of their beginnings, with their ends beside it; free slots lie on a stack, and a
 * new one is made only when all are taken.
 */
#include "plan/interval/equal_sizes.h"

bool rondo_boxes_are_equal(const rondo_boxes *boxes) {
  for (uint32_t i = 1; i < boxes->count; i++) {
    if (boxes->boxes[i].bytes != boxes->boxes[0].bytes) return false;
  }
  return true;
}

void rondo_equal_place(const rondo_boxes *boxes, rondo_sort_entry *entries, uint32_t *slots, uint64_t *offsets,
                       uint64_t *out_peak) {
  const uint64_t bytes = boxes->boxes[0].bytes;
  for (uint32_t i = 0; i < boxes->count; i++) entries[i] = (rondo_sort_entry){boxes->boxes[i].upper, i};
  rondo_sort_entries(entries, entries + boxes->count, boxes->count);
  uint32_t made = 0;
  uint32_t free_count = 0;
  for (uint32_t i = 0, ended = 0; i < boxes->count; i++) {
    for (; entries[ended].key <= boxes->boxes[i].lower; ended++) {
      slots[free_count++] = (uint32_t)(offsets[entries[ended].value] / bytes);
    }
    offsets[i] = (free_count > 0 ? slots[--free_count] : made++) * bytes;
  }
  *out_peak = made * bytes;
}
