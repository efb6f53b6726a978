/* SPDX-License-Identifier: MIT
 * Placing by lowest offset: repeatedly, of the items that could lie lowest on top of those already placed, the
 * preferred one is placed there.
 */
#ifndef RONDO_PLAN_PARTIAL_ORDER_ORDER_PLACE_H
#define RONDO_PLAN_PARTIAL_ORDER_ORDER_PLACE_H

#include "plan/partial_order/order_index.h"

typedef struct rondo_order_placer {
  const rondo_order_index *index;
  size_t *lowest;  /* of each entry: where it could lie at the lowest, or where its block knows of no higher place */
  uint32_t *ranks; /* of each entry: small is preferred; UINT32_MAX: placed */
  struct rondo_order_placer_block *blocks;
  uint32_t block_count, leaves;
  uint32_t *winners; /* a tree over the blocks: which has what goes next */
  rondo_index_answer met;
} rondo_order_placer;

/* Errors: OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_order_placer_make(rondo_scratch *scratch, const rondo_order_index *index,
                                                    rondo_order_placer *out);

/* Places all items. Of those that could lie equally low, the one with the least rank goes first; ranks are one an item,
 * each number once. `offsets` has room for one an item. Errors: LIMIT_EXCEEDED (an offset does not fit in a size_t). */
RONDO_MUST_USE rondo_status rondo_order_placer_run(rondo_order_placer *placer, const uint32_t *ranks, size_t *offsets,
                                                   size_t *out_peak);

#endif
