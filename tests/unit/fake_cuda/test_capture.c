/* SPDX-License-Identifier: MIT
 * Stream capture of the fake CUDA driver: the codes of docs/cuda-probes.md row by row, forks and joins, and what ends a
 * capture and what cannot (rules C).
 */
#include <pthread.h>

#include "unit/fake_cuda/fake_test.h"

/* Objects that were there before the capture, and one event of it. */
typedef struct scene {
  const fixture *f;
  cu_event captured, plain;
  cu_graph graph;
  void *host;
} scene;

static void begin(const fixture *f, cu_stream stream, cu_capture_mode mode) {
  assert_cu_ok(f->api->capture_begin(stream, mode));
}

static cu_graph end(const fixture *f, cu_stream stream) {
  cu_graph graph = NULL;
  assert_cu_ok(f->api->capture_end(stream, &graph));
  assert_non_null(graph);
  return graph;
}

static void end_fails(const fixture *f, cu_stream stream, cu_result code) {
  cu_graph graph = (cu_graph)f->stream;
  assert_code(f->api->capture_end(stream, &graph), code);
  assert_null(graph);
}

static size_t count_nodes(const fixture *f, cu_graph graph) {
  size_t count = 0;
  assert_cu_ok(f->api->graph_get_nodes(graph, NULL, &count));
  return count;
}

static size_t count_edges(const fixture *f, cu_graph graph) {
  size_t count = 0;
  assert_cu_ok(f->api->graph_get_edges(graph, NULL, NULL, NULL, &count));
  return count;
}

static void do_nothing(void *user) { (void)user; }

static void submit(const fixture *f, cu_stream stream) {
  assert_cu_ok(f->api->launch_host_function(stream, do_nothing, NULL));
}

/* The probes, by mode --------------------------------------------------------------------------------------------- */

static cu_result query_own(scene *s) { return s->f->api->stream_query(s->f->stream); }
static cu_result query_other(scene *s) { return s->f->api->stream_query(s->f->other); }
static cu_result query_captured(scene *s) { return s->f->api->event_query(s->captured); }
static cu_result query_plain(scene *s) { return s->f->api->event_query(s->plain); }
static cu_result wait_captured(scene *s) { return s->f->api->event_synchronize(s->captured); }
static cu_result wait_own(scene *s) { return s->f->api->stream_synchronize(s->f->stream); }
static cu_result wait_other(scene *s) { return s->f->api->stream_synchronize(s->f->other); }
static cu_result wait_context(scene *s) { return s->f->api->context_synchronize(); }
static cu_result begin_again(scene *s) { return s->f->api->capture_begin(s->f->stream, CU_CAPTURE_MODE_RELAXED); }

static cu_result allocate_host(scene *s) { return s->f->api->host_alloc(&s->host, 64, 0); }

static cu_result use_legacy(scene *s) {
  const cu_address memory = make_memory(s->f);
  const cu_result code = s->f->api->memset_8_async(memory, 1, 1, NULL);
  s->f->fake->settle();
  free_memory(s->f, memory);
  return code;
}

static cu_result ask_info(scene *s) {
  cu_capture_status status = 99;
  return s->f->api->capture_info(s->f->stream, &status, NULL, NULL, NULL, NULL, NULL);
}

static cu_result map_memory(scene *s) {
  free_memory(s->f, make_memory(s->f));
  return CU_OK;
}

static cu_result make_stream(scene *s) {
  cu_stream stream = NULL;
  const cu_result code = s->f->api->stream_create(&stream, 0);
  return code != CU_OK ? code : s->f->api->stream_destroy(stream);
}

static cu_result make_event(scene *s) {
  cu_event event = NULL;
  const cu_result code = s->f->api->event_create(&event, 0);
  return code != CU_OK ? code : s->f->api->event_destroy(event);
}

/* The first time, and again: only the first does anything. */
static cu_result enable_peer(scene *s) {
  cu_context peer = NULL;
  assert_cu_ok(s->f->api->primary_retain(&peer, 1));
  const cu_result code = s->f->foreign->context_enable_peer(peer, 0);
  if (code == CU_OK) assert_code(s->f->foreign->context_enable_peer(peer, 0), FAKE_CUDA_PEER_IS_ENABLED);
  assert_cu_ok(s->f->api->primary_release(1));
  return code;
}

static cu_result make_exec(scene *s) {
  cu_instantiate_params params = {0};
  cu_graph_exec exec = NULL;
  const cu_result code = s->f->api->graph_instantiate(&exec, s->graph, &params);
  return code != CU_OK ? code : s->f->api->exec_destroy(exec);
}

typedef struct probe {
  const char *what;
  cu_result (*act)(scene *s);
  cu_result code[3]; /* by mode; what is 9xx ends the capture */
} probe;

static const probe probes[] = {
    {"cuStreamQuery of the capturing stream", query_own, {900, 900, 900}},
    {"cuStreamQuery of another stream", query_other, {900, 900, 0}},
    {"cuEventQuery of a captured event", query_captured, {907, 907, 907}},
    {"cuEventQuery of another event", query_plain, {900, 900, 0}},
    {"cuEventSynchronize of a captured event", wait_captured, {907, 907, 907}},
    {"cuStreamSynchronize of the capturing stream", wait_own, {900, 900, 900}},
    {"cuStreamSynchronize of another stream", wait_other, {900, 900, 0}},
    {"cuCtxSynchronize", wait_context, {900, 900, 900}},
    {"cuMemHostAlloc", allocate_host, {900, 900, 0}},
    {"cuMemsetD8Async on the legacy stream", use_legacy, {0, 0, 0}},
    {"cuStreamGetCaptureInfo", ask_info, {0, 0, 0}},
    {"cuStreamBeginCapture again", begin_again, {401, 401, 401}},
    {"reserving, making and mapping memory", map_memory, {0, 0, 0}},
    {"cuStreamCreate", make_stream, {0, 0, 0}},
    {"cuEventCreate", make_event, {0, 0, 0}},
    {"cuCtxEnablePeerAccess", enable_peer, {900, 900, 0}},
    {"cuGraphInstantiate", make_exec, {900, 900, 0}},
};

static void run_probe(scene *s, const probe *p, cu_capture_mode mode) {
  const fixture *f = s->f;
  begin(f, f->stream, mode);
  submit(f, f->stream);
  assert_cu_ok(f->api->event_record(s->captured, f->stream));
  const cu_result code = p->act(s);
  if (code != p->code[mode]) print_error("%s, mode %d: %u\n", p->what, mode, code);
  assert_code(code, p->code[mode]);
  if (code >= CU_STREAM_CAPTURE_UNSUPPORTED)
    end_fails(f, f->stream, CU_STREAM_CAPTURE_INVALIDATED);
  else
    assert_cu_ok(f->api->graph_destroy(end(f, f->stream)));
  if (s->host != NULL) assert_cu_ok(f->api->host_free(s->host));
  s->host = NULL;
}

FAKE_TEST(calls_answer_as_a_driver_does) {
  scene s = {.f = f};
  assert_cu_ok(s.f->api->event_create(&s.captured, 0));
  assert_cu_ok(s.f->api->event_create(&s.plain, 0));
  assert_cu_ok(s.f->api->graph_create(&s.graph, 0));
  for (size_t i = 0; i < sizeof probes / sizeof probes[0]; i++) {
    for (cu_capture_mode mode = 0; mode < 3; mode++) run_probe(&s, &probes[i], mode);
  }
  assert_cu_ok(s.f->api->event_destroy(s.captured));
  assert_cu_ok(s.f->api->event_destroy(s.plain));
  assert_cu_ok(s.f->api->graph_destroy(s.graph));
}

FAKE_TEST(execs_are_not_launched_into_captures) {
  cu_graph graph = NULL;
  assert_cu_ok(f->api->graph_create(&graph, 0));
  const cu_graph_exec exec = instantiate(f, graph);
  begin(f, f->stream, CU_CAPTURE_MODE_RELAXED);
  assert_code(f->api->exec_launch(exec, f->stream), CU_STREAM_CAPTURE_UNSUPPORTED);
  end_fails(f, f->stream, CU_STREAM_CAPTURE_INVALIDATED);
  begin(f, f->stream, CU_CAPTURE_MODE_RELAXED);
  assert_code(f->api->exec_upload(exec, f->stream), CU_STREAM_CAPTURE_UNSUPPORTED);
  end_fails(f, f->stream, CU_STREAM_CAPTURE_INVALIDATED);
  assert_cu_ok(f->api->exec_destroy(exec));
  assert_cu_ok(f->api->graph_destroy(graph));
}

FAKE_TEST(bad_arguments_leave_the_capture_alone) {
  cu_function function = NULL;
  const cu_module module = make_module(f, "add", &function);
  begin(f, f->stream, CU_CAPTURE_MODE_GLOBAL);
  assert_code(f->api->launch_host_function(f->stream, NULL, NULL), CU_INVALID_VALUE);
  assert_code(f->api->launch_kernel(NULL, 1, 1, 1, 1, 1, 1, 0, f->stream, NULL, NULL), CU_INVALID_HANDLE);
  assert_code(f->api->capture_end(f->stream, NULL), CU_INVALID_VALUE);
  const cu_graph graph = end(f, f->stream);
  assert_int_equal(count_nodes(f, graph), 0);
  assert_code(f->api->capture_begin(f->stream, 3), CU_INVALID_VALUE);
  assert_code(f->api->capture_begin(NULL, CU_CAPTURE_MODE_RELAXED), CU_STREAM_CAPTURE_UNSUPPORTED);
  end_fails(f, f->stream, CU_ILLEGAL_STATE);
  assert_cu_ok(f->api->graph_destroy(graph));
  assert_cu_ok(f->api->module_unload(module));
}

/* What is captured ------------------------------------------------------------------------------------------------ */

FAKE_TEST(work_becomes_nodes_and_runs_later) {
  const cu_address memory = make_memory(f);
  cu_function function = NULL;
  const cu_module module = make_module(f, "add", &function);
  cu_graph_node nodes[4];
  cu_node_type types[4];
  cu_copy copy = {0};
  size_t count = 4;
  assert_cu_ok(f->api->memset_32_async(memory, 0, 8, f->stream));
  begin(f, f->stream, CU_CAPTURE_MODE_THREAD_LOCAL);
  assert_cu_ok(f->api->memset_32_async(memory, 20, 1, f->stream));
  assert_cu_ok(launch_add(f, function, f->stream, 2, memory));
  assert_cu_ok(f->api->copy_async(memory + 16, memory, 4, f->stream));
  submit(f, f->stream);
  const cu_graph graph = end(f, f->stream);
  assert_int_equal(read_word(f, f->stream, memory), 0);
  assert_int_equal(count_edges(f, graph), 3);
  assert_cu_ok(f->api->graph_get_nodes(graph, nodes, &count));
  for (size_t i = 0; i < 4; i++) assert_cu_ok(f->api->graph_node_get_type(nodes[i], &types[i]));
  const cu_node_type expected[] = {CU_NODE_MEMSET, CU_NODE_KERNEL, CU_NODE_COPY, CU_NODE_HOST};
  assert_memory_equal(types, expected, sizeof expected);
  assert_cu_ok(f->api->graph_copy_get_params(nodes[2], &copy));
  assert_int_equal(copy.src_type, CU_MEMORY_UNIFIED);
  assert_true(copy.dst_device == memory + 16);
  const cu_graph_exec exec = instantiate(f, graph);
  assert_cu_ok(f->api->exec_launch(exec, f->stream));
  assert_int_equal(read_word(f, f->stream, memory + 16), 22);
  assert_cu_ok(f->api->exec_destroy(exec));
  assert_cu_ok(f->api->graph_destroy(graph));
  assert_cu_ok(f->api->module_unload(module));
  free_memory(f, memory);
}

FAKE_TEST(argument_buffers_stay_what_they_are) {
  const cu_address memory = make_memory(f);
  cu_function function = NULL;
  const cu_module module = make_module(f, "add", &function);
  unsigned char arguments[16] = {3};
  size_t bytes = sizeof arguments, count = 1;
  void *extra[] = {(void *)(uintptr_t)1, arguments, (void *)(uintptr_t)2, &bytes, NULL};
  cu_kernel_params read = {0};
  cu_graph_node node = NULL;
  memcpy(arguments + 8, &memory, sizeof memory);
  begin(f, f->stream, CU_CAPTURE_MODE_GLOBAL);
  assert_cu_ok(f->api->launch_kernel(function, 1, 1, 1, 1, 1, 1, 0, f->stream, NULL, extra));
  const cu_graph graph = end(f, f->stream);
  assert_cu_ok(f->api->graph_get_nodes(graph, &node, &count));
  assert_cu_ok(f->api->graph_kernel_get_params(node, &read));
  assert_null(read.params);
  assert_int_equal((uintptr_t)read.extra[0], 1);
  assert_memory_equal(read.extra[1], arguments, sizeof arguments);
  assert_int_equal(*(const size_t *)read.extra[3], sizeof arguments);
  assert_cu_ok(f->api->graph_destroy(graph));
  assert_cu_ok(f->api->module_unload(module));
  free_memory(f, memory);
}

/* C3: the other stream forks off and is joined. */
FAKE_TEST(events_fork_and_join) {
  cu_event fork = NULL, join = NULL;
  assert_cu_ok(f->api->event_create(&fork, CU_EVENT_FLAG_DISABLE_TIMING));
  assert_cu_ok(f->api->event_create(&join, CU_EVENT_FLAG_DISABLE_TIMING));
  begin(f, f->stream, CU_CAPTURE_MODE_GLOBAL);
  submit(f, f->stream);
  assert_cu_ok(f->api->event_record(fork, f->stream));
  assert_cu_ok(f->api->stream_wait_event(f->other, fork, 0));
  submit(f, f->stream);
  submit(f, f->other);
  assert_cu_ok(f->api->event_record(join, f->other));
  assert_cu_ok(f->api->stream_wait_event(f->stream, join, 0));
  submit(f, f->stream);
  const cu_graph graph = end(f, f->stream);
  assert_int_equal(count_nodes(f, graph), 4);
  assert_int_equal(count_edges(f, graph), 4);
  assert_cu_ok(f->api->stream_query(f->other));
  assert_code(f->api->event_query(join), CU_CAPTURED_EVENT);
  assert_cu_ok(f->api->event_record(join, f->other));
  assert_cu_ok(f->api->event_synchronize(join));
  assert_cu_ok(f->api->graph_destroy(graph));
  assert_cu_ok(f->api->event_destroy(fork));
  assert_cu_ok(f->api->event_destroy(join));
}

/* Forks the other stream off a capture of the first. */
static void fork_other(const fixture *f, cu_event event) {
  begin(f, f->stream, CU_CAPTURE_MODE_RELAXED);
  submit(f, f->stream);
  assert_cu_ok(f->api->event_record(event, f->stream));
  assert_cu_ok(f->api->stream_wait_event(f->other, event, 0));
}

/* C4 and C5. */
FAKE_TEST(forks_must_be_joined) {
  cu_event event = NULL;
  assert_cu_ok(f->api->event_create(&event, CU_EVENT_FLAG_DISABLE_TIMING));
  fork_other(f, event);
  submit(f, f->other);
  end_fails(f, f->other, CU_STREAM_CAPTURE_UNMATCHED);
  end_fails(f, f->stream, CU_STREAM_CAPTURE_UNJOINED);
  submit(f, f->other); /* an ordinary stream again */
  fork_other(f, event);
  submit(f, f->other);
  assert_cu_ok(f->api->event_record(event, f->other));
  assert_cu_ok(f->api->stream_wait_event(f->stream, event, 0));
  submit(f, f->other); /* used after the join */
  end_fails(f, f->stream, CU_STREAM_CAPTURE_UNJOINED);
  fork_other(f, event); /* a fork without work needs no join */
  assert_cu_ok(f->api->graph_destroy(end(f, f->stream)));
  assert_cu_ok(f->api->stream_synchronize(f->other));
  assert_cu_ok(f->api->event_destroy(event));
}

/* C7. */
FAKE_TEST(captures_are_isolated) {
  cu_event plain = NULL, captured = NULL;
  assert_cu_ok(f->api->event_create(&plain, CU_EVENT_FLAG_DISABLE_TIMING));
  assert_cu_ok(f->api->event_create(&captured, CU_EVENT_FLAG_DISABLE_TIMING));
  assert_cu_ok(f->api->event_record(plain, f->other));
  begin(f, f->stream, CU_CAPTURE_MODE_RELAXED);
  assert_code(f->api->stream_wait_event(f->stream, plain, 0), CU_STREAM_CAPTURE_ISOLATION);
  assert_code(f->api->launch_host_function(f->stream, do_nothing, NULL), CU_STREAM_CAPTURE_INVALIDATED);
  end_fails(f, f->stream, CU_STREAM_CAPTURE_INVALIDATED);
  begin(f, f->stream, CU_CAPTURE_MODE_RELAXED);
  begin(f, f->other, CU_CAPTURE_MODE_RELAXED);
  assert_cu_ok(f->api->event_record(captured, f->stream));
  assert_code(f->api->stream_wait_event(f->other, captured, 0), CU_STREAM_CAPTURE_MERGE);
  end_fails(f, f->stream, CU_STREAM_CAPTURE_INVALIDATED);
  end_fails(f, f->other, CU_STREAM_CAPTURE_INVALIDATED);
  begin(f, f->stream, CU_CAPTURE_MODE_RELAXED);
  assert_cu_ok(f->api->stream_wait_event(f->stream, plain, CU_WAIT_EXTERNAL));
  assert_cu_ok(f->foreign->event_record_with_flags(plain, f->stream, CU_RECORD_EXTERNAL));
  const cu_graph graph = end(f, f->stream);
  assert_int_equal(count_nodes(f, graph), 2);
  assert_code(f->api->stream_wait_event(f->stream, plain, CU_WAIT_EXTERNAL), CU_INVALID_VALUE);
  assert_code(f->foreign->event_record_with_flags(plain, f->stream, CU_RECORD_EXTERNAL), CU_INVALID_VALUE);
  assert_cu_ok(f->api->graph_destroy(graph));
  assert_cu_ok(f->api->event_destroy(plain));
  assert_cu_ok(f->api->event_destroy(captured));
}

/* C8: the legacy stream during a blocking stream's capture. */
FAKE_TEST(the_legacy_stream_breaks_captures_of_blocking_streams) {
  const cu_address memory = make_memory(f);
  cu_stream blocking = NULL;
  cu_event event = NULL;
  cu_capture_status status = 99;
  assert_cu_ok(f->api->stream_create(&blocking, 0));
  assert_cu_ok(f->api->event_create(&event, CU_EVENT_FLAG_DISABLE_TIMING));
  begin(f, blocking, CU_CAPTURE_MODE_RELAXED);
  assert_code(f->api->capture_info(NULL, &status, NULL, NULL, NULL, NULL, NULL), CU_STREAM_CAPTURE_IMPLICIT);
  assert_cu_ok(f->api->capture_info(blocking, &status, NULL, NULL, NULL, NULL, NULL));
  assert_int_equal(status, CU_CAPTURE_STATUS_ACTIVE);
  assert_code(f->api->memset_8_async(memory, 1, 1, NULL), CU_STREAM_CAPTURE_IMPLICIT);
  end_fails(f, blocking, CU_STREAM_CAPTURE_INVALIDATED);
  begin(f, f->stream, CU_CAPTURE_MODE_RELAXED);
  assert_cu_ok(f->api->event_record(event, f->stream));
  assert_code(f->api->stream_wait_event(NULL, event, 0), CU_STREAM_CAPTURE_IMPLICIT);
  end_fails(f, f->stream, CU_STREAM_CAPTURE_INVALIDATED);
  assert_cu_ok(f->api->event_destroy(event));
  assert_cu_ok(f->api->stream_destroy(blocking));
  free_memory(f, memory);
}

/* C12 and C13 ----------------------------------------------------------------------------------------------------- */

FAKE_TEST(the_capture_can_be_read_and_steered) {
  const cu_graph_node *frontier = NULL;
  const cu_edge_data *data = NULL;
  cu_graph graph = NULL;
  cu_graph_node hand = NULL;
  uint64_t id = 0, again = 0;
  size_t count = 9;
  cu_capture_status status = 99;
  assert_cu_ok(f->api->capture_info(f->stream, &status, &id, &graph, &frontier, &data, &count));
  assert_int_equal(status, CU_CAPTURE_STATUS_NONE);
  assert_code(f->api->capture_set_dependencies(f->stream, NULL, NULL, 0, CU_CAPTURE_DEPENDENCIES_SET),
              CU_ILLEGAL_STATE);
  begin(f, f->stream, CU_CAPTURE_MODE_GLOBAL);
  submit(f, f->stream);
  assert_cu_ok(f->api->capture_info(f->stream, &status, &id, &graph, &frontier, &data, &count));
  assert_int_equal(status, CU_CAPTURE_STATUS_ACTIVE);
  assert_int_equal(count, 1);
  assert_cu_ok(f->api->graph_add_empty(&hand, graph, frontier, count));
  assert_code(f->api->capture_set_dependencies(f->stream, &hand, NULL, 1, 2), CU_INVALID_VALUE);
  assert_code(f->api->capture_set_dependencies(f->stream, NULL, NULL, 1, 0), CU_INVALID_VALUE);
  assert_cu_ok(f->api->capture_set_dependencies(f->stream, &hand, NULL, 1, CU_CAPTURE_DEPENDENCIES_SET));
  submit(f, f->stream);
  assert_cu_ok(f->api->capture_set_dependencies(f->stream, &hand, NULL, 1, CU_CAPTURE_DEPENDENCIES_ADD));
  assert_cu_ok(f->api->capture_info(f->stream, &status, &again, &graph, &frontier, &data, &count));
  assert_true(again == id && id != 0);
  assert_int_equal(count, 2);
  assert_code(f->api->graph_destroy(graph), CU_ILLEGAL_STATE);
  const cu_graph captured = end(f, f->stream);
  assert_ptr_equal(captured, graph);
  assert_int_equal(count_edges(f, captured), 2);
  assert_cu_ok(f->api->graph_destroy(captured));
}

FAKE_TEST(an_invalid_capture_shows_no_graph) {
  cu_graph graph = (cu_graph)f->stream;
  uint64_t id = 0;
  cu_capture_status status = 99;
  begin(f, f->stream, CU_CAPTURE_MODE_RELAXED);
  assert_code(f->api->stream_query(f->stream), CU_STREAM_CAPTURE_UNSUPPORTED);
  assert_cu_ok(f->api->capture_info(f->stream, &status, &id, &graph, NULL, NULL, NULL));
  assert_int_equal(status, CU_CAPTURE_STATUS_INVALIDATED);
  assert_null(graph);
  assert_true(id != 0);
  end_fails(f, f->stream, CU_STREAM_CAPTURE_INVALIDATED);
}

FAKE_TEST(edge_data_of_the_frontier_needs_room) {
  const cu_edge_data programmatic = {.from_port = 1, .type = 1};
  const cu_graph_node *frontier = NULL;
  const cu_edge_data *data = NULL;
  cu_graph graph = NULL;
  cu_graph_node node = NULL;
  size_t count = 0;
  cu_capture_status status = 99;
  begin(f, f->stream, CU_CAPTURE_MODE_RELAXED);
  assert_cu_ok(f->api->capture_info(f->stream, &status, NULL, &graph, NULL, NULL, NULL));
  assert_cu_ok(f->api->graph_add_empty(&node, graph, NULL, 0));
  assert_cu_ok(f->api->capture_set_dependencies(f->stream, &node, &programmatic, 1, CU_CAPTURE_DEPENDENCIES_SET));
  assert_code(f->api->capture_info(f->stream, &status, NULL, NULL, &frontier, NULL, &count), 402);
  assert_cu_ok(f->api->capture_info(f->stream, &status, NULL, NULL, &frontier, &data, &count));
  assert_int_equal(data[0].type, 1);
  submit(f, f->stream);
  const cu_graph captured = end(f, f->stream);
  cu_graph_node from = NULL, to = NULL;
  cu_edge_data kept = {0};
  count = 1;
  assert_cu_ok(f->api->graph_get_edges(captured, &from, &to, &kept, &count));
  assert_int_equal(kept.type, 1);
  assert_cu_ok(f->api->graph_destroy(captured));
}

/* Threads (C4, C9) ------------------------------------------------------------------------------------------------ */

typedef struct errand {
  const fixture *f;
  cu_capture_mode mode; /* of the thread */
  bool ends;            /* tries to end the capture, else allocates */
  cu_result code;
} errand;

static void *run_errand(void *argument) {
  errand *e = argument;
  cu_capture_mode mode = e->mode;
  void *host = NULL;
  cu_graph graph = NULL;
  e->code = e->f->api->context_set_current(e->f->context);
  if (e->code == CU_OK) e->code = e->f->api->capture_exchange_mode(&mode);
  if (e->code != CU_OK) return NULL;
  if (e->ends) {
    e->code = e->f->api->capture_end(e->f->stream, &graph);
    return NULL;
  }
  e->code = e->f->api->host_alloc(&host, 64, 0);
  if (e->code == CU_OK) e->code = e->f->api->host_free(host);
  return NULL;
}

static cu_result on_another_thread(const fixture *f, cu_capture_mode mode, bool ends) {
  errand e = {f, mode, ends, CU_OK};
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, run_errand, &e), 0);
  assert_int_equal(pthread_join(thread, NULL), 0);
  return e.code;
}

FAKE_TEST(another_threads_unsafe_calls_depend_on_both_modes) {
  for (cu_capture_mode capture = CU_CAPTURE_MODE_GLOBAL; capture <= CU_CAPTURE_MODE_RELAXED; capture++) {
    for (cu_capture_mode thread = CU_CAPTURE_MODE_GLOBAL; thread <= CU_CAPTURE_MODE_RELAXED; thread++) {
      const bool refused = capture == CU_CAPTURE_MODE_GLOBAL && thread == CU_CAPTURE_MODE_GLOBAL;
      begin(f, f->stream, capture);
      assert_code(on_another_thread(f, thread, false), refused ? CU_STREAM_CAPTURE_UNSUPPORTED : CU_OK);
      if (refused)
        end_fails(f, f->stream, CU_STREAM_CAPTURE_INVALIDATED);
      else
        assert_cu_ok(f->api->graph_destroy(end(f, f->stream)));
    }
  }
}

FAKE_TEST(the_mode_of_the_thread_is_exchanged) {
  cu_capture_mode mode = CU_CAPTURE_MODE_RELAXED;
  void *host = NULL;
  assert_cu_ok(f->api->capture_exchange_mode(&mode));
  assert_int_equal(mode, CU_CAPTURE_MODE_GLOBAL);
  begin(f, f->stream, CU_CAPTURE_MODE_GLOBAL);
  assert_cu_ok(f->api->host_alloc(&host, 64, 0));
  assert_cu_ok(f->api->host_free(host));
  assert_cu_ok(f->api->capture_exchange_mode(&mode));
  assert_int_equal(mode, CU_CAPTURE_MODE_RELAXED);
  assert_code(f->api->host_alloc(&host, 64, 0), CU_STREAM_CAPTURE_UNSUPPORTED);
  end_fails(f, f->stream, CU_STREAM_CAPTURE_INVALIDATED);
  mode = 7;
  assert_cu_ok(f->api->capture_exchange_mode(&mode));
  assert_cu_ok(f->api->capture_exchange_mode(&mode));
  assert_int_equal(mode, 7);
}

RUINS_TEST(only_relaxed_captures_end_on_another_thread) {
  begin(f, f->stream, CU_CAPTURE_MODE_THREAD_LOCAL);
  assert_code(on_another_thread(f, CU_CAPTURE_MODE_GLOBAL, true), CU_STREAM_CAPTURE_WRONG_THREAD);
  assert_cu_ok(f->api->graph_destroy(end(f, f->stream)));
  begin(f, f->stream, CU_CAPTURE_MODE_RELAXED);
  assert_code(on_another_thread(f, CU_CAPTURE_MODE_GLOBAL, true), CU_OK);
  assert_int_equal(f->fake->live(FAKE_CUDA_GRAPH), 1);
}

FAKE_TEST(destroying_a_stream_ends_its_capture) {
  cu_stream stream = NULL;
  cu_event event = NULL;
  assert_cu_ok(f->api->event_create(&event, CU_EVENT_FLAG_DISABLE_TIMING));
  assert_cu_ok(f->api->stream_create(&stream, CU_STREAM_FLAG_NON_BLOCKING));
  begin(f, stream, CU_CAPTURE_MODE_RELAXED);
  submit(f, stream);
  assert_cu_ok(f->api->stream_destroy(stream));
  assert_int_equal(f->fake->live(FAKE_CUDA_GRAPH), 0);
  assert_cu_ok(f->api->stream_create(&stream, CU_STREAM_FLAG_NON_BLOCKING));
  begin(f, f->stream, CU_CAPTURE_MODE_RELAXED);
  assert_cu_ok(f->api->event_record(event, f->stream));
  assert_cu_ok(f->api->stream_wait_event(stream, event, 0));
  assert_cu_ok(f->api->stream_destroy(stream));
  end_fails(f, f->stream, CU_STREAM_CAPTURE_INVALIDATED);
  assert_cu_ok(f->api->event_destroy(event));
}
