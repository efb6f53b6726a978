/* SPDX-License-Identifier: MIT
 * GM-1 (M1): devices without memory nodes or without pools. A query reports it without an error, every call that needs
 * what is missing returns UNSUPPORTED and names it, and the rest works. Also the environment variables that disable
 * these, and limit memory, for programs that cannot be changed.
 */
#define _GNU_SOURCE
#include "support/rondo_test.h"

#include <stdlib.h>
#include <string.h>

static rondo_device *open_without(bool nodes, bool pools) {
  const rondo_device_options options = {RONDO_DEVICE_OPTIONS_INIT, .no_memory_nodes = nodes, .no_memory_pools = pools};
  rondo_device *device = NULL;
  assert_ok(rondo_device_open(test_device_name(), &options, &device));
  return device;
}

static void assert_missing(rondo_status status, const char *call, const char *what) {
  assert_int_equal(status, RONDO_UNSUPPORTED);
  assert_int_equal(rondo_last_error()->status, RONDO_UNSUPPORTED);
  assert_int_equal(rondo_last_error()->reason, RONDO_REASON_NOT_SUPPORTED);
  assert_message(call);
  assert_message(what);
}

/* Memory nodes, by building, capture and trimming. */
static void check_no_nodes(rondo_device *device, const char *what) {
  rondo_graph *graph = NULL;
  rondo_stream *stream = NULL;
  rondo_node node = {.id = 7};
  void *address = &node, *plain = NULL;
  rondo_node_params alloc = {.kind = RONDO_NODE_ALLOC, .as.alloc = {.bytes = 64}};
  assert_ok(rondo_graph_create(device, NULL, &graph));
  assert_ok(rondo_stream_create(device, NULL, &stream));
  assert_ok(rondo_malloc(device, 64, NULL, &plain));
  assert_missing(rondo_graph_add_alloc(graph, NULL, 0, 64, "x", &address, &node), "rondo_graph_add_alloc", what);
  assert_true(address == NULL && node.id == 0);
  assert_missing(rondo_graph_add_free(graph, NULL, 0, plain, &node), "rondo_graph_add_free", what);
  assert_missing(rondo_graph_add(graph, NULL, 0, &alloc, &node), "rondo_graph_add", what);
  assert_missing(rondo_graph_memory_trim(device), "rondo_graph_memory_trim", what);
  assert_ok(rondo_capture_begin(stream, RONDO_CAPTURE_THREAD_LOCAL));
  assert_missing(rondo_malloc_async(stream, 64, NULL, &address), "rondo_malloc_async", what);
  assert_missing(rondo_free_async(stream, plain), "rondo_free_async", what);
  assert_ok(rondo_fill_async(stream, &(rondo_fill){.dst = plain, .value = 9, .element_bytes = 4, .width = 16}));
  rondo_graph *captured = test_capture_end(stream); /* which continues */
  rondo_exec *exec = test_instantiate(captured);
  uint32_t word = 0;
  assert_ok(rondo_exec_launch(exec, stream));
  assert_ok(rondo_copy_async(stream, &word, plain, 4));
  assert_ok(rondo_stream_synchronize(stream));
  assert_int_equal(word, 9);
  rondo_exec_destroy(exec);
  test_graph_destroy(captured);
  test_graph_destroy(graph);
  test_stream_destroy(stream);
  assert_ok(rondo_free(device, plain));
}

static void check_no_pools(rondo_device *device) {
  rondo_pool *pool = NULL;
  rondo_stream *stream = NULL;
  void *address = NULL, *plain = NULL;
  assert_ok(rondo_stream_create(device, NULL, &stream));
  assert_ok(rondo_malloc(device, 64, NULL, &plain));
  assert_missing(rondo_malloc_async(stream, 64, NULL, &address), "rondo_malloc_async", "no memory pools");
  assert_missing(rondo_free_async(stream, plain), "rondo_free_async", "no memory pools");
  assert_missing(rondo_profile_begin(stream), "rondo_profile_begin", "no memory pools");
  assert_missing(rondo_pool_create(device, NULL, &pool), "rondo_pool_create", "no memory pools");
  assert_missing(rondo_device_get_pool(device, &pool), "rondo_device_get_pool", "no memory pools");
  assert_missing(rondo_device_get_default_pool(device, &pool), "rondo_device_get_default_pool", "no memory pools");
  assert_missing(rondo_device_set_pool(device, NULL), "rondo_device_set_pool", "no memory pools");
  assert_null(pool);
  assert_ok(rondo_free(device, plain));
  test_stream_destroy(stream);
}

static void check_info(const rondo_device *device, bool nodes, bool pools) {
  rondo_device_info info = test_device_info(device);
  assert_int_equal(info.graph_memory, nodes);
  assert_int_equal(info.memory_pools, pools);
}

DEVICE_TEST(test_gm1_a_device_without_memory_nodes) {
  if (!test_device_is("cpu")) skip();
  rondo_device *device = open_without(true, false);
  rondo_stream *stream = NULL;
  void *address = NULL;
  check_info(device, false, true);
  check_no_nodes(device, "no memory nodes");
  assert_ok(rondo_stream_create(device, NULL, &stream));
  assert_ok(rondo_malloc_async(stream, 64, NULL, &address)); /* pools are there */
  assert_ok(rondo_free_async(stream, address));
  test_stream_destroy(stream);
  assert_ok(rondo_device_close(device));
}

DEVICE_TEST(test_gm1_a_device_without_pools) {
  if (!test_device_is("cpu")) skip();
  rondo_device *device = open_without(false, true);
  check_info(device, false, false);
  check_no_nodes(device, "no memory pools");
  check_no_pools(device);
  assert_ok(rondo_device_close(device));
}

/* RONDO_CPU_LACKS=memory_nodes and RONDO_CPU_MEMORY_LIMIT are set for this process. */
DEVICE_TEST(test_gm1_the_environment_says_so) {
  if (!test_device_is("cpu")) skip();
  rondo_device *device = open_without(false, false);
  void *address = NULL;
  check_info(device, false, true);
  check_no_nodes(device, "no memory nodes");
  assert_int_equal(test_device_info(device).memory_bytes, 8 << 20);
  assert_fails(rondo_malloc(device, (8 << 20) + 1, NULL, &address), RONDO_OUT_OF_MEMORY);
  assert_message("RONDO_CPU_MEMORY_LIMIT");
  assert_ok(rondo_device_close(device));
}

int main(void) {
  if (setenv("RONDO_CPU_LACKS", "memory_nodes", 1) != 0 || setenv("RONDO_CPU_MEMORY_LIMIT", "8388608", 1) != 0)
    return EXIT_FAILURE;
  return test_run_registered();
}
