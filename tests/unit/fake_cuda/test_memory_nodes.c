/* SPDX-License-Identifier: MIT
 * Memory nodes of the fake CUDA driver, as a foreign library leaves them in a capture: probes 1, 2, 4, 6, 28 and 29 of
 * docs/cuda-probes.md (rules M2 to M9).
 */
#include "unit/fake_cuda/fake_test.h"

enum { BYTES = 1000 };

/* A graph that allocates, fills with `value`, and frees if asked to. */

static cu_graph capture_allocation(const fixture *f, unsigned value, bool frees, cu_address *address) {
  cu_graph graph = NULL;
  assert_cu_ok(f->api->capture_begin(f->stream, CU_CAPTURE_MODE_GLOBAL));
  assert_cu_ok(f->foreign->mem_alloc_async(address, BYTES, f->stream));
  assert_cu_ok(f->api->memset_32_async(*address, value, 1, f->stream));
  if (frees) assert_cu_ok(f->foreign->mem_free_async(*address, f->stream));
  assert_cu_ok(f->api->capture_end(f->stream, &graph));
  return graph;
}

FAKE_TEST(memory_comes_and_goes_in_stream_order) {
  cu_address address = 0;
  sem_t gate;
  assert_cu_ok(f->foreign->mem_alloc_async(&address, BYTES, f->stream));
  assert_int_equal(f->fake->live(FAKE_CUDA_POOL_MEMORY), 1);
  close_gate(f, f->stream, &gate);
  assert_cu_ok(f->api->memset_32_async(address, 12, 1, f->stream));
  assert_cu_ok(f->foreign->mem_free_async(address, f->stream));
  assert_int_equal(f->fake->live(FAKE_CUDA_POOL_MEMORY), 0);
  assert_int_equal(f->fake->physical_bytes(0), GRANULE);
  assert_code(f->foreign->mem_free_async(address, f->stream), CU_INVALID_VALUE);
  sem_post(&gate);
  assert_cu_ok(f->api->stream_synchronize(f->stream));
  assert_int_equal(f->fake->physical_bytes(0), 0);
  assert_code(f->foreign->mem_alloc_async(&address, 0, f->stream), CU_INVALID_VALUE);
  assert_code(f->foreign->mem_alloc_async(&address, (size_t)1 << 50, f->stream), CU_OUT_OF_MEMORY);
}

FAKE_TEST(allocations_of_launches_are_alive_until_freed) {
  cu_address address = 0;
  const cu_graph graph = capture_allocation(f, 8, false, &address);
  const cu_graph_exec exec = instantiate(f, graph);
  assert_code(f->foreign->mem_free_async(address, f->stream), CU_INVALID_VALUE);
  assert_cu_ok(f->api->exec_launch(exec, f->stream));
  assert_int_equal(read_word(f, f->stream, address), 8);
  assert_code(f->api->exec_launch(exec, f->stream), CU_INVALID_VALUE);
  assert_cu_ok(f->foreign->mem_free_async(address, f->stream));
  assert_code(f->foreign->mem_free_async(address, f->stream), CU_INVALID_VALUE);
  assert_cu_ok(f->api->exec_launch(exec, f->stream));
  assert_cu_ok(f->api->exec_destroy(exec));
  assert_cu_ok(f->api->graph_destroy(graph));
  assert_int_equal(read_word(f, f->stream, address), 8); /* outlives both */
  assert_cu_ok(f->foreign->mem_free_async(address, f->stream));
  assert_cu_ok(f->api->stream_synchronize(f->stream));
  assert_int_equal(f->fake->physical_bytes(0), 0);
}

FAKE_TEST(auto_free_begins_with_freeing) {
  cu_address address = 0;
  const cu_graph graph = capture_allocation(f, 8, false, &address);
  cu_instantiate_params params = {.flags = CU_INSTANTIATE_AUTO_FREE};
  cu_graph_exec exec = NULL;
  assert_cu_ok(f->api->graph_instantiate(&exec, graph, &params));
  assert_cu_ok(f->api->exec_launch(exec, f->stream));
  assert_cu_ok(f->api->exec_launch(exec, f->stream));
  assert_cu_ok(f->foreign->mem_free_async(address, f->stream));
  assert_cu_ok(f->api->exec_destroy(exec));
  assert_cu_ok(f->api->graph_destroy(graph));
}

FAKE_TEST(a_graph_may_free_what_another_left) {
  cu_address address = 0;
  cu_graph freeing = NULL;
  const cu_graph graph = capture_allocation(f, 8, false, &address);
  const cu_graph_exec exec = instantiate(f, graph);
  assert_cu_ok(f->api->exec_launch(exec, f->stream));
  assert_cu_ok(f->api->capture_begin(f->stream, CU_CAPTURE_MODE_GLOBAL));
  assert_cu_ok(f->foreign->mem_free_async(address, f->stream));
  assert_code(f->foreign->mem_free_async(address, f->stream), CU_INVALID_VALUE);
  assert_cu_ok(f->api->capture_end(f->stream, &freeing));
  const cu_graph_exec freer = instantiate(f, freeing);
  assert_cu_ok(f->api->exec_launch(freer, f->stream));
  assert_code(f->api->exec_launch(freer, f->stream), CU_INVALID_VALUE);
  assert_int_equal(f->fake->live(FAKE_CUDA_POOL_MEMORY), 0);
  assert_cu_ok(f->api->exec_destroy(exec));
  assert_cu_ok(f->api->exec_destroy(freer));
  assert_cu_ok(f->api->graph_destroy(graph));
  assert_cu_ok(f->api->graph_destroy(freeing));
  assert_cu_ok(f->api->stream_synchronize(f->stream));
}

FAKE_TEST(graphs_with_memory_are_not_copied) {
  cu_address address = 0, other = 0;
  cu_graph clone = NULL, parent = NULL, empty = NULL;
  cu_graph_node node = NULL;
  cu_graph_exec second = NULL;
  cu_instantiate_params params = {0};
  cu_update_result result = {0};
  const cu_graph graph = capture_allocation(f, 1, true, &address), equal = capture_allocation(f, 2, true, &other);
  assert_cu_ok(f->api->graph_create(&parent, 0));
  assert_cu_ok(f->api->graph_create(&empty, 0));
  for (int i = 0; i < 3; i++) assert_cu_ok(f->api->graph_add_empty(&node, empty, NULL, 0));
  assert_code(f->api->graph_clone(&clone, graph), CU_NOT_SUPPORTED);
  assert_code(f->api->graph_add_child(&node, parent, NULL, 0, graph), CU_NOT_SUPPORTED);
  const cu_graph_exec exec = instantiate(f, graph);
  assert_code(f->api->graph_instantiate(&second, graph, &params), CU_NOT_SUPPORTED);
  assert_int_equal(params.result, CU_INSTANTIATE_OPERATION_NOT_SUPPORTED);
  assert_code(f->foreign->exec_update(exec, empty, &result), CU_GRAPH_EXEC_UPDATE_FAILURE);
  assert_int_equal(result.result, CU_UPDATE_NODE_TYPE_CHANGED);
  assert_cu_ok(f->foreign->exec_update(exec, equal, &result));
  assert_cu_ok(f->api->exec_launch(exec, f->stream));
  assert_cu_ok(f->api->exec_launch(exec, f->stream));
  assert_int_equal(f->fake->live(FAKE_CUDA_POOL_MEMORY), 0);
  assert_cu_ok(f->api->exec_destroy(exec));
  assert_cu_ok(f->api->exec_destroy(instantiate(f, graph)));
  const cu_graph graphs[] = {graph, equal, parent, empty};
  for (size_t i = 0; i < 4; i++) assert_cu_ok(f->api->graph_destroy(graphs[i]));
  assert_cu_ok(f->api->stream_synchronize(f->stream));
}

FAKE_TEST(memory_that_is_no_graphs_is_not_freed_in_one) {
  cu_address address = 0;
  cu_graph graph = NULL;
  assert_cu_ok(f->foreign->mem_alloc_async(&address, BYTES, f->other));
  assert_cu_ok(f->api->capture_begin(f->stream, CU_CAPTURE_MODE_GLOBAL));
  assert_code(f->foreign->mem_free_async(address, f->stream), CU_INVALID_VALUE);
  assert_cu_ok(f->api->capture_end(f->stream, &graph));
  assert_cu_ok(f->api->graph_destroy(graph));
  assert_cu_ok(f->foreign->mem_free_async(address, f->other));
  assert_cu_ok(f->api->stream_synchronize(f->other));
}

FAKE_TEST(no_copy_is_added_of_what_the_graph_frees) {
  const cu_address memory = make_memory(f);
  cu_address address = 0;
  cu_graph graph = NULL;
  cu_graph_node node = NULL;
  cu_capture_status status;
  uint64_t id;
  cu_copy copy = {.src_type = CU_MEMORY_UNIFIED,
                  .dst_type = CU_MEMORY_UNIFIED,
                  .dst_device = memory,
                  .width = 4,
                  .height = 1,
                  .depth = 1};
  assert_cu_ok(f->api->capture_begin(f->stream, CU_CAPTURE_MODE_GLOBAL));
  assert_cu_ok(f->foreign->mem_alloc_async(&address, BYTES, f->stream));
  assert_cu_ok(f->api->capture_info(f->stream, &status, &id, &graph, NULL, NULL, NULL));
  copy.src_device = address + 8;
  assert_cu_ok(f->api->graph_add_copy(&node, graph, NULL, 0, &copy, f->context));
  assert_cu_ok(f->foreign->mem_free_async(address, f->stream));
  assert_code(f->api->graph_add_copy(&node, graph, NULL, 0, &copy, f->context), CU_INVALID_VALUE);
  copy.src_device = memory + 8;
  assert_cu_ok(f->api->graph_add_copy(&node, graph, NULL, 0, &copy, f->context));
  assert_cu_ok(f->api->capture_end(f->stream, &graph));
  copy.dst_device = address;
  assert_code(f->api->graph_add_copy(&node, graph, NULL, 0, &copy, f->context), CU_INVALID_VALUE);
  assert_cu_ok(f->api->graph_destroy(graph));
  free_memory(f, memory);
}
