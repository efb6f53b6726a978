/* SPDX-License-Identifier: MIT
 * Executables of the CPU driver, through its tables: order of random graphs with all methods and several numbers of
 * workers, also when all workers are busy; grids; changes that belong to launches; event nodes in graphs; destruction
 * while launches run; failing allocations.
 */
#include "base/clock.h"
#include "device/cpu/cpu.h"
#include "device_tests.h"
#include "support/test_effort.h"

typedef struct order_check {
  edge_lists *graph;
  atomic_uint *runs; /* for each node: blocks that ran in all launches */
  uint32_t blocks;   /* a node's */
  atomic_uint bad;
} order_check;

typedef struct order_argument {
  order_check *check;
  uint32_t node;
} order_argument;

/* Each node runs all its blocks once for each launch, after all blocks of all its predecessors. */
static void check_order(rondo_blocks blocks, void *const *args) {
  const order_argument *argument = *(order_argument *const *)args[0];
  order_check *check = argument->check;
  const unsigned launch = atomic_load(&check->runs[argument->node]) / check->blocks;
  for (uint32_t e = 0; e < check->graph->edge_count; e++) {
    if (check->graph->to[e] != argument->node) continue;
    if (atomic_load(&check->runs[check->graph->from[e]]) < (launch + 1) * check->blocks)
      atomic_fetch_add(&check->bad, 1);
  }
  atomic_fetch_add(&check->runs[argument->node], (unsigned)(blocks.last - blocks.first));
}

static uint32_t next_random(uint64_t *state) {
  *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (uint32_t)(*state >> 33);
}

static rondo_kernel *order_kernel(rondo_device *device) {
  rondo_kernel *kernel;
  assert_ok(rondo_kernel_create(
      device, &(rondo_kernel_options){.name = "check_order", .cpu = check_order, .params = {RONDO_READS}}, &kernel));
  return kernel;
}

static void run_random_graph(rondo_device *device, rondo_queue *queue, uint64_t seed, uint32_t blocks) {
  enum { LAUNCHES = 25 };
  uint64_t random = seed;
  const uint32_t nodes = 1 + next_random(&random) % 120;
  edge_lists *graph = make_lists(nodes, nodes * 4);
  order_check check = {.graph = graph, .blocks = blocks};
  check.runs = test_array(nodes, sizeof *check.runs);
  order_argument *arguments = test_array(nodes, sizeof *arguments);
  order_argument **values = test_array(nodes, sizeof *values);
  const void **lists = test_array(nodes, sizeof *lists);
  rondo_kernel *kernel = order_kernel(device);
  for (uint32_t i = 0; i < nodes; i++) {
    arguments[i] = (order_argument){&check, i};
    values[i] = &arguments[i];
    lists[i] = &values[i];
    set_test_kernel(graph, i, kernel, blocks, &lists[i]);
    const uint32_t edges = i == 0 ? 0 : next_random(&random) % 4;
    uint32_t before = UINT32_MAX;
    for (uint32_t e = 0; e < edges; e++) {
      const uint32_t from = next_random(&random) % i;
      if (from != before) add_test_edge(graph, from, i);
      if (before != UINT32_MAX && from != before) break; /* at most two different ones: no duplicates */
      before = from;
    }
  }
  rondo_executable *executable;
  assert_ok(lower_lists(device, graph, &executable));
  for (uint32_t l = 0; l < LAUNCHES; l++) {
    assert_ok(queue->ops->launch(queue, executable));
    if (l % 3 == 0) assert_ok(queue->ops->synchronize(queue));
  }
  assert_ok(queue->ops->synchronize(queue));
  assert_int_equal(atomic_load(&check.bad), 0);
  for (uint32_t i = 0; i < nodes; i++) assert_int_equal(atomic_load(&check.runs[i]), LAUNCHES * blocks);
  executable->ops->destroy(executable);
  rondo_kernel_destroy(kernel);
  free(check.runs);
  free(arguments);
  free(values);
  free(lists);
  free_lists(graph);
}

CPU_TEST(random_graphs_run_in_order_gx_4) {
  for (uint32_t workers = 1; workers <= 4; workers++) {
    rondo_device *device = use_workers(f, workers);
    rondo_queue *queue = make_queue(f, "q");
    for (uint64_t seed = 1; seed <= 2 + test_effort(38); seed++)
      run_random_graph(device, queue, seed * workers, 1 + (uint32_t)(seed % 3) * 50);
    close_device(f);
  }
}

/* The thread that waits can run a graph alone, however it was planned. */
CPU_TEST(random_graphs_run_while_all_workers_are_held_gx_4) {
  enum { WORKERS = 3 };
  rondo_queue *held[WORKERS];
  gate gates[WORKERS] = {{false, false}};
  rondo_device *device = use_workers(f, WORKERS);
  rondo_queue *queue = make_queue(f, "q");
  for (int i = 0; i < WORKERS; i++) {
    held[i] = make_queue(f, "held");
    close_queue_after(held[i], &gates[i]);
  }
  for (uint64_t seed = 1; seed <= 2 + test_effort(38); seed++) run_random_graph(device, queue, seed, 1);
  for (int i = 0; i < WORKERS; i++) atomic_store(&gates[i].open, true);
  close_device(f); /* whose work still refers to the stack */
}

typedef struct meeting {
  atomic_uint present;
  atomic_bool was_complete;
} meeting;

enum { COUPLE = 2, PATIENCE_NS = 5 * 1000 * 1000 };

/* Each block waits some time for the other one. */
static void meet(rondo_blocks blocks, void *const *args) {
  meeting *at = *(meeting *const *)args[0];
  for (size_t i = blocks.first; i < blocks.last; i++) {
    const uint64_t begun = rondo_clock_ns();
    if (atomic_fetch_add(&at->present, 1) + 1 == COUPLE) atomic_store(&at->was_complete, true);
    while (atomic_load(&at->present) < COUPLE && rondo_clock_ns() - begun < PATIENCE_NS) rondo_yield();
    atomic_fetch_sub(&at->present, 1);
  }
}

/* A node's time is known from the run before, so its first block is shared like the others. */
CPU_TEST(two_blocks_run_at_the_same_time_gx_4) {
  enum { LAUNCHES = 400 };
  rondo_device *device = use_workers(f, 1);
  rondo_queue *queue = make_queue(f, "q");
  meeting at = {0, false}, *value = &at;
  const void *args[] = {&value};
  rondo_kernel *kernel;
  rondo_executable *executable;
  edge_lists *graph = make_lists(1, 0);
  assert_ok(rondo_kernel_create(device, &(rondo_kernel_options){.name = "meet", .cpu = meet, .params = {RONDO_UPDATES}},
                                &kernel));
  set_test_kernel(graph, 0, kernel, COUPLE, args);
  assert_ok(lower_lists(device, graph, &executable));
  for (int i = 0; i < LAUNCHES && !atomic_load(&at.was_complete); i++) {
    assert_ok(queue->ops->launch(queue, executable));
    assert_ok(queue->ops->synchronize(queue));
  }
  assert_true(atomic_load(&at.was_complete));
  executable->ops->destroy(executable);
  rondo_kernel_destroy(kernel);
  free_lists(graph);
}

static void append(rondo_blocks blocks, void *const *args) {
  uint32_t *log = *(uint32_t *const *)args[0];
  (void)blocks;
  log[++log[0]] = *(const uint32_t *)args[1];
}

static rondo_kernel *append_kernel(rondo_device *device) {
  rondo_kernel *kernel;
  assert_ok(rondo_kernel_create(
      device,
      &(rondo_kernel_options){.name = "append", .cpu = append, .params = {RONDO_UPDATES, RONDO_SCALAR(uint32_t)}},
      &kernel));
  return kernel;
}

/* A graph of one node, which appends `value` to `values`. */
typedef struct log_graph {
  uint32_t values[64], value;
  uint32_t *log;
  const void *args[2];
  rondo_kernel *kernel;
  edge_lists *graph;
  rondo_executable *executable;
} log_graph;

static void make_log_graph(log_graph *out, rondo_device *device) {
  *out = (log_graph){.kernel = append_kernel(device), .graph = make_lists(1, 0)};
  out->log = out->values;
  out->args[0] = &out->log;
  out->args[1] = &out->value;
  set_test_kernel(out->graph, 0, out->kernel, 1, out->args);
  assert_ok(lower_lists(device, out->graph, &out->executable));
}

static void free_log_graph(log_graph *graph) {
  graph->executable->ops->destroy(graph->executable);
  free_lists(graph->graph);
  rondo_kernel_destroy(graph->kernel);
}

CPU_TEST(changes_do_not_touch_queued_launches_gx_5) {
  log_graph g;
  rondo_device *device = use_workers(f, 0);
  rondo_queue *queue = make_queue(f, "q");
  make_log_graph(&g, device);
  gate at = {false, false};
  close_queue_after(queue, &at);
  for (g.value = 1; g.value <= 9; g.value++) {
    assert_ok(g.executable->ops->set_params(g.executable, 0, &g.graph->nodes[0]));
    if (g.value == 5) assert_ok(g.executable->ops->set_enabled(g.executable, 0, false));
    if (g.value == 7) assert_ok(g.executable->ops->set_enabled(g.executable, 0, true));
    assert_ok(queue->ops->launch(queue, g.executable));
  }
  assert_int_equal(g.values[0], 0);
  atomic_store(&at.open, true);
  assert_ok(queue->ops->synchronize(queue));
  const uint32_t expected[] = {7, 1, 2, 3, 4, 7, 8, 9};
  assert_memory_equal(g.values, expected, sizeof expected);
  free_log_graph(&g);
}

/* Launches of one executable on two queues come one after another, in the order of the calls (L1). */
CPU_TEST(launches_of_one_executable_are_ordered_gx_4) {
  rondo_queue *queues[2];
  log_graph g;
  rondo_device *device = use_workers(f, 3);
  for (int i = 0; i < 2; i++) queues[i] = make_queue(f, "q");
  make_log_graph(&g, device);
  gate at = {false, false};
  close_queue_after(queues[0], &at);
  for (g.value = 1; g.value <= 20; g.value++) {
    rondo_queue *queue = queues[g.value % 2 == 0];
    assert_ok(g.executable->ops->set_params(g.executable, 0, &g.graph->nodes[0]));
    assert_ok(queue->ops->launch(queue, g.executable));
  }
  atomic_store(&at.open, true);
  for (int i = 0; i < 2; i++) assert_ok(queues[i]->ops->synchronize(queues[i]));
  for (uint32_t i = 0; i <= 20; i++) assert_int_equal(g.values[i], i == 0 ? 20 : i);
  free_log_graph(&g);
}

/* One graph: records `first`, then waits for `second`, which another queue records only after `first`. A driver that
 * held its only worker while waiting would never finish. */
CPU_TEST(event_nodes_do_not_hold_the_worker_gx_1) {
  rondo_executable *executable;
  rondo_device_event *first, *second;
  uint32_t log_values[64] = {0}, before = 1, between = 2, after = 3;
  uint32_t *log = log_values;
  rondo_device *device = use_workers(f, 1);
  rondo_queue *queue = make_queue(f, "q");
  rondo_queue *other = make_queue(f, "other");
  assert_ok(device->ops->event_create(device, true, &first));
  assert_ok(device->ops->event_create(device, false, &second));
  rondo_kernel *kernel = append_kernel(device);
  edge_lists *graph = make_lists(4, 3);
  const void *args_before[] = {&log, &before}, *args_after[] = {&log, &after}, *args_between[] = {&log, &between};
  set_test_kernel(graph, 0, kernel, 1, args_before);
  graph->params[1].kind = RONDO_NODE_EVENT_RECORD;
  graph->nodes[1].event = first;
  graph->params[2].kind = RONDO_NODE_EVENT_WAIT;
  graph->nodes[2].event = second;
  set_test_kernel(graph, 3, kernel, 1, args_after);
  for (uint32_t i = 0; i < 3; i++) add_test_edge(graph, i, i + 1);
  assert_ok(lower_lists(device, graph, &executable));
  const rondo_node_params between_work = {
      .kind = RONDO_NODE_KERNEL,
      .as.kernel = {.kernel = kernel, .grid = {1, 1, 1}, .args = args_between, .arg_count = 2}};
  gate at = {false, false};
  for (int round = 0; round < 10; round++) {
    log_values[0] = 0;
    at = (gate){false, false};
    close_queue_after(other, &at); /* so that `second` is still to come when the graph is launched */
    assert_ok(other->ops->submit(other, &between_work));
    assert_ok(other->ops->record(other, second));
    assert_ok(queue->ops->launch(queue, executable));
    atomic_store(&at.open, true);
    assert_ok(first->ops->synchronize(first));
    assert_ok(queue->ops->synchronize(queue));
    assert_int_equal(log_values[0], 3);
    assert_int_equal(log_values[3], 3);
    const cpu_event never = {0};
    int64_t time_ns = 0;
    assert_ok(first->ops->elapsed(&never.base, first, &time_ns));
    assert_true(time_ns > 0);
  }
  executable->ops->destroy(executable);
  first->ops->destroy(first);
  second->ops->destroy(second);
  free_lists(graph);
  rondo_kernel_destroy(kernel);
}

CPU_TEST(destroyed_in_flight_it_still_runs_gx_4) {
  log_graph g;
  rondo_device *device = use_workers(f, 1);
  rondo_queue *queue = make_queue(f, "q");
  make_log_graph(&g, device);
  gate at = {false, false};
  close_queue_after(queue, &at);
  assert_ok(queue->ops->launch(queue, g.executable));
  free_log_graph(&g);
  atomic_store(&at.open, true);
  assert_ok(queue->ops->synchronize(queue));
  assert_int_equal(g.values[0], 1);
}

/* Allocation N fails, for all N: cpu:check returns an allocation or NULL with an error. */
CPU_TEST(failing_guarded_allocations_return_no_address) {
  const rondo_device_options options = {RONDO_DEVICE_OPTIONS_INIT, .workers = 1, .allocator = &f->allocator.table};
  void *address = NULL;
  assert_ok(rondo_device_open("cpu:check", &options, &f->device));
  const rondo_guard_ops *guard = f->device->ops->guard;
  size_t n = 1;
  for (; address == NULL; n++) {
    address = &address;
    atomic_store(&f->allocator.fail_at, atomic_load(&f->allocator.calls) + n);
    const rondo_status status = guard->allocate(f->device, NULL, 64, "guarded", &address);
    atomic_store(&f->allocator.fail_at, 0);
    assert_true((status == RONDO_OK) == (address != NULL));
    if (status != RONDO_OK) assert_int_equal(status, RONDO_OUT_OF_MEMORY);
  }
  assert_true(n > 2);
  guard->release(f->device, NULL, address);
}

/* Allocation N fails, for all N: an error is returned or nothing was lost, and nothing leaks. */
CPU_TEST(failing_allocations_leak_nothing) {
  bool all_passed = false;
  for (size_t n = 1; !all_passed; n++) {
    test_allocator_init(&f->allocator);
    rondo_device *device;
    rondo_queue *queue = NULL;
    rondo_device_event *event = NULL;
    rondo_kernel *kernel = NULL;
    rondo_executable *executable = NULL;
    uint32_t log_values[8] = {0}, value = 1;
    uint32_t *log = log_values;
    atomic_store(&f->allocator.fail_at, n);
    const rondo_device_options one_worker = {RONDO_DEVICE_OPTIONS_INIT, .workers = 1, .allocator = &f->allocator.table};
    if (rondo_device_open("cpu", &one_worker, &device) == RONDO_OK) {
      rondo_status status = device->ops->queue_create(device, "q", NULL, &queue);
      if (status == RONDO_OK) status = device->ops->event_create(device, false, &event);
      const rondo_kernel_options options = {
          .name = "append", .cpu = append, .params = {RONDO_UPDATES, RONDO_SCALAR(uint32_t)}};
      if (status == RONDO_OK) status = rondo_kernel_create(device, &options, &kernel);
      if (status == RONDO_OK) {
        edge_lists *graph = make_lists(3, 2);
        const void *args[] = {&log, &value};
        set_test_kernel(graph, 0, kernel, 1, args);
        graph->params[1].kind = RONDO_NODE_EVENT_RECORD;
        graph->nodes[1].event = event;
        graph->params[2].kind = RONDO_NODE_EVENT_WAIT;
        graph->nodes[2].event = event;
        add_test_edge(graph, 0, 1);
        status = lower_lists(device, graph, &executable);
        if (status == RONDO_OK) status = executable->ops->set_params(executable, 0, &graph->nodes[0]);
        if (status == RONDO_OK) status = queue->ops->launch(queue, executable);
        if (status == RONDO_OK) status = queue->ops->synchronize(queue);
        free_lists(graph);
      }
      all_passed = status == RONDO_OK && atomic_load(&f->allocator.calls) < n;
      if (status != RONDO_OK) assert_int_equal(status, RONDO_OUT_OF_MEMORY);
      if (status == RONDO_OK) assert_int_equal(log_values[0], 1);
      if (event != NULL) assert_ok(event->ops->synchronize(event)); /* recorded even by a run that failed */
      if (executable != NULL) executable->ops->destroy(executable);
      if (event != NULL) event->ops->destroy(event);
      rondo_kernel_destroy(kernel);
      if (queue != NULL) assert_ok(queue->ops->destroy(queue));
      assert_ok(rondo_device_close(device));
    } else {
      assert_int_equal(rondo_last_error()->status, RONDO_OUT_OF_MEMORY);
    }
    assert_true(test_allocator_is_clean(&f->allocator));
  }
}
