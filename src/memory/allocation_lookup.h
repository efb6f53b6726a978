/* SPDX-License-Identifier: MIT
 * Looking up the device's allocations, for verification.
 */
#ifndef RONDO_MEMORY_ALLOCATION_LOOKUP_H
#define RONDO_MEMORY_ALLOCATION_LOOKUP_H

#include "base/component.h"
#include "graph/verify/verifier.h"
#include "memory/device_memory.h"

/* Finds the allocation that begins at the address. Otherwise one that contains it. Otherwise one that was freed
 * recently and whose addresses are not in use again. False when there is none. Any thread. */
RONDO_PRIVATE bool rondo_memory_find_range(rondo_device_memory *memory, const void *address, rondo_known_range *out);

typedef RONDO_ARRAY(rondo_known_range) rondo_known_ranges;

/* Adds the blocks and slots of a recording in an arena; nothing for other graphs. */
RONDO_MUST_USE rondo_status rondo_memory_list_held(const rondo_graph *graph, const rondo_allocator *allocator,
                                                   rondo_known_ranges *list);
/* Returns a recording's arena as a dead range, if the arena contains the address. */
bool rondo_memory_find_dead(const rondo_graph *graph, const void *address, rondo_known_range *out);

#endif
