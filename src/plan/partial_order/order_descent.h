/* SPDX-License-Identifier: MIT
 * Lowering the best plan of a search by repairs, towards one target after another. Several may go down in parallel, a
 * thread each, each from the best plan there is.
 */
#ifndef RONDO_PLAN_PARTIAL_ORDER_ORDER_DESCENT_H
#define RONDO_PLAN_PARTIAL_ORDER_ORDER_DESCENT_H

#include "plan/partial_order/order_best.h"
#include "plan/partial_order/order_repair.h"

typedef struct rondo_order_descent {
  rondo_order_best *best;
  uint64_t deadline_ns; /* UINT64_MAX: none */
  uint64_t most_steps;
  uint32_t number; /* among those in parallel: each aims, and begins, in its own way */
  size_t *offsets; /* of the plan in hand */
  rondo_order_repair repair;
  uint32_t fails; /* in a row, less one for each success: the more, the less it aims for */
  uint32_t rounds;
} rondo_order_descent;

/* best, deadline_ns and most_steps are the caller's to set. Errors: OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_order_descent_make(rondo_scratch *scratch, const rondo_order_index *index,
                                                     uint32_t number, rondo_order_descent *out);

/* Steps that were taken: more where they looked at many pieces (include/rondo/plan.h, budget_steps). */
uint64_t rondo_order_descent_steps(const rondo_order_descent *descent);

/* From the best plan, or from nothing, until it is good enough, the search is ended, or steps or time are over. */
void rondo_order_descent_run(rondo_order_descent *descent);

#endif
