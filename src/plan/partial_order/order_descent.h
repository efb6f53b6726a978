/* SPDX-License-Identifier: MIT
 * Lowers the best plan of a search by repairs, towards one target after another. Several descents may run in parallel,
 * each on a thread and from the best plan so far.
 */
#ifndef RONDO_PLAN_PARTIAL_ORDER_ORDER_DESCENT_H
#define RONDO_PLAN_PARTIAL_ORDER_ORDER_DESCENT_H

#include <pthread.h>
#include <stdatomic.h>

#include "plan/partial_order/order_repair.h"

/* The best plan of a search and the lower bound, which its threads share. The lock protects all fields but is_over. */
typedef struct rondo_order_best {
  pthread_mutex_t lock;
  const rondo_plan_options *options; /* checked and resolved */
  size_t *offsets;                   /* of the best plan, one for each item; the caller's */
  size_t count;
  size_t peak; /* SIZE_MAX: none yet */
  size_t bound;
  bool bound_is_final; /* false: the bound may still rise */
  const char *method;
  _Atomic bool is_over; /* the plan is good enough, or the search was stopped */
} rondo_order_best;

/* Takes the plan if it is better. */
void rondo_order_best_offer(rondo_order_best *best, const size_t *offsets, size_t peak, const char *method);
/* Sets the final bound. */
void rondo_order_best_raise_bound(rondo_order_best *best, size_t bound);

typedef struct rondo_order_descent {
  rondo_order_best *best;
  uint64_t deadline_ns; /* UINT64_MAX: none */
  uint64_t max_steps;
  uint32_t number; /* of this descent; it decides the targets and the random seed */
  size_t *offsets; /* of the plan that is being repaired */
  rondo_order_repair repair;
  uint32_t fails; /* targets missed in a row, less one for each success; the more, the closer the next target */
  uint32_t rounds;
} rondo_order_descent;

/* The caller sets best, deadline_ns and max_steps. Errors: OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_order_descent_make(rondo_scratch *scratch, const rondo_order_index *index,
                                                     uint32_t number, rondo_order_descent *out);

/* Steps taken, with those for many visits (include/rondo/plan.h, budget_steps). */
uint64_t rondo_order_descent_steps(const rondo_order_descent *descent);

/* Continues from the best plan, or from nothing, until the plan is good enough, the search is stopped, or the steps or
 * the time are used up. */
void rondo_order_descent_run(rondo_order_descent *descent);

#endif
