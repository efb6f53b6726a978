/* SPDX-License-Identifier: MIT
 * Stream-ordered pools as users see them: creating and destroying them, attributes, and the effects of a wait of the
 * host.
 *
 * After the host has waited, every stream may reuse the memory of the frees before that, and memory beyond a pool's
 * release threshold is returned to the system. For a stream or event without frees, while no pool exceeds its
 * threshold, this costs one load and a few comparisons.
 *
 * Threads: any. The order of a stream or event belongs to the caller.
 */
#ifndef RONDO_MEMORY_POOL_MEMORY_POOL_H
#define RONDO_MEMORY_POOL_MEMORY_POOL_H

#include "memory/device_memory.h"

RONDO_MUST_USE rondo_status rondo_pools_make(rondo_device_memory *memory, const rondo_pool_options *options,
                                             rondo_pool **out);
RONDO_MUST_USE rondo_status rondo_pools_destroy(rondo_device_memory *memory, rondo_pool *pool);
rondo_pool *rondo_pools_current(rondo_device_memory *memory);
void rondo_pools_set_current(rondo_device_memory *memory, rondo_pool *pool);
/* The devices that may access memory of the pool; NULL means the current pool. */
uint64_t rondo_pools_read_peers(rondo_device_memory *memory, const rondo_pool *pool);

/* BAD_OPTIONS, OUT_OF_RANGE. */
RONDO_MUST_USE rondo_status rondo_pools_read(rondo_device_memory *memory, rondo_pool *pool,
                                             rondo_pool_attribute attribute, uint64_t *out_value);
RONDO_MUST_USE rondo_status rondo_pools_write(rondo_device_memory *memory, rondo_pool *pool,
                                              rondo_pool_attribute attribute, uint64_t value);
void rondo_pools_read_statistics(rondo_device_memory *memory, rondo_pool *pool, rondo_pool_statistics *out);

void rondo_pools_trim(rondo_device_memory *memory, rondo_pool *pool, uint64_t keep_bytes);

/* Called after a change of the pool under the lock: releases the lock and destroys the chunks that the pool discarded.
 */
void rondo_pools_leave(rondo_device_memory *memory, rondo_pool *pool);

/* Returns all unused memory of pools to the system: the first step when memory runs out. With `done`, ignores the
 * policies and also looks for completed frees for which the host has not waited: the last step. */
void rondo_pools_give_back(rondo_device_memory *memory, bool done);

/* Frees destroyed pools that have no memory in use. Cheap when there are none. */
void rondo_pools_sweep_destroyed(rondo_device_memory *memory);
/* The same when the device closes and its work is complete. */
void rondo_pools_deinit(rondo_device_memory *memory);

/* The host waited for a stream or an event. Not `synchronized`: it queried and found the work complete; then no memory
 * is returned to the system. */
void rondo_pools_stream_waited_slowly(rondo_device *device, rondo_stream_order *stream, bool synchronized);
void rondo_pools_event_waited_slowly(rondo_device *device, const rondo_event_order *event, bool synchronized);

/* The frees for which a synchronization of the device that begins now will have waited. NULL: none, or no host memory
 * for the clock. */
rondo_clock *rondo_pools_before_waiting(rondo_device *device);
/* That synchronization has ended. Releases the clock. */
void rondo_pools_device_waited(rondo_device *device, rondo_clock *before);

/* The stream is being destroyed, and its work is complete. */
void rondo_pools_forget_stream(rondo_device *device, rondo_stream_order *stream);

static inline bool rondo_pools_have_excess(const rondo_device *device) {
  const rondo_device_memory *memory = rondo_device_memory_made(device);
  return memory != NULL && atomic_load_explicit(&memory->excess, memory_order_relaxed);
}

static inline void rondo_pools_stream_waited(rondo_device *device, rondo_stream_order *stream, bool synchronized) {
  if (stream->freed != stream->waited || (synchronized && rondo_pools_have_excess(device)))
    rondo_pools_stream_waited_slowly(device, stream, synchronized);
}

static inline void rondo_pools_event_waited(rondo_device *device, const rondo_event_order *event, bool synchronized) {
  if (event->slot != 0 || event->known != NULL || (synchronized && rondo_pools_have_excess(device)))
    rondo_pools_event_waited_slowly(device, event, synchronized);
}

#endif
