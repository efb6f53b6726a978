/* SPDX-License-Identifier: MIT
 * Lets every driver call and every allocation fail, once or from then on, in stream-ordered pools: creation and
 * destruction, reuse of all kinds, growth, waits, trimming. A failed allocation returns no memory, a failed free leaves
 * its memory allocated, and nothing is left at the end.
 */
#define _GNU_SOURCE
#include <rondo/rondo.h>

#include "fault/fault_fake.h"
#include "support/rondo_test.h"

enum { LIVE = 6, MIB = 1 << 20 };

typedef struct rig {
  test_allocator allocator;
  rondo_device *device;
  rondo_stream *streams[2];
  rondo_event *event;
  rondo_pool *pool;
  void *live[LIVE];
} rig;

static rondo_status take(rig *r, int at, int stream, size_t bytes) {
  const rondo_malloc_options options = {RONDO_MALLOC_OPTIONS_INIT, .name = "block", .pool = r->pool};
  const rondo_status status = rondo_malloc_async(r->streams[stream], bytes, &options, &r->live[at]);
  assert_int_equal(status == RONDO_OK, r->live[at] != NULL);
  if (status == RONDO_OK) memset(r->live[at], at, bytes);
  return status;
}

/* In stream order, or (-1) immediately. */
static rondo_status give(rig *r, int at, int stream) {
  void *address = r->live[at];
  RONDO_TRY(stream < 0 ? rondo_free(r->device, address) : rondo_free_async(r->streams[stream], address));
  r->live[at] = NULL;
  return RONDO_OK;
}

static rondo_status order(rig *r) {
  RONDO_TRY(rondo_event_record(r->event, r->streams[0]));
  return rondo_stream_wait_event(r->streams[1], r->event);
}

/* Frees that are pending while the driver is stalled: reuse on the same stream, joined, after an event, unordered. */
static rondo_status reuse(rig *r) {
  for (int i = 0; i < 4; i++) RONDO_TRY(take(r, i, 0, MIB / 2));
  for (int i = 0; i < 4; i++) RONDO_TRY(give(r, i, 0));
  RONDO_TRY(take(r, 0, 0, 2 * MIB));
  RONDO_TRY(give(r, 0, 1)); /* which follows the frees before it */
  RONDO_TRY(take(r, 1, 0, 3 * MIB));
  RONDO_TRY(give(r, 1, 0));
  RONDO_TRY(order(r));
  RONDO_TRY(take(r, 2, 1, 3 * MIB));
  RONDO_TRY(give(r, 2, -1));
  return take(r, 3, 1, 300);
}

/* The same while a profile notes it, written or not; noting lets no call fail. */
static rondo_status profile(rig *r) {
  static const rondo_plan_options planning = {RONDO_PLAN_OPTIONS_INIT, .fast_only = true};
  rondo_profile *made = NULL;
  RONDO_TRY(rondo_profile_begin(r->streams[0]));
  RONDO_TRY(order(r));
  const rondo_status ran = reuse(r);
  const rondo_status planned = rondo_profile_end(r->streams[0], &planning, &made);
  assert_int_equal(planned == RONDO_OK, made != NULL);
  rondo_profile_destroy(made);
  return ran == RONDO_OK ? planned : ran;
}

static rondo_status do_all(rig *r) {
  const rondo_pool_options options = {RONDO_POOL_OPTIONS_INIT, .name = "faulty", .release_threshold = 5 * MIB};
  rondo_pool *second = NULL;
  fake_of(r->device)->stalled = true;
  RONDO_TRY(rondo_pool_create(r->device, &options, &r->pool));
  RONDO_TRY(reuse(r));
  RONDO_TRY(give(r, 3, 1));
  RONDO_TRY(profile(r));
  RONDO_TRY(rondo_stream_synchronize(r->streams[0]));
  RONDO_TRY(rondo_event_synchronize(r->event));
  fake_of(r->device)->stalled = false;
  RONDO_TRY(take(r, 4, 0, 6 * MIB));
  RONDO_TRY(give(r, 4, 0));
  RONDO_TRY(rondo_device_synchronize(r->device));
  RONDO_TRY(rondo_pool_trim(r->pool, 0));
  RONDO_TRY(rondo_pool_create(r->device, NULL, &second));
  rondo_pool *const first = r->pool;
  r->pool = second;
  const rondo_status status = take(r, 5, 1, 5000);
  r->pool = first;
  assert_ok(rondo_pool_destroy(second));
  RONDO_TRY(status);
  return give(r, 5, 0);
}

static void set_up(rig *r) {
  memset(r, 0, sizeof *r);
  test_allocator_init(&r->allocator);
  r->device = fake_open(&r->allocator.table);
  for (int i = 0; i < 2; i++) assert_ok(rondo_stream_create(r->device, NULL, &r->streams[i]));
  assert_ok(rondo_event_create(r->device, NULL, &r->event));
}

/* Nothing fails any more: live memory is unchanged and can be freed, and everything works. */
static void tear_down(rig *r) {
  for (int i = 0; i < LIVE; i++) {
    const char *bytes = r->live[i];
    if (bytes != NULL) assert_int_equal(bytes[0], i);
    if (bytes != NULL) assert_ok(give(r, i, i % 2));
  }
  assert_ok(take(r, 0, 0, 4 * MIB));
  assert_ok(give(r, 0, 1));
  fake_of(r->device)->stalled = false;
  for (int i = 0; i < 2; i++) assert_ok(rondo_stream_destroy(r->streams[i]));
  rondo_event_destroy(r->event);
  assert_ok(rondo_pool_destroy(r->pool));
  rondo_memory_statistics now = {.struct_size = sizeof now};
  assert_ok(rondo_memory_get_statistics(r->device, &now));
  assert_int_equal(now.live_allocations, 0);
  assert_int_equal(now.pool_used, 0);
  fault_fake_close(r->device, &r->allocator);
}

/* Runs the work once with a failure, and returns its status. */
static rondo_status run(fault_point *point) {
  rig r;
  set_up(&r);
  fault_fake_begin(point, r.device, &r.allocator);
  const rondo_status status = do_all(&r);
  fault_fake_end(point, r.device, &r.allocator, status);
  tear_down(&r);
  return status;
}

/* The pool works without blocks that it cannot cut, join or add to a clock. */
UNIT_TEST(test_gm19_each_driver_call_fails_once) { fault_sweep(run, true, false, 15); }
UNIT_TEST(test_gm19_the_driver_fails_from_some_call_on) { fault_sweep(run, true, true, 25); }
UNIT_TEST(test_gm19_each_allocation_fails_once) { fault_sweep(run, false, false, 10); }
UNIT_TEST(test_gm19_memory_ends_at_some_allocation) { fault_sweep(run, false, true, 20); }

/* The wait that an unordered reuse needs fails: the block is unchanged. */
UNIT_TEST(test_gm19_a_wait_that_fails) {
  rig r;
  set_up(&r);
  fake_device *fake = fake_of(r.device);
  assert_ok(rondo_pool_create(r.device, NULL, &r.pool));
  fake->stalled = true;
  assert_ok(take(&r, 0, 0, 2 * MIB));
  assert_ok(give(&r, 0, 0));
  fake->fail_at = fake->calls + 1;
  fake->fail_rest = true;
  assert_fails(take(&r, 1, 1, 2 * MIB), RONDO_OUT_OF_MEMORY);
  fake->fail_at = 0;
  rondo_pool_statistics now = test_pool_statistics(r.pool);
  assert_int_equal(now.live_allocations, 0);
  assert_int_equal(now.internal_dependencies, 0);
  assert_ok(take(&r, 1, 0, 2 * MIB)); /* the stream that freed it still gets it */
  now = test_pool_statistics(r.pool);
  assert_int_equal(now.same_stream, 1);
  assert_int_equal(now.chunks, 1);
  tear_down(&r);
}
