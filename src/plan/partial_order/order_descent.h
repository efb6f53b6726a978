/* SPDX-License-Identifier: MIT
 * Lowering the best plan of a search by repairs, towards one target after another. Several may go down in parallel, a
 * thread each, each from the best plan there is.
 */
#ifndef RONDO_PLAN_PARTIAL_ORDER_ORDER_DESCENT_H
#define RONDO_PLAN_PARTIAL_ORDER_ORDER_DESCENT_H

#include <pthread.h>
#include <stdatomic.h>

#include "plan/partial_order/order_repair.h"

/* The best plan of a search and the lower bound, which threads share. All but is_over is read and written under the
 * lock. */
typedef struct rondo_order_best {
  pthread_mutex_t lock;
  const rondo_plan_options *options; /* read */
  size_t *offsets;                   /* the caller's, one an item */
  size_t count;
  size_t peak; /* SIZE_MAX: none yet */
  size_t bound;
  bool bound_is_final; /* else one that is higher may come */
  const char *method;
  _Atomic bool is_over; /* the plan is good enough, or the search was ended */
} rondo_order_best;

/* Takes the plan when it is better. */
void rondo_order_best_offer(rondo_order_best *best, const size_t *offsets, size_t peak, const char *method);
/* To the final one, if it is higher. */
void rondo_order_best_raise_bound(rondo_order_best *best, size_t bound);

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
