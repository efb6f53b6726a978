/* SPDX-License-Identifier: MIT
 * Memory of the fake CUDA driver: refused mappings, access by device, copies and fills, faults.
 */
#include "unit/fake_cuda/fake_test.h"

static const cu_allocation_properties on_first = {.type = CU_ALLOCATION_PINNED, .location = {CU_LOCATION_DEVICE, 0}};

FAKE_TEST(sizes_are_of_whole_granules) {
  cu_address address = 0;
  cu_physical physical = 0;
  size_t granule = 0;
  assert_cu_ok(f->api->mem_granularity(&granule, &on_first, CU_GRANULARITY_MINIMUM));
  assert_int_equal(granule, GRANULE);
  assert_code(f->api->mem_reserve(&address, 4096, 0, 0, 0), CU_INVALID_VALUE);
  assert_code(f->api->mem_reserve(&address, GRANULE, 3, 0, 0), CU_INVALID_VALUE);
  assert_code(f->api->mem_reserve(&address, GRANULE, 0, 0, 1), CU_INVALID_VALUE);
  assert_code(f->api->mem_create(&physical, GRANULE + 1, &on_first, 0), CU_INVALID_VALUE);
  expect_violations(f, 4);
}

FAKE_TEST(mappings_are_checked_as_by_the_driver) {
  cu_address address = 0;
  cu_physical physical = 0;
  const cu_access access = {{CU_LOCATION_DEVICE, 0}, CU_ACCESS_READ_WRITE};
  assert_cu_ok(f->api->mem_reserve(&address, 4 * GRANULE, 8 * GRANULE, 0, 0));
  assert_true(address % (8 * GRANULE) == 0);
  assert_cu_ok(f->api->mem_create(&physical, 2 * GRANULE, &on_first, 0));
  assert_code(f->api->mem_map(address, 2 * GRANULE, GRANULE, physical, 0), CU_INVALID_VALUE);
  assert_code(f->api->mem_map(address + 4096, 2 * GRANULE, 0, physical, 0), CU_INVALID_VALUE);
  assert_code(f->api->mem_map(address + 3 * GRANULE, 2 * GRANULE, 0, physical, 0), CU_INVALID_VALUE);
  assert_code(f->api->mem_map(address, 4 * GRANULE, 0, physical, 0), CU_INVALID_VALUE);
  assert_code(f->api->mem_map(address, GRANULE, 0, physical, 0), CU_NOT_SUPPORTED); /* probe 35 */
  assert_cu_ok(f->api->mem_map(address, 2 * GRANULE, 0, physical, 0));
  assert_code(f->api->mem_map(address + GRANULE, 2 * GRANULE, 0, physical, 0), CU_INVALID_VALUE);
  assert_code(f->api->mem_set_access(address, GRANULE, &access, 1), CU_INVALID_VALUE);
  assert_code(f->api->mem_set_access(address, 3 * GRANULE, &access, 1), CU_INVALID_VALUE);
  assert_code(f->api->mem_unmap(address, GRANULE), CU_INVALID_VALUE);
  assert_code(f->api->mem_unreserve(address, 4 * GRANULE), CU_INVALID_VALUE);
  expect_violations(f, 10);
  assert_cu_ok(f->api->mem_release(physical));
  assert_code(f->api->mem_release(physical), CU_INVALID_VALUE);
  assert_code(f->api->mem_map(address + 2 * GRANULE, GRANULE, 0, physical, 0), CU_INVALID_VALUE);
  expect_violations(f, 3);
  assert_cu_ok(f->api->mem_unmap(address, 2 * GRANULE));
  assert_code(f->api->mem_unreserve(address, GRANULE), CU_INVALID_VALUE);
  expect_violations(f, 1);
  assert_cu_ok(f->api->mem_unreserve(address, 4 * GRANULE));
}

FAKE_TEST(physical_memory_is_counted_until_its_last_mapping) {
  cu_address address = 0;
  cu_physical physical = 0, more = 0;
  size_t free_bytes = 0, total = 0;
  f->fake->set_memory(0, 4 * GRANULE);
  assert_cu_ok(f->api->mem_reserve(&address, 2 * GRANULE, 0, 0, 0));
  assert_cu_ok(f->api->mem_create(&physical, GRANULE, &on_first, 0));
  assert_cu_ok(f->api->mem_map(address, GRANULE, 0, physical, 0));
  assert_cu_ok(f->api->mem_map(address + GRANULE, GRANULE, 0, physical, 0));
  assert_cu_ok(f->api->mem_release(physical));
  assert_int_equal(f->fake->mappings(0), 2);
  assert_cu_ok(f->api->mem_get_info(&free_bytes, &total));
  assert_int_equal(free_bytes, 3 * GRANULE);
  assert_int_equal(total, 4 * GRANULE);
  assert_code(f->api->mem_create(&more, 4 * GRANULE, &on_first, 0), CU_OUT_OF_MEMORY);
  assert_cu_ok(f->api->mem_unmap(address, 2 * GRANULE));
  assert_true(f->fake->physical_bytes(0) == 0);
  assert_cu_ok(f->api->mem_unreserve(address, 2 * GRANULE));
  f->fake->set_memory(0, (uint64_t)8 << 30);
}

FAKE_TEST(two_addresses_show_the_same_bytes) {
  const cu_access access = {{CU_LOCATION_DEVICE, 0}, CU_ACCESS_READ_WRITE};
  cu_address address = 0;
  cu_physical physical = 0;
  assert_cu_ok(f->api->mem_reserve(&address, 2 * GRANULE, 0, 0, 0));
  assert_cu_ok(f->api->mem_create(&physical, GRANULE, &on_first, 0));
  assert_cu_ok(f->api->mem_map(address, GRANULE, 0, physical, 0));
  assert_cu_ok(f->api->mem_map(address + GRANULE, GRANULE, 0, physical, 0));
  assert_cu_ok(f->api->mem_release(physical));
  assert_cu_ok(f->api->mem_set_access(address, 2 * GRANULE, &access, 1));
  assert_cu_ok(f->api->memset_32_async(address + 8, 77, 1, f->stream));
  assert_int_equal(read_word(f, f->stream, address + GRANULE + 8), 77);
  assert_cu_ok(f->api->mem_unmap(address, 2 * GRANULE));
  assert_cu_ok(f->api->mem_unreserve(address, 2 * GRANULE));
}

FAKE_TEST(fills_write_elements_and_rows) {
  const cu_address memory = make_memory(f);
  unsigned char bytes[32];
  assert_cu_ok(f->api->memset_8_async(memory, 0x11, sizeof bytes, f->stream));
  assert_cu_ok(f->api->memset_16_async(memory + 2, 0x2233, 2, f->stream));
  assert_cu_ok(f->api->memset_2d_8_async(memory + 8, 8, 0x44, 2, 3, f->stream));
  assert_cu_ok(f->api->copy_async((cu_address)(uintptr_t)bytes, memory, sizeof bytes, f->stream));
  assert_cu_ok(f->api->stream_synchronize(f->stream));
  assert_int_equal(bytes[1], 0x11);
  assert_int_equal(bytes[2], 0x33);
  assert_int_equal(bytes[5], 0x22);
  assert_int_equal(bytes[6], 0x11);
  assert_int_equal(bytes[8], 0x44);
  assert_int_equal(bytes[17], 0x44);
  assert_int_equal(bytes[25], 0x44);
  assert_int_equal(bytes[26], 0x11);
  assert_code(f->api->memset_32_async(memory + 2, 1, 1, f->stream), CU_INVALID_VALUE);
  assert_code(f->api->memset_2d_32_async(memory, 4, 1, 2, 2, f->stream), CU_INVALID_VALUE);
  assert_cu_ok(f->api->memset_8_async(memory, 1, 0, f->stream));
  free_memory(f, memory);
}

FAKE_TEST(copies_take_boxes) {
  const cu_address memory = make_memory(f);
  unsigned char from[2 * 3 * 4], to[2 * 3 * 4] = {0};
  for (unsigned char i = 0; i < sizeof from; i++) from[i] = i;
  cu_copy in = {.src_type = CU_MEMORY_HOST, .src_host = from, .src_pitch = 4, .src_height = 3};
  in.dst_type = CU_MEMORY_DEVICE;
  in.dst_device = memory;
  in.dst_pitch = 16;
  in.dst_height = 8;
  in.width = 4;
  in.height = 3;
  in.depth = 2;
  cu_copy out = {.src_type = CU_MEMORY_UNIFIED, .src_device = memory, .src_pitch = 16, .src_height = 8, .src_x = 1};
  out.src_y = 1;
  out.dst_type = CU_MEMORY_HOST;
  out.dst_host = to;
  out.dst_pitch = 2;
  out.dst_height = 2;
  out.width = 2;
  out.height = 2;
  out.depth = 2;
  assert_cu_ok(f->api->copy_3d_async(&in, f->stream));
  assert_cu_ok(f->api->copy_3d_async(&out, f->stream));
  assert_cu_ok(f->api->stream_synchronize(f->stream));
  const unsigned char expected[] = {5, 6, 9, 10, 17, 18, 21, 22};
  assert_memory_equal(to, expected, sizeof expected);
  out.src_pitch = 1;
  assert_code(f->api->copy_3d_async(&out, f->stream), CU_INVALID_VALUE);
  in.dst_type = CU_MEMORY_HOST;
  in.dst_host = (void *)(uintptr_t)memory;
  assert_code(f->api->copy_3d_async(&in, f->stream), CU_INVALID_VALUE);
  free_memory(f, memory);
}

FAKE_TEST(host_memory_is_the_drivers) {
  void *host = NULL;
  assert_cu_ok(f->api->host_alloc(&host, 100, CU_HOST_ALLOC_PORTABLE));
  assert_int_equal((uintptr_t)host % 256, 0);
  assert_int_equal(f->fake->live(FAKE_CUDA_HOST_MEMORY), 1);
  assert_cu_ok(f->api->host_free(host));
  assert_code(f->api->host_free(host), CU_INVALID_VALUE);
  expect_violations(f, 1);
  assert_code(f->api->host_alloc(&host, 0, 0), CU_INVALID_VALUE);
}

/* Memory that is mapped, but without access. */
static cu_address make_closed_memory(const fixture *f) {
  const cu_access none = {{CU_LOCATION_DEVICE, 0}, CU_ACCESS_NONE};
  const cu_address memory = make_memory(f);
  assert_cu_ok(f->api->mem_set_access(memory, GRANULE, &none, 1));
  return memory;
}

RUINS_TEST(access_before_it_is_given_is_a_fault) {
  const cu_address memory = make_closed_memory(f);
  assert_cu_ok(f->api->memset_8_async(memory, 1, 1, f->stream));
  assert_code(f->api->stream_synchronize(f->stream), CU_ILLEGAL_ADDRESS);
  assert_code(f->api->stream_query(f->other), CU_ILLEGAL_ADDRESS);
  assert_code(f->api->mem_unmap(memory, GRANULE), CU_ILLEGAL_ADDRESS);
  assert_int_equal(f->fake->mappings(0), 0);
  assert_int_equal(f->fake->violations(), 0);
}

FAKE_TEST(a_copy_past_the_end_is_refused) {
  const cu_address memory = make_memory(f);
  unsigned char bytes[64] = {0};
  const cu_address host = (cu_address)(uintptr_t)bytes;
  assert_code(f->api->copy_async(memory + GRANULE - 32, host, sizeof bytes, f->stream), CU_INVALID_VALUE);
  assert_code(f->api->memset_8_async(memory + GRANULE - 32, 1, sizeof bytes, f->stream), CU_INVALID_VALUE);
  assert_cu_ok(f->api->stream_synchronize(f->stream));
  free_memory(f, memory);
}

/* Probes 30 to 34: all of what a copy names is there, or its first byte is not and it counts as the host's. */
FAKE_TEST(copy_nodes_look_at_all_that_is_mapped) {
  const cu_access access = {{CU_LOCATION_DEVICE, 0}, CU_ACCESS_READ_WRITE};
  const cu_address from = make_memory(f);
  cu_address to = 0;
  cu_physical physical = 0;
  cu_graph graph = NULL;
  cu_graph_node node = NULL;
  assert_cu_ok(f->api->mem_reserve(&to, 2 * GRANULE, 0, 0, 0));
  assert_cu_ok(f->api->mem_create(&physical, GRANULE, &on_first, 0));
  assert_cu_ok(f->api->graph_create(&graph, 0));
  const cu_copy copy = {.src_type = CU_MEMORY_UNIFIED,
                        .src_device = from,
                        .dst_type = CU_MEMORY_UNIFIED,
                        .dst_device = to + GRANULE - 8,
                        .width = 16,
                        .height = 1,
                        .depth = 1};
  assert_cu_ok(f->api->graph_add_copy(&node, graph, NULL, 0, &copy, f->context));
  expect_violations(f, 1);
  assert_cu_ok(f->api->mem_map(to, GRANULE, 0, physical, 0));
  assert_code(f->api->graph_add_copy(&node, graph, NULL, 0, &copy, f->context), CU_INVALID_VALUE);
  assert_cu_ok(f->api->mem_map(to + GRANULE, GRANULE, 0, physical, 0));
  assert_cu_ok(f->api->mem_set_access(to, 2 * GRANULE, &access, 1));
  assert_cu_ok(f->api->graph_add_copy(&node, graph, NULL, 0, &copy, f->context));
  assert_cu_ok(f->api->mem_unmap(to, 2 * GRANULE));
  assert_cu_ok(f->api->mem_release(physical));
  assert_cu_ok(f->api->mem_unreserve(to, 2 * GRANULE));
  assert_cu_ok(f->api->graph_destroy(graph));
  free_memory(f, from);
}

/* Probes 36 and 38: what is captured is taken as it is then; a fill is looked at when it is instantiated. */
FAKE_TEST(captures_take_what_is_not_mapped_yet) {
  const cu_access access = {{CU_LOCATION_DEVICE, 0}, CU_ACCESS_READ_WRITE};
  cu_address memory = 0;
  cu_physical physical = 0;
  cu_graph graph = NULL;
  cu_graph_exec exec = NULL;
  cu_instantiate_params params = {0};
  assert_cu_ok(f->api->mem_reserve(&memory, GRANULE, 0, 0, 0));
  assert_cu_ok(f->api->mem_create(&physical, GRANULE, &on_first, 0));
  assert_code(f->api->memset_32_async(memory, 7, 1, f->stream), CU_INVALID_VALUE);
  assert_cu_ok(f->api->capture_begin(f->stream, CU_CAPTURE_MODE_THREAD_LOCAL));
  assert_cu_ok(f->api->memset_32_async(memory, 7, 1, f->stream));
  assert_cu_ok(f->api->copy_async(memory + 8, memory, 4, f->stream));
  assert_cu_ok(f->api->mem_map(memory, GRANULE, 0, physical, 0));
  assert_cu_ok(f->api->mem_set_access(memory, GRANULE, &access, 1));
  assert_cu_ok(f->api->copy_async(memory + 4, memory, 4, f->stream));
  assert_cu_ok(f->api->mem_unmap(memory, GRANULE));
  assert_cu_ok(f->api->capture_end(f->stream, &graph));
  assert_code(f->api->graph_instantiate(&exec, graph, &params), CU_INVALID_VALUE);
  assert_int_equal(params.result, CU_INSTANTIATE_ERROR);
  assert_non_null(params.error_node);
  assert_cu_ok(f->api->mem_map(memory, GRANULE, 0, physical, 0));
  assert_cu_ok(f->api->mem_set_access(memory, GRANULE, &access, 1));
  assert_cu_ok(f->api->graph_instantiate(&exec, graph, &params));
  expect_violations(f, 1); /* the first copy is one of the host's memory */
  assert_cu_ok(f->api->exec_launch(exec, f->stream));
  assert_int_equal(read_word(f, f->stream, memory + 4), 7);
  assert_cu_ok(f->api->exec_destroy(exec));
  assert_cu_ok(f->api->graph_destroy(graph));
  assert_cu_ok(f->api->mem_unmap(memory, GRANULE));
  assert_cu_ok(f->api->mem_release(physical));
  assert_cu_ok(f->api->mem_unreserve(memory, GRANULE));
}

/* One attribute of what is no memory of the driver's is an error; several are zeros. */
FAKE_TEST(addresses_are_asked_about) {
  const cu_address memory = make_memory(f);
  cu_pointer_attribute attributes[] = {CU_POINTER_MEMORY_TYPE, CU_POINTER_DEVICE_ORDINAL};
  unsigned type = 99, alone = 99;
  int ordinal = 99;
  void *values[] = {&type, &ordinal};
  assert_cu_ok(f->api->pointer_get_attributes(2, attributes, values, memory + 8));
  assert_int_equal(type, CU_MEMORY_DEVICE);
  assert_int_equal(ordinal, 0);
  assert_cu_ok(f->api->pointer_get_attribute(&alone, CU_POINTER_MEMORY_TYPE, memory + 8));
  assert_int_equal(alone, CU_MEMORY_DEVICE);
  assert_cu_ok(f->api->pointer_get_attributes(2, attributes, values, (cu_address)(uintptr_t)&type));
  assert_int_equal(type, 0);
  assert_code(f->api->pointer_get_attribute(&alone, CU_POINTER_MEMORY_TYPE, (cu_address)(uintptr_t)&type),
              CU_INVALID_VALUE);
  expect_violations(f, 0);
  free_memory(f, memory);
}

RUINS_TEST(a_kernel_whose_pointer_is_closed_faults) {
  const cu_address memory = make_closed_memory(f);
  cu_function function = NULL;
  (void)make_module(f, "add", &function);
  assert_cu_ok(launch_add(f, function, f->stream, 1, memory));
  assert_code(f->api->stream_synchronize(f->stream), CU_ILLEGAL_ADDRESS);
}

RUINS_TEST(a_peer_needs_access_of_its_own) {
  const cu_address memory = make_memory(f);
  const cu_access both[] = {{{CU_LOCATION_DEVICE, 1}, CU_ACCESS_READ}, {{CU_LOCATION_DEVICE, 0}, CU_ACCESS_READ_WRITE}};
  cu_context second = NULL;
  cu_stream stream = NULL;
  uint32_t word = 1;
  assert_cu_ok(f->api->memset_32_async(memory, 5, 1, f->stream));
  assert_cu_ok(f->api->stream_synchronize(f->stream));
  assert_cu_ok(f->api->mem_set_access(memory, GRANULE, both, 2));
  assert_cu_ok(f->api->primary_retain(&second, 1));
  assert_cu_ok(f->api->context_set_current(second));
  assert_cu_ok(f->api->stream_create(&stream, CU_STREAM_FLAG_NON_BLOCKING));
  assert_int_equal(read_word(f, stream, memory), 5);
  assert_cu_ok(f->api->copy_async(memory, (cu_address)(uintptr_t)&word, sizeof word, stream));
  assert_code(f->api->stream_synchronize(stream), CU_ILLEGAL_ADDRESS);
  assert_cu_ok(f->api->context_set_current(f->context));
  assert_int_equal(read_word(f, f->stream, memory), 5);
}
