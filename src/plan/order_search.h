/* SPDX-License-Identifier: MIT
 * A plan on a partial order as it is: placing under several preferences, then restarts and repairs within the budget.
 */
#ifndef RONDO_PLAN_ORDER_SEARCH_H
#define RONDO_PLAN_ORDER_SEARCH_H

#include "plan/order_bound.h"
#include "plan/order_place.h"

typedef struct rondo_order_search {
  const rondo_allocator *allocator;
  const rondo_lives *lives;
  const rondo_plan_options *options; /* read */
  uint64_t deadline_ns;              /* UINT64_MAX: none */
  bool is_loose;                     /* chains hardly wait for each other: most lives conflict over a long time */
  uint64_t steps;                    /* taken; one places one item */
  rondo_order_placer placer;
  size_t *offsets; /* of the best plan; the caller's */
  size_t *trial;
  size_t peak; /* of the best plan; SIZE_MAX: none yet */
  const char *method;
  rondo_order_bound *bound;
  unsigned caution; /* how little a repair aims for: 1, half of what is above the bound; 2, a quarter */
} rondo_order_search;

/* Fills offsets, peak, method and steps of a search of which the fields before `steps`, offsets and bound are set, and
 * raises the bound. Errors: LIMIT_EXCEEDED, OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_order_search_run(rondo_order_search *search);

/* Whether the best plan is good enough. */
bool rondo_order_search_is_done(const rondo_order_search *search);

/* Whether the deadline is over. */
bool rondo_order_search_is_late(const rondo_order_search *search);

/* Whether time and steps are left. */
bool rondo_order_search_may_go_on(const rondo_order_search *search);

/* Where the highest item ends. */
size_t rondo_order_search_peak(const rondo_order_search *search, const size_t *offsets);

/* The logarithm to base 2, times 65536; straight between powers. The value is not 0. */
uint32_t rondo_order_logarithm(uint64_t value);

/* Takes the trial when it is better. */
void rondo_order_search_offer(rondo_order_search *search, size_t peak, const char *method);

/* Repairs the best plan in search->trial: aims lower, takes out what ends above, and puts one item after another where
 * it pushes out least, until nothing is out. Takes at most `steps` steps. Errors: OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_order_repair(rondo_order_search *search, uint64_t steps);

#endif
