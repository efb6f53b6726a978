/* SPDX-License-Identifier: MIT
 * Lets every allocation fail, once or from then on, while groups are made and divided, and collectives are enqueued and
 * captured. Either an error is returned or the numbers are right. Nothing is left, no engine is closed twice or never,
 * and no stream waits for a collective that was not enqueued (TR-16, MM-1, MM-3).
 */
#include <string.h>

#include "fault/fault_sweep.h"

enum { RANKS = 2, COUNT = 6000, FEW = 10 };

typedef struct work {
  test_allocator allocator;
  rondo_device *devices[RANKS];
  rondo_stream *streams[RANKS];
  rondo_communicator *communicators[RANKS];
  rondo_graph *graphs[RANKS];
  rondo_exec *execs[RANKS];
  int32_t buffers[RANKS][COUNT], few[RANKS][RANKS * FEW];
} work;

static rondo_status reduce(work *w, int rank) {
  return rondo_all_reduce(w->communicators[rank], w->streams[rank], w->buffers[rank], w->buffers[rank], COUNT,
                          RONDO_I32, RONDO_REDUCE_SUM);
}

static rondo_status record(work *w, int rank) {
  TRY(rondo_capture_begin(w->streams[rank], RONDO_CAPTURE_THREAD_LOCAL));
  const rondo_status status = reduce(w, rank);
  const rondo_status ended = rondo_capture_end(w->streams[rank], &w->graphs[rank]);
  TRY(status);
  TRY(ended);
  return rondo_instantiate(w->graphs[rank], NULL, &w->execs[rank]);
}

/* A group of one rank, which waits for nobody when it is divided. */
static rondo_status divide_one(work *w) {
  rondo_communicator *one, *part = NULL;
  TRY(rondo_communicator_create_all(w->devices, 1, NULL, &one));
  const rondo_status status = rondo_communicator_split(one, 0, 0, &part);
  assert_true((status == RONDO_OK) == (part != NULL));
  assert_int_equal(rondo_communicator_destroy(part), RONDO_OK);
  assert_int_equal(rondo_communicator_destroy(one), RONDO_OK);
  return status;
}

static rondo_status do_all(work *w) {
  static const char *const names[RANKS] = {"cpu:0", "cpu:1"};
  const rondo_device_options device = {RONDO_DEVICE_OPTIONS_INIT, .workers = 1, .allocator = &w->allocator.table};
  const rondo_communicator_options options = {RONDO_COMMUNICATOR_OPTIONS_INIT, .name = "ranks", .timeout_ms = 20000};
  for (int i = 0; i < RANKS; i++) {
    TRY(rondo_device_open(names[i], &device, &w->devices[i]));
    TRY(rondo_stream_create(w->devices[i], NULL, &w->streams[i]));
    w->buffers[i][COUNT - 1] = i + 1;
  }
  TRY(rondo_communicator_create_all(w->devices, RANKS, &options, w->communicators));
  TRY(divide_one(w));
  for (int i = 0; i < RANKS; i++) TRY(record(w, i));
  for (int i = 0; i < RANKS; i++) TRY(reduce(w, i));
  for (int i = 0; i < RANKS; i++)
    TRY(rondo_all_gather(w->communicators[i], w->streams[i], w->few[i] + i * FEW, w->few[i], FEW, RONDO_I32));
  for (int i = 0; i < RANKS; i++) TRY(rondo_exec_launch(w->execs[i], w->streams[i]));
  for (int i = 0; i < RANKS; i++) TRY(rondo_stream_synchronize(w->streams[i]));
  return RONDO_OK;
}

/* Teardown may return errors of failures that were already reported. */
static void tear_down(work *w) {
  rondo_status status;
  for (int i = 0; i < RANKS; i++) {
    if (w->communicators[i] != NULL) {
      status = rondo_communicator_abort(w->communicators[i]); /* no rank waits for a peer that queued nothing */
      assert_int_equal(status, RONDO_OK);
    }
  }
  for (int i = 0; i < RANKS; i++) {
    rondo_exec_destroy(w->execs[i]);
    assert_ok(rondo_graph_destroy(w->graphs[i]));
    assert_ok(rondo_communicator_destroy(w->communicators[i]));
    status = rondo_stream_destroy(w->streams[i]);
    (void)status;
    status = rondo_device_close(w->devices[i]);
    assert_int_equal(status, RONDO_OK);
  }
}

static rondo_status run(fault_point *point) {
  static work w;
  memset(&w, 0, sizeof w);
  test_allocator_init(&w.allocator);
  atomic_store(&w.allocator.fail_at, point->allocation_at);
  atomic_store(&w.allocator.fail_on, point->rest);
  const rondo_status status = do_all(&w);
  point->allocations = atomic_load(&w.allocator.calls);
  tear_down(&w);
  assert_true(test_allocator_is_clean(&w.allocator));
  for (int i = 0; i < RANKS && status == RONDO_OK; i++) assert_int_equal(w.buffers[i][COUNT - 1], 6);
  return status;
}

UNIT_TEST(each_allocation_fails_tr_16) { fault_sweep(run, false, false, 50); }

UNIT_TEST(each_allocation_and_all_after_it_fail_tr_16) { fault_sweep(run, false, true, 50); }

/* An engine of the program's own ----------------------------------------------------------------------------------- */

typedef struct counting_engine {
  int opened, closed; /* engines that split made, or that the program made, and that close was called for */
} counting_engine;

static rondo_status engine_start(void *user, const rondo_collective *collective, bool is_captured) {
  (void)user, (void)collective, (void)is_captured;
  return RONDO_OK;
}

static rondo_status engine_test(void *user, bool *out_is_done) {
  (void)user;
  *out_is_done = true;
  return RONDO_OK;
}

static void engine_close(void *user) { ((counting_engine *)user)->closed++; }

static rondo_status engine_split(void *user, uint32_t color, uint32_t key, uint32_t timeout_ms,
                                 rondo_collective_engine *out);

static rondo_collective_engine open_engine(counting_engine *self) {
  self->opened++;
  return (rondo_collective_engine){
      RONDO_COLLECTIVE_ENGINE_INIT, .world_size = 1,     .name = "counting",    .user = self,
      .start = engine_start,        .test = engine_test, .split = engine_split, .close = engine_close};
}

static rondo_status engine_split(void *user, uint32_t color, uint32_t key, uint32_t timeout_ms,
                                 rondo_collective_engine *out) {
  (void)color, (void)key, (void)timeout_ms;
  *out = open_engine(user);
  return RONDO_OK;
}

static rondo_status use_engine(rondo_device *device, rondo_stream *stream, counting_engine *self) {
  rondo_communicator *whole, *part;
  const rondo_collective_engine engine = open_engine(self);
  const rondo_status made = rondo_communicator_from_engine(device, &engine, NULL, &whole);
  if (made != RONDO_OK) engine.close(engine.user); /* it is still the program's */
  TRY(made);
  rondo_status status = rondo_communicator_split(whole, 0, 0, &part);
  if (status == RONDO_OK) status = rondo_barrier(part, stream);
  if (status == RONDO_OK) status = rondo_stream_synchronize(stream);
  assert_int_equal(rondo_communicator_destroy(part), RONDO_OK);
  assert_int_equal(rondo_communicator_destroy(whole), RONDO_OK);
  return status;
}

static rondo_status run_engine(fault_point *point) {
  static work w;
  counting_engine counts = {0};
  memset(&w, 0, sizeof w);
  test_allocator_init(&w.allocator);
  const rondo_device_options device = {RONDO_DEVICE_OPTIONS_INIT, .workers = 1, .allocator = &w.allocator.table};
  rondo_status status = rondo_device_open("cpu:0", &device, &w.devices[0]);
  if (status == RONDO_OK) status = rondo_stream_create(w.devices[0], NULL, &w.streams[0]);
  assert_int_equal(status, RONDO_OK);
  atomic_store(&w.allocator.calls, 0);
  atomic_store(&w.allocator.fail_at, point->allocation_at);
  atomic_store(&w.allocator.fail_on, point->rest);
  status = use_engine(w.devices[0], w.streams[0], &counts);
  point->allocations = atomic_load(&w.allocator.calls);
  tear_down(&w);
  assert_true(test_allocator_is_clean(&w.allocator));
  assert_int_equal(counts.closed, counts.opened);
  return status;
}

UNIT_TEST(each_allocation_of_an_engine_fails_mm_1) { fault_sweep(run_engine, false, false, 10); }

UNIT_TEST(each_allocation_of_an_engine_and_all_after_it_fail_mm_1) { fault_sweep(run_engine, false, true, 10); }
