/* SPDX-License-Identifier: MIT
 * Ready queues (SE-10): every node runs once, after all of its predecessors; cheap nodes run on the thread that finds
 * them, expensive ones on any free thread; failures; runs allocate nothing.
 */
#include "exec/eager/ready_queue.h"

#include <pthread.h>
#include <string.h>

#include "base/error.h"
#include "base/thread.h"
#include "support/rondo_test.h"
#include "support/test_effort.h"

enum { MOST_NODES = 200, MOST_EDGES = 4000, MOST_LANES = 8 };

typedef struct dag {
  uint32_t count, start[MOST_NODES + 1], before[MOST_EDGES];
  bool is_expensive[MOST_NODES];
  rondo_ready_graph graph;
} dag;

typedef struct watcher {
  const dag *of;
  _Atomic uint32_t runs[MOST_NODES], clock;
  uint32_t at[MOST_NODES]; /* about when it was finished; not atomic, so that TSan checks the order */
  uint32_t worker[MOST_NODES];
  _Atomic uint32_t early; /* nodes that ran before one of their predecessors */
  uint32_t fails;         /* this node and later ones fail; count: none */
  pthread_t runner;
  _Atomic uint32_t strangers; /* runs of worker 0 on another thread */
} watcher;

static rondo_status watch(void *user, uint32_t worker, uint32_t node) {
  watcher *w = user;
  for (uint32_t i = w->of->start[node]; i < w->of->start[node + 1]; i++) {
    const uint32_t other = w->of->before[i];
    if (atomic_load_explicit(&w->runs[other], memory_order_relaxed) == 0 || w->at[other] == 0)
      atomic_fetch_add(&w->early, 1);
  }
  if (worker == 0 && !pthread_equal(w->runner, pthread_self())) atomic_fetch_add(&w->strangers, 1);
  w->worker[node] = worker;
  w->at[node] = atomic_fetch_add_explicit(&w->clock, 1, memory_order_relaxed) + 1;
  atomic_fetch_add_explicit(&w->runs[node], 1, memory_order_relaxed);
  if (node != w->fails && node != w->fails + 1) return RONDO_OK;
  return rondo_fail(RONDO_EXECUTION_FAILED, RONDO_REASON_NONE, "node %u fails", node);
}

static void draw_dag(uint64_t *seed, uint32_t expensive_tenths, dag *out) {
  uint32_t edges = 0;
  out->count = 1 + test_random_below(seed, MOST_NODES);
  const uint32_t density = 1 + test_random_below(seed, 6);
  for (uint32_t p = 0; p < out->count; p++) {
    out->start[p] = edges;
    out->is_expensive[p] = test_random_below(seed, 10) < expensive_tenths;
    for (uint32_t q = p > 20 ? p - 20 : 0; q < p && edges < MOST_EDGES; q++)
      if (test_random_below(seed, 20) < density) out->before[edges++] = q;
  }
  out->start[out->count] = edges;
}

static void make_graph(const rondo_allocator *allocator, dag *d) {
  assert_ok(rondo_ready_graph_make(allocator, d->count, d->start, d->before, d->is_expensive, &d->graph));
}

static watcher *watch_over(const dag *d, uint32_t fails) {
  static watcher w;
  w = (watcher){.of = d, .fails = fails, .runner = pthread_self()};
  return &w;
}

static void assert_all_ran(const dag *d, const watcher *w) {
  for (uint32_t p = 0; p < d->count; p++) assert_int_equal(atomic_load(&w->runs[p]), 1);
  assert_int_equal(atomic_load(&w->early), 0);
  assert_int_equal(atomic_load(&w->strangers), 0);
}

UNIT_TEST(test_se10_nodes_run_once_after_their_predecessors) {
  static dag d;
  test_allocator allocator;
  test_allocator_init(&allocator);
  for (uint32_t threads = 0; threads <= 3; threads++) {
    rondo_ready_queue *queue = NULL;
    assert_ok(rondo_ready_queue_create(&allocator.table, threads, &queue));
    for (uint64_t seed = 1; seed <= test_effort(60); seed++) {
      uint64_t draws = seed;
      draw_dag(&draws, (uint32_t)seed % 11, &d);
      make_graph(&allocator.table, &d);
      for (int run = 0; run < 3; run++) {
        watcher *w = watch_over(&d, UINT32_MAX - 1);
        const size_t calls = atomic_load(&allocator.calls);
        assert_ok(rondo_ready_queue_run(queue, &d.graph, watch, w));
        assert_int_equal(atomic_load(&allocator.calls), calls);
        assert_all_ran(&d, w);
      }
      rondo_ready_graph_free(&allocator.table, &d.graph);
    }
    rondo_ready_queue_destroy(queue);
  }
  assert_int_equal(atomic_load(&allocator.live), 0);
}

/* Only cheap nodes: they run in the order in which they become ready, on the calling thread. */
UNIT_TEST(test_se10_cheap_nodes_run_where_they_are_found) {
  static const uint32_t start[] = {0, 0, 0, 1, 2, 4}, before[] = {0, 1, 2, 3};
  rondo_allocator allocator = rondo_allocator_default();
  static dag d;
  rondo_ready_queue *queue = NULL;
  rondo_ready_counts counts;
  d.count = 5;
  memcpy(d.start, start, sizeof start);
  memcpy(d.before, before, sizeof before);
  memset(d.is_expensive, 0, sizeof d.is_expensive);
  make_graph(&allocator, &d);
  assert_ok(rondo_ready_queue_create(&allocator, 2, &queue));
  watcher *w = watch_over(&d, UINT32_MAX - 1);
  assert_ok(rondo_ready_queue_run(queue, &d.graph, watch, w));
  assert_all_ran(&d, w);
  for (uint32_t p = 0; p < d.count; p++) {
    assert_int_equal(w->at[p], p + 1);
    assert_int_equal(w->worker[p], 0);
  }
  rondo_ready_queue_count(queue, &counts);
  assert_int_equal(counts.runs, 1);
  assert_int_equal(counts.nodes, 5);
  assert_int_equal(counts.shared, 0);
  assert_int_equal(counts.threads, 0);
  rondo_ready_queue_destroy(queue);
  rondo_ready_graph_free(&allocator, &d.graph);
}

typedef struct meeting {
  sem_t arrived[2];
} meeting;

/* Two expensive nodes that wait for each other, and a cheap one after each. */
static rondo_status meet(void *user, uint32_t worker, uint32_t node) {
  meeting *m = user;
  (void)worker;
  if (node >= 2) return RONDO_OK;
  sem_post(&m->arrived[node]);
  sem_wait(&m->arrived[1 - node]);
  return RONDO_OK;
}

UNIT_TEST(test_se10_expensive_nodes_run_at_once) {
  static const uint32_t start[] = {0, 0, 0, 1, 2}, before[] = {0, 1};
  static const bool is_expensive[] = {true, true, false, false};
  rondo_allocator allocator = rondo_allocator_default();
  rondo_ready_graph graph;
  rondo_ready_queue *queue = NULL;
  rondo_ready_counts counts;
  meeting m;
  for (int i = 0; i < 2; i++) sem_init(&m.arrived[i], 0, 0);
  assert_ok(rondo_ready_graph_make(&allocator, 4, start, before, is_expensive, &graph));
  assert_ok(rondo_ready_queue_create(&allocator, 1, &queue));
  for (int run = 0; run < 20; run++) assert_ok(rondo_ready_queue_run(queue, &graph, meet, &m));
  rondo_ready_queue_count(queue, &counts);
  assert_int_equal(counts.nodes, 80);
  assert_int_equal(counts.shared, 40);
  assert_int_equal(counts.threads, 40); /* each took one with the cheap one after it */
  rondo_ready_queue_destroy(queue);
  rondo_ready_graph_free(&allocator, &graph);
  for (int i = 0; i < 2; i++) sem_destroy(&m.arrived[i]);
}

/* The first failure is returned, nothing after it was run, and the next run is not affected. */
UNIT_TEST(test_se10_a_failure_ends_a_run) {
  static dag d;
  rondo_allocator allocator = rondo_allocator_default();
  rondo_ready_queue *queue = NULL;
  assert_ok(rondo_ready_queue_create(&allocator, 2, &queue));
  for (uint64_t seed = 1; seed <= test_effort(60); seed++) {
    uint64_t draws = seed;
    draw_dag(&draws, 5, &d);
    make_graph(&allocator, &d);
    watcher *w = watch_over(&d, test_random_below(&draws, d.count));
    assert_error(rondo_ready_queue_run(queue, &d.graph, watch, w), RONDO_EXECUTION_FAILED, RONDO_REASON_NONE);
    assert_message("fails");
    assert_int_equal(atomic_load(&w->early), 0);
    w = watch_over(&d, UINT32_MAX - 1);
    assert_ok(rondo_ready_queue_run(queue, &d.graph, watch, w));
    assert_all_ran(&d, w);
    rondo_ready_graph_free(&allocator, &d.graph);
  }
  rondo_ready_queue_destroy(queue);
}

/* The function that runs nodes would crash without a watcher. */
UNIT_TEST(test_se10_a_graph_without_nodes_is_over_at_once) {
  static const uint32_t none[1];
  rondo_allocator allocator = rondo_allocator_default();
  rondo_ready_graph graph;
  rondo_ready_queue *queue = NULL;
  assert_ok(rondo_ready_graph_make(&allocator, 0, none, NULL, NULL, &graph));
  assert_ok(rondo_ready_queue_create(&allocator, 1, &queue));
  assert_ok(rondo_ready_queue_run(queue, &graph, watch, NULL));
  rondo_ready_queue_destroy(queue);
  rondo_ready_queue_destroy(NULL);
  rondo_ready_graph_free(&allocator, &graph);
}

UNIT_TEST(test_se10_every_allocation_may_fail) {
  static dag d;
  test_allocator allocator;
  uint64_t seed = 3;
  draw_dag(&seed, 5, &d);
  for (size_t at = 1;; at++) {
    rondo_ready_queue *queue = NULL;
    test_allocator_init(&allocator);
    atomic_store(&allocator.fail_at, at);
    rondo_status status =
        rondo_ready_graph_make(&allocator.table, d.count, d.start, d.before, d.is_expensive, &d.graph);
    if (status == RONDO_OK) status = rondo_ready_queue_create(&allocator.table, 2, &queue);
    rondo_ready_queue_destroy(queue);
    rondo_ready_graph_free(&allocator.table, &d.graph);
    assert_true(test_allocator_is_clean(&allocator));
    if (status == RONDO_OK) {
      assert_true(at > 6);
      return;
    }
    assert_int_equal(status, RONDO_OUT_OF_MEMORY);
  }
}
