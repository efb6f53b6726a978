/* SPDX-License-Identifier: MIT
 * Finds the boxes that live at the same time as a given one. Boxes are sorted by their first sections, so those that
 * begin during its life are neighbours in the array. Those that already live when it begins are looked up at the
 * checkpoint before. The spacing of checkpoints keeps the size of their lists linear in the boxes.
 */
#ifndef RONDO_PLAN_INTERVAL_OVERLAPPING_BOXES_H
#define RONDO_PLAN_INTERVAL_OVERLAPPING_BOXES_H

#include "plan/interval/boxes.h"

typedef struct rondo_neighbours {
  const rondo_boxes *boxes;
  uint32_t spacing; /* boxes from one checkpoint to the next */
  uint32_t *starts; /* lists[starts[c]] to lists[starts[c + 1] - 1] are the boxes before checkpoint c that live there */
  uint32_t *lists;  /* 2 for each box */
  uint32_t *found;  /* found by the last call */
  uint32_t found_count;
  uint32_t *counts; /* of each box: how many overlap it */
  uint64_t sum;     /* of the counts */
} rondo_neighbours;

/* The boxes must outlive the result. Errors: OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_neighbours_make(rondo_scratch *scratch, const rondo_boxes *boxes,
                                                  rondo_neighbours *out);

/* Finds the boxes that live at the same time as `box`, in ascending order, without `box`. */
void rondo_neighbours_find(rondo_neighbours *neighbours, uint32_t box);

#endif
