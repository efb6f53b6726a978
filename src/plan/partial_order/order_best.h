/* SPDX-License-Identifier: MIT
 * The best plan of a search and the lower bound, which threads share.
 */
#ifndef RONDO_PLAN_PARTIAL_ORDER_ORDER_BEST_H
#define RONDO_PLAN_PARTIAL_ORDER_ORDER_BEST_H

#include <pthread.h>
#include <stdatomic.h>

#include "plan/plan_internal.h"

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

void rondo_order_best_init(rondo_order_best *best, const rondo_plan_options *options, size_t *offsets, size_t count,
                           size_t bound);
void rondo_order_best_destroy(rondo_order_best *best);

/* Takes the plan when it is better. */
void rondo_order_best_offer(rondo_order_best *best, const size_t *offsets, size_t peak, const char *method);
/* To the final one, if it is higher. */
void rondo_order_best_raise_bound(rondo_order_best *best, size_t bound);

/* Nothing more is wanted of any thread. */
void rondo_order_best_end(rondo_order_best *best);
bool rondo_order_best_is_over(const rondo_order_best *best);

typedef struct rondo_order_standing {
  size_t peak, bound;
  bool bound_is_final;
} rondo_order_standing;

/* Also copies the plan, if there is one. */
rondo_order_standing rondo_order_best_read(rondo_order_best *best, size_t *offsets);

#endif
