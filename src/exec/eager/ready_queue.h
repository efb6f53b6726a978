/* SPDX-License-Identifier: MIT
 * A ready queue: runs each node of an acyclic graph once, as soon as all nodes before it have run, on the work-stealing
 * core that recorded graphs use too (base/tasks/task_graph.h).
 *
 * Worker 0 is the thread that calls run; the others are threads of the queue. The worker that finishes a node's last
 * predecessor finds the node ready. It runs cheap nodes itself, in order. It puts expensive nodes into its deque, from
 * which any worker takes the oldest one. Worker 0 takes an expensive node only when it has no other work.
 *
 * Invariant: after a node fails, the other nodes are counted as finished but do not run, so a run never ends with work
 * in progress. A run allocates nothing. Threads: one run at a time.
 */
#ifndef RONDO_EXEC_EAGER_READY_QUEUE_H
#define RONDO_EXEC_EAGER_READY_QUEUE_H

#include "base/tasks/task_graph.h"

/* Made once. Task p is node p. */
typedef struct rondo_ready_graph {
  rondo_task_graph tasks;
  bool *is_expensive;
} rondo_ready_graph;

/* The nodes before node p, each once, are before[before_start[p]] up to before[before_start[p + 1]], all lower than p.
 * is_expensive may be NULL. Errors: OUT_OF_MEMORY. Free the graph also after a failure. */
RONDO_MUST_USE rondo_status rondo_ready_graph_make(const rondo_allocator *allocator, uint32_t count,
                                                   const uint32_t *before_start, const uint32_t *before,
                                                   const bool *is_expensive, rondo_ready_graph *out);
void rondo_ready_graph_free(const rondo_allocator *allocator, rondo_ready_graph *graph);

/* Called while one of the node's predecessors runs. True if all its other predecessors are finished, so the calling
 * worker will find the node ready. */
static inline bool rondo_ready_waits_for_one(const rondo_ready_graph *graph, uint32_t node) {
  const rondo_task *task = &graph->tasks.tasks[node];
  return task->predecessors < 2 || atomic_load_explicit(&task->pending, memory_order_relaxed) == 1;
}

typedef struct rondo_ready_queue rondo_ready_queue;

/* Runs a node on a worker. The node sees what its predecessors wrote. */
typedef rondo_status (*rondo_ready_run_node)(void *user, uint32_t worker, uint32_t node);

/* Totals of all runs so far. */
typedef struct rondo_ready_counts {
  uint64_t runs, nodes;
  uint64_t shared;  /* expensive nodes that were put into a deque */
  uint64_t threads; /* nodes that the queue's own threads ran, including cheap ones */
  uint64_t run_ns;  /* the time of all runs */
  uint64_t idle_ns; /* the sum of all workers' idle time during runs */
} rondo_ready_counts;

/* Errors: OUT_OF_MEMORY, LIMIT_EXCEEDED (threads). */
RONDO_MUST_USE rondo_status rondo_ready_queue_create(const rondo_allocator *allocator, uint32_t threads,
                                                     rondo_ready_queue **out);
/* Must not be called during a run. NULL is allowed. */
void rondo_ready_queue_destroy(rondo_ready_queue *queue);

/* Runs all nodes and returns when the last one is finished. Returns the first failure, which is then also the calling
 * thread's last error. One run at a time. */
RONDO_MUST_USE rondo_status rondo_ready_queue_run(rondo_ready_queue *queue, rondo_ready_graph *graph,
                                                  rondo_ready_run_node run_node, void *user);

/* On any thread. During a run it includes what that run has counted so far. */
void rondo_ready_queue_count(const rondo_ready_queue *queue, rondo_ready_counts *out);

#endif
