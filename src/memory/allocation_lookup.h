/* SPDX-License-Identifier: MIT
 * The device's allocations as verification asks for them.
 */
#ifndef RONDO_MEMORY_ALLOCATION_LOOKUP_H
#define RONDO_MEMORY_ALLOCATION_LOOKUP_H

#include "graph/verify/verifier.h"
#include "memory/device_memory.h"

/* The allocation that begins at the address, else one that it lies in, else one that was freed lately, whose addresses
 * nobody else has; false when there is none. Any thread. */
bool rondo_memory_find_range(rondo_device_memory *memory, const void *address, rondo_known_range *out);

typedef RONDO_ARRAY(rondo_known_range) rondo_known_ranges;

/* Adds what a recording in an arena found alive, and has for its whole length; nothing for other graphs. */
RONDO_MUST_USE rondo_status rondo_memory_list_held(const rondo_graph *graph, const rondo_allocator *allocator,
                                                   rondo_known_ranges *list);
/* The arena of a recording, if the address is there, as one in whose bytes nothing lives that it knows of. */
bool rondo_memory_find_dead(const rondo_graph *graph, const void *address, rondo_known_range *out);

#endif
