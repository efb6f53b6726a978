/* SPDX-License-Identifier: MIT
 * Runs graphs with a ready queue. A thread without work polls for a short time and then sleeps (base/tasks/sleepers.h).
 * The queue's threads and the caller sleep on different futexes, so the end of a run wakes only the caller.
 */
#include "exec/eager/ready_queue.h"

#include <rondo/capture.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/tasks/sleepers.h"
#include "device/device.h"

#define SPIN_NS 20000

enum { SPINS_PER_CLOCK_READ = 16 };

/* Graphs ----------------------------------------------------------------------------------------------------------- */

static bool is_task_alone(const void *user, uint32_t node) {
  (void)user;
  (void)node;
  return true;
}

rondo_status rondo_ready_graph_make(const rondo_allocator *allocator, uint32_t count, const uint32_t *before_start,
                                    const uint32_t *before, const bool *is_expensive, rondo_ready_graph *out) {
  const size_t edges = before_start[count];
  uint32_t *start, *after = NULL;
  *out = (rondo_ready_graph){.tasks = {.item_count = count}};
  RONDO_TRY(rondo_allocate_items(allocator, count, sizeof *out->is_expensive, &out->is_expensive));
  for (uint32_t p = 0; is_expensive != NULL && p < count; p++) out->is_expensive[p] = is_expensive[p];
  RONDO_TRY(rondo_allocate_items(allocator, (size_t)count + 1, sizeof *start, &start));
  rondo_status status = rondo_allocate_items(allocator, edges, sizeof *after, &after);
  if (status == RONDO_OK) {
    rondo_edges_invert(count, before_start, before, start, after);
    status = rondo_task_graph_make(allocator, count, start, after, is_task_alone, NULL, &out->tasks);
  }
  rondo_release(allocator, after, edges, sizeof *after);
  rondo_release(allocator, start, (size_t)count + 1, sizeof *start);
  return status;
}

void rondo_ready_graph_free(const rondo_allocator *allocator, rondo_ready_graph *graph) {
  rondo_release(allocator, graph->is_expensive, graph->tasks.item_count, sizeof *graph->is_expensive);
  rondo_task_graph_free(allocator, &graph->tasks);
  *graph = (rondo_ready_graph){0};
}

/* The queue -------------------------------------------------------------------------------------------------------- */

/* Every worker but the first has a thread. Only the worker's own thread writes this, except for the top of the deque.
 */
typedef struct ready_worker {
  rondo_task_worker tasks; /* expensive nodes in the deque, cheap ones in the list */
  rondo_ready_queue *queue;
  uint32_t number;
  _Atomic uint64_t nodes, shared, busy_ns;
  rondo_thread thread;
} ready_worker;

struct rondo_ready_queue {
  rondo_allocator allocator;
  ready_worker *workers;
  uint32_t threads, started;
  rondo_sleepers work;   /* the queue's threads */
  rondo_sleepers news;   /* the caller: wakes when an expensive node is ready or all nodes are finished */
  atomic_bool is_waited; /* the caller sleeps and nobody has woken it yet */
  atomic_bool is_stopped;
  _Atomic uint32_t unfinished;
  atomic_bool has_failed;
  rondo_saved_error error; /* written by the worker that set has_failed */
  rondo_ready_graph *graph;
  rondo_ready_run_node run_node;
  void *user;
  _Atomic uint64_t runs, run_ns, waited_ns; /* written by the caller */
};

/* For a counter with a single writer. */
static void count_up(_Atomic uint64_t *counter, uint64_t more) {
  const uint64_t before = atomic_load_explicit(counter, memory_order_relaxed);
  atomic_store_explicit(counter, before + more, memory_order_relaxed);
}

static bool is_over(rondo_ready_queue *queue) { return atomic_load(&queue->unfinished) == 0; }

/* Wakes a worker for an expensive node: the caller if it sleeps, else a thread. */
static void wake_one(rondo_ready_queue *queue) {
  if (atomic_load(&queue->is_waited) && atomic_exchange(&queue->is_waited, false))
    rondo_sleepers_wake(&queue->news, 1);
  else if (rondo_sleepers_exist(&queue->work))
    rondo_sleepers_wake(&queue->work, 1);
}

/* Queues the node at this index of `successors`, which is ready. */
static void queue_ready(ready_worker *worker, uint32_t index) {
  rondo_ready_queue *queue = worker->queue;
  const rondo_task_graph *tasks = &queue->graph->tasks;
  const uint32_t node = tasks->successors[index];
  if (!queue->graph->is_expensive[node] || queue->threads == 0) {
    rondo_task_list_append(&worker->tasks.list, tasks, node);
  } else if (rondo_task_put(&worker->tasks, tasks, rondo_task_entry(0, index, 1))) {
    count_up(&worker->shared, 1);
    wake_one(queue);
  }
}

/* After the last node is finished, its worker must not access the run again. */
static void finish(ready_worker *worker, uint32_t node) {
  rondo_ready_queue *queue = worker->queue;
  const rondo_task_graph *tasks = &queue->graph->tasks;
  const uint32_t end = tasks->tasks[node].successors_end;
  uint32_t at = tasks->tasks[node].successors_first, ready_end = 0, ready;
  while ((ready = rondo_task_next_ready(tasks, &at, end, &ready_end)) > 0)
    for (uint32_t index = ready_end - ready; index < ready_end; index++) queue_ready(worker, index);
  const uint32_t before = atomic_fetch_sub(&queue->unfinished, 1);
  assert(before > 0);
  if (before == 1 && worker->number != 0 && rondo_sleepers_exist(&queue->news)) rondo_sleepers_wake(&queue->news, 1);
}

static void run_node(ready_worker *worker, uint32_t node) {
  rondo_ready_queue *queue = worker->queue;
  count_up(&worker->nodes, 1);
  if (!atomic_load_explicit(&queue->has_failed, memory_order_relaxed) &&
      queue->run_node(queue->user, worker->number, node) != RONDO_OK &&
      !atomic_exchange_explicit(&queue->has_failed, true, memory_order_relaxed))
    rondo_error_save(&queue->error);
  finish(worker, node);
}

/* Runs the cheap nodes that the worker has found. The run is not over while there is one. */
static void run_cheap(ready_worker *worker) {
  while (worker->tasks.list.first != RONDO_NO_TASK)
    run_node(worker, rondo_task_list_take(&worker->tasks.list, &worker->queue->graph->tasks));
}

/* Waiting ---------------------------------------------------------------------------------------------------------- */

/* Takes the oldest expensive node of the worker's own deque or, if that is empty, of another worker's. */
static uint32_t take_expensive(ready_worker *worker) {
  rondo_ready_queue *queue = worker->queue;
  const uint32_t workers = queue->threads + 1;
  uint32_t shared;
  for (uint32_t i = 0; i < workers; i++) {
    rondo_steal steal;
    rondo_steal_deque *deque = &queue->workers[(worker->number + i) % workers].tasks.deque;
    if (rondo_deque_peek(deque, &steal) && rondo_deque_take(deque, &steal))
      return rondo_task_split(&worker->tasks, &queue->graph->tasks, steal.entry, &shared);
  }
  return RONDO_NO_TASK;
}

static bool has_expensive(rondo_ready_queue *queue) {
  rondo_steal steal;
  for (uint32_t i = 0; i <= queue->threads; i++)
    if (rondo_deque_peek(&queue->workers[i].tasks.deque, &steal)) return true;
  return false;
}

/* Polls until there is an expensive node, the run is over, or SPIN_NS have passed. */
static void spin(rondo_ready_queue *queue) {
  uint64_t begun = 0;
  for (uint32_t turn = 1; !is_over(queue) && !has_expensive(queue); turn++) {
    rondo_relax();
    if (turn % SPINS_PER_CLOCK_READ != 0) continue;
    const uint64_t now = rondo_clock_ns();
    if (begun == 0) begun = now;
    if (now - begun > SPIN_NS) return;
    rondo_yield();
  }
}

/* For the caller. Returns a node, or RONDO_NO_TASK when all nodes are finished. */
static uint32_t caller_next(rondo_ready_queue *queue) {
  uint32_t node;
  spin(queue);
  while ((node = take_expensive(&queue->workers[0])) == RONDO_NO_TASK && !is_over(queue)) {
    const uint32_t epoch = rondo_sleepers_enter(&queue->news);
    atomic_store(&queue->is_waited, true);
    if (!has_expensive(queue) && !is_over(queue)) rondo_sleepers_sleep(&queue->news, epoch);
    atomic_store(&queue->is_waited, false);
    rondo_sleepers_leave(&queue->news);
  }
  return node;
}

/* For a thread of the queue. Returns a node, or RONDO_NO_TASK when the queue is being destroyed. */
static uint32_t thread_next(ready_worker *worker) {
  rondo_ready_queue *queue = worker->queue;
  uint32_t node;
  spin(queue);
  while ((node = take_expensive(worker)) == RONDO_NO_TASK && !atomic_load(&queue->is_stopped)) {
    const uint32_t epoch = rondo_sleepers_enter(&queue->work);
    if (!has_expensive(queue) && !atomic_load(&queue->is_stopped)) rondo_sleepers_sleep(&queue->work, epoch);
    rondo_sleepers_leave(&queue->work);
  }
  return node;
}

static void *thread_main(void *argument) {
  ready_worker *worker = argument;
  rondo_capture_mode mode = RONDO_CAPTURE_RELAXED;
  rondo_thread_note_own();
  rondo_status_ignore(rondo_capture_exchange_thread_mode(&mode), "a call that the mode forbids reports it");
  for (uint32_t node; (node = thread_next(worker)) != RONDO_NO_TASK;) {
    const uint64_t begun = rondo_clock_ns();
    run_node(worker, node);
    run_cheap(worker);
    count_up(&worker->busy_ns, rondo_clock_ns() - begun);
  }
  return NULL;
}

/* Running ---------------------------------------------------------------------------------------------------------- */

static void begin(rondo_ready_queue *queue, rondo_ready_graph *graph, rondo_ready_run_node run, void *user) {
  assert(is_over(queue));
  queue->graph = graph;
  queue->run_node = run;
  queue->user = user;
  atomic_store_explicit(&queue->has_failed, false, memory_order_relaxed);
  atomic_store(&queue->unfinished, graph->tasks.task_count);
}

rondo_status rondo_ready_queue_run(rondo_ready_queue *queue, rondo_ready_graph *graph, rondo_ready_run_node run,
                                   void *user) {
  ready_worker *worker = &queue->workers[0];
  const uint64_t begun = rondo_clock_ns();
  begin(queue, graph, run, user);
  for (uint32_t i = 0; i < graph->tasks.source_count; i++) queue_ready(worker, graph->tasks.sources_first + i);
  run_cheap(worker);
  while (!is_over(queue)) {
    const uint64_t waits = rondo_clock_ns();
    const uint32_t node = caller_next(queue);
    count_up(&queue->waited_ns, rondo_clock_ns() - waits);
    if (node == RONDO_NO_TASK) break;
    run_node(worker, node);
    run_cheap(worker);
  }
  rondo_task_graph_check(&graph->tasks); /* ready for the next run */
  count_up(&queue->runs, 1);
  count_up(&queue->run_ns, rondo_clock_ns() - begun);
  const bool has_failed = atomic_load_explicit(&queue->has_failed, memory_order_relaxed);
  return has_failed ? rondo_error_raise(&queue->error) : RONDO_OK;
}

/* A thread may still be busy after the end of a run. Then its busy time exceeds the run's time, and idle_ns counts no
 * idle time for it. */
void rondo_ready_queue_count(const rondo_ready_queue *queue, rondo_ready_counts *out) {
  uint64_t busy_ns = 0;
  *out = (rondo_ready_counts){.runs = atomic_load_explicit(&queue->runs, memory_order_relaxed),
                              .run_ns = atomic_load_explicit(&queue->run_ns, memory_order_relaxed)};
  for (uint32_t i = 0; i <= queue->threads; i++) {
    const uint64_t nodes = atomic_load_explicit(&queue->workers[i].nodes, memory_order_relaxed);
    out->nodes += nodes;
    out->shared += atomic_load_explicit(&queue->workers[i].shared, memory_order_relaxed);
    if (i > 0) out->threads += nodes;
    busy_ns += atomic_load_explicit(&queue->workers[i].busy_ns, memory_order_relaxed);
  }
  const uint64_t thread_ns = queue->threads * out->run_ns;
  out->idle_ns = atomic_load_explicit(&queue->waited_ns, memory_order_relaxed);
  if (thread_ns > busy_ns) out->idle_ns += thread_ns - busy_ns;
}

/* Life ------------------------------------------------------------------------------------------------------------- */

static rondo_status start_threads(rondo_ready_queue *queue) {
  void *workers;
  RONDO_TRY(rondo_allocate_aligned(&queue->allocator, (size_t)queue->threads + 1, sizeof *queue->workers,
                                   RONDO_CACHE_LINE, &workers));
  queue->workers = workers;
  for (uint32_t i = 0; i <= queue->threads; i++) {
    queue->workers[i].queue = queue;
    queue->workers[i].number = i;
    queue->workers[i].tasks.list = RONDO_TASK_LIST_EMPTY;
  }
  while (queue->started < queue->threads) {
    ready_worker *worker = &queue->workers[queue->started + 1];
    RONDO_TRY(rondo_thread_start(&worker->thread, "rondo-executor", thread_main, worker));
    queue->started++;
  }
  return RONDO_OK;
}

rondo_status rondo_ready_queue_create(const rondo_allocator *allocator, uint32_t threads, rondo_ready_queue **out) {
  rondo_ready_queue *queue;
  *out = NULL;
  RONDO_TRY(rondo_allocate_items(allocator, 1, sizeof *queue, &queue));
  queue->allocator = *allocator;
  queue->threads = threads;
  const rondo_status status = start_threads(queue);
  if (status == RONDO_OK)
    *out = queue;
  else
    rondo_ready_queue_destroy(queue);
  return status;
}

void rondo_ready_queue_destroy(rondo_ready_queue *queue) {
  if (queue == NULL) return;
  const rondo_allocator allocator = queue->allocator;
  assert(is_over(queue));
  atomic_store(&queue->is_stopped, true);
  rondo_sleepers_wake(&queue->work, UINT32_MAX);
  for (uint32_t i = 1; i <= queue->started; i++) rondo_thread_join(queue->workers[i].thread);
  rondo_release(&allocator, queue->workers, (size_t)queue->threads + 1, sizeof *queue->workers);
  rondo_release(&allocator, queue, 1, sizeof *queue);
}
