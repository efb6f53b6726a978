/* SPDX-License-Identifier: MIT
 * What another thread does in the middle of a call, on the CPU device: a trim during a free of graph memory (GM-15),
 * and the destruction of the pool that an allocation grows (GM-19). The test interrupts the call where it allocates
 * host memory.
 */
#include <string.h>

#include "support/test_graph_memory.h"

enum { WORDS = 4096, BYTES = WORDS * 4 };

/* The other thread's part, and its result. */
typedef struct meanwhile {
  rondo_device *device;
  rondo_pool *pool;
  void *address;
  rondo_reason second_free;
  rondo_status status;
  bool was_called;
} meanwhile;

static void free_again_and_trim(void *user) {
  meanwhile *m = user;
  m->was_called = true;
  (void)!rondo_free(m->device, m->address);
  m->second_free = rondo_last_error()->reason;
  m->status = rondo_graph_memory_trim(m->device);
}

static void destroy_pool(void *user) {
  meanwhile *m = user;
  m->was_called = true;
  m->status = rondo_pool_destroy(m->pool);
}

static void on_thread_trim(void *user) { test_on_thread(free_again_and_trim, user); }
static void on_thread_destroy(void *user) { test_on_thread(destroy_pool, user); }

static void arm(test_fixture *t, void (*function)(void *user), meanwhile *m) {
  t->allocator.user = m;
  atomic_store(&t->allocator.meanwhile, function);
}

/* GM-15: the free comes after a copy that has not begun. A trim before the free is enqueued keeps the memory, and a
 * trim after both returns it. */
TEST_WORKERS(test_gm15_a_trim_while_memory_is_being_freed) {
  uint32_t *out = test_words(t, WORDS);
  rondo_stream *reader = test_stream(t, "reader");
  test_gate *gate = test_gate_make();
  rondo_graph *graph = test_graph(t);
  const test_allocation kept = test_add_alloc(graph, NULL, 0, BYTES, "kept");
  test_add_set(t, graph, kept.node, kept.words, WORDS, 9);
  test_run_once(t, graph);
  test_graph_destroy(graph);
  test_gate_hold(gate, reader);
  assert_ok(rondo_copy_async(reader, out, kept.words, BYTES));
  meanwhile m = {.device = t->device, .address = kept.words};
  arm(t, on_thread_trim, &m);
  assert_ok(rondo_free_async(reader, kept.words));
  assert_true(m.was_called);
  assert_int_equal(m.second_free, RONDO_REASON_DOUBLE_FREE);
  assert_int_equal(m.status, RONDO_OK);
  assert_int_equal(test_memory_statistics(t).graph_reserved, test_whole_pages(t, BYTES));
  test_gate_open(gate);
  assert_ok(rondo_stream_synchronize(reader));
  test_assert_all(t, out, WORDS, 9);
  assert_ok(rondo_graph_memory_trim(t->device));
  assert_int_equal(test_memory_statistics(t).graph_reserved, 0);
}

/* GM-19: the current pool is destroyed while an allocation grows it. The allocation still belongs to that pool, and the
 * pool is freed with it. */
TEST(test_gm19_the_end_of_a_pool_that_grows) {
  const rondo_pool_options options = {RONDO_POOL_OPTIONS_INIT, .name = "passing"};
  meanwhile m = {.device = t->device};
  assert_ok(rondo_pool_create(t->device, &options, &m.pool));
  assert_ok(rondo_device_set_pool(t->device, m.pool));
  arm(t, on_thread_destroy, &m);
  void *address = test_allocate_async(t->stream, BYTES);
  assert_true(m.was_called);
  assert_int_equal(m.status, RONDO_OK);
  rondo_pool *current = NULL, *usual = NULL;
  assert_ok(rondo_device_get_pool(t->device, &current));
  assert_ok(rondo_device_get_default_pool(t->device, &usual));
  assert_ptr_equal(current, usual);
  const rondo_fill fill = {.dst = address, .value = 3, .element_bytes = 4, .width = WORDS};
  assert_ok(rondo_fill_async(t->stream, &fill));
  test_assert_all(t, address, WORDS, 3);
  assert_true(test_memory_statistics(t).pool_reserved > 0);
  assert_ok(rondo_free_async(t->stream, address));
  assert_ok(rondo_stream_synchronize(t->stream));
  assert_int_equal(test_memory_statistics(t).pool_reserved, 0);
}
