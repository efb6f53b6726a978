/* SPDX-License-Identifier: MIT
 * The allocations of a device by start address, for all kinds of memory (immediate, stream-ordered, graph, arenas).
 * Owners embed the records of the hash table, so entering a record cannot fail. A lookup takes constant time. Several
 * graph allocations may start at one address, because graphs reuse addresses; at most one of them is live. Allocations
 * of graphs in an arena are in a hash table of their recording.
 *
 * A range index finds the allocation that contains an address, also without the lock. If there was no host memory to
 * enter a record into the index, all records are searched.
 *
 * A ring keeps the latest freed allocations with their names. It distinguishes double frees and uses after a free from
 * unknown addresses, and is searched only for errors and for addresses in no allocation.
 *
 * Threads: the caller holds the lock of the device's memory, except for rondo_range_look in the index.
 */
#ifndef RONDO_MEMORY_ALLOCATION_TABLE_H
#define RONDO_MEMORY_ALLOCATION_TABLE_H

#include <stdint.h>

#include "memory/range_index.h"

typedef enum rondo_allocation_kind {
  RONDO_ALLOCATION_IMMEDIATE = 1,
  RONDO_ALLOCATION_STREAM_ORDERED = 2,
  RONDO_ALLOCATION_GRAPH = 3,
  RONDO_ALLOCATION_ARENA = 4, /* the part of an arena that has memory (arena.h) */
  RONDO_ALLOCATION_SPACE = 5, /* all addresses of a graph or arena; only in the ring of freed allocations */
  RONDO_ALLOCATION_SYMBOL = 6 /* a variable of a kernel's code (symbol_memory.h) */
} rondo_allocation_kind;

/* The first member of every owner's record. */
typedef struct rondo_allocation {
  struct rondo_allocation *next, **link; /* in the same bucket (linked_list.h) */
  char *address;
  size_t bytes; /* as requested */
  char *name;   /* may be NULL */
  rondo_allocation_kind kind;
  uint32_t index_node; /* in the range index; 0: not in the index */
} rondo_allocation;

/* Records by start address. */
typedef struct rondo_allocation_starts {
  rondo_allocation **buckets;
  size_t bucket_count; /* a power of two */
  size_t count;
} rondo_allocation_starts;

RONDO_MUST_USE rondo_status rondo_allocation_starts_init(const rondo_allocator *allocator,
                                                         rondo_allocation_starts *starts);
void rondo_allocation_starts_deinit(const rondo_allocator *allocator, rondo_allocation_starts *starts);

/* Adds a record. Grows the table; without host memory for that, lookups get slower instead. */
void rondo_allocation_starts_enter(const rondo_allocator *allocator, rondo_allocation_starts *starts,
                                   rondo_allocation *allocation);
void rondo_allocation_starts_leave(rondo_allocation_starts *starts, rondo_allocation *allocation);

/* Moves the record to the front of those at its address, as if it had been entered now. */
void rondo_allocation_starts_touch(rondo_allocation_starts *starts, rondo_allocation *allocation);

/* The allocations that start at `address`, the latest first; NULL after the last. */
rondo_allocation *rondo_allocation_starts_find(const rondo_allocation_starts *starts, const void *address);
rondo_allocation *rondo_allocation_next(const rondo_allocation *allocation);

#define RONDO_FREED_RING 512
#define RONDO_FREED_NAME 40

/* The remaining record of a freed allocation. */
typedef struct rondo_freed {
  const char *address; /* NULL: nothing was freed here yet */
  size_t bytes;
  rondo_allocation_kind kind;
  bool gone;           /* the addresses were released to the system, which may reuse them */
  bool is_listed;      /* in rondo_allocation_table.gone */
  uint32_t index_node; /* there; 0: not in the index */
  uint64_t number;     /* among all that were freed, from 1 */
  char name[RONDO_FREED_NAME];
} rondo_freed;

typedef struct rondo_allocation_table {
  rondo_allocation_starts starts;
  rondo_range_index index; /* the owners are the records, the tags their kinds */
  rondo_range_index gone;  /* freed allocations whose addresses were released and are not known to be in use */
  rondo_freed freed[RONDO_FREED_RING];
  size_t next_freed;
  uint64_t freed_count; /* ever */
} rondo_allocation_table;

RONDO_MUST_USE rondo_status rondo_allocation_table_init(const rondo_allocator *allocator,
                                                        rondo_allocation_table *table);
void rondo_allocation_table_deinit(const rondo_allocator *allocator, rondo_allocation_table *table);

/* As rondo_allocation_starts_enter. */
void rondo_allocation_table_insert(const rondo_allocator *allocator, rondo_allocation_table *table,
                                   rondo_allocation *allocation);
void rondo_allocation_table_remove(rondo_allocation_table *table, rondo_allocation *allocation);

/* The latest allocation that starts at `address`; rondo_allocation_next finds the others. */
static inline rondo_allocation *rondo_allocation_table_find(const rondo_allocation_table *table, const void *address) {
  return rondo_allocation_starts_find(&table->starts, address);
}

/* The allocation that contains the address, or NULL. Of several, the one with the highest end. Takes logarithmic time.
 */
rondo_allocation *rondo_allocation_table_around(const rondo_allocation_table *table, const void *address);

/* Calls `visit` with each allocation that contains the address, until it returns false. */
void rondo_allocation_table_visit_around(const rondo_allocation_table *table, const void *address,
                                         rondo_range_visitor *visit, void *user);
/* The same for all allocations. */
void rondo_allocation_table_visit(const rondo_allocation_table *table, rondo_range_visitor *visit, void *user);

/* Freed allocations: enters one; finds the latest that began at the address; finds the latest that contained the
 * address, among those whose addresses were not released. NULL if none is known. */
void rondo_allocation_table_note_freed(rondo_allocation_table *table, const rondo_allocation *allocation);
const rondo_freed *rondo_allocation_table_freed_at(const rondo_allocation_table *table, const void *address);
const rondo_freed *rondo_allocation_table_freed_around(const rondo_allocation_table *table, const void *address);
/* The latest that contained the address, among those with a higher number than `number`, even if its addresses were
 * released: for callers that know that the address refers to the allocation of that time. */
const rondo_freed *rondo_allocation_table_freed_since(const rondo_allocation_table *table, const void *address,
                                                      uint64_t number);

/* Addresses were released to the system. */
void rondo_allocation_table_note_gone(const rondo_allocator *allocator, rondo_allocation_table *table,
                                      const char *address, size_t bytes);
/* The latest freed allocation that contained the address, among those whose addresses were released; NULL if none is
 * known. After note_taken, which says that its addresses are in use again, it is not returned again. */
rondo_freed *rondo_allocation_table_gone_around(rondo_allocation_table *table, const void *address);
void rondo_allocation_table_note_taken(rondo_allocation_table *table, rondo_freed *freed);

#endif
