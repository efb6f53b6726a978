/* SPDX-License-Identifier: MIT
 * The memory of one device: the table of its allocations, the pools behind rondo_malloc and rondo_malloc_async
 * (memory_pool.h has what users do with them), and the roots of graph memory (heaps, retired address spaces). Made when
 * the device is first asked for memory or a graph, freed when the device closes.
 *
 * Threads: all functions here may be called from any thread. `lock` protects what stands below it; order of locks:
 * gates of heaps (heap.h), the lower id first, then `lock`. Under `lock` the driver is asked whether events are
 * complete, the system whether pages are mapped, and nothing else: whatever may wait or take long runs without it.
 */
#ifndef RONDO_MEMORY_DEVICE_MEMORY_H
#define RONDO_MEMORY_DEVICE_MEMORY_H

#include <pthread.h>
#include <stdatomic.h>

#include <rondo/memory.h>

#include "base/error.h"
#include "device/device.h"
#include "memory/allocation_table.h"
#include "memory/pool/block_pool.h"
#include "memory/pool/stream_order.h"

typedef struct rondo_heap rondo_heap;
typedef struct rondo_address_space rondo_address_space;
typedef struct rondo_arena rondo_arena;

extern const rondo_device_use rondo_allocation_use;

/* A figure with its highest value. */
typedef struct rondo_level {
  _Atomic uint64_t now, high;
} rondo_level;

void rondo_level_add(rondo_level *level, uint64_t amount);
void rondo_level_subtract(rondo_level *level, uint64_t amount);

/* Freed host memory that the allocator did not get back yet, by `next`, what was freed first in front. */
typedef struct rondo_withheld {
  rondo_allocation *first, *last; /* `place` is in the device's own ranges */
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
  rondo_level arena_backed; /* of both, what is behind arenas */
  _Atomic uint64_t remaps, heap_growth, profiles, profiled, departures, replanned;
  atomic_uint leaving; /* private heaps that were given up and hold memory still */
  _Atomic bool excess; /* some pool holds more than it should: looked at with the next synchronisation */

  pthread_mutex_t lock;
  rondo_allocation_table table;     /* what rondo_free can be given */
  rondo_allocation_table host;      /* what rondo_host_free can be given */
  rondo_withheld withheld;          /* what it was given last */
  struct rondo_host_watch *watches; /* who is told of what it frees, by `next` */
  rondo_range_index own; /* chunks of pools, ranges of graphs, withheld host memory: all that is the device's */
  rondo_order_table orders;
  rondo_pool immediate;                     /* rondo_malloc's */
  rondo_pool default_pool;                  /* rondo_malloc_async's, with those that users made behind it, by `next` */
  rondo_pool *current;                      /* where rondo_malloc_async takes from when it is not told */
  uint32_t destroyed_pools;                 /* of those behind the default pool, how many only wait for their memory */
  rondo_usage stream_ordered;               /* of all of them */
  rondo_heap *heaps;                        /* all, by `next` */
  uint32_t heap_count;                      /* made so far: ids */
  rondo_arena *arenas;                      /* all, by `next` */
  rondo_address_space *retired;             /* without a user, but launches may still run; by `next_retired` */
  _Atomic(struct rondo_warm_up *) warm_ups; /* runs that are noted for profiles, the first begun first */
  uint64_t warm_up_serial;                  /* of the last of them */
} rondo_device_memory;

/* The device's, made at the first call. */
RONDO_MUST_USE rondo_status rondo_device_memory_of(rondo_device *device, rondo_device_memory **out);

/* The same if it was made; NULL: the device has no allocations, pools or graphs. */
static inline rondo_device_memory *rondo_device_memory_made(const rondo_device *device) {
  return atomic_load_explicit(&device->memory.state, memory_order_acquire);
}

/* UNSUPPORTED naming the device and what it has not: stream-ordered memory; memory nodes (GM-1). */
RONDO_MUST_USE rondo_status rondo_device_memory_require_pools(const rondo_device_memory *memory, const char *call);
RONDO_MUST_USE rondo_status rondo_device_memory_require_nodes(const rondo_device_memory *memory, const char *call);

/* Allocates in the order of the stream from the pool (NULL: the current one), or, where the stream is NULL, at once. */
RONDO_MUST_USE rondo_status rondo_memory_allocate(rondo_device_memory *memory, rondo_stream_order *stream,
                                                  rondo_pool *pool, size_t bytes, const char *name, void **out_address);

/* Frees memory of any kind after what is queued, or at once when the stream is NULL. `call` is for messages. */
RONDO_MUST_USE rondo_status rondo_memory_free(rondo_device_memory *memory, const char *call, rondo_stream_order *stream,
                                              void *address);

RONDO_MUST_USE rondo_status rondo_memory_host_allocate(rondo_device_memory *memory, size_t bytes, void **out_address);
RONDO_MUST_USE rondo_status rondo_memory_host_free(rondo_device_memory *memory, void *address);
/* Gives freed host memory back to the allocator; false when there was none. */
bool rondo_memory_release_withheld(rondo_device_memory *memory);
/* Whether these bytes lie in one allocation of host memory that is not freed. Takes the lock. */
bool rondo_memory_host_has(rondo_device_memory *memory, const void *address, size_t bytes);

/* A range of addresses becomes the device's own, in the index; its place there. And is so no more: it is about to be
 * given back. Under the lock. */
uint32_t rondo_memory_note_own(rondo_device_memory *memory, const void *address, size_t bytes);
void rondo_memory_note_gone(rondo_device_memory *memory, const char *address, size_t bytes, uint32_t place);

/* An allocation has ended: a free, or the end of a life of graph memory. Called after it is out of the tables, or no
 * longer live, so that a launch which sees the old count came before the free. Any thread. */
static inline void rondo_memory_note_ended(const rondo_device_memory *memory) {
  atomic_fetch_add_explicit(&memory->device->allocations_ended, 1, memory_order_release);
}

/* Lets the lock go, under which the pool was changed, and destroys the chunks that it discarded. */
void rondo_memory_leave_pool(rondo_device_memory *memory, rondo_pool *pool);

/* struct_size of `out` is left alone. */
void rondo_memory_read_statistics(rondo_device_memory *memory, rondo_memory_statistics *out);
void rondo_memory_lower_highs(rondo_device_memory *memory);

#endif
