/* SPDX-License-Identifier: MIT
 * What recording gains (FW-8): work of many small kernels gains much, since one launch takes the place of all; work of
 * few large ones gains nothing, since the kernels take as long either way. Here is a measured estimate, made before
 * anything is recorded: of the work, run as it is, are measured the time of the host, that of the device with all
 * queued ahead, and the whole; of the device, once, what launches and nodes cost. What is recorded of a program
 * (<rondo/program.h>) or a tree (<rondo/tree.h>) can be left to it (RONDO_RECORD_WHERE_IT_PAYS).
 *
 *   TRY(work(stream, user));                                     // makes ready what a first run makes ready
 *   TRY(rondo_gain_measure(stream, work, user, 5, &gain));
 *   if (rondo_gain_pays(&gain, 0, 0)) ... record it ...
 *
 * All times are microseconds.
 */
#ifndef RONDO_GAIN_H
#define RONDO_GAIN_H

#include <rondo/stream.h>

RONDO_EXTERN_C_BEGIN

/* What is recorded. */
typedef enum rondo_record_policy {
  RONDO_RECORD_ALWAYS = 0,
  RONDO_RECORD_NEVER = 1,
  RONDO_RECORD_WHERE_IT_PAYS = 2 /* unless the estimate says that it does not (rondo_gain_pays) */
} rondo_record_policy;

/* How an explanation is written (rondo_compiled_explain, rondo_tree_explain). */
typedef enum rondo_explain_format { RONDO_EXPLAIN_TEXT = 0, RONDO_EXPLAIN_JSON = 1 } rondo_explain_format;

/* What a device costs, beside the work itself. */
typedef struct rondo_costs {
  uint32_t struct_size;
  uint32_t reserved;
  double stream_host;        /* of the calls that queue kernels on a stream, all together, */
  double stream_host_kernel; /* ... and for each */
  double stream_latency;     /* until the host knows that all is done, beyond what host or device take */
  double stream_kernel;      /* that a kernel in a stream takes of the device, with the next one queued behind it */
  double launch_host;        /* of the call that launches an exec, */
  double launch_host_node;   /* ... for each of its nodes, */
  double launch_host_cold;   /* ... and more, where the processor's caches have something else */
  double launch_latency;     /* from that call until the host knows that all is done, beyond what the nodes take */
  double launch_kernel;      /* that a kernel in an exec takes of the device, in a straight line */
  double record;             /* to capture, instantiate, upload and launch for the first time, */
  double record_node;        /* ... and for each node */
  /* What moving inputs add to a launch, of the host's time and of the time until all is done together, by which
   * RONDO_BINDING_AUTOMATIC (<rondo/tree.h>) decides. These are not measured here, so that it decides alike in every
   * process: unless others are given they are those of an H200, or of a Xeon. 0: the library's own. */
  double input_patched;      /* patching any, */
  double input_patched_node; /* ... and for each node that is told of one; */
  double input_copied;       /* copying any inside the graph, */
  double input_copied_each;  /* ... and for each; */
  double input_queued_each;  /* for each that is copied in front of the launch; */
  double input_copied_kib;   /* and for each KiB that is copied */
} rondo_costs;
#define RONDO_COSTS_INIT .struct_size = sizeof(rondo_costs)

/* The device's costs, which are measured at the first call, with kernels that do nothing on a stream of its own: some
 * milliseconds, during which other work should rest. Another thread that asks meanwhile waits for the same figures. On
 * CUDA, code is loaded, which waits for all that the device runs. Thread-safe. Errors: INVALID_ARGUMENT;
 * CAPTURE_REFUSED/UNSUPPORTED_CALL while anything is captured or recorded in the process, with which captures go on:
 * costs that are known are given all the same; IN_CALLBACK; OUT_OF_MEMORY, UNAVAILABLE and what else streams, kernels
 * and execs return. */
RONDO_API RONDO_MUST_USE rondo_status rondo_device_get_costs(rondo_device *device, rondo_costs *out_costs);

/* Makes these the device's costs, of an earlier process for example, so that decisions are the same in each; with NULL
 * they are measured anew when they are asked for. What was decided stays. Thread-safe. Errors: INVALID_ARGUMENT with
 * NULL_ARGUMENT (device), OUT_OF_RANGE (a cost that is negative or not finite), BAD_OPTIONS; OUT_OF_MEMORY,
 * IN_CALLBACK. */
RONDO_API RONDO_MUST_USE rondo_status rondo_device_set_costs(rondo_device *device, const rondo_costs *costs);

/* Work as it is, and recorded. */
typedef struct rondo_gain {
  uint32_t struct_size;
  uint32_t works;          /* kernels, copies, fills, host functions and calls of libraries that a run queues */
  double host_us;          /* of the calls that queue them */
  double device_us;        /* from the first one's begin to the last one's end, all of them queued before */
  double total_us;         /* from the first call until the host knows that all is done */
  double recorded_host_us; /* the same of a launch of an exec of this work */
  double recorded_total_us;
  double record_us;       /* what recording costs once */
  double host_gain;       /* host_us / recorded_host_us; 0: not known */
  double total_gain;      /* total_us / recorded_total_us; 0: not known */
  uint64_t runs_to_repay; /* runs after which recorded ones have saved as much as recording cost; 0: never */
  bool is_measured;       /* what is recorded was run, else it is predicted */
} rondo_gain;

/* Predicts, from `works`, `host_us`, `device_us` and `total_us` (0: not known, and then estimated) in *inout_gain, the
 * rest of it:
 *   recorded_host_us  = launch_host + works * launch_host_node + min(launch_host_cold, beyond), where beyond is what
 *                       host_us has more than stream_host + works * stream_host_kernel
 *   recorded_total_us = launch_latency + works * launch_kernel + (device_us - works * stream_kernel), the last not < 0;
 *                       at least what total_us is more than host_us + stream_latency + works * (stream_kernel -
 *                       launch_kernel), since recording saves no more than that, whatever device_us was measured to
 *                       be; where it is 0, not known, this is left out
 *   record_us         = record + works * record_node
 *   runs_to_repay     = record_us over the larger of what a run saves of total_us and of host_us
 * The recorded work is taken for a straight line of kernels: parallel branches make it faster. With is_measured,
 * recorded times are left as they are. Errors: INVALID_ARGUMENT with NULL_ARGUMENT, BAD_OPTIONS. Thread-safe. */
RONDO_API RONDO_MUST_USE rondo_status rondo_gain_estimate(const rondo_costs *costs, rondo_gain *inout_gain);

/* Whether recording is worth it: a recorded run saves, of the time until it is done or of the host's, so much that the
 * work is done `least` times as fast (0: 1.1) when the host's time counts like any other, and `runs` runs (0: 1000)
 * repay what recording costs. False for NULL. Thread-safe. */
RONDO_API bool rondo_gain_pays(const rondo_gain *gain, double least, uint64_t runs);

/* Queues work on the stream; as it is run several times, it does the same each time. */
typedef rondo_status (*rondo_stream_work)(rondo_stream *stream, void *user);

/* Runs the work once and then 2 * `repeats` times (at most 1000; 0: as many as take some 20 ms, but no more than 25),
 * and predicts what recording gains, all by medians. On CUDA every second run is held back on the device, for 20 ms at
 * most, until all of it is queued. What a first run makes ready counts: run it once before. Of more than some hundred
 * kernels, where the stream's queue is full before all is queued, device_us has waits for the host in it, and the
 * prediction is careful. Waits for the stream. Thread-compatible, as the stream; other work of the device disturbs.
 * Errors: INVALID_ARGUMENT (NULL, OUT_OF_RANGE: repeats); CAPTURE_REFUSED/UNSUPPORTED_CALL as rondo_device_get_costs,
 * and on a capturing stream; what the work and rondo_stream_synchronize return. */
RONDO_API RONDO_MUST_USE rondo_status rondo_gain_measure(rondo_stream *stream, rondo_stream_work work, void *user,
                                                         uint32_t repeats, rondo_gain *out_gain);

RONDO_EXTERN_C_END

#endif
