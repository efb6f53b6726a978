/* SPDX-License-Identifier: MIT
 * Every call of the CUDA driver, by Rondo or by NCCL, and every allocation of host memory may fail while a rank joins a
 * group, queues and captures collectives, and leaves. Either an error comes out or the numbers are right; nothing is
 * left in the driver, in NCCL or in host memory, and nothing is misused (TR-16).
 */
#include "fake_cuda/fake_nccl.h"
#include "fault/fault_cuda.h"

enum { WORDS = 100 };

static const fake_cuda_control *fake;
static const fake_nccl_control *nccl;

/* A group of one: what waits for others is in the conformance suite. */
typedef struct work {
  test_allocator allocator;
  rondo_device *device;
  rondo_stream *stream;
  rondo_communicator *communicator;
  rondo_graph *graph;
  rondo_exec *exec;
  void *words;
  int32_t result[WORDS];
} work;

static rondo_status record(work *w) {
  TRY(rondo_capture_begin(w->stream, RONDO_CAPTURE_THREAD_LOCAL));
  rondo_status status =
      rondo_all_reduce(w->communicator, w->stream, w->words, w->words, WORDS, RONDO_I32, RONDO_REDUCE_MAX);
  if (status == RONDO_OK) status = rondo_barrier(w->communicator, w->stream);
  const rondo_status ended = rondo_capture_end(w->stream, &w->graph);
  TRY(status);
  TRY(ended);
  return rondo_instantiate(w->graph, NULL, &w->exec);
}

static rondo_status do_all(work *w) {
  const rondo_device_options options = {RONDO_DEVICE_OPTIONS_INIT, .allocator = &w->allocator.table};
  TRY(rondo_device_open("cuda:0", &options, &w->device));
  TRY(rondo_stream_create(w->device, NULL, &w->stream));
  TRY(rondo_malloc(w->device, sizeof w->result, NULL, &w->words));
  TRY(rondo_communicator_create_all(&w->device, 1, NULL, &w->communicator));
  const rondo_fill fill = {.dst = w->words, .value = 7, .element_bytes = 4, .width = WORDS};
  TRY(rondo_fill_async(w->stream, &fill));
  TRY(rondo_all_reduce(w->communicator, w->stream, w->words, w->words, WORDS, RONDO_I32, RONDO_REDUCE_SUM));
  TRY(record(w));
  TRY(rondo_exec_launch(w->exec, w->stream));
  TRY(rondo_copy_async(w->stream, w->result, w->words, sizeof w->result));
  return rondo_stream_synchronize(w->stream);
}

/* Errors here are told as well; all is gone all the same. The graph outlives the communicator. */
static void take_down(work *w) {
  rondo_status status = rondo_communicator_destroy(w->communicator);
  rondo_exec_destroy(w->exec);
  status = rondo_graph_destroy(w->graph);
  if (w->words != NULL) status = rondo_free(w->device, w->words);
  status = rondo_stream_destroy(w->stream);
  status = rondo_device_close(w->device);
  (void)status;
}

typedef struct failure {
  uint64_t driver_at, allocation_at; /* 0: none */
  unsigned code;
  bool onward;
} failure;

/* What the driver refused to take back, or all once every call is refused. */
static bool may_be_left(const failure *of, const char *call) {
  if (of->code == LAUNCH_FAILED || call == NULL) return false;
  return of->onward || fault_cuda_gives_back(call);
}

/* When nothing can be waited for any more, NCCL's work may still run while it is ended. */
static size_t count_running(const char *text) {
  static const char misuse[] = "fake_nccl_collective runs after its module was unloaded";
  size_t count = 0;
  while ((text = strstr(text, misuse)) != NULL) {
    text += sizeof misuse - 1;
    count++;
  }
  return count;
}

static void assert_nothing_left(const work *w, const failure *of) {
  char text[2048];
  const char *call = fake->failed();
  const size_t at = (size_t)(of->driver_at + of->allocation_at);
  fake->list_violations(text, sizeof text);
  const size_t excused = of->onward ? count_running(text) : 0;
  if (fake->violations() > excused) fail_msg("failure %zu (%s): misuse: %s", at, call == NULL ? "" : call, text);
  fake->list(text, sizeof text);
  if (fake->live(FAKE_CUDA_ANY) > 0 && !may_be_left(of, call))
    fail_msg("failure %zu (%s): left: %s", at, call == NULL ? "" : call, text);
  if (fake->live(FAKE_CUDA_ANY) > 0) fake->reset();
  if (nccl->live() > 0) fail_msg("failure %zu (%s): %zu communicators of NCCL left", at, call, nccl->live());
  if (atomic_load(&w->allocator.live) > 0 || atomic_load(&w->allocator.faults) > 0)
    fail_msg("failure %zu (%s): %zu blocks of host memory left", at, call, atomic_load(&w->allocator.live));
}

/* Whether the failure came. */
static bool run(const failure *of) {
  static work w;
  memset(&w, 0, sizeof w);
  test_allocator_init(&w.allocator);
  atomic_store(&w.allocator.fail_at, of->allocation_at);
  atomic_store(&w.allocator.fail_on, of->onward);
  fake->forget();
  fake->fail_call(NULL, of->driver_at, of->code, of->onward);
  const rondo_status status = do_all(&w);
  const bool came = of->driver_at > 0 ? fake->failed() != NULL : atomic_load(&w.allocator.calls) >= of->allocation_at;
  take_down(&w);
  assert_nothing_left(&w, of);
  for (int i = 0; i < WORDS && status == RONDO_OK; i++) assert_int_equal(w.result[i], 7);
  return came;
}

static void sweep(failure of, bool of_driver) {
  uint64_t *at = of_driver ? &of.driver_at : &of.allocation_at;
  size_t count = 0;
  fake->reset();
  for (*at = 1; run(&of); (*at)++) count++;
  assert_true(count > 40);
}

static int load_libraries(void **state) {
  static work w;
  (void)state;
  fake = fake_cuda_get();
  nccl = fake_nccl_get();
  assert_non_null(fake);
  assert_non_null(nccl);
  fake->reset();
  test_allocator_init(&w.allocator);
  assert_ok(do_all(&w)); /* what fails at the first loading of a library is kept for good */
  take_down(&w);
  return 0;
}

static void each_call_is_refused_tr_16(void **state) {
  (void)state;
  sweep((failure){.code = REFUSED}, true);
}

static void each_call_runs_out_of_memory_tr_16(void **state) {
  (void)state;
  sweep((failure){.code = NO_MEMORY}, true);
}

static void each_call_and_all_after_it_are_refused_tr_16(void **state) {
  (void)state;
  sweep((failure){.code = REFUSED, .onward = true}, true);
}

static void each_call_loses_the_device_tr_16(void **state) {
  (void)state;
  sweep((failure){.code = LAUNCH_FAILED}, true);
}

static void each_allocation_fails_tr_16(void **state) {
  (void)state;
  sweep((failure){0}, false);
}

static void each_allocation_and_all_after_it_fail_tr_16(void **state) {
  (void)state;
  sweep((failure){.onward = true}, false);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_call_is_refused_tr_16),
      cmocka_unit_test(each_call_runs_out_of_memory_tr_16),
      cmocka_unit_test(each_call_and_all_after_it_are_refused_tr_16),
      cmocka_unit_test(each_call_loses_the_device_tr_16),
      cmocka_unit_test(each_allocation_fails_tr_16),
      cmocka_unit_test(each_allocation_and_all_after_it_fail_tr_16),
  };
  return cmocka_run_group_tests(tests, load_libraries, NULL);
}
