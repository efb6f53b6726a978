/* SPDX-License-Identifier: MIT
 * Running graphs by a ready queue. A thread that has nothing to play looks for work for a short while, and then sleeps
 * (base/tasks/sleepers.h). The queue's threads and the caller sleep apart, so that the end of a run wakes the caller
 * alone.
 */
#include "exec/eager/ready_queue.h"

#include <rondo/capture.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/tasks/sleepers.h"

#define PATIENCE_NS 20000

enum { TURNS_A_LOOK = 16 };

/* Graphs ----------------------------------------------------------------------------------------------------------- */

static bool is_task_alone(const void *user, uint32_t node) {
  (void)user;
  (void)node;
  return true;
}

/* Turns the edges round. `start` has count + 1 zeros. */
static void turn_edges(uint32_t count, const uint32_t *before_start, const uint32_t *before, uint32_t *start,
                       uint32_t *after) {
  const uint32_t edges = before_start[count];
  for (uint32_t i = 0; i < edges; i++) start[before[i] + 1]++;
  for (uint32_t p = 0; p < count; p++) start[p + 1] += start[p];
  for (uint32_t p = count; p-- > 0;)
    for (uint32_t i = before_start[p + 1]; i-- > before_start[p];) after[--start[before[i] + 1]] = p;
  /* Now start[p + 1] is where the list of p begins. */
  for (uint32_t p = 0; p < count; p++) start[p] = start[p + 1];
  start[count] = edges;
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
    turn_edges(count, before_start, before, start, after);
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

/* All but the first have a thread. Only the lane's own thread writes it, but for the top of its deque. */
typedef struct ready_lane {
  rondo_task_worker worker; /* expensive nodes in the deque, cheap ones in the list */
  rondo_ready_queue *queue;
  uint32_t number;
  _Atomic uint64_t nodes, handed, busy_ns;
  rondo_thread thread;
} ready_lane;

struct rondo_ready_queue {
  rondo_allocator allocator;
  ready_lane *lanes;
  uint32_t threads, started;
  rondo_sleepers work;   /* the queue's threads */
  rondo_sleepers news;   /* the caller: an expensive node is ready, or all are finished */
  atomic_bool is_waited; /* the caller sleeps, and was not woken yet */
  atomic_bool is_stopped;
  _Atomic uint32_t unfinished;
  atomic_bool has_failed;
  rondo_saved_error error; /* of the lane that set has_failed */
  rondo_ready_graph *graph;
  rondo_ready_play play;
  void *user;
  _Atomic uint64_t runs, run_ns, waited_ns; /* of the caller */
};

/* Of a counter that one thread writes. */
static void count_up(_Atomic uint64_t *counter, uint64_t more) {
  const uint64_t before = atomic_load_explicit(counter, memory_order_relaxed);
  atomic_store_explicit(counter, before + more, memory_order_relaxed);
}

static bool is_over(rondo_ready_queue *queue) { return atomic_load(&queue->unfinished) == 0; }

/* For an expensive node: the caller, if it sleeps, else a thread. */
static void wake_one(rondo_ready_queue *queue) {
  if (atomic_load(&queue->is_waited) && atomic_exchange(&queue->is_waited, false))
    rondo_sleepers_wake(&queue->news, 1);
  else if (rondo_sleepers_exist(&queue->work))
    rondo_sleepers_wake(&queue->work, 1);
}

/* The node at that place of the successors. */
static void find_ready(ready_lane *lane, uint32_t place) {
  rondo_ready_queue *queue = lane->queue;
  const rondo_task_graph *tasks = &queue->graph->tasks;
  const uint32_t node = tasks->successors[place];
  if (!queue->graph->is_expensive[node] || queue->threads == 0) {
    rondo_task_list_append(&lane->worker.list, tasks, node);
  } else if (rondo_task_put(&lane->worker, tasks, rondo_task_entry(0, place, 1))) {
    count_up(&lane->handed, 1);
    wake_one(queue);
  }
}

/* The lane that finishes the last node touches nothing of the run any more. */
static void finish(ready_lane *lane, uint32_t node) {
  rondo_ready_queue *queue = lane->queue;
  const rondo_task_graph *tasks = &queue->graph->tasks;
  const uint32_t end = tasks->tasks[node].successors_end;
  uint32_t at = tasks->tasks[node].successors_first, ready_end = 0, ready;
  while ((ready = rondo_task_next_ready(tasks, &at, end, &ready_end)) > 0)
    for (uint32_t place = ready_end - ready; place < ready_end; place++) find_ready(lane, place);
  const uint32_t before = atomic_fetch_sub(&queue->unfinished, 1);
  assert(before > 0);
  if (before == 1 && lane->number != 0 && rondo_sleepers_exist(&queue->news)) rondo_sleepers_wake(&queue->news, 1);
}

static void play(ready_lane *lane, uint32_t node) {
  rondo_ready_queue *queue = lane->queue;
  count_up(&lane->nodes, 1);
  if (!atomic_load_explicit(&queue->has_failed, memory_order_relaxed) &&
      queue->play(queue->user, lane->number, node) != RONDO_OK &&
      !atomic_exchange_explicit(&queue->has_failed, true, memory_order_relaxed))
    rondo_error_save(&queue->error);
  finish(lane, node);
}

/* The cheap nodes that the lane has found. While it has one, the run is not over. */
static void play_found(ready_lane *lane) {
  while (lane->worker.list.first != RONDO_NO_TASK)
    play(lane, rondo_task_list_take(&lane->worker.list, &lane->queue->graph->tasks));
}

/* Waiting ---------------------------------------------------------------------------------------------------------- */

/* The oldest expensive node of the lane's deque, or of another one's. */
static uint32_t take_expensive(ready_lane *lane) {
  rondo_ready_queue *queue = lane->queue;
  const uint32_t lanes = queue->threads + 1;
  uint32_t shared;
  for (uint32_t i = 0; i < lanes; i++) {
    rondo_steal steal;
    rondo_steal_deque *deque = &queue->lanes[(lane->number + i) % lanes].worker.deque;
    if (rondo_deque_peek(deque, &steal) && rondo_deque_take(deque, &steal))
      return rondo_task_split(&lane->worker, &queue->graph->tasks, steal.entry, &shared);
  }
  return RONDO_NO_TASK;
}

static bool has_expensive(rondo_ready_queue *queue) {
  rondo_steal steal;
  for (uint32_t i = 0; i <= queue->threads; i++)
    if (rondo_deque_peek(&queue->lanes[i].worker.deque, &steal)) return true;
  return false;
}

/* Looks without sleeping until there is an expensive node, the run is over, or PATIENCE_NS are. */
static void look_out(rondo_ready_queue *queue) {
  uint64_t begun = 0;
  for (uint32_t turn = 1; !is_over(queue) && !has_expensive(queue); turn++) {
    rondo_relax();
    if (turn % TURNS_A_LOOK != 0) continue;
    const uint64_t now = rondo_clock_ns();
    if (begun == 0) begun = now;
    if (now - begun > PATIENCE_NS) return;
    rondo_yield();
  }
}

/* The caller: a node, or RONDO_NO_TASK when all are finished. */
static uint32_t await_news(rondo_ready_queue *queue) {
  uint32_t node;
  look_out(queue);
  while ((node = take_expensive(&queue->lanes[0])) == RONDO_NO_TASK && !is_over(queue)) {
    const uint32_t epoch = rondo_sleepers_enter(&queue->news);
    atomic_store(&queue->is_waited, true);
    if (!has_expensive(queue) && !is_over(queue)) rondo_sleepers_sleep(&queue->news, epoch);
    atomic_store(&queue->is_waited, false);
    rondo_sleepers_leave(&queue->news);
  }
  return node;
}

/* A thread of the queue: a node, or RONDO_NO_TASK when the queue is stopped. */
static uint32_t await_work(ready_lane *lane) {
  rondo_ready_queue *queue = lane->queue;
  uint32_t node;
  look_out(queue);
  while ((node = take_expensive(lane)) == RONDO_NO_TASK && !atomic_load(&queue->is_stopped)) {
    const uint32_t epoch = rondo_sleepers_enter(&queue->work);
    if (!has_expensive(queue) && !atomic_load(&queue->is_stopped)) rondo_sleepers_sleep(&queue->work, epoch);
    rondo_sleepers_leave(&queue->work);
  }
  return node;
}

static void *thread_main(void *argument) {
  ready_lane *lane = argument;
  rondo_capture_mode mode = RONDO_CAPTURE_RELAXED;
  rondo_status_ignore(rondo_capture_exchange_thread_mode(&mode), "a call that is refused then reports it");
  for (uint32_t node; (node = await_work(lane)) != RONDO_NO_TASK;) {
    const uint64_t begun = rondo_clock_ns();
    play(lane, node);
    play_found(lane);
    count_up(&lane->busy_ns, rondo_clock_ns() - begun);
  }
  return NULL;
}

/* Running ---------------------------------------------------------------------------------------------------------- */

static void begin(rondo_ready_queue *queue, rondo_ready_graph *graph, rondo_ready_play play_node, void *user) {
  assert(is_over(queue));
  queue->graph = graph;
  queue->play = play_node;
  queue->user = user;
  atomic_store_explicit(&queue->has_failed, false, memory_order_relaxed);
  atomic_store(&queue->unfinished, graph->tasks.task_count);
}

rondo_status rondo_ready_queue_run(rondo_ready_queue *queue, rondo_ready_graph *graph, rondo_ready_play play_node,
                                   void *user) {
  ready_lane *lane = &queue->lanes[0];
  const uint64_t begun = rondo_clock_ns();
  begin(queue, graph, play_node, user);
  for (uint32_t i = 0; i < graph->tasks.source_count; i++) find_ready(lane, graph->tasks.sources_first + i);
  play_found(lane);
  while (!is_over(queue)) {
    const uint64_t waits = rondo_clock_ns();
    const uint32_t node = await_news(queue);
    count_up(&queue->waited_ns, rondo_clock_ns() - waits);
    if (node == RONDO_NO_TASK) break;
    play(lane, node);
    play_found(lane);
  }
  rondo_task_graph_check(&graph->tasks); /* ready for the next run */
  count_up(&queue->runs, 1);
  count_up(&queue->run_ns, rondo_clock_ns() - begun);
  const bool has_failed = atomic_load_explicit(&queue->has_failed, memory_order_relaxed);
  return has_failed ? rondo_error_raise(&queue->error) : RONDO_OK;
}

/* A thread that is busy past the end of a run it played in is counted as idle for less than nothing there. */
void rondo_ready_queue_count(const rondo_ready_queue *queue, rondo_ready_counts *out) {
  uint64_t busy_ns = 0;
  *out = (rondo_ready_counts){.runs = atomic_load_explicit(&queue->runs, memory_order_relaxed),
                              .run_ns = atomic_load_explicit(&queue->run_ns, memory_order_relaxed)};
  for (uint32_t i = 0; i <= queue->threads; i++) {
    const uint64_t nodes = atomic_load_explicit(&queue->lanes[i].nodes, memory_order_relaxed);
    out->nodes += nodes;
    out->handed += atomic_load_explicit(&queue->lanes[i].handed, memory_order_relaxed);
    if (i > 0) out->threads += nodes;
    busy_ns += atomic_load_explicit(&queue->lanes[i].busy_ns, memory_order_relaxed);
  }
  const uint64_t thread_ns = queue->threads * out->run_ns;
  out->idle_ns = atomic_load_explicit(&queue->waited_ns, memory_order_relaxed);
  if (thread_ns > busy_ns) out->idle_ns += thread_ns - busy_ns;
}

/* Life ------------------------------------------------------------------------------------------------------------- */

static rondo_status start_threads(rondo_ready_queue *queue) {
  void *lanes;
  RONDO_TRY(rondo_allocate_aligned(&queue->allocator, (size_t)queue->threads + 1, sizeof *queue->lanes,
                                   RONDO_CACHE_LINE, &lanes));
  queue->lanes = lanes;
  for (uint32_t i = 0; i <= queue->threads; i++) {
    queue->lanes[i].queue = queue;
    queue->lanes[i].number = i;
    queue->lanes[i].worker.list = RONDO_TASK_LIST_EMPTY;
  }
  while (queue->started < queue->threads) {
    ready_lane *lane = &queue->lanes[queue->started + 1];
    RONDO_TRY(rondo_thread_start(&lane->thread, "rondo-executor", thread_main, lane));
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
  for (uint32_t i = 1; i <= queue->started; i++) rondo_thread_join(queue->lanes[i].thread);
  rondo_release(&allocator, queue->lanes, (size_t)queue->threads + 1, sizeof *queue->lanes);
  rondo_release(&allocator, queue, 1, sizeof *queue);
}
