/* SPDX-License-Identifier: MIT
 * Watches over host memory that recorded work names: what rondo_host_malloc gave and is freed while somebody still
 * relies on it is found without looking at it before each launch. Freeing tells the watches; whoever holds one looks at
 * a single word.
 *
 * Threads: a watch is its owner's, one thread at a time; the list and what freeing changes are under the lock of the
 * device's memory, `freed` is atomic.
 */
#ifndef RONDO_MEMORY_HOST_MEMORY_WATCH_H
#define RONDO_MEMORY_HOST_MEMORY_WATCH_H

#include "base/array.h"
#include "graph/graph_internal.h"
#include "memory/device_memory.h"

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
  _Atomic uint32_t freed; /* 1 + the place of the first that was freed; 0: none was */
} rondo_host_watch;

/* Where an address is, for who records work with it. */
typedef enum rondo_host_address {
  RONDO_ADDRESS_DEVICE,  /* memory of some device of the library's, or that the device's driver knows */
  RONDO_ADDRESS_WATCHED, /* host memory of the library's, which is watched from now on */
  RONDO_ADDRESS_FREED,   /* such memory, freed already */
  RONDO_ADDRESS_FOREIGN  /* host memory that the library knows nothing of */
} rondo_host_address;

/* Begins an empty watch in zeroed memory. It must stay where it is until the end, which is fine without a begin. */
void rondo_host_watch_begin(rondo_device_memory *memory, rondo_host_watch *watch);
void rondo_host_watch_end(rondo_host_watch *watch);

/* Finds out where the address is, and watches it if that is of use. The graph lasts as long as the watch. */
RONDO_MUST_USE rondo_status rondo_host_watch_look(rondo_host_watch *watch, const void *address,
                                                  const rondo_graph *graph, uint32_t slot, rondo_host_address *out);

/* NULL as long as nothing that is watched was freed. */
static inline const rondo_host_use *rondo_host_watch_freed(const rondo_host_watch *watch) {
  const uint32_t freed = atomic_load_explicit(&watch->freed, memory_order_acquire);
  return __builtin_expect(freed == 0, 1) ? NULL : &watch->uses.items[freed - 1];
}

/* The allocation is being freed. Under the lock. */
void rondo_host_watches_note_freed(rondo_device_memory *memory, const rondo_allocation *allocation);

#endif
