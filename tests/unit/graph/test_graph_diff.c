/* SPDX-License-Identifier: MIT
 * Differences and fingerprints: the same work has no differences and the same fingerprint, however it was built (GX-2).
 * Each kind of difference is found where it is.
 */
#include "unit/graph/graph_tests.h"

#include "graph/graph.h"

static rondo_difference only_difference(const rondo_graph *a, const rondo_graph *b, bool ignore_addresses) {
  rondo_difference differences[4];
  size_t count = 4;
  assert_ok(rondo_graph_diff(a, b, ignore_addresses, differences, &count));
  assert_int_equal(count, 1);
  assert_int_equal(differences[1].kind, 0);
  return differences[0];
}

static void expect_same(const rondo_graph *a, const rondo_graph *b) {
  assert_int_equal(count_differences(a, b, true), 0);
  assert_int_equal(fingerprint(a), fingerprint(b));
}

GRAPH_TEST(test_gx2_same_work_twice) {
  static char elsewhere[4096];
  add_all_kinds(fixture, fixture->graph);
  rondo_graph *again = make_graph(fixture, "another name");
  rondo_kernel *kernel = fixture->kernel;
  fixture->kernel = make_kernel(fixture, TEST_DEVICE, "saxpy"); /* a kernel, and buffers, of its own */
  fixture->x = (const float *)(const void *)elsewhere;
  add_all_kinds(fixture, again);
  expect_same(fixture->graph, again);
  assert_true(count_differences(fixture->graph, again, false) > 0);
  assert_int_equal(count_differences(again, again, false), 0);
  rondo_kernel_release(fixture->kernel);
  fixture->kernel = kernel;
}

/* Fork and join, built in two orders: the numbers differ, but the topological order does not. */
GRAPH_TEST(test_gx2_numbers_do_not_matter) {
  rondo_graph *a = fixture->graph, *b = make_graph(fixture, "");
  const rondo_node_params fill = fill_params(fixture), copy = copy_params(fixture);
  const rondo_node a0 = add_node(a, &fill, NULL, 0), a1 = add_node(a, &copy, &a0, 1), a2 = add_empty(a, &a0, 1);
  add_node(a, &fill, (rondo_node[]){a1, a2}, 2);
  add_empty(b, NULL, 0);
  const rondo_node b_join = add_node(b, &fill, NULL, 0), b0 = add_node(b, &fill, NULL, 0);
  const rondo_node b1 = add_node(b, &copy, &b0, 1), b2 = add_empty(b, &b0, 1);
  add_edge(b, b1, b_join);
  add_edge(b, b2, b_join);
  assert_ok(rondo_graph_erase(b, 0));
  assert_int_equal(count_differences(a, b, false), 0);
  expect_same(a, b);
}

GRAPH_TEST(test_other_kind_and_edges) {
  rondo_graph *a = fixture->graph, *b = make_graph(fixture, "");
  const rondo_node_params fill = fill_params(fixture);
  const rondo_node a0 = add_node(a, &fill, NULL, 0), b0 = add_empty(b, NULL, 0);
  rondo_difference difference = only_difference(a, b, true);
  assert_int_equal(difference.kind, RONDO_DIFFERENCE_KIND);
  assert_int_equal(difference.a.id, a0.id);
  assert_int_equal(difference.b.id, b0.id);
  rondo_graph *c = make_graph(fixture, ""), *d = make_graph(fixture, "");
  rondo_node c_nodes[3], d_nodes[3];
  for (size_t i = 0; i < 3; i++) {
    c_nodes[i] = add_empty(c, NULL, 0);
    d_nodes[i] = add_empty(d, NULL, 0);
  }
  add_edge(c, c_nodes[0], c_nodes[2]);
  add_edge(d, d_nodes[1], d_nodes[2]);
  difference = only_difference(c, d, true);
  assert_int_equal(difference.kind, RONDO_DIFFERENCE_EDGES);
  assert_int_equal(difference.a.id, c_nodes[2].id);
  assert_int_not_equal(fingerprint(c), fingerprint(d));
  add_edge(d, d_nodes[0], d_nodes[2]);
  assert_int_equal(only_difference(c, d, true).kind, RONDO_DIFFERENCE_EDGES);
  assert_int_not_equal(fingerprint(c), fingerprint(d));
}

GRAPH_TEST(test_missing_and_extra) {
  rondo_graph *empty = make_graph(fixture, "");
  const rondo_node a = add_empty(fixture->graph, NULL, 0);
  rondo_difference difference = only_difference(fixture->graph, empty, false);
  assert_int_equal(difference.kind, RONDO_DIFFERENCE_NODE_MISSING);
  assert_int_equal(difference.a.id, a.id);
  assert_int_equal(difference.b.id, 0);
  difference = only_difference(empty, fixture->graph, false);
  assert_int_equal(difference.kind, RONDO_DIFFERENCE_NODE_EXTRA);
  assert_int_equal(difference.a.id, 0);
  assert_int_equal(difference.b.id, a.id);
}

GRAPH_TEST(test_kernels_and_params) {
  rondo_node_params params = kernel_params(fixture);
  add_node(fixture->graph, &params, NULL, 0);
  rondo_graph *clone = clone_of(fixture, fixture->graph);
  fixture->a = 3;
  assert_ok(rondo_graph_replace(clone, 0, &params));
  assert_int_equal(only_difference(fixture->graph, clone, true).kind, RONDO_DIFFERENCE_PARAMS);
  assert_int_equal(fingerprint(fixture->graph), fingerprint(clone)); /* argument values are left out */
  params.as.kernel.grid.z = 2;
  assert_ok(rondo_graph_replace(clone, 0, &params));
  assert_int_equal(only_difference(fixture->graph, clone, true).kind, RONDO_DIFFERENCE_KERNEL);
  assert_int_not_equal(fingerprint(fixture->graph), fingerprint(clone));
}

GRAPH_TEST(test_inside_a_child) {
  rondo_graph *given = make_graph(fixture, "");
  add_empty(given, NULL, 0);
  const rondo_node node = add_child(fixture->graph, given);
  rondo_graph *clone = clone_of(fixture, fixture->graph);
  expect_same(fixture->graph, clone);
  rondo_node_params params;
  rondo_node copy;
  assert_ok(rondo_graph_find_in_clone(clone, node, &copy));
  params = test_node_params(clone, copy);
  const rondo_node extra = add_empty(params.as.child, NULL, 0);
  const rondo_difference difference = only_difference(fixture->graph, clone, true);
  assert_int_equal(difference.kind, RONDO_DIFFERENCE_PARAMS);
  assert_int_equal(difference.a.id, node.id);
  assert_int_equal(difference.b.id, copy.id);
  assert_int_not_equal(fingerprint(fixture->graph), fingerprint(clone));
  const rondo_node last = add_empty(params.as.child, &extra, 1);
  add_edge(params.as.child, last, extra);
  size_t count = 0;
  uint64_t value;
  assert_error(rondo_graph_diff(fixture->graph, clone, true, NULL, &count), RONDO_INVALID_GRAPH, RONDO_REASON_CYCLE);
  assert_error(rondo_graph_fingerprint(clone, &value), RONDO_INVALID_GRAPH, RONDO_REASON_CYCLE);
}

/* Each property that a fingerprint depends on changes it. */
GRAPH_TEST(test_what_a_fingerprint_sees) {
  rondo_node_params variants[10];
  for (size_t i = 0; i < 3; i++) variants[i] = copy_params(fixture);
  for (size_t i = 3; i < 7; i++) variants[i] = fill_params(fixture);
  for (size_t i = 7; i < 10; i++) variants[i] = alloc_params(fixture->memory, 64, "a");
  variants[1].as.copy.width++;
  variants[2].as.copy.src_pitch = 17;
  variants[4].as.fill.value++;
  variants[5].as.fill.element_bytes = 4;
  variants[6].name = "named";
  variants[8].as.alloc.bytes++;
  variants[9].as.alloc.name = "b";
  uint64_t values[10];
  for (size_t i = 0; i < 10; i++) {
    rondo_graph *graph = make_graph(fixture, "");
    add_node(graph, &variants[i], NULL, 0);
    values[i] = fingerprint(graph);
    for (size_t j = 0; j < i; j++) assert_int_not_equal(values[i], values[j]);
  }
}

GRAPH_TEST(test_arrays_of_differences) {
  rondo_graph *empty = make_graph(fixture, "");
  for (int i = 0; i < 3; i++) add_empty(fixture->graph, NULL, 0);
  rondo_difference differences[5];
  memset(differences, 0xff, sizeof differences);
  size_t count = 2;
  assert_ok(rondo_graph_diff(fixture->graph, empty, false, differences, &count));
  assert_int_equal(count, 3);
  assert_int_equal(differences[1].kind, RONDO_DIFFERENCE_NODE_MISSING);
  assert_int_equal(differences[2].a.id, UINT64_MAX);
  assert_invalid(rondo_graph_diff(NULL, empty, false, NULL, &count), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_graph_diff(empty, NULL, false, NULL, &count), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_graph_diff(empty, empty, false, NULL, NULL), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_graph_fingerprint(empty, NULL), RONDO_REASON_NULL_ARGUMENT);
  uint64_t value;
  assert_invalid(rondo_graph_fingerprint(NULL, &value), RONDO_REASON_NULL_ARGUMENT);
}
