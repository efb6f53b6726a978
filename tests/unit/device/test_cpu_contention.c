/* SPDX-License-Identifier: MIT
 * Long runs of executables at the same time: when there is contention; that each run does all of its work once,
 * whatever the others do; and that trials of executables that always run under contention end.
 */
#include <pthread.h>

#include "base/clock.h"
#include "device/cpu/cpu.h"
#include "device/cpu/cpu_contention.h"
#include "device/cpu/cpu_pool.h"
#include "device_tests.h"

enum { MOST_PROCESSORS = 64 };

typedef struct contention {
  rondo_device *device;
  cpu_pool *pool;
  cpu_participant *runners; /* one more than there are processors */
} contention;

static void bind_self(int processor) {
  const rondo_thread self = {.handle = pthread_self()};
  assert_true(rondo_thread_bind(self, processor));
}

static void open_contention(contention *c) {
  assert_ok(rondo_device_open("cpu", NULL, &c->device));
  c->pool = &((cpu_device *)c->device)->pool;
  if (c->pool->processor_count < 2 || c->pool->processor_count > MOST_PROCESSORS) {
    assert_ok(rondo_device_close(c->device));
    skip();
  }
  c->runners = test_array(c->pool->processor_count + 1, sizeof *c->runners);
  for (uint32_t i = 0; i <= c->pool->processor_count; i++) c->runners[i].device = (cpu_device *)c->device;
}

static void close_contention(contention *c) {
  free(c->runners);
  assert_ok(rondo_device_close(c->device));
}

/* In a thread of its own, which the body may bind to processors. */
static void run_contention(void *(*body)(void *contention)) {
  contention c;
  pthread_t thread;
  open_contention(&c);
  assert_int_equal(pthread_create(&thread, NULL, body, &c), 0);
  assert_int_equal(pthread_join(thread, NULL), 0);
  close_contention(&c);
}

static void *contend_on_all_processors(void *user) {
  contention *c = user;
  const uint32_t count = c->pool->processor_count;
  for (uint32_t i = 0; i < count; i++) {
    assert_false(cpu_contention_exists(c->pool));
    assert_int_equal(cpu_contention_count(c->pool), 0);
    bind_self(c->pool->processors[i]);
    cpu_contention_enter(&c->runners[i]);
  }
  assert_true(cpu_contention_is_full(c->pool));
  assert_int_equal(cpu_contention_count(c->pool), 1);
  for (uint32_t i = 0; i < count; i++) assert_true(cpu_contention_has_run_at(c->pool, i));
  cpu_contention_leave(&c->runners[0]);
  assert_true(cpu_contention_has_run_at(c->pool, 1));
  assert_false(cpu_contention_has_run_at(c->pool, 0));
  assert_false(cpu_contention_exists(c->pool));
  assert_false(cpu_contention_is_full(c->pool));
  for (uint32_t i = 1; i < count; i++) cpu_contention_leave(&c->runners[i]);
  return NULL;
}

UNIT_TEST(a_run_on_each_processor_is_contention_gx_10) { run_contention(contend_on_all_processors); }

/* Moves one of two to where the other is, and back. */
static void *contend_on_one_processor(void *user) {
  contention *c = user;
  const uint32_t count = c->pool->processor_count;
  bind_self(c->pool->processors[0]);
  for (uint32_t i = 0; i < count; i++) cpu_contention_enter(&c->runners[i]);
  assert_false(cpu_contention_is_full(c->pool));
  assert_true(cpu_contention_is_uneven(c->pool));
  for (uint32_t i = 1; i < count; i++) {
    bind_self(c->pool->processors[i]);
    cpu_contention_follow(&c->runners[i]);
  }
  assert_true(cpu_contention_is_full(c->pool));
  bind_self(c->pool->processors[1]);
  cpu_contention_follow(&c->runners[0]);
  assert_false(cpu_contention_is_full(c->pool));
  for (uint32_t i = 0; i < count; i++) cpu_contention_leave(&c->runners[i]);
  assert_false(cpu_contention_exists(c->pool));
  for (uint32_t i = 0; i < count; i++) assert_false(cpu_contention_has_run_at(c->pool, i));
  return NULL;
}

UNIT_TEST(runs_on_one_processor_leave_the_others_to_helpers_gx_10) { run_contention(contend_on_one_processor); }

/* All runs are on the first worker's processor. The worker gets the spare one, and stays there. */
static void *contend_on_a_workers_processor(void *user) {
  contention *c = user;
  const uint32_t count = c->pool->processor_count;
  const cpu_participant *worker = &c->pool->participants[0];
  if (!c->pool->bound) return NULL;
  const int before = atomic_load(&worker->processor);
  bind_self(before);
  for (uint32_t i = 0; i < count; i++) cpu_contention_enter(&c->runners[i]);
  while (atomic_load(&worker->processor) == before) cpu_pool_spread(c->pool);
  const int left = atomic_load(&worker->processor);
  cpu_pool_spread(c->pool);
  assert_int_equal(atomic_load(&worker->processor), left);
  for (uint32_t i = 0; i < count; i++) cpu_contention_leave(&c->runners[i]);
  return NULL;
}

UNIT_TEST(a_worker_leaves_a_processor_to_runs_gx_10) { run_contention(contend_on_a_workers_processor); }

/* Runs ------------------------------------------------------------------------------------------------------------ */

enum { BLOCKS = 64, BRANCHES = 3, RUNS = 40, MOST_RUNNERS = 6, WORK = 1000 };

typedef struct runner {
  rondo_device *device;
  rondo_kernel *kernel;
  pthread_t thread;
  atomic_uint done[BRANCHES + 1][BLOCKS]; /* by node */
  unsigned wrong;                         /* counters, after all runs */
} runner;

/* One argument: a row of counters. */
static void count_slowly(rondo_blocks blocks, void *const *args) {
  atomic_uint *done = *(atomic_uint *const *)args[0];
  for (size_t b = blocks.first; b < blocks.last; b++) {
    for (int i = 0; i < WORK; i++) atomic_signal_fence(memory_order_seq_cst);
    atomic_fetch_add_explicit(&done[b], 1, memory_order_relaxed);
  }
}

/* Parallel branches, and a node after them. */
static rondo_executable *make_fan(runner *r) {
  rondo_executable *executable;
  atomic_uint *rows[BRANCHES + 1];
  const void *args[BRANCHES + 1];
  edge_lists *graph = make_lists(BRANCHES + 1, BRANCHES);
  for (uint32_t i = 0; i <= BRANCHES; i++) {
    rows[i] = r->done[i];
    args[i] = &rows[i];
    set_test_kernel(graph, i, r->kernel, BLOCKS, &args[i]);
    if (i < BRANCHES) add_test_edge(graph, i, BRANCHES);
  }
  assert_ok(lower_lists(r->device, graph, &executable));
  free_lists(graph);
  return executable;
}

static void *run_again_and_again(void *user) {
  runner *r = user;
  rondo_queue *queue;
  assert_ok(r->device->ops->queue_create(r->device, "q", NULL, &queue));
  rondo_executable *executable = make_fan(r);
  for (unsigned run = 1; run <= RUNS; run++) {
    assert_ok(queue->ops->launch(queue, executable));
    assert_ok(queue->ops->synchronize(queue));
    for (int i = 0; i <= BRANCHES; i++)
      for (int b = 0; b < BLOCKS; b++) r->wrong += atomic_load(&r->done[i][b]) != run;
  }
  executable->ops->destroy(executable);
  assert_ok(queue->ops->destroy(queue));
  return NULL;
}

UNIT_TEST(runs_under_contention_do_all_of_their_work_once_gx_10) {
  static const rondo_kernel_options options = {.name = "count", .cpu = count_slowly, .params = {RONDO_UPDATES}};
  static runner runners[MOST_RUNNERS];
  rondo_device *device;
  rondo_kernel *kernel;
  assert_ok(rondo_device_open("cpu", NULL, &device));
  const cpu_pool *pool = &((cpu_device *)device)->pool;
  const uint32_t count = pool->processor_count < MOST_RUNNERS ? pool->processor_count + 1 : MOST_RUNNERS;
  assert_ok(rondo_kernel_create(device, &options, &kernel));
  for (uint32_t i = 0; i < count; i++) {
    runners[i].device = device;
    runners[i].kernel = kernel;
    assert_int_equal(pthread_create(&runners[i].thread, NULL, run_again_and_again, &runners[i]), 0);
  }
  for (uint32_t i = 0; i < count; i++) {
    assert_int_equal(pthread_join(runners[i].thread, NULL), 0);
    assert_int_equal(runners[i].wrong, 0);
  }
  assert_int_equal(atomic_load(&pool->long_runs), 0);
  assert_int_equal(atomic_load(&pool->occupied), 0);
  rondo_kernel_destroy(kernel);
  assert_ok(rondo_device_close(device));
}

/* What always runs with others ------------------------------------------------------------------------------------ */

enum { LONGER_THAN_BRIEF_NS = 40000, TRIES = 100, LAUNCHES = 30 };

/* Two blocks, so that others could help. The argument says whether it is long. */
static void be_brief_or_long(rondo_blocks blocks, void *const *args) {
  const uint64_t begun = rondo_clock_ns();
  (void)blocks;
  while (*(const uint32_t *)args[0] != 0 && rondo_clock_ns() - begun < LONGER_THAN_BRIEF_NS) continue;
}

static rondo_executable *make_one(rondo_device *device, rondo_kernel *kernel, const uint32_t *is_long) {
  rondo_executable *executable;
  const void *args[] = {is_long};
  edge_lists *graph = make_lists(1, 0);
  set_test_kernel(graph, 0, kernel, 2, args);
  assert_ok(lower_lists(device, graph, &executable));
  free_lists(graph);
  return executable;
}

/* Launches it. Returns how many of the launches were counted among the long runs, under contention. */
static uint64_t launch_under_contention(const contention *c, rondo_queue *queue, rondo_executable *executable) {
  const uint64_t before = cpu_contention_count(c->pool);
  for (int i = 0; i < LAUNCHES; i++) {
    assert_ok(queue->ops->launch(queue, executable));
    assert_ok(queue->ops->synchronize(queue));
  }
  return cpu_contention_count(c->pool) - before;
}

static void *always_run_with_others(void *user) {
  static const rondo_kernel_options options = {
      .name = "one", .cpu = be_brief_or_long, .params = {RONDO_SCALAR(uint32_t)}};
  contention *c = user;
  rondo_queue *queue;
  rondo_kernel *kernel;
  assert_ok(rondo_kernel_create(c->device, &options, &kernel));
  assert_ok(c->device->ops->queue_create(c->device, "q", NULL, &queue));
  for (uint32_t i = 0; i < c->pool->processor_count; i++) cpu_contention_enter(&c->runners[i]);
  uint64_t counted = LAUNCHES;
  for (int i = 0; i < TRIES && counted == LAUNCHES; i++) { /* the system may take the processor from each probe */
    rondo_executable *brief = make_one(c->device, kernel, &(uint32_t){0});
    counted = launch_under_contention(c, queue, brief);
    brief->ops->destroy(brief);
  }
  assert_true(counted < LAUNCHES);
  rondo_executable *lengthy = make_one(c->device, kernel, &(uint32_t){1});
  assert_int_equal(launch_under_contention(c, queue, lengthy), LAUNCHES);
  assert_int_equal(((cpu_executable *)lengthy)->choice.loops, 0);
  assert_in_range(((cpu_executable *)lengthy)->choice.probes, 1, LAUNCHES / 2);
  lengthy->ops->destroy(lengthy);
  for (uint32_t i = 0; i < c->pool->processor_count; i++) cpu_contention_leave(&c->runners[i]);
  assert_ok(queue->ops->destroy(queue));
  rondo_kernel_destroy(kernel);
  return NULL;
}

UNIT_TEST(what_always_runs_with_others_is_not_tried_for_ever_gx_10) { run_contention(always_run_with_others); }

/* Launches that are left to their hosts -------------------------------------------------------------------------- */

enum { QUEUES = 2, MOST_TRIES = 1000 };

/* A device with long runs on all processors but one. */
typedef struct guarded {
  rondo_device *device;
  cpu_pool *pool;
  cpu_participant *runners;
  rondo_queue *queues[QUEUES];
  rondo_queue *busy[QUEUES]; /* to hold workers by */
} guarded;

static void open_guarded(guarded *g, uint32_t workers) {
  assert_ok(rondo_device_open("cpu", &(rondo_device_options){.workers = workers}, &g->device));
  g->pool = &((cpu_device *)g->device)->pool;
  if (g->pool->processor_count < 2) {
    assert_ok(rondo_device_close(g->device));
    skip();
  }
  for (size_t i = 0; i < QUEUES; i++) {
    assert_ok(g->device->ops->queue_create(g->device, "queue", NULL, &g->queues[i]));
    assert_ok(g->device->ops->queue_create(g->device, "busy", NULL, &g->busy[i]));
  }
  g->runners = test_array(g->pool->processor_count, sizeof *g->runners);
  assert_false(cpu_pool_leaves_to_host(g->pool));
  for (uint32_t i = 0; i + 1 < g->pool->processor_count; i++) {
    g->runners[i].device = (cpu_device *)g->device;
    assert_false(cpu_contention_is_near(g->pool));
    cpu_contention_enter(&g->runners[i]);
  }
}

static void close_guarded(guarded *g) {
  for (uint32_t i = 0; i + 1 < g->pool->processor_count; i++) cpu_contention_leave(&g->runners[i]);
  for (size_t i = 0; i < QUEUES; i++) {
    assert_ok(g->queues[i]->ops->destroy(g->queues[i]));
    assert_ok(g->busy[i]->ops->destroy(g->busy[i]));
  }
  free(g->runners);
  assert_ok(rondo_device_close(g->device));
}

/* All workers are held meanwhile, so this thread runs the work that it waits for. */
static void get_into_the_habit_of_waiting(const guarded *g) {
  const uint32_t workers = g->pool->worker_count;
  atomic_uint count = 0;
  gate at[QUEUES] = {{false, false}};
  for (uint32_t i = 0; i < workers; i++) close_queue_after(g->busy[i], &at[i]);
  for (unsigned i = 0; i < CPU_HABIT * workers; i++) {
    rondo_queue *queue = g->queues[i % workers];
    submit_count(queue, &count);
    assert_ok(queue->ops->synchronize(queue));
  }
  for (uint32_t i = 0; i < workers; i++) {
    assert_int_equal(atomic_load(&((cpu_queue *)g->queues[i])->hosted), CPU_HABIT);
    atomic_store(&at[i].open, true);
    assert_ok(g->busy[i]->ops->synchronize(g->busy[i]));
  }
}

/* All workers sleep, one of them on guard. */
static void wait_for_guard(cpu_pool *pool) {
  while (!cpu_pool_leaves_to_host(pool) || atomic_load(&pool->sleepers.count) < pool->worker_count) rondo_yield();
}

/* Then launches once without waiting. False if the worker was not on guard any more at that launch. */
static bool launch_without_waking(const guarded *g) {
  rondo_queue *queue = g->queues[0];
  atomic_uint count = 0;
  wait_for_guard(g->pool);
  const uint64_t wakes = atomic_load(&g->pool->wakes);
  submit_count(queue, &count);
  const bool is_left = atomic_load(&g->pool->wakes) == wakes;
  while (atomic_load(&count) == 0) rondo_yield(); /* without helping: the worker runs it */
  assert_int_equal(atomic_load(&((cpu_queue *)queue)->hosted), 0);
  assert_ok(queue->ops->synchronize(queue));
  return is_left;
}

UNIT_TEST(a_launch_left_to_a_host_that_does_not_wait_is_run_gx_10) {
  guarded g;
  bool is_left = false;
  open_guarded(&g, 1);
  for (unsigned i = 0; i < MOST_TRIES && !is_left; i++) {
    get_into_the_habit_of_waiting(&g);
    is_left = launch_without_waking(&g);
  }
  assert_true(is_left);
  close_guarded(&g);
}

/* Two launches. One of them holds the thread that runs it until the other is done. */
static bool launch_two_without_waking(const guarded *g, size_t keeper) {
  atomic_uint count = 0;
  gate at = {false, false};
  const rondo_node_params keep = {.kind = RONDO_NODE_HOST, .as.host = {.function = wait_at_gate, .user = &at}};
  wait_for_guard(g->pool);
  const uint64_t wakes = atomic_load(&g->pool->wakes);
  assert_ok(g->queues[keeper]->ops->submit(g->queues[keeper], &keep));
  submit_count(g->queues[1 - keeper], &count);
  const bool are_left = atomic_load(&g->pool->wakes) == wakes;
  while (atomic_load(&count) == 0) rondo_yield();
  atomic_store(&at.open, true);
  for (size_t i = 0; i < QUEUES; i++) assert_ok(g->queues[i]->ops->synchronize(g->queues[i]));
  return are_left;
}

UNIT_TEST(what_keeps_the_guard_keeps_no_other_launch_gx_10) {
  guarded g;
  open_guarded(&g, QUEUES);
  for (size_t keeper = 0; keeper < QUEUES; keeper++) { /* whichever of them the guard takes up first */
    bool are_left = false;
    for (unsigned i = 0; i < MOST_TRIES && !are_left; i++) {
      get_into_the_habit_of_waiting(&g);
      are_left = launch_two_without_waking(&g, keeper);
    }
    assert_true(are_left);
  }
  close_guarded(&g);
}
