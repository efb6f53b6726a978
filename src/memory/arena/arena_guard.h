/* SPDX-License-Identifier: MIT
 * Arenas on a guarded device: pages of its own for each allocation and slot, behind one that nothing has.
 */
#ifndef RONDO_MEMORY_ARENA_ARENA_GUARD_H
#define RONDO_MEMORY_ARENA_ARENA_GUARD_H

#include "memory/arena/arena.h"

/* Where lifetimes are watched (elsewhere these do nothing), in the queue's order, or with NULL at once: an output's
 * life ends, so that later accesses are found; and writes to a block, a slot, or any other allocation of the device,
 * which begins at the address, are findings until they are allowed again. */
void rondo_arena_end_life(rondo_arena *arena, rondo_queue *queue, void *address);
void rondo_memory_set_read_only(rondo_device_memory *memory, rondo_queue *queue, void *address, bool read_only);

#endif
