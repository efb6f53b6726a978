/* SPDX-License-Identifier: MIT
 * Looking up the device's allocations, for verification.
 */
#ifndef RONDO_MEMORY_ALLOCATION_LOOKUP_H
#define RONDO_MEMORY_ALLOCATION_LOOKUP_H

#include "graph/verify/verifier.h"
#include "memory/device_memory.h"

/* The allocation that begins at the address, otherwise one that contains it, otherwise one that was freed recently and
 * whose addresses nobody else has; false when there is none. Any thread. */
bool rondo_memory_find_range(rondo_device_memory *memory, const void *address, rondo_known_range *out);

typedef RONDO_ARRAY(rondo_known_range) rondo_known_ranges;

/* Adds the blocks and slots of a recording in an arena; nothing for other graphs. */
RONDO_MUST_USE rondo_status rondo_memory_list_held(const rondo_graph *graph, const rondo_allocator *allocator,
                                                   rondo_known_ranges *list);
/* The arena of a recording, if it has the address, as a range where nothing is live that the recording knows. */
bool rondo_memory_find_dead(const rondo_graph *graph, const void *address, rondo_known_range *out);

#endif
