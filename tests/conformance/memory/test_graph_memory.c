/* SPDX-License-Identifier: MIT
 * Graph memory: alloc and free nodes, their addresses and lifetimes, sharing of bytes, and the error of each misuse.
 * Requirements GM-2, GM-4, GM-6, GM-7, GM-10 to GM-13, GM-15, GM-18, GM-20 in part; test_graph_memory_order.c has
 * memory that outlives its graph, graph/test_verify.c accesses outside a lifetime, graph/test_cuda_guide.c uploads,
 * figures and automatic freeing.
 */
#include "support/test_graph_memory.h"

enum { WORDS = 4096, BYTES = WORDS * 4 };

/* Nodes and addresses --------------------------------------------------------------------------------------------- */

/* GM-6: the node API, and parameters read back. */
TEST(test_gm6_parameters_read_back) {
  rondo_graph *graph = test_graph(t);
  const test_allocation made = test_add_alloc(graph, NULL, 0, 1000, "weights");
  const rondo_node freed = test_add_free(graph, made.node, made.words);
  rondo_node_params params;
  assert_ok(rondo_graph_get_params(graph, made.node, &params));
  assert_int_equal(params.kind, RONDO_NODE_ALLOC);
  assert_int_equal(params.as.alloc.bytes, 1000);
  assert_ptr_equal(params.as.alloc.address, made.words);
  assert_string_equal(params.as.alloc.name, "weights");
  assert_ok(rondo_graph_get_params(graph, freed, &params));
  assert_int_equal(params.kind, RONDO_NODE_FREE);
  assert_ptr_equal(params.as.free_address, made.words);
  params = (rondo_node_params){.kind = RONDO_NODE_ALLOC, .as.alloc = {.bytes = 5000, .name = "more"}};
  rondo_node node = {0};
  assert_ok(rondo_graph_add(graph, &freed, 1, &params, &node));
  assert_non_null(params.as.alloc.address);
}

TEST(test_gm6_bad_sizes_are_refused) {
  rondo_graph *graph = test_graph(t);
  rondo_node node = {0};
  void *address = t;
  assert_invalid(rondo_graph_add_alloc(graph, NULL, 0, 0, NULL, &address, &node), RONDO_REASON_BAD_SIZE);
  assert_null(address);
  address = t;
  assert_true(rondo_graph_add_alloc(graph, NULL, 0, SIZE_MAX / 2, "vast", &address, &node) != RONDO_OK);
  assert_null(address);
  assert_fails(rondo_graph_add_alloc(graph, NULL, 0, 64, NULL, NULL, &node), RONDO_INVALID_ARGUMENT);
  size_t count = 1;
  assert_ok(rondo_graph_nodes(graph, NULL, &count));
  assert_int_equal(count, 0);
  test_add_alloc(graph, NULL, 0, 64, NULL);
}

/* GM-2: one address for all execs, clones and launches. */
TEST(test_gm2_the_address_is_fixed) {
  uint32_t *out = test_words(t, WORDS);
  rondo_graph *graph = test_scratch_graph(t, out, WORDS, BYTES, 3), *clone = NULL;
  assert_ok(rondo_graph_clone(graph, &clone));
  rondo_node nodes[4], mate = {0};
  size_t count = 4;
  rondo_node_params params, mate_params;
  assert_ok(rondo_graph_nodes(graph, nodes, &count));
  assert_ok(rondo_graph_get_params(graph, nodes[0], &params));
  assert_ok(rondo_graph_find_in_clone(clone, nodes[0], &mate));
  assert_ok(rondo_graph_get_params(clone, mate, &mate_params));
  assert_ptr_equal(params.as.alloc.address, mate_params.as.alloc.address);
  rondo_exec *execs[3] = {test_instantiate(graph), test_instantiate(graph), test_instantiate(clone)};
  test_graph_destroy(graph);
  test_graph_destroy(clone);
  for (int i = 0; i < 30; i++) {
    assert_ok(rondo_fill_async(t->stream, &(rondo_fill){.dst = out, .element_bytes = 4, .width = WORDS}));
    assert_ok(rondo_exec_launch(execs[i % 3], t->stream));
    test_assert_all(t, out, WORDS, 3 * 32);
  }
}

/* GM-7: stream-ordered malloc and free become nodes, fork and join by events become edges: the CUDA guide's
 * graph, captured. */
TEST(test_gm7_captured_as_nodes_and_edges) {
  rondo_stream *side = test_stream(t, "side");
  rondo_event *forked = test_event(t), *joined = test_event(t);
  uint32_t *out = test_words(t, 2 * WORDS), *right = out + WORDS, value = 5;
  rondo_kernel *set = test_kernel(t, TEST_KERNEL_SET), *combine = test_kernel(t, TEST_KERNEL_COMBINE);
  const rondo_malloc_options options = {RONDO_MALLOC_OPTIONS_INIT, .name = "dptr"};
  const rondo_grid grid = {WORDS, 0, 0};
  void *dptr = NULL;
  assert_ok(rondo_capture_begin(t->stream, RONDO_CAPTURE_GLOBAL));
  assert_ok(rondo_malloc_async(t->stream, BYTES, &options, &dptr));
  assert_ok(rondo_launch(t->stream, set, grid, RONDO_ARGS(&value, &dptr)));
  assert_ok(rondo_event_record(forked, t->stream));
  assert_ok(rondo_stream_wait_event(side, forked));
  assert_ok(rondo_launch(t->stream, combine, grid, RONDO_ARGS(&dptr, &dptr, &out)));
  assert_ok(rondo_launch(side, combine, grid, RONDO_ARGS(&dptr, &dptr, &right)));
  assert_ok(rondo_event_record(joined, side));
  assert_ok(rondo_stream_wait_event(t->stream, joined));
  assert_ok(rondo_free_async(t->stream, dptr));
  rondo_graph *graph = test_capture_end(t->stream);
  rondo_node from[6], to[6];
  size_t count = 6;
  assert_ok(rondo_graph_edges(graph, from, to, &count));
  assert_int_equal(count, 5);
  static const uint32_t expected[5][2] = {{0, 1}, {1, 2}, {1, 3}, {2, 4}, {3, 4}};
  for (int i = 0; i < 5; i++) {
    assert_int_equal(rondo_node_number(from[i]), expected[i][0]);
    assert_int_equal(rondo_node_number(to[i]), expected[i][1]);
  }
  rondo_exec *exec = test_instantiate(graph);
  for (int i = 0; i < 3; i++) assert_ok(rondo_exec_launch(exec, t->stream));
  test_assert_all(t, out, WORDS, 5 * 32);
  test_assert_all(t, right, WORDS, 5 * 32);
}

/* Order ----------------------------------------------------------------------------------------------------------- */

/* GM-18: a free node of memory that no graph has any more finds nothing, also where the address is still known, and the
 * memory is freed once. */
TEST(test_gm18_a_free_of_a_destroyed_graphs_memory_is_refused) {
  const rondo_instantiate_options options = {RONDO_INSTANTIATE_OPTIONS_INIT, .skip_verify = true};
  rondo_graph *owner = test_graph(t), *freeing = test_graph(t);
  const test_allocation memory = test_add_alloc(owner, NULL, 0, BYTES, "gone");
  test_add_free(freeing, (rondo_node){0}, memory.words);
  test_graph_destroy(owner);
  for (int i = 0; i < 2; i++) {
    rondo_exec *exec = NULL;
    assert_fails(rondo_instantiate(freeing, i == 0 ? &options : NULL, &exec), RONDO_INVALID_LIFETIME);
    assert_null(exec);
    assert_ok(rondo_graph_memory_trim(t->device));
  }
  test_graph_destroy(freeing);
  assert_ok(rondo_graph_memory_trim(t->device));
}

/* GM-18: graphs that no launch could account for are refused without verification too. */
TEST(test_gm18_frees_are_paired_without_verification) {
  const rondo_instantiate_options options = {RONDO_INSTANTIATE_OPTIONS_INIT, .skip_verify = true};
  rondo_exec *exec = NULL;
  rondo_graph *backwards = test_graph(t), *twice = test_graph(t), *inside = test_graph(t);
  test_allocation memory = test_add_alloc(backwards, NULL, 0, BYTES, "backwards");
  const rondo_node freed = test_add_free(backwards, (rondo_node){0}, memory.words);
  assert_ok(rondo_graph_add_edges(backwards, &freed, &memory.node, 1));
  assert_error(rondo_instantiate(backwards, NULL, &exec), RONDO_INVALID_LIFETIME, RONDO_REASON_NOT_ALLOCATED);
  assert_message("backwards");
  assert_error(rondo_instantiate(backwards, &options, &exec), RONDO_INVALID_LIFETIME, RONDO_REASON_NOT_ALLOCATED);
  assert_message("is not ordered after its alloc node");
  assert_null(exec);

  memory = test_add_alloc(twice, NULL, 0, BYTES, "twice");
  (void)test_add_free(inside, (rondo_node){0}, memory.words);
  rondo_node first, second;
  assert_ok(rondo_graph_add_child(twice, &memory.node, 1, inside, &first));
  assert_ok(rondo_graph_add_child(twice, &first, 1, inside, &second));
  assert_error(rondo_instantiate(twice, &options, &exec), RONDO_INVALID_LIFETIME, RONDO_REASON_DOUBLE_FREE);
  assert_message("remove one of them");
  assert_null(exec);
}

/* GM-4: destroying a graph and its execs frees no live allocation; GM-10: nor does it lose it. */
TEST(test_gm4_live_memory_outlives_graph_and_exec) {
  uint32_t *out = test_words(t, WORDS);
  rondo_graph *graph = test_graph(t);
  const test_allocation kept = test_add_alloc(graph, NULL, 0, BYTES, "kept");
  test_add_set(t, graph, kept.node, kept.words, WORDS, 6);
  rondo_exec *exec = test_instantiate(graph);
  assert_ok(rondo_exec_launch(exec, t->stream));
  rondo_exec_destroy(exec);
  test_graph_destroy(graph);
  rondo_exec *scratch = test_scratch_exec(t, out, WORDS, 4 * BYTES, 1); /* others are created and destroyed */
  for (int i = 0; i < 3; i++) assert_ok(rondo_exec_launch(scratch, t->stream));
  rondo_exec_destroy(scratch);
  test_assert_all(t, kept.words, WORDS, 6);
  assert_ok(rondo_free(t->device, kept.words));
}

/* Relaunching ----------------------------------------------------------------------------------------------------- */

/* GM-10: an unfreed allocation keeps its graph from being launched again. */
TEST(test_gm10_relaunch_with_a_live_allocation_is_refused) {
  rondo_graph *graph = test_graph(t);
  const test_allocation kept = test_add_alloc(graph, NULL, 0, BYTES, "kept");
  rondo_exec *exec = test_instantiate(graph);
  for (int i = 0; i < 3; i++) {
    assert_ok(rondo_exec_launch(exec, t->stream));
    assert_error(rondo_exec_launch(exec, t->stream), RONDO_INVALID_LIFETIME, RONDO_REASON_STILL_ALLOCATED);
    assert_message("kept");
    if (i == 0) {
      assert_ok(rondo_free_async(t->stream, kept.words)); /* queued is enough */
    } else {
      assert_ok(rondo_stream_synchronize(t->stream));
      assert_ok(rondo_free(t->device, kept.words));
    }
  }
}

/* GM-10: the producer with two consumers of the CUDA guide, with automatic freeing: loops and leaks nothing. */
TEST(test_gm10_a_producer_with_two_consumers) {
  uint32_t *out = test_words(t, 2 * WORDS);
  rondo_graph *graphs[3] = {test_graph(t), test_graph(t), test_graph(t)};
  const test_allocation first = test_add_alloc(graphs[0], NULL, 0, BYTES, "data1");
  const test_allocation second = test_add_alloc(graphs[0], &first.node, 1, BYTES, "data2");
  rondo_node node = test_add_set(t, graphs[0], second.node, first.words, WORDS, 3);
  test_add_set(t, graphs[0], node, second.words, WORDS, 4);
  rondo_exec *execs[3] = {NULL};
  const rondo_instantiate_options options = {RONDO_INSTANTIATE_OPTIONS_INIT, .auto_free_on_launch = true};
  assert_ok(rondo_instantiate(graphs[0], &options, &execs[0]));
  uint32_t *const data[2] = {first.words, second.words};
  for (int i = 0; i < 2; i++) {
    const uint32_t *words = data[i];
    uint32_t *result = out + i * WORDS;
    assert_ok(rondo_graph_add_kernel(graphs[1 + i], NULL, 0, test_kernel(t, TEST_KERNEL_COMBINE),
                                     (rondo_grid){WORDS, 0, 0}, RONDO_ARGS(&words, &words, &result), &node));
    execs[1 + i] = test_instantiate(graphs[1 + i]);
  }
  for (int i = 0; i < 3; i++) test_graph_destroy(graphs[i]);
  uint64_t reserved = 0;
  for (int i = 0; i < 50; i++) {
    assert_ok(rondo_exec_launch(execs[0], t->stream));
    assert_ok(rondo_exec_launch(execs[1], t->stream));
    if (i % 3 == 0) assert_ok(rondo_exec_launch(execs[2], t->stream));
    if (i == 2) reserved = test_memory_statistics(t).graph_reserved;
  }
  test_assert_all(t, out, WORDS, 3 * 32);
  test_assert_all(t, out + WORDS, WORDS, 4 * 32);
  assert_int_equal(test_memory_statistics(t).graph_reserved, reserved);
  for (int i = 0; i < 2; i++) assert_ok(rondo_free_async(t->stream, data[i]));
  for (int i = 0; i < 3; i++) rondo_exec_destroy(execs[i]);
}

/* Sharing --------------------------------------------------------------------------------------------------------- */

static bool overlap(const test_allocation *a, const test_allocation *b, size_t words) {
  return a->words < b->words + words && b->words < a->words + words;
}

/* GM-11: reuse after a free that comes before, never without that order. */
TEST(test_gm11_addresses_are_reused_in_order_only) {
  rondo_graph *graph = test_graph(t);
  const test_allocation first = test_add_alloc(graph, NULL, 0, BYTES, "first");
  const rondo_node freed = test_add_free(graph, first.node, first.words);
  const test_allocation second = test_add_alloc(graph, &freed, 1, BYTES, "second");
  const bool reuses = !test_is_guarded(t); /* otherwise it may, but never does */
  if (reuses) assert_ptr_equal(second.words, first.words);
  if (!reuses) assert_false(overlap(&second, &first, WORDS));
  const rondo_node freed_again = test_add_free(graph, second.node, second.words);
  /* after the first free, not ordered with the second: neither may share with it */
  const test_allocation third = test_add_alloc(graph, &freed, 1, BYTES, "third");
  const test_allocation fourth = test_add_alloc(graph, NULL, 0, BYTES, "fourth");
  assert_false(overlap(&third, &second, WORDS));
  assert_false(overlap(&fourth, &second, WORDS));
  assert_false(overlap(&fourth, &third, WORDS));
  const test_allocation fifth = test_add_alloc(graph, &freed_again, 1, BYTES, "fifth");
  if (reuses) assert_ptr_equal(fifth.words, first.words);
  test_add_free(graph, third.node, third.words);
  test_add_free(graph, fourth.node, fourth.words);
  test_add_free(graph, fifth.node, fifth.words);
  rondo_exec *exec = test_instantiate(graph);
  for (int i = 0; i < 5; i++) assert_ok(rondo_exec_launch(exec, t->stream));
  assert_ok(rondo_stream_synchronize(t->stream));
}

/* GM-11: an edge that a reuse relies on is not taken away. */
TEST(test_gm11_what_a_reuse_relies_on_is_kept) {
  if (test_is_guarded(t)) skip(); /* nothing relies on it */
  rondo_graph *graph = test_graph(t);
  const test_allocation first = test_add_alloc(graph, NULL, 0, BYTES, "first");
  const rondo_node freed = test_add_free(graph, first.node, first.words);
  const test_allocation second = test_add_alloc(graph, &freed, 1, BYTES, "second");
  assert_ptr_equal(second.words, first.words);
  assert_error(rondo_graph_remove_edges(graph, &freed, &second.node, 1), RONDO_INVALID_STATE, RONDO_REASON_EDGE_IN_USE);
  assert_message("first");
  assert_message("second");
  assert_error(rondo_graph_remove(graph, freed), RONDO_INVALID_STATE, RONDO_REASON_EDGE_IN_USE);
  assert_message("rondo_graph_remove: free (node 1): alloc ");
  assert_ok(rondo_graph_remove(graph, second.node));
  assert_ok(rondo_graph_remove(graph, freed));
}

/* Mapping --------------------------------------------------------------------------------------------------------- */

/* GM-13: mappings are kept between launches, also when graphs take turns. */
TEST(test_gm13_steady_launches_map_nothing) {
  uint32_t *out = test_words(t, WORDS);
  rondo_exec *execs[2] = {test_scratch_exec(t, out, WORDS, BYTES, 1), test_scratch_exec(t, out, WORDS, 8 * BYTES, 2)};
  for (int i = 0; i < 4; i++) assert_ok(rondo_exec_launch(execs[i % 2], t->stream));
  assert_ok(rondo_stream_synchronize(t->stream));
  const uint64_t maps = test_statistics(t).maps, mapped = test_statistics(t).mapped_bytes;
  const uint64_t remaps = test_memory_statistics(t).remaps;
  for (int i = 0; i < 200; i++) assert_ok(rondo_exec_launch(execs[i % 2], t->stream));
  assert_ok(rondo_stream_synchronize(t->stream));
  assert_int_equal(test_statistics(t).maps, maps);
  assert_int_equal(test_statistics(t).mapped_bytes, mapped);
  assert_int_equal(test_memory_statistics(t).remaps, remaps);
}

/* GM-15: trim gives back what nobody uses; later launches map again; live memory stays. */
TEST(test_gm15_trim_gives_unused_memory_back) {
  uint32_t *out = test_words(t, WORDS);
  rondo_exec *exec = test_scratch_exec(t, out, WORDS, 64 * BYTES, 5);
  rondo_graph *graph = test_graph(t);
  const test_allocation kept = test_add_alloc(graph, NULL, 0, BYTES, "kept");
  test_add_set(t, graph, kept.node, kept.words, WORDS, 8);
  rondo_exec *keeper = test_exec_of(graph);
  assert_ok(rondo_exec_launch(keeper, t->stream));
  assert_ok(rondo_exec_launch(exec, t->stream));
  const uint64_t held = test_memory_statistics(t).graph_reserved;
  assert_true(held >= 64 * BYTES);
  assert_ok(rondo_graph_memory_trim(t->device));
  const uint64_t trimmed = test_memory_statistics(t).graph_reserved;
  assert_true(trimmed >= BYTES && trimmed <= held - 63 * BYTES);
  test_assert_all(t, kept.words, WORDS, 8);
  assert_ok(rondo_exec_launch(exec, t->stream));
  test_assert_all(t, out, WORDS, 5 * 32);
  assert_true(test_memory_statistics(t).graph_reserved > trimmed);
  assert_ok(rondo_free_async(t->stream, kept.words));
  rondo_exec_destroy(exec);
  rondo_exec_destroy(keeper);
  assert_ok(rondo_stream_synchronize(t->stream));
  assert_ok(rondo_graph_memory_trim(t->device));
  assert_int_equal(test_memory_statistics(t).graph_reserved, 0);
}

/* GM-13: another stream is taken too, with right contents; launches stay one after another. */
TEST(test_gm13_launches_move_between_streams) {
  rondo_stream *other = test_stream(t, "other");
  uint32_t *out = test_words(t, WORDS);
  rondo_exec *execs[2] = {test_scratch_exec(t, out, WORDS, BYTES, 1), test_scratch_exec(t, out, WORDS, 2 * BYTES, 2)};
  for (int i = 0; i < 40; i++) {
    assert_ok(rondo_exec_launch(execs[i % 2], (i / 2) % 2 == 0 ? t->stream : other));
    if (i % 2 == 1) assert_ok(rondo_device_synchronize(t->device));
  }
  test_assert_all(t, out, WORDS, 64);
}

/* GM-20: operations that CUDA refuses for graphs with memory: embedding, sequentially twice, and updating. */
TEST(test_gm20_a_memory_graph_is_embedded) {
  uint32_t *out = test_words(t, 2 * WORDS);
  rondo_graph *inner[2] = {test_scratch_graph(t, out, WORDS, BYTES, 3),
                           test_scratch_graph(t, out + WORDS, WORDS, 2 * BYTES, 4)};
  rondo_graph *outer = test_graph(t);
  rondo_node node = {0};
  for (int i = 0; i < 4; i++) assert_ok(rondo_graph_add_child(outer, &node, i > 0, inner[i % 2], &node));
  rondo_exec *exec = test_instantiate(outer);
  for (int i = 0; i < 2; i++) test_graph_destroy(inner[i]);
  test_graph_destroy(outer);
  for (int i = 0; i < 20; i++) {
    assert_ok(rondo_fill_async(t->stream, &(rondo_fill){.dst = out, .element_bytes = 4, .width = 2 * WORDS}));
    assert_ok(rondo_exec_launch(exec, t->stream));
    test_assert_all(t, out, WORDS, 3 * 32);
    test_assert_all(t, out + WORDS, WORDS, 4 * 32);
  }
}

/* GM-20: an exec with memory takes the parameters of a changed clone. */
TEST(test_gm20_a_memory_graph_is_updated) {
  uint32_t *out = test_words(t, WORDS);
  rondo_graph *graph = test_scratch_graph(t, out, WORDS, BYTES, 3), *clone = NULL;
  rondo_exec *exec = test_instantiate(graph);
  rondo_node nodes[4];
  rondo_node_params params;
  size_t count = 4;
  assert_ok(rondo_graph_clone(graph, &clone));
  assert_ok(rondo_graph_nodes(clone, nodes, &count));
  assert_ok(rondo_graph_get_params(clone, nodes[1], &params));
  const uint32_t value = 5;
  const void *args[2] = {&value, params.as.kernel.args[1]};
  params.as.kernel.args = args;
  assert_ok(rondo_graph_set_params(clone, nodes[1], &params));
  assert_ok(rondo_exec_launch(exec, t->stream));
  test_assert_all(t, out, WORDS, 3 * 32);
  assert_ok(rondo_exec_update(exec, clone, NULL));
  for (int i = 0; i < 3; i++) assert_ok(rondo_exec_launch(exec, t->stream));
  test_assert_all(t, out, WORDS, 5 * 32);
  test_graph_destroy(clone);
}
