/* SPDX-License-Identifier: MIT
 * What utilisation asks of the CUDA driver, on the fake one: two events around each part, whose distances no answer
 * waits for: they are asked for while the device has the next part, or for who wants the sums (SE-11).
 */
#include "device/cuda/cuda_library.h"
#include "fake_cuda/fake_fixture.h"
#include "support/test_session.h"

static test_request request;

/* Of the session's first part on, before which nothing has been timed. */
static rondo_session *open_session(const test_fixture *t) {
  static const size_t size = 8;
  static const double us = 10;
  rondo_session *session = test_session_open(t->device, (rondo_session_options){.streams = 1, .timed = true});
  test_scorer_add(session, "scorer", (rondo_model_options){0});
  test_scorer_capture(session, "scorer", &size, 1);
  assert_ok(rondo_session_set_times(session, "scorer", &us, NULL, 1, 1));
  return session;
}

/* How many distances were asked for until the answer was there. */
static uint64_t run(rondo_session *session, rondo_way way) {
  const uint64_t before = fake->calls("cuEventElapsedTime");
  test_request_fill(&request, 5, 1);
  request.request.way = way;
  assert_ok(rondo_session_run(session, "scorer", &request.request, NULL));
  assert_true(test_request_is_right(&request));
  return fake->calls("cuEventElapsedTime") - before;
}

static rondo_session_usage get_usage(rondo_session *session) {
  rondo_session_usage usage = {.struct_size = sizeof usage};
  assert_ok(rondo_session_get_usage(session, &usage));
  return usage;
}

static void test_se11_distances_are_those_of_the_part_before(void **state) {
  enum { DISTANCES = 2 /* from the origin to the begin, and from there to the end */ };
  const test_fixture *t = *state;
  rondo_session *session = open_session(t);
  const uint64_t parts = get_usage(session).parts;
  assert_int_equal(run(session, RONDO_WAY_RECORDED), 0);
  assert_int_equal(run(session, RONDO_WAY_RECORDED), DISTANCES);
  assert_int_equal(run(session, RONDO_WAY_UNRECORDED), DISTANCES);
  const uint64_t before = fake->calls("cuEventElapsedTime");
  assert_int_equal(get_usage(session).parts, parts + 3);
  assert_int_equal(get_usage(session).parts, parts + 3); /* each is counted once */
  assert_int_equal(fake->calls("cuEventElapsedTime") - before, DISTANCES);
  assert_int_equal(run(session, RONDO_WAY_RECORDED), 0);
  assert_ok(rondo_session_destroy(session));
}

/* Who asks for the sums is told, and the session serves on. */
static void test_se11_a_distance_that_cannot_be_had_is_told(void **state) {
  const test_fixture *t = *state;
  rondo_session *session = open_session(t);
  rondo_session_usage usage = {.struct_size = sizeof usage};
  const uint64_t parts = get_usage(session).parts;
  (void)run(session, RONDO_WAY_RECORDED);
  fake->fail_call("cuEventElapsedTime", 1, CU_OUT_OF_MEMORY, false);
  assert_status(rondo_session_get_usage(session, &usage), RONDO_OUT_OF_MEMORY);
  assert_message("measuring the time between two events");
  fake->fail_call(NULL, 0, CU_OK, false);
  (void)run(session, RONDO_WAY_RECORDED);
  assert_int_equal(get_usage(session).parts, parts + 1);
  assert_ok(rondo_session_destroy(session));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      fake_case(test_se11_distances_are_those_of_the_part_before),
      fake_case(test_se11_a_distance_that_cannot_be_had_is_told),
  };
  return test_main(tests);
}
