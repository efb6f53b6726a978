/* SPDX-License-Identifier: MIT
 * Recordings through internal functions: nodes that no library of the tests captures (RC-8), whose bytes are in a
 * private heap; and the report of a free of host memory to its observers (RC-9).
 */
#include "support/rondo_test.h"

#include "exec/stream/stream_internal.h"
#include "graph/graph.h"
#include "memory/host_memory.h"

static rondo_device_memory *memory_of(const test_fixture *t) {
  rondo_device_memory *memory = NULL;
  assert_ok(rondo_device_memory_of(t->device, &memory));
  return memory;
}

/* A conditional node in the capture, as a library may leave on CUDA. */
TEST(test_rc8_conditional_nodes_are_refused) {
  rondo_recording *recording = NULL;
  rondo_node before, node;
  rondo_node_params params = {
      .kind = RONDO_NODE_FOREIGN, .name = "if", .as.foreign = {.what = RONDO_FOREIGN_CONDITIONAL, .is_bound = true}};
  assert_ok(rondo_recording_create(t->device, NULL, &recording));
  assert_ok(rondo_recording_capture_begin(recording, t->stream, RONDO_CAPTURE_GLOBAL));
  rondo_capture_info info = test_capture_info(t->stream);
  assert_ok(rondo_graph_add_empty(info.graph, NULL, 0, &before));
  assert_ok(rondo_graph_insert(info.graph, &before, 1, &params, &node));
  assert_error(rondo_recording_capture_end(recording, t->stream), RONDO_UNSUPPORTED, RONDO_REASON_HOST_DECISION);
  assert_int_equal(rondo_last_error()->node, 1);
  assert_message("'if'");
  assert_message("the recording");
  assert_ok(rondo_recording_destroy(recording));
}

/* Private heaps are distinct from those of streams, and are reused when they are empty. */
TEST(test_rc3_private_heaps) {
  rondo_device_memory *memory = memory_of(t);
  rondo_heap *first = NULL, *second = NULL, *again = NULL, *shared = NULL;
  assert_ok(rondo_heap_acquire(memory, RONDO_HEAP_PRIVATE, &first));
  assert_ok(rondo_heap_acquire(memory, RONDO_HEAP_PRIVATE, &second));
  assert_ptr_not_equal(first, second);
  assert_int_equal(rondo_heap_bytes(first), 0);
  rondo_heap_abandon(first);
  assert_ok(rondo_heap_acquire(memory, RONDO_HEAP_PRIVATE, &again));
  assert_ptr_equal(again, first);
  rondo_heap_abandon(again);
  assert_ok(rondo_heap_acquire(memory, RONDO_HEAP_STREAM, &shared));
  assert_ptr_equal(shared, first);
  rondo_heap_release(shared);
  assert_ok(rondo_heap_acquire(memory, RONDO_HEAP_PRIVATE, &again)); /* not the heap of a stream */
  assert_ptr_not_equal(again, first);
  rondo_heap_abandon(again);
  rondo_heap_abandon(second);
  rondo_heap_abandon(NULL);
}

static rondo_host_address look(rondo_host_watch *watch, const void *address, uint32_t slot) {
  rondo_host_address where = RONDO_ADDRESS_FREED;
  assert_ok(rondo_host_watch_look(watch, address, NULL, slot, &where));
  return where;
}

TEST(test_rc9_watches_over_host_memory) {
  rondo_host_watch first, second, nothing = {.memory = NULL};
  unsigned char *host[3] = {NULL}, local = 0;
  void *device = NULL;
  for (int i = 0; i < 3; i++) assert_ok(rondo_host_malloc(t->device, 100, (void **)&host[i]));
  assert_ok(rondo_malloc(t->device, 100, NULL, &device));
  rondo_host_watch_begin(memory_of(t), &first);
  rondo_host_watch_begin(memory_of(t), &second);
  assert_int_equal(look(&first, device, 0), RONDO_ADDRESS_DEVICE);
  assert_int_equal(look(&first, &local, 0), RONDO_ADDRESS_FOREIGN);
  assert_int_equal(look(&first, host[0], 7), RONDO_ADDRESS_WATCHED);
  assert_int_equal(look(&first, host[1] + 99, 8), RONDO_ADDRESS_WATCHED);
  assert_int_equal(look(&first, host[1], 9), RONDO_ADDRESS_WATCHED);
  assert_int_equal(look(&second, host[1], 4), RONDO_ADDRESS_WATCHED);
  assert_int_equal(first.uses.count, 2);
  assert_ok(rondo_host_free(t->device, host[2]));
  assert_null(rondo_host_watch_freed(&first));
  assert_int_equal(look(&first, host[2], 0), RONDO_ADDRESS_FREED);
  assert_ok(rondo_host_free(t->device, host[1]));
  assert_int_equal(rondo_host_watch_freed(&first)->slot, 8);
  assert_int_equal(rondo_host_watch_freed(&second)->slot, 4);
  rondo_host_watch_end(&second);
  assert_ok(rondo_host_free(t->device, host[0]));
  assert_int_equal(rondo_host_watch_freed(&first)->slot, 8); /* the first one is still reported */
  rondo_host_watch_end(&first);
  rondo_host_watch_end(&nothing);
  assert_ok(rondo_free(t->device, device));
}
