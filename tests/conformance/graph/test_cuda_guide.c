/* SPDX-License-Identifier: MIT
 * The CUDA guide's programs for memory nodes that have no test elsewhere, each under its name; the others are
 * test_verify.c (the figure with nodes a to e), test_graph_memory.c (the same by capture),
 * test_graph_memory_order.c (memory used outside of its graph, in three ways) and test_peer_access.c (peer access by
 * the node API and by capture). Requirements GM-1, GM-10 to GM-16.
 */
#include "support/test_graph_memory.h"

enum { WORDS = 1024, BYTES = WORDS * 4 };

/* Support: pools are queried first, because memory nodes require them. */
TEST(test_gm1_the_guides_question_for_support) {
  rondo_device_info info = test_device_info(t->device);
  assert_true(info.memory_pools);
  assert_true(info.graph_memory);
}

static rondo_exec *end_and_instantiate(test_fixture *t, bool auto_free) {
  rondo_graph *graph = test_capture_end(t->stream);
  const rondo_instantiate_options options = {RONDO_INSTANTIATE_OPTIONS_INIT, .auto_free_on_launch = auto_free};
  rondo_exec *exec = test_instantiate_with(graph, &options);
  test_graph_destroy(graph);
  return exec;
}

static void launch_kernel(test_fixture *t, test_kernel_id id, const void *const *args, size_t count) {
  assert_ok(rondo_launch(t->stream, test_kernel(t, id), (rondo_grid){WORDS, 0, 0}, args, count));
}

/* The producer captures two allocations that it does not free; consumers are captured apart, the second of which runs
 * in some rounds only; the producer is instantiated with automatic freeing, and what the last round left is freed. */
TEST(test_gm10_the_guides_producer_and_two_consumers) {
  uint32_t *out = test_words(t, 2 * WORDS), *second = out + WORDS;
  const uint32_t values[2] = {3, 4};
  assert_ok(rondo_capture_begin(t->stream, RONDO_CAPTURE_GLOBAL));
  void *data1 = test_allocate_async(t->stream, BYTES);
  void *data2 = test_allocate_async(t->stream, BYTES);
  launch_kernel(t, TEST_KERNEL_SET, (const void *const[]){&values[0], &data1}, 2);
  launch_kernel(t, TEST_KERNEL_SET, (const void *const[]){&values[1], &data2}, 2);
  rondo_exec *producer = end_and_instantiate(t, true);
  assert_ok(rondo_capture_begin(t->stream, RONDO_CAPTURE_GLOBAL));
  launch_kernel(t, TEST_KERNEL_COMBINE, (const void *const[]){&data1, &data1, &out}, 3);
  rondo_exec *consumer1 = end_and_instantiate(t, false);
  assert_ok(rondo_capture_begin(t->stream, RONDO_CAPTURE_GLOBAL));
  launch_kernel(t, TEST_KERNEL_COMBINE, (const void *const[]){&data2, &data2, &second}, 3);
  rondo_exec *consumer2 = end_and_instantiate(t, false);
  rondo_memory_statistics first = {0};
  for (int i = 0; i < 20; i++) {
    assert_ok(rondo_exec_launch(producer, t->stream));
    assert_ok(rondo_exec_launch(consumer1, t->stream));
    if (i % 3 == 1) assert_ok(rondo_exec_launch(consumer2, t->stream));
    if (i == 0) first = test_memory_statistics(t);
  }
  assert_int_equal(test_memory_statistics(t).graph_reserved, first.graph_reserved);
  assert_int_equal(test_memory_statistics(t).remaps, first.remaps);
  test_assert_all(t, out, WORDS, 3 * 32);
  test_assert_all(t, second, WORDS, 4 * 32);
  assert_ok(rondo_free_async(t->stream, data1));
  assert_ok(rondo_free_async(t->stream, data2));
  rondo_exec_destroy(producer);
  rondo_exec_destroy(consumer1);
  rondo_exec_destroy(consumer2);
  assert_ok(rondo_stream_synchronize(t->stream));
  assert_ok(rondo_graph_memory_trim(t->device));
  assert_int_equal(test_memory_statistics(t).graph_reserved, 0);
}

/* Upload does all mapping in advance for its stream; a launch on another is a change of stream and is right all the
 * same, and upload there moves the memory. */
TEST(test_gm14_the_guides_upload) {
  rondo_stream *other = test_stream(t, "other");
  uint32_t *out = test_words(t, WORDS);
  rondo_exec *exec = test_scratch_exec(t, out, WORDS, 16 * BYTES, 4);
  assert_int_equal(test_memory_statistics(t).graph_reserved, 0); /* instantiating maps nothing */
  const uint64_t before = test_statistics(t).maps;
  assert_ok(rondo_exec_upload(exec, t->stream));
  const uint64_t maps = test_statistics(t).maps;
  assert_true(maps > before);
  const rondo_memory_statistics uploaded = test_memory_statistics(t);
  assert_true(uploaded.graph_reserved >= 16 * BYTES);
  for (int i = 0; i < 3; i++) assert_ok(rondo_exec_launch(exec, t->stream));
  assert_int_equal(test_statistics(t).maps, maps);
  assert_ok(rondo_exec_launch(exec, other));
  assert_ok(rondo_stream_synchronize(other));
  test_assert_all(t, out, WORDS, 4 * 32);
  assert_int_equal(test_memory_statistics(t).remaps, uploaded.remaps);
  assert_ok(rondo_exec_upload(exec, other));
  assert_int_equal(test_memory_statistics(t).remaps, uploaded.remaps + 1);
  const uint64_t moved = test_statistics(t).maps;
  for (int i = 0; i < 3; i++) assert_ok(rondo_exec_launch(exec, other));
  assert_ok(rondo_stream_synchronize(other));
  assert_int_equal(test_statistics(t).maps, moved);
  test_assert_all(t, out, WORDS, 4 * 32);
}

/* GM-15 and GM-16: trim and the four attributes: reserved and used, current and maximum; graph memory is separate from
 * the pools. */
TEST(test_gm15_the_guides_trim_and_attributes) {
  uint32_t *out = test_words(t, WORDS);
  void *pooled = test_allocate_async(t->stream, BYTES);
  assert_int_equal(test_memory_statistics(t).graph_used, 0);
  rondo_exec *exec = test_scratch_exec(t, out, WORDS, 16 * BYTES, 4);
  assert_ok(rondo_exec_launch(exec, t->stream));
  test_assert_all(t, out, WORDS, 4 * 32);
  const rondo_memory_statistics run = test_memory_statistics(t);
  assert_true(run.graph_used >= 16 * BYTES && run.graph_reserved == run.graph_used);
  assert_true(run.graph_used_high == run.graph_used && run.graph_reserved_high == run.graph_reserved);
  rondo_pool *pool = NULL;
  assert_ok(rondo_device_get_default_pool(t->device, &pool));
  assert_ok(rondo_pool_trim(pool, 0)); /* another pool than the graphs' */
  assert_int_equal(test_memory_statistics(t).graph_reserved, run.graph_reserved);
  const uint64_t in_pools = test_memory_statistics(t).pool_reserved;
  assert_ok(rondo_graph_memory_trim(t->device));
  rondo_memory_statistics now = test_memory_statistics(t);
  assert_int_equal(now.graph_used, 0);
  assert_int_equal(now.graph_reserved, 0);
  assert_int_equal(now.graph_used_high, run.graph_used_high);
  assert_int_equal(now.pool_reserved, in_pools);
  assert_ok(rondo_memory_reset_highs(t->device));
  now = test_memory_statistics(t);
  assert_true(now.graph_used_high == 0 && now.graph_reserved_high == 0);
  assert_ok(rondo_exec_launch(exec, t->stream)); /* maps again */
  test_assert_all(t, out, WORDS, 4 * 32);
  now = test_memory_statistics(t);
  assert_int_equal(now.graph_reserved, run.graph_reserved);
  assert_int_equal(now.graph_reserved_high, run.graph_reserved);
  assert_int_equal(now.remaps, run.remaps + 1);
  assert_ok(rondo_free_async(t->stream, pooled));
}
