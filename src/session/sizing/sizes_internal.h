/* SPDX-License-Identifier: MIT
 * What the files of the choice of sizes share: a problem that was checked and sorted.
 */
#ifndef RONDO_SESSION_SIZING_SIZES_INTERNAL_H
#define RONDO_SESSION_SIZING_SIZES_INTERNAL_H

#include <rondo/sizes.h>

typedef struct rondo_sizes_input {
  const rondo_size_candidate *candidates; /* by ascending rows */
  size_t candidate_count;
  const rondo_size_demand *demands; /* by ascending rows */
  size_t demand_count;
  const size_t *up_to; /* by candidate: how many demands it has room for */
  size_t max_sizes;    /* at most candidate_count */
  uint64_t budget_bytes;
  double budget_startup_us;
} rondo_sizes_input;

/* What one request of the demand costs with no other size than this one. */
double rondo_sizes_cost_us(const rondo_size_demand *demand, const rondo_size_candidate *largest);

/* The best candidates, ascending; `chosen` has room for max_sizes. */
RONDO_MUST_USE rondo_status rondo_sizes_search(const rondo_sizes_input *in, size_t *chosen, size_t *out_count);

#endif
