/* SPDX-License-Identifier: MIT
 * A part's boxes are what is searched. A new search has the part's visits as its seed, so that one that is begun again
 * does not do the same again.
 */
#include "plan/search/part_search.h"

#include "base/error.h"

void rondo_part_search_free(rondo_part_search *search) {
  rondo_search_end(search->search);
  *search = (rondo_part_search){0};
}

static rondo_status begin(const rondo_allocator *allocator, rondo_part_search *search, const rondo_part *part,
                          uint64_t seed) {
  const rondo_boxes *boxes = &part->boxes;
  void *block = NULL;
  rondo_part_search_free(search);
  if (boxes->obstacles != NULL || boxes->alignments != NULL) return RONDO_OK;
  RONDO_TRY(rondo_allocate(allocator, boxes->count, sizeof(rondo_search_item), &block));
  rondo_search_item *items = block;
  for (uint32_t i = 0; i < boxes->count; i++) {
    items[i] = (rondo_search_item){boxes->boxes[i].bytes, boxes->boxes[i].lower, boxes->boxes[i].upper};
  }
  const rondo_status status =
      rondo_search_begin(allocator, items, boxes->count, part->lower_bound, seed, &search->search);
  rondo_release(allocator, block, boxes->count, sizeof(rondo_search_item));
  search->part = part;
  return status;
}

rondo_status rondo_part_search_run(const rondo_allocator *allocator, rondo_part_search *search, rondo_part *part,
                                   rondo_improvement *improvement, uint64_t goal, uint64_t steps, uint64_t *offsets) {
  const rondo_plan_options *options = improvement->options;
  const uint64_t before = part->peak;
  if (search->part != part) RONDO_TRY(begin(allocator, search, part, options->seed + part->visits));
  if (search->search == NULL) {
    part->unsearchable = true;
    return RONDO_OK;
  }
  rondo_search_budget budget = {
      .deadline_ns = improvement->deadline_ns, .steps = options->budget_steps, .target = goal};
  atomic_store(&budget.used, improvement->steps);
  const rondo_status status = rondo_search_run(search->search, options->threads, &budget, steps, offsets + part->first,
                                               &part->peak, &part->optimal);
  improvement->steps = atomic_load(&budget.used);
  if (part->peak < before) part->method = "search";
  return status;
}
