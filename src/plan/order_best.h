/* SPDX-License-Identifier: MIT
 * The best plan of a search and the lower bound, which threads share.
 */
#ifndef RONDO_PLAN_ORDER_BEST_H
#define RONDO_PLAN_ORDER_BEST_H

#include <pthread.h>

#include "plan/plan_internal.h"

typedef struct rondo_order_best {
  pthread_mutex_t lock;
  const rondo_plan_options *options; /* read */
  size_t *offsets;                   /* the caller's, one an item */
  size_t count;
  size_t peak; /* SIZE_MAX: none yet */
  size_t bound;
  const char *method;
} rondo_order_best;

void rondo_order_best_init(rondo_order_best *best, const rondo_plan_options *options, size_t *offsets, size_t count,
                           size_t bound);
void rondo_order_best_destroy(rondo_order_best *best);

/* Takes the plan when it is better. */
void rondo_order_best_offer(rondo_order_best *best, const size_t *offsets, size_t peak, const char *method);
void rondo_order_best_raise_bound(rondo_order_best *best, size_t bound);

/* Reads peak and bound, and copies the plan when `offsets` is not NULL. True when it is good enough. */
bool rondo_order_best_read(rondo_order_best *best, size_t *offsets, size_t *out_peak, size_t *out_bound);

#endif
