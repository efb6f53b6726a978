/* SPDX-License-Identifier: MIT
 * Relocating (GM-20): independent execs of one memory graph, one memory graph in parallel branches, removed edges that
 * a reuse relied on, updates in the graph's own addresses, and errors. On a guarded device allocations have separate
 * pages, so that bytes are not compared there.
 */
#include <string.h>

#include "support/test_graph_memory.h"

enum { WORDS = 1 << 19, BYTES = WORDS * 4 }; /* whole pages on every device */

/* Counted in steps, so that plans do not depend on how busy the machine is. */
static const rondo_plan_options planning = {RONDO_PLAN_OPTIONS_INIT, .budget_steps = 50000};
static const rondo_instantiate_options relocating = {RONDO_INSTANTIATE_OPTIONS_INIT, .relocate = true,
                                                     .plan = &planning};

static rondo_exec *relocate(rondo_graph *graph) { return test_instantiate_with(graph, &relocating); }

/* `bytes` is what it should be, unless the device keeps allocations apart. */
#define assert_bytes(t, bytes, expected) \
  if (!test_is_guarded(t)) assert_int_equal(bytes, expected)

/* The plan needs the live bytes, and so do the physical bytes, where placing immediately needs more. */
TEST(test_gm11_relocated_memory_is_at_the_bound) {
  uint32_t *out = test_words(t, 2 * WORDS);
  rondo_graph *graph = test_graph(t);
  const test_allocation a = test_add_alloc(graph, NULL, 0, BYTES, "a");
  const test_allocation b = test_add_alloc(graph, &a.node, 1, BYTES, "b");
  rondo_node node = test_add_set(t, graph, b.node, b.words, WORDS, 7);
  node = test_add_free(graph, node, a.words);
  const test_allocation c = test_add_alloc(graph, &node, 1, 2 * BYTES, "c");
  node = test_add_set(t, graph, c.node, c.words, 2 * WORDS, 9);
  node = test_add_read(t, graph, node, b.words, out, WORDS);
  node = test_add_read(t, graph, node, c.words + WORDS, out + WORDS, WORDS);
  node = test_add_free(graph, node, b.words);
  test_add_free(graph, node, c.words);
  rondo_exec *plain = test_instantiate(graph), *exec = relocate(graph);
  assert_bytes(t, test_exec_info(plain).graph_bytes, 4 * BYTES);
  assert_int_equal(test_exec_info(plain).planned_bytes, 0);
  assert_bytes(t, test_exec_info(exec).graph_bytes, 3 * BYTES);
  assert_int_equal(test_exec_info(exec).planned_bytes, 3 * BYTES);
  assert_int_equal(test_exec_info(exec).planned_bound, 3 * BYTES);
  test_graph_destroy(graph);
  for (int i = 0; i < 3; i++) assert_ok(rondo_exec_launch(exec, t->stream));
  assert_bytes(t, test_memory_statistics(t).graph_reserved, 3 * BYTES);
  assert_int_equal(test_memory_statistics(t).remaps, 0);
  test_assert_all(t, out, WORDS, 7 * 32);
  test_assert_all(t, out + WORDS, WORDS, 9 * 32);
  assert_ok(rondo_exec_launch(plain, t->stream));
  test_assert_all(t, out, WORDS, 7 * 32);
}

static void assert_two_are_held(test_fixture *t) {
  assert_bytes(t, test_memory_statistics(t).graph_reserved, 2 * BYTES);
}

/* Two execs of one graph are in flight at once, each with its own contents, and each has exactly what it needs. */
TEST_WORKERS(test_gm20_execs_of_one_graph_run_at_once) {
  test_skip_if_serial();
  rondo_stream *other = test_stream(t, "other");
  rondo_stream *const streams[2] = {t->stream, other};
  uint32_t *out = test_words(t, 2 * WORDS);
  test_gate gates[2];
  rondo_exec *execs[2];
  test_gate_init(&gates[0]);
  rondo_graph *graph = test_gated_graph(t, out, WORDS, BYTES, 1, &gates[0]);
  rondo_node nodes[5];
  size_t count = 5;
  rondo_node_params params;
  assert_ok(rondo_graph_nodes(graph, nodes, &count));
  execs[0] = relocate(graph);
  execs[1] = relocate(graph);
  test_gate_init(&gates[1]);
  assert_ok(rondo_graph_get_params(graph, nodes[2], &params));
  params.as.host.user = &gates[1];
  assert_ok(rondo_exec_set_params(execs[1], nodes[2], &params));
  assert_ok(rondo_graph_get_params(graph, nodes[1], &params));
  const uint32_t value = 2;
  void *address;
  memcpy(&address, params.as.kernel.args[1], sizeof address);
  params.as.kernel.args = (const void *const[]){&value, &address};
  assert_ok(rondo_exec_set_params(execs[1], nodes[1], &params));
  assert_ok(rondo_graph_get_params(graph, nodes[3], &params));
  uint32_t *second = out + WORDS;
  params.as.kernel.args = (const void *const[]){&address, &address, &second};
  assert_ok(rondo_exec_set_params(execs[1], nodes[3], &params));
  test_graph_destroy(graph);
  test_launch_at_once(t, execs, streams, gates, assert_two_are_held);
  test_assert_all(t, out, WORDS, 32);
  test_assert_all(t, out + WORDS, WORDS, 64);
  for (int i = 0; i < 2; i++) {
    rondo_exec_destroy(execs[i]);
    test_gate_destroy(&gates[i]);
  }
}

/* The same graph in one line shares all its memory. */
TEST(test_gm20_a_relocatable_graph_shares_bytes) {
  uint32_t *out = test_words(t, 4 * WORDS);
  const rondo_capture_options options = {RONDO_CAPTURE_OPTIONS_INIT, .relocate = true};
  void *blocks[4];
  assert_ok(rondo_capture_begin_with(t->stream, &options));
  for (uint32_t i = 0; i < 4; i++) {
    uint32_t *to = out + i * WORDS, value = 2 + i;
    assert_ok(rondo_malloc_async(t->stream, BYTES, NULL, &blocks[i]));
    assert_ok(rondo_launch(t->stream, test_kernel(t, TEST_KERNEL_SET), (rondo_grid){WORDS, 0, 0},
                           RONDO_ARGS(&value, &blocks[i])));
    assert_ok(rondo_copy_async(t->stream, to, blocks[i], BYTES));
    assert_ok(rondo_free_async(t->stream, blocks[i]));
    for (uint32_t k = 0; k < i; k++) assert_ptr_not_equal(blocks[k], blocks[i]);
  }
  rondo_graph *graph = test_capture_end(t->stream);
  rondo_exec *exec = test_instantiate(graph);
  assert_bytes(t, test_exec_info(exec).graph_bytes, BYTES);
  for (int i = 0; i < 3; i++) assert_ok(rondo_exec_launch(exec, t->stream));
  for (uint32_t i = 0; i < 4; i++) test_assert_all(t, out + i * WORDS, WORDS, 2 + i);
}

/* A graph and its clone share addresses, so they cannot run in parallel, unless each is relocated. */
TEST(test_gm20_relatives_in_branches_at_once) {
  uint32_t *out = test_words(t, 2 * WORDS), *second = out + WORDS;
  rondo_graph *inner = test_scratch_graph(t, out, WORDS, BYTES, 3), *clone = NULL, *outer = test_graph(t);
  assert_ok(rondo_graph_clone(inner, &clone));
  rondo_node nodes[4], child = {0};
  size_t count = 4;
  rondo_node_params params;
  assert_ok(rondo_graph_nodes(clone, nodes, &count));
  assert_ok(rondo_graph_get_params(clone, nodes[2], &params));
  params.as.kernel.args = (const void *const[]){params.as.kernel.args[0], params.as.kernel.args[1], &second};
  assert_ok(rondo_graph_set_params(clone, nodes[2], &params));
  assert_ok(rondo_graph_add_child(outer, NULL, 0, inner, &child));
  assert_ok(rondo_graph_add_child(outer, NULL, 0, clone, &child));
  rondo_exec *exec = NULL;
  assert_fails(rondo_instantiate(outer, NULL, &exec), RONDO_INVALID_LIFETIME);
  exec = relocate(outer);
  assert_int_equal(test_exec_info(exec).planned_bytes, 2 * BYTES);
  assert_int_equal(test_exec_info(exec).planned_bound, 2 * BYTES);
  test_graph_destroy(inner);
  test_graph_destroy(clone);
  test_graph_destroy(outer);
  for (int i = 0; i < 5; i++) assert_ok(rondo_exec_launch(exec, t->stream));
  test_assert_all(t, out, WORDS, 3 * 32);
  test_assert_all(t, second, WORDS, 3 * 32);
  assert_bytes(t, test_memory_statistics(t).graph_reserved, 2 * BYTES);
}

/* An edge and a node are removed on which, without relocation, sharing an address would rely; the shared memory is
 * separate then. */
TEST(test_gm20_edges_and_nodes_may_go) {
  uint32_t *out = test_words(t, 2 * WORDS);
  const rondo_graph_options options = {RONDO_GRAPH_OPTIONS_INIT, .relocate = true};
  rondo_graph *graph = NULL;
  assert_ok(rondo_graph_create(t->device, &options, &graph));
  const test_allocation first = test_add_alloc(graph, NULL, 0, BYTES, "first");
  rondo_node node = test_add_set(t, graph, first.node, first.words, WORDS, 4);
  node = test_add_read(t, graph, node, first.words, out, WORDS);
  const rondo_node freed = test_add_free(graph, node, first.words);
  rondo_node between = {0};
  assert_ok(rondo_graph_add_empty(graph, &freed, 1, &between));
  const rondo_node before[2] = {freed, between};
  const test_allocation second = test_add_alloc(graph, before, 2, BYTES, "second");
  node = test_add_set(t, graph, second.node, second.words, WORDS, 5);
  node = test_add_read(t, graph, node, second.words, out + WORDS, WORDS);
  test_add_free(graph, node, second.words);
  rondo_exec *together = relocate(graph);
  assert_int_equal(test_exec_info(together).planned_bytes, BYTES);
  assert_ok(rondo_graph_remove_edges(graph, &freed, &second.node, 1));
  assert_ok(rondo_graph_remove(graph, between));
  rondo_exec *apart = relocate(graph);
  assert_int_equal(test_exec_info(apart).planned_bytes, 2 * BYTES);
  test_graph_destroy(graph);
  for (int i = 0; i < 4; i++) assert_ok(rondo_exec_launch(i % 2 == 0 ? together : apart, t->stream));
  test_assert_all(t, out, WORDS, 4 * 32);
  test_assert_all(t, out + WORDS, WORDS, 5 * 32);
}

/* Memory that the graph does not free keeps its address, also between memory that moves. */
TEST(test_gm4_unfreed_memory_keeps_its_address) {
  rondo_graph *graph = test_graph(t);
  const test_allocation scratch = test_add_alloc(graph, NULL, 0, 4 * BYTES, "scratch");
  const test_allocation kept = test_add_alloc(graph, &scratch.node, 1, BYTES, "kept");
  rondo_node node = test_add_set(t, graph, kept.node, scratch.words + WORDS, WORDS, 4);
  node = test_add_read(t, graph, node, scratch.words + WORDS, kept.words, WORDS);
  test_add_free(graph, node, scratch.words);
  rondo_exec *execs[2] = {relocate(graph), relocate(graph)};
  test_graph_destroy(graph);
  assert_bytes(t, test_exec_info(execs[0]).graph_bytes, 5 * BYTES);
  for (int i = 0; i < 4; i++) {
    assert_ok(rondo_exec_launch(execs[i % 2], t->stream));
    assert_error(rondo_exec_launch(execs[(i + 1) % 2], t->stream), RONDO_INVALID_LIFETIME,
                 RONDO_REASON_STILL_ALLOCATED);
    test_assert_all(t, kept.words, WORDS, 4 * 32);
    assert_ok(rondo_free_async(t->stream, kept.words));
  }
  assert_bytes(t, test_memory_statistics(t).graph_reserved, 5 * BYTES);
}

/* Updates are given in the graph's addresses: a node's, also inside an allocation, and those of a whole recording with
 * other addresses; the memory stays mapped. */
TEST(test_gx5_updates_are_translated) {
  uint32_t *out = test_words(t, WORDS);
  rondo_graph *graph = test_scratch_graph(t, out, WORDS, 2 * BYTES, 3);
  rondo_graph *again = test_scratch_graph(t, out, WORDS, 2 * BYTES, 8);
  rondo_exec *exec = relocate(graph);
  rondo_node nodes[4];
  rondo_node_params params;
  size_t count = 4;
  assert_ok(rondo_graph_nodes(graph, nodes, &count));
  assert_ok(rondo_graph_get_params(graph, nodes[0], &params));
  uint32_t *half = (uint32_t *)params.as.alloc.address + WORDS, value = 6;
  test_graph_destroy(graph);
  assert_ok(rondo_exec_launch(exec, t->stream));
  test_assert_all(t, out, WORDS, 3 * 32);
  params = (rondo_node_params){.kind = RONDO_NODE_KERNEL,
                               .as.kernel = {.kernel = test_kernel(t, TEST_KERNEL_SET),
                                             .grid = {WORDS, 0, 0},
                                             .args = (const void *const[]){&value, &half},
                                             .arg_count = 2}};
  assert_ok(rondo_exec_set_params(exec, nodes[1], &params));
  params.as.kernel.kernel = test_kernel(t, TEST_KERNEL_COMBINE);
  params.as.kernel.args = (const void *const[]){&half, &half, &out};
  params.as.kernel.arg_count = 3;
  assert_ok(rondo_exec_set_params(exec, nodes[2], &params));
  assert_ok(rondo_exec_launch(exec, t->stream));
  test_assert_all(t, out, WORDS, 6 * 32);
  const uint64_t maps = test_statistics(t).maps;
  assert_ok(rondo_exec_update(exec, again, NULL));
  test_graph_destroy(again);
  assert_ok(rondo_exec_launch(exec, t->stream));
  test_assert_all(t, out, WORDS, 8 * 32);
  assert_bytes(t, test_statistics(t).maps, maps);
  rondo_graph *larger = test_scratch_graph(t, out, WORDS, 3 * BYTES, 9);
  assert_ok(rondo_exec_update(exec, larger, NULL));
  test_graph_destroy(larger);
  assert_ok(rondo_exec_launch(exec, t->stream));
  test_assert_all(t, out, WORDS, 9 * 32);
  assert_int_equal(test_exec_info(exec).planned_bytes, 3 * BYTES);
}

/* Allocations of nearly the same size take the same space, and each is usable up to its last byte. */
TEST(test_gx5_updates_may_change_sizes_a_little) {
  enum { FEW = 300, MORE = 310 };
  uint32_t *out = test_words(t, MORE);
  rondo_graph *few = test_scratch_graph(t, out, FEW, FEW * sizeof *out, 3);
  rondo_graph *more = test_scratch_graph(t, out, MORE, MORE * sizeof *out, 4);
  rondo_exec *exec = relocate(few);
  for (int i = 0; i < 2; i++) {
    assert_ok(rondo_exec_launch(exec, t->stream));
    assert_ok(rondo_stream_synchronize(t->stream));
    assert_int_equal(test_word(t, out + FEW - 1), 3 * 32);
    assert_ok(rondo_exec_update(exec, more, NULL));
    assert_ok(rondo_exec_launch(exec, t->stream));
    assert_ok(rondo_stream_synchronize(t->stream));
    assert_int_equal(test_word(t, out + MORE - 1), 4 * 32);
    assert_ok(rondo_exec_update(exec, few, NULL));
  }
}

/* A relocated exec launched into a capture becomes a child in its graph's own addresses, as any other. */
TEST(test_gm20_a_relocated_exec_is_captured) {
  uint32_t *out = test_words(t, WORDS);
  rondo_graph *graph = test_scratch_graph(t, out, WORDS, BYTES, 3);
  rondo_exec *exec = relocate(graph);
  test_graph_destroy(graph);
  assert_ok(rondo_capture_begin(t->stream, RONDO_CAPTURE_THREAD_LOCAL));
  for (int i = 0; i < 2; i++) assert_ok(rondo_exec_launch(exec, t->stream));
  rondo_graph *outer = test_capture_end(t->stream);
  rondo_exec_destroy(exec);
  rondo_exec *execs[2] = {test_instantiate(outer), relocate(outer)};
  test_graph_destroy(outer);
  for (int i = 0; i < 2; i++) {
    assert_ok(rondo_fill_async(t->stream, &(rondo_fill){.dst = out, .element_bytes = 4, .width = WORDS}));
    assert_ok(rondo_exec_launch(execs[i], t->stream));
    test_assert_all(t, out, WORDS, 3 * 32);
    assert_bytes(t, test_exec_info(execs[i]).graph_bytes, BYTES);
    rondo_exec_destroy(execs[i]);
  }
}

/* Addresses where they cannot be rewritten are refused, naming node and place. */
TEST(test_gm20_hidden_addresses_are_refused) {
  uint32_t *out = test_words(t, 16);
  rondo_exec *exec = (rondo_exec *)t;
  for (int hidden = 0; hidden < 2; hidden++) {
    rondo_graph *graph = test_graph(t);
    const test_allocation memory = test_add_alloc(graph, NULL, 0, BYTES, "hidden");
    rondo_node node = memory.node;
    if (hidden == 0) {
      const uint8_t small = 0;
      const uint64_t address = (uint64_t)(uintptr_t)(memory.words + 5);
      const uint16_t number = 0;
      const double real = 0;
      const test_triple triple = {{0}};
      const uint32_t word = 0;
      assert_ok(rondo_graph_add_kernel(graph, &node, 1, test_kernel(t, TEST_KERNEL_MIXED), (rondo_grid){1, 0, 0},
                                       RONDO_ARGS(&small, &address, &number, &real, &triple, &word, &out), &node));
    } else {
      assert_ok(rondo_graph_add_host(graph, &node, 1, test_gate_pass, memory.words, &node));
    }
    test_add_free(graph, node, memory.words);
    assert_error(rondo_instantiate(graph, &relocating, &exec), RONDO_INVALID_GRAPH, RONDO_REASON_NOT_RELOCATABLE);
    assert_null(exec);
    assert_int_equal(rondo_last_error()->node, rondo_node_number(node));
    test_graph_destroy(graph);
  }
}

/* An access that is not ordered after its alloc means nothing. */
TEST(test_gm5_unordered_accesses_are_refused) {
  rondo_graph *graph = test_graph(t);
  rondo_exec *exec = NULL;
  const test_allocation memory = test_add_alloc(graph, NULL, 0, BYTES, "unordered");
  test_add_free(graph, memory.node, memory.words);
  const rondo_node unordered = test_add_set(t, graph, (rondo_node){0}, memory.words, WORDS, 1);
  assert_error(rondo_instantiate(graph, &relocating, &exec), RONDO_INVALID_LIFETIME, RONDO_REASON_NOT_ALLOCATED);
  assert_int_equal(rondo_last_error()->node, rondo_node_number(unordered));
}
