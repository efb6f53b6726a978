/* SPDX-License-Identifier: MIT
 * The memory of one device: the table of its allocations, the pools behind rondo_malloc and rondo_malloc_async, and the
 * roots of graph memory (heaps, retired address spaces). Made when the device is first asked for memory or a graph,
 * freed when the device closes.
 *
 * Threads: all functions here may be called from any thread. `lock` protects what stands below it; order of locks:
 * gates of heaps (heap.h), the lower id first, then `lock`. Under `lock` the driver is asked whether events are
 * complete and nothing else: whatever may wait or take long runs without it.
 */
#ifndef RONDO_MEMORY_DEVICE_MEMORY_H
#define RONDO_MEMORY_DEVICE_MEMORY_H

#include <pthread.h>
#include <stdatomic.h>

#include <rondo/memory.h>

#include "base/error.h"
#include "device/device.h"
#include "memory/allocation_table.h"
#include "memory/block_pool.h"

typedef struct rondo_heap rondo_heap;
typedef struct rondo_address_space rondo_address_space;

/* A figure with its highest value. */
typedef struct rondo_level {
  _Atomic uint64_t now, high;
} rondo_level;

void rondo_level_add(rondo_level *level, uint64_t amount);
void rondo_level_subtract(rondo_level *level, uint64_t amount);

typedef struct rondo_device_memory {
  rondo_device *device;
  rondo_allocator allocator;
  size_t page_bytes;
  bool graph_memory; /* the device can hold graph memory (GM-1) */
  rondo_level graph_used, graph_reserved;
  _Atomic uint64_t remaps, heap_growth;

  pthread_mutex_t lock;
  rondo_allocation_table table; /* what rondo_free can be given */
  rondo_allocation_table host;  /* what rondo_host_free can be given */
  rondo_pool immediate, stream_ordered;
  rondo_heap *heaps;            /* all, by `next` */
  uint32_t heap_count;          /* made so far: ids */
  rondo_address_space *retired; /* without a user, but launches may still run; by `next_retired` */
} rondo_device_memory;

/* The device's, made at the first call. */
RONDO_MUST_USE rondo_status rondo_device_memory_of(rondo_device *device, rondo_device_memory **out);

/* UNSUPPORTED naming the device when it has no graph memory and no stream-ordered memory (GM-1). */
RONDO_MUST_USE rondo_status rondo_device_memory_require(const rondo_device_memory *memory, const char *call);

/* Allocates in the order of `queue`, or at once when it is NULL. */
RONDO_MUST_USE rondo_status rondo_memory_allocate(rondo_device_memory *memory, rondo_queue *queue, size_t bytes,
                                                  const char *name, void **out_address);

/* Frees memory of any kind after what is queued, or at once when `queue` is NULL. `call` is for messages. */
RONDO_MUST_USE rondo_status rondo_memory_free(rondo_device_memory *memory, const char *call, rondo_queue *queue,
                                              void *address);

/* OUT_OF_RANGE when the range begins in an allocation and passes its end (B4); `what` names the range. Addresses in no
 * allocation of the device's pass. */
RONDO_MUST_USE rondo_status rondo_memory_check_range(rondo_device_memory *memory, const char *call, const char *what,
                                                     const void *address, size_t bytes);

RONDO_MUST_USE rondo_status rondo_memory_host_allocate(rondo_device_memory *memory, size_t bytes, void **out_address);
RONDO_MUST_USE rondo_status rondo_memory_host_free(rondo_device_memory *memory, void *address);

/* A second try went well: the thread's error detail is again what it was before the first. */
void rondo_memory_forget_error(const rondo_saved_error *before);

/* Gives all that the pools hold unused back to the system: the last thing to try before memory runs out. */
void rondo_memory_give_back_idle(rondo_device_memory *memory);

void rondo_memory_trim_pool(rondo_device_memory *memory, uint64_t keep_bytes);

/* struct_size of `out` is left alone. */
void rondo_memory_read_statistics(rondo_device_memory *memory, rondo_memory_statistics *out);
void rondo_memory_lower_highs(rondo_device_memory *memory);

#endif
