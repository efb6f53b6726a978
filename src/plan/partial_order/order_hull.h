/* SPDX-License-Identifier: MIT
 * A problem on a partial order as one of intervals. Items that conflict overlap, but items that overlap need not
 * conflict. So a plan of the intervals is a plan on the order, with a peak that may be higher.
 */
#ifndef RONDO_PLAN_PARTIAL_ORDER_ORDER_HULL_H
#define RONDO_PLAN_PARTIAL_ORDER_ORDER_HULL_H

#include "plan/partial_order/order_lifetimes.h"

typedef struct rondo_hull {
  rondo_plan_copy copy; /* as intervals, without branches */
  size_t max_live;      /* bytes live at once */
} rondo_hull;

/* Each node is a step. An item lives from its alloc node until after the last alloc node of an item that it conflicts
 * with. Branches are ignored. Errors: OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_hull_make(rondo_scratch *scratch, const rondo_lifetimes *lifetimes, rondo_hull *out);

#endif
