/* SPDX-License-Identifier: MIT
 * Lets every call of the CUDA driver fail, with its own error, with out of memory, or with the loss of the device,
 * while a recording captures, is instantiated, replayed and reset. Nothing is left in the driver or in host memory and
 * nothing is misused. If the device is not lost, the same recording can then do all of the work (RC-1, RC-3, RC-5).
 */
#include "fault/fault_cuda.h"
#include "support/test_effort.h"

enum { WORDS = 64, BYTES = 4 * WORDS };

typedef struct work {
  test_allocator allocator;
  rondo_device *device, *other;
  rondo_stream *stream;
  rondo_kernel *set;
  rondo_recording *recording;
  void *words, *host, *page_locked;
} work;

static size_t heard; /* failures that were returned as a status */

static void set_up(work *w) {
  memset(w, 0, sizeof *w);
  test_allocator_init(&w->allocator);
  const rondo_device_options options = {RONDO_DEVICE_OPTIONS_INIT, .allocator = &w->allocator.table};
  assert_ok(rondo_device_open("cuda:0", &options, &w->device));
  assert_ok(rondo_device_open("cuda:0", &options, &w->other));
  assert_ok(rondo_stream_create(w->device, NULL, &w->stream));
  assert_ok(rondo_kernel_create(w->device, test_kernel_options(TEST_KERNEL_SET), &w->set));
  assert_ok(rondo_malloc(w->device, BYTES, NULL, &w->words));
  assert_ok(rondo_host_malloc(w->device, BYTES, &w->host));
  assert_ok(rondo_host_malloc(w->other, BYTES, &w->page_locked)); /* for which Rondo must query the driver */
  assert_ok(rondo_recording_create(w->device, NULL, &w->recording));
}

static rondo_status record(work *w) {
  const uint32_t value = 7;
  void *scratch, *kept;
  TRY(rondo_recording_capture_begin(w->recording, w->stream, RONDO_CAPTURE_THREAD_LOCAL));
  TRY(rondo_malloc_async(w->stream, 3 << 20, NULL, &scratch));
  TRY(rondo_copy_async(w->stream, scratch, w->host, BYTES));
  TRY(rondo_copy_async(w->stream, w->words, w->page_locked, BYTES));
  TRY(rondo_malloc_async(w->stream, BYTES, NULL, &kept));
  TRY(rondo_copy_async(w->stream, kept, scratch, BYTES));
  TRY(rondo_free_async(w->stream, scratch));
  TRY(rondo_launch(w->stream, w->set, (rondo_grid){WORDS, 1, 1}, RONDO_ARGS(&value, &w->words)));
  return rondo_recording_capture_end(w->recording, w->stream);
}

static rondo_status do_all(work *w) {
  for (int i = 0; i < 2; i++) {
    TRY(record(w));
    for (int k = 0; k < 3; k++) TRY(rondo_recording_replay(w->recording, w->stream));
    if (i == 1) TRY(rondo_stream_synchronize(w->stream));
    rondo_recording_reset(w->recording);
  }
  return RONDO_OK;
}

static void assert_usable(work *w) {
  uint32_t word = 0;
  rondo_recording_reset(w->recording);
  assert_ok(do_all(w));
  assert_ok(rondo_copy_async(w->stream, &word, w->words, sizeof word));
  assert_ok(rondo_stream_synchronize(w->stream));
  assert_int_equal(word, 7);
}

static void tear_down(work *w, bool lost) {
  rondo_recording_reset(w->recording);
  assert_ok(rondo_recording_destroy(w->recording));
  rondo_status status = rondo_stream_destroy(w->stream);
  const rondo_status frees[] = {rondo_free(w->device, w->words), rondo_host_free(w->device, w->host),
                                rondo_host_free(w->other, w->page_locked)};
  rondo_kernel_destroy(w->set);
  for (size_t i = 0; i < 3 && status == RONDO_OK; i++) status = frees[i];
  const rondo_status closed[] = {rondo_device_close(w->device), rondo_device_close(w->other)};
  for (size_t i = 0; i < 2 && status == RONDO_OK; i++) status = closed[i];
  assert_true(status == RONDO_OK || lost);
}

static void assert_nothing_left(const work *w, size_t at, const char *call) {
  const bool is_kept = fault_cuda_gives_back(call);
  fault_cuda_assert_clean(&w->allocator, is_kept ? SIZE_MAX : 0, call, at);
  if (is_kept) fake->reset();
}

/* Returns false when the work makes fewer calls. */
static bool run(unsigned code, size_t at) {
  static work w;
  fake->forget();
  set_up(&w);
  fake->fail_call(NULL, at, code, false);
  const rondo_status status = do_all(&w);
  const char *call = fake->failed();
  heard += status != RONDO_OK;
  if (status != RONDO_OK && call == NULL) fail_msg("nothing failed, but: %s", rondo_last_error()->message);
  if (call != NULL && code != LAUNCH_FAILED) {
    fake->fail_call(NULL, 0, 0, false);
    assert_usable(&w);
  }
  tear_down(&w, code == LAUNCH_FAILED);
  if (call != NULL) assert_nothing_left(&w, at, call);
  return call != NULL;
}

static void sweep(unsigned code) {
  size_t at = 1, count = 0;
  heard = 0;
  fake->reset();
  for (; run(code, at); at += test_failure_step()) count++;
  assert_true(count > 100 / test_failure_step());
  assert_true(heard > 30 / test_failure_step());
}

FAULT_CUDA_TEST(test_rc1_each_call_is_refused) { sweep(REFUSED); }
FAULT_CUDA_TEST(test_rc1_each_call_runs_out_of_memory) { sweep(NO_MEMORY); }
FAULT_CUDA_TEST(test_rc1_each_call_loses_the_device) { sweep(LAUNCH_FAILED); }
