/* SPDX-License-Identifier: MIT
 * TR-13, TR-15: Lets every call of the CUDA driver and every host allocation fail while random numbers are drawn
 * eagerly, recorded, launched on two streams, embedded and updated; also allocations on a CPU device. Either an error
 * is returned or the numbers are right. An eager draw that fails does not advance the generator, and recording never
 * does. Nothing is left in the driver or in host memory, and nothing is misused.
 */
#include "fault/fault_cuda_sweep.h"

enum { FLOATS = 9, BUFFERS = 4 };

static test_allocator allocator;

static struct {
  rondo_device *device;
  rondo_stream *streams[2];
  rondo_event *event;
  rondo_generator *generator, *second;
  void *memory;
  rondo_graph *inner, *outer, *wider;
  rondo_exec *inner_exec, *exec;
  float read[BUFFERS * FLOATS];
} work;

static float *buffer(size_t i) { return (float *)work.memory + i * FLOATS; }

static uint64_t offset_of(const rondo_generator *generator) {
  rondo_generator_state state = {RONDO_GENERATOR_STATE_INIT};
  assert_ok(rondo_generator_get_state(generator, &state));
  return state.offset;
}

static rondo_status make(const char *device) {
  const rondo_device_options options = {RONDO_DEVICE_OPTIONS_INIT, .workers = 1, .allocator = &allocator.table};
  const rondo_generator_options seeded = {RONDO_GENERATOR_OPTIONS_INIT, .name = "g", .seed = 5};
  TRY(rondo_device_open(device, &options, &work.device));
  for (int i = 0; i < 2; i++) TRY(rondo_stream_create(work.device, NULL, &work.streams[i]));
  TRY(rondo_event_create(work.device, NULL, &work.event));
  TRY(rondo_malloc(work.device, sizeof work.read, NULL, &work.memory));
  TRY(rondo_generator_create(work.device, &seeded, &work.generator));
  return rondo_generator_create(work.device, NULL, &work.second);
}

static rondo_status fill_plainly(size_t i) {
  const uint64_t before = offset_of(work.generator);
  const rondo_status status = rondo_random_uniform(work.generator, work.streams[0], buffer(i), FLOATS, 0, 1);
  assert_int_equal(offset_of(work.generator), status == RONDO_OK ? before + 4 : before);
  return status;
}

static rondo_status draw_outer(bool wider) {
  TRY(rondo_random_uniform(work.generator, work.streams[0], buffer(1), FLOATS, 0, 1));
  TRY(rondo_exec_launch(work.inner_exec, work.streams[0]));
  return rondo_random_uniform(wider ? work.second : work.generator, work.streams[0], buffer(2), FLOATS, 0, 1);
}

static rondo_status record(bool wider, rondo_graph **out) {
  const uint64_t before = offset_of(work.generator);
  TRY(rondo_capture_begin(work.streams[0], RONDO_CAPTURE_THREAD_LOCAL));
  const rondo_status status = draw_outer(wider), ended = rondo_capture_end(work.streams[0], out);
  assert_int_equal(offset_of(work.generator), before);
  TRY(status);
  return ended;
}

static rondo_status record_all(void) {
  rondo_random random;
  TRY(rondo_capture_begin(work.streams[0], RONDO_CAPTURE_THREAD_LOCAL));
  rondo_status status = rondo_random_uniform(work.generator, work.streams[0], buffer(3), FLOATS, 0, 1);
  if (status == RONDO_OK) status = rondo_generator_reserve(work.second, work.streams[0], 1, &random);
  const rondo_status ended = rondo_capture_end(work.streams[0], &work.inner);
  TRY(status);
  TRY(ended);
  TRY(rondo_instantiate(work.inner, NULL, &work.inner_exec));
  TRY(record(false, &work.outer));
  return record(true, &work.wider);
}

static rondo_status launch_all(void) {
  TRY(rondo_instantiate(work.outer, NULL, &work.exec));
  for (int i = 0; i < 4; i++) TRY(rondo_exec_launch(work.exec, work.streams[i / 2]));
  TRY(rondo_exec_update(work.exec, work.wider, NULL));
  TRY(rondo_exec_launch(work.exec, work.streams[1]));
  TRY(rondo_exec_update(work.exec, work.outer, NULL));
  TRY(rondo_exec_launch(work.exec, work.streams[0]));
  TRY(rondo_event_record(work.event, work.streams[1]));
  return rondo_stream_wait_event(work.streams[0], work.event);
}

static rondo_status run(const char *device) {
  memset(&work, 0, sizeof work);
  TRY(make(device));
  TRY(fill_plainly(0));
  TRY(record_all());
  TRY(launch_all());
  TRY(fill_plainly(0));
  TRY(rondo_copy_async(work.streams[0], work.read, work.memory, sizeof work.read));
  return rondo_stream_synchronize(work.streams[0]);
}

/* Teardown may return errors, too. The objects are destroyed in any case. */
static void tear_down(void) {
  rondo_exec_destroy(work.exec);
  rondo_exec_destroy(work.inner_exec);
  rondo_status status = rondo_graph_destroy(work.wider);
  status = rondo_graph_destroy(work.outer);
  status = rondo_graph_destroy(work.inner);
  rondo_generator_destroy(work.second);
  rondo_generator_destroy(work.generator);
  rondo_event_destroy(work.event);
  for (int i = 0; i < 2; i++) status = rondo_stream_destroy(work.streams[i]);
  status = rondo_free(work.device, work.memory);
  status = rondo_device_close(work.device);
  (void)status;
}

static float expected_float(uint64_t offset, size_t i) {
  return (float)(rondo_philox(5, i / 4, offset).x[i % 4] >> 8) * 0x1p-24f;
}

/* An eager draw from 0; four launches of 4 + 4 + 4, the wider one of 4 + 4, and one more of the first form; another
 * eager draw. */
static void assert_whole(void) {
  const uint64_t last = 4 + 4 * 12 + 8;
  static const uint64_t offsets[BUFFERS] = {12, 0, 8, 4}; /* in the last launch, and after it */
  for (size_t i = 0; i < BUFFERS * FLOATS; i++)
    assert_true(work.read[i] == expected_float(last + offsets[i / FLOATS], i % FLOATS));
}

static fault_work tested = {.run = run,
                            .tear_down = tear_down,
                            .assert_whole = assert_whole,
                            .results = work.read,
                            .result_bytes = sizeof work.read,
                            .least = 100,
                            .other = "cpu",
                            .memory = &allocator};
