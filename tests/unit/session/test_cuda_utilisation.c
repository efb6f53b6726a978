/* SPDX-License-Identifier: MIT
 * The driver calls of utilisation, on the fake CUDA driver: two events around each part. No answer waits for their
 * times: they are read while the device runs the next part, or when a caller asks for the sums (SE-11).
 */
#include "fake_cuda/fake_fixture.h"
#include "session/serve/utilisation.h"
#include "session/session_internal.h"
#include "support/test_session.h"
#include "vendor/cuda_driver.h"

static test_request request;

/* Opens a timed session in which nothing has run yet. */
static rondo_session *open_with(const test_fixture *t, uint32_t streams) {
  static const size_t size = 8;
  static const double us = 10;
  rondo_session *session = test_session_open(t->device, (rondo_session_options){.streams = streams, .timed = true});
  test_scorer_add(session, "scorer", (rondo_model_options){0});
  test_scorer_capture(session, "scorer", &size, 1);
  assert_ok(rondo_session_set_times(session, "scorer", &us, NULL, 1, 1));
  return session;
}

static rondo_session *open_session(const test_fixture *t) { return open_with(t, 1); }

/* Runs a request. Returns how many times between events were queried until it was answered. */
static uint64_t run(rondo_session *session, rondo_run_mode mode) {
  const uint64_t before = fake->calls("cuEventElapsedTime");
  test_request_fill(&request, 5, 1);
  request.request.mode = mode;
  assert_ok(rondo_session_run(session, "scorer", &request.request, NULL));
  assert_true(test_request_is_right(&request));
  return fake->calls("cuEventElapsedTime") - before;
}

static rondo_session_usage get_usage(rondo_session *session) {
  rondo_session_usage usage = {.struct_size = sizeof usage};
  assert_ok(rondo_session_get_usage(session, &usage));
  return usage;
}

FAKE_TEST(test_se11_distances_are_those_of_the_part_before) {
  enum { DISTANCES = 2 /* from the origin to the begin, and from there to the end */ };
  rondo_session *session = open_session(t);
  const uint64_t parts = get_usage(session).parts;
  assert_int_equal(run(session, RONDO_RUN_RECORDED), 0);
  assert_int_equal(run(session, RONDO_RUN_RECORDED), DISTANCES);
  assert_int_equal(run(session, RONDO_RUN_EAGER), DISTANCES);
  const uint64_t before = fake->calls("cuEventElapsedTime");
  assert_int_equal(get_usage(session).parts, parts + 3);
  assert_int_equal(get_usage(session).parts, parts + 3); /* each is counted once */
  assert_int_equal(fake->calls("cuEventElapsedTime") - before, DISTANCES);
  assert_int_equal(run(session, RONDO_RUN_RECORDED), 0);
}

static void fail_a_distance(void) { fake->fail_call("cuEventElapsedTime", 1, CU_OUT_OF_MEMORY, false); }

static void assert_is_reported(rondo_session *session) {
  rondo_session_usage usage = {.struct_size = sizeof usage};
  assert_status(rondo_session_get_usage(session, &usage), RONDO_OUT_OF_MEMORY);
  assert_message("measuring the time between two events");
  fake->fail_call(NULL, 0, CU_OK, false);
}

/* A failed query of a time is returned once by rondo_session_get_usage. No request fails. */
FAKE_TEST(test_se11_a_failed_query_is_reported) {
  rondo_session *session = open_session(t);
  const uint64_t parts = get_usage(session).parts;
  (void)run(session, RONDO_RUN_RECORDED);
  fail_a_distance();
  assert_is_reported(session);
  (void)run(session, RONDO_RUN_RECORDED);
  assert_int_equal(get_usage(session).parts, parts + 1);
  (void)run(session, RONDO_RUN_RECORDED);
  fail_a_distance();
  assert_int_equal(run(session, RONDO_RUN_RECORDED), 1);
  assert_is_reported(session);
  assert_int_equal(get_usage(session).parts, parts + 2);
}

static void end_a_span(rondo_session *session, uint32_t worker, rondo_stream *stream) {
  assert_ok(rondo_utilisation_begin(&session->workers[worker], stream));
  assert_ok(rondo_utilisation_end(&session->workers[worker], stream));
  assert_ok(rondo_stream_synchronize(stream));
  rondo_utilisation_keep(&session->workers[worker]);
}

static uint64_t take(rondo_session *session, uint32_t worker) {
  const uint64_t before = fake->calls("cuEventElapsedTime");
  rondo_utilisation_collect(&session->workers[worker]);
  return fake->calls("cuEventElapsedTime") - before;
}

/* With any number of idle workers, because a worker must answer its own request soon. */
FAKE_TEST(test_se11_a_part_counts_its_own_span_and_one_other) {
  enum { STREAMS = 4, DISTANCES = 2 };
  rondo_session *session = open_with(t, STREAMS);
  const uint64_t parts = get_usage(session).parts;
  for (uint32_t i = 0; i < STREAMS; i++) end_a_span(session, i, t->stream);
  assert_int_equal(take(session, 1), 2 * DISTANCES);
  assert_int_equal(take(session, 1), DISTANCES);
  assert_int_equal(take(session, 1), DISTANCES);
  assert_int_equal(take(session, 1), 0);
  assert_int_equal(get_usage(session).parts, parts + STREAMS);
}
