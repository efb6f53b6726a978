/* SPDX-License-Identifier: MIT
 * Events: the meaning of a record, waits across streams, timing, and the free list (GX-9).
 */
#include "support/rondo_test.h"

TEST(test_an_event_never_recorded_is_complete) {
  rondo_event *event = test_event(t);
  assert_ok(rondo_event_query(event));
  assert_ok(rondo_event_synchronize(event));
  assert_ok(rondo_stream_wait_event(t->stream, event));
  assert_ok(rondo_stream_synchronize(t->stream));
}

TEST(test_an_event_completes_with_the_work_before_it) {
  test_skip_if_serial();
  rondo_event *before = test_event(t), *after = test_event(t);
  uint32_t *word = test_words(t, 1);
  test_gate *gate = test_gate_make();
  assert_ok(rondo_event_record(before, t->stream));
  test_gate_hold(gate, t->stream);
  test_affine(t, t->stream, word, 1, 1, 1);
  assert_ok(rondo_event_record(after, t->stream));
  assert_ok(rondo_event_query(before));
  assert_ok(rondo_event_synchronize(before));
  assert_status(rondo_event_query(after), RONDO_NOT_READY);
  test_gate_open(gate);
  assert_ok(rondo_event_synchronize(after));
  assert_ok(rondo_event_query(after));
  assert_int_equal(test_word(t, word), 1);
}

TEST_WORKERS(test_a_stream_waits_for_an_event_of_another) {
  test_skip_if_serial();
  rondo_stream *other = test_stream(t, "follower");
  rondo_event *event = test_event(t);
  uint32_t *word = test_words(t, 1);
  test_gate *gate = test_gate_make();
  test_gate_hold(gate, t->stream);
  test_affine(t, t->stream, word, 1, 0, 5);
  assert_ok(rondo_event_record(event, t->stream));
  assert_ok(rondo_stream_wait_event(other, event));
  test_affine(t, other, word, 1, 10, 1);
  assert_status(rondo_stream_query(other), RONDO_NOT_READY);
  test_gate_open(gate);
  assert_ok(rondo_stream_synchronize(other));
  assert_int_equal(test_word(t, word), 51);
}

/* Recording again starts again; earlier waits keep their target. */
TEST_WORKERS(test_recording_again_leaves_earlier_waits) {
  test_skip_if_serial();
  rondo_stream *follower = test_stream(t, "follower"), *blocked = test_stream(t, "blocked");
  rondo_event *event = test_event(t);
  uint32_t *word = test_words(t, 1);
  test_gate *gate = test_gate_make();
  test_affine(t, t->stream, word, 1, 1, 1);
  assert_ok(rondo_event_record(event, t->stream));
  assert_ok(rondo_stream_wait_event(follower, event));
  test_gate_hold(gate, blocked);
  assert_ok(rondo_event_record(event, blocked));
  assert_status(rondo_event_query(event), RONDO_NOT_READY);
  test_affine(t, follower, word, 1, 2, 0);
  assert_ok(rondo_stream_synchronize(follower));
  assert_int_equal(test_word(t, word), 2);
  assert_status(rondo_event_query(event), RONDO_NOT_READY);
  test_gate_open(gate);
  assert_ok(rondo_event_synchronize(event));
}

/* Work that waits for an event still does after the event was destroyed, and reused by another. */
TEST_WORKERS(test_destroying_an_event_leaves_its_waits) {
  test_skip_if_serial();
  rondo_stream *follower = test_stream(t, "follower");
  rondo_event *event = test_event(t);
  uint32_t *word = test_words(t, 1);
  test_gate *gate = test_gate_make();
  test_gate_hold(gate, t->stream);
  test_affine(t, t->stream, word, 1, 0, 3);
  assert_ok(rondo_event_record(event, t->stream));
  assert_ok(rondo_stream_wait_event(follower, event));
  rondo_event_destroy(event);
  rondo_event *next = test_event(t);
  assert_ok(rondo_event_query(next));
  test_affine(t, follower, word, 1, 10, 0);
  assert_status(rondo_stream_query(follower), RONDO_NOT_READY);
  test_gate_open(gate);
  assert_ok(rondo_stream_synchronize(follower));
  assert_int_equal(test_word(t, word), 30);
}

/* Four streams pass a word on in turn, each step ordered only by an event. */
TEST(test_events_order_a_ring_of_streams) {
  enum { STREAMS = 4, STEPS = 4000 };
  rondo_stream *streams[STREAMS];
  rondo_event *events[STREAMS];
  uint32_t *word = test_words(t, 1), expected = 0;
  for (int i = 0; i < STREAMS; i++) {
    streams[i] = test_stream(t, NULL);
    events[i] = test_event(t);
  }
  for (uint32_t k = 0; k < STEPS; k++) {
    rondo_stream *stream = streams[k % STREAMS];
    if (k > 0) assert_ok(rondo_stream_wait_event(stream, events[(k - 1) % STREAMS]));
    test_affine(t, stream, word, 1, 5, k);
    assert_ok(rondo_event_record(events[k % STREAMS], stream));
    expected = expected * 5 + k;
  }
  assert_ok(rondo_event_synchronize(events[(STEPS - 1) % STREAMS]));
  assert_int_equal(test_word(t, word), expected);
}

static rondo_status rest_two_milliseconds(void *user) {
  (void)user;
  test_sleep_ms(2);
  return RONDO_OK;
}

TEST(test_timing_events_measure_the_time_between) {
  const rondo_event_options options = {RONDO_EVENT_OPTIONS_INIT, .timing = true};
  rondo_event *start = NULL, *end = NULL, *plain = test_event(t);
  double microseconds = -1;
  assert_ok(rondo_event_create(t->device, &options, &start));
  assert_ok(rondo_event_create(t->device, &options, &end));
  assert_error(rondo_event_elapsed(start, end, &microseconds), RONDO_INVALID_STATE, RONDO_REASON_EVENT_NOT_RECORDED);
  test_gate *gate = test_gate_make();
  assert_ok(rondo_event_record(start, t->stream));
  assert_ok(rondo_event_record(plain, t->stream));
  assert_ok(rondo_host_async(t->stream, rest_two_milliseconds, NULL));
  assert_ok(rondo_host_async(t->stream, test_gate_pass, gate));
  assert_ok(rondo_event_record(end, t->stream));
  assert_status(rondo_event_elapsed(start, end, &microseconds), RONDO_NOT_READY);
  test_gate_open(gate);
  assert_ok(rondo_event_synchronize(end));
  assert_error(rondo_event_elapsed(start, plain, &microseconds), RONDO_INVALID_STATE, RONDO_REASON_NO_TIMING);
  assert_ok(rondo_event_elapsed(start, end, &microseconds));
  assert_true(microseconds >= 1900.0 && microseconds < 60e6);
  assert_ok(rondo_event_elapsed(end, start, &microseconds));
  assert_true(microseconds <= -1900.0);
  rondo_event_destroy(start);
  rondo_event_destroy(end);
}

TEST(test_external_forms_belong_to_captures) {
  rondo_event *event = test_event(t);
  assert_error(rondo_event_record_external(event, t->stream), RONDO_INVALID_STATE, RONDO_REASON_NOT_CAPTURING);
  assert_error(rondo_stream_wait_event_external(t->stream, event), RONDO_INVALID_STATE, RONDO_REASON_NOT_CAPTURING);
}

/* GX-9: events come from a free list. */
TEST(test_gx9_complete_events_are_reused) {
  enum { ROUNDS = 1000, AT_ONCE = 3 };
  const rondo_device_statistics before = test_statistics(t);
  for (int i = 0; i < ROUNDS; i++) {
    rondo_event *events[AT_ONCE];
    for (int k = 0; k < AT_ONCE; k++) {
      events[k] = test_event(t);
      assert_ok(rondo_event_query(events[k])); /* a reused event is as new */
      assert_ok(rondo_event_record(events[k], t->stream));
    }
    for (int k = 0; k < AT_ONCE; k++) {
      assert_ok(rondo_event_synchronize(events[k])); /* complete by its own word, not only by the stream's */
      rondo_event_destroy(events[k]);
    }
  }
  const rondo_device_statistics after = test_statistics(t);
  const uint64_t created = after.events_created - before.events_created;
  const uint64_t reused = after.events_reused - before.events_reused;
  assert_int_equal(created + reused, ROUNDS * AT_ONCE);
  assert_in_range(created, 1, AT_ONCE);
}

/* GX-9: an event that is destroyed before it completes returns to the free list when it completes, at the next request.
 * */
TEST(test_gx9_an_event_under_way_goes_back_when_complete) {
  test_gate *gate = test_gate_make();
  rondo_event *event = test_event(t);
  test_gate_hold(gate, t->stream);
  assert_ok(rondo_event_record(event, t->stream));
  rondo_event_destroy(event);
  const rondo_device_statistics held = test_statistics(t);
  (void)test_event(t); /* the first is still in flight */
  assert_int_equal(test_statistics(t).events_created, held.events_created + 1);
  test_gate_open(gate);
  assert_ok(rondo_stream_synchronize(t->stream));
  rondo_event *third = test_event(t);
  const rondo_device_statistics after = test_statistics(t);
  assert_int_equal(after.events_created, held.events_created + 1);
  assert_int_equal(after.events_reused, held.events_reused + 1);
  assert_ok(rondo_event_query(third));
}

/* GX-9: a timing event is not reused as an event without timing, nor the reverse. */
TEST(test_gx9_the_free_list_keeps_kinds_apart) {
  const rondo_event_options timing = {RONDO_EVENT_OPTIONS_INIT, .timing = true};
  for (int i = 0; i < 4; i++) {
    rondo_event *timed = NULL, *plain = test_event(t);
    double microseconds = 0;
    assert_ok(rondo_event_create(t->device, &timing, &timed));
    assert_ok(rondo_event_record(timed, t->stream));
    assert_ok(rondo_event_record(plain, t->stream));
    assert_ok(rondo_stream_synchronize(t->stream));
    assert_ok(rondo_event_elapsed(timed, timed, &microseconds));
    assert_reason(rondo_event_elapsed(timed, plain, &microseconds), RONDO_REASON_NO_TIMING);
    rondo_event_destroy(i % 2 == 0 ? timed : plain);
    rondo_event_destroy(i % 2 == 0 ? plain : timed);
  }
}

typedef struct event_churn {
  test_fixture *fixture;
  rondo_status status;
} event_churn;

static void churn_events(void *user) {
  event_churn *self = user;
  for (int i = 0; i < 2000 && self->status == RONDO_OK; i++) {
    rondo_event *event = NULL;
    self->status = rondo_event_create(self->fixture->device, NULL, &event);
    if (self->status == RONDO_OK) self->status = rondo_event_query(event);
    rondo_event_destroy(event);
  }
}

TEST(test_gx9_events_from_four_threads_at_once) {
  event_churn churns[4];
  test_thread threads[4];
  for (int i = 0; i < 4; i++) {
    churns[i] = (event_churn){.fixture = t};
    threads[i] = (test_thread){.function = churn_events, .user = &churns[i]};
  }
  const rondo_device_statistics before = test_statistics(t);
  test_on_threads(threads, 4);
  for (int i = 0; i < 4; i++) assert_int_equal(churns[i].status, RONDO_OK);
  const rondo_device_statistics after = test_statistics(t);
  assert_int_equal(after.events_created - before.events_created + after.events_reused - before.events_reused, 8000);
  assert_true(after.events_created - before.events_created <= 4);
}

/* An event that an exec's nodes name is not reused while the exec lives, although its user destroyed it. */
TEST(test_gx9_an_event_that_an_exec_names_is_kept) {
  rondo_node record, wait;
  rondo_event *named = test_event(t), *first = test_event(t), *second = test_event(t);
  rondo_graph *graph = test_graph(t);
  assert_ok(rondo_graph_add_event_record(graph, NULL, 0, named, &record));
  assert_ok(rondo_graph_add_event_wait(graph, NULL, 0, first, &wait));
  rondo_exec *exec = test_instantiate(graph);
  assert_ok(rondo_exec_set_params(
      exec, wait, &(rondo_node_params){.kind = RONDO_NODE_EVENT_WAIT, .as.event = second})); /* releases the first */
  test_graph_destroy(graph);
  rondo_event_destroy(named);
  rondo_event_destroy(first);
  rondo_event_destroy(second);
  rondo_event *given[3] = {test_event(t), test_event(t), test_event(t)};
  for (int i = 0; i < 3; i++) {
    assert_ptr_not_equal(given[i], named);
    assert_ptr_not_equal(given[i], second);
  }
  test_launch(t, exec);
  rondo_exec_destroy(exec);
  rondo_event *last[2] = {test_event(t), test_event(t)};
  assert_true((last[0] == named && last[1] == second) || (last[0] == second && last[1] == named));
}

/* B12: an event that a graph's nodes name is not reused while the graph, a clone or an exec lives, although its user
 * destroyed it. A node that gets another event releases the first one. */
TEST(test_gx9_an_event_that_a_graph_names_is_kept) {
  rondo_graph *clone = NULL;
  rondo_node record, wait;
  rondo_event *named = test_event(t), *other = test_event(t);
  rondo_graph *graph = test_graph(t);
  assert_ok(rondo_graph_add_event_record(graph, NULL, 0, named, &record));
  assert_ok(rondo_graph_add_event_wait(graph, &record, 1, other, &wait));
  assert_ok(
      rondo_graph_set_params(graph, wait, &(rondo_node_params){.kind = RONDO_NODE_EVENT_WAIT, .as.event = named}));
  rondo_event_destroy(other);
  assert_ok(rondo_graph_clone(graph, &clone));
  rondo_event_destroy(named);
  assert_ok(rondo_graph_destroy(graph));
  rondo_event *given[2] = {test_event(t), test_event(t)};
  assert_true(given[0] == other || given[1] == other);
  for (int i = 0; i < 2; i++) assert_ptr_not_equal(given[i], named);
  rondo_exec *exec = test_instantiate(clone);
  test_launch(t, exec);
  rondo_exec_destroy(exec);
  assert_ok(rondo_graph_destroy(clone));
  rondo_event *last = test_event(t);
  assert_ptr_equal(last, named);
}

/* An event's knowledge of frees is released with it, also when the exec whose node names it was launched after the
 * event was destroyed: the teardown would find the leak. */
TEST(test_gx9_a_launch_records_an_event_that_was_destroyed) {
  rondo_stream *other = test_stream(t, "other");
  rondo_event *freed = test_event(t), *named = test_event(t);
  rondo_node record;
  void *memory = test_allocate_async(other, 1000);
  assert_ok(rondo_free_async(other, memory));
  assert_ok(rondo_event_record(freed, other));
  assert_ok(rondo_stream_wait_event(t->stream, freed));
  rondo_graph *graph = test_graph(t);
  assert_ok(rondo_graph_add_event_record(graph, NULL, 0, named, &record));
  rondo_exec *exec = test_exec_of(graph);
  rondo_event_destroy(named);
  rondo_event_destroy(freed);
  test_launch(t, exec);
}
