/* SPDX-License-Identifier: MIT
 * Every allocation of a call fails once, one after another. The call returns OUT_OF_MEMORY, the graph is as before
 * (B2), nothing leaks, and the same call then succeeds.
 */
#include "unit/graph/graph_tests.h"

#include "graph/edges.h"
#include "graph/graph.h"
#include "graph/graph_json_read.h"
#include "graph/topological_order.h"

typedef rondo_status (*attempt_function)(graph_fixture *fixture);

/* Returns how often the attempt failed before it succeeded. A failure leaves all live blocks as they were, except
 * arrays that grew, of which there may be `may_grow`. */
static size_t sweep(graph_fixture *fixture, attempt_function attempt, size_t may_grow) {
  test_allocator *allocator = &fixture->allocator;
  const uint64_t before = fingerprint(fixture->graph);
  const size_t live = allocator->live;
  for (size_t fail_at = 1;; fail_at++) {
    assert_true(fail_at < 500);
    allocator->calls = 0;
    allocator->fail_at = fail_at;
    const rondo_status status = attempt(fixture);
    allocator->fail_at = 0;
    if (status == RONDO_OK) return fail_at - 1;
    assert_int_equal(status, RONDO_OUT_OF_MEMORY);
    assert_int_equal(rondo_last_error()->reason, RONDO_REASON_ALLOCATION_FAILED);
    assert_true(allocator->live >= live && allocator->live <= live + may_grow);
    assert_int_equal(fingerprint(fixture->graph), before);
  }
}

static rondo_status insert(graph_fixture *fixture, const rondo_node_params *params) {
  rondo_node node;
  return rondo_graph_insert(fixture->graph, NULL, 0, params, &node);
}

static rondo_status insert_kernel(graph_fixture *fixture) {
  const rondo_node_params params = kernel_params(fixture);
  const rondo_node dependencies[] = {rondo_graph_id(fixture->graph, 1), rondo_graph_id(fixture->graph, 0)};
  rondo_node node;
  return rondo_graph_insert(fixture->graph, dependencies, 2, &params, &node);
}

GRAPH_TEST(test_insert) {
  for (int i = 0; i < 8; i++) add_empty(fixture->graph, NULL, 0); /* the next node makes the array grow */
  assert_true(sweep(fixture, insert_kernel, 3) >= 4);
  assert_int_equal(test_node_count(fixture->graph), 9);
  assert_int_equal(test_edge_count(fixture->graph), 2);
}

static rondo_status insert_empty(graph_fixture *fixture) {
  return insert(fixture, &(rondo_node_params){.kind = RONDO_NODE_EMPTY});
}

static rondo_status insert_alloc(graph_fixture *fixture) {
  const rondo_node_params params = alloc_params(fixture->memory, 8, "a");
  return insert(fixture, &params);
}

GRAPH_TEST(test_insert_alloc) {
  assert_int_equal(sweep(fixture, insert_empty, 1), 2); /* the array of nodes, once, and the node's name */
  assert_int_equal(sweep(fixture, insert_alloc, 0), 2); /* both names */
  assert_true(fixture->graph->has_memory);
}

static rondo_status insert_itself(graph_fixture *fixture) {
  return insert(fixture, &(rondo_node_params){.kind = RONDO_NODE_CHILD, .as.child = fixture->graph});
}

GRAPH_TEST(test_insert_child) {
  add_all_kinds(fixture, fixture->graph);
  assert_true(sweep(fixture, insert_itself, 1) > 20);
  assert_int_equal(test_node_count(fixture->graph), KIND_COUNT + 1);
}

static rondo_status replace_kernel(graph_fixture *fixture) {
  rondo_node_params params = kernel_params(fixture);
  params.name = "replaced";
  return rondo_graph_replace(fixture->graph, 0, &params);
}

GRAPH_TEST(test_replace) {
  add_all_kinds(fixture, fixture->graph);
  assert_int_equal(sweep(fixture, replace_kernel, 0), 2);
  assert_string_equal(rondo_graph_at(fixture->graph, 0)->params.name, "replaced");
}

static rondo_status add_some_edges(graph_fixture *fixture) {
  rondo_node from[3], to[3];
  for (uint32_t i = 0; i < 3; i++) {
    from[i] = rondo_graph_id(fixture->graph, i);
    to[i] = rondo_graph_id(fixture->graph, i + 1);
  }
  return rondo_graph_add_edges(fixture->graph, from, to, 3);
}

GRAPH_TEST(test_edges) {
  for (int i = 0; i < 4; i++) add_empty(fixture->graph, NULL, 0);
  assert_true(sweep(fixture, add_some_edges, 6) >= 5); /* capacity stays from one attempt to the next */
  assert_int_equal(test_edge_count(fixture->graph), 3);
}

/* Removing needs no memory at all. */
GRAPH_TEST(test_removing_needs_none) {
  add_all_kinds(fixture, fixture->graph);
  const uint32_t from[] = {0, 1, 1}, to[] = {1, 2, 2};
  fixture->allocator.calls = 0;
  fixture->allocator.fail_at = 1;
  assert_error(rondo_graph_erase_edges(fixture->graph, from, to, 3), RONDO_INVALID_ARGUMENT, RONDO_REASON_MISSING_EDGE);
  assert_ok(rondo_graph_erase_edges(fixture->graph, from, to, 2));
  for (uint32_t i = 0; i < KIND_COUNT; i++) assert_ok(rondo_graph_erase(fixture->graph, i));
  assert_int_equal(fixture->allocator.calls, 0);
}

static rondo_status clone_once(graph_fixture *fixture) {
  rondo_graph *clone;
  const rondo_status status = rondo_graph_clone(fixture->graph, &clone);
  assert_true((status == RONDO_OK) == (clone != NULL));
  rondo_graph_free(clone);
  return status;
}

static rondo_status make_once(graph_fixture *fixture) {
  rondo_graph *graph;
  const rondo_status status = rondo_graph_make(TEST_DEVICE, &fixture->allocator.table, "made", &graph);
  assert_true((status == RONDO_OK) == (graph != NULL));
  rondo_graph_free(graph);
  return status;
}

static rondo_status make_kernel_once(graph_fixture *fixture) {
  const rondo_kernel_options options = {.name = "k", .cuda_source = "code"};
  rondo_kernel *kernel;
  const rondo_status status = rondo_kernel_make(TEST_DEVICE, &fixture->allocator.table, &options, &kernel);
  assert_true((status == RONDO_OK) == (kernel != NULL));
  rondo_kernel_release(kernel);
  return status;
}

GRAPH_TEST(test_making_and_cloning) {
  add_all_kinds(fixture, fixture->graph);
  assert_true(sweep(fixture, clone_once, 0) > 20);
  assert_int_equal(sweep(fixture, make_once, 0), 3); /* the graph, its name, the storage of its nodes */
  assert_int_equal(sweep(fixture, make_kernel_once, 0), 3);
}

static rondo_status sort_once(graph_fixture *fixture) {
  size_t count = 0;
  return rondo_graph_sort(fixture->graph, NULL, &count);
}

static rondo_status mark_once(graph_fixture *fixture) {
  bool marks[KIND_COUNT + 1] = {false};
  return rondo_graph_mark_ancestors(fixture->graph, &(uint32_t){KIND_COUNT - 1}, 1, marks);
}

static rondo_status diff_once(graph_fixture *fixture) {
  size_t count = 0;
  return rondo_graph_diff(fixture->graph, fixture->graph, false, NULL, &count);
}

static rondo_status fingerprint_once(graph_fixture *fixture) {
  uint64_t value;
  return rondo_graph_fingerprint(fixture->graph, &value);
}

GRAPH_TEST(test_questions) {
  add_all_kinds(fixture, fixture->graph);
  assert_int_equal(sweep(fixture, sort_once, 0), 1); /* the numbers are an order */
  const uint32_t late = rondo_node_number(add_empty(fixture->graph, NULL, 0)), first = 0;
  assert_int_equal(rondo_graph_link_edges(fixture->graph, &late, &first, 1), RONDO_OK);
  assert_int_equal(sweep(fixture, sort_once, 0), 3);
  assert_int_equal(sweep(fixture, mark_once, 0), 1);
  assert_int_equal(sweep(fixture, diff_once, 0), 14);
  assert_int_equal(sweep(fixture, fingerprint_once, 0), 6);
}

static rondo_status dot_once(graph_fixture *fixture) {
  char *text;
  const rondo_status status = rondo_graph_to_dot(fixture->graph, true, &text);
  assert_true((status == RONDO_OK) == (text != NULL));
  rondo_text_free(text);
  return status;
}

static rondo_status json_once(graph_fixture *fixture) {
  char *text;
  const rondo_status status = rondo_graph_to_json(fixture->graph, true, &text);
  assert_true((status == RONDO_OK) == (text != NULL));
  rondo_text_free(text);
  return status;
}

GRAPH_TEST(test_dumps) {
  add_all_kinds(fixture, fixture->graph);
  assert_true(sweep(fixture, dot_once, 0) > 3);
  assert_true(sweep(fixture, json_once, 0) > 5);
}

static char *text_to_read;

static rondo_status read_once(graph_fixture *fixture) {
  rondo_graph *graph;
  const rondo_status status =
      rondo_graph_read_json(&fixture->allocator.table, text_to_read, strlen(text_to_read), &graph);
  assert_true((status == RONDO_OK) == (graph != NULL));
  rondo_graph_free(graph);
  return status;
}

GRAPH_TEST(test_reading) {
  add_all_kinds(fixture, fixture->graph);
  assert_ok(rondo_graph_to_json(fixture->graph, true, &text_to_read));
  assert_true(sweep(fixture, read_once, 0) > 20);
  rondo_text_free(text_to_read);
}

int main(void) {
  rondo_slab_by_block = true; /* so that each allocation fails once */
  return test_run_registered();
}
