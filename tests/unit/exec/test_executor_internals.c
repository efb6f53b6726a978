/* SPDX-License-Identifier: MIT
 * Executors with nodes of all purposes (SE-10): random graphs on many streams give the results of one stream; when a
 * node fails, the nodes that already run end before the run returns; later failures are reported.
 */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "exec/eager/executor.h"
#include "support/rondo_test.h"
#include "support/test_effort.h"

enum { MOST_NODES = 60, MOST_EDGES = 1000, NO_FAILURE = MOST_NODES };

/* Each node computes its word from those of its predecessors, so that a wrong order shows. */
typedef struct scene {
  test_fixture *t;
  uint32_t count, start[MOST_NODES + 1], before[MOST_EDGES];
  rondo_purpose purposes[MOST_NODES];
  bool is_expensive[MOST_NODES];
  uint32_t words[MOST_NODES], expected[MOST_NODES];
  uint32_t refuses, fails; /* the node that fails when it is enqueued, and the node that fails when it runs */
  uint32_t slow_ms;        /* time of each node */
  _Atomic uint32_t queued, run;
} scene;

typedef struct scene_node {
  scene *of;
  uint32_t number;
} scene_node;

static scene_node scene_nodes[MOST_NODES];

static uint32_t value_of(const scene *s, const uint32_t *words, uint32_t node) {
  uint32_t sum = node + 1;
  for (uint32_t i = s->start[node]; i < s->start[node + 1]; i++) sum = sum * 31 + words[s->before[i]];
  return sum;
}

static rondo_status work(void *user) {
  const scene_node *node = user;
  scene *s = node->of;
  if (s->slow_ms > 0) test_sleep_ms(s->slow_ms);
  s->words[node->number] = value_of(s, s->words, node->number);
  atomic_fetch_add(&s->run, 1);
  return node->number == s->fails ? RONDO_EXECUTION_FAILED : RONDO_OK;
}

static rondo_status play(void *user, uint32_t node, rondo_stream *stream) {
  scene *s = user;
  if (node == s->refuses) return rondo_fail(RONDO_UNSUPPORTED, RONDO_REASON_NONE, "node %u is refused", node);
  atomic_fetch_add(&s->queued, 1);
  return rondo_host_async(stream, work, &scene_nodes[node]);
}

static void draw(uint64_t *seed, scene *s) {
  uint32_t edges = 0;
  s->count = 2 + test_random_below(seed, MOST_NODES - 1);
  const uint32_t density = 1 + test_random_below(seed, 5), expensive = test_random_below(seed, 4);
  for (uint32_t p = 0; p < s->count; p++) {
    s->start[p] = edges;
    s->purposes[p] = (rondo_purpose)test_random_below(seed, RONDO_PURPOSES);
    s->is_expensive[p] = test_random_below(seed, 4) < expensive;
    for (uint32_t q = 0; q < p && edges < MOST_EDGES; q++)
      if (test_random_below(seed, 16) < density) s->before[edges++] = q;
  }
  s->start[s->count] = edges;
  for (uint32_t p = 0; p < s->count; p++) s->expected[p] = value_of(s, s->expected, p);
}

static scene *make_scene(test_fixture *t, uint64_t *seed) {
  static scene s;
  s = (scene){.t = t, .refuses = NO_FAILURE, .fails = NO_FAILURE};
  for (uint32_t i = 0; i < MOST_NODES; i++) scene_nodes[i] = (scene_node){&s, i};
  draw(seed, &s);
  return &s;
}

static rondo_executor_plan *make_plan(rondo_executor *executor, const scene *s) {
  const rondo_executor_work nodes = {.count = s->count,
                                     .before_start = s->start,
                                     .before = s->before,
                                     .purposes = s->purposes,
                                     .is_expensive = s->is_expensive,
                                     .run_node = play};
  rondo_executor_plan *plan = NULL;
  assert_ok(rondo_executor_plan_create(executor, &nodes, &plan));
  return plan;
}

static rondo_executor *make_executor(test_fixture *t, uint32_t threads) {
  const rondo_executor_options options = {RONDO_EXECUTOR_OPTIONS_INIT, .threads = threads};
  rondo_executor *executor = test_executor(t, &options);
  return executor;
}

static rondo_status run(rondo_executor_plan *plan, scene *s) {
  bool has_run = false;
  memset(s->words, 0, sizeof s->words);
  atomic_store(&s->queued, 0);
  atomic_store(&s->run, 0);
  const rondo_status status = rondo_executor_run(plan, s->t->stream, s, &has_run);
  assert_true(has_run);
  return status;
}

/* Asserts that the words of all runs are right when the stream is done. */
static void expect_words(const scene *s) {
  assert_ok(rondo_stream_synchronize(s->t->stream));
  assert_memory_equal(s->words, s->expected, s->count * sizeof *s->words);
}

TEST(test_se10_many_streams_give_what_one_gives) {
  for (uint32_t threads = 0; threads <= 3; threads++) {
    rondo_executor *executor = make_executor(t, threads == 0 ? RONDO_EXECUTOR_NO_THREADS : threads);
    for (uint64_t seed = 1; seed <= test_effort(40); seed++) {
      uint64_t draws = 10 * seed + threads;
      scene *s = make_scene(t, &draws);
      rondo_executor_plan *plan = make_plan(executor, s);
      for (int i = 0; i < 3; i++) {
        assert_ok(run(plan, s));
        expect_words(s);
      }
      assert_ok(rondo_executor_settle(plan));
      rondo_executor_plan_destroy(plan);
    }
    assert_ok(rondo_executor_destroy(executor));
  }
}

/* One after another, without a wait. */
TEST(test_se10_runs_follow_each_other) {
  uint64_t seed = 5;
  rondo_executor *executor = make_executor(t, 2);
  scene *s = make_scene(t, &seed);
  rondo_executor_plan *plan = make_plan(executor, s);
  for (int i = 0; i < 30; i++) assert_ok(run(plan, s));
  expect_words(s);
  rondo_executor_plan_destroy(plan);
}

/* Work that was enqueued before a node was refused has ended when the program's stream is done. */
TEST(test_se10_what_runs_when_a_node_fails_is_waited_for) {
  for (uint64_t seed = 1; seed <= test_effort(20); seed++) {
    uint64_t draws = seed;
    rondo_executor *executor = make_executor(t, 1 + (uint32_t)(seed % 3));
    scene *s = make_scene(t, &draws);
    rondo_executor_plan *plan = make_plan(executor, s);
    s->refuses = test_random_below(&draws, s->count);
    s->slow_ms = seed % 4 == 0;
    assert_error(run(plan, s), RONDO_UNSUPPORTED, RONDO_REASON_NONE);
    assert_message("is refused");
    assert_ok(rondo_stream_synchronize(t->stream));
    assert_int_equal(atomic_load(&s->run), atomic_load(&s->queued));
    assert_int_equal(s->words[s->refuses], 0);
    s->refuses = NO_FAILURE;
    s->slow_ms = 0;
    assert_ok(run(plan, s));
    expect_words(s);
    rondo_executor_plan_destroy(plan);
    assert_ok(rondo_executor_destroy(executor));
  }
}

/* On any stream. The run, synchronizing with the program's stream, or settling reports the failure, once. */
TEST(test_se10_what_fails_on_a_stream_is_reported) {
  for (uint64_t seed = 1; seed <= test_effort(20); seed++) {
    uint64_t draws = seed;
    rondo_executor *executor = make_executor(t, (uint32_t)(seed % 3) + 1);
    scene *s = make_scene(t, &draws);
    rondo_executor_plan *plan = make_plan(executor, s);
    s->fails = test_random_below(&draws, s->count);
    uint32_t told = run(plan, s) != RONDO_OK;
    told += rondo_stream_synchronize(t->stream) != RONDO_OK;
    told += rondo_executor_settle(plan) != RONDO_OK;
    assert_int_equal(told, 1);
    assert_int_equal(rondo_last_error()->status, RONDO_EXECUTION_FAILED);
    s->fails = NO_FAILURE;
    assert_ok(run(plan, s));
    assert_ok(rondo_stream_synchronize(t->stream));
    assert_ok(rondo_executor_settle(plan));
    rondo_executor_plan_destroy(plan);
    assert_ok(rondo_executor_destroy(executor));
  }
}
