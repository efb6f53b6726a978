/* SPDX-License-Identifier: MIT
 * A profile: the allocations of a recording or an eager run, in order, with planned offsets. Graphs that are created
 * with it follow it (alloc_node_address.c). Reference-counted, and immutable except for its counters, so any thread may
 * use it.
 */
#ifndef RONDO_MEMORY_PROFILE_MEMORY_PROFILE_H
#define RONDO_MEMORY_PROFILE_MEMORY_PROFILE_H

#include <stdatomic.h>

#include <rondo/profile.h>

#include "graph/graph_internal.h"
#include "memory/profile/lifetime_log.h"

typedef struct rondo_planned_alloc {
  size_t bytes; /* rounded */
  size_t offset;
} rondo_planned_alloc;

struct rondo_profile {
  rondo_allocator allocator;
  atomic_uint references;
  RONDO_ARRAY(rondo_planned_alloc) allocs; /* in the order of the alloc nodes' numbers */
  RONDO_ARRAY(rondo_planned_alloc) slots;  /* of a recording in an arena, in the setting's order */
  rondo_plan_info plan;
  rondo_graph_attachment hold; /* the user's handle retains the device */
  _Atomic uint64_t placed, departures;
};

/* Plans the lifetimes (rondo_lifetimes_plan). The profile does not retain the device yet. */
RONDO_MUST_USE rondo_status rondo_profile_of_noted(const rondo_noted_lifetimes *noted,
                                                   const rondo_plan_options *options, rondo_profile **out);

/* Makes a profile of the lifetimes and of slots of these sizes. `offsets` has those of the lifetimes, then of the
 * slots. */
RONDO_MUST_USE rondo_status rondo_profile_build(const rondo_noted_lifetimes *noted, const size_t *slot_bytes,
                                                size_t slot_count, const size_t *offsets, const rondo_plan_info *plan,
                                                rondo_profile **out);

void rondo_profile_retain(rondo_profile *profile);
void rondo_profile_release(rondo_profile *profile);

#endif
