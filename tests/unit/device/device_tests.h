/* SPDX-License-Identifier: MIT
 * Shared by the unit tests of the device layer: a CPU device with an allocator that counts and fails on request (from
 * any thread), lowered graphs made from edge lists, and gates that block a queue.
 */
#ifndef RONDO_TESTS_DEVICE_TESTS_H
#define RONDO_TESTS_DEVICE_TESTS_H

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/thread.h"
#include "device/device.h"
#include "support/rondo_test.h"

/* A CPU device and queues, which the teardown destroys. */
typedef struct cpu_fixture {
  test_allocator allocator;
  rondo_device *device;
  rondo_queue *queues[160];
  size_t queue_count;
} cpu_fixture;

/* Opens the device: 0 workers for as many as it chooses. */
static inline rondo_device *use_workers(cpu_fixture *fixture, uint32_t workers) {
  const rondo_device_options options = {RONDO_DEVICE_OPTIONS_INIT, .workers = workers,
                                        .allocator = &fixture->allocator.table};
  assert_ok(rondo_device_open("cpu", &options, &fixture->device));
  return fixture->device;
}

static inline rondo_queue *make_queue(cpu_fixture *fixture, const char *name) {
  rondo_queue **const queue = &fixture->queues[fixture->queue_count++];
  assert_true(fixture->queue_count <= sizeof fixture->queues / sizeof fixture->queues[0]);
  assert_ok(fixture->device->ops->queue_create(fixture->device, name, NULL, queue));
  return *queue;
}

static inline int cpu_setup(void **state) {
  static cpu_fixture fixture;
  fixture = (cpu_fixture){.device = NULL};
  test_allocator_init(&fixture.allocator);
  *state = &fixture;
  return 0;
}

/* Destroys the queues, the newest first, and closes the device. */
static inline void close_device(cpu_fixture *fixture) {
  while (fixture->queue_count > 0) {
    rondo_queue *queue = fixture->queues[--fixture->queue_count];
    assert_ok(queue->ops->destroy(queue));
  }
  if (fixture->device != NULL) assert_ok(rondo_device_close(fixture->device));
  fixture->device = NULL;
}

static inline int cpu_teardown(void **state) {
  cpu_fixture *fixture = *state;
  close_device(fixture);
  return test_allocator_is_clean(&fixture->allocator) ? 0 : -1;
}

#define CPU_TEST(name) TEST_REGISTER(name, cpu_fixture *f, cpu_setup, cpu_teardown, false)

/* A graph as lists. */
typedef struct edge_lists {
  uint32_t node_count, edge_count;
  rondo_node_params *params;
  rondo_lowered_node *nodes;
  uint32_t *from, *to; /* from < to */
  uint32_t *start, *successors;
} edge_lists;

static inline void *test_array(size_t count, size_t bytes) {
  void *array = calloc(count + 1, bytes);
  assert_non_null(array);
  return array;
}

static inline edge_lists *make_lists(uint32_t nodes, uint32_t room_for_edges) {
  edge_lists *graph = test_array(1, sizeof *graph);
  graph->node_count = nodes;
  graph->params = test_array(nodes, sizeof *graph->params);
  graph->nodes = test_array(nodes, sizeof *graph->nodes);
  graph->from = test_array(room_for_edges, sizeof *graph->from);
  graph->to = test_array(room_for_edges, sizeof *graph->to);
  graph->start = test_array(nodes + 1, sizeof *graph->start);
  graph->successors = test_array(room_for_edges, sizeof *graph->successors);
  for (uint32_t i = 0; i < nodes; i++) {
    graph->params[i] = (rondo_node_params){.kind = RONDO_NODE_EMPTY, .name = "node"};
    graph->nodes[i] = (rondo_lowered_node){.params = &graph->params[i], .where = {.number = i, .own = i}};
  }
  return graph;
}

static inline void free_lists(edge_lists *graph) {
  free(graph->params);
  free(graph->nodes);
  free(graph->from);
  free(graph->to);
  free(graph->start);
  free(graph->successors);
  free(graph);
}

static inline void add_test_edge(edge_lists *graph, uint32_t from, uint32_t to) {
  graph->from[graph->edge_count] = from;
  graph->to[graph->edge_count++] = to;
}

static inline rondo_status lower_lists(rondo_device *device, edge_lists *graph, rondo_executable **out) {
  uint32_t *filled = test_array(graph->node_count, sizeof *filled);
  uint32_t *before_start = test_array(graph->node_count + 1, sizeof *before_start);
  uint32_t *before = test_array(graph->edge_count, sizeof *before);
  for (uint32_t i = 0, count = 0; i < graph->node_count; i++) {
    for (uint32_t e = 0; e < graph->edge_count; e++)
      if (graph->to[e] == i) before[count++] = graph->from[e];
    before_start[i + 1] = count;
  }
  memset(graph->start, 0, (graph->node_count + 1) * sizeof *graph->start);
  for (uint32_t e = 0; e < graph->edge_count; e++) graph->start[graph->from[e] + 1]++;
  for (uint32_t i = 0; i < graph->node_count; i++) graph->start[i + 1] += graph->start[i];
  for (uint32_t e = 0; e < graph->edge_count; e++)
    graph->successors[graph->start[graph->from[e]] + filled[graph->from[e]]++] = graph->to[e];
  free(filled);
  const rondo_lowered_graph lowered = {.name = "test",
                                       .node_count = graph->node_count,
                                       .nodes = graph->nodes,
                                       .successor_start = graph->start,
                                       .successors = graph->successors,
                                       .predecessor_start = before_start,
                                       .predecessors = before};
  const rondo_status status = device->ops->executable_create(device, &lowered, out);
  free(before);
  free(before_start);
  return status;
}

/* A kernel node with one argument: a pointer. */
static inline void set_test_kernel(edge_lists *graph, uint32_t node, rondo_kernel *kernel, uint32_t blocks,
                                   const void *const *args) {
  graph->params[node].kind = RONDO_NODE_KERNEL;
  graph->params[node].as.kernel =
      (rondo_kernel_node){.kernel = kernel, .grid = {blocks, 1, 1}, .args = args, .arg_count = kernel->parameter_count};
}

/* A host function that counts. */
static inline rondo_status count_up(void *user) {
  atomic_fetch_add((atomic_uint *)user, 1);
  return RONDO_OK;
}

static inline void submit_count(rondo_queue *queue, atomic_uint *counter) {
  const rondo_node_params work = {.kind = RONDO_NODE_HOST, .as.host = {.function = count_up, .user = counter}};
  assert_ok(queue->ops->submit(queue, &work));
}

/* A gate that a test opens: holds the queue meanwhile. */
typedef struct gate {
  atomic_bool reached, open;
} gate;

static inline rondo_status wait_at_gate(void *user) {
  gate *at = user;
  atomic_store(&at->reached, true);
  while (!atomic_load(&at->open)) rondo_yield();
  return RONDO_OK;
}

static inline void close_queue_after(rondo_queue *queue, gate *at) {
  const rondo_node_params work = {
      .kind = RONDO_NODE_HOST, .name = "gate", .as.host = {.function = wait_at_gate, .user = at}};
  assert_ok(queue->ops->submit(queue, &work));
  while (!atomic_load(&at->reached)) rondo_yield();
}

#endif
