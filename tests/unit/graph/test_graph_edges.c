/* SPDX-License-Identifier: MIT
 * Adding and removing edges (B5): every refusal, all or none, and a long random run against a matrix.
 */
#include "unit/graph/graph_tests.h"

#include "graph/edges.h"
#include "graph/graph.h"

#define SIDE 12

static void add_many(rondo_graph *graph, rondo_node *nodes, size_t count) {
  for (size_t i = 0; i < count; i++) nodes[i] = add_empty(graph, NULL, 0);
}

GRAPH_TEST(test_b5_removing_all_or_none) {
  rondo_graph *graph = fixture->graph;
  rondo_node n[4];
  add_many(graph, n, 4);
  const uint32_t from[] = {0, 1, 0, 1}, to[] = {1, 2, 3, 2};
  assert_ok(rondo_graph_link_edges(graph, from, to, 3));
  assert_invalid(rondo_graph_erase_edges(graph, from, to, 4), RONDO_REASON_MISSING_EDGE); /* twice in the lists */
  assert_int_equal(test_edge_count(graph), 3);
  assert_invalid(rondo_graph_erase_edges(graph, to, from, 1), RONDO_REASON_MISSING_EDGE); /* the other way round */
  assert_invalid(rondo_graph_erase_edges(graph, from, (uint32_t[]){1, 9}, 2), RONDO_REASON_UNKNOWN_NODE);
  assert_int_equal(test_edge_count(graph), 3);
  assert_ok(rondo_graph_erase_edges(graph, from, to, 3));
  assert_int_equal(test_edge_count(graph), 0);
  assert_ok(rondo_graph_erase_edges(graph, NULL, NULL, 0));
  assert_invalid(rondo_graph_link_edges(graph, from, (uint32_t[]){1, 9}, 2), RONDO_REASON_UNKNOWN_NODE);
  assert_int_equal(test_edge_count(graph), 0);
}

static void expect_matrix(const rondo_graph *graph, const rondo_node nodes[SIDE], const bool edges[SIDE][SIDE]) {
  for (uint32_t to = 0; to < SIDE; to++) {
    rondo_node found[SIDE];
    size_t count = SIDE, next = 0;
    assert_ok(rondo_graph_dependencies(graph, nodes[to], found, &count));
    for (uint32_t from = 0; from < SIDE; from++)
      if (edges[from][to]) assert_int_equal(found[next++].id, nodes[from].id);
    assert_int_equal(next, count);
    count = SIDE;
    next = 0;
    assert_ok(rondo_graph_dependents(graph, nodes[to], found, &count));
    for (uint32_t from = 0; from < SIDE; from++)
      if (edges[to][from]) assert_int_equal(found[next++].id, nodes[from].id);
    assert_int_equal(next, count);
  }
}

GRAPH_TEST(test_random_edges) {
  rondo_node nodes[SIDE];
  bool edges[SIDE][SIDE] = {{false}};
  uint64_t random = 1;
  add_many(fixture->graph, nodes, SIDE);
  for (int step = 0; step < 2000; step++) {
    const uint32_t from = test_random_below(&random, SIDE), to = test_random_below(&random, SIDE);
    if (edges[from][to]) {
      assert_ok(rondo_graph_erase_edges(fixture->graph, &from, &to, 1));
    } else {
      const rondo_status status = rondo_graph_add_edges(fixture->graph, &nodes[from], &nodes[to], 1);
      assert_int_equal(status, from == to ? RONDO_INVALID_ARGUMENT : RONDO_OK);
    }
    if (from != to) edges[from][to] = !edges[from][to];
    if (step % 100 == 0) expect_matrix(fixture->graph, nodes, (const bool(*)[SIDE])edges);
  }
  expect_matrix(fixture->graph, nodes, (const bool(*)[SIDE])edges);
}

/* A node with thousands of dependents, and one with thousands of dependencies, in descending order. */
GRAPH_TEST(test_many_edges_at_one_node) {
  enum { COUNT = 5000 };
  rondo_graph *graph = fixture->graph;
  static rondo_node nodes[COUNT], backwards[COUNT];
  const rondo_node root = add_empty(graph, NULL, 0);
  for (size_t i = 0; i < COUNT; i++) backwards[COUNT - 1 - i] = nodes[i] = add_empty(graph, &root, 1);
  const rondo_node join = add_empty(graph, backwards, COUNT);
  static rondo_node found[COUNT];
  size_t count = COUNT;
  assert_ok(rondo_graph_dependencies(graph, join, found, &count));
  assert_memory_equal(found, nodes, sizeof nodes);
  assert_ok(rondo_graph_dependents(graph, root, found, &count));
  assert_memory_equal(found, nodes, sizeof nodes);
  assert_ok(rondo_graph_erase(graph, 0));
  assert_int_equal(test_edge_count(graph), COUNT);
}
