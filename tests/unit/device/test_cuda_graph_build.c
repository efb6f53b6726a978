/* SPDX-License-Identifier: MIT
 * Nodes that the driver's graph omits: the order of all other nodes stays the same, there are not more edges, and
 * graphs with memory consist only of their kernels. And the calls that make the driver's form of a graph that changed.
 */
#include "device/cuda/cuda_graph_build.h"

#include <rondo/rondo.h>
#include <string.h>

#include "exec/launch/exec_internal.h"
#include "fake_cuda/fake_fixture.h"

enum { MOST_NODES = 40, MOST_EDGES = MOST_NODES * MOST_NODES };

/* An executable as far as its order is concerned. */
typedef struct sample {
  rondo_device device;
  cuda_executable executable;
  cuda_node nodes[MOST_NODES];
  uint32_t start[MOST_NODES + 1], predecessors[MOST_EDGES];
} sample;

static void sample_init(sample *s) {
  *s = (sample){0};
  s->executable.base.device = &s->device;
  s->executable.nodes = s->nodes;
  s->executable.predecessor_start = s->start;
  s->executable.predecessors = s->predecessors;
  assert_ok(rondo_allocator_resolve(NULL, &s->device.allocator));
}

static void add_node(sample *s, rondo_node_kind kind) {
  const size_t i = s->executable.count++;
  s->nodes[i].kind = kind;
  s->start[i + 1] = s->start[i];
  s->executable.has_order |= cuda_is_order_alone(&s->nodes[i]);
}

/* To the node that was added last. */
static void add_edge(sample *s, uint32_t from) {
  const size_t last = s->executable.count;
  s->predecessors[s->start[last]++] = from;
  if (s->start[last] - s->start[last - 1] > s->executable.most_before)
    s->executable.most_before = s->start[last] - s->start[last - 1];
}

/* reach[i][k]: whether i is ordered after k. */
typedef bool reach_table[MOST_NODES][MOST_NODES];

static void reach_through(reach_table reach, size_t i, uint32_t before) {
  reach[i][before] = true;
  for (size_t k = 0; k < before; k++) reach[i][k] |= reach[before][k];
}

static void check_order(const sample *s, const cuda_order *order) {
  static reach_table given, made;
  size_t edges = 0;
  memset(given, 0, sizeof given);
  memset(made, 0, sizeof made);
  for (size_t i = 0; i < s->executable.count; i++) {
    const bool is_left_out = cuda_order_leaves_out(order, i);
    size_t count;
    const uint32_t *before = cuda_order_before(order, i, &count);
    bool listed[MOST_NODES] = {false};
    for (uint32_t e = s->start[i]; e < s->start[i + 1]; e++) reach_through(given, i, s->predecessors[e]);
    for (size_t k = 0; k < count; k++) {
      assert_true(before[k] < i && !cuda_order_leaves_out(order, before[k]) && !listed[before[k]]);
      listed[before[k]] = true;
      reach_through(made, i, before[k]);
    }
    edges += is_left_out ? 0 : count;
    assert_true(is_left_out || count <= order->most);
    for (size_t k = 0; k < i; k++) assert_true(cuda_order_leaves_out(order, k) || given[i][k] == made[i][k]);
  }
  assert_true(edges <= s->start[s->executable.count]);
}

static void add_random_node(sample *s, uint64_t *random, uint32_t kernels, uint32_t edges) {
  static const rondo_node_kind order_alone[] = {RONDO_NODE_EMPTY, RONDO_NODE_ALLOC, RONDO_NODE_FREE};
  const uint32_t before = (uint32_t)s->executable.count;
  const bool is_kernel = test_random_below(random, 4) < kernels;
  add_node(s, is_kernel ? RONDO_NODE_KERNEL : order_alone[test_random_below(random, 3)]);
  for (uint32_t k = 0; k < before; k++)
    if (test_random_below(random, before) < edges) add_edge(s, k);
}

UNIT_TEST(what_is_ordered_stays_so_and_nothing_else_becomes_so) {
  static sample s;
  uint64_t random = 4;
  size_t left_out = 0;
  for (int round = 0; round < 2000; round++) {
    cuda_order order;
    sample_init(&s);
    const uint32_t count = 1 + test_random_below(&random, MOST_NODES), kernels = test_random_below(&random, 4);
    const uint32_t edges = test_random_below(&random, 6);
    for (uint32_t i = 0; i < count; i++) add_random_node(&s, &random, kernels, edges);
    assert_ok(cuda_order_make(&s.executable, &order));
    check_order(&s, &order);
    for (uint32_t i = 0; i < count; i++) {
      left_out += cuda_order_leaves_out(&order, i);
      assert_false(s.nodes[i].kind == RONDO_NODE_KERNEL && cuda_order_leaves_out(&order, i));
    }
    cuda_order_free(&s.device.allocator, &order);
  }
  assert_true(left_out > 10000);
}

/* A kernel, an alloc, a kernel. */
UNIT_TEST(edges_in_place_of_nodes_are_found) {
  static sample s;
  cuda_order order;
  sample_init(&s);
  add_node(&s, RONDO_NODE_KERNEL);
  add_node(&s, RONDO_NODE_ALLOC);
  add_edge(&s, 0);
  add_node(&s, RONDO_NODE_KERNEL);
  add_edge(&s, 1);
  add_node(&s, RONDO_NODE_KERNEL);
  add_edge(&s, 2);
  assert_ok(cuda_order_make(&s.executable, &order));
  assert_true(cuda_order_leaves_out(&order, 1));
  assert_true(cuda_order_has_edge(&order, 0, 2));
  assert_true(cuda_order_has_edge(&order, 2, 3));
  assert_false(cuda_order_has_edge(&order, 0, 3));
  cuda_order_free(&s.device.allocator, &order);
}

/* On the fake driver ---------------------------------------------------------------------------------------------- */

/* Instantiates, launches and frees it, and counts the driver's nodes of the two kinds. */
static void run_counted(test_fixture *t, rondo_graph *graph, uint64_t kernels, uint64_t empties) {
  fake->forget();
  rondo_exec *exec = test_instantiate(graph);
  assert_int_equal(fake->calls("cuGraphAddKernelNode"), kernels);
  assert_int_equal(fake->calls("cuGraphAddEmptyNode"), empties);
  test_launch(t, exec);
  rondo_exec_destroy(exec);
  test_graph_destroy(graph);
}

FAKE_TEST(graphs_with_memory_are_made_of_their_kernels) {
  rondo_graph *graph = test_graph(t);
  uint32_t *words = test_words(t, 1);
  rondo_node last = add_set(t, graph, NULL, 0, 1, words);
  for (uint32_t i = 0; i < 20; i++) {
    void *address = NULL;
    assert_ok(rondo_graph_add_alloc(graph, &last, 1, 4096, "x", &address, &last));
    last = add_set(t, graph, &last, 1, i, address);
    assert_ok(rondo_graph_add_free(graph, &last, 1, address, &last));
    last = add_set(t, graph, &last, 1, i, words);
  }
  run_counted(t, graph, 41, 0);
  assert_int_equal(test_word(t, words), 19);
}

/* Three kernels, an empty node, three kernels: edges from each to each would be more. */
FAKE_TEST(nodes_between_several_and_several_stay) {
  rondo_graph *graph = test_graph(t);
  uint32_t *words = test_words(t, 3);
  rondo_node front[3], join;
  for (uint32_t i = 0; i < 3; i++) front[i] = add_set(t, graph, NULL, 0, 1, words + i);
  assert_ok(rondo_graph_add_empty(graph, front, 3, &join));
  for (uint32_t i = 0; i < 3; i++) (void)add_set(t, graph, &join, 1, 2 + i, words + 2 - i);
  run_counted(t, graph, 6, 1);
  for (uint32_t i = 0; i < 3; i++) assert_int_equal(test_word(t, words + 2 - i), 2 + i);
}

/* Only nodes that order others: there is nothing to launch. */
FAKE_TEST(graphs_of_order_alone_are_empty) {
  rondo_graph *graph = test_graph(t);
  rondo_node nodes[2], last;
  void *address = NULL;
  assert_ok(rondo_graph_add_empty(graph, NULL, 0, &nodes[0]));
  assert_ok(rondo_graph_add_alloc(graph, NULL, 0, 4096, "x", &address, &nodes[1]));
  assert_ok(rondo_graph_add_free(graph, nodes, 2, address, &last));
  run_counted(t, graph, 0, 0);
}

/* The full edge that stands for a programmatic one is not made, unless another path orders the two kernels (AD-8). */
static void test_programmatic(test_fixture *t, bool with_path) {
  const rondo_edge_data early = {.from_port = RONDO_PORT_PROGRAMMATIC, .type = RONDO_EDGE_PROGRAMMATIC};
  rondo_graph *graph = test_graph(t);
  uint32_t *words = test_words(t, 2);
  rondo_node between;
  const rondo_node first = add_set(t, graph, NULL, 0, 1, words), second = add_set(t, graph, NULL, 0, 2, words + 1);
  assert_ok(rondo_graph_add_edges_with(graph, &first, &second, &early, 1));
  if (with_path) {
    assert_ok(rondo_graph_add_empty(graph, &first, 1, &between));
    assert_ok(rondo_graph_add_edges(graph, &between, &second, 1));
  }
  fake->forget();
  rondo_exec *exec = test_instantiate(graph);
  assert_int_equal(fake->calls("cuGraphAddDependencies"), with_path ? 0 : 1);
  const cuda_executable *executable = (const cuda_executable *)exec->executable;
  assert_int_equal(executable->predecessor_start[executable->count], with_path ? 2 : 0);
  test_launch(t, exec);
  assert_int_equal(test_word(t, words) + test_word(t, words + 1), 3);
}

FAKE_TEST(programmatic_edges_replace_full_ones) { test_programmatic(t, false); }
FAKE_TEST(programmatic_edges_beside_a_path_are_full) { test_programmatic(t, true); }

/* The driver's forms of graphs (AD-2) ------------------------------------------------------------------------------ */

static void assert_form(rondo_graph *graph, uint64_t clones, uint64_t added, uint64_t set) {
  void *native;
  fake->forget();
  assert_ok(rondo_graph_native(graph, &native));
  assert_int_equal(fake->calls("cuGraphClone"), clones);
  assert_int_equal(fake->calls("cuGraphAddKernelNode"), added);
  assert_int_equal(fake->calls("cuGraphKernelNodeSetParams"), set);
}

/* Kernels that change are set in a copy of the last form that was built. If more than a quarter of the nodes have
 * changed, or something else has, the form is built from all nodes. */
FAKE_TEST(ad2_a_form_with_other_kernels_is_copied) {
  enum { NODES = 40, MOST = NODES / 4 + 1 };
  rondo_graph *graph = test_graph(t);
  uint32_t *words = test_words(t, 1);
  const uint32_t value = 7;
  rondo_node nodes[NODES];
  for (int i = 0; i < NODES; i++) nodes[i] = add_set(t, graph, i > 0 ? &nodes[i - 1] : NULL, i > 0, 1, words);
  assert_form(graph, 0, NODES, 0);
  assert_form(graph, 0, 0, 0);
  for (uint64_t i = 0; i < 3; i++) {
    assert_ok(rondo_graph_set_argument(graph, nodes[i], 0, &value));
    assert_ok(rondo_graph_set_argument(graph, nodes[i], 0, &value));
    assert_form(graph, 1, 0, i + 1);
  }
  for (int i = 3; i <= MOST; i++) assert_ok(rondo_graph_set_argument(graph, nodes[i], 0, &value));
  assert_form(graph, 0, NODES, 0);
  rondo_node_params params = test_node_params(graph, nodes[4]);
  params.as.kernel.config = &(const rondo_launch_config){.block = {2, 1, 1}};
  assert_ok(rondo_graph_set_params(graph, nodes[4], &params));
  assert_form(graph, 0, NODES, 0);
  assert_ok(rondo_graph_set_argument(graph, nodes[4], 0, &value));
  assert_ok(rondo_graph_remove_edges(graph, &nodes[0], &nodes[1], 1));
  assert_form(graph, 0, NODES, 0);
}

/* The form from before the last change is valid, so the event that it waits for is not used for another one. */
FAKE_TEST(ad2_forms_of_graphs_keep_events) {
  rondo_event *first = NULL, *second = test_event(t), *third = NULL;
  rondo_graph *graph = test_graph(t), *child = test_graph(t);
  rondo_node node, empty;
  void *native;
  assert_ok(rondo_event_create(t->device, NULL, &first));
  assert_ok(rondo_graph_add_event_wait(child, NULL, 0, first, &node));
  assert_ok(rondo_graph_add_child(graph, NULL, 0, child, &node));
  assert_ok(rondo_graph_destroy(child));
  assert_ok(rondo_graph_native(graph, &native));
  assert_ok(rondo_graph_remove(graph, node));
  assert_ok(rondo_graph_add_event_wait(graph, NULL, 0, second, &node));
  assert_ok(rondo_graph_native(graph, &native));
  rondo_event_destroy(first);
  size_t events = fake->live(FAKE_CUDA_EVENT);
  assert_ok(rondo_event_create(t->device, NULL, &third));
  assert_int_equal(fake->live(FAKE_CUDA_EVENT), events + 1);
  rondo_event_destroy(third);
  assert_ok(rondo_graph_add_empty(graph, NULL, 0, &empty));
  assert_ok(rondo_graph_native(graph, &native)); /* the first form ends */
  events = fake->live(FAKE_CUDA_EVENT);
  rondo_event *again[2] = {NULL};
  for (int i = 0; i < 2; i++) assert_ok(rondo_event_create(t->device, NULL, &again[i]));
  assert_int_equal(fake->live(FAKE_CUDA_EVENT), events);
  for (int i = 0; i < 2; i++) rondo_event_destroy(again[i]);
}
