/* SPDX-License-Identifier: MIT
 * Lets every call of the CUDA driver fail, once or from then on, with its own error or with one that loses the device.
 * The work takes every path of the device: kernels, copies, fills, host functions, events, pools, graph memory,
 * uploads, launches on several streams, updates of nodes and of whole graphs, timing, synchronous launches. Each error
 * has the driver's code unless the call cannot report it. Nothing is left in the driver or in host memory, and nothing
 * is misused.
 */
#include <stdatomic.h>

#include "fault/fault_cuda.h"
#include "support/test_effort.h"

enum { WORDS = 256, BYTES = WORDS * 4, SLICE = 100 };

/* Everything that the work creates, so that it can be destroyed in any state. */
typedef struct work {
  test_allocator allocator;
  rondo_device *device;
  rondo_stream *streams[2];
  rondo_event *events[2];
  rondo_kernel *set;
  rondo_graph *graph, *same;
  rondo_exec *exec, *relocated;
  rondo_node fill, kernel, host, copy;
  void *words, *scratch, *host_memory;
  atomic_int calls;
} work;

static rondo_status count_call(void *count) {
  (*(atomic_int *)count)++;
  return RONDO_OK;
}

/* Streams --------------------------------------------------------------------------------------------------------- */

static rondo_status open_all(work *w, bool synchronous) {
  const rondo_device_options options = {RONDO_DEVICE_OPTIONS_INIT, .synchronous = synchronous,
                                        .allocator = &w->allocator.table};
  TRY(rondo_device_open("cuda:0", &options, &w->device));
  for (int i = 0; i < 2; i++) {
    const rondo_event_options timed = {RONDO_EVENT_OPTIONS_INIT, .timing = true};
    TRY(rondo_stream_create(w->device, NULL, &w->streams[i]));
    TRY(rondo_event_create(w->device, &timed, &w->events[i]));
  }
  TRY(rondo_kernel_create(w->device, test_kernel_options(TEST_KERNEL_SET), &w->set));
  TRY(rondo_malloc(w->device, BYTES, NULL, &w->words));
  TRY(rondo_malloc_async(w->streams[0], 4 * BYTES, NULL, &w->scratch));
  return rondo_host_malloc(w->device, BYTES, &w->host_memory);
}

static rondo_status use_streams(work *w) {
  const uint32_t value = 7;
  const rondo_copy box = {.dst = w->scratch,
                          .src = w->words,
                          .width = 8,
                          .height = 4,
                          .depth = 2,
                          .src_pitch = 16,
                          .src_slice_pitch = SLICE,
                          .dst_pitch = 8};
  TRY(rondo_fill_async(w->streams[0], &(rondo_fill){.dst = w->words, .element_bytes = 4, .width = WORDS}));
  TRY(rondo_fill_async(w->streams[0],
                       &(rondo_fill){.dst = w->words, .element_bytes = 2, .width = 4, .height = 3, .pitch = 16}));
  TRY(rondo_launch(w->streams[0], w->set, (rondo_grid){WORDS, 1, 1}, RONDO_ARGS(&value, &w->words)));
  TRY(rondo_event_record(w->events[0], w->streams[0]));
  TRY(rondo_stream_wait_event(w->streams[1], w->events[0]));
  TRY(rondo_copy_async(w->streams[1], w->host_memory, w->words, BYTES));
  TRY(rondo_copy_box_async(w->streams[1], &box));
  TRY(rondo_host_async(w->streams[1], count_call, &w->calls));
  TRY(rondo_event_record(w->events[1], w->streams[1]));
  TRY(rondo_event_synchronize(w->events[1]));
  double microseconds;
  TRY(rondo_event_elapsed(w->events[0], w->events[1], &microseconds));
  TRY(rondo_free_async(w->streams[0], w->scratch));
  w->scratch = NULL;
  return rondo_stream_synchronize(w->streams[0]);
}

/* Graphs ---------------------------------------------------------------------------------------------------------- */

static rondo_status build(work *w, uint32_t value, rondo_graph **out) {
  void *memory;
  rondo_node node;
  TRY(rondo_graph_create(w->device, NULL, out));
  TRY(rondo_graph_add_alloc(*out, NULL, 0, 3 << 20, "scratch", &memory, &node));
  const rondo_fill fill = {.dst = memory, .value = value, .element_bytes = 1, .width = BYTES};
  const rondo_copy copy = {.dst = w->words, .src = memory, .width = BYTES};
  TRY(rondo_graph_add_fill(*out, &node, 1, &fill, &w->fill));
  TRY(rondo_graph_add_kernel(*out, &w->fill, 1, w->set, (rondo_grid){4, 1, 1}, RONDO_ARGS(&value, &memory),
                             &w->kernel));
  TRY(rondo_graph_add_host(*out, &w->kernel, 1, count_call, &w->calls, &w->host));
  TRY(rondo_graph_add_copy(*out, &w->host, 1, &copy, &w->copy));
  TRY(rondo_graph_add_event_record(*out, &w->copy, 1, w->events[0], &node));
  return rondo_graph_add_free(*out, &node, 1, memory, &node);
}

static rondo_status change(work *w) {
  rondo_node_params params;
  TRY(rondo_graph_get_params(w->graph, w->kernel, &params));
  const uint32_t value = 9;
  const void *const args[] = {&value, params.as.kernel.args[1]};
  params.as.kernel.args = args;
  TRY(rondo_exec_set_params(w->exec, w->kernel, &params));
  TRY(rondo_exec_set_enabled(w->exec, w->fill, false));
  const rondo_node_params host = {.kind = RONDO_NODE_HOST, .as.host = {.function = count_call, .user = &w->calls}};
  TRY(rondo_exec_set_params(w->exec, w->host, &host));
  TRY(rondo_graph_clone(w->graph, &w->same));
  return rondo_exec_update(w->exec, w->same, NULL);
}

static rondo_status use_graphs(work *w) {
  const rondo_instantiate_options relocate = {RONDO_INSTANTIATE_OPTIONS_INIT, .relocate = true};
  TRY(build(w, 5, &w->graph));
  TRY(rondo_instantiate(w->graph, NULL, &w->exec));
  TRY(rondo_exec_upload(w->exec, w->streams[0]));
  for (int i = 0; i < 3; i++) TRY(rondo_exec_launch(w->exec, w->streams[i % 2]));
  TRY(change(w));
  TRY(rondo_exec_launch(w->exec, w->streams[0]));
  TRY(rondo_event_record(w->events[1], w->streams[0]));
  TRY(rondo_stream_wait_event(w->streams[1], w->events[1]));
  TRY(rondo_instantiate(w->graph, &relocate, &w->relocated));
  TRY(rondo_exec_launch(w->relocated, w->streams[1]));
  TRY(rondo_device_synchronize(w->device));
  rondo_node_time times[8];
  size_t count = 8;
  TRY(rondo_exec_measure(w->exec, w->streams[0], 1, times, &count));
  return rondo_graph_memory_trim(w->device);
}

static rondo_status do_all(work *w, bool synchronous) {
  TRY(open_all(w, synchronous));
  TRY(use_streams(w));
  return use_graphs(w);
}

/* Sweeping -------------------------------------------------------------------------------------------------------- */

/* The first of `status` that is not OK. */
static rondo_status first_of(rondo_status status, rondo_status next) { return status != RONDO_OK ? status : next; }

/* Waits before it frees. An asynchronous failure of the device is reported here at the latest. */
static rondo_status tear_down(work *w) {
  rondo_status status = RONDO_OK;
  for (int i = 0; i < 2; i++)
    if (w->streams[i] != NULL) status = first_of(status, rondo_stream_synchronize(w->streams[i]));
  rondo_exec_destroy(w->exec);
  rondo_exec_destroy(w->relocated);
  if (w->graph != NULL) status = first_of(status, rondo_graph_destroy(w->graph));
  if (w->same != NULL) status = first_of(status, rondo_graph_destroy(w->same));
  if (w->scratch != NULL) status = first_of(status, rondo_free(w->device, w->scratch));
  if (w->words != NULL) status = first_of(status, rondo_free(w->device, w->words));
  if (w->host_memory != NULL) status = first_of(status, rondo_host_free(w->device, w->host_memory));
  rondo_kernel_destroy(w->set);
  for (int i = 0; i < 2; i++) {
    rondo_event_destroy(w->events[i]);
    status = first_of(status, rondo_stream_destroy(w->streams[i]));
  }
  return first_of(status, rondo_device_close(w->device));
}

/* Calls whose failure is not reported: queries, names, destruction; and calls whose failure the device works around. */
static bool may_fail_unheard(const char *call) {
  static const char *const names[] = {
      "cuMemGetInfo",
      "cuGetErrorName",
      "cuThreadExchangeStreamCaptureMode",
      "cuCtxGetCurrent",
      "cuCtxSetCurrent",
      "cuEventQuery",
      "cuEventSynchronize",
      "cuStreamGetCaptureInfo", /* of a stream that is not known to capture; test_fault_cuda_capture covers the other */
      "cuStreamDestroy",
      "cuEventDestroy",
      "cuGraphDestroy",
      "cuGraphExecDestroy",
      "cuModuleUnload",
      "cuMemUnmap",
      "cuMemRelease",
      "cuMemAddressFree",
      "cuMemFreeHost",
      "cuMemCreate",
      "cuGraphExecKernelNodeSetParams",
      "cuEventElapsedTime",
      "cuGraphExecHostNodeSetParams",
      "cuDevicePrimaryCtxRelease",
      "cuEventRecord",
      "cuFuncGetParamInfo",
  };
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    if (strcmp(names[i], call) == 0) return true;
  return false;
}

/* When memory runs out, the library gives back its cached memory and tries again. */
static bool is_tried_again(const char *call, unsigned code) {
  return code == NO_MEMORY && strncmp(call, "cuMem", strlen("cuMem")) == 0;
}

typedef struct failure {
  uint64_t at;
  unsigned code;
  bool onward, synchronous;
} failure;

/* What the driver refused to take back. */
static size_t lost_memory(const failure *of, const char *call) {
  if (!(of->onward || fault_cuda_gives_back(call)) || of->code == LAUNCH_FAILED) return 0;
  return fake->live(FAKE_CUDA_RESERVATION) + fake->live(FAKE_CUDA_MAPPING) + fake->live(FAKE_CUDA_PHYSICAL);
}

static void assert_nothing_left(const work *w, const failure *of, const char *call) {
  const size_t lost = lost_memory(of, call);
  fault_cuda_assert_clean(&w->allocator, lost, call, (size_t)of->at);
  if (lost > 0) fake->reset();
}

/* Returns false when the work makes fewer calls. */
static bool run(const failure *of) {
  static work w;
  memset(&w, 0, sizeof w);
  test_allocator_init(&w.allocator);
  fake->forget();
  fake->fail_call(NULL, of->at, of->code, of->onward);
  rondo_status status = do_all(&w, of->synchronous);
  int32_t code = rondo_last_error()->driver_code;
  const rondo_status end = tear_down(&w);
  if (status == RONDO_OK) code = rondo_last_error()->driver_code;
  status = first_of(status, end);
  const char *call = fake->failed();
  if (call == NULL) return false;
  assert_nothing_left(&w, of, call);
  if (status == RONDO_OK && !may_fail_unheard(call) && !is_tried_again(call, of->code))
    fail_msg("call %zu: %s failed unheard", (size_t)of->at, call);
  if (status != RONDO_OK && (unsigned)code != of->code)
    fail_msg("call %zu: %s failed with %u, heard was %s, code %d: %s", (size_t)of->at, call, of->code,
             rondo_status_name(status), code, rondo_last_error()->message);
  if (of->code == LAUNCH_FAILED && status != RONDO_OK && status != RONDO_DEVICE_LOST)
    fail_msg("call %zu: %s lost the device, heard was %s: %s", (size_t)of->at, call, rondo_status_name(status),
             rondo_last_error()->message);
  return true;
}

static void sweep(failure of) {
  size_t count = 0;
  fake->reset();
  for (of.at = 1; run(&of); of.at += test_failure_step()) count++;
  assert_true(count > 200 / test_failure_step());
}

FAULT_CUDA_TEST(each_call_is_refused) { sweep((failure){.code = REFUSED}); }

FAULT_CUDA_TEST(each_call_runs_out_of_memory) { sweep((failure){.code = NO_MEMORY}); }

FAULT_CUDA_TEST(each_call_and_all_after_it_are_refused) { sweep((failure){.code = REFUSED, .onward = true}); }

FAULT_CUDA_TEST(each_call_loses_the_device) { sweep((failure){.code = LAUNCH_FAILED}); }

FAULT_CUDA_TEST(each_call_of_synchronous_work_is_refused) { sweep((failure){.code = REFUSED, .synchronous = true}); }

FAULT_CUDA_TEST(each_call_of_synchronous_work_loses_the_device) {
  sweep((failure){.code = LAUNCH_FAILED, .synchronous = true});
}
