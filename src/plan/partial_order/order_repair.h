/* SPDX-License-Identifier: MIT
 * Brings a plan below a target by ejection chains: items that end above the target are unplaced, and each is placed
 * again where it evicts the least, until none is left. One thread at a time. Several repairs may share an index.
 */
#ifndef RONDO_PLAN_PARTIAL_ORDER_ORDER_REPAIR_H
#define RONDO_PLAN_PARTIAL_ORDER_ORDER_REPAIR_H

#include "plan/partial_order/order_index.h"

/* Its pieces are the entries of the index, and then the obstacles. */
typedef struct rondo_order_repair {
  const rondo_order_index *index;
  size_t unit;     /* of lows, highs, bytes and target, in bytes: a power of two */
  uint32_t target; /* placed items end at or below it */
  uint64_t steps;  /* taken in all; a step places one item */
  uint64_t visits; /* of ranges, entries and pieces, in all */
  uint32_t pieces;
  uint32_t *lows;  /* of each piece: where it begins; UINT32_MAX: unplaced */
  uint32_t *highs; /* of each piece: where it ends */
  uint32_t *bytes; /* of each entry */
  int32_t *weight; /* of each entry: the cost of evicting it the first time */
  int32_t *costs;  /* of each piece: the cost of evicting it now */
  uint32_t *heap;  /* the unplaced entries; the highest cost first */
  uint32_t unplaced_count;
  rondo_index_conflicts conflicts; /* of the entry that is being placed */
  /* The placed pieces of these, in bins of addresses. */
  unsigned shift; /* from an address to its bin */
  uint32_t bin_count;
  int64_t *begun, *ended;           /* of each bin: total cost of the pieces that begin or end in lower bins */
  uint32_t *first_low, *first_high; /* of each bin: the first piece that begins or ends there; UINT32_MAX: none */
  uint32_t *next_low, *next_high;   /* of each piece: the next of its bin */
} rondo_order_repair;

/* Errors: OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_order_repair_make(rondo_scratch *scratch, const rondo_order_index *index,
                                                    rondo_order_repair *out);

/* Begins with a plan; what ends above `target` is unplaced. NULL: all items are. Costs stay. */
void rondo_order_repair_begin(rondo_order_repair *repair, const size_t *offsets, size_t target);

/* Takes up to `steps` steps. True if all items are placed. */
bool rondo_order_repair_run(rondo_order_repair *repair, uint64_t steps);

/* Writes the plan, if all items are placed; the offsets of items without bytes stay. Returns its peak. */
size_t rondo_order_repair_read(const rondo_order_repair *repair, size_t *offsets);

/* Sets the costs to small random ones that depend on the seed. */
void rondo_order_repair_reset_costs(rondo_order_repair *repair, uint64_t seed);

#endif
