/* SPDX-License-Identifier: MIT
 * The workload that sizes are chosen for: the requests of a history, alone and several together. How many will run
 * together depends on the load, which is not known in advance. So all numbers of requests count, small ones more. Pure;
 * the same history always gives the same workload.
 */
#ifndef RONDO_SESSION_SIZING_WORKLOAD_H
#define RONDO_SESSION_SIZING_WORKLOAD_H

#include <rondo/sizes.h>

#include "base/allocation.h"

typedef struct rondo_workload {
  rondo_allocator allocator;
  rondo_size_demand *items; /* distinct rows, ascending */
  size_t count, alone;      /* the first `alone` items have no more rows than the largest single request */
  size_t capacity;
} rondo_workload;

typedef struct rondo_workload_input {
  const size_t *history; /* rows of requests, ascending; not empty */
  size_t count;
  size_t max_requests; /* in one batch */
  size_t max_rows;     /* in one batch */
} rondo_workload_input;

RONDO_MUST_USE rondo_status rondo_workload_make(const rondo_allocator *allocator, const rondo_workload_input *input,
                                                rondo_workload *out);
void rondo_workload_free(rondo_workload *workload); /* a zeroed workload is allowed */

/* Sorts by rows and joins items with the same rows. Returns the new count. */
size_t rondo_workload_merge(rondo_size_demand *items, size_t count);

#endif
