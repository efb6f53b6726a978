/* SPDX-License-Identifier: MIT
 * Searches for a plan on a partial order: places all items once by lowest offset, and then repairs the plan within the
 * budget.
 */
#ifndef RONDO_PLAN_PARTIAL_ORDER_ORDER_SEARCH_H
#define RONDO_PLAN_PARTIAL_ORDER_ORDER_SEARCH_H

#include "plan/partial_order/order_bound.h"
#include "plan/partial_order/order_lifetimes.h"

typedef struct rondo_order_search {
  const rondo_allocator *allocator;
  const rondo_lifetimes *lifetimes;
  const rondo_plan_options *options; /* checked and resolved */
  uint64_t deadline_ns;              /* UINT64_MAX: none */
  size_t *offsets;                   /* the caller's, one for each item */
  rondo_order_bound *bound;
  rondo_plan_info *info;
} rondo_order_search;

/* Fills the offsets and the peak, steps and method of *info, and raises the bound. Errors: LIMIT_EXCEEDED,
 * OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_order_search_run(rondo_order_search *search);

#endif
