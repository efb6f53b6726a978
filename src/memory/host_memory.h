/* SPDX-License-Identifier: MIT
 * Host memory: allocating and freeing it, and watches over what recorded work names. A watch learns of each free of an
 * allocation that it watches, so that checking it before a launch reads a single word.
 *
 * Threads: any for allocations. A watch belongs to its owner, one thread at a time; its list and what a free changes
 * are under the lock of the device's memory; `freed` is atomic.
 */
#ifndef RONDO_MEMORY_HOST_MEMORY_H
#define RONDO_MEMORY_HOST_MEMORY_H

#include "base/array.h"
#include "graph/graph_internal.h"
#include "memory/device_memory.h"

RONDO_MUST_USE rondo_status rondo_memory_host_allocate(rondo_device_memory *memory, size_t bytes, void **out_address);
RONDO_MUST_USE rondo_status rondo_memory_host_free(rondo_device_memory *memory, void *address);
/* Returns freed host memory to the allocator; false when there was none. */
bool rondo_memory_release_withheld(rondo_device_memory *memory);
/* Whether these bytes are in one allocation of host memory. Takes the lock. */
bool rondo_memory_host_has(rondo_device_memory *memory, const void *address, size_t bytes);

/* An allocation that is watched, and the first node that names it. */
typedef struct rondo_host_use {
  const char *begin;
  size_t bytes;
  const rondo_graph *graph;
  uint32_t slot;
} rondo_host_use;

typedef struct rondo_host_watch {
  rondo_device_memory *memory; /* NULL: it watches nothing */
  struct rondo_host_watch *next, **link;
  RONDO_ARRAY(rondo_host_use) uses;
  _Atomic uint32_t freed; /* 1 + the index of the first use whose memory was freed; 0: none was */
} rondo_host_watch;

/* Where an address is, for code that records work with it. */
typedef enum rondo_host_address {
  RONDO_ADDRESS_DEVICE,  /* memory of some device of the library, or that the device's driver knows */
  RONDO_ADDRESS_WATCHED, /* host memory of the library, which is watched from now on */
  RONDO_ADDRESS_FREED,   /* such memory, freed already */
  RONDO_ADDRESS_FOREIGN  /* host memory that the library does not know */
} rondo_host_address;

/* Begins an empty watch, which must not move until its end. Ending a zeroed watch is allowed. */
void rondo_host_watch_begin(rondo_device_memory *memory, rondo_host_watch *watch);
void rondo_host_watch_end(rondo_host_watch *watch);

/* Finds out where the address is, and watches it if it is host memory. The graph lives as long as the watch. */
RONDO_MUST_USE rondo_status rondo_host_watch_look(rondo_host_watch *watch, const void *address,
                                                  const rondo_graph *graph, uint32_t slot, rondo_host_address *out);

/* NULL as long as nothing that is watched was freed. */
static inline const rondo_host_use *rondo_host_watch_freed(const rondo_host_watch *watch) {
  const uint32_t freed = atomic_load_explicit(&watch->freed, memory_order_acquire);
  return __builtin_expect(freed == 0, 1) ? NULL : &watch->uses.items[freed - 1];
}

#endif
