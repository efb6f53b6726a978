/* SPDX-License-Identifier: MIT
 * Graphs and execs of the fake CUDA driver: building and queries (rules B), instantiation (I), launches (L), updates
 * (U).
 */
#include "unit/fake_cuda/fake_test.h"

static cu_graph make_graph(const fixture *f) {
  cu_graph graph = NULL;
  assert_cu_ok(f->api->graph_create(&graph, 0));
  return graph;
}

static cu_graph_node add_empty(const fixture *f, cu_graph graph, const cu_graph_node *before, size_t count) {
  cu_graph_node node = NULL;
  assert_cu_ok(f->api->graph_add_empty(&node, graph, before, count));
  return node;
}

static cu_memset_params fill_params(cu_address dst, unsigned value) {
  return (cu_memset_params){.dst = dst, .value = value, .element_bytes = 4, .width = 1, .height = 1};
}

static cu_graph_node add_fill(const fixture *f, cu_graph graph, const cu_graph_node *before, size_t count,
                              cu_address dst, unsigned value) {
  const cu_memset_params params = fill_params(dst, value);
  cu_graph_node node = NULL;
  assert_cu_ok(f->api->graph_add_memset(&node, graph, before, count, &params, f->context));
  return node;
}

static cu_graph_node add_kernel(const fixture *f, cu_graph graph, const cu_graph_node *before, size_t count,
                                cu_function function, uint32_t value, cu_address address) {
  void *params[2];
  const cu_kernel_params kernel = add_params(function, &value, &address, params);
  cu_graph_node node = NULL;
  assert_cu_ok(f->api->graph_add_kernel(&node, graph, before, count, &kernel));
  return node;
}

static void launch_and_wait(const fixture *f, cu_graph_exec exec) {
  assert_cu_ok(f->api->exec_launch(exec, f->stream));
  assert_cu_ok(f->api->stream_synchronize(f->stream));
}

FAKE_TEST(bad_nodes_leave_the_graph_alone) {
  const cu_graph graph = make_graph(f), stranger = make_graph(f);
  const cu_graph_node first = add_empty(f, graph, NULL, 0), foreign = add_empty(f, stranger, NULL, 0);
  const cu_graph_node twice[] = {first, first};
  const cu_memset_params three = {.dst = 1 << 20, .element_bytes = 3, .width = 1, .height = 1};
  const cu_host_params nothing = {NULL, NULL};
  cu_graph_node node = NULL;
  cu_graph none = NULL;
  size_t count = 0;
  assert_code(f->api->graph_create(&none, 1), CU_INVALID_VALUE);
  assert_code(f->api->graph_add_empty(&node, graph, NULL, 1), CU_INVALID_VALUE);
  assert_code(f->api->graph_add_empty(&node, graph, twice, 2), CU_INVALID_VALUE);
  assert_code(f->api->graph_add_empty(NULL, graph, NULL, 0), CU_INVALID_VALUE);
  assert_code(f->api->graph_add_memset(&node, graph, NULL, 0, &three, f->context), CU_INVALID_VALUE);
  assert_code(f->api->graph_add_host(&node, graph, NULL, 0, &nothing), CU_INVALID_VALUE);
  assert_int_equal(f->fake->violations(), 0);
  assert_code(f->api->graph_add_empty(&node, graph, &foreign, 1), CU_INVALID_VALUE);
  expect_violations(f, 1);
  assert_cu_ok(f->api->graph_get_nodes(graph, NULL, &count));
  assert_int_equal(count, 1);
  assert_cu_ok(f->api->graph_destroy(graph));
  assert_cu_ok(f->api->graph_destroy(stranger));
}

FAKE_TEST(queries_count_and_fill) {
  const cu_graph graph = make_graph(f);
  const cu_graph_node a = add_empty(f, graph, NULL, 0), b = add_empty(f, graph, &a, 1), both[] = {a, b};
  const cu_graph_node c = add_empty(f, graph, both, 2);
  cu_graph_node nodes[4], from[4], to[4];
  cu_node_type type = CU_NODE_KERNEL;
  size_t count = 0;
  assert_cu_ok(f->api->graph_get_nodes(graph, NULL, &count));
  assert_int_equal(count, 3);
  count = 4;
  assert_cu_ok(f->api->graph_get_nodes(graph, nodes, &count));
  assert_int_equal(count, 3);
  assert_ptr_equal(nodes[2], c);
  assert_null(nodes[3]);
  count = 2;
  assert_cu_ok(f->api->graph_get_edges(graph, from, to, NULL, &count));
  assert_int_equal(count, 2);
  assert_ptr_equal(from[0], a);
  assert_ptr_equal(to[0], b);
  assert_ptr_equal(to[1], c);
  assert_cu_ok(f->api->graph_node_get_type(c, &type));
  assert_int_equal(type, CU_NODE_EMPTY);
  assert_cu_ok(f->api->graph_destroy(graph));
}

FAKE_TEST(edges_with_data_need_room_for_it) {
  const cu_graph graph = make_graph(f);
  const cu_graph_node a = add_empty(f, graph, NULL, 0), b = add_empty(f, graph, NULL, 0);
  const cu_edge_data programmatic = {.from_port = 1, .type = 1};
  cu_graph_node from = NULL, to = NULL;
  cu_edge_data data = {0};
  size_t count = 1;
  assert_cu_ok(f->api->graph_add_edges(graph, &a, &b, &programmatic, 1));
  assert_code(f->api->graph_add_edges(graph, &a, &b, NULL, 1), CU_INVALID_VALUE);
  assert_code(f->api->graph_add_edges(graph, &a, &a, NULL, 1), CU_INVALID_VALUE);
  assert_code(f->api->graph_get_edges(graph, &from, &to, NULL, &count), 402);
  assert_cu_ok(f->api->graph_get_edges(graph, &from, &to, &data, &count));
  assert_int_equal(data.from_port, 1);
  assert_code(f->foreign->graph_remove_edges(graph, &a, &b, NULL, 1), CU_INVALID_VALUE);
  assert_cu_ok(f->foreign->graph_remove_edges(graph, &a, &b, &programmatic, 1));
  assert_cu_ok(f->api->graph_destroy(graph));
}

FAKE_TEST(parameters_are_read_as_they_were_given) {
  const cu_address memory = make_memory(f);
  const cu_graph graph = make_graph(f);
  cu_function function = NULL;
  const cu_module module = make_module(f, "add", &function);
  const cu_graph_node kernel = add_kernel(f, graph, NULL, 0, function, 9, memory);
  const cu_graph_node fill = add_fill(f, graph, &kernel, 1, memory, 3);
  cu_kernel_params read = {0};
  cu_memset_params read_fill = {0};
  assert_cu_ok(f->api->graph_kernel_get_params(kernel, &read));
  assert_ptr_equal(read.function, function);
  assert_ptr_equal(read.context, f->context);
  assert_null(read.extra);
  assert_int_equal(*(const uint32_t *)read.params[0], 9);
  assert_true(*(const cu_address *)read.params[1] == memory);
  assert_cu_ok(f->api->graph_memset_get_params(fill, &read_fill));
  assert_int_equal(read_fill.value, 3);
  assert_code(f->api->graph_kernel_get_params(fill, &read), CU_INVALID_VALUE);
  assert_cu_ok(f->api->graph_destroy(graph));
  assert_cu_ok(f->api->module_unload(module));
  free_memory(f, memory);
}

FAKE_TEST(a_cycle_is_found_when_instantiating) {
  const cu_graph graph = make_graph(f);
  const cu_graph_node a = add_empty(f, graph, NULL, 0), b = add_empty(f, graph, &a, 1);
  cu_instantiate_params params = {0};
  cu_graph_exec exec = NULL;
  assert_cu_ok(f->api->graph_add_edges(graph, &b, &a, NULL, 1));
  assert_code(f->api->graph_instantiate(&exec, graph, &params), CU_INVALID_VALUE);
  assert_int_equal(params.result, CU_INSTANTIATE_INVALID_STRUCTURE);
  assert_ptr_equal(params.error_node, a);
  assert_cu_ok(f->foreign->graph_remove_edges(graph, &b, &a, NULL, 1));
  assert_cu_ok(f->api->exec_destroy(instantiate(f, graph)));
  params.flags = 4;
  assert_code(f->api->graph_instantiate(&exec, graph, &params), CU_INVALID_VALUE);
  assert_cu_ok(f->api->graph_destroy(graph));
}

/* L1 and U1: launches of an exec follow each other, and have the parameters that it had when they were made. */
FAKE_TEST(launches_keep_what_they_began_with) {
  const cu_address memory = make_memory(f);
  const cu_graph graph = make_graph(f);
  const cu_graph_node fill = add_fill(f, graph, NULL, 0, memory, 1);
  const cu_graph_exec exec = instantiate(f, graph);
  const cu_memset_params changed = fill_params(memory + 4, 2);
  sem_t gate;
  assert_cu_ok(f->api->memset_32_async(memory, 0, 2, f->stream));
  close_gate(f, f->stream, &gate);
  assert_cu_ok(f->api->exec_launch(exec, f->stream));
  assert_cu_ok(f->foreign->exec_set_memset(exec, fill, &changed, f->context));
  assert_cu_ok(f->api->exec_launch(exec, f->other));
  assert_code(f->api->stream_query(f->other), CU_NOT_READY);
  sem_post(&gate);
  assert_int_equal(read_word(f, f->other, memory + 4), 2);
  assert_int_equal(read_word(f, f->other, memory), 1);
  assert_cu_ok(f->api->exec_destroy(exec));
  assert_cu_ok(f->api->graph_destroy(graph));
  assert_cu_ok(f->api->stream_synchronize(f->stream));
  free_memory(f, memory);
}

/* I1 and L2. */
FAKE_TEST(an_exec_is_a_snapshot_and_may_go_in_flight) {
  const cu_address memory = make_memory(f);
  const cu_graph graph = make_graph(f);
  (void)add_fill(f, graph, NULL, 0, memory, 6);
  const cu_graph_exec exec = instantiate(f, graph);
  sem_t gate;
  assert_cu_ok(f->api->graph_destroy(graph));
  close_gate(f, f->stream, &gate);
  assert_cu_ok(f->api->exec_upload(exec, f->stream));
  assert_cu_ok(f->api->exec_launch(exec, f->stream));
  assert_cu_ok(f->api->exec_destroy(exec));
  sem_post(&gate);
  assert_int_equal(read_word(f, f->stream, memory), 6);
  assert_code(f->api->exec_launch(exec, f->stream), CU_INVALID_VALUE);
  expect_violations(f, 1);
  free_memory(f, memory);
}

FAKE_TEST(nodes_run_after_what_they_depend_on) {
  const cu_address memory = make_memory(f);
  cu_function function = NULL;
  const cu_module module = make_module(f, "add", &function);
  const cu_graph graph = make_graph(f);
  const cu_graph_node last = add_empty(f, graph, NULL, 0);
  const cu_graph_node fill = add_fill(f, graph, NULL, 0, memory, 10);
  cu_graph_node adds[8];
  for (uint32_t i = 0; i < 8; i++) adds[i] = add_kernel(f, graph, &fill, 1, function, i, memory);
  const cu_copy copy = {.src_type = CU_MEMORY_DEVICE,
                        .src_device = memory,
                        .dst_type = CU_MEMORY_DEVICE,
                        .dst_device = memory + 64,
                        .width = 4,
                        .height = 1,
                        .depth = 1};
  cu_graph_node node = NULL;
  assert_cu_ok(f->api->graph_add_copy(&node, graph, adds, 8, &copy, f->context));
  assert_cu_ok(f->api->graph_add_edges(graph, &node, &last, NULL, 1));
  const cu_graph_exec exec = instantiate(f, graph);
  launch_and_wait(f, exec);
  launch_and_wait(f, exec);
  assert_int_equal(read_word(f, f->stream, memory + 64), 10 + 28);
  assert_cu_ok(f->api->exec_destroy(exec));
  assert_cu_ok(f->api->graph_destroy(graph));
  assert_cu_ok(f->api->module_unload(module));
  free_memory(f, memory);
}

FAKE_TEST(exec_setters_refuse_what_the_driver_refuses) {
  const cu_address memory = make_memory(f);
  const cu_graph graph = make_graph(f), stranger = make_graph(f);
  const cu_graph_node fill = add_fill(f, graph, NULL, 0, memory, 1), empty = add_empty(f, graph, NULL, 0);
  const cu_graph_node foreign = add_fill(f, stranger, NULL, 0, memory, 1);
  const cu_copy to_host = {.src_type = CU_MEMORY_DEVICE,
                           .src_device = memory,
                           .dst_type = CU_MEMORY_HOST,
                           .dst_host = &(uint32_t){0},
                           .width = 4,
                           .height = 1,
                           .depth = 1};
  cu_copy within = to_host;
  within.dst_type = CU_MEMORY_DEVICE;
  within.dst_device = memory + 8;
  cu_graph_node copy = NULL;
  assert_cu_ok(f->api->graph_add_copy(&copy, graph, NULL, 0, &within, f->context));
  const cu_graph_exec exec = instantiate(f, graph);
  cu_memset_params rows = fill_params(memory, 1);
  rows.pitch = 16;
  rows.height = 2;
  assert_code(f->foreign->exec_set_memset(exec, fill, &rows, f->context), CU_INVALID_VALUE);
  assert_code(f->api->exec_set_copy(exec, copy, &to_host, f->context), CU_INVALID_VALUE);
  rows = fill_params(memory, 1);
  assert_code(f->foreign->exec_set_memset(exec, copy, &rows, f->context), CU_INVALID_VALUE);
  assert_code(f->foreign->exec_set_memset(exec, foreign, &rows, f->context), CU_INVALID_VALUE);
  assert_code(f->api->exec_set_enabled(exec, empty, 0), CU_INVALID_VALUE);
  within.dst_device = memory + 12;
  assert_cu_ok(f->api->exec_set_copy(exec, copy, &within, f->context));
  assert_cu_ok(f->api->exec_destroy(exec));
  assert_cu_ok(f->api->graph_destroy(graph));
  assert_cu_ok(f->api->graph_destroy(stranger));
  free_memory(f, memory);
}

/* U2. */
FAKE_TEST(disabled_nodes_do_nothing_and_stay_so) {
  const cu_address memory = make_memory(f);
  const cu_graph graph = make_graph(f);
  const cu_graph_node first = add_fill(f, graph, NULL, 0, memory, 1);
  const cu_graph_node second = add_fill(f, graph, &first, 1, memory, 2);
  const cu_graph_exec exec = instantiate(f, graph);
  cu_update_result result = {0};
  assert_cu_ok(f->api->exec_set_enabled(exec, second, 0));
  launch_and_wait(f, exec);
  assert_int_equal(read_word(f, f->stream, memory), 1);
  assert_cu_ok(f->foreign->exec_update(exec, graph, &result));
  launch_and_wait(f, exec);
  assert_int_equal(read_word(f, f->stream, memory), 1);
  assert_cu_ok(f->api->exec_set_enabled(exec, second, 1));
  launch_and_wait(f, exec);
  assert_int_equal(read_word(f, f->stream, memory), 2);
  assert_cu_ok(f->api->exec_destroy(exec));
  assert_cu_ok(f->api->graph_destroy(graph));
  free_memory(f, memory);
}

/* U3: taken as a whole, or refused with a reason and unchanged. */
FAKE_TEST(updates_are_whole_or_not_at_all) {
  const cu_address memory = make_memory(f);
  const cu_graph graph = make_graph(f), same = make_graph(f), more = make_graph(f), other = make_graph(f);
  cu_graph_node node = add_fill(f, graph, NULL, 0, memory, 1);
  const cu_graph_node old = add_fill(f, graph, &node, 1, memory + 4, 1);
  node = add_fill(f, same, NULL, 0, memory, 5);
  (void)add_fill(f, same, &node, 1, memory + 4, 6);
  node = add_fill(f, more, NULL, 0, memory, 7);
  (void)add_fill(f, more, NULL, 0, memory + 4, 7);
  node = add_fill(f, other, NULL, 0, memory, 8);
  const cu_graph_node changed = add_empty(f, other, &node, 1);
  const cu_graph_exec exec = instantiate(f, graph);
  cu_update_result result = {0};
  assert_cu_ok(f->foreign->exec_update(exec, same, &result));
  assert_int_equal(result.result, CU_UPDATE_SUCCESS);
  assert_code(f->foreign->exec_update(exec, more, &result), CU_GRAPH_EXEC_UPDATE_FAILURE);
  assert_int_equal(result.result, CU_UPDATE_TOPOLOGY_CHANGED);
  assert_code(f->foreign->exec_update(exec, other, &result), CU_GRAPH_EXEC_UPDATE_FAILURE);
  assert_int_equal(result.result, CU_UPDATE_NODE_TYPE_CHANGED);
  assert_ptr_equal(result.error_node, changed);
  assert_ptr_equal(result.error_from_node, old);
  launch_and_wait(f, exec);
  assert_int_equal(read_word(f, f->stream, memory), 5);
  assert_int_equal(read_word(f, f->stream, memory + 4), 6);
  assert_cu_ok(f->api->exec_destroy(exec));
  const cu_graph graphs[] = {graph, same, more, other};
  for (size_t i = 0; i < 4; i++) assert_cu_ok(f->api->graph_destroy(graphs[i]));
  free_memory(f, memory);
}

/* B9: a child is a snapshot, and is changed through its own handle. */
FAKE_TEST(children_are_copies) {
  const cu_address memory = make_memory(f);
  const cu_graph child = make_graph(f), graph = make_graph(f);
  cu_graph inner = NULL;
  cu_graph_node node = NULL, inside[2] = {NULL};
  size_t count = 2;
  (void)add_fill(f, child, NULL, 0, memory, 1);
  assert_cu_ok(f->api->graph_add_child(&node, graph, NULL, 0, child));
  (void)add_fill(f, graph, &node, 1, memory + 4, 2);
  (void)add_fill(f, child, NULL, 0, memory + 8, 3);
  assert_cu_ok(f->api->graph_child_get_graph(node, &inner));
  assert_cu_ok(f->api->graph_get_nodes(inner, inside, &count));
  assert_int_equal(count, 1);
  assert_cu_ok(f->api->memset_32_async(memory, 0, 4, f->stream));
  (void)add_fill(f, inner, inside, 1, memory, 9);
  const cu_graph_exec exec = instantiate(f, graph);
  launch_and_wait(f, exec);
  assert_int_equal(read_word(f, f->stream, memory), 9);
  assert_int_equal(read_word(f, f->stream, memory + 4), 2);
  assert_int_equal(read_word(f, f->stream, memory + 8), 0);
  assert_code(f->api->graph_destroy(inner), CU_INVALID_VALUE);
  expect_violations(f, 1);
  assert_cu_ok(f->api->exec_destroy(exec));
  assert_cu_ok(f->api->graph_destroy(graph));
  assert_cu_ok(f->api->graph_destroy(child));
  free_memory(f, memory);
}

FAKE_TEST(removed_nodes_take_their_edges_along) {
  const cu_graph graph = make_graph(f);
  const cu_graph_node a = add_empty(f, graph, NULL, 0), b = add_empty(f, graph, &a, 1), c = add_empty(f, graph, &b, 1);
  size_t count = 0;
  assert_cu_ok(f->foreign->graph_destroy_node(b));
  assert_cu_ok(f->api->graph_get_edges(graph, NULL, NULL, NULL, &count));
  assert_int_equal(count, 0);
  assert_cu_ok(f->api->graph_add_edges(graph, &a, &c, NULL, 1));
  assert_cu_ok(f->api->exec_destroy(instantiate(f, graph)));
  assert_cu_ok(f->api->graph_destroy(graph));
}

/* Waits of a launch mean what is recorded then; records of it count at once. */
FAKE_TEST(event_nodes_tie_launches_to_streams) {
  const cu_address memory = make_memory(f);
  const cu_graph graph = make_graph(f);
  cu_event before = NULL, after = NULL, stray = NULL;
  cu_graph_node wait = NULL, record = NULL;
  sem_t gate;
  assert_cu_ok(f->api->event_create(&before, CU_EVENT_FLAG_DISABLE_TIMING));
  assert_cu_ok(f->api->event_create(&after, CU_EVENT_FLAG_DISABLE_TIMING));
  assert_cu_ok(f->api->event_create(&stray, CU_EVENT_FLAG_DISABLE_TIMING));
  assert_cu_ok(f->api->graph_add_event_wait(&wait, graph, NULL, 0, before));
  const cu_graph_node fill = add_fill(f, graph, &wait, 1, memory, 4);
  assert_cu_ok(f->api->graph_add_event_record(&record, graph, &fill, 1, stray));
  const cu_graph_exec exec = instantiate(f, graph);
  assert_cu_ok(f->api->exec_set_event_record(exec, record, after));
  close_gate(f, f->other, &gate);
  assert_cu_ok(f->api->event_record(before, f->other));
  assert_cu_ok(f->api->exec_launch(exec, f->stream));
  assert_code(f->api->event_query(after), CU_NOT_READY);
  assert_cu_ok(f->api->event_query(stray));
  sem_post(&gate);
  assert_cu_ok(f->api->event_synchronize(after));
  assert_int_equal(read_word(f, f->stream, memory), 4);
  assert_cu_ok(f->api->event_destroy(after));
  assert_code(f->api->exec_launch(exec, f->stream), CU_INVALID_VALUE);
  expect_violations(f, 1);
  assert_cu_ok(f->api->exec_destroy(exec));
  assert_cu_ok(f->api->graph_destroy(graph));
  assert_cu_ok(f->api->event_destroy(before));
  assert_cu_ok(f->api->event_destroy(stray));
  free_memory(f, memory);
}

RUINS_TEST(a_fault_in_a_launch_ends_it) {
  const cu_address memory = make_memory(f);
  const cu_graph graph = make_graph(f);
  cu_function function = NULL;
  cu_event event = NULL;
  cu_graph_node record = NULL;
  (void)make_module(f, "fault_add", &function);
  assert_cu_ok(f->api->event_create(&event, CU_EVENT_FLAG_DISABLE_TIMING));
  const cu_graph_node kernel = add_kernel(f, graph, NULL, 0, function, 1, memory);
  assert_cu_ok(f->api->graph_add_event_record(&record, graph, &kernel, 1, event));
  const cu_graph_exec exec = instantiate(f, graph);
  assert_cu_ok(f->api->exec_launch(exec, f->stream));
  assert_code(f->api->event_synchronize(event), CU_ILLEGAL_ADDRESS);
  assert_code(f->api->exec_launch(exec, f->stream), CU_ILLEGAL_ADDRESS);
  assert_code(f->api->exec_destroy(exec), CU_ILLEGAL_ADDRESS);
  assert_int_equal(f->fake->live(FAKE_CUDA_EXEC), 0);
  assert_int_equal(f->fake->violations(), 0);
}
