/* SPDX-License-Identifier: MIT
 * Executors (<rondo/executor.h>) for whoever has nodes to run: which kind of stream each is enqueued on, and when.
 *
 * Threads: one run at a time claims an executor, or one thread that makes streams of it. A plan belongs to one thread
 * at a time.
 */
#ifndef RONDO_EXEC_EAGER_EXECUTOR_H
#define RONDO_EXEC_EAGER_EXECUTOR_H

#include <rondo/executor.h>
#include <rondo/stream.h>

typedef enum rondo_purpose {
  RONDO_PURPOSE_COMPUTE,
  RONDO_PURPOSE_HOST_TO_DEVICE,
  RONDO_PURPOSE_DEVICE_TO_HOST,
  RONDO_PURPOSE_DEVICE_TO_DEVICE,
  RONDO_PURPOSES
} rondo_purpose;

/* Queues a node's work on the stream. */
typedef rondo_status (*rondo_executor_play)(void *user, uint32_t node, rondo_stream *stream);

typedef struct rondo_executor_work {
  uint32_t count;
  const uint32_t *before_start, *before; /* as in rondo_ready_graph_make */
  const rondo_purpose *purposes;         /* one a node */
  const bool *is_expensive;              /* likewise */
  rondo_executor_play play;
} rondo_executor_work;

/* Work made ready to be run by an executor, which stays as long. */
typedef struct rondo_executor_plan rondo_executor_plan;

/* The lists are copied. Errors: OUT_OF_MEMORY, and what streams and events return. */
RONDO_MUST_USE rondo_status rondo_executor_plan_create(rondo_executor *executor, const rondo_executor_work *work,
                                                       rondo_executor_plan **out);
/* Its work is done. NULL is fine. */
void rondo_executor_plan_destroy(rondo_executor_plan *plan);

/* Runs the work after what is queued on the stream; what is queued there later comes after it, also after a
 * failure. *out_has_run is false when it did nothing: the stream captures, or another run is on. Does not allocate.
 * Errors: the first failure of a node. */
RONDO_MUST_USE rondo_status rondo_executor_run(rondo_executor_plan *plan, rondo_stream *stream, void *user,
                                               bool *out_has_run);

/* What failed on the executor's streams in runs of the plan, once the stream of these runs was waited for. */
RONDO_MUST_USE rondo_status rondo_executor_settle(rondo_executor_plan *plan);

/* Whether an operator is computed when it is played (a CPU device). */
bool rondo_executor_computes(const rondo_executor *executor);
/* What is expensive, in nanoseconds. */
uint64_t rondo_executor_expensive_ns(const rondo_executor *executor);
rondo_device *rondo_executor_device(const rondo_executor *executor);

#endif
