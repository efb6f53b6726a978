/* SPDX-License-Identifier: MIT
 * Graph memory over many launches: contents end with the free (GM-2), live memory is freed in each mode after its graph
 * and exec are destroyed (GM-4), bytes are reused only after whole operations (GM-9), what maps memory again and what
 * does not (GM-13), and graphs that lose nodes and edges (GM-20).
 */
#include "support/test_graph_memory.h"

enum { WORDS = 8192, BYTES = WORDS * 4, ROUNDS = 50 };

/* A graph that reads what its allocation holds before anything is written, and then writes `value`. */
static rondo_exec *make_reader(test_fixture *t, uint32_t *out, uint32_t value) {
  rondo_graph *graph = test_graph(t);
  const test_allocation memory = test_add_alloc(graph, NULL, 0, BYTES, "read first");
  const rondo_copy copy = {.dst = out, .src = memory.words, .width = BYTES};
  rondo_node node = memory.node;
  assert_ok(rondo_graph_add_copy(graph, &node, 1, &copy, &node));
  node = test_add_set(t, graph, node, memory.words, WORDS, value);
  test_add_free(graph, node, memory.words);
  return test_exec_of(graph);
}

/* GM-2: contents do not last past the free: the pages are the next graph's of the stream by then, and what that wrote
 * is what is found; where each allocation has pages of its own, they are filled again. */
TEST(test_gm2_contents_end_with_the_free) {
  uint32_t *out = test_words(t, 2 * WORDS);
  rondo_exec *execs[2] = {make_reader(t, out, 1), make_reader(t, out + WORDS, 2)};
  for (int i = 0; i < 3; i++)
    for (int k = 0; k < 2; k++) assert_ok(rondo_exec_launch(execs[k], t->stream));
  test_assert_all(t, out, WORDS, test_is_guarded(t) ? 0x7ffcdeadu : 2);
  test_assert_all(t, out + WORDS, WORDS, test_is_guarded(t) ? 0x7ffcdeadu : 1);
}

/* GM-4: graph and exec are destroyed. Live memory keeps its contents until another graph frees it, or it is freed in
 * stream order or immediately. */
TEST(test_gm4_what_is_left_is_freed_in_each_way) {
  for (uint32_t way = 0; way < 3; way++) {
    rondo_graph *graph = test_graph(t), *freeing = test_graph(t);
    const test_allocation kept = test_add_alloc(graph, NULL, 0, BYTES, "kept");
    test_add_set(t, graph, kept.node, kept.words, WORDS, 40 + way);
    rondo_exec *exec = test_instantiate(graph);
    assert_ok(rondo_exec_launch(exec, t->stream));
    if (way == 0) test_add_free(freeing, (rondo_node){0}, kept.words);
    rondo_exec_destroy(exec);
    test_graph_destroy(graph);
    test_assert_all(t, kept.words, WORDS, 40 + way);
    assert_int_equal(test_memory_statistics(t).graph_used, test_whole_pages(t, BYTES));
    if (way == 0) test_run_once(t, freeing);
    if (way == 1) assert_ok(rondo_free_async(t->stream, kept.words));
    if (way == 2) assert_ok(rondo_free(t->device, kept.words));
    assert_error(rondo_free(t->device, kept.words), RONDO_INVALID_LIFETIME, RONDO_REASON_DOUBLE_FREE);
    test_graph_destroy(freeing);
    assert_ok(rondo_graph_memory_trim(t->device));
    assert_int_equal(test_memory_statistics(t).graph_reserved, 0);
  }
}

/* GM-9: within a graph the second allocation has the bytes of the first, which all blocks of its last user have read by
 * then; from launch to launch, and from graph to graph, the same. */
TEST_WORKERS(test_gm9_bytes_are_reused_after_whole_operations) {
  uint32_t *out = test_words(t, 3 * WORDS);
  rondo_graph *graph = test_graph(t);
  rondo_node node = {0};
  uint32_t *words[2];
  for (uint32_t i = 0; i < 2; i++) {
    const test_allocation memory = test_add_alloc(graph, &node, i > 0, BYTES, "in turn");
    words[i] = memory.words;
    node = test_add_set(t, graph, memory.node, memory.words, WORDS, i + 1);
    node = test_add_read(t, graph, node, memory.words, out + i * WORDS, WORDS);
    node = test_add_free(graph, node, memory.words);
  }
  if (!test_is_guarded(t)) assert_ptr_equal(words[0], words[1]);
  rondo_exec *first = test_instantiate(graph), *second = test_scratch_exec(t, out + 2 * WORDS, WORDS, BYTES, 3);
  test_graph_destroy(graph);
  for (int round = 0; round < ROUNDS; round++) {
    for (int i = 0; i < 4; i++) assert_ok(rondo_exec_launch(i % 2 == 0 ? first : second, t->stream));
    for (uint32_t i = 0; i < 3; i++) test_assert_all(t, out + i * WORDS, WORDS, (i + 1) * 32);
  }
}

/* GM-9: memory that one exec left alive is freed after work that still reads it. Another exec of the graph, which frees
 * the same memory itself, waits for that on its own stream before it writes. */
TEST_WORKERS(test_gm9_relatives_wait_for_a_free_on_another_stream) {
  test_skip_if_serial();
  uint32_t *out = test_words(t, 2 * WORDS);
  rondo_stream *reader = test_stream(t, "reader");
  rondo_graph *graph = test_graph(t);
  const test_allocation memory = test_add_alloc(graph, NULL, 0, BYTES, "memory");
  rondo_node last = test_add_set(t, graph, memory.node, memory.words, WORDS, 5);
  rondo_exec *keeps = test_instantiate(graph);
  last = test_add_set(t, graph, last, memory.words, WORDS, 7);
  last = test_add_read(t, graph, last, memory.words, out + WORDS, WORDS);
  test_add_free(graph, last, memory.words);
  rondo_exec *frees = test_exec_of(graph);
  for (int round = 0; round < 2; round++) {
    test_gate gate;
    test_gate_init(&gate);
    assert_ok(rondo_exec_launch(keeps, t->stream));
    test_order(t, t->stream, reader);
    test_gate_hold(&gate, reader);
    assert_ok(rondo_copy_async(reader, out, memory.words, BYTES));
    assert_ok(rondo_free_async(reader, memory.words));
    assert_ok(rondo_exec_launch(frees, t->stream));
    test_sleep_ms(20); /* enough for one that does not wait */
    assert_status(rondo_stream_query(t->stream), RONDO_NOT_READY);
    test_gate_open(&gate);
    assert_ok(rondo_device_synchronize(t->device));
    test_assert_all(t, out, WORDS, 5);
    test_assert_all(t, out + WORDS, WORDS, 7 * 32);
    test_gate_destroy(&gate);
  }
}

static uint64_t remaps_of(test_fixture *t) {
  assert_ok(rondo_device_synchronize(t->device));
  return test_memory_statistics(t).remaps;
}

/* GM-13: memory is mapped again after a trim, and when an upload moves it to another stream; not by launches, on
 * whatever streams, nor by other live memory, nor by graphs that are created and destroyed. */
TEST(test_gm13_what_maps_again) {
  rondo_stream *other = test_stream(t, "other");
  uint32_t *out = test_words(t, WORDS);
  rondo_exec *exec = test_scratch_exec(t, out, WORDS, 4 * BYTES, 1);
  assert_ok(rondo_exec_launch(exec, t->stream));
  assert_int_equal(remaps_of(t), 0); /* the first mapping is none */
  const uint64_t held = test_statistics(t).mapped_bytes;
  for (int i = 0; i < 6; i++) assert_ok(rondo_exec_launch(exec, i % 2 == 0 ? other : t->stream));
  assert_int_equal(remaps_of(t), 0);
  rondo_graph *graph = test_graph(t);
  const test_allocation kept = test_add_alloc(graph, NULL, 0, BYTES, "kept");
  rondo_exec *keeper = test_exec_of(graph);
  for (int i = 0; i < 3; i++) {
    assert_ok(rondo_exec_launch(keeper, t->stream));
    assert_ok(rondo_exec_launch(exec, t->stream));
    assert_ok(rondo_free_async(t->stream, kept.words));
    rondo_exec *passing = test_scratch_exec(t, out, WORDS, 2 * BYTES, 2);
    assert_ok(rondo_exec_launch(passing, t->stream));
    rondo_exec_destroy(passing);
  }
  assert_int_equal(remaps_of(t), 0);
  assert_ok(rondo_exec_upload(exec, t->stream)); /* where it is */
  assert_int_equal(remaps_of(t), 0);
  assert_ok(rondo_exec_upload(exec, other));
  assert_int_equal(remaps_of(t), 1);
  assert_ok(rondo_graph_memory_trim(t->device));
  assert_int_equal(remaps_of(t), 1);
  assert_true(test_statistics(t).mapped_bytes < held);
  assert_ok(rondo_exec_launch(exec, other));
  assert_int_equal(remaps_of(t), 2);
  test_assert_all(t, out, WORDS, 32);
}

/* GM-20: a node and edges are removed from a graph with memory, by hand, where no reuse relies on them; CUDA refuses
 * both. */
TEST(test_gm20_a_memory_graph_loses_nodes_and_edges) {
  uint32_t *out = test_words(t, WORDS);
  rondo_graph *graph = test_graph(t);
  const test_allocation memory = test_add_alloc(graph, NULL, 0, BYTES, "scratch");
  const rondo_node first = test_add_set(t, graph, memory.node, memory.words, WORDS, 1);
  const rondo_node second = test_add_set(t, graph, first, memory.words, WORDS, 2);
  const rondo_node read = test_add_read(t, graph, second, memory.words, out, WORDS);
  const rondo_node freed = test_add_free(graph, read, memory.words);
  assert_ok(rondo_graph_add_edges(graph, &second, &freed, 1));
  rondo_exec *before = test_instantiate(graph);
  assert_ok(rondo_graph_remove_edges(graph, &second, &freed, 1));
  assert_ok(rondo_graph_remove(graph, second));
  rondo_exec *exec = NULL;
  assert_fails(rondo_instantiate(graph, NULL, &exec), RONDO_INVALID_LIFETIME); /* nothing orders the read now */
  assert_ok(rondo_graph_add_edges(graph, &first, &read, 1));
  exec = test_instantiate(graph);
  assert_ok(rondo_exec_launch(before, t->stream));
  test_assert_all(t, out, WORDS, 2 * 32);
  assert_ok(rondo_exec_launch(exec, t->stream));
  test_assert_all(t, out, WORDS, 32);
  assert_ok(rondo_graph_remove(graph, freed)); /* from now on the memory outlives the graph */
  rondo_exec *keeps = test_instantiate(graph);
  assert_ok(rondo_exec_launch(keeps, t->stream));
  assert_error(rondo_exec_launch(exec, t->stream), RONDO_INVALID_LIFETIME, RONDO_REASON_STILL_ALLOCATED);
  test_assert_all(t, memory.words, WORDS, 1);
  assert_ok(rondo_free_async(t->stream, memory.words));
  assert_ok(rondo_exec_launch(exec, t->stream));
  test_assert_all(t, out, WORDS, 32);
}
