/* SPDX-License-Identifier: MIT
 * What the tests of this layer share: a fixture with a graph and a kernel, whose teardown detects leaks, and short
 * functions that add nodes. No device is needed, because graphs only compare devices.
 */
#ifndef RONDO_TESTS_GRAPH_TESTS_H
#define RONDO_TESTS_GRAPH_TESTS_H

#include <string.h>

#include "base/error.h"
#include "device/device.h"
#include "graph/graph.h"
#include "graph/graph_check.h"
#include "graph/graph_internal.h"
#include "graph/graph_json_read.h"
#include "support/rondo_test.h"

/* Identities of two devices. Only whether they are a parent process's is read. */
static rondo_device device_identities[2];
#define TEST_DEVICE (&device_identities[0])
#define OTHER_DEVICE (&device_identities[1])
/* This layer knows only how to retain and release an event. */
static inline void ignore_event(rondo_event *event) { (void)event; }
static rondo_counted_event counted_events[2] = {{ignore_event, ignore_event}, {ignore_event, ignore_event}};
#define TEST_EVENT ((rondo_event *)(void *)&counted_events[0])
#define OTHER_EVENT ((rondo_event *)(void *)&counted_events[1])

enum { KIND_COUNT = 10 }; /* kinds of nodes that users can add */

typedef struct graph_fixture {
  test_allocator allocator;
  rondo_graph *graph;   /* "test", for TEST_DEVICE */
  rondo_kernel *kernel; /* "saxpy" (float, reads, updates) */
  struct {
    void *object;
    bool is_text;
  } kept[256]; /* graphs and texts that the teardown frees, the latest first */
  size_t kept_count;
  float a; /* arguments for it */
  const float *x;
  float *y;
  const void *args[3];
  char memory[4096];
  rondo_node nodes[KIND_COUNT]; /* of add_all_kinds */
} graph_fixture;

static inline rondo_kernel *make_kernel(graph_fixture *fixture, rondo_device *device, const char *name) {
  const rondo_kernel_options options = {RONDO_KERNEL_OPTIONS_INIT, .name = name,
                                        .params = {RONDO_SCALAR(float), RONDO_READS, RONDO_UPDATES}};
  rondo_kernel *kernel;
  assert_ok(rondo_kernel_make(device, &fixture->allocator.table, &options, &kernel));
  return kernel;
}

static inline void *keep(graph_fixture *fixture, void *object, bool is_text) {
  assert_non_null(object);
  assert_true(fixture->kept_count < sizeof fixture->kept / sizeof fixture->kept[0]);
  fixture->kept[fixture->kept_count].object = object;
  fixture->kept[fixture->kept_count++].is_text = is_text;
  return object;
}

/* Graphs and texts that the fixture keeps. */
static inline rondo_graph *make_graph(graph_fixture *fixture, const char *name) {
  rondo_graph *graph;
  assert_ok(rondo_graph_make(TEST_DEVICE, &fixture->allocator.table, name, &graph));
  return keep(fixture, graph, false);
}

static inline rondo_graph *clone_of(graph_fixture *fixture, const rondo_graph *graph) {
  rondo_graph *clone;
  assert_ok(rondo_graph_clone(graph, &clone));
  return keep(fixture, clone, false);
}

static inline rondo_graph *read_back(graph_fixture *fixture, const char *text) {
  rondo_graph *graph;
  assert_ok(rondo_graph_read_json(&fixture->allocator.table, text, strlen(text), &graph));
  return keep(fixture, graph, false);
}

/* gcc 12 takes the result for the address of `text` where it inlines these (-Wdangling-pointer). */
#define TEXT_MAKER static __attribute__((noinline, unused))

TEXT_MAKER const char *json(graph_fixture *fixture, const rondo_graph *graph, bool with_addresses) {
  char *text;
  assert_ok(rondo_graph_to_json(graph, with_addresses, &text));
  return keep(fixture, text, true);
}

TEXT_MAKER const char *dot(graph_fixture *fixture, const rondo_graph *graph, bool with_addresses) {
  char *text;
  assert_ok(rondo_graph_to_dot(graph, with_addresses, &text));
  return keep(fixture, text, true);
}

/* Frees the kept objects after the first `count`. Every graph must pass its check. */
static inline void free_kept(graph_fixture *fixture, size_t count) {
  while (fixture->kept_count > count) {
    void *const object = fixture->kept[--fixture->kept_count].object;
    if (fixture->kept[fixture->kept_count].is_text) {
      rondo_text_free(object);
      continue;
    }
    rondo_graph_check(object);
    rondo_graph_free(object);
  }
}

/* Frees a kept graph before the end of the test. */
static inline void free_now(graph_fixture *fixture, rondo_graph *graph) {
  size_t at = 0;
  while (at < fixture->kept_count && fixture->kept[at].object != graph) at++;
  assert_true(at < fixture->kept_count);
  fixture->kept[at] = fixture->kept[--fixture->kept_count];
  rondo_graph_free(graph);
}

static inline int set_up(void **state) {
  static graph_fixture fixture;
  memset(&fixture, 0, sizeof fixture);
  test_allocator_init(&fixture.allocator);
  fixture.a = 2;
  fixture.x = (const float *)(const void *)fixture.memory;
  fixture.y = (float *)(void *)(fixture.memory + 1024);
  fixture.args[0] = &fixture.a;
  fixture.args[1] = &fixture.x;
  fixture.args[2] = &fixture.y;
  fixture.kernel = make_kernel(&fixture, TEST_DEVICE, "saxpy");
  fixture.graph = make_graph(&fixture, "test");
  *state = &fixture;
  return 0;
}

static inline int tear_down(void **state) {
  graph_fixture *fixture = *state;
  fixture->allocator.fail_at = 0;
  free_kept(fixture, 0);
  rondo_kernel_release(fixture->kernel);
  return test_allocator_teardown(&(void *){&fixture->allocator});
}

#define GRAPH_TEST(name) TEST_REGISTER(name, graph_fixture *fixture, set_up, tear_down, false)

static inline rondo_node_params kernel_params(const graph_fixture *fixture) {
  return (rondo_node_params){
      .kind = RONDO_NODE_KERNEL,
      .as.kernel = {.kernel = fixture->kernel, .grid = {.x = 4}, .args = fixture->args, .arg_count = 3}};
}

static inline rondo_node_params copy_params(const graph_fixture *fixture) {
  return (rondo_node_params){.kind = RONDO_NODE_COPY,
                             .as.copy = {.dst = (void *)(uintptr_t)(fixture->memory + 2048),
                                         .src = fixture->memory,
                                         .width = 16,
                                         .height = 4,
                                         .dst_pitch = 32}};
}

static inline rondo_node_params fill_params(const graph_fixture *fixture) {
  return (rondo_node_params){
      .kind = RONDO_NODE_FILL,
      .as.fill = {
          .dst = (void *)(uintptr_t)fixture->memory, .value = 0x12345, .element_bytes = 2, .width = 8, .height = 3}};
}

static inline rondo_node_params alloc_params(void *address, size_t bytes, const char *name) {
  return (rondo_node_params){.kind = RONDO_NODE_ALLOC, .as.alloc = {.bytes = bytes, .address = address, .name = name}};
}

static inline rondo_node add_node(rondo_graph *graph, const rondo_node_params *params, const rondo_node *dependencies,
                                  size_t count) {
  rondo_node node;
  assert_ok(rondo_graph_insert(graph, dependencies, count, params, &node));
  assert_int_not_equal(node.id, 0);
  return node;
}

static inline rondo_node add_empty(rondo_graph *graph, const rondo_node *dependencies, size_t count) {
  return add_node(graph, &(rondo_node_params){.kind = RONDO_NODE_EMPTY}, dependencies, count);
}

static inline rondo_node add_child(rondo_graph *graph, rondo_graph *child) {
  return add_node(graph, &(rondo_node_params){.kind = RONDO_NODE_CHILD, .as.child = child}, NULL, 0);
}

/* One node of each kind (GX-1), each depending on the one before; in the order of the kinds. */
static inline void add_all_kinds(graph_fixture *fixture, rondo_graph *graph) {
  rondo_node *nodes = fixture->nodes;
  rondo_graph *child = make_graph(fixture, "inside");
  const rondo_node_params kernel = kernel_params(fixture);
  add_node(child, &kernel, NULL, 0);
  void *address = fixture->memory + 3072;
  const rondo_node_params all[KIND_COUNT] = {
      kernel,
      {.kind = RONDO_NODE_HOST, .name = "log", .as.host = {.function = test_host_nothing, .user = fixture}},
      copy_params(fixture),
      fill_params(fixture),
      {.kind = RONDO_NODE_EMPTY, .name = "join"},
      {.kind = RONDO_NODE_CHILD, .name = "layer", .as.child = child},
      {.kind = RONDO_NODE_EVENT_RECORD, .as.event = TEST_EVENT},
      {.kind = RONDO_NODE_EVENT_WAIT, .as.event = TEST_EVENT},
      alloc_params(address, 512, "scratch"),
      {.kind = RONDO_NODE_FREE, .as.free_address = address},
  };
  for (size_t i = 0; i < KIND_COUNT; i++)
    nodes[i] = add_node(graph, &all[i], i == 0 ? NULL : &nodes[i - 1], i == 0 ? 0 : 1);
}

static inline uint64_t fingerprint(const rondo_graph *graph) {
  uint64_t value;
  assert_ok(rondo_graph_fingerprint(graph, &value));
  return value;
}

/* Exactly these nodes were found, in this order. */
#define expect_nodes(found, count, ...)                          \
  expect_nodes_at((found), (count), (rondo_node[]){__VA_ARGS__}, \
                  sizeof((rondo_node[]){__VA_ARGS__}) / sizeof(rondo_node), __FILE__, __LINE__)
static inline void expect_nodes_at(const rondo_node *found, size_t count, const rondo_node *expected,
                                   size_t expected_count, const char *file, int line) {
  _assert_int_equal(count, expected_count, file, line);
  for (size_t i = 0; i < count; i++) _assert_int_equal(found[i].id, expected[i].id, file, line);
}

static inline void add_edge(rondo_graph *graph, rondo_node from, rondo_node to) {
  assert_ok(rondo_graph_add_edges(graph, &from, &to, 1));
}

static inline size_t count_differences(const rondo_graph *a, const rondo_graph *b, bool ignore_addresses) {
  size_t count = 0;
  assert_ok(rondo_graph_diff(a, b, ignore_addresses, NULL, &count));
  return count;
}

#endif
