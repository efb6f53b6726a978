/* SPDX-License-Identifier: MIT
 * A ready queue: runs each node of an acyclic graph once, as soon as all nodes before it have run, on the work-stealing
 * core that recorded graphs use too (base/tasks/task_graph.h).
 *
 * A lane is a thread: lane 0 is the caller of a run, the others are threads of the queue. Whoever finishes the last
 * node before another one finds that one ready. A cheap node stays on the lane that found it, in order. An expensive
 * node goes to the lane's deque, from which any lane takes it, the oldest first; the caller takes expensive nodes when
 * it has found nothing else.
 *
 * Invariant: after one node has failed no further node is played, but all are passed, so a run ends with nothing under
 * way. A run allocates nothing. Threads: one run at a time.
 */
#ifndef RONDO_EXEC_EAGER_READY_QUEUE_H
#define RONDO_EXEC_EAGER_READY_QUEUE_H

#include "base/tasks/task_graph.h"

/* Made once; one run at a time. Task p is node p. */
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

/* While a node before it is played: whether all others before it are finished, so that the lane that plays that one
 * will find this one ready. */
static inline bool rondo_ready_waits_for_one(const rondo_ready_graph *graph, uint32_t node) {
  const rondo_task *task = &graph->tasks.tasks[node];
  return task->predecessors < 2 || atomic_load_explicit(&task->pending, memory_order_relaxed) == 1;
}

typedef struct rondo_ready_queue rondo_ready_queue;

/* Plays a node on a lane. It sees what the nodes before it wrote. */
typedef rondo_status (*rondo_ready_play)(void *user, uint32_t lane, uint32_t node);

/* Of all runs so far. */
typedef struct rondo_ready_counts {
  uint64_t runs, nodes;
  uint64_t handed;  /* expensive nodes that went to a deque, */
  uint64_t threads; /* and nodes that threads of the queue played, with the cheap ones that they found */
  uint64_t run_ns;  /* the time of all runs */
  uint64_t idle_ns; /* the time in runs in which the threads and the caller had nothing to play, together */
} rondo_ready_counts;

/* Errors: OUT_OF_MEMORY, LIMIT_EXCEEDED (threads). */
RONDO_MUST_USE rondo_status rondo_ready_queue_create(const rondo_allocator *allocator, uint32_t threads,
                                                     rondo_ready_queue **out);
/* No run is on. NULL is fine. */
void rondo_ready_queue_destroy(rondo_ready_queue *queue);

/* Plays all nodes and returns when the last is finished. Returns the first failure, which is the calling thread's last
 * error too. One run at a time. */
RONDO_MUST_USE rondo_status rondo_ready_queue_run(rondo_ready_queue *queue, rondo_ready_graph *graph,
                                                  rondo_ready_play play, void *user);

/* On any thread; during a run, what it has counted so far. */
void rondo_ready_queue_count(const rondo_ready_queue *queue, rondo_ready_counts *out);

#endif
