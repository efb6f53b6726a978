/* SPDX-License-Identifier: MIT
 * Host memory: allocating and freeing it, and watching the allocations that recorded work uses. A free notifies the
 * watches of the allocation, so the check before a launch reads a single word.
 *
 * Threads: any for allocations. A watch belongs to its owner, one thread at a time. The list of watches and the fields
 * that a free changes are under the lock of the device's memory; `freed` is atomic.
 */
#ifndef RONDO_MEMORY_HOST_MEMORY_H
#define RONDO_MEMORY_HOST_MEMORY_H

#include "base/array.h"
#include "base/component.h"
#include "graph/graph_internal.h"
#include "memory/device_memory.h"

RONDO_MUST_USE rondo_status rondo_memory_host_allocate(rondo_device_memory *memory, size_t bytes, void **out_address);
RONDO_MUST_USE rondo_status rondo_memory_host_free(rondo_device_memory *memory, void *address);
/* Returns freed host memory to the allocator; false when there was none. */
bool rondo_memory_release_withheld(rondo_device_memory *memory);
/* Whether the bytes are in one allocation of host memory. Takes the lock. */
RONDO_PRIVATE bool rondo_memory_host_has(rondo_device_memory *memory, const void *address, size_t bytes);

/* A watched allocation, and the first node that uses it. */
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
  _Atomic uint32_t freed; /* 1 + the index of the first use whose memory was freed; 0: nothing was freed */
} rondo_host_watch;

/* What an address is, for code that records work with it. */
typedef enum rondo_host_address {
  RONDO_ADDRESS_DEVICE,  /* memory of any device of the library, or memory that the driver knows */
  RONDO_ADDRESS_WATCHED, /* host memory of the library, which is now watched */
  RONDO_ADDRESS_FREED,   /* freed host memory of the library */
  RONDO_ADDRESS_FOREIGN  /* other host memory */
} rondo_host_address;

/* Begins an empty watch, whose address must not change until its end. Ending a zeroed watch is allowed. */
void rondo_host_watch_begin(rondo_device_memory *memory, rondo_host_watch *watch);
void rondo_host_watch_end(rondo_host_watch *watch);

/* Finds out what the address is, and watches host memory of the library. The graph must outlive the watch. */
RONDO_MUST_USE rondo_status rondo_host_watch_look(rondo_host_watch *watch, const void *address,
                                                  const rondo_graph *graph, uint32_t slot, rondo_host_address *out);

/* The first use whose memory was freed; NULL when there is none. */
static inline const rondo_host_use *rondo_host_watch_freed(const rondo_host_watch *watch) {
  const uint32_t freed = atomic_load_explicit(&watch->freed, memory_order_acquire);
  return __builtin_expect(freed == 0, 1) ? NULL : &watch->uses.items[freed - 1];
}

#endif
