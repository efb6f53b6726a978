/* SPDX-License-Identifier: MIT
 * Runs that are not recorded, noted for a profile (rondo_profile_begin): the stream-ordered mallocs and frees of a
 * stream, and of the streams that are ordered behind the begin, as nodes of a DAG. A stream's own nodes follow each
 * other; one comes before another stream's node when that stream's clock says so (stream_order.h). What no clock says
 * is not ordered, so that its allocations count as living together.
 *
 * The begin and the mallocs are numbered as frees of their stream would be: who knows the number of the begin takes
 * part. A block remembers where it was noted, so that frees of memory from before are told from the run's. Noting never
 * makes a call fail: a run that could not go on is dropped, and its end says why.
 *
 * Threads: runs are under the lock of the device's memory, but for the look whether there are any; a run that has ended
 * is its holder's.
 */
#ifndef RONDO_MEMORY_PROFILE_WARM_UP_LOG_H
#define RONDO_MEMORY_PROFILE_WARM_UP_LOG_H

#include "memory/device_memory.h"
#include "memory/profile/lifetime_log.h"

/* The most mallocs and frees, and the most orders between them, that a run notes, in 64 MiB at most. */
#define RONDO_WARM_UP_EVENTS (UINT32_C(1) << 20)
#define RONDO_WARM_UP_EDGES (UINT32_C(1) << 22)

typedef struct rondo_warm_up rondo_warm_up;

/* INVALID_STATE/ALREADY_PROFILING, by the stream's label, when it has begun one already; OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_warm_up_begin(rondo_device_memory *memory, rondo_stream_order *stream,
                                                const char *label);

/* The run that was begun on the stream, which is over; NULL when there is none. The caller destroys it. */
rondo_warm_up *rondo_warm_up_end(rondo_device_memory *memory, const rondo_stream_order *stream);

/* What a run that is over noted. LIMIT_EXCEEDED, OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_warm_up_note(const rondo_warm_up *run, rondo_noted_lifetimes **out);
void rondo_warm_up_destroy(rondo_warm_up *run); /* NULL is fine */

/* The stream has allocated the block. Without the lock. */
void rondo_warm_up_note_alloc_slowly(rondo_device_memory *memory, rondo_stream_order *stream, rondo_block *block);
/* The stream has freed it, which is its free `number`. Under the lock. */
void rondo_warm_up_note_free_slowly(rondo_device_memory *memory, const rondo_stream_order *stream,
                                    const rondo_block *block, uint64_t number);

/* What the stream's run did not allocate is given up there (rondo_noted_end). Without the lock. */
void rondo_warm_up_note_end(rondo_device_memory *memory, rondo_stream_order *stream, uint64_t key);

static inline bool rondo_warm_up_runs(const rondo_device_memory *memory) {
  return __builtin_expect(atomic_load_explicit(&memory->warm_ups, memory_order_relaxed) != NULL, 0);
}

#endif
