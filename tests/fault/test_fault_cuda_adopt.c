/* SPDX-License-Identifier: MIT
 * AD-1: Lets every call of the CUDA driver and every host allocation fail while streams of another handle of the
 * device, the legacy default stream and the thread's default stream are adopted, used by both handles, captured and
 * destroyed; also allocations on a CPU device. Either an error is returned or the results are right. Nothing is left in
 * the driver or in host memory, and nothing is misused.
 */
#include "fault/fault_cuda_sweep.h"

enum { WORDS = 4, STREAMS = 4 };

static test_allocator allocator;

static struct {
  rondo_device *owner, *device;
  rondo_stream *made, *adopted[STREAMS]; /* twice `made`; on CUDA the default streams, too */
  rondo_kernel *kernels[2];              /* of the owner's device, and of the other */
  rondo_event *event;
  uint32_t *words;
  void *scratch;
  rondo_graph *graph;
  rondo_exec *exec;
  uint32_t read[WORDS], calls;
  bool is_cuda;
} work;

static rondo_status open_device(const char *name, rondo_device **device, rondo_kernel **kernel) {
  const rondo_device_options options = {RONDO_DEVICE_OPTIONS_INIT, .workers = 1, .allocator = &allocator.table};
  TRY(rondo_device_open(name, &options, device));
  return rondo_kernel_create(*device, test_kernel_options(TEST_KERNEL_AFFINE), kernel);
}

static rondo_status adopt_all(void) {
  const rondo_stream_options first = {RONDO_STREAM_OPTIONS_INIT, .priority = work.is_cuda ? -1 : 0, .blocking = true};
  TRY(rondo_stream_create(work.owner, &first, &work.made));
  void *const natives[STREAMS] = {rondo_stream_native(work.made), rondo_stream_native(work.made), NULL,
                                  (void *)(uintptr_t)2 /* CU_STREAM_PER_THREAD */};
  for (int i = 0; i < (work.is_cuda ? STREAMS : 2); i++)
    TRY(rondo_stream_adopt(work.device, natives[i], NULL, &work.adopted[i]));
  return RONDO_OK;
}

static rondo_status make(const char *name) {
  void *words;
  TRY(open_device(name, &work.owner, &work.kernels[0]));
  TRY(open_device(name, &work.device, &work.kernels[1]));
  TRY(rondo_event_create(work.device, NULL, &work.event));
  TRY(rondo_malloc(work.device, sizeof work.read, NULL, &words));
  work.words = words;
  return adopt_all();
}

static rondo_status affine(rondo_stream *stream, int device, uint32_t factor, uint32_t term) {
  return rondo_launch(stream, work.kernels[device], (rondo_grid){WORDS, 0, 0}, RONDO_ARGS(&factor, &term, &work.words));
}

static rondo_status record(rondo_stream *stream) {
  TRY(rondo_capture_begin(stream, RONDO_CAPTURE_THREAD_LOCAL));
  rondo_status status = affine(stream, 1, 5, 1);
  if (status == RONDO_OK) status = rondo_host_async(stream, test_host_count, &work.calls);
  rondo_graph *graph = NULL;
  const rondo_status ended = rondo_capture_end(stream, &graph);
  if (graph != NULL) work.graph = graph;
  TRY(status);
  TRY(ended);
  return rondo_instantiate(work.graph, NULL, &work.exec);
}

/* The default streams come after the others by an event, and the others after them by waiting. */
static rondo_status use_defaults(void) {
  for (int i = 2; i < STREAMS; i++) {
    TRY(rondo_stream_wait_event(work.adopted[i], work.event));
    TRY(affine(work.adopted[i], 1, 1, 1));
    TRY(rondo_exec_launch(work.exec, work.adopted[i]));
    TRY(rondo_stream_synchronize(work.adopted[i]));
  }
  return RONDO_OK;
}

static rondo_status run(const char *name) {
  memset(&work, 0, sizeof work);
  work.is_cuda = strcmp(name, "cuda:0") == 0;
  TRY(make(name));
  TRY(rondo_fill_async(work.adopted[0], &(rondo_fill){.dst = work.words, .element_bytes = 4, .width = WORDS}));
  TRY(affine(work.made, 0, 1, 2));
  TRY(affine(work.adopted[1], 1, 3, 1));
  TRY(rondo_malloc_async(work.adopted[0], 64, NULL, &work.scratch));
  TRY(rondo_free_async(work.adopted[0], work.scratch));
  work.scratch = NULL;
  TRY(record(work.adopted[0]));
  TRY(rondo_exec_launch(work.exec, work.adopted[0]));
  TRY(affine(work.made, 0, 2, 0));
  TRY(rondo_event_record(work.event, work.adopted[1]));
  if (work.is_cuda) TRY(use_defaults());
  TRY(rondo_stream_wait_event(work.adopted[0], work.event));
  TRY(rondo_copy_async(work.adopted[0], work.read, work.words, sizeof work.read));
  return rondo_stream_synchronize(work.adopted[0]);
}

/* Teardown may return errors, too. The objects are destroyed in any case. */
static void tear_down(void) {
  rondo_exec_destroy(work.exec);
  rondo_status status = rondo_graph_destroy(work.graph);
  rondo_event_destroy(work.event);
  for (int i = 0; i < STREAMS; i++) status = rondo_stream_destroy(work.adopted[i]);
  status = rondo_stream_destroy(work.made);
  if (work.scratch != NULL) status = rondo_free(work.device, work.scratch);
  if (work.words != NULL) status = rondo_free(work.device, work.words);
  for (int i = 0; i < 2; i++) rondo_kernel_destroy(work.kernels[i]);
  status = rondo_device_close(work.device);
  status = rondo_device_close(work.owner);
  (void)status;
}

static void assert_whole(void) {
  uint32_t expected = ((2 * 3 + 1) * 5 + 1) * 2;
  for (int i = 2; i < STREAMS && work.is_cuda; i++) expected = (expected + 1) * 5 + 1;
  for (int i = 0; i < WORDS; i++) assert_int_equal(work.read[i], expected);
  assert_int_equal(work.calls, work.is_cuda ? 3 : 1);
}

/* The results differ between the devices. */
static void check(const fault_failure *of, rondo_status status) {
  if (status == RONDO_OK) assert_whole();
  fault_work_assert_clean(of);
}

static fault_work tested = {.run = run,
                            .tear_down = tear_down,
                            .assert_whole = assert_whole,
                            .check = check,
                            .least = 60,
                            .other = "cpu",
                            .memory = &allocator};
