/* SPDX-License-Identifier: MIT
 * Eager runs that are logged for a profile (rondo_profile_begin): the stream-ordered mallocs and frees of a stream, and
 * of the streams that are ordered after the begin, as nodes of a DAG. Each node of a stream comes after the previous
 * one, and after a node of another stream if the stream's clock says so (stream_order.h). Allocations without an order
 * between them count as live at the same time.
 *
 * The begin and the mallocs are numbered like frees. A stream that knows the number of the begin takes part. A block
 * stores the run that logged it, so that frees of older memory are not logged. Logging never makes a call fail: after
 * an error the run is dropped, and its end reports the error.
 *
 * Threads: runs are under the lock of the device's memory, except for the check whether there are any. A run that has
 * ended belongs to the caller that ended it.
 */
#ifndef RONDO_MEMORY_PROFILE_WARM_UP_LOG_H
#define RONDO_MEMORY_PROFILE_WARM_UP_LOG_H

#include "memory/device_memory.h"
#include "memory/profile/lifetime_log.h"

/* The limits of a run: mallocs and frees, and edges between them. Together at most 64 MiB. */
#define RONDO_WARM_UP_EVENTS (UINT32_C(1) << 20)
#define RONDO_WARM_UP_EDGES (UINT32_C(1) << 22)

typedef struct rondo_warm_up rondo_warm_up;

/* Begins a run. INVALID_STATE/ALREADY_PROFILING with the stream's label, if a run was begun on it already;
 * OUT_OF_MEMORY.
 */
RONDO_MUST_USE rondo_status rondo_warm_up_begin(rondo_device_memory *memory, rondo_stream_order *stream,
                                                const char *label);

/* Ends the run that was begun on the stream; NULL when there is none. The caller destroys it. */
rondo_warm_up *rondo_warm_up_end(rondo_device_memory *memory, const rondo_stream_order *stream);

/* The log of a run that has ended. LIMIT_EXCEEDED, OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_warm_up_note(const rondo_warm_up *run, rondo_noted_lifetimes **out);
void rondo_warm_up_destroy(rondo_warm_up *run); /* NULL is allowed */

/* Logs that the stream has allocated the block. Without the lock. */
void rondo_warm_up_note_alloc_slowly(rondo_device_memory *memory, rondo_stream_order *stream, rondo_block *block);
/* Logs that the stream has freed the block, with this number. Under the lock. */
void rondo_warm_up_note_free_slowly(rondo_device_memory *memory, const rondo_stream_order *stream,
                                    const rondo_block *block, uint64_t number);

/* Logs that the stream's run frees memory that it did not allocate (rondo_noted_end). Without the lock. */
void rondo_warm_up_note_end(rondo_device_memory *memory, rondo_stream_order *stream, uint64_t key);

static inline bool rondo_warm_up_runs(const rondo_device_memory *memory) {
  return __builtin_expect(atomic_load_explicit(&memory->warm_ups, memory_order_relaxed) != NULL, 0);
}

#endif
