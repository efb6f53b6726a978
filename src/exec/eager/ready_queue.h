/* SPDX-License-Identifier: MIT
 * A ready queue: nodes of an acyclic graph are played once each, a node as soon as all before it were. Each node has a
 * count of those before it that are not finished; who finishes the last of them finds it ready, and plays it itself
 * behind what it has found before, if it is cheap, or hands it over, if it is expensive, to whichever thread is free
 * first. Threads: the queue's own, and the one that runs a graph, which takes expensive nodes too when it has found
 * nothing else.
 *
 * A lane is a thread: 0 is the one that runs, the others are the queue's. Cheap nodes go down the lane that found them,
 * without a lock. What is handed over goes through one list under a lock that is held for nothing else. No node is
 * played after one has failed, but all are passed, so that a run ends with nothing under way. A run allocates nothing.
 */
#ifndef RONDO_EXEC_EAGER_READY_QUEUE_H
#define RONDO_EXEC_EAGER_READY_QUEUE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/allocation.h"

/* Nodes and what comes before what. Made once; one run at a time. */
typedef struct rondo_ready_graph {
  uint32_t count, edges;
  uint32_t *before; /* how many come before each */
  uint32_t *start;  /* those behind p: after[start[p]] up to after[start[p + 1]] */
  uint32_t *after;
  bool *is_expensive;
  _Atomic uint32_t *left; /* before each, not finished in this run */
  uint32_t *next;         /* behind each in a list */
} rondo_ready_graph;

/* before_start, before: those before node p, each once, are before[before_start[p]] up to before[before_start[p + 1]],
 * all lower than p. is_expensive may be NULL. Errors: OUT_OF_MEMORY. Freed also after a failure. */
RONDO_MUST_USE rondo_status rondo_ready_graph_make(const rondo_allocator *allocator, uint32_t count,
                                                   const uint32_t *before_start, const uint32_t *before,
                                                   const bool *is_expensive, rondo_ready_graph *out);
void rondo_ready_graph_free(const rondo_allocator *allocator, rondo_ready_graph *graph);

/* While a node before it is being played: whether all others before it are finished, so that whoever plays that one
 * will find this one ready. */
static inline bool rondo_ready_waits_for_one(const rondo_ready_graph *graph, uint32_t node) {
  return atomic_load_explicit(&graph->left[node], memory_order_relaxed) == 1;
}

typedef struct rondo_ready_queue rondo_ready_queue;

/* Plays a node on a lane. What nodes before it wrote is there. */
typedef rondo_status (*rondo_ready_play)(void *user, uint32_t lane, uint32_t node);

/* Of all runs so far. */
typedef struct rondo_ready_counts {
  uint64_t runs, nodes;
  uint64_t handed;  /* expensive nodes that went to the list, */
  uint64_t threads; /* and nodes that the queue's threads played, cheap ones behind them too */
  uint64_t run_ns;  /* that runs took, all together */
  uint64_t idle_ns; /* that threads and the one that runs had nothing to play meanwhile, all together */
} rondo_ready_counts;

/* Errors: OUT_OF_MEMORY, LIMIT_EXCEEDED (threads). */
RONDO_MUST_USE rondo_status rondo_ready_queue_create(const rondo_allocator *allocator, uint32_t threads,
                                                     rondo_ready_queue **out);
void rondo_ready_queue_destroy(rondo_ready_queue *queue); /* no run is on; NULL is fine */

/* Plays all nodes and returns when the last is finished. Returns the first failure, which is the thread's last error
 * too. One run at a time. */
RONDO_MUST_USE rondo_status rondo_ready_queue_run(rondo_ready_queue *queue, rondo_ready_graph *graph,
                                                  rondo_ready_play play, void *user);

/* Any thread; while a run is on, what it has counted so far. */
void rondo_ready_queue_count(const rondo_ready_queue *queue, rondo_ready_counts *out);

#endif
