/* SPDX-License-Identifier: MIT
 * Nodes and graphs of graph memory.
 */
#include "support/test_graph_memory.h"

#include <stdlib.h>

test_allocation test_add_alloc(rondo_graph *graph, const rondo_node *dependencies, size_t count, size_t bytes,
                               const char *name) {
  test_allocation self = {.node = {0}};
  void *address = NULL;
  assert_ok(rondo_graph_add_alloc(graph, dependencies, count, bytes, name, &address, &self.node));
  assert_non_null(address);
  assert_true((uintptr_t)address % 256 == 0);
  self.words = address;
  return self;
}

rondo_node test_add_free(rondo_graph *graph, rondo_node dependency, uint32_t *words) {
  rondo_node node = {0};
  assert_ok(rondo_graph_add_free(graph, &dependency, dependency.id != 0, words, &node));
  return node;
}

rondo_node test_add_set(test_fixture *fixture, rondo_graph *graph, rondo_node dependency, uint32_t *words,
                        uint32_t count, uint32_t value) {
  rondo_node node = {0};
  assert_ok(rondo_graph_add_kernel(graph, &dependency, dependency.id != 0, test_kernel(fixture, TEST_KERNEL_SET),
                                   (rondo_grid){count, 0, 0}, RONDO_ARGS(&value, &words), &node));
  return node;
}

rondo_node test_add_read(test_fixture *fixture, rondo_graph *graph, rondo_node dependency, uint32_t *words,
                         uint32_t *out, uint32_t count) {
  rondo_node node = {0};
  assert_ok(rondo_graph_add_kernel(graph, &dependency, dependency.id != 0, test_kernel(fixture, TEST_KERNEL_COMBINE),
                                   (rondo_grid){count, 0, 0}, RONDO_ARGS(&words, &words, &out), &node));
  return node;
}

rondo_graph *test_gated_graph(test_fixture *fixture, uint32_t *out, uint32_t count, size_t bytes, uint32_t value,
                              test_gate *gate) {
  rondo_graph *graph = test_graph(fixture);
  const test_allocation scratch = test_add_alloc(graph, NULL, 0, bytes, "scratch");
  rondo_node node = test_add_set(fixture, graph, scratch.node, scratch.words, count, value);
  if (gate != NULL) assert_ok(rondo_graph_add_host(graph, &node, 1, test_gate_pass, gate, &node));
  node = test_add_read(fixture, graph, node, scratch.words, out, count);
  test_add_free(graph, node, scratch.words);
  return graph;
}

rondo_graph *test_scratch_graph(test_fixture *fixture, uint32_t *out, uint32_t count, size_t bytes, uint32_t value) {
  return test_gated_graph(fixture, out, count, bytes, value, NULL);
}

void test_launch_at_once(test_fixture *fixture, rondo_exec *const execs[2], rondo_stream *const streams[2],
                         test_gate gates[2], void (*standing)(test_fixture *fixture)) {
  for (int i = 0; i < 2; i++) assert_ok(rondo_exec_launch(execs[i], streams[i]));
  for (int i = 0; i < 2; i++) test_gate_await(&gates[i]);
  if (standing != NULL) standing(fixture);
  for (int i = 0; i < 2; i++) test_gate_open(&gates[i]);
  assert_ok(rondo_device_synchronize(fixture->device));
}

rondo_exec *test_scratch_exec(test_fixture *fixture, uint32_t *out, uint32_t count, size_t bytes, uint32_t value) {
  rondo_graph *graph = test_scratch_graph(fixture, out, count, bytes, value);
  return test_exec_of(graph);
}

void test_assert_all(test_fixture *fixture, const uint32_t *words, size_t count, uint32_t value) {
  uint32_t *expected = malloc(count * sizeof *expected);
  assert_non_null(expected);
  for (size_t i = 0; i < count; i++) expected[i] = value;
  assert_words(fixture, words, expected, count);
  free(expected);
}
