/* SPDX-License-Identifier: MIT
 * The work-stealing core that recorded graphs of the CPU device and eager runs share: tasks that count down their
 * predecessors, and workers that hold ready tasks. The worker that counts a task down to zero owns it, and either runs
 * it or makes it available to other workers.
 *
 * A task is a chain of items (nodes): items of which each is the only successor of its only predecessor become one
 * task, so that a straight line costs nothing to schedule. An item that must stay alone is a task of its own. Tasks are
 * numbered in the order of their first items, which is a topological order, and items are laid out task by task.
 *
 * An entry of a deque is a range of the array `successors` whose tasks are all ready. Its tag names the run that it
 * belongs to. A worker keeps the first task of an entry and pushes halves of the rest back, the largest first, where
 * other workers can steal them. If the deque is full, they go into the worker's own list, so a run needs no memory.
 *
 * Threads: a graph has one run at a time. All threads of the run use a task's `pending`; a list and the bottom of a
 * deque belong to their worker. Counting down is an acquire-release operation: the worker that gets a task sees
 * everything that its predecessors wrote.
 */
#ifndef RONDO_BASE_TASKS_TASK_GRAPH_H
#define RONDO_BASE_TASKS_TASK_GRAPH_H

#include <assert.h>

#include "base/allocation.h"
#include "base/tasks/steal_deque.h"

#define RONDO_NO_TASK UINT32_MAX
enum { RONDO_TAG_BITS = 10, RONDO_MOST_IN_ENTRY = (1 << (32 - RONDO_TAG_BITS)) - 1 };

/* Each task has its own cache line, because usually the thread that counts down the last predecessor also runs the
 * task. */
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
  uint32_t longest_path; /* the largest number of items that must run one after another */
  rondo_task *tasks;
  uint32_t *successors; /* tasks: the successors of each, and after them the sources */
  uint32_t *position;   /* of each item */
} rondo_task_graph;

/* Converts lists of predecessors to lists of successors, each in ascending order. The list of item i is
 * before[before_start[i]] up to before[before_start[i + 1]]; the results have the same form. `after_start` must hold
 * count + 1 zeros. */
void rondo_edges_invert(size_t count, const uint32_t *before_start, const uint32_t *before, uint32_t *after_start,
                        uint32_t *after);

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

/* A first-in, first-out list of tasks, linked by `next`. */
typedef struct rondo_task_list {
  uint32_t first, last;
} rondo_task_list;
#define RONDO_TASK_LIST_EMPTY ((rondo_task_list){RONDO_NO_TASK, RONDO_NO_TASK})

void rondo_task_list_append(rondo_task_list *list, const rondo_task_graph *graph, uint32_t task);
/* RONDO_NO_TASK if the list is empty; then the graph is not read. */
static inline uint32_t rondo_task_list_take(rondo_task_list *list, const rondo_task_graph *graph) {
  const uint32_t task = list->first;
  if (task != RONDO_NO_TASK) list->first = graph->tasks[task].next;
  return task;
}

enum { RONDO_MOST_KEPT = 32, RONDO_MOST_HALVES = 32 - RONDO_TAG_BITS };

typedef struct rondo_task_worker {
  rondo_steal_deque deque; /* entries that others can take */
  rondo_task_list list;    /* tasks that did not fit into the deque */
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

/* Pushes an entry on the deque, where other workers can take it. False if the deque was full; then it is in the
 * worker's list. */
bool rondo_task_put(rondo_task_worker *worker, const rondo_task_graph *graph, uint64_t entry);

/* Returns the first task of an entry and pushes the rest. *out_shared is the number of entries that others can take;
 * each is work for one more worker. */
uint32_t rondo_task_split(rondo_task_worker *worker, const rondo_task_graph *graph, uint64_t entry,
                          uint32_t *out_shared);

/* Keeps an entry private to the worker. For graphs of short tasks, which cost less than an atomic exchange of an entry.
 */
void rondo_task_keep(rondo_task_worker *worker, const rondo_task_graph *graph, uint64_t entry);

/* Shares private entries if the deque is empty: the oldest one, or half of the only one; if `all`, everything but the
 * next task. The worker keeps at least one task. Returns how many entries others can take. */
uint32_t rondo_task_share_kept(rondo_task_worker *worker, const rondo_task_graph *graph, bool all);

/* Takes the next private task. There must be one. */
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

/* Counts `done` predecessors of the task as done. True if they were the last ones; then the count is reset for the next
 * run. */
static inline bool rondo_task_count_down(rondo_task *task, uint32_t done) {
  const uint32_t predecessors = task->predecessors; /* must not be read after the count-down: see below */
  if (predecessors > 1) {
    const uint32_t before = atomic_fetch_sub_explicit(&task->pending, done, memory_order_acq_rel);
    assert(before >= done && before <= predecessors);
    if (before != done) return false;
    atomic_store_explicit(&task->pending, predecessors, memory_order_relaxed);
  }
  return true;
}

/* Counts down the successors from *at to `end`, until it has found a range that is ready. Returns the length of the
 * range, which ends at *out_end; 0 if no more are ready. The run may be over once the last successor is counted down,
 * unless that one became ready here: nothing of the graph is read after that. */
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
