/* SPDX-License-Identifier: MIT
 * Metering a run of work on a stream: how many pieces of work are enqueued, how long the host takes for that, and how
 * long the device takes with all of it enqueued before it starts. For the last a *gate* comes first: a host function
 * that blocks the stream until the meter's end, or for a bounded time.
 *
 * A gate belongs to its device, since its function may still run when the meter is gone. A gate in which no function
 * runs is used again. Synchronous devices, which wait after each call, have no gates. Neither have CPUs, where a gate
 * would wake a worker that small work does not need: there the device's time is the host's when the host is slower.
 *
 * Threads: a meter belongs to its stream's thread. Until its end nothing else meters on that thread.
 */
#ifndef RONDO_EXEC_COST_METER_H
#define RONDO_EXEC_COST_METER_H

#include <rondo/exec.h>
#include <rondo/gain.h>

#include "exec/stream/stream_internal.h"

typedef struct rondo_gate rondo_gate;

typedef struct rondo_meter {
  rondo_stream *stream;     /* NULL: nothing is metered */
  rondo_event *begin, *end; /* with timing */
  rondo_gate *gate;         /* NULL: it is open */
  uint64_t began_ns, host_ns;
  uint64_t works; /* first of the thread, at the end of the run */
  bool counts;    /* the thread's works, until the end */
} rondo_meter;

/* Whether metered work on the stream waits until all of it is enqueued. */
bool rondo_meter_holds(const rondo_stream *stream);

/* Begins: what is queued until the end counts, and waits until then, for `most_ns` at most. Nothing has begun when it
 * fails; the meter is then as one of zeros. Errors: OUT_OF_MEMORY, and what events and host functions return. */
RONDO_MUST_USE rondo_status rondo_meter_begin(rondo_meter *meter, rondo_stream *stream, uint64_t most_ns);
/* Lets the device run, and stops counting. On failure the meter is stopped and reports nothing. */
RONDO_MUST_USE rondo_status rondo_meter_end(rondo_meter *meter);
/* Opens the gate; the meter then reports nothing. For work that waits before the end. */
void rondo_meter_stop(rondo_meter *meter);

/* Of a meter that has ended: waits until its run is done, and writes works, host_us and device_us. */
RONDO_MUST_USE rondo_status rondo_meter_read(const rondo_meter *meter, rondo_gain *out);

/* Resets the meter to zeros; its run may still be in progress. */
void rondo_meter_free(rondo_meter *meter);

/* Meters one run of the work, which waits for `most_ns` at most. */
RONDO_MUST_USE rondo_status rondo_meter_run(rondo_stream *stream, rondo_stream_work work, void *user, uint64_t most_ns,
                                            rondo_gain *out);

/* Work for rondo_meter_run: enqueues a launch of the exec. */
RONDO_MUST_USE rondo_status rondo_queue_launch(rondo_stream *stream, void *exec);

/* Runs the work on the stream, which is idle then, and waits for it: how long the host took to queue it, and how long
 * all of it took, in microseconds. */
RONDO_MUST_USE rondo_status rondo_time_run(rondo_stream *stream, rondo_stream_work work, void *user, double *out_host,
                                           double *out_total);

/* The gates of a device (device_costs.h). */
typedef struct rondo_gates {
  pthread_mutex_t lock;
  rondo_gate *first;
} rondo_gates;
void rondo_gates_free(rondo_gates *gates, const rondo_allocator *allocator); /* nothing of the device runs any more */

#endif
