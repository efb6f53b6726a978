/* SPDX-License-Identifier: MIT
 * TR-13, TR-15: every call of the CUDA driver and every allocation of host memory may fail while random numbers are
 * drawn plainly, recorded, launched on two streams, embedded and updated; allocations on a CPU device too. Either an
 * error comes out or the numbers are right; a plain draw that fails takes nothing, and recording never does; nothing is
 * left in the driver or in host memory, and nothing is misused.
 */
#include "fault/fault_cuda.h"

enum { FLOATS = 9, BUFFERS = 4 };

static const fake_cuda_control *fake;

typedef struct work {
  test_allocator allocator;
  rondo_device *device;
  rondo_stream *streams[2];
  rondo_event *event;
  rondo_generator *generator, *second;
  void *memory;
  rondo_graph *inner, *outer, *wider;
  rondo_exec *inner_exec, *exec;
  float read[BUFFERS * FLOATS];
} work;

static float *buffer(const work *w, size_t i) { return (float *)w->memory + i * FLOATS; }

static uint64_t offset_of(const rondo_generator *generator) {
  rondo_generator_state state = {RONDO_GENERATOR_STATE_INIT};
  assert_ok(rondo_generator_get_state(generator, &state));
  return state.offset;
}

static rondo_status make(work *w, const char *device) {
  const rondo_device_options options = {RONDO_DEVICE_OPTIONS_INIT, .workers = 1, .allocator = &w->allocator.table};
  const rondo_generator_options seeded = {RONDO_GENERATOR_OPTIONS_INIT, .name = "g", .seed = 5};
  TRY(rondo_device_open(device, &options, &w->device));
  for (int i = 0; i < 2; i++) TRY(rondo_stream_create(w->device, NULL, &w->streams[i]));
  TRY(rondo_event_create(w->device, NULL, &w->event));
  TRY(rondo_malloc(w->device, sizeof w->read, NULL, &w->memory));
  TRY(rondo_generator_create(w->device, &seeded, &w->generator));
  return rondo_generator_create(w->device, NULL, &w->second);
}

static rondo_status fill_plainly(work *w, size_t i) {
  const uint64_t before = offset_of(w->generator);
  const rondo_status status = rondo_random_uniform(w->generator, w->streams[0], buffer(w, i), FLOATS, 0, 1);
  assert_int_equal(offset_of(w->generator), status == RONDO_OK ? before + 4 : before);
  return status;
}

static rondo_status draw_outer(work *w, bool wider) {
  TRY(rondo_random_uniform(w->generator, w->streams[0], buffer(w, 1), FLOATS, 0, 1));
  TRY(rondo_exec_launch(w->inner_exec, w->streams[0]));
  return rondo_random_uniform(wider ? w->second : w->generator, w->streams[0], buffer(w, 2), FLOATS, 0, 1);
}

static rondo_status record(work *w, bool wider, rondo_graph **out) {
  const uint64_t before = offset_of(w->generator);
  TRY(rondo_capture_begin(w->streams[0], RONDO_CAPTURE_THREAD_LOCAL));
  const rondo_status status = draw_outer(w, wider), ended = rondo_capture_end(w->streams[0], out);
  assert_int_equal(offset_of(w->generator), before);
  TRY(status);
  return ended;
}

static rondo_status record_all(work *w) {
  rondo_random random;
  TRY(rondo_capture_begin(w->streams[0], RONDO_CAPTURE_THREAD_LOCAL));
  rondo_status status = rondo_random_uniform(w->generator, w->streams[0], buffer(w, 3), FLOATS, 0, 1);
  if (status == RONDO_OK) status = rondo_generator_reserve(w->second, w->streams[0], 1, &random);
  const rondo_status ended = rondo_capture_end(w->streams[0], &w->inner);
  TRY(status);
  TRY(ended);
  TRY(rondo_instantiate(w->inner, NULL, &w->inner_exec));
  TRY(record(w, false, &w->outer));
  return record(w, true, &w->wider);
}

static rondo_status launch_all(work *w) {
  TRY(rondo_instantiate(w->outer, NULL, &w->exec));
  for (int i = 0; i < 4; i++) TRY(rondo_exec_launch(w->exec, w->streams[i / 2]));
  TRY(rondo_exec_update(w->exec, w->wider, NULL));
  TRY(rondo_exec_launch(w->exec, w->streams[1]));
  TRY(rondo_exec_update(w->exec, w->outer, NULL));
  TRY(rondo_exec_launch(w->exec, w->streams[0]));
  TRY(rondo_event_record(w->event, w->streams[1]));
  return rondo_stream_wait_event(w->streams[0], w->event);
}

static rondo_status do_all(work *w, const char *device) {
  TRY(make(w, device));
  TRY(fill_plainly(w, 0));
  TRY(record_all(w));
  TRY(launch_all(w));
  TRY(fill_plainly(w, 0));
  TRY(rondo_copy_async(w->streams[0], w->read, w->memory, sizeof w->read));
  return rondo_stream_synchronize(w->streams[0]);
}

/* Errors here are told as well; the device is gone all the same. */
static void take_down(work *w) {
  rondo_exec_destroy(w->exec);
  rondo_exec_destroy(w->inner_exec);
  rondo_status status = rondo_graph_destroy(w->wider);
  status = rondo_graph_destroy(w->outer);
  status = rondo_graph_destroy(w->inner);
  rondo_generator_destroy(w->second);
  rondo_generator_destroy(w->generator);
  rondo_event_destroy(w->event);
  for (int i = 0; i < 2; i++) status = rondo_stream_destroy(w->streams[i]);
  status = rondo_free(w->device, w->memory);
  status = rondo_device_close(w->device);
  (void)status;
}

typedef struct failure {
  const char *device;
  uint64_t driver_at, allocation_at; /* 0: none */
  unsigned code;
  bool onward;
} failure;

/* What the driver refused to take back, or all once every call is refused. */
static bool may_be_left(const failure *of, const char *call) {
  if (of->code == LAUNCH_FAILED || call == NULL) return false;
  return of->onward || fault_cuda_gives_back(call);
}

static void assert_nothing_left(const work *w, const failure *of) {
  const char *call = fake->failed();
  fault_cuda_assert_clean(fake, &w->allocator, may_be_left(of, call) ? SIZE_MAX : 0, call == NULL ? "allocation" : call,
                          (size_t)(of->driver_at + of->allocation_at));
  if (fake->live(FAKE_CUDA_ANY) > 0) fake->reset();
}

static float right[BUFFERS * FLOATS];

/* Whether the failure came. */
static bool run(const failure *of) {
  static work w;
  memset(&w, 0, sizeof w);
  test_allocator_init(&w.allocator);
  atomic_store(&w.allocator.fail_at, of->allocation_at);
  atomic_store(&w.allocator.fail_on, of->onward);
  fake->forget();
  fake->fail_call(NULL, of->driver_at, of->code, of->onward);
  const rondo_status status = do_all(&w, of->device);
  const bool came = of->driver_at > 0 ? fake->failed() != NULL : atomic_load(&w.allocator.calls) >= of->allocation_at;
  take_down(&w);
  assert_nothing_left(&w, of);
  if (status == RONDO_OK) assert_memory_equal(w.read, right, sizeof right);
  return came;
}

static void sweep(failure of, bool of_driver) {
  uint64_t *at = of_driver ? &of.driver_at : &of.allocation_at;
  size_t count = 0;
  fake->reset();
  for (*at = 1; run(&of); (*at)++) count++;
  assert_true(count > 100);
}

static float expected_float(uint64_t offset, size_t i) {
  return (float)(rondo_philox(5, i / 4, offset).x[i % 4] >> 8) * 0x1p-24f;
}

/* Plain 0; four launches of 4 + 4 + 4, the wider one of 4 + 4, one more of the first form; plain again. */
static int load_driver(void **state) {
  static work w;
  (void)state;
  fake = fake_cuda_get();
  assert_non_null(fake);
  fake->reset();
  test_allocator_init(&w.allocator);
  assert_ok(do_all(&w, "cuda:0")); /* what fails at the first loading of a library is kept for good */
  const uint64_t last = 4 + 4 * 12 + 8;
  static const uint64_t offsets[BUFFERS] = {12, 0, 8, 4}; /* in the last launch, and behind it */
  for (size_t i = 0; i < BUFFERS * FLOATS; i++) {
    right[i] = expected_float(last + offsets[i / FLOATS], i % FLOATS);
    assert_true(w.read[i] == right[i]);
  }
  take_down(&w);
  return 0;
}

static void each_call_is_refused(void **state) {
  (void)state;
  sweep((failure){.device = "cuda:0", .code = REFUSED}, true);
}

static void each_call_runs_out_of_memory(void **state) {
  (void)state;
  sweep((failure){.device = "cuda:0", .code = NO_MEMORY}, true);
}

static void each_call_and_all_after_it_are_refused(void **state) {
  (void)state;
  sweep((failure){.device = "cuda:0", .code = REFUSED, .onward = true}, true);
}

static void each_call_loses_the_device(void **state) {
  (void)state;
  sweep((failure){.device = "cuda:0", .code = LAUNCH_FAILED}, true);
}

static void each_allocation_fails(void **state) {
  (void)state;
  sweep((failure){.device = "cuda:0"}, false);
  sweep((failure){.device = "cpu"}, false);
}

static void each_allocation_and_all_after_it_fail(void **state) {
  (void)state;
  sweep((failure){.device = "cuda:0", .onward = true}, false);
  sweep((failure){.device = "cpu", .onward = true}, false);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_call_is_refused),
      cmocka_unit_test(each_call_runs_out_of_memory),
      cmocka_unit_test(each_call_and_all_after_it_are_refused),
      cmocka_unit_test(each_call_loses_the_device),
      cmocka_unit_test(each_allocation_fails),
      cmocka_unit_test(each_allocation_and_all_after_it_fail),
  };
  return cmocka_run_group_tests_name("fault_cuda_random", tests, load_driver, NULL);
}
