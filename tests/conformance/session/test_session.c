/* SPDX-License-Identifier: MIT
 * Sessions: models by name, capture mode and its results (SE-1 to SE-3), graphs by model and index on every stream
 * (SE-6, SE-7), sizes chosen from a history, and errors. Serving is in test_session_requests.c.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "support/rondo_test.h"
#include "support/test_session.h"

static rondo_session *open_session(test_fixture *t, uint32_t streams) {
  return test_session_open(t->device, (rondo_session_options){.streams = streams, .name = "served"});
}

static void assert_runs(rondo_session *session, const char *name, size_t rows, rondo_run_mode mode) {
  static test_request r;
  assert_int_equal(test_request_run(session, name, &r, rows, RONDO_RUN_AUTO).mode, mode);
}

/* Life ------------------------------------------------------------------------------------------------------------ */

TEST(test_an_empty_session) {
  rondo_session *session = open_session(t, 3);
  assert_ok(rondo_session_drain(session));
  assert_ok(rondo_session_destroy(session));
  assert_ok(rondo_session_destroy(NULL));
  assert_ok(rondo_session_create(t->device, NULL, &session));
  assert_ok(rondo_session_destroy(session));
}

TEST(test_models_have_names_and_values) {
  rondo_session *session = open_session(t, 1);
  rondo_model_value value = {.struct_size = sizeof value};
  test_scorer_add(session, "scorer", (rondo_model_options){0});
  assert_ok(rondo_session_get_input(session, "scorer", 1, &value));
  assert_string_equal(value.name, "ids");
  assert_int_equal(value.type, RONDO_I32);
  assert_int_equal(value.row_bytes, 4);
  assert_ok(rondo_session_get_output(session, "scorer", 0, &value));
  assert_string_equal(value.name, "y");
  assert_int_equal(value.row_bytes, 4 * TEST_SCORES);
  assert_error(rondo_session_get_output(session, "scorer", 1, &value), RONDO_NOT_FOUND, RONDO_REASON_OUT_OF_RANGE);
  assert_error(rondo_session_get_input(session, "other", 0, &value), RONDO_NOT_FOUND, RONDO_REASON_UNKNOWN_NAME);
  assert_ok(rondo_session_remove_model(session, "scorer"));
  assert_error(rondo_session_remove_model(session, "scorer"), RONDO_NOT_FOUND, RONDO_REASON_UNKNOWN_NAME);
}

/* status.h: a call that succeeds does not change the last error. */
TEST(test_what_succeeds_leaves_the_last_error) {
  rondo_session *session = open_session(t, 2);
  rondo_model_info info = {.struct_size = sizeof info};
  const size_t sizes[] = {8, 4};
  assert_error(rondo_session_get_model_info(session, "nobody", &info), RONDO_NOT_FOUND, RONDO_REASON_UNKNOWN_NAME);
  test_scorer_add(session, "scorer", (rondo_model_options){0});
  test_scorer_capture(session, "scorer", sizes, 2);
  assert_runs(session, "scorer", 3, RONDO_RUN_RECORDED);
  assert_ok(rondo_session_remove_model(session, "scorer"));
  assert_int_equal(rondo_last_error()->status, RONDO_NOT_FOUND);
  assert_non_null(strstr(rondo_last_error()->message, "nobody"));
}

/* SE-1, SE-2, SE-3 ------------------------------------------------------------------------------------------------- */

TEST(test_se1_k_runs_make_k_graphs_of_a_model) {
  rondo_session *session = open_session(t, 1);
  test_scorer_add(session, "first", (rondo_model_options){0});
  test_scorer_add(session, "second", (rondo_model_options){0});
  const size_t sizes[] = {64, 16, 32};
  test_scorer_capture(session, "first", sizes, 3);
  assert_int_equal(test_model_info(session, "first").graphs, 3);
  assert_int_equal(test_model_info(session, "second").graphs, 0);
  test_scorer_capture(session, "second", sizes, 1);
  assert_int_equal(test_model_info(session, "second").graphs, 1);
  for (size_t i = 0; i < 3; i++) {
    const rondo_model_graph graph = test_model_graph(session, "first", i);
    assert_int_equal(graph.rows, sizes[i]);
    assert_true(graph.run_us > 0 && graph.eager_us > 0 && graph.capture_us > 0);
    assert_true(graph.nodes >= 4); /* two inputs' copies are gone, one output's is not */
    assert_true(graph.exec_bytes > 0 && graph.arena_bytes > 0);
  }
  rondo_model_graph graph = {.struct_size = sizeof graph};
  assert_error(rondo_session_get_graph(session, "first", 3, &graph), RONDO_NOT_FOUND, RONDO_REASON_OUT_OF_RANGE);
}

/* Outside of the mode all is as before: the model runs, and so does the other one inside of it. */
TEST(test_se2_capturing_leaves_no_trace) {
  rondo_session *session = open_session(t, 1);
  static test_request r;
  test_scorer_add(session, "first", (rondo_model_options){0});
  test_scorer_add(session, "second", (rondo_model_options){0});
  assert_runs(session, "first", 5, RONDO_RUN_EAGER);
  assert_ok(rondo_session_capture_begin(session, "first"));
  test_request_fill(&r, 16, 3);
  memset(r.y, 0x11, sizeof r.y);
  assert_ok(rondo_session_run(session, "first", &r.request, NULL));
  assert_int_equal(((unsigned char *)r.y)[0], 0x11);
  assert_runs(session, "second", 7, RONDO_RUN_EAGER);
  assert_ok(rondo_session_capture_end(session));
  const double times[] = {1}, slow[] = {1000};
  assert_ok(rondo_session_set_times(session, "first", times, slow, 1, 0));
  assert_runs(session, "first", 16, RONDO_RUN_RECORDED);
  assert_runs(session, "first", 5, RONDO_RUN_RECORDED);
}

/* One stream, and no line: the product and the look-up depend on different inputs. */
TEST(test_se2_branches_of_a_program_are_kept) {
  rondo_session *session = open_session(t, 2);
  rondo_model_graph graph = {.struct_size = sizeof graph};
  const size_t sizes[] = {64, 16};
  const double times[] = {2, 1};
  test_scorer_add(session, "scorer", (rondo_model_options){0});
  test_scorer_capture(session, "scorer", sizes, 2);
  assert_ok(rondo_session_set_times(session, "scorer", times, NULL, 2, 1));
  assert_ok(rondo_session_get_graph(session, "scorer", 0, &graph));
  assert_true(graph.has_branches);
  for (size_t rows = 1; rows < 100; rows += 13)
    assert_runs(session, "scorer", rows, rows > 64 ? RONDO_RUN_SPLIT : RONDO_RUN_RECORDED);
}

TEST(test_se3_sizes_share_an_arena_and_give_it_back) {
  rondo_session *session = open_session(t, 1);
  test_scorer_add(session, "scorer", (rondo_model_options){0});
  const uint32_t before = test_memory_statistics(t).live_allocations;
  const uint64_t arena_before = test_model_info(session, "scorer").arena_bytes;
  const size_t sizes[] = {128, 64, 32, 16};
  test_scorer_capture(session, "scorer", sizes, 4);
  const rondo_model_graph largest = test_model_graph(session, "scorer", 0);
  assert_int_equal(test_model_info(session, "scorer").arena_bytes, arena_before + largest.arena_bytes);
  const double times[] = {40, 30, 20, 10};
  assert_ok(rondo_session_set_times(session, "scorer", times, NULL, 4, 0));
  for (size_t i = 0; i < 4; i++) assert_runs(session, "scorer", sizes[i], RONDO_RUN_RECORDED);
  assert_ok(rondo_session_destroy_graphs(session, "scorer"));
  assert_int_equal(test_model_info(session, "scorer").graphs, 0);
  assert_true(test_memory_statistics(t).live_allocations <= before + 1);
  assert_runs(session, "scorer", 16, RONDO_RUN_EAGER);
  test_scorer_capture(session, "scorer", sizes, 1);
  assert_ok(rondo_session_set_times(session, "scorer", times, NULL, 1, 0));
  assert_runs(session, "scorer", 16, RONDO_RUN_RECORDED);
}

/* The next recording would wait for a stream that the same thread holds, and so would the end of capture mode. */
TEST(test_se1_no_stream_is_taken_in_capture_mode) {
  rondo_session *session = open_session(t, 2);
  const size_t size = 16;
  static test_request r;
  rondo_stream *stream = NULL;
  test_scorer_add(session, "first", (rondo_model_options){0});
  test_scorer_add(session, "second", (rondo_model_options){0});
  test_scorer_capture(session, "second", &size, 1);
  assert_ok(rondo_session_capture_begin(session, "first"));
  assert_error(rondo_session_acquire_stream(session, "second", 1, &stream), RONDO_INVALID_STATE,
               RONDO_REASON_ALREADY_CAPTURING);
  assert_message("rondo_session_capture_end");
  assert_null(stream);
  test_request_fill(&r, 16, 3);
  assert_ok(rondo_session_run(session, "first", &r.request, NULL));
  assert_ok(rondo_session_capture_end(session));
  assert_ok(rondo_session_acquire_stream(session, "second", 1, &stream));
  assert_error(rondo_session_capture_begin(session, "first"), RONDO_INVALID_STATE, RONDO_REASON_STILL_IN_USE);
  assert_ok(rondo_session_release_stream(session, 1));
}

/* SE-6, SE-7 ------------------------------------------------------------------------------------------------------ */

TEST(test_se6_any_graph_on_any_stream_by_hand) {
  rondo_session *session = open_session(t, 3);
  test_scorer_add(session, "scorer", (rondo_model_options){0});
  assert_true(test_model_info(session, "scorer").state_bytes <
              3 * 768); /* states of the three streams are the same ones */
  const size_t sizes[] = {64, 16};
  const uint32_t before = (uint32_t)test_statistics(t).launches;
  test_scorer_capture(session, "scorer", sizes, 2);
  for (size_t index = 0; index < 2; index++)
    for (size_t number = 0; number < 3; number++) {
      rondo_stream *stream = NULL;
      assert_ok(rondo_session_acquire_stream(session, "scorer", number, &stream));
      test_run_by_hand(session, stream, index, number, sizes[index], 1);
      assert_ok(rondo_session_release_stream(session, number));
    }
  assert_true(test_statistics(t).launches >= before + 6);
  for (size_t index = 0; index < 2; index++) {
    assert_int_equal(test_model_graph(session, "scorer", index).launches, 3);
  }
}

/* The memory that graphs retained is freed with them. */
TEST(test_se6_results_go_with_their_graphs) {
  rondo_session *session = open_session(t, 1);
  const size_t sizes[] = {64, 32, 16};
  const void *result = NULL;
  rondo_stream *stream = NULL;
  test_scorer_add(session, "scorer", (rondo_model_options){0});
  test_scorer_capture(session, "scorer", sizes, 3);
  assert_ok(rondo_session_acquire_stream(session, "scorer", 0, &stream));
  assert_ok(rondo_session_launch(session, "scorer", 2, 0));
  assert_ok(rondo_session_release_stream(session, 0));
  assert_ok(rondo_session_get_result(session, "scorer", 0, 0, &result));
  assert_ok(rondo_session_destroy_graphs(session, "scorer"));
  test_scorer_capture(session, "scorer", sizes, 1);
  assert_error(rondo_session_get_result(session, "scorer", 0, 0, &result), RONDO_INVALID_STATE, RONDO_REASON_NO_OUTPUT);
  assert_null(result);
}

TEST(test_se6_a_stream_that_is_taken_keeps_its_session) {
  rondo_session *session = open_session(t, 1);
  const size_t size = 16;
  static test_request r;
  rondo_stream *stream = NULL;
  rondo_ticket ticket = {0};
  test_scorer_add(session, "scorer", (rondo_model_options){0});
  test_scorer_capture(session, "scorer", &size, 1);
  assert_ok(rondo_session_acquire_stream(session, "scorer", 0, &stream));
  test_request_fill(&r, 5, 1);
  assert_ok(rondo_session_submit(session, "scorer", &r.request, &ticket)); /* waits for that stream */
  assert_error(rondo_session_destroy(session), RONDO_INVALID_STATE, RONDO_REASON_STILL_IN_USE);
  assert_ok(rondo_session_launch(session, "scorer", 0, 0));
  assert_ok(rondo_session_release_stream(session, 0));
  assert_ok(rondo_ticket_wait(ticket, NULL));
}

typedef struct observer {
  rondo_session *session;
  atomic_bool *is_over;
  uint32_t wrong;
} observer;

/* Queries all information about graphs; which parts exist changes from call to call. */
static void observe(void *user) {
  observer *o = user;
  while (!atomic_load(o->is_over)) {
    rondo_model_info info = {.struct_size = sizeof info};
    rondo_run_mode mode;
    uint32_t parts[RONDO_SESSION_MAX_PARTS], count;
    double us;
    o->wrong += rondo_session_get_model_info(o->session, "scorer", &info) != RONDO_OK;
    o->wrong += rondo_session_get_dispatch(o->session, "scorer", 20, &mode, parts, &count, &us) != RONDO_OK;
    for (size_t i = 0; i < info.graphs; i++) {
      rondo_model_graph graph = {.struct_size = sizeof graph};
      rondo_input_copy copy = {.copy = {.width = 1}};
      const rondo_status got = rondo_session_get_graph(o->session, "scorer", i, &graph);
      const rondo_status mapped = rondo_session_get_input_copy(o->session, "scorer", i, 0, 0, &copy);
      o->wrong += got != RONDO_OK && got != RONDO_NOT_FOUND;
      o->wrong += mapped == RONDO_OK ? copy.copy.width == 0 : mapped != RONDO_NOT_FOUND;
    }
    test_sleep_ms(1);
  }
}

typedef struct recorder {
  rondo_session *session;
  atomic_bool *is_over;
  uint32_t wrong;
} recorder;

static void record_again(void *user) {
  recorder *r = user;
  for (int i = 0; i < 3; i++) {
    r->wrong += rondo_session_capture(r->session, "scorer") != RONDO_OK;
    r->wrong += rondo_session_destroy_graphs(r->session, "scorer") != RONDO_OK;
  }
  atomic_store(r->is_over, true);
}

TEST(test_se7_figures_while_sizes_are_recorded) {
  rondo_session *session = open_session(t, 2);
  static const size_t history[] = {3, 9, 17, 30, 41, 64};
  static atomic_bool is_over;
  observer o = {.session = session, .is_over = &is_over};
  recorder r = {.session = session, .is_over = &is_over};
  const test_thread threads[] = {{observe, &o}, {record_again, &r}};
  test_scorer_add(session, "scorer", (rondo_model_options){.history = history, .history_count = 6});
  atomic_store(&is_over, false);
  test_on_threads(threads, 2);
  assert_int_equal(o.wrong, 0);
  assert_int_equal(r.wrong, 0);
}

TEST(test_se7_sizes_come_from_the_history) {
  rondo_session *session = open_session(t, 2);
  size_t history[200];
  uint64_t random = 5;
  for (size_t i = 0; i < 200; i++) history[i] = 20 + test_random_below(&random, 100);
  history[17] = 130;
  test_scorer_add(session, "scorer",
                  (rondo_model_options){.history = history, .history_count = 200, .max_sizes = 4, .max_batch_rows = 1});
  assert_ok(rondo_session_capture(session, "scorer"));
  const rondo_model_info info = test_model_info(session, "scorer");
  assert_true(info.graphs >= 1 && info.graphs <= 4);
  assert_true(info.overlap >= 0.5 && info.overlap <= 1);
  size_t before = SIZE_MAX;
  for (size_t i = 0; i < info.graphs; i++) {
    const rondo_model_graph graph = test_model_graph(session, "scorer", i);
    assert_true(graph.rows < before); /* the largest first */
    before = graph.rows;
  }
  static test_request r;
  test_request_fill(&r, 130, 9);
  assert_ok(rondo_session_run(session, "scorer", &r.request, NULL));
  assert_true(test_request_is_right(&r));
}

/* Whether requests of 5, 7 and 10 rows can add up to it. */
static bool is_sum(size_t rows) {
  for (size_t sevens = 0; 7 * sevens <= rows; sevens++)
    if ((rows - 7 * sevens) % 5 == 0) return rows > 0;
  return false;
}

/* Above the largest request, of 10 rows, there are sizes as long as they pay, and no more than requested; no request
 * runs in more rows than necessary. */
static void assert_batch_sizes(rondo_session *session, size_t most_rows) {
  const uint32_t count = test_model_info(session, "scorer").graphs;
  size_t before = SIZE_MAX;
  assert_true(count >= 1 && count <= 2);
  for (size_t i = 0; i < count; i++) {
    const rondo_model_graph graph = test_model_graph(session, "scorer", i);
    assert_true(graph.rows < before && graph.rows >= 5 && graph.rows <= most_rows);
    assert_true(is_sum(graph.rows));
    before = graph.rows;
  }
}

TEST(test_se7_each_by_itself_has_no_sums) {
  const size_t history[] = {8, 20};
  rondo_session *session = test_session_open(t->device, (rondo_session_options){.max_batch = 1});
  test_scorer_add(session, "scorer", (rondo_model_options){.history = history, .history_count = 2});
  assert_ok(rondo_session_capture(session, "scorer"));
  const uint32_t count = test_model_info(session, "scorer").graphs;
  assert_true(count >= 1 && count <= 2);
  for (size_t i = 0; i < count; i++) {
    const rondo_model_graph graph = test_model_graph(session, "scorer", i);
    assert_true(graph.rows == 8 || graph.rows == 20);
  }
}

TEST(test_se7_sizes_for_requests_that_run_together) {
  const size_t history[] = {5, 7, 10, 10}, most_rows[] = {0, 1, 19, 20, 100};
  for (size_t i = 0; i < 5; i++) {
    rondo_session *session = open_session(t, 2);
    static test_request requests[6];
    rondo_ticket tickets[6];
    rondo_stream *streams[2];
    test_scorer_add(
        session, "scorer",
        (rondo_model_options){.history = history, .history_count = 4, .max_sizes = 2, .max_batch_rows = most_rows[i]});
    assert_ok(rondo_session_capture(session, "scorer"));
    assert_batch_sizes(session, i == 0 ? 40 : most_rows[i] < 20 ? 10 : most_rows[i]);
    for (size_t k = 0; k < 2; k++) assert_ok(rondo_session_acquire_stream(session, "scorer", k, &streams[k]));
    for (size_t k = 0; k < 6; k++) {
      test_request_fill(&requests[k], 10, k);
      assert_ok(rondo_session_submit(session, "scorer", &requests[k].request, &tickets[k]));
    }
    for (size_t k = 0; k < 2; k++) assert_ok(rondo_session_release_stream(session, k));
    for (size_t k = 0; k < 6; k++) {
      assert_ok(rondo_ticket_wait(tickets[k], NULL));
      assert_true(test_request_is_right(&requests[k]));
    }
    assert_ok(rondo_session_destroy(session));
  }
}

/* To the byte, except for execs, of which only one is counted. */
TEST(test_se3_bytes_are_reported_before_recording) {
  rondo_session *session = open_session(t, 2);
  rondo_model_bytes planned = {.struct_size = sizeof planned};
  const size_t sizes[] = {64, 128, 16}, descending[] = {128, 64, 16}, twice[] = {16, 16}, none[] = {0};
  test_scorer_add(session, "scorer", (rondo_model_options){0});
  const rondo_model_info before = test_model_info(session, "scorer");
  assert_ok(rondo_session_plan(session, "scorer", sizes, 3, &planned));
  assert_int_equal(test_model_info(session, "scorer").arena_bytes, before.arena_bytes); /* nothing is left */
  assert_int_equal(test_model_info(session, "scorer").staging_bytes, before.staging_bytes);
  assert_invalid(rondo_session_plan(session, "scorer", twice, 2, &planned), RONDO_REASON_BAD_SIZE);
  assert_invalid(rondo_session_plan(session, "scorer", none, 1, &planned), RONDO_REASON_BAD_SIZE);
  assert_invalid(rondo_session_plan(session, "scorer", sizes, 0, &planned), RONDO_REASON_BAD_SIZE);
  test_scorer_capture(session, "scorer", descending, 3);
  const rondo_model_info info = test_model_info(session, "scorer");
  assert_int_equal(planned.state_bytes, info.state_bytes);
  assert_int_equal(planned.arena_bytes, info.arena_bytes);
  assert_int_equal(planned.staging_bytes, info.staging_bytes);
  assert_int_equal(planned.exec_bytes, info.exec_bytes);
  assert_error(rondo_session_plan(session, "scorer", sizes, 3, &planned), RONDO_INVALID_STATE,
               RONDO_REASON_ALREADY_CAPTURED);
}

TEST(test_se7_no_history_and_no_budget) {
  rondo_session *session = open_session(t, 1);
  const size_t history[] = {10, 20};
  test_scorer_add(session, "bare", (rondo_model_options){0});
  assert_invalid(rondo_session_capture(session, "bare"), RONDO_REASON_NONE);
  test_scorer_add(session, "poor", (rondo_model_options){.history = history, .history_count = 2, .budget_bytes = 1});
  assert_error(rondo_session_capture(session, "poor"), RONDO_LIMIT_EXCEEDED, RONDO_REASON_OUT_OF_RANGE);
  assert_int_equal(test_model_info(session, "poor").graphs, 0);
  assert_runs(session, "poor", 10, RONDO_RUN_EAGER);
}

/* Callbacks ------------------------------------------------------------------------------------------------------- */

/* A builder that calls sessions; on whatever thread, so that it counts and asserts nothing. */
typedef struct caller {
  rondo_session *own, *other;
  test_request request;
  atomic_uint calls, refused, others_served;
} caller;

static void count_call(caller *c, rondo_status status) {
  atomic_fetch_add(&c->calls, 1);
  if (status == RONDO_INVALID_STATE && rondo_last_error()->reason == RONDO_REASON_IN_CALLBACK)
    atomic_fetch_add(&c->refused, 1);
  test_note_error();
}

static void call_own(caller *c) {
  rondo_ticket ticket = {0};
  rondo_stream *stream = NULL;
  rondo_model_run *a_run = NULL;
  rondo_model_info info = {.struct_size = sizeof info};
  const size_t rows = 4;
  rondo_model_bytes bytes = {.struct_size = sizeof bytes};
  count_call(c, rondo_session_run(c->own, "scorer", &c->request.request, NULL));
  count_call(c, rondo_session_submit(c->own, "scorer", &c->request.request, &ticket));
  count_call(c, rondo_model_run_create(c->own, "scorer", &a_run));
  count_call(c, rondo_session_add_model(c->own, "more", &(rondo_model_options){.build = test_build_scorer}));
  count_call(c, rondo_session_remove_model(c->own, "scorer"));
  count_call(c, rondo_session_write(c->own, "scorer", "w", c->request.x, 4));
  count_call(c, rondo_session_plan(c->own, "scorer", &rows, 1, &bytes));
  count_call(c, rondo_session_capture(c->own, "scorer"));
  count_call(c, rondo_session_capture_begin(c->own, "scorer"));
  count_call(c, rondo_session_capture_end(c->own));
  count_call(c, rondo_session_destroy_graphs(c->own, "scorer"));
  count_call(c, rondo_session_acquire_stream(c->own, "scorer", 0, &stream));
  count_call(c, rondo_session_get_model_info(c->own, "scorer", &info));
  count_call(c, rondo_session_drain(c->own));
  count_call(c, rondo_session_destroy(c->own));
}

static rondo_status build_calling(void *user, size_t rows, rondo_program *program) {
  caller *c = user;
  call_own(c);
  const rondo_status status = rondo_session_run(c->other, "scorer", &c->request.request, NULL);
  if (status == RONDO_OK && test_request_is_right(&c->request)) atomic_fetch_add(&c->others_served, 1);
  return test_build_scorer(NULL, rows, program);
}

TEST(test_se1_a_model_s_builder_must_not_call_its_session) {
  static caller c;
  c = (caller){.own = open_session(t, 1), .other = open_session(t, 1)};
  test_request_fill(&c.request, 4, 1);
  test_scorer_add(c.other, "scorer", (rondo_model_options){0});
  assert_runs(c.other, "scorer", 4, RONDO_RUN_EAGER);
  test_scorer_add(c.own, "scorer", (rondo_model_options){.build = build_calling, .user = &c});
  const uint32_t before = atomic_load(&c.calls);
  assert_runs(c.own, "scorer", 7, RONDO_RUN_EAGER); /* an error inside does not fail the session */
  assert_true(atomic_load(&c.calls) > before);
  assert_int_equal(atomic_load(&c.refused), atomic_load(&c.calls));
  assert_int_equal(atomic_load(&c.others_served), atomic_load(&c.calls) / 15);
  assert_runs(c.own, "scorer", 7, RONDO_RUN_EAGER); /* the program is kept */
  assert_ok(rondo_session_destroy(c.own));
  assert_ok(rondo_session_destroy(c.other));
}

enum { HELD_FROM = 90 };

/* Programs for many rows wait until they are released. */
typedef struct held_builder {
  rondo_session *session;
  atomic_uint inside, most_inside, is_let_go, asked, wrong;
} held_builder;

static rondo_status build_held(void *user, size_t rows, rondo_program *program) {
  held_builder *h = user;
  const uint32_t inside = atomic_fetch_add(&h->inside, 1) + 1;
  if (inside > atomic_load(&h->most_inside)) atomic_store(&h->most_inside, inside);
  while (rows >= HELD_FROM && !atomic_load(&h->is_let_go)) test_sleep_ms(1);
  atomic_fetch_sub(&h->inside, 1);
  return test_build_scorer(NULL, rows, program);
}

typedef struct asker {
  held_builder *held;
  size_t rows;
  test_request request;
} asker;

static void ask(void *user) {
  asker *a = user;
  test_request_fill(&a->request, a->rows, a->rows);
  atomic_fetch_add(&a->held->asked, 1);
  const rondo_status status = rondo_session_run(a->held->session, "held", &a->request.request, NULL);
  if (status != RONDO_OK || !test_request_is_right(&a->request)) atomic_fetch_add(&a->held->wrong, 1);
}

/* While two threads wait for their programs, the session serves another model and answers queries about this one. */
static void go_on(void *user) {
  held_builder *h = user;
  static test_request r;
  rondo_model_info info = {.struct_size = sizeof info};
  while (atomic_load(&h->asked) < 2 || atomic_load(&h->inside) == 0) test_sleep_ms(1);
  test_sleep_ms(5); /* till both are there, one of them inside */
  for (size_t rows = 1; rows < 4; rows++) {
    test_request_fill(&r, rows, rows);
    const rondo_status status = rondo_session_run(h->session, "free", &r.request, NULL);
    if (status != RONDO_OK || !test_request_is_right(&r)) atomic_fetch_add(&h->wrong, 1);
  }
  if (rondo_session_get_model_info(h->session, "held", &info) != RONDO_OK) atomic_fetch_add(&h->wrong, 1);
  atomic_store(&h->is_let_go, 1);
}

TEST(test_se1_a_builder_is_called_by_one_at_a_time_and_holds_nobody_up) {
  static held_builder h;
  static asker askers[2];
  h = (held_builder){.session = open_session(t, 3)};
  const test_thread threads[] = {{ask, &askers[0]}, {ask, &askers[1]}, {go_on, &h}};
  test_scorer_add(h.session, "held", (rondo_model_options){.build = build_held, .user = &h});
  test_scorer_add(h.session, "free", (rondo_model_options){0});
  for (size_t i = 0; i < 2; i++) askers[i] = (asker){.held = &h, .rows = HELD_FROM + i};
  test_on_threads(threads, 3);
  assert_int_equal(atomic_load(&h.wrong), 0);
  assert_int_equal(atomic_load(&h.most_inside), 1);
  assert_int_equal(test_model_info(h.session, "held").eager_programs, 2);
  assert_ok(rondo_session_destroy(h.session));
}

/* Errors of models ------------------------------------------------------------------------------------------------ */

static rondo_status build_scalar(void *user, size_t rows, rondo_program *program) {
  const size_t shape[] = {rows, 2};
  rondo_value x, sum;
  (void)user;
  rondo_status status = rondo_program_input(program, "x", RONDO_F32, shape, 2, &x);
  if (status == RONDO_OK) status = rondo_op_sum(program, x, NULL, 0, false, &sum);
  return status == RONDO_OK ? rondo_program_output(program, "sum", sum) : status;
}

static rondo_status build_nothing(void *user, size_t rows, rondo_program *program) {
  (void)user, (void)rows, (void)program;
  return RONDO_OK;
}

/* The status is the same as that of an older, unrelated error. */
static rondo_status build_failing(void *user, size_t rows, rondo_program *program) {
  (void)user, (void)rows, (void)program;
  return RONDO_INVALID_ARGUMENT;
}

/* A program that differs for odd and even numbers of rows. Its operators alone may. */
enum { OTHER_INPUT, OTHER_STATE, OTHER_KIND, OTHER_OUTPUT, OTHER_OUTPUTS, OTHERS, OTHER_OPERATORS };

static rondo_status build_other(void *user, size_t rows, rondo_program *program) {
  const int what = *(const int *)user;
  const bool is_odd = rows % 2 == 1;
  const size_t shape[] = {rows, 2}, pair[] = {1, what == OTHER_STATE && is_odd ? 2 : 1};
  rondo_value x, w, y, spare;
  assert_ok(rondo_program_input(program, what == OTHER_INPUT && is_odd ? "z" : "x", RONDO_F32, shape, 2, &x));
  if (what == OTHER_KIND && is_odd)
    assert_ok(rondo_program_input(program, "w", RONDO_F32, pair, 2, &w));
  else
    assert_ok(rondo_program_state(program, "w", RONDO_F32, pair, 2, &w));
  if (what == OTHER_OPERATORS && is_odd) assert_ok(rondo_op_relu(program, x, &spare));
  assert_ok(rondo_op_mul(program, x, w, &y));
  assert_ok(rondo_program_output(program, what == OTHER_OUTPUT && is_odd ? "u" : "y", y));
  return what == OTHER_OUTPUTS && is_odd ? rondo_program_output(program, "also", x) : RONDO_OK;
}

TEST(test_models_that_depend_on_their_rows) {
  static const char *const messages[OTHERS] = {"'x'", "state 'w'", "values", "'y'", "outputs"};
  rondo_session *session = open_session(t, 1);
  for (int what = 0; what < OTHERS; what++) {
    const rondo_model_options options = {RONDO_MODEL_OPTIONS_INIT, .build = build_other, .user = &what};
    assert_invalid(rondo_session_add_model(session, "m", &options), RONDO_REASON_SHAPE);
    assert_message(messages[what]);
  }
  int operators = OTHER_OPERATORS;
  const rondo_model_options options = {RONDO_MODEL_OPTIONS_INIT, .build = build_other, .user = &operators};
  assert_ok(rondo_session_add_model(session, "m", &options));
}

static rondo_status build_many(void *user, size_t rows, rondo_program *program) {
  const size_t shape[] = {rows};
  (void)user;
  for (int i = 0; i <= RONDO_SESSION_MAX_VALUES; i++) {
    char name[8];
    rondo_value x;
    (void)snprintf(name, sizeof name, "x%d", i);
    assert_ok(rondo_program_input(program, name, RONDO_F32, shape, 1, &x));
    if (i == 0) assert_ok(rondo_program_output(program, "y", x));
  }
  return RONDO_OK;
}

TEST(test_models_that_are_none) {
  rondo_session *session = open_session(t, 1);
  rondo_model_options options = {RONDO_MODEL_OPTIONS_INIT};
  assert_invalid(rondo_session_add_model(session, "m", &options), RONDO_REASON_NULL_ARGUMENT);
  assert_message("build and body are NULL");
  options.build = build_failing;
  assert_invalid(rondo_session_add_model(session, "m", &options), RONDO_REASON_HOST_FUNCTION_FAILED);
  assert_message("model 'm' for 2 rows: build returned INVALID_ARGUMENT");
  options.build = build_scalar;
  assert_invalid(rondo_session_add_model(session, "m", &options), RONDO_REASON_SHAPE);
  assert_message("'sum'");
  options.build = build_nothing;
  assert_invalid(rondo_session_add_model(session, "m", &options), RONDO_REASON_SHAPE);
  options.build = build_many;
  assert_invalid(rondo_session_add_model(session, "m", &options), RONDO_REASON_OUT_OF_RANGE);
  assert_message("65 inputs");
  options.build = test_build_scorer;
  static const size_t rows[] = {3, 0};
  options.history = rows;
  options.history_count = 2;
  assert_invalid(rondo_session_add_model(session, "m", &options), RONDO_REASON_OUT_OF_RANGE);
  assert_message("request 1 of the history has 0 rows");
  options.history_count = 0;
  assert_ok(rondo_session_add_model(session, "m", &options));
}

TEST(test_states_are_written_on_every_stream) {
  rondo_session *session = open_session(t, 2);
  const float zeros[TEST_FEATURES * TEST_SCORES] = {0};
  static test_request r;
  test_scorer_add(session, "scorer", (rondo_model_options){0});
  const size_t size = 8;
  test_scorer_capture(session, "scorer", &size, 1);
  assert_ok(rondo_session_write(session, "scorer", "w", zeros, sizeof zeros));
  for (size_t number = 0; number < 2; number++) {
    const size_t other = 1 - number;
    rondo_stream *stream = NULL;
    assert_ok(rondo_session_acquire_stream(session, "scorer", other, &stream)); /* so that this one runs it */
    test_request_fill(&r, 8, 4);
    memset(r.x, 0, sizeof r.x); /* the value of w does not matter then */
    assert_ok(rondo_session_run(session, "scorer", &r.request, NULL));
    assert_true(test_request_is_right(&r));
    float with_x[8 * TEST_SCORES];
    memcpy(with_x, r.y, sizeof with_x);
    for (size_t i = 0; i < 8 * TEST_FEATURES; i++) r.x[i] = 3;
    assert_ok(rondo_session_run(session, "scorer", &r.request, NULL));
    assert_memory_equal(with_x, r.y, sizeof with_x);
    assert_ok(rondo_session_release_stream(session, other));
  }
  assert_error(rondo_session_write(session, "scorer", "x", zeros, sizeof zeros), RONDO_NOT_FOUND,
               RONDO_REASON_UNKNOWN_NAME);
  assert_invalid(rondo_session_write(session, "scorer", "w", zeros, 4), RONDO_REASON_BAD_SIZE);
}
