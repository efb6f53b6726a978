/* SPDX-License-Identifier: MIT
 * Arenas inside this layer: what the files behind arena.h and the spaces of recordings share.
 */
#ifndef RONDO_MEMORY_ARENA_ARENA_INTERNAL_H
#define RONDO_MEMORY_ARENA_ARENA_INTERNAL_H

#include "memory/arena/arena.h"
#include "memory/graph_memory/address_space.h"
#include "memory/heap/heap.h"

/* A piece of memory behind the arena, mapped where those before it end. */
typedef struct rondo_arena_piece {
  rondo_physical *physical;
  size_t bytes;
} rondo_arena_piece;

/* On a guarded device: pages, in bytes from the base, that a recording's allocation has, with the one in front; or that
 * a block has which it found. */
typedef struct rondo_guarded_range {
  size_t begin, end;
  const rondo_address_space *owner;
} rondo_guarded_range;

struct rondo_arena {
  rondo_allocation allocation; /* all that is backed; in the device's table while that is not nothing */
  rondo_device_memory *memory;
  atomic_uint references; /* of its owner and its spaces */
  size_t reserved;
  uint32_t place; /* in the index of the device's own ranges */
  size_t backed;  /* what is mapped */
  void *watch;    /* the device's, of the host's accesses behind that; NULL */
  RONDO_ARRAY(rondo_arena_piece) pieces;
  _Atomic uint64_t peers; /* devices that may access it */

  /* Under the memory's lock. */
  rondo_arena *next;           /* in the device's list */
  rondo_address_space *spaces; /* of its recordings, by next_in_arena */
  uint32_t space_count;
  RONDO_ARRAY(rondo_guarded_range) taken; /* by address */
  size_t cursor;                          /* where the next is looked for */
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

/* On a guarded device (arena_guard.c): an address for an allocation or slot of the space, at the end of its pages. What
 * the space found alive is not given out while that lasts; its slots live from now on, and no more. Without the lock.
 */
RONDO_MUST_USE rondo_status rondo_arena_take_guarded(rondo_address_space *space, size_t bytes, char **out);
RONDO_MUST_USE rondo_status rondo_arena_guard_blocks(rondo_address_space *space);
RONDO_MUST_USE rondo_status rondo_arena_guard_slots(rondo_address_space *space);
void rondo_arena_unguard(rondo_address_space *space); /* while it has its records */

/* Devices that may access an allocation in it may access all of it. */
static inline void rondo_arena_share(rondo_arena *arena, uint64_t peers) {
  if (peers != 0) atomic_fetch_or_explicit(&arena->peers, peers, memory_order_relaxed);
}

static inline char *rondo_arena_base(const rondo_arena *arena) { return arena->allocation.address; }

/* "arena 'step'", "an arena" without a name; returns buffer. */
#define RONDO_ARENA_LABEL 72
const char *rondo_arena_label(char buffer[RONDO_ARENA_LABEL], const rondo_arena *arena);

#endif
