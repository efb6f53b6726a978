/* SPDX-License-Identifier: MIT
 * Placing by lowest offset: again and again, of the items that could lie lowest on top of those already placed, the
 * preferred one is placed there.
 */
#ifndef RONDO_PLAN_ORDER_PLACE_H
#define RONDO_PLAN_ORDER_PLACE_H

#include "plan/order_lives.h"

/* Room for placing the items of one problem again and again. */
typedef struct rondo_order_placer {
  const rondo_lives *lives;
  size_t grain; /* that all alignments are multiples of */
  struct rondo_order_placer_group *groups;
  size_t *lowest;      /* by place: where an item could lie at the lowest */
  uint32_t *ranks;     /* by place: small is preferred; UINT32_MAX: placed */
  uint32_t *obstacles; /* those with bytes, by offset */
  size_t obstacle_count;
} rondo_order_placer;

/* Errors: OUT_OF_MEMORY; *out can be freed either way. */
RONDO_MUST_USE rondo_status rondo_order_placer_make(const rondo_allocator *allocator, const rondo_lives *lives,
                                                    rondo_order_placer *out);
void rondo_order_placer_free(const rondo_allocator *allocator, rondo_order_placer *placer);

/* Places all items. Of those that could lie equally low, the one with the least rank goes first; ranks are one an item,
 * each number once. `offsets` has room for one an item. Errors: LIMIT_EXCEEDED (an offset does not fit in a size_t). */
RONDO_MUST_USE rondo_status rondo_order_placer_run(rondo_order_placer *placer, const uint32_t *ranks, size_t *offsets,
                                                   size_t *out_peak);

#endif
