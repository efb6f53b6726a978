/* SPDX-License-Identifier: MIT
 * Goes over beginnings and ends in order, ends first at the same step. A beginning after an end opens a section: only
 * there the set of lives is not part of a larger one.
 */
#include "plan/interval/sections.h"

#include <stdbool.h>

static uint64_t key_of_end(uint32_t step) { return (uint64_t)step << 1; }
static uint64_t key_of_beginning(uint32_t step) { return (uint64_t)step << 1 | 1; }

uint32_t rondo_sections_number(rondo_box *boxes, size_t count, rondo_sort_entry *scratch) {
  rondo_sort_entry *bounds = scratch;
  for (size_t i = 0; i < count; i++) {
    bounds[2 * i] = (rondo_sort_entry){key_of_beginning(boxes[i].lower), (uint32_t)i};
    bounds[2 * i + 1] = (rondo_sort_entry){key_of_end(boxes[i].upper), (uint32_t)i};
  }
  rondo_sort_entries(bounds, scratch + 2 * count, 2 * count);
  uint32_t sections = 0;
  bool ended = true;
  for (size_t i = 0; i < 2 * count; i++) {
    const bool begins = (bounds[i].key & 1) != 0;
    if (begins && ended) sections++;
    ended = !begins;
    if (begins) {
      boxes[bounds[i].value].lower = sections - 1;
    } else {
      boxes[bounds[i].value].upper = sections;
    }
  }
  return sections;
}
