/* SPDX-License-Identifier: MIT
 * What recording gains (FW-8). Work with many small kernels gains much, because one launch replaces many. Work with few
 * large kernels gains nothing, because the kernels take the same time. This header measures and predicts the gain
 * before anything is recorded. It runs the work eagerly and measures the host time, the device time with all work
 * enqueued in advance, and the total time. For each device it measures once what launches and nodes cost. The decision
 * whether to record a program (<rondo/program.h>) or a function of a tree (<rondo/tree.h>) can be based on this
 * prediction (RONDO_RECORD_AUTO).
 *
 *   TRY(work(stream, user));                                     // a first run prepares what later runs need
 *   TRY(rondo_gain_measure(stream, work, user, 5, &gain));
 *   if (rondo_gain_pays(&gain, 0, 0)) ... record it ...
 *
 * All times are in microseconds.
 */
#ifndef RONDO_GAIN_H
#define RONDO_GAIN_H

#include <rondo/stream.h>

RONDO_EXTERN_C_BEGIN

/* When to record. */
typedef enum rondo_record_policy {
  RONDO_RECORD_ALWAYS = 0,
  RONDO_RECORD_NEVER = 1,
  RONDO_RECORD_AUTO = 2 /* unless the prediction says that it does not pay (rondo_gain_pays) */
} rondo_record_policy;

/* The format of an explanation (rondo_compiled_explain, rondo_tree_explain). */
typedef enum rondo_explain_format { RONDO_EXPLAIN_TEXT = 0, RONDO_EXPLAIN_JSON = 1 } rondo_explain_format;

/* The overhead of a device: time that is spent in addition to the work itself. */
typedef struct rondo_costs {
  uint32_t struct_size;
  uint32_t reserved;
  double stream_host;        /* eager run: host time of the calls that enqueue kernels, for all of them together */
  double stream_host_kernel; /* ... and for each kernel */
  double stream_latency;     /* until the host knows that all work is done, beyond host and device time */
  double stream_kernel;      /* device time of an empty kernel in a stream, if the next kernel is already enqueued */
  double launch_host;        /* recorded run: host time of the call that launches an exec */
  double launch_host_node;   /* ... for each of its nodes */
  double launch_host_cold;   /* ... and in addition, if the processor's caches are cold */
  double launch_latency;     /* from that call until the host knows that all is done, beyond the time of the nodes */
  double launch_kernel;      /* device time of an empty kernel in an exec, in a sequence of kernels */
  double record;             /* to capture, instantiate, upload and launch for the first time */
  double record_node;        /* ... for each node */
  /* What moving inputs add to a launch: the sum of the host time and of the time until all is done.
   * RONDO_BINDING_AUTOMATIC (<rondo/tree.h>) uses them to decide. They are not measured, so that the decision is the
   * same in every process: by default they are those of an H200 or of a Xeon. 0: the library's default. */
  double input_patched;      /* to patch any input, */
  double input_patched_node; /* ... and for each node whose parameters change */
  double input_copied;       /* to copy any input inside the graph, */
  double input_copied_each;  /* ... and for each input */
  double input_queued_each;  /* for each input that is copied before the launch */
  double input_copied_kib;   /* for each KiB that is copied */
} rondo_costs;
#define RONDO_COSTS_INIT .struct_size = sizeof(rondo_costs)

/* Returns the device's costs. The first call measures them, with empty kernels on a stream of its own. This takes some
 * milliseconds, during which the device should have no other work. Another thread that calls meanwhile waits for the
 * same figures. On CUDA this loads code, which waits for all work of the device. Thread-safe. Errors: INVALID_ARGUMENT;
 * CAPTURE_REFUSED/UNSUPPORTED_CALL if the costs are not measured yet and anything is captured or recorded in the
 * process, while captures continue; IN_CALLBACK; OUT_OF_MEMORY, UNAVAILABLE and other errors of streams, kernels and
 * execs. */
RONDO_API RONDO_MUST_USE rondo_status rondo_device_get_costs(rondo_device *device, rondo_costs *out_costs);

/* Sets the device's costs, for example to those of an earlier process, so that decisions are the same in both. With
 * NULL they are measured again when they are needed. Earlier decisions stay. Thread-safe. Errors: INVALID_ARGUMENT with
 * NULL_ARGUMENT (device), OUT_OF_RANGE (a cost that is negative or not finite), BAD_OPTIONS; OUT_OF_MEMORY,
 * IN_CALLBACK. */
RONDO_API RONDO_MUST_USE rondo_status rondo_device_set_costs(rondo_device *device, const rondo_costs *costs);

/* Eager and recorded runs of the same work, compared. */
typedef struct rondo_gain {
  uint32_t struct_size;
  uint32_t works;          /* kernels, copies, fills, host functions and library calls that a run enqueues */
  double host_us;          /* of the calls that enqueue them */
  double device_us;        /* from the start of the first to the end of the last, with all of them enqueued before */
  double total_us;         /* from the first call until the host knows that all is done */
  double recorded_host_us; /* the same for a launch of an exec of this work */
  double recorded_total_us;
  double record_us;       /* one-time cost of recording */
  double host_gain;       /* host_us / recorded_host_us; 0: not known */
  double total_gain;      /* total_us / recorded_total_us; 0: not known */
  uint64_t runs_to_repay; /* number of recorded runs that save as much as recording cost; 0: never */
  bool is_measured;       /* the recorded times were measured; otherwise they are predicted */
} rondo_gain;

/* Predicts the other fields from `works`, `host_us`, `device_us` and `total_us` (0: not known, then estimated) in
 * *inout_gain:
 *   recorded_host_us  = launch_host + works * launch_host_node + min(launch_host_cold, excess), where
 *                       excess = host_us - (stream_host + works * stream_host_kernel)
 *   recorded_total_us = launch_latency + works * launch_kernel + max(0, device_us - works * stream_kernel), but at
 *                       least total_us - (host_us + stream_latency + works * (stream_kernel - launch_kernel)),
 *                       because recording saves no more. If total_us is 0 (not known), there is no such limit.
 *   record_us         = record + works * record_node
 *   runs_to_repay     = record_us / the larger of the savings of a run in total_us and in host_us
 * The prediction assumes that the kernels run one after the other; parallel branches make a recorded run faster. With
 * is_measured, the recorded times are not changed. Errors: INVALID_ARGUMENT with NULL_ARGUMENT, BAD_OPTIONS.
 * Thread-safe. */
RONDO_API RONDO_MUST_USE rondo_status rondo_gain_estimate(const rondo_costs *costs, rondo_gain *inout_gain);

/* Whether recording pays. It does if both hold: counting host time like any other time, a recorded run is at least
 * `least` times as fast (0: 1.1), in total time or in host time; and the savings of `runs` runs (0: 1000) repay the
 * cost of recording. False for NULL. Thread-safe. */
RONDO_API bool rondo_gain_pays(const rondo_gain *gain, double least, uint64_t runs);

/* Enqueues work on the stream. It is called several times and must do the same each time. */
typedef rondo_status (*rondo_stream_work)(rondo_stream *stream, void *user);

/* Runs the work once and then 2 * `repeats` times (at most 1000; 0: as many as take about 20 ms, at most 25), and
 * predicts what recording gains, from medians. On CUDA, every second run is held back on the device, for at most 20 ms,
 * until all of it is enqueued. Initialization in a first run counts too, so run the work once before. With more than
 * some hundred kernels, the stream's queue is full before all are enqueued. device_us then includes waits for the host,
 * and the prediction is conservative. Waits for the stream. Thread-compatible, like the stream; other work on the
 * device disturbs the measurement. Errors: INVALID_ARGUMENT (NULL, OUT_OF_RANGE: repeats);
 * CAPTURE_REFUSED/UNSUPPORTED_CALL as rondo_device_get_costs, and on a capturing stream; the errors of the work and of
 * rondo_stream_synchronize. */
RONDO_API RONDO_MUST_USE rondo_status rondo_gain_measure(rondo_stream *stream, rondo_stream_work work, void *user,
                                                         uint32_t repeats, rondo_gain *out_gain);

RONDO_EXTERN_C_END

#endif
