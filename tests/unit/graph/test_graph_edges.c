/* SPDX-License-Identifier: MIT
 * Adding and removing edges (B5): every refusal, all or none, and a long random run against a matrix.
 */
#include "unit/graph/graph_tests.h"

#include "graph/edges.h"
#include "graph/graph.h"

#define BAD RONDO_INVALID_ARGUMENT
#define SIDE 12

static void add_many(rondo_graph *graph, rondo_node *nodes, size_t count) {
  for (size_t i = 0; i < count; i++) nodes[i] = add_empty(graph, NULL, 0);
}

static void test_b5_adding_nothing(void **state) {
  graph_fixture *fixture = *state;
  const rondo_node node = add_empty(fixture->graph, NULL, 0);
  expect_ok(rondo_graph_add_edges(fixture->graph, NULL, NULL, 0));
  expect_ok(rondo_graph_add_edges(fixture->graph, &node, &node, 0));
  expect_error(rondo_graph_add_edges(NULL, NULL, NULL, 0), BAD, RONDO_REASON_NULL_ARGUMENT);
}

static void test_b5_refusals(void **state) {
  graph_fixture *fixture = *state;
  rondo_graph *graph = fixture->graph, *other = make_graph(fixture, "other");
  rondo_node n[3];
  add_many(graph, n, 3);
  const rondo_node foreign = add_empty(other, NULL, 0);
  add_edge(graph, n[0], n[1]);
  expect_error(rondo_graph_add_edges(graph, NULL, n, 1), BAD, RONDO_REASON_NULL_ARGUMENT);
  expect_error(rondo_graph_add_edges(graph, n, NULL, 1), BAD, RONDO_REASON_NULL_ARGUMENT);
  expect_error(rondo_graph_add_edges(graph, &foreign, n, 1), BAD, RONDO_REASON_UNKNOWN_NODE);
  expect_error(rondo_graph_add_edges(graph, n, &foreign, 1), BAD, RONDO_REASON_UNKNOWN_NODE);
  expect_error(rondo_graph_add_edges(graph, n, n, 1), BAD, RONDO_REASON_SELF_EDGE);
  expect_error(rondo_graph_add_edges(graph, &n[0], &n[1], 1), BAD, RONDO_REASON_DUPLICATE_EDGE);
  expect_message("graph 'test': the edge from empty (node 0) to empty (node 1)");
  assert_int_equal(count_edges(graph), 1);
}

/* The last of several is refused, so none is added. */
static void test_b5_adding_all_or_none(void **state) {
  graph_fixture *fixture = *state;
  rondo_graph *graph = fixture->graph;
  rondo_node n[4];
  add_many(graph, n, 4);
  add_edge(graph, n[2], n[3]);
  const rondo_node from[] = {n[0], n[1], n[0], n[3], n[1]}, to[] = {n[1], n[2], n[3], n[0], n[2]};
  expect_error(rondo_graph_add_edges(graph, from, to, 5), BAD, RONDO_REASON_DUPLICATE_EDGE); /* twice in the lists */
  assert_int_equal(count_edges(graph), 1);
  const rondo_node from_self[] = {n[0], n[1]}, to_self[] = {n[1], n[1]};
  expect_error(rondo_graph_add_edges(graph, from_self, to_self, 2), BAD, RONDO_REASON_SELF_EDGE);
  assert_int_equal(count_edges(graph), 1);
  expect_ok(rondo_graph_add_edges(graph, from, to, 4));
  assert_int_equal(count_edges(graph), 5);
}

static void test_b5_removing_all_or_none(void **state) {
  graph_fixture *fixture = *state;
  rondo_graph *graph = fixture->graph;
  rondo_node n[4];
  add_many(graph, n, 4);
  const uint32_t from[] = {0, 1, 0, 1}, to[] = {1, 2, 3, 2};
  expect_ok(rondo_graph_link_edges(graph, from, to, 3));
  expect_error(rondo_graph_erase_edges(graph, from, to, 4), BAD, RONDO_REASON_MISSING_EDGE); /* twice in the lists */
  assert_int_equal(count_edges(graph), 3);
  expect_error(rondo_graph_erase_edges(graph, to, from, 1), BAD, RONDO_REASON_MISSING_EDGE); /* the other way round */
  expect_error(rondo_graph_erase_edges(graph, from, (uint32_t[]){1, 9}, 2), BAD, RONDO_REASON_UNKNOWN_NODE);
  assert_int_equal(count_edges(graph), 3);
  expect_ok(rondo_graph_erase_edges(graph, from, to, 3));
  assert_int_equal(count_edges(graph), 0);
  expect_ok(rondo_graph_erase_edges(graph, NULL, NULL, 0));
  expect_error(rondo_graph_link_edges(graph, from, (uint32_t[]){1, 9}, 2), BAD, RONDO_REASON_UNKNOWN_NODE);
  assert_int_equal(count_edges(graph), 0);
}

static void expect_matrix(const rondo_graph *graph, const rondo_node nodes[SIDE], const bool edges[SIDE][SIDE]) {
  for (uint32_t to = 0; to < SIDE; to++) {
    rondo_node found[SIDE];
    size_t count = SIDE, next = 0;
    expect_ok(rondo_graph_dependencies(graph, nodes[to], found, &count));
    for (uint32_t from = 0; from < SIDE; from++)
      if (edges[from][to]) assert_int_equal(found[next++].id, nodes[from].id);
    assert_int_equal(next, count);
    count = SIDE;
    next = 0;
    expect_ok(rondo_graph_dependents(graph, nodes[to], found, &count));
    for (uint32_t from = 0; from < SIDE; from++)
      if (edges[to][from]) assert_int_equal(found[next++].id, nodes[from].id);
    assert_int_equal(next, count);
  }
}

static void test_random_edges(void **state) {
  graph_fixture *fixture = *state;
  rondo_node nodes[SIDE];
  bool edges[SIDE][SIDE] = {{false}};
  uint64_t random = 1;
  add_many(fixture->graph, nodes, SIDE);
  for (int step = 0; step < 2000; step++) {
    const uint32_t from = random_below(&random, SIDE), to = random_below(&random, SIDE);
    if (edges[from][to]) {
      expect_ok(rondo_graph_erase_edges(fixture->graph, &from, &to, 1));
    } else {
      const rondo_status status = rondo_graph_add_edges(fixture->graph, &nodes[from], &nodes[to], 1);
      assert_int_equal(status, from == to ? RONDO_INVALID_ARGUMENT : RONDO_OK);
    }
    if (from != to) edges[from][to] = !edges[from][to];
    if (step % 100 == 0) expect_matrix(fixture->graph, nodes, (const bool(*)[SIDE])edges);
  }
  expect_matrix(fixture->graph, nodes, (const bool(*)[SIDE])edges);
}

/* A node that thousands depend on, and one that depends on thousands, given in descending order. */
static void test_many_edges_at_one_node(void **state) {
  enum { COUNT = 5000 };
  graph_fixture *fixture = *state;
  rondo_graph *graph = fixture->graph;
  static rondo_node nodes[COUNT], backwards[COUNT];
  const rondo_node root = add_empty(graph, NULL, 0);
  for (size_t i = 0; i < COUNT; i++) backwards[COUNT - 1 - i] = nodes[i] = add_empty(graph, &root, 1);
  const rondo_node join = add_empty(graph, backwards, COUNT);
  static rondo_node found[COUNT];
  size_t count = COUNT;
  expect_ok(rondo_graph_dependencies(graph, join, found, &count));
  assert_memory_equal(found, nodes, sizeof nodes);
  expect_ok(rondo_graph_dependents(graph, root, found, &count));
  assert_memory_equal(found, nodes, sizeof nodes);
  expect_ok(rondo_graph_erase(graph, 0));
  assert_int_equal(count_edges(graph), COUNT);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      graph_test(test_b5_adding_nothing),       graph_test(test_b5_refusals),  graph_test(test_b5_adding_all_or_none),
      graph_test(test_b5_removing_all_or_none), graph_test(test_random_edges), graph_test(test_many_edges_at_one_node),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
