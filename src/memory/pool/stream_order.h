/* SPDX-License-Identifier: MIT
 * After which frees a stream's next work comes, as far as the program has expressed it: by stream order, by events and
 * by waiting on the host. These are vector clocks (P2; Lamport 1978, Mattern 1989). With them, a stream that is ordered
 * after a free reuses its memory without querying the device, and the result is the same in every run.
 *
 * A stream that frees has a slot, and its frees are numbered. (slot, number) identifies a free. A stream that knows a
 * free knows all lower numbers of the slot. When a stream ends, another one takes over the slot and continues the
 * numbers, so that knowledge about the slot stays true. A clock is an array with a number for each slot. Clocks are
 * reference-counted, and immutable once shared: recording an event copies a pointer. Without host memory for a clock,
 * knowledge is dropped, which is safe: memory is reused later.
 *
 * Launches do not use this. A stream that frees nothing, and waits for no stream that frees, has no clock.
 *
 * Threads: the order of a stream or event belongs to the thread that uses it; the table of slots is under the lock of
 * the device's memory.
 */
#ifndef RONDO_MEMORY_POOL_STREAM_ORDER_H
#define RONDO_MEMORY_POOL_STREAM_ORDER_H

#include <stdatomic.h>

#include "base/array.h"
#include "device/driver.h"

typedef struct rondo_clock {
  atomic_uint references;
  uint32_t count;
  rondo_allocator allocator;
  uint64_t numbers[]; /* by slot */
} rondo_clock;

/* All zero but the queue: a stream that never freed and knows nothing. */
typedef struct rondo_stream_order {
  rondo_queue *queue;
  uint32_t slot;      /* 0: none yet */
  uint64_t freed;     /* the number of its last free */
  uint64_t waited;    /* the host has waited for its frees up to this number */
  rondo_clock *known; /* of other streams; NULL: nothing */
} rondo_stream_order;

/* The frees and the clock of a stream when an event was recorded on it. Zero: nothing. */
typedef struct rondo_event_order {
  uint32_t slot;
  uint64_t freed;
  rondo_clock *known;
} rondo_event_order;

typedef struct rondo_order_slot {
  uint64_t freed;  /* the number of the last free */
  uint64_t waited; /* the highest number for which the host has waited */
  bool taken;
} rondo_order_slot;

/* The slots. The first one means none. Freed with rondo_array_free. */
typedef RONDO_ARRAY(rondo_order_slot) rondo_order_table;

/* Gives the stream a slot, if it has none. */
RONDO_MUST_USE rondo_status rondo_order_join(const rondo_allocator *allocator, rondo_order_table *table,
                                             rondo_stream_order *stream);
/* Releases the slot: the stream's work is complete, and it will free nothing more. */
void rondo_order_leave(rondo_order_table *table, rondo_stream_order *stream);

/* The next number of the stream, which has a slot: for a free, or another operation that other streams may know of. */
uint64_t rondo_order_number(rondo_order_table *table, rondo_stream_order *stream);

/* The last number of each slot; NULL when nothing was ever freed, or without host memory. */
rondo_clock *rondo_order_snapshot(const rondo_allocator *allocator, const rondo_order_table *table);

/* The last free of the slot after which the stream's next work comes; 0 for none. */
static inline uint64_t rondo_order_known(const rondo_stream_order *stream, uint32_t slot) {
  if (slot == stream->slot) return stream->freed;
  return stream->known != NULL && slot < stream->known->count ? stream->known->numbers[slot] : 0;
}
static inline bool rondo_order_knows(const rondo_stream_order *stream, uint32_t slot, uint64_t number) {
  return number <= rondo_order_known(stream, slot);
}

/* Notes that the stream's next work comes after the free for a reason other than an event. */
void rondo_order_learn(const rondo_allocator *allocator, rondo_stream_order *stream, uint32_t slot, uint64_t number);

void rondo_order_copy_slowly(rondo_event_order *event, const rondo_stream_order *stream);
void rondo_order_merge(const rondo_allocator *allocator, rondo_stream_order *stream, const rondo_event_order *event);
rondo_clock *rondo_clock_retain(rondo_clock *clock); /* returns the clock; NULL is allowed, for both */
void rondo_clock_release(rondo_clock *clock);

/* Notes that the event was recorded on the stream. */
static inline void rondo_order_record(rondo_event_order *event, const rondo_stream_order *stream) {
  if (event->freed != stream->freed || event->slot != stream->slot || event->known != stream->known)
    rondo_order_copy_slowly(event, stream);
}

/* Notes that the stream waits for the event. */
static inline void rondo_order_wait(const rondo_allocator *allocator, rondo_stream_order *stream,
                                    const rondo_event_order *event) {
  if (event->slot != 0 || event->known != NULL) rondo_order_merge(allocator, stream, event);
}

static inline void rondo_order_forget(rondo_event_order *event) {
  if (event->known != NULL) rondo_clock_release(event->known);
  *event = (rondo_event_order){0};
}

#endif
