/* SPDX-License-Identifier: MIT
 * Arenas inside this layer: what the files behind arena.h and the spaces of recordings share.
 */
#ifndef RONDO_MEMORY_ARENA_INTERNAL_H
#define RONDO_MEMORY_ARENA_INTERNAL_H

#include "memory/address_space.h"
#include "memory/arena.h"
#include "memory/heap.h"

/* A piece of memory behind the arena, mapped where those before it end. */
typedef struct rondo_arena_piece {
  rondo_physical *physical;
  size_t bytes;
} rondo_arena_piece;

struct rondo_arena {
  rondo_allocation allocation; /* all that is backed; in the device's table while that is not nothing */
  rondo_device_memory *memory;
  atomic_uint references; /* of its owner and its spaces */
  size_t reserved;
  uint32_t place; /* in the index of the device's own ranges */
  size_t backed;  /* what is mapped */
  RONDO_ARRAY(rondo_arena_piece) pieces;
  _Atomic uint64_t peers; /* devices that may access it */

  /* Under the memory's lock. */
  rondo_arena *next;           /* in the device's list */
  rondo_address_space *spaces; /* of its recordings, by next_in_arena */
  uint32_t space_count;
};

/* The device's arena that has the address among its reserved ones; NULL when there is none. Under the lock. */
const rondo_arena *rondo_arena_find(const rondo_device_memory *memory, const void *address);

/* A recording's space becomes the arena's, which it holds; and leaves it, destroyed. */
void rondo_arena_enter(rondo_arena *arena, rondo_address_space *space);
void rondo_arena_leave(rondo_address_space *space);

/* The space of a recording that begins so, with the slots' addresses in the setting, and the profile that its graph is
 * to follow (NULL: none); the references are the caller's. */
RONDO_MUST_USE rondo_status rondo_arena_begin(const rondo_arena_setting *setting, rondo_address_space **out,
                                              rondo_profile **out_profile);

/* Devices that may access an allocation in it may access all of it. */
static inline void rondo_arena_share(rondo_arena *arena, uint64_t peers) {
  if (peers != 0) atomic_fetch_or_explicit(&arena->peers, peers, memory_order_relaxed);
}

static inline char *rondo_arena_base(const rondo_arena *arena) { return arena->allocation.address; }

#endif
