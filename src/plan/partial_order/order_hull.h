/* SPDX-License-Identifier: MIT
 * A partial order's problem as one of intervals: items that conflict overlap, but items that overlap need not conflict.
 * So a plan of the intervals is one of the order too, though it may need more.
 */
#ifndef RONDO_PLAN_PARTIAL_ORDER_ORDER_HULL_H
#define RONDO_PLAN_PARTIAL_ORDER_ORDER_HULL_H

#include "plan/partial_order/order_lives.h"

typedef struct rondo_hull {
  rondo_plan_copy copy; /* as intervals, without branches */
  size_t most_live;     /* bytes at once */
} rondo_hull;

/* Steps are the nodes' numbers: an item lives from its alloc node up to after the last one that allocates something it
 * conflicts with. Branches are left out of account. Errors: OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_hull_make(rondo_scratch *scratch, const rondo_lives *lives, rondo_hull *out);

#endif
