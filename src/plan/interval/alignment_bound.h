/* SPDX-License-Identifier: MIT
 * What alignment adds to the bytes live at once. Boxes that are all aligned to some power of two never share one of its
 * blocks: each takes as many blocks as it needs for itself, and only the highest ends before its last block does.
 */
#ifndef RONDO_PLAN_INTERVAL_ALIGNMENT_BOUND_H
#define RONDO_PLAN_INTERVAL_ALIGNMENT_BOUND_H

#include "plan/interval/boxes.h"

/* No plan has a lower peak. alignments: of each box, as logarithms; `entries` has room for 2 a box. 0 where rounded
 * sizes do not add up in 64 bits. Errors: OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_alignment_bound(const rondo_allocator *allocator, const rondo_boxes *boxes,
                                                  const uint8_t *alignments, rondo_sort_entry *entries,
                                                  uint64_t *out_bound);

#endif
