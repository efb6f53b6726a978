/* SPDX-License-Identifier: MIT
 * Executors: runs that are not recorded, by a ready queue (SE-10). Kernel by kernel, a program runs in one line on one
 * stream. With an executor, each operator and each copy runs as soon as all that it depends on has: cheap ones are
 * played by the thread that finds them ready, expensive ones by threads of the executor's; and on streams by purpose:
 * for compute, copies from the host, copies to it, and copies within the device. Streams wait for each other by events
 * where one's work needs another's, and all are joined in the program's stream at the end.
 *
 *   rondo_executor *executor = NULL;
 *   TRY(rondo_executor_create(device, NULL, &executor));
 *   const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .executor = executor};
 *   TRY(rondo_compile(program, device, &options, &compiled));      // measures both ways
 *   TRY(rondo_compiled_run_unrecorded(compiled));                  // by the faster one
 *
 * To play an operator means, on CUDA, to queue it, by which the host is kept for as long as its calls take: the threads
 * are for work whose calls take long. On a CPU device, whose work is the host's anyway, expensive operators are
 * computed by the thread that has them, and what depends on them needs no event; a run returns when they are done, and
 * cheap ones may then still be under way. Each thread has streams of its own. Results have the same bits as in a line,
 * and as recorded.
 *
 * A run that is being captured, and one of a program whose executor is busy with another's, goes in a line.
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
  uint32_t threads; /* for expensive operators, beside the one that runs, at most RONDO_EXECUTOR_MAX_THREADS; 0: one for
                       each processor but one, 1 to 4; RONDO_EXECUTOR_NO_THREADS: none, streams by purpose alone */
  double expensive_us; /* what takes so many microseconds to play is expensive; 0: 20 */
  const char *name;    /* of its streams, for messages; copied; may be NULL */
} rondo_executor_options;
#define RONDO_EXECUTOR_OPTIONS_INIT .struct_size = sizeof(rondo_executor_options)

/* Starts the threads, which sleep between runs. options may be NULL. The caller destroys it before the device is
 * closed. Thread-safe. Errors: INVALID_ARGUMENT with NULL_ARGUMENT, BAD_OPTIONS, OUT_OF_RANGE; OUT_OF_MEMORY;
 * LIMIT_EXCEEDED (threads). */
RONDO_API RONDO_MUST_USE rondo_status rondo_executor_create(rondo_device *device, const rondo_executor_options *options,
                                                            rondo_executor **out_executor);

/* Stops the threads and frees the streams. NULL is fine. Errors: INVALID_STATE/STILL_IN_USE (a program that was
 * compiled with it is there; all is as before); IN_CALLBACK; else it is gone, and a failure is that of work that nobody
 * waited for. */
RONDO_API RONDO_MUST_USE rondo_status rondo_executor_destroy(rondo_executor *executor);

/* When a program's un-recorded runs go by its executor. */
typedef enum rondo_executor_policy {
  RONDO_EXECUTOR_WHERE_FASTER = 0, /* if that was at least a twentieth faster when it was compiled */
  RONDO_EXECUTOR_ALWAYS = 1
} rondo_executor_policy;

/* What it has done so far, in runs of all programs. */
typedef struct rondo_executor_info {
  uint32_t struct_size;
  uint32_t threads;
  uint64_t runs;
  uint64_t nodes;        /* operators and copies, played by */
  uint64_t inline_nodes; /* ... the thread that ran, expensive ones among them that it was free for, */
  uint64_t thread_nodes; /* ... and by the executor's threads */
  uint64_t handed_nodes; /* expensive ones, which went to whichever thread was free first */
  uint64_t events;       /* recorded, */
  uint64_t waits;        /* waits of streams for them, and of these */
  uint64_t joins;        /* ... those of the programs' streams at the end of runs */
  uint64_t busy_runs;    /* that went in a line as another program's was on */
  double run_us;         /* that runs took until all was played, together */
  double idle_us;        /* that the threads and the one that ran had nothing to play meanwhile, together */
} rondo_executor_info;

/* Thread-safe. Errors: INVALID_ARGUMENT. */
RONDO_API RONDO_MUST_USE rondo_status rondo_executor_get_info(const rondo_executor *executor,
                                                              rondo_executor_info *out_info);

RONDO_EXTERN_C_END

#endif
