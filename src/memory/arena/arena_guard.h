/* SPDX-License-Identifier: MIT
 * Checking accesses to the memory of recordings: on guarded devices the lifetimes of outputs, and on devices that
 * support it, accesses of the host while a recording is made. On other devices these functions do nothing.
 */
#ifndef RONDO_MEMORY_ARENA_ARENA_GUARD_H
#define RONDO_MEMORY_ARENA_ARENA_GUARD_H

#include "memory/arena/arena.h"

/* In the queue's order, or immediately if the queue is NULL. end_life ends the life of an output, so that later
 * accesses are reported. set_read_only reports writes to the allocation that begins at the address, of any kind, until
 * it is called with false. */
void rondo_arena_end_life(rondo_arena *arena, rondo_queue *queue, void *address);
void rondo_memory_set_read_only(rondo_device_memory *memory, rondo_queue *queue, void *address, bool read_only);

/* An access of the host to memory that is not backed or has no content yet. */
typedef struct rondo_arena_access {
  void *address; /* of the first access, which is somewhere in `bytes` bytes; NULL: there was none */
  size_t bytes;
} rondo_arena_access;

/* Watches the calling thread's host accesses to addresses of the arena that are not backed, and to slots, which have no
 * content yet: a function body must not read its inputs while it is recorded. Do not back more of the arena between the
 * two calls. `end` reports accesses to the first `used` bytes of the arena. Both fail only if a guarded device cannot
 * make the slots accessible again. */
RONDO_MUST_USE rondo_status rondo_arena_watch_begin(rondo_arena *arena, const rondo_arena_slot *slots,
                                                    size_t slot_count);
RONDO_MUST_USE rondo_status rondo_arena_watch_end(rondo_arena *arena, const rondo_arena_slot *slots, size_t slot_count,
                                                  size_t used, rondo_arena_access *out);

#endif
