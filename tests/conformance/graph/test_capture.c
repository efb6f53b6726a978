/* SPDX-License-Identifier: MIT
 * GX-3: every rule that a capture can break, C1 to C16 except C9, with its error and its effects. test_capture_modes.c
 * has the table of modes, C9; test_capture_graphs.c has the captured graphs.
 */
#include "support/rondo_test.h"

static void begin(rondo_stream *stream) { assert_ok(rondo_capture_begin(stream, RONDO_CAPTURE_THREAD_LOCAL)); }

static void assert_state(const rondo_stream *stream, rondo_capture_state expected) {
  assert_int_equal(test_capture_info(stream).state, expected);
}

/* The capture is over with this failure, and the stream works again. */
static void assert_end_fails(test_fixture *t, rondo_stream *stream, rondo_status status, rondo_reason reason) {
  rondo_graph *graph = (rondo_graph *)t;
  assert_error(rondo_capture_end(stream, &graph), status, reason);
  assert_null(graph);
  assert_state(stream, RONDO_CAPTURE_NONE);
  assert_ok(rondo_stream_synchronize(stream));
}

/* C1, C2: beginning ----------------------------------------------------------------------------------------------- */

TEST(test_gx3_c1_work_queued_earlier_is_not_recorded) {
  uint32_t *word = test_words(t, 1);
  test_affine(t, t->stream, word, 1, 1, 1);
  begin(t->stream);
  test_affine(t, t->stream, word, 1, 1, 10);
  rondo_graph *graph = test_capture_end(t->stream);
  size_t count = 0;
  assert_ok(rondo_graph_nodes(graph, NULL, &count));
  assert_int_equal(count, 1);
  assert_int_equal(test_word(t, word), 1);
}

TEST(test_gx3_c1_a_stream_captures_once_at_a_time) {
  rondo_stream *side = test_stream(t, "side");
  begin(t->stream);
  assert_error(rondo_capture_begin(t->stream, RONDO_CAPTURE_RELAXED), RONDO_CAPTURE_REFUSED,
               RONDO_REASON_ALREADY_CAPTURING);
  test_order(t, t->stream, side);
  assert_error(rondo_capture_begin(side, RONDO_CAPTURE_RELAXED), RONDO_CAPTURE_REFUSED, RONDO_REASON_ALREADY_CAPTURING);
  assert_state(t->stream, RONDO_CAPTURE_ACTIVE);
  rondo_graph *graph = test_capture_end(t->stream); /* the fork did nothing */
  size_t count = 1;
  assert_ok(rondo_graph_nodes(graph, NULL, &count));
  assert_int_equal(count, 0);
}

/* C4, C5: ending -------------------------------------------------------------------------------------------------- */

TEST(test_gx3_c4_a_capture_is_ended_once) {
  rondo_graph *graph = (rondo_graph *)t;
  assert_error(rondo_capture_end(t->stream, &graph), RONDO_INVALID_STATE, RONDO_REASON_NOT_CAPTURING);
  assert_null(graph);
  begin(t->stream);
  graph = test_capture_end(t->stream);
  test_graph_destroy(graph);
  graph = (rondo_graph *)t;
  assert_error(rondo_capture_end(t->stream, &graph), RONDO_INVALID_STATE, RONDO_REASON_NOT_CAPTURING);
  assert_null(graph);
  begin(t->stream); /* and begun again */
  test_graph_destroy(test_capture_end(t->stream));
}

TEST(test_gx3_c4_the_graph_must_have_somewhere_to_go) {
  begin(t->stream);
  assert_invalid(rondo_capture_end(t->stream, NULL), RONDO_REASON_NULL_ARGUMENT);
  test_graph_destroy(test_capture_end(t->stream));
}

TEST(test_gx3_c4_an_unjoined_branch) {
  rondo_stream *side = test_stream(t, "forgotten");
  uint32_t *word = test_words(t, 1);
  begin(t->stream);
  test_affine(t, t->stream, word, 1, 1, 1);
  test_order(t, t->stream, side);
  test_affine(t, side, word, 1, 1, 1);
  rondo_graph *graph = (rondo_graph *)t;
  assert_error(rondo_capture_end(t->stream, &graph), RONDO_CAPTURE_REFUSED, RONDO_REASON_UNJOINED);
  assert_null(graph);
  assert_message("forgotten");
  assert_message("test_affine");
  assert_state(t->stream, RONDO_CAPTURE_NONE);
  assert_state(side, RONDO_CAPTURE_NONE);
  test_affine(t, side, word, 1, 1, 5); /* runs at once */
  assert_ok(rondo_stream_synchronize(side));
  assert_int_equal(test_word(t, word), 5);
}

TEST(test_gx3_c4_a_branch_used_after_its_join) {
  rondo_stream *side = test_stream(t, "late");
  uint32_t *word = test_words(t, 1);
  begin(t->stream);
  test_order(t, t->stream, side);
  test_affine(t, side, word, 1, 1, 1);
  test_order(t, side, t->stream);
  test_affine(t, side, word, 1, 1, 1);
  assert_end_fails(t, t->stream, RONDO_CAPTURE_REFUSED, RONDO_REASON_UNJOINED);
  assert_message("late");
  assert_state(side, RONDO_CAPTURE_NONE);
}

/* A branch may be joined through another branch. */
TEST(test_gx3_c5_a_join_through_another_branch) {
  rondo_stream *first = test_stream(t, "first"), *second = test_stream(t, "second");
  uint32_t *words = test_words(t, 2);
  begin(t->stream);
  test_order(t, t->stream, first);
  test_order(t, t->stream, second);
  test_affine(t, first, words, 1, 1, 1);
  test_affine(t, second, words + 1, 1, 1, 2);
  test_order(t, first, second);
  test_order(t, second, t->stream);
  rondo_graph *graph = test_capture_end(t->stream);
  test_run_once(t, graph);
  test_graph_destroy(graph);
  const uint32_t expected[2] = {1, 2};
  assert_words(t, words, expected, 2);
}

TEST(test_gx3_c4_the_wrong_stream) {
  rondo_stream *origin = test_stream(t, "origin"), *side = test_stream(t, "side");
  begin(origin);
  test_order(t, origin, side);
  rondo_graph *graph = (rondo_graph *)t;
  assert_error(rondo_capture_end(side, &graph), RONDO_CAPTURE_REFUSED, RONDO_REASON_UNMATCHED_STREAM);
  assert_null(graph);
  assert_message("origin");
  assert_state(origin, RONDO_CAPTURE_ACTIVE);
  test_order(t, side, origin);
  test_graph_destroy(test_capture_end(origin));
}

typedef struct end_elsewhere {
  rondo_stream *stream;
  rondo_graph *graph;
  rondo_status status;
  rondo_reason reason;
} end_elsewhere;

static void end_on_this_thread(void *user) {
  end_elsewhere *self = user;
  self->status = rondo_capture_end(self->stream, &self->graph);
  self->reason = self->status == RONDO_OK ? RONDO_REASON_NONE : rondo_last_error()->reason;
}

TEST(test_gx3_c4_the_wrong_thread) {
  static const rondo_capture_mode modes[] = {RONDO_CAPTURE_THREAD_LOCAL, RONDO_CAPTURE_GLOBAL};
  for (int i = 0; i < 2; i++) {
    assert_ok(rondo_capture_begin(t->stream, modes[i]));
    end_elsewhere elsewhere = {.stream = t->stream, .graph = (rondo_graph *)t};
    test_on_thread(end_on_this_thread, &elsewhere);
    assert_int_equal(elsewhere.status, RONDO_CAPTURE_REFUSED);
    assert_int_equal(elsewhere.reason, RONDO_REASON_WRONG_THREAD);
    assert_null(elsewhere.graph);
    assert_state(t->stream, RONDO_CAPTURE_ACTIVE);
    test_graph_destroy(test_capture_end(t->stream));
  }
}

TEST(test_gx3_c4_a_relaxed_capture_ends_on_any_thread) {
  assert_ok(rondo_capture_begin(t->stream, RONDO_CAPTURE_RELAXED));
  end_elsewhere elsewhere = {.stream = t->stream};
  test_on_thread(end_on_this_thread, &elsewhere);
  assert_int_equal(elsewhere.status, RONDO_OK);
  assert_non_null(elsewhere.graph);
  test_graph_destroy(elsewhere.graph);
}

/* Nodes added by hand, and nodes dropped from a frontier, need no join. */
TEST(test_gx3_c5_nodes_added_by_hand_need_no_join) {
  uint32_t *word = test_words(t, 1);
  begin(t->stream);
  test_affine(t, t->stream, word, 1, 1, 1);
  test_add_affine(t, test_capture_info(t->stream).graph, NULL, 0, word, 1, 0);
  assert_ok(rondo_capture_set_frontier(t->stream, NULL, 0, true));
  test_affine(t, t->stream, word, 1, 1, 0);
  rondo_graph *graph = test_capture_end(t->stream);
  size_t count = 0, edges = 7;
  assert_ok(rondo_graph_nodes(graph, NULL, &count));
  assert_ok(rondo_graph_edges(graph, NULL, NULL, &edges));
  assert_int_equal(count, 3);
  assert_int_equal(edges, 0);
}

/* C6, C10: refused calls and invalid captures --------------------------------------------------------------------- */

/* The refusal names the call, the capture is invalid and says why, and it is over for all its streams. */
static void assert_invalidated(test_fixture *t, rondo_stream *member, const char *call) {
  assert_message(call);
  assert_state(t->stream, RONDO_CAPTURE_INVALIDATED);
  assert_state(member, RONDO_CAPTURE_INVALIDATED);
  assert_end_fails(t, t->stream, RONDO_CAPTURE_INVALID, RONDO_REASON_INVALIDATED);
  assert_message("which is over now");
  assert_message(call);
  assert_state(member, RONDO_CAPTURE_NONE);
}

TEST(test_gx3_c6_waiting_for_a_capturing_stream) {
  rondo_stream *side = test_stream(t, "side");
  rondo_stream *const streams[2] = {t->stream, side};
  for (int i = 0; i < 2; i++) {
    begin(t->stream);
    test_order(t, t->stream, side);
    assert_error(rondo_stream_synchronize(streams[i]), RONDO_CAPTURE_REFUSED, RONDO_REASON_UNSUPPORTED_CALL);
    assert_invalidated(t, side, "rondo_stream_synchronize");
    begin(t->stream);
    test_order(t, t->stream, side);
    assert_error(rondo_stream_query(streams[i]), RONDO_CAPTURE_REFUSED, RONDO_REASON_UNSUPPORTED_CALL);
    assert_invalidated(t, side, "rondo_stream_query");
  }
  begin(t->stream);
  test_order(t, t->stream, side);
  assert_error(rondo_device_synchronize(t->device), RONDO_CAPTURE_REFUSED, RONDO_REASON_UNSUPPORTED_CALL);
  assert_invalidated(t, side, "rondo_device_synchronize");
}

TEST(test_gx3_c6_a_captured_event_has_no_completion) {
  rondo_event *event = test_event(t);
  uint32_t *word = test_words(t, 1);
  for (int i = 0; i < 2; i++) {
    begin(t->stream);
    test_affine(t, t->stream, word, 1, 1, 1);
    assert_ok(rondo_event_record(event, t->stream));
    assert_error((i == 0 ? rondo_event_query : rondo_event_synchronize)(event), RONDO_CAPTURE_REFUSED,
                 RONDO_REASON_CAPTURED_EVENT);
    const bool valid = test_capture_info(t->stream).state == RONDO_CAPTURE_ACTIVE;
    rondo_graph *graph = NULL;
    assert_status(rondo_capture_end(t->stream, &graph), valid ? RONDO_OK : RONDO_CAPTURE_INVALID);
    test_graph_destroy(graph);
    assert_ok(rondo_event_record(event, t->stream)); /* an ordinary event again */
    assert_ok(rondo_event_synchronize(event));
  }
  assert_int_equal(test_word(t, word), 0);
}

/* Nothing was recorded that a stream could wait for; the event is as it was, and an ordinary one when it is recorded
 * again. */
TEST(test_gx3_c3_the_capture_of_an_event_is_over) {
  rondo_event *event = test_event(t);
  rondo_stream *side = test_stream(t, "side");
  begin(t->stream);
  assert_ok(rondo_event_record(event, t->stream));
  test_graph_destroy(test_capture_end(t->stream));
  for (int i = 0; i < 2; i++) {
    assert_error(rondo_stream_wait_event(side, event), RONDO_CAPTURE_REFUSED, RONDO_REASON_CAPTURED_EVENT);
    assert_message("which is over");
    assert_message("'side'");
  }
  assert_state(side, RONDO_CAPTURE_NONE);
  assert_ok(rondo_event_record(event, t->stream));
  assert_ok(rondo_stream_wait_event(side, event));
  assert_ok(rondo_stream_synchronize(side));
}

/* C10: once invalid, nothing is taken until the end. */
TEST(test_gx3_c10_an_invalid_capture_takes_nothing) {
  rondo_event *event = test_event(t);
  rondo_graph *empty = test_graph(t);
  rondo_exec *exec = test_instantiate(empty);
  uint32_t *words = test_words(t, 8), one = 1;
  void *address = t;
  rondo_kernel *kernel = test_kernel(t, TEST_KERNEL_SET);
  const rondo_fill fill = {.dst = words, .element_bytes = 4, .width = 1};
  begin(t->stream);
  assert_error(rondo_stream_synchronize(t->stream), RONDO_CAPTURE_REFUSED, RONDO_REASON_UNSUPPORTED_CALL);
#define assert_refused(call) assert_error(call, RONDO_CAPTURE_INVALID, RONDO_REASON_INVALIDATED)
  assert_refused(rondo_launch(t->stream, kernel, (rondo_grid){1, 0, 0}, RONDO_ARGS(&one, &words)));
  assert_refused(rondo_copy_async(t->stream, words, words + 4, 4));
  assert_refused(rondo_fill_async(t->stream, &fill));
  assert_refused(rondo_host_async(t->stream, test_host_nothing, NULL));
  assert_refused(rondo_event_record(event, t->stream));
  assert_refused(rondo_event_record_external(event, t->stream));
  assert_refused(rondo_malloc_async(t->stream, 64, NULL, &address));
  assert_null(address);
  assert_refused(rondo_exec_launch(exec, t->stream));
  assert_refused(rondo_capture_set_frontier(t->stream, NULL, 0, true));
  assert_message("rondo_stream_synchronize");
#undef assert_refused
  assert_null(test_capture_info(t->stream).graph);
  assert_end_fails(t, t->stream, RONDO_CAPTURE_INVALID, RONDO_REASON_INVALIDATED);
  assert_int_equal(test_word(t, words), 0);
}

/* Memory that an invalid capture allocated does not leak: the fixture's teardown asserts it. */
TEST(test_gx3_c10_an_invalid_capture_leaks_no_memory) {
  for (int i = 0; i < 3; i++) {
    begin(t->stream);
    void *address = test_allocate_async(t->stream, 1 << 20);
    assert_fails(rondo_stream_synchronize(t->stream), RONDO_CAPTURE_REFUSED);
    assert_end_fails(t, t->stream, RONDO_CAPTURE_INVALID, RONDO_REASON_INVALIDATED);
    assert_true(rondo_free(t->device, address) != RONDO_OK);
  }
}

/* All work on the stream is refused, with the reason that made its capture invalid. */
static void assert_takes_nothing(test_fixture *t, rondo_stream *stream, uint32_t *words, const char *cause) {
  rondo_event *event = test_event(t);
  rondo_graph *empty = test_graph(t);
  rondo_exec *exec = test_instantiate(empty);
  rondo_kernel *kernel = test_kernel(t, TEST_KERNEL_SET);
  uint32_t one = 1;
  void *address = t;
  assert_state(stream, RONDO_CAPTURE_INVALIDATED);
#define assert_refused(call) \
  (assert_error(call, RONDO_CAPTURE_INVALID, RONDO_REASON_INVALIDATED), assert_message(cause))
  assert_refused(rondo_launch(stream, kernel, (rondo_grid){1, 0, 0}, RONDO_ARGS(&one, &words)));
  assert_refused(rondo_copy_async(stream, words, words + 1, 4));
  assert_refused(rondo_host_async(stream, test_host_nothing, NULL));
  assert_refused(rondo_event_record(event, stream));
  assert_refused(rondo_stream_wait_event_external(stream, event));
  assert_refused(rondo_malloc_async(stream, 64, NULL, &address));
  assert_refused(rondo_exec_launch(exec, stream));
  assert_refused(rondo_exec_upload(exec, stream));
  assert_refused(rondo_stream_synchronize(stream));
  assert_refused(rondo_stream_query(stream));
#undef assert_refused
  assert_error(rondo_capture_begin(stream, RONDO_CAPTURE_RELAXED), RONDO_CAPTURE_REFUSED,
               RONDO_REASON_ALREADY_CAPTURING);
  assert_null(address);
  assert_int_equal(test_word(t, words), 0);
  assert_state(stream, RONDO_CAPTURE_INVALIDATED);
  rondo_exec_destroy(exec);
  test_graph_destroy(empty);
  rondo_event_destroy(event);
}

TEST(test_gx3_c10_destroying_a_forked_stream) {
  uint32_t *words = test_words(t, 2);
  rondo_stream *origin = test_stream(t, "origin"), *side = test_stream(t, "gone"), *other = test_stream(t, "other");
  begin(origin);
  test_order(t, origin, side);
  test_order(t, origin, other);
  test_stream_destroy(side);
  assert_takes_nothing(t, origin, words, "destruction of stream 'gone'");
  assert_takes_nothing(t, other, words, "destruction of stream 'gone'");
  assert_end_fails(t, origin, RONDO_CAPTURE_INVALID, RONDO_REASON_INVALIDATED);
  assert_state(other, RONDO_CAPTURE_NONE);
}

/* Its streams refuse work until the capture is ended, on any of them. */
TEST(test_gx3_c10_destroying_the_stream_of_a_capture) {
  uint32_t *words = test_words(t, 2);
  rondo_event *event = test_event(t);
  rondo_stream *origin = test_stream(t, "origin"), *side = test_stream(t, "side"), *other = test_stream(t, "other");
  begin(origin);
  assert_ok(rondo_event_record(event, origin));
  test_order(t, origin, side);
  test_order(t, side, other);
  test_affine(t, side, words, 1, 1, 1);
  test_stream_destroy(origin);
  assert_takes_nothing(t, side, words, "destruction of stream 'origin'");
  assert_takes_nothing(t, other, words, "destruction of stream 'origin'");
  assert_error(rondo_stream_wait_event(t->stream, event), RONDO_CAPTURE_INVALID, RONDO_REASON_INVALIDATED);
  assert_state(t->stream, RONDO_CAPTURE_NONE);
  assert_end_fails(t, side, RONDO_CAPTURE_INVALID, RONDO_REASON_INVALIDATED);
  assert_message("destruction of stream 'origin'");
  assert_state(other, RONDO_CAPTURE_NONE);
  test_affine(t, other, words, 1, 1, 1);
  assert_ok(rondo_stream_synchronize(other));
  assert_int_equal(test_word(t, words), 1);
}

/* With its last stream a capture is over that nobody ended. The graph that it added to is its owner's again. */
TEST(test_gx3_destroying_all_streams_of_a_capture) {
  rondo_graph *graph = test_graph(t);
  rondo_stream *streams[2] = {test_stream(t, "origin"), test_stream(t, "side")};
  assert_ok(rondo_capture_begin_to_graph(streams[0], graph, NULL, 0, RONDO_CAPTURE_THREAD_LOCAL));
  test_order(t, streams[0], streams[1]);
  for (int i = 0; i < 2; i++) {
    assert_error(rondo_capture_begin_to_graph(t->stream, graph, NULL, 0, RONDO_CAPTURE_RELAXED), RONDO_INVALID_STATE,
                 RONDO_REASON_CAPTURING_INTO);
    test_stream_destroy(streams[i]);
  }
}

typedef struct destroying {
  rondo_stream *stream;
  rondo_status status, last;
} destroying;

static void destroy_on_this_thread(void *user) {
  destroying *self = user;
  self->status = rondo_stream_destroy(self->stream);
  self->last = rondo_last_error()->status;
}

/* Its driver may refuse to end the capture there, which is nothing that the caller did wrong. */
TEST(test_gx3_destroying_a_capturing_stream_elsewhere) {
  destroying elsewhere = {.stream = test_stream(t, "captured")};
  assert_ok(rondo_capture_begin(elsewhere.stream, RONDO_CAPTURE_THREAD_LOCAL));
  test_on_thread(destroy_on_this_thread, &elsewhere);
  assert_status(elsewhere.status, RONDO_OK);
  assert_int_equal(elsewhere.last, RONDO_OK);
}

/* The thread that began a capture need not be there any more when the stream that it began on is not. */
TEST(test_gx3_c4_a_capture_without_its_stream_ends_on_any_thread) {
  rondo_stream *origin = test_stream(t, "origin");
  end_elsewhere elsewhere = {.stream = test_stream(t, "side")};
  begin(origin);
  test_order(t, origin, elsewhere.stream);
  test_stream_destroy(origin);
  test_on_thread(end_on_this_thread, &elsewhere);
  assert_status(elsewhere.status, RONDO_CAPTURE_INVALID);
  assert_int_equal(elsewhere.reason, RONDO_REASON_INVALIDATED);
  assert_state(elsewhere.stream, RONDO_CAPTURE_NONE);
  assert_ok(rondo_stream_synchronize(elsewhere.stream));
  test_stream_destroy(elsewhere.stream);
}

/* C7: isolation and merges ---------------------------------------------------------------------------------------- */

TEST(test_gx3_c7_a_capture_waits_for_nothing_outside) {
  rondo_stream *outside = test_stream(t, "outside");
  rondo_event *event = test_event(t);
  assert_ok(rondo_event_record(event, outside));
  begin(t->stream);
  assert_error(rondo_stream_wait_event(t->stream, event), RONDO_CAPTURE_REFUSED, RONDO_REASON_ISOLATION);
  assert_message("rondo_stream_wait_event");
  assert_state(t->stream, RONDO_CAPTURE_INVALIDATED);
  assert_state(outside, RONDO_CAPTURE_NONE);
  assert_end_fails(t, t->stream, RONDO_CAPTURE_INVALID, RONDO_REASON_INVALIDATED);
}

TEST(test_gx3_c7_captures_do_not_merge) {
  rondo_stream *other = test_stream(t, "other");
  rondo_event *event = test_event(t);
  begin(t->stream);
  begin(other);
  assert_ok(rondo_event_record(event, other));
  assert_error(rondo_stream_wait_event(t->stream, event), RONDO_CAPTURE_REFUSED, RONDO_REASON_MERGE);
  assert_state(t->stream, RONDO_CAPTURE_INVALIDATED);
  assert_state(other, RONDO_CAPTURE_INVALIDATED);
  assert_end_fails(t, t->stream, RONDO_CAPTURE_INVALID, RONDO_REASON_INVALIDATED);
  rondo_graph *graph = NULL;
  assert_error(rondo_capture_end(other, &graph), RONDO_CAPTURE_INVALID, RONDO_REASON_INVALIDATED);
  assert_null(graph);
}

/* C7: the external forms become nodes, which record and wait at each launch. */
TEST(test_gx3_c7_external_events_become_nodes) {
  rondo_event *start = test_event(t), *done = test_event(t);
  uint32_t *word = test_words(t, 1);
  begin(t->stream);
  assert_ok(rondo_stream_wait_event_external(t->stream, start));
  test_affine(t, t->stream, word, 1, 1, 1);
  assert_ok(rondo_event_record_external(done, t->stream));
  rondo_graph *captured = test_capture_end(t->stream), *built = test_graph(t);
  rondo_node node = {0};
  assert_ok(rondo_graph_add_event_wait(built, NULL, 0, start, &node));
  node = test_add_affine(t, built, &node, 1, word, 1, 1);
  assert_ok(rondo_graph_add_event_record(built, &node, 1, done, &node));
  assert_same_graph(captured, built);
  test_graph_destroy(built);
  rondo_exec *exec = test_instantiate(captured);
  assert_ok(rondo_exec_launch(exec, t->stream));
  assert_ok(rondo_event_synchronize(done));
  assert_int_equal(test_word(t, word), 1);
}

/* C11 to C16 ------------------------------------------------------------------------------------------------------ */

typedef struct look_inside {
  const rondo_stream *stream;
  rondo_capture_info info;
  rondo_status status;
} look_inside;

static void look_from_this_thread(void *user) {
  look_inside *self = user;
  self->info.struct_size = sizeof self->info;
  self->status = rondo_capture_get_info(self->stream, &self->info);
}

TEST(test_gx3_c12_a_capture_reports_its_state) {
  rondo_stream *side = test_stream(t, "side");
  uint32_t *word = test_words(t, 1);
  assert_state(t->stream, RONDO_CAPTURE_NONE);
  assert_true(test_capture_info(t->stream).id == 0 && test_capture_info(t->stream).graph == NULL);
  begin(t->stream);
  const rondo_capture_info begun = test_capture_info(t->stream);
  assert_int_equal(begun.state, RONDO_CAPTURE_ACTIVE);
  assert_true(begun.id != 0 && begun.graph != NULL && begun.frontier_count == 0);
  test_affine(t, t->stream, word, 1, 1, 1);
  test_order(t, t->stream, side);
  const rondo_capture_info forked = test_capture_info(side);
  assert_true(forked.id == begun.id && forked.graph == begun.graph);
  assert_int_equal(forked.frontier_count, 1);
  assert_true(forked.frontier[0].id == test_capture_info(t->stream).frontier[0].id);
  look_inside other = {.stream = t->stream};
  test_on_thread(look_from_this_thread, &other);
  assert_int_equal(other.status, RONDO_OK);
  assert_true(other.info.id == begun.id && other.info.graph == begun.graph);
  assert_fails(rondo_graph_destroy(begun.graph), RONDO_INVALID_STATE);
  assert_reason(rondo_graph_remove(begun.graph, forked.frontier[0]), RONDO_REASON_CAPTURING_INTO);
  rondo_exec *exec = NULL;
  assert_error(rondo_instantiate(begun.graph, NULL, &exec), RONDO_INVALID_STATE, RONDO_REASON_CAPTURING_INTO);
  assert_state(t->stream, RONDO_CAPTURE_ACTIVE);
  test_graph_destroy(test_capture_end(t->stream));
  begin(t->stream);
  assert_true(test_capture_info(t->stream).id != begun.id);
  test_graph_destroy(test_capture_end(t->stream));
}

/* Each node once, however many there are and however often they are named. */
TEST(test_gx3_c13_a_frontier_may_be_long) {
  enum { NODES = 200 };
  rondo_graph *graph = test_graph(t);
  uint32_t *word = test_words(t, 1);
  rondo_node nodes[2 * NODES];
  size_t edges = 0;
  rondo_node_params empty = {.kind = RONDO_NODE_EMPTY};
  for (size_t i = 0; i < NODES; i++) {
    assert_ok(rondo_graph_add(graph, NULL, 0, &empty, &nodes[i]));
    nodes[2 * NODES - 1 - i] = nodes[i];
  }
  assert_ok(rondo_capture_begin_to_graph(t->stream, graph, nodes, 2 * NODES, RONDO_CAPTURE_THREAD_LOCAL));
  assert_int_equal(test_capture_info(t->stream).frontier_count, NODES);
  assert_ok(rondo_capture_set_frontier(t->stream, nodes, NODES / 2, true));
  assert_int_equal(test_capture_info(t->stream).frontier_count, NODES / 2);
  assert_ok(rondo_capture_set_frontier(t->stream, nodes + NODES / 4, NODES, false));
  assert_int_equal(test_capture_info(t->stream).frontier_count, NODES);
  test_affine(t, t->stream, word, 1, 1, 1);
  assert_ok(rondo_capture_end(t->stream, NULL));
  assert_ok(rondo_graph_edges(graph, NULL, NULL, &edges));
  assert_int_equal(edges, NODES);
}

TEST(test_gx3_c13_the_frontier_is_added_to_and_replaced) {
  uint32_t *word = test_words(t, 1);
  rondo_graph *other = test_graph(t);
  const rondo_node stranger = test_add_affine(t, other, NULL, 0, word, 1, 0);
  assert_error(rondo_capture_set_frontier(t->stream, NULL, 0, true), RONDO_INVALID_STATE, RONDO_REASON_NOT_CAPTURING);
  begin(t->stream);
  test_affine(t, t->stream, word, 1, 1, 1);
  const rondo_node first = test_capture_info(t->stream).frontier[0];
  const rondo_node by_hand = test_add_affine(t, test_capture_info(t->stream).graph, &first, 1, word, 3, 0);
  assert_reason(rondo_capture_set_frontier(t->stream, &stranger, 1, false), RONDO_REASON_UNKNOWN_NODE);
  assert_fails(rondo_capture_set_frontier(t->stream, NULL, 1, false), RONDO_INVALID_ARGUMENT);
  assert_ok(rondo_capture_set_frontier(t->stream, &by_hand, 1, false));
  assert_int_equal(test_capture_info(t->stream).frontier_count, 2);
  assert_ok(rondo_capture_set_frontier(t->stream, &by_hand, 1, false)); /* there already */
  assert_int_equal(test_capture_info(t->stream).frontier_count, 2);
  assert_ok(rondo_capture_set_frontier(t->stream, &by_hand, 1, true));
  assert_int_equal(test_capture_info(t->stream).frontier_count, 1);
  test_affine(t, t->stream, word, 1, 1, 10);
  rondo_graph *graph = test_capture_end(t->stream);
  test_run_once(t, graph);
  test_graph_destroy(graph);
  assert_int_equal(test_word(t, word), 13);
}

TEST(test_gx3_c14_capturing_into_a_graph) {
  uint32_t *word = test_words(t, 1);
  rondo_graph *graph = test_graph(t), *out = NULL;
  const rondo_node first = test_add_affine(t, graph, NULL, 0, word, 0, 5);
  assert_invalid(rondo_capture_begin_to_graph(t->stream, NULL, NULL, 0, RONDO_CAPTURE_RELAXED),
                 RONDO_REASON_NULL_ARGUMENT);
  assert_state(t->stream, RONDO_CAPTURE_NONE);
  assert_ok(rondo_capture_begin_to_graph(t->stream, graph, &first, 1, RONDO_CAPTURE_THREAD_LOCAL));
  test_affine(t, t->stream, word, 1, 10, 1);
  rondo_exec *exec = NULL;
  assert_error(rondo_instantiate(graph, NULL, &exec), RONDO_INVALID_STATE, RONDO_REASON_CAPTURING_INTO);
  assert_fails(rondo_graph_destroy(graph), RONDO_INVALID_STATE);
  assert_ok(rondo_capture_end(t->stream, &out));
  assert_ptr_equal(out, graph);
  size_t count = 1;
  rondo_node last = {0};
  assert_ok(rondo_graph_dependents(graph, first, &last, &count));
  assert_int_equal(count, 1);
  assert_ok(rondo_capture_begin_to_graph(t->stream, graph, &last, 1, RONDO_CAPTURE_THREAD_LOCAL));
  test_affine(t, t->stream, word, 1, 10, 2);
  assert_ok(rondo_capture_end(t->stream, NULL));
  test_run_once(t, graph);
  test_graph_destroy(graph);
  assert_int_equal(test_word(t, word), 512);
}

/* The graph stays the caller's when the capture into it fails. */
TEST(test_gx3_c14_a_failed_capture_leaves_the_graph_to_its_owner) {
  rondo_graph *graph = test_graph(t), *out = graph;
  uint32_t *word = test_words(t, 1);
  assert_ok(rondo_capture_begin_to_graph(t->stream, graph, NULL, 0, RONDO_CAPTURE_THREAD_LOCAL));
  test_affine(t, t->stream, word, 1, 1, 1);
  assert_fails(rondo_stream_synchronize(t->stream), RONDO_CAPTURE_REFUSED);
  assert_error(rondo_capture_end(t->stream, &out), RONDO_CAPTURE_INVALID, RONDO_REASON_INVALIDATED);
  assert_null(out);
}

TEST(test_gx3_c15_a_capture_frees_graph_memory_only) {
  uint32_t *word = test_words(t, 1);
  begin(t->stream);
  assert_invalid(rondo_free_async(t->stream, word), RONDO_REASON_FOREIGN_ADDRESS);
  void *scratch = test_allocate_async(t->stream, 64);
  assert_ok(rondo_free_async(t->stream, scratch));
  test_graph_destroy(test_capture_end(t->stream));
  assert_int_equal(test_word(t, word), 0);
}

/* C16: launching an exec while capturing makes a child-graph node. */
TEST(test_gx3_c16_a_launch_becomes_a_child) {
  uint32_t *word = test_words(t, 1);
  rondo_graph *inner = test_graph(t);
  test_add_affine(t, inner, NULL, 0, word, 10, 1);
  rondo_exec *exec = test_instantiate(inner);
  begin(t->stream);
  test_affine(t, t->stream, word, 1, 0, 4);
  assert_ok(rondo_exec_launch(exec, t->stream));
  test_affine(t, t->stream, word, 1, 10, 2);
  rondo_graph *captured = test_capture_end(t->stream), *built = test_graph(t);
  rondo_node node = test_add_affine(t, built, NULL, 0, word, 0, 4);
  assert_ok(rondo_graph_add_child(built, &node, 1, inner, &node));
  test_add_affine(t, built, &node, 1, word, 10, 2);
  assert_same_graph(captured, built);
  test_graph_destroy(built);
  rondo_exec_destroy(exec);
  test_graph_destroy(inner);
  test_run_once(t, captured);
  test_graph_destroy(captured);
  assert_int_equal(test_word(t, word), 412);
}
