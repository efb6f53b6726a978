/* SPDX-License-Identifier: MIT
 * Lets every driver call and every allocation fail, once or from then on, while a recording is created, captures, is
 * replayed, reset and created again. It is then either empty or ready, a reset frees everything, and afterwards the
 * same recording can do all of the work (RC-1, RC-3).
 */
#define _GNU_SOURCE
#include <rondo/rondo.h>

#include "fault/fault_fake.h"
#include "support/rondo_test.h"

#define PAGE FAKE_PAGE

typedef struct rig {
  test_allocator allocator;
  rondo_device *device;
  rondo_stream *streams[2];
  rondo_recording *recordings[2]; /* the second is relocated */
  void *weights, *host;
} rig;

/* scratch = host; kept = scratch; weights = kept, with scratch memory that is allocated twice. */
static rondo_status record(rig *r, rondo_recording *recording) {
  rondo_stream *stream = r->streams[0];
  void *scratch = NULL, *kept = NULL, *more = NULL;
  RONDO_TRY(rondo_recording_capture_begin(recording, stream, RONDO_CAPTURE_GLOBAL));
  RONDO_TRY(rondo_malloc_async(stream, 3 * PAGE, &(rondo_malloc_options){.name = "scratch"}, &scratch));
  RONDO_TRY(rondo_copy_async(stream, scratch, r->host, 64));
  RONDO_TRY(rondo_malloc_async(stream, PAGE, &(rondo_malloc_options){.name = "kept"}, &kept));
  RONDO_TRY(rondo_copy_async(stream, kept, scratch, 64));
  RONDO_TRY(rondo_free_async(stream, scratch));
  RONDO_TRY(rondo_malloc_async(stream, 5 * PAGE, &(rondo_malloc_options){.name = "more"}, &more));
  RONDO_TRY(rondo_copy_async(stream, more, kept, 64));
  RONDO_TRY(rondo_copy_async(stream, r->weights, more, 64));
  RONDO_TRY(rondo_free_async(stream, more));
  return rondo_recording_capture_end(recording, stream);
}

/* As graph_reserved, which uses the memory of retired recordings. */
static size_t physical(const rig *r) {
  rondo_memory_statistics now = {.struct_size = sizeof now};
  assert_ok(rondo_memory_get_statistics(r->device, &now));
  return (size_t)now.graph_reserved;
}

static rondo_status use(rig *r, rondo_recording *recording) {
  RONDO_TRY(record(r, recording));
  RONDO_TRY(rondo_recording_replay(recording, r->streams[0]));
  fake_of(r->device)->stalled = true;
  const rondo_status status = rondo_recording_replay(recording, r->streams[1]);
  fake_of(r->device)->stalled = false;
  return status;
}

static rondo_status do_all(rig *r) {
  for (int i = 0; i < 2; i++) {
    RONDO_TRY(use(r, r->recordings[i]));
    if (i == 1) rondo_recording_reset(r->recordings[0]);
  }
  RONDO_TRY(use(r, r->recordings[0]));
  rondo_recording_reset(r->recordings[0]);
  rondo_recording_reset(r->recordings[1]);
  return RONDO_OK;
}

static rondo_status set_up(rig *r) {
  *r = (rig){.device = NULL};
  test_allocator_init(&r->allocator);
  r->device = fake_open(&r->allocator.table);
  for (int i = 0; i < 2; i++) {
    const rondo_recording_options options = {RONDO_RECORDING_OPTIONS_INIT, .relocate = i == 1};
    RONDO_TRY(rondo_stream_create(r->device, NULL, &r->streams[i]));
    RONDO_TRY(rondo_recording_create(r->device, &options, &r->recordings[i]));
  }
  RONDO_TRY(rondo_malloc(r->device, PAGE, "weights", &r->weights));
  return rondo_host_malloc(r->device, PAGE, &r->host);
}

/* Whatever failed: a recording that does not capture is empty or can be replayed. */
static void assert_whole(rig *r, rondo_recording *recording) {
  rondo_recording_info info = test_recording_info(recording);
  if (info.state == RONDO_RECORDING_READY) assert_ok(rondo_recording_replay(recording, r->streams[0]));
  if (info.state == RONDO_RECORDING_EMPTY) assert_int_equal(info.pool_bytes, 0);
  rondo_recording_reset(recording);
  assert_ok(rondo_recording_get_info(recording, &info));
  assert_int_equal(info.state, RONDO_RECORDING_EMPTY);
}

static void drop_capture(rondo_recording *recording) {
  if (test_recording_info(recording).state == RONDO_RECORDING_CAPTURING) rondo_recording_reset(recording);
}

static void tear_down(rig *r) {
  for (int i = 0; i < 2; i++) drop_capture(r->recordings[i]);
  for (int i = 0; i < 2; i++) assert_whole(r, r->recordings[i]);
  assert_int_equal(physical(r), 0);
  assert_ok(do_all(r));
  assert_int_equal(physical(r), 0);
  assert_ok(rondo_free(r->device, r->weights));
  assert_ok(rondo_host_free(r->device, r->host));
  for (int i = 0; i < 2; i++) assert_ok(rondo_recording_destroy(r->recordings[i]));
  for (int i = 0; i < 2; i++) assert_ok(rondo_stream_destroy(r->streams[i]));
  fault_fake_close(r->device, &r->allocator);
}

/* Runs the work once with a failure, and returns its status. */
static rondo_status run(fault_point *point) {
  rig r;
  assert_ok(set_up(&r));
  fault_fake_begin(point, r.device, &r.allocator);
  const rondo_status status = do_all(&r);
  fault_fake_end(point, r.device, &r.allocator, status);
  fake_of(r.device)->stalled = false;
  tear_down(&r);
  return status;
}

UNIT_TEST(test_rc1_each_driver_call_fails_once) { fault_sweep(run, true, false, 12); }
UNIT_TEST(test_rc1_the_driver_fails_from_some_call_on) { fault_sweep(run, true, true, 20); }
UNIT_TEST(test_rc1_each_allocation_fails_once) { fault_sweep(run, false, false, 50); }
UNIT_TEST(test_rc1_memory_ends_at_some_allocation) { fault_sweep(run, false, true, 50); }
