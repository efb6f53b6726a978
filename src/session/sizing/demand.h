/* SPDX-License-Identifier: MIT
 * What a session's graphs are to have room for: requests as they came, and several of them together. How many run
 * together depends on a load that nobody knows when sizes are chosen, so that all numbers count, the fewer together the
 * more. Pure, and the same for the same history.
 */
#ifndef RONDO_SESSION_SIZING_DEMAND_H
#define RONDO_SESSION_SIZING_DEMAND_H

#include <rondo/sizes.h>

#include "base/allocation.h"

typedef struct rondo_demands {
  rondo_allocator allocator;
  rondo_size_demand *items; /* distinct rows, ascending */
  size_t count, alone;      /* the first `alone` of them have no more rows than the largest request */
  size_t room;
} rondo_demands;

typedef struct rondo_demands_input {
  const size_t *history; /* rows of requests, ascending; at least one */
  size_t count;
  size_t most_requests; /* that run together */
  size_t most_rows;     /* of requests that run together */
} rondo_demands_input;

RONDO_MUST_USE rondo_status rondo_demands_make(const rondo_allocator *allocator, const rondo_demands_input *input,
                                               rondo_demands *out);
void rondo_demands_free(rondo_demands *demands); /* a zeroed one is fine */

/* Ascending, what is of the same rows becomes one. */
size_t rondo_demands_merge(rondo_size_demand *items, size_t count);

#endif
