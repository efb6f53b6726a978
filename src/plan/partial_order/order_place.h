/* SPDX-License-Identifier: MIT
 * Placing by lowest offset: of the items that can be placed lowest on top of those already placed, places the preferred
 * one, and repeats.
 */
#ifndef RONDO_PLAN_PARTIAL_ORDER_ORDER_PLACE_H
#define RONDO_PLAN_PARTIAL_ORDER_ORDER_PLACE_H

#include "plan/partial_order/order_index.h"

typedef struct rondo_order_placer {
  const rondo_order_index *index;
  size_t *lowest;  /* of each entry: the lowest offset where it can be placed, unless the lift of its block is higher */
  uint32_t *ranks; /* of each entry: smaller is preferred; UINT32_MAX: placed */
  struct rondo_order_placer_block *blocks;
  uint32_t block_count, leaves;
  uint32_t *winners; /* tournament tree over the blocks */
  rondo_index_conflicts conflicts;
} rondo_order_placer;

/* Errors: OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_order_placer_make(rondo_scratch *scratch, const rondo_order_index *index,
                                                    rondo_order_placer *out);

/* Places all items. Of those with the same lowest offset, the one with the smallest rank goes first. `ranks` has a
 * different rank for each item. `offsets` has room for each item. Errors: LIMIT_EXCEEDED (an offset does not fit in a
 * size_t). */
RONDO_MUST_USE rondo_status rondo_order_placer_run(rondo_order_placer *placer, const uint32_t *ranks, size_t *offsets,
                                                   size_t *out_peak);

/* Places the items by rank, each on top of those placed before it. *out_peak: SIZE_MAX where an offset does not fit in
 * a size_t. Otherwise as above. Errors: OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_order_placer_stack(rondo_scratch *scratch, rondo_order_placer *placer,
                                                     const uint32_t *ranks, size_t *offsets, size_t *out_peak);

#endif
