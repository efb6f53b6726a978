/* SPDX-License-Identifier: MIT
 * Topological order, cycles (B6) and ancestors.
 */
#include "unit/graph/graph_tests.h"

#include "graph/edges.h"
#include "graph/graph.h"
#include "graph/topological_order.h"

static void link_slots(rondo_graph *graph, uint32_t from, uint32_t to) {
  assert_ok(rondo_graph_link_edges(graph, &from, &to, 1));
}

static void add_many(rondo_graph *graph, size_t count) {
  for (size_t i = 0; i < count; i++) add_empty(graph, NULL, 0);
}

/* No node below `slot` was free as well. */
static void expect_lowest(const uint32_t *waiting, uint32_t slot) {
  for (uint32_t i = 0; i < slot; i++) assert_int_not_equal(waiting[i], 0);
}

/* Each node comes once, after its dependencies, and the lowest ready number first (checked in small graphs only). */
static void expect_right_order(const rondo_graph *graph, const uint32_t *order) {
  const size_t slots = graph->nodes.count;
  uint32_t *waiting = test_calloc(slots + 1, sizeof *waiting);
  for (size_t i = 0; i < slots; i++)
    waiting[i] = graph->nodes.items[i].live ? (uint32_t)graph->nodes.items[i].dependencies.count : UINT32_MAX;
  for (uint32_t i = 0; i < graph->live_count; i++) {
    assert_int_equal(waiting[order[i]], 0);
    if (slots < 100) expect_lowest(waiting, order[i]);
    waiting[order[i]] = UINT32_MAX;
    const rondo_slots *dependents = &rondo_graph_at(graph, order[i])->dependents;
    for (size_t d = 0; d < dependents->count; d++) waiting[dependents->items[d]]--;
  }
  test_free(waiting);
}

static void expect_sorts(const rondo_graph *graph) {
  uint32_t *order;
  assert_ok(rondo_graph_order(graph, &order));
  expect_right_order(graph, order);
  rondo_release(&graph->allocator, order, graph->live_count, sizeof *order);
}

GRAPH_TEST(test_empty_graph) {
  uint32_t *order;
  size_t count = 7;
  assert_ok(rondo_graph_order(fixture->graph, &order));
  assert_null(order);
  assert_ok(rondo_graph_sort(fixture->graph, NULL, &count));
  assert_int_equal(count, 0);
}

GRAPH_TEST(test_lowest_number_first) {
  rondo_graph *graph = fixture->graph;
  add_many(graph, 6);
  link_slots(graph, 5, 0);
  link_slots(graph, 4, 1);
  link_slots(graph, 0, 2);
  assert_ok(rondo_graph_erase(graph, 3));
  static const uint32_t expected[] = {4, 1, 5, 0, 2};
  rondo_node nodes[6];
  size_t count = 6;
  assert_ok(rondo_graph_sort(graph, nodes, &count));
  assert_int_equal(count, 5);
  for (size_t i = 0; i < 5; i++) assert_int_equal(rondo_node_number(nodes[i]), expected[i]);
  assert_int_equal(nodes[5].id, 0);
  expect_sorts(graph);
}

GRAPH_TEST(test_random_graphs) {
  uint64_t random = 2;
  for (int round = 0; round < 60; round++) {
    rondo_graph *graph = make_graph(fixture, "random");
    const uint32_t count = 1 + test_random_below(&random, 40);
    uint32_t rank[40];
    add_many(graph, count);
    for (uint32_t i = 0; i < count; i++) rank[i] = test_random_below(&random, 1000) * 64 + i;
    for (uint32_t i = 0; i < 3 * count; i++) {
      const uint32_t a = test_random_below(&random, count), b = test_random_below(&random, count);
      const uint32_t from = rank[a] < rank[b] ? a : b, to = from == a ? b : a;
      if (a != b) rondo_status_ignore(rondo_graph_link_edges(graph, &from, &to, 1), "some are there already");
    }
    if (count > 5) assert_ok(rondo_graph_erase(graph, count / 2));
    expect_sorts(graph);
  }
}

/* Big enough that anything quadratic would be noticed by the test's timeout. */
GRAPH_TEST(test_ten_thousand_nodes) {
  enum { COUNT = 20000 };
  rondo_graph *line = make_graph(fixture, "line"), *wide = make_graph(fixture, "wide");
  uint64_t random = 3;
  rondo_node last = add_empty(line, NULL, 0);
  const rondo_node root = add_empty(wide, NULL, 0);
  for (uint32_t i = 1; i < COUNT; i++) last = add_empty(line, &last, 1);
  for (uint32_t i = 1; i < COUNT; i++) add_empty(wide, &root, 1);
  for (uint32_t i = 1; i + 1 < COUNT; i++) {
    const uint32_t to = i + 1 + test_random_below(&random, COUNT - i - 1);
    link_slots(wide, to, i); /* against the order of the numbers */
  }
  expect_sorts(line);
  expect_sorts(wide);
}

static void expect_cycle(const rondo_graph *graph, uint32_t node, const char *part) {
  uint32_t *order = (uint32_t *)1;
  assert_error(rondo_graph_order(graph, &order), RONDO_INVALID_GRAPH, RONDO_REASON_CYCLE);
  assert_null(order);
  assert_int_equal(rondo_last_error()->node, node);
  assert_message(part);
}

GRAPH_TEST(test_b6_cycles) {
  rondo_graph *graph = fixture->graph;
  add_many(graph, 8);
  link_slots(graph, 0, 1); /* before the cycle */
  link_slots(graph, 1, 4);
  link_slots(graph, 4, 6);
  link_slots(graph, 6, 3);
  link_slots(graph, 3, 4);
  link_slots(graph, 6, 2); /* after the cycle, with lower numbers */
  link_slots(graph, 2, 7);
  expect_cycle(graph, 3, "3 -> 4 -> 6 -> 3");
  assert_message("graph 'test': empty (node 3)");
  size_t count = 8;
  rondo_node nodes[8];
  assert_error(rondo_graph_sort(graph, nodes, &count), RONDO_INVALID_GRAPH, RONDO_REASON_CYCLE);
  uint64_t fingerprint;
  assert_error(rondo_graph_fingerprint(graph, &fingerprint), RONDO_INVALID_GRAPH, RONDO_REASON_CYCLE);
  assert_error(rondo_graph_diff(graph, graph, false, NULL, &count), RONDO_INVALID_GRAPH, RONDO_REASON_CYCLE);
  const uint32_t from = 6, to = 3;
  assert_ok(rondo_graph_erase_edges(graph, &from, &to, 1)); /* heals the graph */
  expect_sorts(graph);
}

GRAPH_TEST(test_b6_two_nodes) {
  add_many(fixture->graph, 2);
  link_slots(fixture->graph, 0, 1);
  link_slots(fixture->graph, 1, 0);
  expect_cycle(fixture->graph, 0, "0 -> 1 -> 0");
}

GRAPH_TEST(test_b6_long_cycle) {
  add_many(fixture->graph, 100);
  for (uint32_t i = 0; i < 90; i++) link_slots(fixture->graph, 9 + i, i < 89 ? 10 + i : 9);
  expect_cycle(fixture->graph, 9, "90 nodes around");
}

/* Whichever node is reported, a path leads from it back to it. */
GRAPH_TEST(test_b6_named_node_is_on_a_cycle) {
  uint64_t random = 4;
  int cycles = 0;
  for (int round = 0; round < 200; round++) {
    rondo_graph *graph = make_graph(fixture, "random");
    add_many(graph, 12);
    for (int i = 0; i < 14; i++) {
      const uint32_t from = test_random_below(&random, 12), to = test_random_below(&random, 12);
      rondo_status_ignore(rondo_graph_link_edges(graph, &from, &to, 1),
                          "some are there already, or lead to themselves");
    }
    uint32_t *order;
    if (rondo_graph_order(graph, &order) != RONDO_OK) {
      const rondo_graph_node *named = rondo_graph_at(graph, rondo_last_error()->node);
      const uint32_t number = rondo_last_error()->node;
      bool marks[12] = {false};
      assert_ok(rondo_graph_mark_ancestors(graph, named->dependencies.items, named->dependencies.count, marks));
      assert_true(marks[number]);
      cycles++;
    } else {
      rondo_release(&graph->allocator, order, graph->live_count, sizeof *order);
    }
  }
  assert_true(cycles > 20 && cycles < 180);
}

/* The order is of one graph. Instantiating visits the child graphs. */
GRAPH_TEST(test_b6_cycle_in_a_child) {
  rondo_graph *given = make_graph(fixture, "inner");
  add_many(given, 2);
  const rondo_node node = add_child(fixture->graph, given);
  free_now(fixture, given);
  rondo_node_params params = test_node_params(fixture->graph, node);
  link_slots(params.as.child, 0, 1);
  link_slots(params.as.child, 1, 0);
  expect_sorts(fixture->graph);
  expect_cycle(params.as.child, 0, "graph 'inner'");
}

GRAPH_TEST(test_ancestors) {
  rondo_graph *graph = fixture->graph;
  add_many(graph, 7);
  link_slots(graph, 0, 2);
  link_slots(graph, 1, 2);
  link_slots(graph, 2, 3);
  link_slots(graph, 2, 4);
  link_slots(graph, 5, 4);
  bool marks[7] = {false};
  assert_ok(rondo_graph_mark_ancestors(graph, (uint32_t[]){3, 3}, 2, marks));
  static const bool expected[7] = {true, true, true, true, false, false, false};
  assert_memory_equal(marks, expected, sizeof marks);
  assert_ok(rondo_graph_mark_ancestors(graph, (uint32_t[]){4}, 1, marks)); /* adds to what is marked */
  static const bool more[7] = {true, true, true, true, true, true, false};
  assert_memory_equal(marks, more, sizeof marks);
  bool none[7] = {false};
  assert_ok(rondo_graph_mark_ancestors(graph, NULL, 0, none));
  for (size_t i = 0; i < 7; i++) assert_false(none[i]);
}
