/* SPDX-License-Identifier: MIT
 * Watching the memory of recordings: on a guarded device the lifetimes of outputs, and on devices that can the accesses
 * of the host while a recording is made. On other devices these functions do nothing.
 */
#ifndef RONDO_MEMORY_ARENA_ARENA_GUARD_H
#define RONDO_MEMORY_ARENA_ARENA_GUARD_H

#include "memory/arena/arena.h"

/* In the queue's order, or at once when it is NULL: ends the life of an output, so that later accesses are reported;
 * and reports writes to the allocation that begins at the address (a block, a slot or any other) until they are allowed
 * again. */
void rondo_arena_end_life(rondo_arena *arena, rondo_queue *queue, void *address);
void rondo_memory_set_read_only(rondo_device_memory *memory, rondo_queue *queue, void *address, bool read_only);

/* An access of the host to memory that is not there. */
typedef struct rondo_arena_access {
  void *address; /* the first one, somewhere in `bytes` bytes; NULL: there was none */
  size_t bytes;
} rondo_arena_access;

/* Watches the calling thread's accesses on the host to addresses of the arena that have no memory, and to slots, which
 * have no content yet (a body that reads what it is recorded with). Between the two calls the arena gets no memory.
 * `end` reports accesses to the first `used` bytes of the arena. Both fail only if a guarded device cannot make the
 * slots accessible again. */
RONDO_MUST_USE rondo_status rondo_arena_watch_begin(rondo_arena *arena, const rondo_arena_slot *slots,
                                                    size_t slot_count);
RONDO_MUST_USE rondo_status rondo_arena_watch_end(rondo_arena *arena, const rondo_arena_slot *slots, size_t slot_count,
                                                  size_t used, rondo_arena_access *out);

#endif
