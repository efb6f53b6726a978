/* SPDX-License-Identifier: MIT
 * Memory allocated immediately, in stream order and on the host: alignment, contents, reuse, figures, and the error of
 * every misuse (GM-18 outside graphs).
 */
#include "support/rondo_test.h"
#include "support/test_effort.h"

TEST(test_memory_at_once) {
  static const size_t sizes[] = {1, 255, 256, 4096, 1000003, 64 << 20};
  void *addresses[6];
  for (size_t i = 0; i < 6; i++) {
    assert_ok(rondo_malloc(t->device, sizes[i], "block", &addresses[i]));
    assert_true((uintptr_t)addresses[i] % 256 == 0);
  }
  assert_int_equal(test_memory_statistics(t).live_allocations, 6);
  for (uint32_t i = 0; i < 6; i++) { /* first and last byte of each */
    const unsigned char mark = (unsigned char)(i + 1);
    test_write(t, addresses[i], &mark, 1);
    test_write(t, (char *)addresses[i] + sizes[i] - 1, &mark, 1);
  }
  for (uint32_t i = 0; i < 6; i++) {
    unsigned char first = 0, last = 0;
    test_read(t, &first, addresses[i], 1);
    test_read(t, &last, (char *)addresses[i] + sizes[i] - 1, 1);
    assert_true(first == i + 1 && last == i + 1);
    assert_ok(rondo_free(t->device, addresses[i]));
  }
  assert_int_equal(test_memory_statistics(t).live_allocations, 0);
}

TEST(test_absurd_sizes_are_refused) {
  static const size_t sizes[] = {SIZE_MAX, SIZE_MAX - 4096, (size_t)1 << 60};
  for (size_t i = 0; i < 3; i++) {
    void *address = t;
    assert_fails(rondo_malloc(t->device, sizes[i], "vast", &address), RONDO_OUT_OF_MEMORY);
    assert_null(address);
    address = t;
    assert_fails(rondo_malloc_async(t->stream, sizes[i], NULL, &address), RONDO_OUT_OF_MEMORY);
    assert_null(address);
  }
  void *address = t;
  assert_fails(rondo_malloc(t->device, 0, NULL, &address), RONDO_INVALID_ARGUMENT);
  assert_null(address);
  assert_fails(rondo_malloc_async(t->stream, 0, NULL, &address), RONDO_INVALID_ARGUMENT);
  assert_fails(rondo_host_malloc(t->device, 0, &address), RONDO_INVALID_ARGUMENT);
  assert_ok(rondo_malloc(t->device, 4096, NULL, &address)); /* and memory can still be had */
  assert_ok(rondo_free(t->device, address));
}

/* GX-1, B4: a range that begins in a known allocation must end in it, in every call and for every beginning. */
static void check_range_ends(test_fixture *t, char *address, size_t bytes) {
  char outside[64] = {0};
  const rondo_fill vast = {.dst = address, .element_bytes = 4, .width = (size_t)1 << 40};
  const rondo_fill last = {.dst = address + bytes - 4, .element_bytes = 1, .width = 4};
  rondo_fill past = last;
  past.width = 5;
  assert_invalid(rondo_fill_async(t->stream, &vast), RONDO_REASON_OUT_OF_RANGE);
  assert_message("rondo_fill_async");
  assert_invalid(rondo_fill_async(t->stream, &past), RONDO_REASON_OUT_OF_RANGE);
  assert_invalid(rondo_copy_async(t->stream, address + bytes - 32, outside, 64), RONDO_REASON_OUT_OF_RANGE);
  assert_message("destination of 64 bytes");
  assert_invalid(rondo_copy_async(t->stream, outside, address + bytes - 32, 64), RONDO_REASON_OUT_OF_RANGE);
  assert_message("source of 64 bytes");
  const rondo_copy box = {.dst = address, .src = outside, .width = 4, .height = 2, .dst_pitch = bytes, .src_pitch = 4};
  assert_invalid(rondo_copy_box_async(t->stream, &box), RONDO_REASON_OUT_OF_RANGE);
  assert_ok(rondo_fill_async(t->stream, &last));
  assert_ok(rondo_copy_async(t->stream, address + bytes - 64, outside, 64));
  assert_ok(rondo_stream_synchronize(t->stream));
}

TEST(test_b4_work_stays_in_its_allocation) {
  enum { BYTES = 4096, COUNT = 40 };
  void *addresses[COUNT], *host = NULL;
  for (int i = 0; i < COUNT; i++) assert_ok(rondo_malloc(t->device, BYTES, "page", &addresses[i]));
  for (int i = 0; i < COUNT; i += 2) assert_ok(rondo_free(t->device, addresses[i]));
  for (int i = 1; i < COUNT; i += 2) check_range_ends(t, addresses[i], BYTES);
  const rondo_fill vast = {.dst = (char *)addresses[1] + 256, .element_bytes = 1, .width = BYTES};
  assert_invalid(rondo_fill_async(t->stream, &vast), RONDO_REASON_OUT_OF_RANGE);
  assert_message("fill of 4096 bytes at offset 256 passes the end of allocation 'page' of 4096 bytes");
  void *ordered = test_allocate_async(t->stream, 1000);
  check_range_ends(t, ordered, 1000);
  assert_ok(rondo_host_malloc(t->device, 1000, &host));
  check_range_ends(t, host, 1000);
  assert_ok(rondo_host_free(t->device, host));
  assert_ok(rondo_free_async(t->stream, ordered));
  for (int i = 1; i < COUNT; i += 2) assert_ok(rondo_free(t->device, addresses[i]));
}

/* The same for nodes: by building, capture and change, and in graph memory that nothing has allocated yet. */
TEST(test_b4_nodes_stay_in_their_allocations) {
  void *inside = NULL;
  rondo_node alloc, fill_node, node;
  void *address = test_allocate(t, 4096, "page");
  rondo_graph *graph = test_graph(t);
  assert_ok(rondo_graph_add_alloc(graph, NULL, 0, 4096, "scratch", &inside, &alloc));
  rondo_node_params good = {.kind = RONDO_NODE_FILL, .as.fill = {.dst = address, .element_bytes = 4, .width = 1024}};
  rondo_node_params bad = good;
  bad.as.fill.width = 1025;
  rondo_fill scratch = {.dst = inside, .element_bytes = 4, .width = 1025};
  assert_ok(rondo_graph_add(graph, &alloc, 1, &good, &fill_node));
  assert_invalid(rondo_graph_add(graph, &alloc, 1, &bad, &node), RONDO_REASON_OUT_OF_RANGE);
  assert_invalid(rondo_graph_set_params(graph, fill_node, &bad), RONDO_REASON_OUT_OF_RANGE);
  assert_invalid(rondo_graph_add_fill(graph, &alloc, 1, &scratch, &node), RONDO_REASON_OUT_OF_RANGE);
  assert_message("'scratch'");
  rondo_exec *exec = test_instantiate(graph);
  assert_invalid(rondo_exec_set_params(exec, fill_node, &bad), RONDO_REASON_OUT_OF_RANGE);
  assert_ok(rondo_exec_set_params(exec, fill_node, &good));
  rondo_exec_destroy(exec);
  test_graph_destroy(graph);
  graph = NULL;
  assert_ok(rondo_capture_begin(t->stream, RONDO_CAPTURE_THREAD_LOCAL));
  assert_invalid(rondo_fill_async(t->stream, &bad.as.fill), RONDO_REASON_OUT_OF_RANGE);
  assert_ok(rondo_fill_async(t->stream, &good.as.fill)); /* the capture continues */
  assert_ok(rondo_capture_end(t->stream, &graph));
  test_graph_destroy(graph);
  assert_ok(rondo_free(t->device, address));
}

TEST(test_host_memory_is_for_host_and_copies) {
  void *host = NULL;
  uint32_t *words = test_words(t, 100);
  assert_ok(rondo_host_malloc(t->device, 400, &host));
  assert_true((uintptr_t)host % 256 == 0);
  uint32_t *numbers = host;
  for (uint32_t i = 0; i < 100; i++) numbers[i] = i * i;
  assert_ok(rondo_copy_async(t->stream, words, host, 400));
  test_affine(t, t->stream, words, 100, 2, 1);
  assert_ok(rondo_copy_async(t->stream, host, words, 400));
  assert_ok(rondo_stream_synchronize(t->stream));
  for (uint32_t i = 0; i < 100; i++) assert_int_equal(numbers[i], 2 * i * i + 1);
  assert_ok(rondo_host_free(t->device, host));
}

/* Stream order ---------------------------------------------------------------------------------------------------- */

TEST(test_stream_ordered_memory) {
  uint32_t *out = test_words(t, 1), expected = 0;
  for (uint32_t i = 0; i < 300; i++) {
    void *address = test_allocate_async(t->stream, 4096 + 16 * i);
    assert_true((uintptr_t)address % 256 == 0);
    uint32_t *scratch = address;
    const uint32_t value = i, *left = scratch, *right = out;
    assert_ok(rondo_launch(t->stream, test_kernel(t, TEST_KERNEL_SET), (rondo_grid){1024, 0, 0},
                           RONDO_ARGS(&value, &scratch)));
    assert_ok(rondo_launch(t->stream, test_kernel(t, TEST_KERNEL_COMBINE), (rondo_grid){1, 0, 0},
                           RONDO_ARGS(&left, &right, &out)));
    assert_ok(rondo_free_async(t->stream, address));
    expected = i * 31 + expected;
  }
  assert_int_equal(test_word(t, out), expected);
}

/* GM-9 on streams: memory freed on a blocked stream is not given to another stream meanwhile. */
TEST_WORKERS(test_memory_pending_on_one_stream_is_not_given_to_another) {
  enum { COUNT = 1024, TRIES = 20 };
  rondo_stream *other = test_stream(t, "other");
  void *taken[TRIES];
  uint32_t *out = test_words(t, COUNT), expected[COUNT];
  test_gate *gate = test_gate_make();
  void *first = test_allocate_async(t->stream, COUNT * 4);
  const rondo_fill mine = {.dst = first, .value = 1, .element_bytes = 4, .width = COUNT};
  test_gate_hold(gate, t->stream);
  assert_ok(rondo_fill_async(t->stream, &mine));
  assert_ok(rondo_copy_async(t->stream, out, first, COUNT * 4));
  assert_ok(rondo_free_async(t->stream, first));
  for (int i = 0; i < TRIES; i++) {
    assert_ok(rondo_malloc_async(other, COUNT * 4, NULL, &taken[i]));
    assert_ptr_not_equal(taken[i], first);
    const rondo_fill theirs = {.dst = taken[i], .value = 2, .element_bytes = 4, .width = COUNT};
    assert_ok(rondo_fill_async(other, &theirs));
  }
  assert_ok(rondo_stream_synchronize(other));
  test_gate_open(gate);
  for (int i = 0; i < COUNT; i++) expected[i] = 1;
  assert_words(t, out, expected, COUNT);
  for (int i = 0; i < TRIES; i++) assert_ok(rondo_free_async(other, taken[i]));
}

/* The same stream may have it immediately, because its later work runs later. */
TEST(test_a_stream_reuses_what_it_freed) {
  test_gate *gate = test_gate_make();
  void *first = test_allocate_async(t->stream, 1 << 20);
  test_gate_hold(gate, t->stream);
  assert_ok(rondo_free_async(t->stream, first));
  const uint64_t reserved = test_memory_statistics(t).pool_reserved;
  void *again = test_allocate_async(t->stream, 1 << 20);
  assert_int_equal(test_memory_statistics(t).pool_reserved, reserved);
  assert_ok(rondo_free_async(t->stream, again));
  test_gate_open(gate);
  assert_ok(rondo_stream_synchronize(t->stream));
}

/* Memory may be allocated in one mode and freed in the other. */
TEST(test_ways_of_freeing_mix) {
  void *ordered = test_allocate_async(t->stream, 4096);
  void *immediate = test_allocate(t, 4096, NULL);
  assert_ok(rondo_stream_synchronize(t->stream));
  assert_ok(rondo_free(t->device, ordered));
  assert_ok(rondo_free_async(t->stream, immediate));
  assert_error(rondo_free(t->device, immediate), RONDO_INVALID_LIFETIME, RONDO_REASON_DOUBLE_FREE);
  assert_ok(rondo_stream_synchronize(t->stream));
  assert_int_equal(test_memory_statistics(t).live_allocations, 0);
}

TEST(test_figures_of_the_pool) {
  enum { BYTES = 8 << 20 };
  rondo_pool *pool = NULL;
  assert_ok(rondo_device_get_default_pool(t->device, &pool));
  assert_ok(rondo_pool_set_attribute(pool, RONDO_POOL_RELEASE_THRESHOLD, UINT64_MAX));
  const rondo_memory_statistics before = test_memory_statistics(t);
  void *address = test_allocate_async(t->stream, BYTES);
  rondo_memory_statistics now = test_memory_statistics(t);
  assert_true(now.pool_used >= before.pool_used + BYTES);
  assert_true(now.pool_used_high >= now.pool_used && now.pool_reserved >= now.pool_used);
  assert_ok(rondo_free_async(t->stream, address));
  assert_ok(rondo_stream_synchronize(t->stream));
  now = test_memory_statistics(t);
  assert_int_equal(now.pool_used, before.pool_used);
  assert_true(now.pool_used_high >= before.pool_used + BYTES);
  assert_true(now.pool_reserved >= BYTES); /* kept for the next */
  assert_ok(rondo_pool_trim(pool, UINT64_MAX));
  assert_int_equal(test_memory_statistics(t).pool_reserved, now.pool_reserved);
  assert_ok(rondo_pool_trim(pool, 0));
  assert_int_equal(test_memory_statistics(t).pool_reserved, before.pool_used);
  assert_ok(rondo_memory_reset_highs(t->device));
  now = test_memory_statistics(t);
  assert_int_equal(now.pool_used_high, now.pool_used);
  assert_int_equal(now.pool_reserved_high, now.pool_reserved);
}

/* Random sizes, random order of freeing, contents checked at the end of each life. */
TEST(test_random_lives_keep_their_contents) {
  enum { LIVE = 32 };
  const uint32_t steps = test_effort(1500);
  struct {
    uint32_t *words;
    size_t count;
    uint32_t value;
  } lives[LIVE] = {{0}};
  uint64_t random = 11;
  for (uint32_t step = 0; step < steps + LIVE; step++) {
    const uint32_t at = step < steps ? test_random_below(&random, LIVE) : step - steps;
    if (lives[at].words != NULL) {
      uint32_t first = 0, last = 0;
      assert_ok(rondo_copy_async(t->stream, &first, lives[at].words, 4));
      assert_ok(rondo_copy_async(t->stream, &last, lives[at].words + lives[at].count - 1, 4));
      assert_ok(rondo_stream_synchronize(t->stream));
      assert_true(first == lives[at].value && last == lives[at].value);
      assert_ok(rondo_free_async(t->stream, lives[at].words));
      lives[at].words = NULL;
    }
    if (step >= steps) continue;
    lives[at].count = 1 + test_random_below(&random, test_random_below(&random, 8) == 0 ? 500000 : 3000);
    lives[at].value = step;
    void *address = test_allocate_async(t->stream, lives[at].count * 4);
    lives[at].words = address;
    const rondo_fill fill = {.dst = address, .value = step, .element_bytes = 4, .width = lives[at].count};
    assert_ok(rondo_fill_async(t->stream, &fill));
  }
  assert_ok(rondo_stream_synchronize(t->stream));
  assert_int_equal(test_memory_statistics(t).live_allocations, 0);
}
