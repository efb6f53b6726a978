/* SPDX-License-Identifier: MIT
 * The work-stealing core: deques neither lose nor duplicate entries, an entry is taken once, chains become tasks, and a
 * worker runs each task once after all of its predecessors, also when its deque is full.
 */
#include <pthread.h>

#include "base/tasks/task_graph.h"
#include "support/rondo_test.h"

/* Deques ---------------------------------------------------------------------------------------------------------- */

enum { ENTRIES = 20000 };

typedef struct theft {
  rondo_steal_deque *deque;
  atomic_uchar *taken;
  atomic_uint *count;
} theft;

static bool push(rondo_steal_deque *deque, uint64_t entry) { return rondo_deque_push(deque, &entry, 1) == 1; }

static void take(const theft *my, uint64_t entry) {
  if (entry == RONDO_DEQUE_EMPTY) return;
  atomic_fetch_add(&my->taken[entry], 1);
  atomic_fetch_add(my->count, 1);
}

static void *steal_all(void *argument) {
  const theft *my = argument;
  while (atomic_load(my->count) < ENTRIES) {
    rondo_steal loot;
    if (rondo_deque_peek(my->deque, &loot) && rondo_deque_take(my->deque, &loot)) take(my, loot.entry);
  }
  return NULL;
}

UNIT_TEST(deques_lose_and_double_nothing) {
  static rondo_steal_deque deque;
  atomic_uint count = 0;
  static atomic_uchar taken[ENTRIES];
  theft my = {&deque, taken, &count};
  pthread_t thieves[2];
  for (int i = 0; i < 2; i++) assert_int_equal(pthread_create(&thieves[i], NULL, steal_all, &my), 0);
  for (uint64_t entry = 0; entry < ENTRIES; entry++) {
    while (!push(&deque, entry)) take(&my, rondo_deque_pop(&deque));
    if (entry % 3 == 0) take(&my, rondo_deque_pop(&deque));
    rondo_deque_check(&deque);
  }
  steal_all(&my);
  for (int i = 0; i < 2; i++) assert_int_equal(pthread_join(thieves[i], NULL), 0);
  rondo_deque_check(&deque);
  for (size_t i = 0; i < ENTRIES; i++) assert_int_equal(atomic_load(&my.taken[i]), 1);
}

/* What was looked at may be gone: popped by the owner, taken by another thief. */
UNIT_TEST(loot_is_taken_once) {
  static rondo_steal_deque deque;
  rondo_steal loot, same;
  assert_false(rondo_deque_peek(&deque, &loot));
  assert_true(push(&deque, rondo_task_entry(5, 7, 1)));
  assert_true(rondo_deque_peek(&deque, &loot) && rondo_deque_peek(&deque, &same));
  assert_true(loot.entry == rondo_task_entry(5, 7, 1));
  assert_int_equal(rondo_task_entry_tag(loot.entry), 5);
  assert_true(rondo_deque_take(&deque, &loot));
  assert_false(rondo_deque_take(&deque, &same));
  assert_true(push(&deque, 8));
  assert_true(rondo_deque_peek(&deque, &loot));
  assert_true(rondo_deque_pop(&deque) == 8);
  assert_true(rondo_deque_pop(&deque) == RONDO_DEQUE_EMPTY);
  assert_false(rondo_deque_take(&deque, &loot));
}

UNIT_TEST(a_full_deque_refuses) {
  static rondo_steal_deque deque;
  rondo_steal loot;
  for (uint64_t i = 0; i < RONDO_DEQUE_CAPACITY; i++) assert_true(push(&deque, i));
  assert_false(push(&deque, 1000));
  assert_true(rondo_deque_peek(&deque, &loot) && loot.entry == 0 && rondo_deque_take(&deque, &loot));
  assert_true(push(&deque, 1000));
  assert_true(rondo_deque_pop(&deque) == 1000);
  for (uint64_t i = RONDO_DEQUE_CAPACITY; i-- > 1;) assert_true(rondo_deque_pop(&deque) == i);
  assert_true(rondo_deque_pop(&deque) == RONDO_DEQUE_EMPTY);
}

/* Graphs ---------------------------------------------------------------------------------------------------------- */

static bool is_alone(const void *user, uint32_t item) { return item == *(const uint32_t *)user; }

/* 0 -> 1 -> 2 -> 3, and 4 -> 3: the line up to 2 is a chain, unless an item of it has to be alone. */
UNIT_TEST(chains_become_tasks) {
  static const uint32_t start[] = {0, 1, 2, 3, 3, 3}, join_start[] = {0, 1, 2, 3, 4, 4},
                        join_successors[] = {1, 2, 4, 4}, successors[] = {1, 2, 3};
  const rondo_allocator allocator = rondo_allocator_default();
  const uint32_t alone = 1;
  rondo_task_graph graph;
  assert_ok(rondo_task_graph_make(&allocator, 5, start, successors, NULL, NULL, &graph));
  assert_int_equal(graph.task_count, 2); /* the line and item 4 */
  assert_int_equal(graph.tasks[0].count, 4);
  assert_int_equal(graph.longest_path, 4);
  rondo_task_graph_free(&allocator, &graph);
  assert_ok(rondo_task_graph_make(&allocator, 5, join_start, join_successors, NULL, NULL, &graph));
  assert_int_equal(graph.task_count, 3); /* 0 to 2, 3, and 4 after both */
  assert_int_equal(graph.source_count, 2);
  assert_int_equal(graph.sink_count, 1);
  assert_int_equal(graph.tasks[2].predecessors, 2);
  assert_int_equal(graph.longest_path, 4);
  rondo_task_graph_free(&allocator, &graph);
  assert_ok(rondo_task_graph_make(&allocator, 5, join_start, join_successors, is_alone, &alone, &graph));
  assert_int_equal(graph.task_count, 5);
  rondo_task_graph_free(&allocator, &graph);
}

enum { WIDE = 3 * RONDO_DEQUE_CAPACITY, ITEMS = 2 + 2 * WIDE };

/* A source with WIDE successors that are not contiguous: every other one also waits for the last of them. */
static void make_comb(const rondo_allocator *allocator, rondo_task_graph *out) {
  static uint32_t start[ITEMS + 1], successors[ITEMS * 2];
  uint32_t edges = 0;
  for (uint32_t i = 0; i < ITEMS; i++) {
    start[i] = edges;
    if (i == 0)
      for (uint32_t k = 1; k < ITEMS; k++) successors[edges++] = k;
    if (i == 1)
      for (uint32_t k = 3; k < ITEMS; k += 2) successors[edges++] = k;
  }
  start[ITEMS] = edges;
  assert_ok(rondo_task_graph_make(allocator, ITEMS, start, successors, NULL, NULL, out));
}

static void run_task(const rondo_task_graph *graph, rondo_task_worker *worker, uint32_t task, unsigned *runs) {
  uint32_t at = graph->tasks[task].successors_first, end = 0, ready;
  runs[task]++;
  while ((ready = rondo_task_next_ready(graph, &at, graph->tasks[task].successors_end, &end)) > 0)
    (void)rondo_task_put(worker, graph, rondo_task_entry(3, end - ready, ready));
}

UNIT_TEST(a_full_worker_keeps_tasks_in_its_list) {
  static rondo_task_worker worker;
  static unsigned runs[ITEMS];
  const rondo_allocator allocator = rondo_allocator_default();
  rondo_task_graph graph;
  bool was_full = false;
  uint32_t task = 0, shared;
  make_comb(&allocator, &graph);
  worker.list = RONDO_TASK_LIST_EMPTY;
  for (uint32_t run = 1; run <= 3; run++) {
    for (task = 0; task != RONDO_NO_TASK;) {
      run_task(&graph, &worker, task, runs);
      was_full |= worker.list.first != RONDO_NO_TASK;
      const uint64_t entry = rondo_deque_pop(&worker.deque);
      task = entry == RONDO_DEQUE_EMPTY ? rondo_task_list_take(&worker.list, &graph)
                                        : rondo_task_split(&worker, &graph, entry, &shared);
    }
    for (uint32_t i = 0; i < graph.task_count; i++) assert_int_equal(runs[i], run);
    rondo_task_graph_check(&graph); /* ready for the next run */
  }
  assert_true(was_full);
  rondo_task_graph_free(&allocator, &graph);
}

UNIT_TEST(an_entry_is_split_by_halves) {
  static const uint32_t start[12];
  static rondo_task_worker worker;
  const rondo_allocator allocator = rondo_allocator_default();
  uint32_t shared;
  bool seen[11] = {false};
  rondo_task_graph graph;
  rondo_steal loot;
  assert_ok(rondo_task_graph_make(&allocator, 11, start, NULL, NULL, NULL, &graph));
  assert_int_equal(graph.source_count, 11);
  worker.list = RONDO_TASK_LIST_EMPTY;
  uint64_t entry = rondo_task_entry(0, graph.sources_first, 11);
  seen[rondo_task_split(&worker, &graph, entry, &shared)] = true;
  assert_int_equal(shared, 4);
  assert_true(rondo_deque_peek(&worker.deque, &loot));
  assert_true(loot.entry == rondo_task_entry(0, graph.sources_first + 6, 5));
  while ((entry = rondo_deque_pop(&worker.deque)) != RONDO_DEQUE_EMPTY) {
    const uint32_t task = rondo_task_split(&worker, &graph, entry, &shared);
    assert_false(seen[task]);
    seen[task] = true;
  }
  for (int i = 0; i < 11; i++) assert_true(seen[i]);
  rondo_task_graph_free(&allocator, &graph);
}

/* A graph of sources alone: the successor at place k is task k. */
static void make_sources(const rondo_allocator *allocator, uint32_t count, rondo_task_graph *out) {
  static const uint32_t start[256];
  assert_ok(rondo_task_graph_make(allocator, count, start, NULL, NULL, NULL, out));
  assert_int_equal(out->sources_first, 0);
}

UNIT_TEST(what_a_worker_keeps_is_put_when_others_have_nothing) {
  static rondo_task_worker worker;
  const rondo_allocator allocator = rondo_allocator_default();
  rondo_task_graph graph;
  make_sources(&allocator, 100, &graph);
  worker.list = RONDO_TASK_LIST_EMPTY;
  rondo_task_keep(&worker, &graph, rondo_task_entry(1, 10, 1));
  rondo_task_keep(&worker, &graph, rondo_task_entry(1, 20, 9));
  assert_true(rondo_deque_looks_empty(&worker.deque));
  assert_int_equal(rondo_task_share_kept(&worker, &graph, false), 1); /* the oldest of several */
  assert_false(rondo_deque_looks_empty(&worker.deque));
  assert_true(rondo_deque_pop(&worker.deque) == rondo_task_entry(1, 10, 1));
  assert_int_equal(rondo_task_next_kept(&worker, &graph), 20);
  assert_int_equal(rondo_task_share_kept(&worker, &graph, false), 1); /* half of the only one */
  assert_true(rondo_deque_pop(&worker.deque) == rondo_task_entry(1, 25, 4));
  rondo_task_keep(&worker, &graph, rondo_task_entry(1, 50, 3));
  assert_int_equal(rondo_task_share_kept(&worker, &graph, true), 3); /* all but the next task */
  assert_int_equal(rondo_task_next_kept(&worker, &graph), 50);
  assert_int_equal(worker.kept_count, 0);
  for (int i = 0; i < 3; i++) assert_true(rondo_deque_pop(&worker.deque) != RONDO_DEQUE_EMPTY);
  for (uint32_t i = 0; i <= RONDO_MOST_KEPT; i++) rondo_task_keep(&worker, &graph, rondo_task_entry(1, i, 1));
  assert_int_equal(worker.kept_count, RONDO_MOST_KEPT);
  assert_true(rondo_deque_pop(&worker.deque) == rondo_task_entry(1, RONDO_MOST_KEPT, 1)); /* no room to keep it */
  for (uint32_t i = RONDO_MOST_KEPT; i-- > 0;) assert_int_equal(rondo_task_next_kept(&worker, &graph), i);
  rondo_task_graph_free(&allocator, &graph);
}
