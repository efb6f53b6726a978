/* SPDX-License-Identifier: MIT
 * Arenas inside this layer: types and functions for the files of arenas and for the address spaces of recordings.
 */
#ifndef RONDO_MEMORY_ARENA_ARENA_INTERNAL_H
#define RONDO_MEMORY_ARENA_ARENA_INTERNAL_H

#include "memory/arena/arena.h"
#include "memory/graph_memory/address_space.h"
#include "memory/heap/graph_heap.h"

/* A piece of the memory that backs the arena; it is mapped after the previous pieces. */
typedef struct rondo_arena_piece {
  rondo_physical *physical;
  size_t bytes;
} rondo_arena_piece;

/* On a guarded device: the pages of a recording's allocation with its guard page, or of a block of the recording;
 * offsets from the base. */
typedef struct rondo_guarded_range {
  size_t begin, end;
  const rondo_address_space *owner;
} rondo_guarded_range;

struct rondo_arena {
  rondo_allocation allocation; /* the backed part; in the device's table unless that is empty */
  rondo_device_memory *memory;
  atomic_uint references; /* of its owner and its spaces */
  size_t reserved;
  uint32_t index_node; /* in rondo_device_memory.own */
  size_t backed;       /* bytes that are mapped */
  void *watch;         /* the device's watch of host accesses after the backed bytes; or NULL */
  RONDO_ARRAY(rondo_arena_piece) pieces;
  _Atomic uint64_t peers; /* devices that may access it */

  /* Under the memory's lock. */
  rondo_arena *next, **link;   /* in the device's list */
  rondo_address_space *spaces; /* of its recordings, by next_in_arena */
  uint32_t space_count;
  RONDO_ARRAY(rondo_guarded_range) taken; /* by address */
  size_t cursor;                          /* where the next search for pages begins */
};

/* The arena of the device that reserved the address; NULL when there is none. Under the lock. */
const rondo_arena *rondo_arena_find(const rondo_device_memory *memory, const void *address);

/* FOREIGN_ADDRESS unless the block is in the arena and aligned like an allocation. *out_rounded: its size, rounded. */
RONDO_MUST_USE rondo_status rondo_arena_check_block(const rondo_arena *arena, const rondo_arena_block *block,
                                                    size_t *out_rounded);

/* OUT_OF_MEMORY: the arena has no addresses for `bytes` more bytes. */
rondo_status rondo_arena_fail_full(const rondo_arena *arena, size_t bytes);

/* enter adds the space of a recording, which retains the arena; leave removes a space that is being destroyed. */
void rondo_arena_enter(rondo_arena *arena, rondo_address_space *space);
void rondo_arena_leave(rondo_address_space *space);

/* Creates the space of a recording that begins with the setting, and sets the addresses of the setting's slots. The
 * graph follows *out_profile (NULL: none). The caller gets a reference to each. */
RONDO_MUST_USE rondo_status rondo_arena_begin(const rondo_arena_setting *setting, rondo_address_space **out,
                                              rondo_profile **out_profile);

/* For guarded devices (arena_guard.c), without the lock. take_guarded: an address for an allocation or slot of the
 * space, at the end of its own pages. guard_blocks: reserves the pages of the space's blocks. guard_slots: makes its
 * slots live. unguard: releases its slots and pages. */
RONDO_MUST_USE rondo_status rondo_arena_take_guarded(rondo_address_space *space, size_t bytes, char **out);
RONDO_MUST_USE rondo_status rondo_arena_guard_blocks(rondo_address_space *space);
RONDO_MUST_USE rondo_status rondo_arena_guard_slots(rondo_address_space *space);
void rondo_arena_unguard(rondo_address_space *space); /* while it has its records */

/* Devices that may access one allocation may access the whole arena. */
static inline void rondo_arena_share(rondo_arena *arena, uint64_t peers) {
  if (peers != 0) atomic_fetch_or_explicit(&arena->peers, peers, memory_order_relaxed);
}

static inline char *rondo_arena_base(const rondo_arena *arena) { return arena->allocation.address; }

/* "arena 'step'", "an arena" without a name; returns buffer. */
#define RONDO_ARENA_LABEL 72
const char *rondo_arena_label(char buffer[RONDO_ARENA_LABEL], const rondo_arena *arena);

#endif
