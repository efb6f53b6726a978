/* SPDX-License-Identifier: MIT
 * Running graphs by ready queue. A thread looks for what is handed over for a short while, giving way to others, and
 * then sleeps; the threads that sleep and the one that runs have a condition each, so that the end of a run wakes none
 * of the former.
 */
#include "exec/eager/ready_queue.h"

#include <pthread.h>
#include <rondo/capture.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/thread.h"

#define NO_NODE UINT32_MAX
#define PATIENCE_NS 20000

enum { TURNS_A_LOOK = 16 };

/* Graphs ----------------------------------------------------------------------------------------------------------- */

/* The edges from their other ends, as rondo_edges_turn does it. */
static void turn_edges(rondo_ready_graph *graph, const uint32_t *before_start, const uint32_t *before) {
  const uint32_t count = graph->count;
  for (uint32_t i = 0; i < graph->edges; i++) graph->start[before[i] + 1]++;
  for (uint32_t p = 0; p < count; p++) graph->start[p + 1] += graph->start[p];
  for (uint32_t p = 0; p < count; p++) {
    graph->before[p] = before_start[p + 1] - before_start[p];
    for (uint32_t i = before_start[p]; i < before_start[p + 1]; i++) graph->after[graph->start[before[i]]++] = p;
  }
  for (uint32_t p = count; p > 0; p--) graph->start[p] = graph->start[p - 1];
  graph->start[0] = 0;
}

rondo_status rondo_ready_graph_make(const rondo_allocator *allocator, uint32_t count, const uint32_t *before_start,
                                    const uint32_t *before, const bool *is_expensive, rondo_ready_graph *out) {
  *out = (rondo_ready_graph){.count = count, .edges = before_start[count]};
  RONDO_TRY(rondo_allocate_items(allocator, (size_t)count + 1, sizeof *out->start, &out->start));
  RONDO_TRY(rondo_allocate_items(allocator, count, sizeof *out->before, &out->before));
  RONDO_TRY(rondo_allocate_items(allocator, out->edges, sizeof *out->after, &out->after));
  RONDO_TRY(rondo_allocate_items(allocator, count, sizeof *out->is_expensive, &out->is_expensive));
  RONDO_TRY(rondo_allocate_items(allocator, count, sizeof *out->left, &out->left));
  RONDO_TRY(rondo_allocate_items(allocator, count, sizeof *out->next, &out->next));
  turn_edges(out, before_start, before);
  for (uint32_t p = 0; is_expensive != NULL && p < count; p++) out->is_expensive[p] = is_expensive[p];
  return RONDO_OK;
}

void rondo_ready_graph_free(const rondo_allocator *allocator, rondo_ready_graph *graph) {
  rondo_release(allocator, graph->after, graph->edges, sizeof *graph->after);
  rondo_release(allocator, graph->start, (size_t)graph->count + 1, sizeof *graph->start);
  rondo_release(allocator, graph->before, graph->count, sizeof *graph->before);
  rondo_release(allocator, graph->is_expensive, graph->count, sizeof *graph->is_expensive);
  rondo_release(allocator, graph->left, graph->count, sizeof *graph->left);
  rondo_release(allocator, graph->next, graph->count, sizeof *graph->next);
  *graph = (rondo_ready_graph){0};
}

/* The queue -------------------------------------------------------------------------------------------------------- */

typedef struct ready_list {
  uint32_t first, last;
} ready_list;

static const ready_list empty = {NO_NODE, NO_NODE};

/* Those of the queue have a thread each. Written by their own thread alone. */
typedef struct ready_lane {
  _Alignas(RONDO_CACHE_LINE) rondo_ready_queue *queue;
  uint32_t number;
  ready_list found;
  _Atomic uint64_t nodes, handed, busy_ns;
  rondo_thread thread;
} ready_lane;

struct rondo_ready_queue {
  rondo_allocator allocator;
  ready_lane *lanes;
  uint32_t threads, started;
  pthread_mutex_t lock;
  pthread_cond_t work;        /* for the queue's threads */
  pthread_cond_t news;        /* for the one that runs: something was handed over, or all is finished */
  ready_list handed;          /* under the lock */
  _Atomic uint32_t waiting;   /* in that list: looked at without the lock */
  uint32_t sleepers;          /* threads, under the lock */
  bool is_waited, is_stopped; /* likewise; is_waited: the one that runs sleeps, and was told nothing yet */
  _Atomic uint32_t unfinished;
  atomic_bool has_failed;
  rondo_saved_error error; /* of who set has_failed */
  rondo_ready_graph *graph;
  rondo_ready_play play;
  void *user;
  _Atomic uint64_t runs, run_ns, waited_ns; /* of the one that runs */
};

static void append(ready_list *list, rondo_ready_graph *graph, uint32_t node) {
  graph->next[node] = NO_NODE;
  if (list->first == NO_NODE)
    list->first = node;
  else
    graph->next[list->last] = node;
  list->last = node;
}

/* Of an empty list when the run may be over: its graph is not looked at then. */
static uint32_t take_first(ready_list *list, const rondo_ready_queue *queue) {
  const uint32_t node = list->first;
  if (node != NO_NODE) list->first = queue->graph->next[node];
  return node;
}

static void count_up(_Atomic uint64_t *counter, uint64_t more) {
  const uint64_t before = atomic_load_explicit(counter, memory_order_relaxed);
  atomic_store_explicit(counter, before + more, memory_order_relaxed);
}

static void hand_over(ready_lane *lane, uint32_t node) {
  rondo_ready_queue *queue = lane->queue;
  count_up(&lane->handed, 1);
  pthread_mutex_lock(&queue->lock);
  append(&queue->handed, queue->graph, node);
  atomic_fetch_add_explicit(&queue->waiting, 1, memory_order_relaxed);
  if (queue->is_waited)
    pthread_cond_signal(&queue->news);
  else if (queue->sleepers > 0)
    pthread_cond_signal(&queue->work);
  queue->is_waited = false; /* told; what comes next is for others */
  pthread_mutex_unlock(&queue->lock);
}

static void find_ready(ready_lane *lane, uint32_t node) {
  rondo_ready_queue *queue = lane->queue;
  if (queue->graph->is_expensive[node] && queue->threads > 0)
    hand_over(lane, node);
  else
    append(&lane->found, queue->graph, node);
}

/* The last one's finisher touches nothing of the run any more. */
static void finish(ready_lane *lane, uint32_t node) {
  rondo_ready_queue *queue = lane->queue;
  rondo_ready_graph *graph = queue->graph;
  for (uint32_t i = graph->start[node]; i < graph->start[node + 1]; i++) {
    const uint32_t next = graph->after[i];
    if (atomic_fetch_sub_explicit(&graph->left[next], 1, memory_order_acq_rel) == 1) find_ready(lane, next);
  }
  if (atomic_fetch_sub_explicit(&queue->unfinished, 1, memory_order_acq_rel) != 1 || lane->number == 0) return;
  pthread_mutex_lock(&queue->lock);
  if (queue->is_waited) pthread_cond_signal(&queue->news);
  pthread_mutex_unlock(&queue->lock);
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

static void play_found(ready_lane *lane) {
  for (uint32_t node; (node = take_first(&lane->found, lane->queue)) != NO_NODE;) play(lane, node);
}

/* Waiting ---------------------------------------------------------------------------------------------------------- */

static bool is_over(rondo_ready_queue *queue) {
  return atomic_load_explicit(&queue->unfinished, memory_order_acquire) == 0;
}

/* Looks, without the lock, until there is something handed over, the run is over, or patience is. */
static void look_out(rondo_ready_queue *queue) {
  uint64_t begun = 0;
  for (uint32_t turn = 1; !is_over(queue); turn++) {
    if (atomic_load_explicit(&queue->waiting, memory_order_relaxed) > 0) return;
    rondo_relax();
    if (turn % TURNS_A_LOOK != 0) continue;
    const uint64_t now = rondo_clock_ns();
    if (begun == 0) begun = now;
    if (now - begun > PATIENCE_NS) return;
    rondo_yield();
  }
}

/* Under the lock. */
static uint32_t take_handed(rondo_ready_queue *queue) {
  const uint32_t node = take_first(&queue->handed, queue);
  if (node != NO_NODE) atomic_fetch_sub_explicit(&queue->waiting, 1, memory_order_relaxed);
  return node;
}

/* The one that runs: a node, or NO_NODE when all are finished. */
static uint32_t await_news(rondo_ready_queue *queue) {
  uint32_t node = NO_NODE;
  look_out(queue);
  pthread_mutex_lock(&queue->lock);
  while ((node = take_handed(queue)) == NO_NODE && !is_over(queue)) {
    queue->is_waited = true;
    pthread_cond_wait(&queue->news, &queue->lock);
  }
  queue->is_waited = false;
  pthread_mutex_unlock(&queue->lock);
  return node;
}

/* A thread of the queue's: a node, or NO_NODE when the queue is stopped. */
static uint32_t await_work(rondo_ready_queue *queue) {
  uint32_t node;
  look_out(queue);
  pthread_mutex_lock(&queue->lock);
  queue->sleepers++;
  while ((node = take_handed(queue)) == NO_NODE && !queue->is_stopped) pthread_cond_wait(&queue->work, &queue->lock);
  queue->sleepers--;
  pthread_mutex_unlock(&queue->lock);
  return node;
}

static void *thread_main(void *argument) {
  ready_lane *lane = argument;
  rondo_capture_mode mode = RONDO_CAPTURE_RELAXED;
  rondo_status_ignore(rondo_capture_exchange_thread_mode(&mode), "what it then refuses is told by the call refused");
  for (uint32_t node; (node = await_work(lane->queue)) != NO_NODE;) {
    const uint64_t begun = rondo_clock_ns();
    play(lane, node);
    play_found(lane);
    count_up(&lane->busy_ns, rondo_clock_ns() - begun);
  }
  return NULL;
}

/* Running ---------------------------------------------------------------------------------------------------------- */

static void begin(rondo_ready_queue *queue, rondo_ready_graph *graph, rondo_ready_play play_node, void *user) {
  queue->graph = graph;
  queue->play = play_node;
  queue->user = user;
  atomic_store_explicit(&queue->has_failed, false, memory_order_relaxed);
  for (uint32_t p = 0; p < graph->count; p++)
    atomic_store_explicit(&graph->left[p], graph->before[p], memory_order_relaxed);
  atomic_store_explicit(&queue->unfinished, graph->count, memory_order_release);
}

rondo_status rondo_ready_queue_run(rondo_ready_queue *queue, rondo_ready_graph *graph, rondo_ready_play play_node,
                                   void *user) {
  ready_lane *lane = &queue->lanes[0];
  const uint64_t begun = rondo_clock_ns();
  begin(queue, graph, play_node, user);
  for (uint32_t p = 0; p < graph->count; p++)
    if (graph->before[p] == 0) find_ready(lane, p);
  play_found(lane);
  while (!is_over(queue)) {
    const uint64_t waits = rondo_clock_ns();
    const uint32_t node = await_news(queue);
    count_up(&queue->waited_ns, rondo_clock_ns() - waits);
    if (node == NO_NODE) break;
    play(lane, node);
    play_found(lane);
  }
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
    queue->lanes[i].found = empty;
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
  queue->handed = empty;
  pthread_mutex_init(&queue->lock, NULL);
  pthread_cond_init(&queue->work, NULL);
  pthread_cond_init(&queue->news, NULL);
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
  pthread_mutex_lock(&queue->lock);
  queue->is_stopped = true;
  pthread_cond_broadcast(&queue->work);
  pthread_mutex_unlock(&queue->lock);
  for (uint32_t i = 1; i <= queue->started; i++) rondo_thread_join(queue->lanes[i].thread);
  pthread_cond_destroy(&queue->news);
  pthread_cond_destroy(&queue->work);
  pthread_mutex_destroy(&queue->lock);
  rondo_release(&allocator, queue->lanes, (size_t)queue->threads + 1, sizeof *queue->lanes);
  rondo_release(&allocator, queue, 1, sizeof *queue);
}
