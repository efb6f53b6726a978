/* SPDX-License-Identifier: MIT
 * Which boxes live at once with a given one. Boxes stand in the order of their beginnings, so those that begin during
 * its life are a stretch of them; who lives already when it begins is looked up at a checkpoint before. There are as
 * few checkpoints as keep what they list linear in the boxes.
 */
#ifndef RONDO_PLAN_INTERVAL_OVERLAPPING_BOXES_H
#define RONDO_PLAN_INTERVAL_OVERLAPPING_BOXES_H

#include "plan/interval/boxes.h"

typedef struct rondo_neighbours {
  const rondo_boxes *boxes;
  uint32_t spacing; /* boxes from one checkpoint to the next */
  uint32_t *starts; /* starts[c] up to starts[c + 1] in `lists` are the boxes before checkpoint c that live there */
  uint32_t *lists;  /* 2 a box */
  uint32_t *met;    /* found by the last call */
  uint32_t met_count;
  uint32_t *counts; /* of each box: how many overlap it */
  uint64_t sum;     /* of the counts */
} rondo_neighbours;

/* The boxes must stay. Errors: OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_neighbours_make(rondo_scratch *scratch, const rondo_boxes *boxes,
                                                  rondo_neighbours *out);

/* Finds the boxes that live at once with `box`, without itself, in the order in which they stand. */
void rondo_neighbours_find(rondo_neighbours *neighbours, uint32_t box);

#endif
