/* SPDX-License-Identifier: MIT
 * Lets every driver call of capturing and importing, and every host allocation, fail while the kernels, copies, fills,
 * host functions, forks, child graphs and memory of a library are captured, instantiated and run. The error has the
 * driver's code. Nothing is left in the driver or in host memory, nothing is misused, and the streams can capture
 * afterwards (GX-8).
 */
#include "fault/fault_cuda.h"
#include "support/foreign_library.h"

enum { UNKNOWN = 999, WORDS = 16, OWN_CALLS = 7 }; /* UNKNOWN: REFUSED ends a kernel's parameters */

/* A library whose call is refused reports that to its caller, which stops. */
#define TRY_FOREIGN(call) \
  if ((call) != 0) return FOREIGN_FAILED
#define FOREIGN_FAILED RONDO_UNAVAILABLE

static foreign_library *foreign;
static size_t live_before;

/* Everything that the work creates, so that it can be destroyed in any state. */
typedef struct work {
  test_allocator allocator;
  rondo_device *device;
  rondo_stream *streams[2];
  rondo_event *event;
  rondo_kernel *set;
  uint32_t *words;
  rondo_graph *graphs[3], *given;
  rondo_exec *execs[3];
  uint32_t calls;
} work;

static void count_call(void *user) { ++*(uint32_t *)user; }

static rondo_status own(const work *w, rondo_stream *stream) {
  const uint32_t value = 3;
  return rondo_launch(stream, w->set, (rondo_grid){4, 1, 1}, RONDO_ARGS(&value, &w->words));
}

static rondo_status open_all(work *w) {
  const rondo_device_options options = {RONDO_DEVICE_OPTIONS_INIT, .allocator = &w->allocator.table};
  void *words;
  TRY(rondo_device_open("cuda:0", &options, &w->device));
  for (int i = 0; i < 2; i++) TRY(rondo_stream_create(w->device, NULL, &w->streams[i]));
  TRY(rondo_event_create(w->device, NULL, &w->event));
  TRY(rondo_kernel_create(w->device, test_kernel_options(TEST_KERNEL_SET), &w->set));
  TRY(rondo_malloc(w->device, WORDS * sizeof *w->words, NULL, &words));
  w->words = words;
  return RONDO_OK;
}

/* Capturing ------------------------------------------------------------------------------------------------------- */

static rondo_status capture_all_kinds(work *w) {
  rondo_stream *stream = w->streams[0];
  void *native = rondo_stream_native(stream), *forked, *memory;
  TRY(rondo_capture_begin(stream, RONDO_CAPTURE_THREAD_LOCAL));
  TRY(own(w, stream));
  TRY_FOREIGN(foreign_affine(foreign, native, 2, 1, w->words));
  TRY(rondo_malloc_async(stream, 4096, NULL, &memory));
  TRY_FOREIGN(foreign_affine_by_buffer(foreign, native, 2, 1, memory));
  TRY_FOREIGN(foreign_affine_early(foreign, native, 2, 1, w->words + 1));
  TRY(rondo_event_record(w->event, stream));
  TRY(rondo_stream_wait_event(w->streams[1], w->event));
  TRY_FOREIGN(foreign_copy(foreign, rondo_stream_native(w->streams[1]), w->words + 2, w->words, 4));
  TRY(own(w, w->streams[1]));
  TRY(rondo_event_record(w->event, w->streams[1]));
  TRY(rondo_free_async(stream, memory));
  TRY_FOREIGN(foreign_fork(foreign, native, &forked));
  TRY_FOREIGN(foreign_fill(foreign, forked, w->words + 4, 7, 2));
  TRY_FOREIGN(foreign_host(foreign, forked, count_call, &w->calls));
  TRY_FOREIGN(foreign_join(foreign, native));
  TRY(rondo_stream_wait_event(stream, w->event));
  TRY_FOREIGN(foreign_record_external(foreign, native));
  return rondo_capture_end(stream, &w->graphs[0]);
}

static rondo_status capture_bound(work *w) {
  rondo_stream *stream = w->streams[0];
  void *native = rondo_stream_native(stream), *memory, *mine;
  TRY(rondo_capture_begin(stream, RONDO_CAPTURE_RELAXED));
  TRY_FOREIGN(foreign_allocate(foreign, native, 4096, &memory));
  TRY(rondo_malloc_async(stream, 4096, NULL, &mine));
  TRY_FOREIGN(foreign_fill(foreign, native, mine, 3, 2));
  TRY_FOREIGN(foreign_copy(foreign, native, memory, mine, 4));
  TRY(rondo_copy_async(stream, w->words + 6, memory, 4));
  TRY(rondo_copy_async(stream, mine, memory, 4));
  TRY_FOREIGN(foreign_free(foreign, native, memory));
  TRY(rondo_free_async(stream, mine));
  TRY(own(w, stream));
  TRY(rondo_exec_launch(w->execs[0], stream));
  return rondo_capture_end(stream, &w->graphs[1]);
}

static rondo_status capture_into_given(work *w) {
  rondo_stream *stream = w->streams[0];
  rondo_capture_info info = {.struct_size = sizeof info};
  rondo_node node;
  TRY(rondo_graph_create(w->device, NULL, &w->given));
  TRY(rondo_graph_add_empty(w->given, NULL, 0, &node));
  TRY(rondo_capture_begin_to_graph(stream, w->given, &node, 1, RONDO_CAPTURE_THREAD_LOCAL));
  TRY_FOREIGN(foreign_affine(foreign, rondo_stream_native(stream), 2, 1, w->words));
  TRY(rondo_capture_get_info(stream, &info));
  if (info.state != RONDO_CAPTURE_ACTIVE) return rondo_capture_end(stream, NULL);
  TRY(rondo_graph_add_empty(info.graph, info.frontier, info.frontier_count, &node));
  TRY(rondo_capture_set_frontier(stream, &node, 1, true));
  TRY(own(w, stream));
  return rondo_capture_end(stream, NULL);
}

static rondo_status do_all(work *w) {
  TRY(open_all(w));
  TRY(capture_all_kinds(w));
  TRY(rondo_instantiate(w->graphs[0], NULL, &w->execs[0]));
  TRY(rondo_exec_launch(w->execs[0], w->streams[0]));
  TRY(capture_bound(w));
  TRY(rondo_instantiate(w->graphs[1], NULL, &w->execs[1]));
  TRY(rondo_exec_launch(w->execs[1], w->streams[0]));
  TRY(capture_into_given(w));
  TRY(rondo_instantiate(w->given, NULL, &w->execs[2]));
  TRY(rondo_exec_launch(w->execs[2], w->streams[0]));
  return rondo_stream_synchronize(w->streams[0]);
}

/* Sweeping -------------------------------------------------------------------------------------------------------- */

/* Ends captures that are still active; the streams then capture and run normally. */
static void assert_usable(work *w) {
  rondo_graph *graph = NULL;
  rondo_capture_info info = test_capture_info(w->streams[0]);
  if (info.state != RONDO_CAPTURE_NONE && rondo_capture_end(w->streams[0], &graph) == RONDO_OK && graph != w->given)
    assert_ok(rondo_graph_destroy(graph));
  assert_ok(rondo_capture_begin(w->streams[0], RONDO_CAPTURE_THREAD_LOCAL));
  assert_ok(own(w, w->streams[0]));
  assert_int_equal(foreign_affine(foreign, rondo_stream_native(w->streams[0]), 2, 1, w->words), 0);
  assert_ok(rondo_capture_end(w->streams[0], &w->graphs[2]));
  assert_ok(rondo_stream_synchronize(w->streams[0]));
  assert_ok(rondo_stream_synchronize(w->streams[1]));
}

static void tear_down(work *w) {
  const bool is_open = w->words != NULL;
  if (is_open) assert_usable(w);
  for (int i = 0; i < 3; i++) rondo_exec_destroy(w->execs[i]);
  for (int i = 0; i < 3; i++) assert_ok(rondo_graph_destroy(w->graphs[i]));
  assert_ok(rondo_graph_destroy(w->given));
  if (w->words != NULL) assert_ok(rondo_free(w->device, w->words));
  rondo_kernel_destroy(w->set);
  rondo_event_destroy(w->event);
  for (int i = 0; i < 2; i++) assert_ok(rondo_stream_destroy(w->streams[i]));
  assert_ok(rondo_device_close(w->device));
}

/* Rondo works without the answer to these calls: whether a stream that does not capture has joined a capture, and the
 * parameters of the first three kernels. */
static bool may_be_silent(const char *name, size_t at) {
  return strcmp(name, "cuStreamGetCaptureInfo") == 0 || (strcmp(name, "cuFuncGetParamInfo") == 0 && at <= OWN_CALLS);
}

/* Refuses the nth call of `name`, or with NULL fails the nth allocation. Returns false when there are fewer. */
static bool run(const char *name, size_t at) {
  static work w;
  const char *const what = name != NULL ? name : "allocation";
  memset(&w, 0, sizeof w);
  test_allocator_init(&w.allocator);
  fake->forget();
  if (name != NULL)
    fake->fail_call(name, at, UNKNOWN, false);
  else
    atomic_store(&w.allocator.fail_at, at);
  const rondo_status status = do_all(&w);
  const int32_t code = rondo_last_error()->driver_code;
  const bool failed = name != NULL ? fake->failed() != NULL : atomic_load(&w.allocator.calls) >= at;
  fake->forget();
  atomic_store(&w.allocator.fail_at, 0);
  if (name != NULL && failed && status == RONDO_OK && !may_be_silent(name, at))
    fail_msg("%s %zu failed, and no error was returned", what, at);
  const bool is_reported = status == RONDO_OK || status == FOREIGN_FAILED || code == UNKNOWN ||
                           (name == NULL && status == RONDO_OUT_OF_MEMORY);
  if (!is_reported)
    fail_msg("%s %zu: the status is %s, code %d: %s", what, at, rondo_status_name(status), code,
             rondo_last_error()->message);
  tear_down(&w);
  fault_cuda_assert_clean(&w.allocator, live_before, what, at);
  assert_int_equal(fake->live(FAKE_CUDA_ANY), live_before);
  return failed;
}

static const char *const names[] = {
    "cuStreamBeginCapture",
    "cuStreamGetCaptureInfo",
    "cuStreamUpdateCaptureDependencies",
    "cuStreamEndCapture",
    "cuGraphAddEmptyNode",
    "cuGraphGetNodes",
    "cuGraphGetEdges",
    "cuGraphNodeGetDependencies",
    "cuGraphNodeGetType",
    "cuGraphKernelNodeGetParams",
    "cuFuncGetParamInfo",
    "cuFuncGetName",
    "cuGraphMemcpyNodeGetParams",
    "cuGraphMemsetNodeGetParams",
    "cuGraphHostNodeGetParams",
    "cuGraphMemAllocNodeGetParams",
    "cuGraphMemFreeNodeGetParams",
    "cuGraphEventRecordNodeGetEvent",
    "cuGraphAddDependencies",
    "cuGraphKernelNodeCopyAttributes",
    "cuGraphAddKernelNode",
    "cuGraphAddMemcpyNode",
    "cuMemCreate",
    "cuMemMap",
    "cuMemSetAccess",
    "cuGraphAddHostNode",
    "cuGraphInstantiateWithParams",
    "cuLaunchKernel",
    "cuStreamWaitEvent",
};

UNIT_TEST(each_call_of_the_import_is_refused) {
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    size_t at = 1;
    while (run(names[i], at)) at++;
    if (at == 1) fail_msg("%s is not called", names[i]);
  }
}

UNIT_TEST(each_allocation_fails) {
  size_t at = 1;
  while (run(NULL, at)) at++;
  assert_true(at > 200);
}

static int load_driver(void **state) {
  assert_int_equal(fault_cuda_set_up(state), 0);
  foreign = foreign_open();
  assert_non_null(foreign);
  live_before = fake->live(FAKE_CUDA_ANY);
  return 0;
}

static int unload(void **state) {
  (void)state;
  foreign_close(foreign);
  return 0;
}

int main(void) { return test_run_registered_in(load_driver, unload); }
