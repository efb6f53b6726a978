/* SPDX-License-Identifier: MIT
 * Metering a run of work on a stream: the number of pieces of work, the time of the host to enqueue them, and the time
 * of the device when all of them are enqueued before it starts. For the last, a *gate* is enqueued first: a host
 * function that blocks the stream until the meter's end, or for a bounded time.
 *
 * A gate belongs to its device, because its function may still run after the meter is freed. A gate whose function has
 * ended is reused. Synchronous devices, which wait after each call, have no gates. CPUs have none either, because a
 * gate would wake a worker that small work does not need. There the device's time is the host's if the host is slower.
 *
 * Threads: a meter belongs to its stream's thread. Until its end no other meter begins on that thread.
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
  rondo_gate *gate;         /* NULL: open, or none */
  uint64_t began_ns, host_ns;
  uint64_t works; /* the thread's count at the begin; the difference after the end */
  bool counts;    /* the thread counts its works: until the end */
} rondo_meter;

/* Whether meters on the stream have a gate. */
bool rondo_meter_holds(const rondo_stream *stream);

/* Begins. Work that is enqueued until the end counts, and waits at the gate until then, for at most `most_ns`. After a
 * failure the meter is zeros. Errors: OUT_OF_MEMORY, and those of events and host functions. */
RONDO_MUST_USE rondo_status rondo_meter_begin(rondo_meter *meter, rondo_stream *stream, uint64_t most_ns);
/* Stops counting and opens the gate. After a failure the meter reports nothing. */
RONDO_MUST_USE rondo_status rondo_meter_end(rondo_meter *meter);
/* Opens the gate early, for work that waits before the end. The meter then reports nothing. */
void rondo_meter_stop(rondo_meter *meter);

/* Waits until the run of a meter that has ended is done. Writes works, host_us and device_us. */
RONDO_MUST_USE rondo_status rondo_meter_read(const rondo_meter *meter, rondo_gain *out);

/* Resets the meter to zeros; its run may still be in progress. */
void rondo_meter_free(rondo_meter *meter);

/* Meters one run of the work. */
RONDO_MUST_USE rondo_status rondo_meter_run(rondo_stream *stream, rondo_stream_work work, void *user, uint64_t most_ns,
                                            rondo_gain *out);

/* Work for rondo_meter_run: enqueues a launch of the exec. */
RONDO_MUST_USE rondo_status rondo_queue_launch(rondo_stream *stream, void *exec);

/* Runs the work on the idle stream and waits for it. Writes the host's time to enqueue it and the total time, in
 * microseconds. */
RONDO_MUST_USE rondo_status rondo_time_run(rondo_stream *stream, rondo_stream_work work, void *user, double *out_host,
                                           double *out_total);

/* The gates of a device (device_costs.h). */
typedef struct rondo_gates {
  pthread_mutex_t lock;
  rondo_gate *first;
} rondo_gates;
void rondo_gates_free(rondo_gates *gates, const rondo_allocator *allocator); /* when the device closes */

#endif
