/* SPDX-License-Identifier: MIT
 * Executors run programs eagerly on several threads and streams (SE-10). Without an executor, an eager run executes the
 * operators one after the other on one stream. With an executor, an operator or copy starts as soon as everything that
 * it depends on has finished. The thread that finds a cheap operator ready executes it. Expensive operators go to the
 * executor's own threads. There are separate streams for compute, for copies from the host, for copies to the host, and
 * for copies within the device. Streams wait for each other by events, and the program's stream joins all of them at
 * the end of the run.
 *
 *   rondo_executor *executor = NULL;
 *   TRY(rondo_executor_create(device, NULL, &executor));
 *   const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .executor = executor};
 *   TRY(rondo_compile(program, device, &options, &compiled));      // measures with and without
 *   TRY(rondo_compiled_run_eager(compiled));                  // uses the faster one
 *
 * On CUDA, to execute an operator means to enqueue it, which occupies the host thread for as long as the calls take.
 * The executor's threads help where these calls are slow. On a CPU device the host computes the operators itself: the
 * thread that takes an expensive operator computes it at once, and operators that depend on it need no event. A run
 * returns when the expensive operators are done; cheap ones may still be running on a stream. Each thread has its own
 * streams. Results are bit-identical to those of sequential and of recorded runs.
 *
 * A run executes its operators one after the other if it is being captured, or if the executor is busy with a run of
 * another program.
 */
#ifndef RONDO_EXECUTOR_H
#define RONDO_EXECUTOR_H

#include <rondo/device.h>

RONDO_EXTERN_C_BEGIN

#define RONDO_EXECUTOR_MAX_THREADS 16
#define RONDO_EXECUTOR_NO_THREADS UINT32_MAX

typedef struct rondo_executor rondo_executor;

typedef struct rondo_executor_options {
  uint32_t struct_size;
  uint32_t threads;    /* for expensive operators, in addition to the thread that calls run; at most
                          RONDO_EXECUTOR_MAX_THREADS. 0: one for each processor but one, from 1 to 4.
                          RONDO_EXECUTOR_NO_THREADS: none, only the separate streams */
  double expensive_us; /* an operator is expensive if executing it takes at least this many microseconds; 0: 20 */
  const char *name;    /* of its streams, for messages; copied; may be NULL */
} rondo_executor_options;
#define RONDO_EXECUTOR_OPTIONS_INIT .struct_size = sizeof(rondo_executor_options)

/* Starts the threads, which sleep between runs. options may be NULL. The caller destroys the executor before it closes
 * the device. Thread-safe. Errors: INVALID_ARGUMENT with NULL_ARGUMENT, BAD_OPTIONS, OUT_OF_RANGE; OUT_OF_MEMORY;
 * LIMIT_EXCEEDED (threads). */
RONDO_API RONDO_MUST_USE rondo_status rondo_executor_create(rondo_device *device, const rondo_executor_options *options,
                                                            rondo_executor **out_executor);

/* Stops the threads and frees the streams. NULL is fine. Errors: INVALID_STATE/STILL_IN_USE (a program that was
 * compiled with the executor still exists; nothing has changed); IN_CALLBACK. After any other failure the executor is
 * gone; the failure is one of earlier work that nobody waited for. */
RONDO_API RONDO_MUST_USE rondo_status rondo_executor_destroy(rondo_executor *executor);

/* When eager runs of a program use its executor. */
typedef enum rondo_executor_policy {
  RONDO_EXECUTOR_AUTO = 0, /* if it was at least 5 % faster when the program was compiled */
  RONDO_EXECUTOR_ALWAYS = 1
} rondo_executor_policy;

/* Counters over the runs of all programs so far. */
typedef struct rondo_executor_info {
  uint32_t struct_size;
  uint32_t threads;
  uint64_t runs;
  uint64_t nodes;        /* operators and copies that were executed */
  uint64_t inline_nodes; /* ... by the thread that called run, which also takes expensive operators when it is free */
  uint64_t thread_nodes; /* ... by the executor's threads */
  uint64_t queued_nodes; /* expensive operators, which the first free thread took */
  uint64_t events;       /* events that were recorded */
  uint64_t waits;        /* waits of streams for these events */
  uint64_t joins;        /* ... of which waits of the programs' streams at the end of a run */
  uint64_t busy_runs;    /* sequential runs, because the executor was busy with another program */
  double run_us;         /* sum over the runs, until all operators were executed */
  double idle_us;        /* sum over all threads of the time in which they had nothing to execute during runs */
} rondo_executor_info;

/* Thread-safe. Errors: INVALID_ARGUMENT. */
RONDO_API RONDO_MUST_USE rondo_status rondo_executor_get_info(const rondo_executor *executor,
                                                              rondo_executor_info *out_info);

RONDO_EXTERN_C_END

#endif
