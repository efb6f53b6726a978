/* SPDX-License-Identifier: MIT
 * Stream-ordered pools as users see them: making and destroying them, attributes, and what happens to their memory when
 * the host has waited for work.
 *
 * Waiting tells two things: which frees everybody may rely on from now on, and that it is time to give memory back that
 * is over a pool's release threshold. A stream or event without frees behind it, while no pool has too much, is one
 * load and some comparisons here.
 *
 * Threads: any; a stream's and an event's order is the caller's.
 */
#ifndef RONDO_MEMORY_POOL_MEMORY_POOL_H
#define RONDO_MEMORY_POOL_MEMORY_POOL_H

#include "memory/device_memory.h"

RONDO_MUST_USE rondo_status rondo_pools_make(rondo_device_memory *memory, const rondo_pool_options *options,
                                             rondo_pool **out);
RONDO_MUST_USE rondo_status rondo_pools_destroy(rondo_device_memory *memory, rondo_pool *pool);
rondo_pool *rondo_pools_current(rondo_device_memory *memory);
void rondo_pools_set_current(rondo_device_memory *memory, rondo_pool *pool);
/* The devices that may access memory of the pool; NULL: of the current one. */
uint64_t rondo_pools_read_peers(rondo_device_memory *memory, const rondo_pool *pool);

/* BAD_OPTIONS, OUT_OF_RANGE. */
RONDO_MUST_USE rondo_status rondo_pools_read(rondo_device_memory *memory, rondo_pool *pool,
                                             rondo_pool_attribute attribute, uint64_t *out_value);
RONDO_MUST_USE rondo_status rondo_pools_write(rondo_device_memory *memory, rondo_pool *pool,
                                              rondo_pool_attribute attribute, uint64_t value);
void rondo_pools_read_statistics(rondo_device_memory *memory, rondo_pool *pool, rondo_pool_statistics *out);

void rondo_pools_trim(rondo_device_memory *memory, rondo_pool *pool, uint64_t keep_bytes);

/* Gives all that pools hold unused back to the system: what memory that runs out begins with. With `done`, whatever the
 * policies, also where frees are found to be done that nobody waited for: the last resort. */
void rondo_pools_give_back(rondo_device_memory *memory, bool done);

/* Destroyed pools whose memory is free by now go. Cheap when there are none. */
void rondo_pools_sweep_destroyed(rondo_device_memory *memory);
/* The same at the end of the device, whose work is done. */
void rondo_pools_deinit(rondo_device_memory *memory);

/* Waiting. `synchronized`: the host has waited, rather than asked and heard that all is done; that is when memory goes
 * back. */
void rondo_pools_stream_waited_slowly(rondo_device *device, rondo_stream_order *stream, bool synchronized);
void rondo_pools_event_waited_slowly(rondo_device *device, const rondo_event_order *event, bool synchronized);

/* What of all streams of the device will have been waited for when a synchronisation that begins now has ended; NULL
 * when nothing, or when there is no memory to note it. */
rondo_clock *rondo_pools_before_waiting(rondo_device *device);
/* It has ended; takes the clock. */
void rondo_pools_device_waited(rondo_device *device, rondo_clock *before);

/* The stream's queue is destroyed, its work is done. */
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
