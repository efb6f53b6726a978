/* SPDX-License-Identifier: MIT
 * The search for the best sizes. sizes.c checks and sorts the problem.
 */
#ifndef RONDO_SESSION_SIZING_SIZE_SEARCH_H
#define RONDO_SESSION_SIZING_SIZE_SEARCH_H

#include <rondo/sizes.h>

typedef struct rondo_sizes_input {
  const rondo_size_candidate *candidates; /* ascending by rows */
  size_t candidate_count;
  const rondo_size_demand *demands; /* ascending by rows */
  size_t demand_count;
  const size_t *up_to; /* by candidate: the number of demands with at most its rows */
  size_t max_sizes;    /* at most candidate_count */
  uint64_t budget_bytes;
  double budget_startup_us;
} rondo_sizes_input;

/* The cost of one request of the demand if `largest` is the only size. */
double rondo_sizes_cost_us(const rondo_size_demand *demand, const rondo_size_candidate *largest);

/* Finds the best candidates, in ascending order. `chosen` has max_sizes elements. */
RONDO_MUST_USE rondo_status rondo_sizes_search(const rondo_sizes_input *in, size_t *chosen, size_t *out_count);

#endif
