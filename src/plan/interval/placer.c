/* SPDX-License-Identifier: MIT
 * The ways of placing, in the same working memory.
 */
#include "plan/interval/placer.h"

#include "base/error.h"
#include "plan/interval/best_fit.h"
#include "plan/interval/equal_sizes.h"

rondo_status rondo_placer_make(const rondo_allocator *allocator, uint32_t boxes, uint32_t sections, rondo_placer *out) {
  *out = (rondo_placer){.room = boxes};
  RONDO_TRY(rondo_skyline_make(allocator, boxes, sections, &out->skyline));
  RONDO_TRY(rondo_allocate_items(allocator, boxes, sizeof *out->trial, &out->trial));
  RONDO_TRY(rondo_allocate_items(allocator, boxes, sizeof *out->order, &out->order));
  RONDO_TRY(rondo_allocate_items(allocator, boxes, sizeof *out->placed, &out->placed));
  return rondo_allocate_items(allocator, boxes, 2 * sizeof *out->entries, &out->entries);
}

void rondo_placer_free(const rondo_allocator *allocator, rondo_placer *placer) {
  rondo_skyline_free(allocator, &placer->skyline);
  rondo_release(allocator, placer->trial, placer->room, sizeof *placer->trial);
  rondo_release(allocator, placer->order, placer->room, sizeof *placer->order);
  rondo_release(allocator, placer->placed, placer->room, sizeof *placer->placed);
  rondo_release(allocator, placer->entries, placer->room, 2 * sizeof *placer->entries);
  *placer = (rondo_placer){0};
}

void rondo_placer_bind(rondo_placer *placer, const rondo_boxes *boxes) {
  placer->boxes = boxes;
  rondo_skyline_bind(&placer->skyline, boxes);
}

bool rondo_placer_by_order(rondo_placer *placer, uint64_t limit, uint64_t *out_peak) {
  return rondo_skyline_place(&placer->skyline, placer->order, limit, placer->trial, out_peak);
}

bool rondo_placer_by_rule(rondo_placer *placer, const rondo_rule *rule, uint64_t limit, uint64_t *out_peak) {
  rondo_rule_order(rule, placer->boxes, placer->entries, placer->order);
  return rondo_placer_by_order(placer, limit, out_peak);
}

bool rondo_placer_by_sweep(rondo_placer *placer, uint64_t limit, uint64_t *out_peak) {
  return rondo_sweep_fit(placer->boxes, limit, placer->placed, placer->trial, out_peak);
}

bool rondo_placer_by_first_fit(rondo_placer *placer, uint64_t limit, uint64_t *out_peak) {
  rondo_rule_order(rondo_first_fit_rule(), placer->boxes, placer->entries, placer->order);
  return rondo_first_fit(placer->boxes, placer->order, limit, placer->placed, placer->trial, out_peak);
}

bool rondo_placer_by_slots(rondo_placer *placer, uint64_t *out_peak) {
  if (!rondo_boxes_are_equal(placer->boxes)) return false;
  rondo_equal_place(placer->boxes, placer->entries, placer->placed, placer->trial, out_peak);
  return true;
}
