/* SPDX-License-Identifier: MIT
 * Lets every allocation fail, once or from then on, while ranks join a group, queue and capture collectives, and leave.
 * Either an error is returned or the numbers are right. Nothing is left, and no stream waits for a collective that was
 * not queued (TR-16).
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

static rondo_status do_all(work *w) {
  static const char *const names[RANKS] = {"cpu:0", "cpu:1"};
  const rondo_device_options device = {RONDO_DEVICE_OPTIONS_INIT, .workers = 1, .allocator = &w->allocator.table};
  const rondo_communicator_options options = {RONDO_COMMUNICATOR_OPTIONS_INIT, .name = "ranks", .timeout_ms = 20000,
                                              .piece_bytes = 4096};
  for (int i = 0; i < RANKS; i++) {
    TRY(rondo_device_open(names[i], &device, &w->devices[i]));
    TRY(rondo_stream_create(w->devices[i], NULL, &w->streams[i]));
    w->buffers[i][COUNT - 1] = i + 1;
  }
  TRY(rondo_communicator_create_all(w->devices, RANKS, &options, w->communicators));
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
