/* SPDX-License-Identifier: MIT
 * Clones and child graphs (B9).
 */
#include "unit/graph/graph_tests.h"

#include "graph/edges.h"
#include "graph/graph.h"

static rondo_graph *child_of(const rondo_graph *graph, rondo_node node) {
  rondo_node_params params = test_node_params(graph, node);
  assert_int_equal(params.kind, RONDO_NODE_CHILD);
  return params.as.child;
}

GRAPH_TEST(test_a_clone_is_the_same) {
  add_all_kinds(fixture, fixture->graph);
  assert_ok(rondo_graph_erase(fixture->graph, 2));
  rondo_graph *clone = clone_of(fixture, fixture->graph);
  assert_int_equal(count_differences(fixture->graph, clone, false), 0);
  assert_int_equal(clone->nodes.count, KIND_COUNT);
  assert_true(clone->has_memory);
  assert_string_equal(clone->name, "test");
  assert_ptr_equal(clone->device, TEST_DEVICE);
  for (size_t i = 0; i < KIND_COUNT; i++) {
    rondo_node found;
    const rondo_status status = rondo_graph_find_in_clone(clone, fixture->nodes[i], &found);
    if (i == 2) {
      assert_invalid(status, RONDO_REASON_UNKNOWN_NODE);
      continue;
    }
    assert_ok(status);
    assert_int_not_equal(found.id, fixture->nodes[i].id);
    assert_int_equal(rondo_node_number(found), i);
  }
}

GRAPH_TEST(test_a_clone_is_deep) {
  add_all_kinds(fixture, fixture->graph);
  rondo_graph *clone = clone_of(fixture, fixture->graph);
  const rondo_node extra = add_empty(child_of(fixture->graph, fixture->nodes[5]), NULL, 0);
  add_empty(fixture->graph, NULL, 0);
  rondo_node cloned;
  assert_ok(rondo_graph_find_in_clone(clone, fixture->nodes[5], &cloned));
  assert_int_equal(test_node_count(child_of(clone, cloned)), 1);
  assert_int_equal(test_node_count(clone), KIND_COUNT);
  assert_invalid(rondo_graph_find_in_clone(child_of(clone, cloned), extra, &cloned), RONDO_REASON_UNKNOWN_NODE);
}

GRAPH_TEST(test_find_in_clone) {
  rondo_graph *graph = fixture->graph;
  const rondo_node a = add_empty(graph, NULL, 0), b = add_empty(graph, NULL, 0);
  rondo_graph *clone = clone_of(fixture, graph), *unrelated = make_graph(fixture, "unrelated");
  const rondo_node late = add_empty(graph, NULL, 0);
  rondo_node found = {.id = 1};
  assert_invalid(rondo_graph_find_in_clone(unrelated, a, &found), RONDO_REASON_UNKNOWN_NODE);
  assert_int_equal(found.id, 0);
  assert_invalid(rondo_graph_find_in_clone(graph, a, &found), RONDO_REASON_UNKNOWN_NODE); /* no clone */
  assert_invalid(rondo_graph_find_in_clone(clone, late, &found), RONDO_REASON_UNKNOWN_NODE);
  add_empty(clone, NULL, 0);
  assert_invalid(rondo_graph_find_in_clone(clone, late, &found), RONDO_REASON_UNKNOWN_NODE);
  assert_ok(rondo_graph_erase(graph, 0));
  assert_ok(rondo_graph_find_in_clone(clone, a, &found)); /* the original is gone, the copy is not */
  assert_ok(rondo_graph_erase(clone, 1));
  assert_invalid(rondo_graph_find_in_clone(clone, b, &found), RONDO_REASON_UNKNOWN_NODE);
  assert_invalid(rondo_graph_find_in_clone(clone, (rondo_node){0}, &found), RONDO_REASON_UNKNOWN_NODE);
  assert_invalid(rondo_graph_find_in_clone(NULL, a, &found), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_graph_find_in_clone(clone, a, NULL), RONDO_REASON_NULL_ARGUMENT);
}

GRAPH_TEST(test_bad_clones) {
  rondo_graph *clone = fixture->graph;
  assert_invalid(rondo_graph_clone(NULL, &clone), RONDO_REASON_NULL_ARGUMENT);
  assert_null(clone);
  assert_invalid(rondo_graph_clone(fixture->graph, NULL), RONDO_REASON_NULL_ARGUMENT);
}

/* Later changes of the given graph do not affect the child, but changes of the node's own graph do. */
GRAPH_TEST(test_b9_a_child_is_a_clone) {
  rondo_graph *given = make_graph(fixture, "layer");
  const rondo_node inner = add_empty(given, NULL, 0);
  const rondo_node node = add_child(fixture->graph, given);
  rondo_graph *child = child_of(fixture->graph, node);
  assert_ptr_not_equal(child, given);
  assert_true(child->is_child);
  assert_ptr_equal(child->parent, fixture->graph);
  assert_false(given->is_child);
  add_empty(given, NULL, 0);
  assert_int_equal(test_node_count(child), 1);
  rondo_node found;
  assert_ok(rondo_graph_find_in_clone(child, inner, &found));
  free_now(fixture, given);
  add_empty(child, &found, 1);
  assert_int_equal(test_node_count(child_of(fixture->graph, node)), 2);
}

GRAPH_TEST(test_b9_a_graph_as_its_own_child) {
  rondo_graph *graph = fixture->graph;
  add_empty(graph, NULL, 0);
  const rondo_node first = add_child(graph, graph), second = add_child(graph, graph);
  assert_int_equal(test_node_count(child_of(graph, first)), 1);
  assert_int_equal(test_node_count(child_of(graph, second)), 2);
  rondo_graph *inner = child_of(graph, first);
  const rondo_node third = add_child(inner, graph); /* the graph around, with all that is in it */
  assert_int_equal(test_node_count(child_of(inner, third)), 3);
  assert_int_equal(test_node_count(graph), 3);
}

GRAPH_TEST(test_nesting_has_a_bound) {
  rondo_graph *at = fixture->graph, *leaf = make_graph(fixture, "leaf");
  for (int depth = 0; depth < 16; depth++) at = child_of(at, add_child(at, leaf));
  const rondo_node_params params = {.kind = RONDO_NODE_CHILD, .as.child = leaf};
  rondo_node node;
  assert_error(rondo_graph_insert(at, NULL, 0, &params, &node), RONDO_LIMIT_EXCEEDED, RONDO_REASON_OUT_OF_RANGE);
  assert_message("17 levels deep");
  const rondo_node_params whole = {.kind = RONDO_NODE_CHILD, .as.child = fixture->graph};
  assert_error(rondo_graph_insert(leaf, NULL, 0, &whole, &node), RONDO_LIMIT_EXCEEDED, RONDO_REASON_OUT_OF_RANGE);
  json(fixture, fixture->graph, true); /* the deepest graph can be dumped */
  dot(fixture, fixture->graph, true);
}

/* Memory nodes of a child graph count in all graphs that contain it, whenever they are added. */
GRAPH_TEST(test_memory_is_noted_upwards) {
  rondo_graph *given = make_graph(fixture, "inner");
  rondo_graph *middle = child_of(fixture->graph, add_child(fixture->graph, given));
  rondo_graph *inner = child_of(middle, add_child(middle, given));
  assert_false(fixture->graph->has_memory);
  const rondo_node_params params = alloc_params(fixture->memory, 64, "a");
  add_node(inner, &params, NULL, 0);
  assert_true(inner->has_memory && middle->has_memory && fixture->graph->has_memory);
  rondo_graph *outer = make_graph(fixture, "outer");
  add_child(outer, fixture->graph);
  assert_true(outer->has_memory);
}

/* Sharing ---------------------------------------------------------------------------------------------------------- */

/* Three kernels in a line. */
static void add_line(graph_fixture *fixture, rondo_graph *graph) {
  const rondo_node_params params = kernel_params(fixture);
  rondo_node last = add_node(graph, &params, NULL, 0);
  for (int i = 1; i < 3; i++) last = add_node(graph, &params, &last, 1);
}

typedef rondo_status (*change_function)(graph_fixture *fixture, rondo_graph *graph);

static rondo_status change_by_insert(graph_fixture *fixture, rondo_graph *graph) {
  const rondo_node_params params = kernel_params(fixture);
  const rondo_node last = rondo_graph_id(graph, 2);
  rondo_node node;
  return rondo_graph_insert(graph, &last, 1, &params, &node);
}
static rondo_status change_by_replace(graph_fixture *fixture, rondo_graph *graph) {
  rondo_node_params params = kernel_params(fixture);
  params.name = "replaced";
  return rondo_graph_replace(graph, 1, &params);
}
static rondo_status change_by_erase(graph_fixture *fixture, rondo_graph *graph) {
  (void)fixture;
  return rondo_graph_erase(graph, 1);
}
static rondo_status change_by_link(graph_fixture *fixture, rondo_graph *graph) {
  (void)fixture;
  return rondo_graph_link_edges(graph, &(uint32_t){0}, &(uint32_t){2}, 1);
}
static rondo_status change_by_unlink(graph_fixture *fixture, rondo_graph *graph) {
  (void)fixture;
  return rondo_graph_erase_edges(graph, &(uint32_t){0}, &(uint32_t){1}, 1);
}

static const change_function changes[] = {change_by_insert, change_by_replace, change_by_erase, change_by_link,
                                          change_by_unlink};
enum { CHANGES = sizeof changes / sizeof changes[0] };

GRAPH_TEST(test_clones_share_nodes_until_one_changes) {
  for (size_t i = 0; i < CHANGES; i++) {
    rondo_graph *graph = make_graph(fixture, "shared"), *clone;
    add_line(fixture, graph);
    assert_ok(rondo_graph_clone(graph, &clone));
    assert_ptr_equal(clone->nodes.items, graph->nodes.items);
    assert_int_equal(count_differences(graph, clone, false), 0);
    assert_ok(changes[i](fixture, graph));
    assert_false(rondo_graph_shares_nodes(graph) || rondo_graph_shares_nodes(clone));
    rondo_graph_check(graph);
    rondo_graph_check(clone);
    assert_true(count_differences(graph, clone, false) > 0);
    assert_ok(changes[i](fixture, clone)); /* also the clone can be changed, and has nothing of the graph's */
    assert_int_equal(count_differences(graph, clone, false), 0);
    free_now(fixture, graph);
    rondo_graph_check(clone);
    rondo_graph_free(clone);
  }
}

/* Failing to copy shared nodes changes neither graph. Then the last owner has them alone, and copies nothing. */
GRAPH_TEST(test_a_failed_change_leaves_nodes_shared) {
  test_allocator *allocator = &fixture->allocator;
  for (size_t i = 0; i < CHANGES; i++) {
    rondo_graph *graph = make_graph(fixture, "shared"), *clone;
    add_line(fixture, graph);
    assert_ok(rondo_graph_clone(graph, &clone));
    const size_t live = allocator->live;
    size_t fail_at = 1;
    for (;; fail_at++) {
      allocator->calls = 0;
      allocator->fail_at = fail_at;
      const rondo_status status = changes[i](fixture, graph);
      allocator->fail_at = 0;
      if (status == RONDO_OK) break;
      assert_int_equal(status, RONDO_OUT_OF_MEMORY);
      if (rondo_graph_shares_nodes(graph)) assert_int_equal(allocator->live, live);
      assert_int_equal(count_differences(graph, clone, false), 0);
      rondo_graph_check(graph);
    }
    assert_true(fail_at > 3); /* the storage, the array, the memory of the nodes */
    rondo_graph_free(clone);
  }
  rondo_graph *graph = make_graph(fixture, "shared"), *clone;
  add_line(fixture, graph);
  assert_ok(rondo_graph_clone(graph, &clone));
  const rondo_graph_node *nodes = clone->nodes.items;
  free_now(fixture, graph);
  allocator->calls = 0;
  assert_ok(rondo_graph_erase(clone, 0));
  assert_int_equal(allocator->calls, 0);
  assert_ptr_equal(clone->nodes.items, nodes);
  rondo_graph_free(clone);
}

/* What rondo_graph_get_params returns stays valid until the node changes, whatever happens to clones. */
GRAPH_TEST(test_parameters_stay_where_they_are) {
  for (int is_cloned_first = 0; is_cloned_first < 2; is_cloned_first++) {
    rondo_graph *graph = make_graph(fixture, "read"), *clone;
    rondo_node_params before, after;
    add_line(fixture, graph);
    const rondo_node first = rondo_graph_id(graph, 0);
    if (!is_cloned_first) assert_ok(rondo_graph_get_params(graph, first, &before));
    assert_ok(rondo_graph_clone(graph, &clone));
    if (is_cloned_first) assert_ok(rondo_graph_get_params(graph, first, &before));
    assert_ok(change_by_replace(fixture, graph)); /* of another node */
    rondo_graph_free(clone);
    assert_ok(rondo_graph_get_params(graph, first, &after));
    assert_ptr_equal(before.as.kernel.args, after.as.kernel.args);
    assert_memory_equal(before.as.kernel.args[0], after.as.kernel.args[0], 1);
  }
}
