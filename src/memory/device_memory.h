/* SPDX-License-Identifier: MIT
 * The memory of one device: the table of its allocations, the pools of rondo_malloc and rondo_malloc_async
 * (users' view: memory_pool.h), and the lists of graph memory (heaps, arenas, retired address spaces).
 * Created at the device's first allocation or graph, freed when the device closes.
 *
 * Threads: any thread may call all functions here. `lock` protects the fields after it. Lock order: gates of heaps
 * (graph_heap.h) by ascending id, then `lock`. Under `lock`, the driver is called only to query whether events are
 * complete, and the system only to query whether pages are mapped. Calls that may block run without it.
 */
#ifndef RONDO_MEMORY_DEVICE_MEMORY_H
#define RONDO_MEMORY_DEVICE_MEMORY_H

#include <pthread.h>
#include <stdatomic.h>

#include <rondo/memory.h>

#include "base/component.h"
#include "base/error.h"
#include "device/device.h"
#include "memory/allocation_table.h"
#include "memory/pool/block_pool.h"
#include "memory/pool/stream_order.h"

typedef struct rondo_heap rondo_heap;
typedef struct rondo_address_space rondo_address_space;
typedef struct rondo_arena rondo_arena;

extern const rondo_device_use rondo_allocation_use;

/* A current value and its highest value so far. */
typedef struct rondo_level {
  _Atomic uint64_t now, high;
} rondo_level;

void rondo_level_add(rondo_level *level, uint64_t amount);
void rondo_level_subtract(rondo_level *level, uint64_t amount);

/* Freed host memory that was not returned to the allocator yet: a list by `next`, the oldest first. */
typedef struct rondo_withheld {
  rondo_allocation *first, *last; /* `index_node` is in rondo_device_memory.own */
  size_t bytes;
  uint32_t count;
} rondo_withheld;

typedef struct rondo_device_memory {
  rondo_device *device;
  rondo_allocator allocator;
  size_t page_bytes;
  uint64_t limit_bytes; /* physical memory that the device can use */
  bool memory_nodes;    /* the device can hold graph memory (GM-1) */
  bool memory_pools;    /* and stream-ordered memory */
  rondo_level graph_used, graph_reserved;
  rondo_level arena_backed; /* the part of both that backs arenas */
  _Atomic uint64_t remaps, heap_growth, profiles, profiled, departures, replanned;
  atomic_uint leaving; /* private heaps that were abandoned and still have memory */
  _Atomic bool excess; /* some pool has more than its threshold: trimmed at the next synchronisation */

  pthread_mutex_t lock;
  rondo_allocation_table table; /* memory for rondo_free */
  rondo_allocation_table host;  /* memory for rondo_host_free */
  rondo_withheld withheld;
  struct rondo_host_watch *watches; /* notified of each rondo_host_free, linked by `next` */
  rondo_range_index symbols;        /* variables of kernels; they are in `table` too */
  rondo_range_index own; /* the addresses of the device: chunks of pools, ranges of graphs, withheld host memory */
  rondo_order_table orders;
  rondo_pool immediate;                     /* rondo_malloc's */
  rondo_pool default_pool;                  /* rondo_malloc_async's; those that users created follow, by `next` */
  rondo_pool *current;                      /* of rondo_malloc_async without a pool */
  uint32_t destroyed_pools;                 /* how many of those were destroyed, but not freed yet */
  rondo_pool_statistics stream_ordered;     /* bytes of all of them together */
  rondo_heap *heaps;                        /* all, by `next` */
  uint32_t heap_count;                      /* created so far: the next id */
  rondo_arena *arenas;                      /* all, by `next` */
  rondo_address_space *retired;             /* unused, but launches may still run; by `next_retired` */
  _Atomic(struct rondo_warm_up *) warm_ups; /* runs that are logged for profiles, the oldest first */
  uint64_t warm_up_serial;                  /* of the last of them */
} rondo_device_memory;

/* The device's memory, created at the first call. */
RONDO_PRIVATE RONDO_MUST_USE rondo_status rondo_device_memory_of(rondo_device *device, rondo_device_memory **out);

/* The same if it was created; NULL: the device has no allocations, pools or graphs. */
static inline rondo_device_memory *rondo_device_memory_made(const rondo_device *device) {
  return atomic_load_explicit(&device->memory.state, memory_order_acquire);
}

/* UNSUPPORTED, if the device has no stream-ordered memory (pools) or no memory nodes (nodes, GM-1). */
RONDO_MUST_USE rondo_status rondo_device_memory_require_pools(const rondo_device_memory *memory, const char *call);
RONDO_MUST_USE rondo_status rondo_device_memory_require_nodes(const rondo_device_memory *memory, const char *call);

/* Allocates in stream order from the pool (NULL: the current one), or immediately when the stream is NULL. */
RONDO_MUST_USE rondo_status rondo_memory_allocate(rondo_device_memory *memory, rondo_stream_order *stream,
                                                  rondo_pool *pool, size_t bytes, const char *name, void **out_address);

/* Frees memory of any kind in stream order, or immediately when the stream is NULL. `call` is for messages. */
RONDO_MUST_USE rondo_status rondo_memory_free(rondo_device_memory *memory, const char *call, rondo_stream_order *stream,
                                              void *address);

/* Adds a range of addresses to `own` and returns its node there; removes it, before its addresses are released. Under
 * the lock. */
uint32_t rondo_memory_note_own(rondo_device_memory *memory, const void *address, size_t bytes);
void rondo_memory_note_gone(rondo_device_memory *memory, const char *address, size_t bytes, uint32_t index_node);

/* An allocation has ended, by a free or by a launch. Called after it has left the tables or is no longer live, so that
 * a launch that sees the old count came before the free. Any thread. */
static inline void rondo_memory_note_ended(const rondo_device_memory *memory) {
  atomic_fetch_add_explicit(&memory->device->allocations_ended, 1, memory_order_release);
}

/* Does not set struct_size. */
void rondo_memory_read_statistics(rondo_device_memory *memory, rondo_memory_statistics *out);
void rondo_memory_lower_highs(rondo_device_memory *memory);

#endif
