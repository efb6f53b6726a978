/* SPDX-License-Identifier: MIT
 * Runs nodes on the streams of an executor (<rondo/executor.h>): it chooses the stream and the time at which each node
 * is enqueued.
 *
 * Threads: an executor is claimed by one run at a time, or by one thread that creates its streams. One thread at a time
 * uses a plan.
 */
#ifndef RONDO_EXEC_EAGER_EXECUTOR_H
#define RONDO_EXEC_EAGER_EXECUTOR_H

#include <rondo/executor.h>
#include <rondo/stream.h>

#include "base/component.h"

typedef enum rondo_purpose {
  RONDO_PURPOSE_COMPUTE,
  RONDO_PURPOSE_HOST_TO_DEVICE,
  RONDO_PURPOSE_DEVICE_TO_HOST,
  RONDO_PURPOSE_DEVICE_TO_DEVICE,
  RONDO_PURPOSES
} rondo_purpose;

/* Enqueues a node's work on the stream. */
typedef rondo_status (*rondo_executor_run_node)(void *user, uint32_t node, rondo_stream *stream);

typedef struct rondo_executor_work {
  uint32_t count;
  const uint32_t *before_start, *before; /* as in rondo_ready_graph_make */
  const rondo_purpose *purposes;         /* one for each node */
  const bool *is_expensive;              /* one for each node */
  rondo_executor_run_node run_node;
} rondo_executor_work;

/* Work that is prepared to run on an executor. The executor must outlive it. */
typedef struct rondo_executor_plan rondo_executor_plan;

/* The lists are copied. Errors: OUT_OF_MEMORY, and what streams and events return. */
RONDO_PRIVATE RONDO_MUST_USE rondo_status rondo_executor_plan_create(rondo_executor *executor,
                                                                     const rondo_executor_work *work,
                                                                     rondo_executor_plan **out);
/* The plan's work must be finished. NULL is allowed. */
RONDO_PRIVATE void rondo_executor_plan_destroy(rondo_executor_plan *plan);

/* Runs the work after what is enqueued on the stream. Work that is enqueued there later runs after it, even if it
 * failed. *out_has_run is false if nothing was run, because the stream captures or another run uses the executor. Does
 * not allocate. Errors: the first failure of a node. */
RONDO_PRIVATE RONDO_MUST_USE rondo_status rondo_executor_run(rondo_executor_plan *plan, rondo_stream *stream,
                                                             void *user, bool *out_has_run);

/* Returns what failed on the executor's streams in runs of the plan. Call it after synchronizing with the stream of
 * these runs. */
RONDO_PRIVATE RONDO_MUST_USE rondo_status rondo_executor_settle(rondo_executor_plan *plan);

/* Whether running a node computes it, instead of only enqueuing it (a CPU device). */
RONDO_PRIVATE bool rondo_executor_computes(const rondo_executor *executor);
/* The time from which on a node is expensive. */
RONDO_PRIVATE uint64_t rondo_executor_expensive_ns(const rondo_executor *executor);
RONDO_PRIVATE rondo_device *rondo_executor_device(const rondo_executor *executor);

#endif
