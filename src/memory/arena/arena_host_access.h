/* SPDX-License-Identifier: MIT
 * Watching what the host does to memory of a recording, which is not there before a launch: the device notes
 * accesses to reserved addresses.
 */
#ifndef RONDO_MEMORY_ARENA_ARENA_HOST_ACCESS_H
#define RONDO_MEMORY_ARENA_ARENA_HOST_ACCESS_H

#include "memory/arena/arena.h"

/* Watches what the calling thread does on the host to addresses of the arena that have no memory, and to slots, which
 * have nothing in them (a body that reads what it is recorded with). Between the two the arena gets no more memory.
 * `end` looks at the first `used` bytes of the arena. Both fail only where a guarded device cannot open the slots
 * again. */
RONDO_MUST_USE rondo_status rondo_arena_watch_begin(rondo_arena *arena, const rondo_arena_slot *slots,
                                                    size_t slot_count);
RONDO_MUST_USE rondo_status rondo_arena_watch_end(rondo_arena *arena, const rondo_arena_slot *slots, size_t slot_count,
                                                  size_t used, rondo_arena_access *out);

#endif
