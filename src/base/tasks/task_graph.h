/* SPDX-License-Identifier: MIT
 * The work-stealing core that recorded graphs of the CPU device and eager runs share: tasks that count down their
 * predecessors, and workers that keep what is ready. Whoever counts a task down to zero owns it, and runs it or puts it
 * where others can take it.
 *
 * A task is a chain of items (nodes): items of which each is the only successor of its only predecessor become one
 * task, so that a straight line costs nothing to schedule. An item that must stay alone is a task of its own. Tasks are
 * numbered in the order of their first items, which is a topological order, and items are laid out task by task.
 *
 * An entry of a deque stands for a range of the array `successors` whose tasks are all ready. Its tag says which run it
 * belongs to. A worker keeps the first task of an entry and puts halves of the rest back, the largest first, where
 * thieves look. What the deque has no room for goes into the worker's own list, so that no run needs memory.
 *
 * Threads: a graph has one run at a time. A task's `pending` is for all threads of the run; a list and the bottom of a
 * deque belong to their worker. Counting down is an acquire-release operation: who gets a task sees all that its
 * predecessors wrote.
 */
#ifndef RONDO_BASE_TASKS_TASK_GRAPH_H
#define RONDO_BASE_TASKS_TASK_GRAPH_H

#include <assert.h>

#include "base/allocation.h"
#include "base/tasks/steal_deque.h"

#define RONDO_NO_TASK UINT32_MAX
enum { RONDO_TAG_BITS = 10, RONDO_MOST_IN_ENTRY = (1 << (32 - RONDO_TAG_BITS)) - 1 };

/* Each has a cache line of its own: mostly, the thread that counts the last predecessor down runs it. */
typedef struct rondo_task {
  alignas(RONDO_CACHE_LINE) _Atomic uint32_t pending; /* predecessors that are not done in this run */
  uint32_t predecessors;
  uint32_t first, count; /* its items, by position */
  uint32_t successors_first, successors_end;
  uint32_t next; /* in a list */
  uint32_t mark; /* for the user of the graph; UINT32_MAX when it is made */
} rondo_task;

typedef struct rondo_task_graph {
  uint32_t item_count, edge_count, task_count, successor_count;
  uint32_t sources_first, source_count, sink_count;
  uint32_t longest_path; /* items that must run one after another, at least */
  rondo_task *tasks;
  uint32_t *successors; /* tasks: the successors of each, and after them the sources */
  uint32_t *position;   /* of each item */
} rondo_task_graph;

/* The successors of item i are successors[successor_start[i]] up to successors[successor_start[i + 1]], all greater
 * than i. `is_alone` may be NULL. Errors: OUT_OF_MEMORY. Free the graph also after a failure. */
RONDO_MUST_USE rondo_status rondo_task_graph_make(const rondo_allocator *allocator, uint32_t item_count,
                                                  const uint32_t *successor_start, const uint32_t *successors,
                                                  bool (*is_alone)(const void *user, uint32_t item), const void *user,
                                                  rondo_task_graph *out);
void rondo_task_graph_free(const rondo_allocator *allocator, rondo_task_graph *graph);

/* Asserts the invariants. While the graph does not run. */
void rondo_task_graph_check(const rondo_task_graph *graph);

/* Running --------------------------------------------------------------------------------------------------------- */

/* Tasks in order, linked by `next`. */
typedef struct rondo_task_list {
  uint32_t first, last;
} rondo_task_list;
#define RONDO_TASK_LIST_EMPTY ((rondo_task_list){RONDO_NO_TASK, RONDO_NO_TASK})

void rondo_task_list_append(rondo_task_list *list, const rondo_task_graph *graph, uint32_t task);
/* RONDO_NO_TASK if the list is empty, for which the graph is not read. */
static inline uint32_t rondo_task_list_take(rondo_task_list *list, const rondo_task_graph *graph) {
  const uint32_t task = list->first;
  if (task != RONDO_NO_TASK) list->first = graph->tasks[task].next;
  return task;
}

enum { RONDO_MOST_KEPT = 32, RONDO_MOST_HALVES = 32 - RONDO_TAG_BITS };

typedef struct rondo_task_worker {
  rondo_steal_deque deque; /* what others can take */
  rondo_task_list list;    /* what the deque had no room for */
  uint32_t kept_count;     /* entries that the worker keeps to itself, the newest last; only of short tasks */
  uint64_t kept[RONDO_MOST_KEPT];
} rondo_task_worker;

static inline uint64_t rondo_task_entry(uint32_t tag, uint32_t first, uint32_t count) {
  assert(count > 0 && count <= RONDO_MOST_IN_ENTRY && tag >> RONDO_TAG_BITS == 0);
  return ((uint64_t)count << RONDO_TAG_BITS | tag) << 32 | first;
}
static inline uint32_t rondo_task_entry_tag(uint64_t entry) {
  return (uint32_t)(entry >> 32) & ((1u << RONDO_TAG_BITS) - 1);
}

static inline uint32_t rondo_task_entry_first(uint64_t entry) { return (uint32_t)entry; }

/* Puts an entry where other workers can take it; false if there was no room, and it went to the worker's list. */
bool rondo_task_put(rondo_task_worker *worker, const rondo_task_graph *graph, uint64_t entry);

/* Keeps the first task of an entry, which is returned, and puts the rest. *out_shared is how many entries others can
 * take: for each, one more worker has something to do. */
uint32_t rondo_task_split(rondo_task_worker *worker, const rondo_task_graph *graph, uint64_t entry,
                          uint32_t *out_shared);

/* For graphs of short tasks, which cost less than the exchange of an entry: the worker keeps an entry to itself. */
void rondo_task_keep(rondo_task_worker *worker, const rondo_task_graph *graph, uint64_t entry);

/* If the deque is empty, others may want what the worker keeps. Puts the oldest entry, or half of the only one; if
 * `all`, everything but the next task. The worker keeps at least one. Returns how many entries others can take. */
uint32_t rondo_task_share_kept(rondo_task_worker *worker, const rondo_task_graph *graph, bool all);

/* The next of the tasks that the worker keeps; there is one. */
static inline uint32_t rondo_task_next_kept(rondo_task_worker *worker, const rondo_task_graph *graph) {
  assert(worker->kept_count > 0);
  uint64_t *newest = &worker->kept[worker->kept_count - 1];
  const uint64_t entry = *newest;
  const uint64_t one = UINT64_C(1) << (32 + RONDO_TAG_BITS); /* of the count */
  if (entry < 2 * one)
    worker->kept_count--;
  else
    *newest = entry - one + 1;
  return graph->successors[rondo_task_entry_first(entry)];
}

/* So many predecessors of the task are done. True if they were the last; then the task has its count again for the next
 * run. */
static inline bool rondo_task_count_down(rondo_task *task, uint32_t done) {
  const uint32_t predecessors = task->predecessors; /* not to be read once it is counted down: see below */
  if (predecessors > 1) {
    const uint32_t before = atomic_fetch_sub_explicit(&task->pending, done, memory_order_acq_rel);
    assert(before >= done && before <= predecessors);
    if (before != done) return false;
    atomic_store_explicit(&task->pending, predecessors, memory_order_relaxed);
  }
  return true;
}

/* Counts down the successors at *at and after, as far as `end`, until it has found a range of them that is ready:
 * returns how many, which end at *out_end. 0 if no more are ready. The run may be over once the last successor is
 * counted down, unless that one became ready here: nothing of the graph is read after that. */
static inline uint32_t rondo_task_next_ready(const rondo_task_graph *graph, uint32_t *at, uint32_t end,
                                             uint32_t *out_end) {
  uint32_t ready = 0;
  while (*at < end && ready < RONDO_MOST_IN_ENTRY) {
    const bool is_ready = rondo_task_count_down(&graph->tasks[graph->successors[*at]], 1);
    *at += 1;
    *out_end = *at - !is_ready;
    if (is_ready)
      ready++;
    else if (ready > 0)
      break;
  }
  return ready;
}

#endif
