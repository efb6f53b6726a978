/* SPDX-License-Identifier: MIT
 * What a session's graphs are to have room for: requests as they came, and several of them together. How many run
 * together depends on a load that nobody knows when sizes are chosen, so that all numbers count, the fewer together the
 * more. Pure, and the same for the same history.
 */
#ifndef RONDO_SESSION_SIZING_WORKLOAD_H
#define RONDO_SESSION_SIZING_WORKLOAD_H

#include <rondo/sizes.h>

#include "base/allocation.h"

typedef struct rondo_workload {
  rondo_allocator allocator;
  rondo_size_demand *items; /* distinct rows, ascending */
  size_t count, alone;      /* the first `alone` of them have no more rows than the largest request */
  size_t room;
} rondo_workload;

typedef struct rondo_workload_input {
  const size_t *history; /* rows of requests, ascending; at least one */
  size_t count;
  size_t most_requests; /* that run together */
  size_t most_rows;     /* of requests that run together */
} rondo_workload_input;

RONDO_MUST_USE rondo_status rondo_workload_make(const rondo_allocator *allocator, const rondo_workload_input *input,
                                                rondo_workload *out);
void rondo_workload_free(rondo_workload *workload); /* a zeroed one is fine */

/* Ascending, what is of the same rows becomes one. */
size_t rondo_workload_merge(rondo_size_demand *items, size_t count);

#endif
