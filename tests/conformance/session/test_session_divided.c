/* SPDX-License-Identifier: MIT
 * Divided models (SE-9): lookups on one device, before the dense part on another, in one session. The session's
 * device is the device under test, with a CPU device for lookups, and then the reverse. The results are those of the
 * undivided model, tables exist on one device only, and lookups run while a neighbor's dense part is blocked. Also: the
 * predicted bytes, bad requests, and models that cannot be divided. Times are given, so that no test depends on
 * measured ones.
 */
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "support/rondo_test.h"
#include "support/test_effort.h"
#include "support/test_session.h"

enum { LARGE, SMALL, SIZES };

static const size_t sizes[] = {64, 16};
static const double times[] = {40, 20};
static const rondo_placement_rule rules[] = {{.operator_name = "embedding", .place = 1}};

/* The session's device and the one of look-ups. */
typedef struct pair {
  rondo_device *devices[2];
  rondo_device *opened; /* one of them, next to the fixture's */
} pair;

static pair open_pair(test_fixture *t, bool reversed) {
  pair p = {.opened = NULL};
  const rondo_device_options options = {RONDO_DEVICE_OPTIONS_INIT, .workers = 2};
  assert_ok(rondo_device_open(strcmp(test_device_name(), "cpu") == 0 ? "cpu:1" : "cpu", &options, &p.opened));
  p.devices[reversed] = t->device;
  p.devices[!reversed] = p.opened;
  return p;
}

static void close_pair(pair *p) { assert_ok(rondo_device_close(p->opened)); }

static rondo_model_options divided_by(const pair *p, const rondo_placement_rule *by, size_t count) {
  return (rondo_model_options){
      RONDO_MODEL_OPTIONS_INIT, .build = test_build_scorer, .devices = p->devices, .device_count = 2, .rules = by,
      .rule_count = count};
}

static rondo_session *open_empty(const pair *p, rondo_session_options options) {
  return test_session_open(p->devices[0], options);
}

static void capture_sizes(rondo_session *session, const char *name) {
  test_scorer_capture(session, name, sizes, SIZES);
  assert_ok(rondo_session_set_times(session, name, times, NULL, SIZES, 1));
}

static rondo_session *open_with(const pair *p, rondo_session_options options) {
  rondo_session *session = open_empty(p, options);
  test_scorer_add(session, "scorer", divided_by(p, rules, 1));
  capture_sizes(session, "scorer");
  return session;
}

static rondo_session *open_session(const pair *p, uint32_t streams) {
  return open_with(p, (rondo_session_options){.streams = streams});
}

static uint64_t launches_of(const rondo_device *device) {
  rondo_device_statistics statistics = {.struct_size = sizeof statistics};
  assert_ok(rondo_device_get_statistics(device, &statistics));
  return statistics.launches;
}

static uint64_t mapped_on(const rondo_device *device) {
  rondo_device_statistics statistics = {.struct_size = sizeof statistics};
  assert_ok(rondo_device_get_statistics(device, &statistics));
  return statistics.mapped_bytes;
}

static rondo_answer run(rondo_session *session, size_t rows, rondo_run_mode mode) {
  static test_request r;
  return test_request_run(session, "scorer", &r, rows, mode);
}

/* Each test with look-ups next to the device under test, and on it. */
typedef void (*pair_test)(test_fixture *t, const pair *p);

static void with_pairs(test_fixture *t, pair_test test) {
  for (int reversed = 0; reversed < 2; reversed++) {
    pair p = open_pair(t, reversed == 1);
    test(t, &p);
    close_pair(&p);
  }
}

/* Results --------------------------------------------------------------------------------------------------------- */

static void compare(const pair *p, rondo_session *session, size_t rows, rondo_run_mode mode, rondo_run_mode wanted) {
  static test_request divided, whole;
  assert_int_equal(test_request_run(session, "scorer", &divided, rows, mode).mode, wanted);
  assert_int_equal(test_request_run(session, "whole", &whole, rows, mode).mode, wanted);
  (void)p;
  if (test_device_is("cpu")) /* the same arithmetic on both */
    assert_memory_equal(divided.y, whole.y, rows * TEST_SCORES * sizeof *whole.y);
}

static void runs_as_undivided(test_fixture *t, const pair *p) {
  rondo_session *session = open_session(p, 2);
  (void)t;
  test_scorer_add(session, "whole", (rondo_model_options){0});
  capture_sizes(session, "whole");
  const uint64_t upstream = launches_of(p->devices[1]);
  for (size_t rows = 1; rows <= 64; rows += 7) compare(p, session, rows, RONDO_RUN_AUTO, RONDO_RUN_RECORDED);
  assert_int_equal(launches_of(p->devices[1]), upstream + 10);
  compare(p, session, 200, RONDO_RUN_AUTO, RONDO_RUN_SPLIT); /* four graphs, each after its look-ups */
  assert_int_equal(launches_of(p->devices[1]), upstream + 14);
  for (size_t rows = 1; rows < 100; rows += 11) compare(p, session, rows, RONDO_RUN_EAGER, RONDO_RUN_EAGER);
  assert_int_equal(launches_of(p->devices[1]), upstream + 14);
  compare(p, session, 16, RONDO_RUN_AUTO, RONDO_RUN_RECORDED); /* eager runs moved nothing */
  const rondo_model_info info = test_model_info(session, "scorer");
  assert_int_equal(info.recorded, 11);
  assert_int_equal(info.split, 1);
  assert_int_equal(info.eager, 9);
  assert_ok(rondo_session_destroy(session));
}

TEST(test_se9_lookups_run_on_one_device_and_the_rest_on_another) { with_pairs(t, runs_as_undivided); }

/* Says of itself where its look-ups run. */
static rondo_status build_placed(void *user, size_t rows, rondo_program *program) {
  const size_t x_shape[] = {rows, TEST_FEATURES}, w_shape[] = {TEST_FEATURES, TEST_SCORES};
  const size_t table_shape[] = {TEST_IDS, TEST_SCORES};
  rondo_value x, ids, w, table, product, rows_of, own, y;
  (void)user;
  rondo_status status = rondo_program_input(program, "x", RONDO_F32, x_shape, 2, &x);
  if (!status) status = rondo_program_input(program, "ids", RONDO_I32, &rows, 1, &ids);
  if (!status) status = rondo_program_state(program, "w", RONDO_F32, w_shape, 2, &w);
  if (!status) status = rondo_program_state(program, "table", RONDO_F32, table_shape, 2, &table);
  if (!status) status = rondo_program_state(program, "own", RONDO_F32, table_shape, 2, &own);
  if (!status) status = rondo_program_place(program, table, 1);
  if (!status) status = rondo_op_embedding(program, table, ids, &rows_of);
  if (!status) status = rondo_op_embedding(program, own, ids, &own);
  if (!status) status = rondo_op_matmul(program, x, w, (rondo_value){0}, &product);
  if (!status) status = rondo_op_add(program, product, rows_of, &y);
  if (!status) status = rondo_op_add(program, y, own, &y);
  if (!status) status = rondo_program_output(program, "y", y);
  if (!status) status = rondo_program_output(program, "rows", rows_of);
  return status;
}

/* `own` is zeros: the answer is the scorer's, and next to it the rows of the table. */
static void run_placed(rondo_session *session, size_t rows, rondo_run_mode mode) {
  static test_request r;
  static float looked_up[TEST_MOST_ROWS * TEST_SCORES];
  void *outputs[] = {r.y, looked_up};
  memset(looked_up, 0xff, sizeof looked_up);
  test_request_fill(&r, rows, rows);
  r.request.mode = mode;
  r.request.outputs = outputs;
  assert_ok(rondo_session_run(session, "placed", &r.request, NULL));
  assert_true(test_request_is_right(&r));
  for (size_t i = 0; i < rows * TEST_SCORES; i++) {
    const size_t entry = (size_t)r.ids[i / TEST_SCORES] * TEST_SCORES + i % TEST_SCORES;
    assert_true(looked_up[i] == (float)((int)(entry * 5 % 13) - 6) / 4);
  }
}

/* An input that both devices read, and an output of the lookups. */
static void serves_what_both_read(test_fixture *t, const pair *p) {
  rondo_session *session = open_empty(p, (rondo_session_options){.streams = 2, .max_eager_programs = 1});
  rondo_model_options model = divided_by(p, NULL, 0);
  rondo_weights *weights = test_scorer_weights();
  const float zeros[TEST_IDS * TEST_SCORES] = {0};
  const rondo_weight own = {.name = "own",
                            .type = RONDO_F32,
                            .rank = 2,
                            .shape = {TEST_IDS, TEST_SCORES},
                            .data = zeros,
                            .bytes = sizeof zeros};
  (void)t;
  assert_ok(rondo_weights_add(weights, &own));
  model.build = build_placed;
  model.weights = weights;
  assert_ok(rondo_session_add_model(session, "placed", &model));
  rondo_weights_destroy(weights);
  run_placed(session, 5, RONDO_RUN_AUTO);
  capture_sizes(session, "placed");
  for (size_t rows = 1; rows < 150; rows += 12) run_placed(session, rows, RONDO_RUN_AUTO);
  for (size_t rows = 20; rows < 24; rows++) run_placed(session, rows, RONDO_RUN_EAGER);
  run_placed(session, 16, RONDO_RUN_RECORDED);
  assert_ok(rondo_session_destroy(session));
}

TEST(test_se9_inputs_of_both_and_outputs_of_lookups) { with_pairs(t, serves_what_both_read); }

static rondo_status build_three(void *user, size_t rows, rondo_program *program) {
  const size_t shape[] = {TEST_IDS, TEST_SCORES};
  rondo_value ids[2], table[2], x, y;
  rondo_status status = rondo_program_input(program, "x", RONDO_F32, (size_t[]){rows, TEST_SCORES}, 2, &x);
  (void)user;
  for (uint32_t i = 0; i < 2 && !status; i++) {
    status = rondo_program_input(program, i == 0 ? "a" : "b", RONDO_I32, &rows, 1, &ids[i]);
    if (!status) status = rondo_program_state(program, i == 0 ? "ta" : "tb", RONDO_F32, shape, 2, &table[i]);
    if (!status) status = rondo_program_place(program, table[i], 1 + i);
    if (!status) status = rondo_op_embedding(program, table[i], ids[i], &y);
    if (!status) status = rondo_op_add(program, x, y, &x);
  }
  return status ? status : rondo_program_output(program, "y", x);
}

/* Two tables on two devices, each with an upstream part on it. */
TEST(test_se9_tables_on_several_devices) {
  rondo_device *devices[] = {t->device, NULL, NULL};
  enum { ROWS = 9, WIDTH = TEST_SCORES };
  assert_ok(rondo_device_open("cpu:2", NULL, &devices[1]));
  assert_ok(rondo_device_open("cpu:3", NULL, &devices[2]));
  const pair p = {.devices = {t->device, devices[1]}};
  rondo_session *session = open_empty(&p, (rondo_session_options){.streams = 2});
  const rondo_model_options model = {RONDO_MODEL_OPTIONS_INIT, .build = build_three, .devices = devices,
                                     .device_count = 3};
  float ta[TEST_IDS * WIDTH], tb[TEST_IDS * WIDTH], x[ROWS * WIDTH] = {0}, y[ROWS * WIDTH];
  int32_t a[ROWS], b[ROWS];
  for (size_t i = 0; i < TEST_IDS * WIDTH; i++) ta[i] = (float)i, tb[i] = 100 * (float)i;
  for (int i = 0; i < ROWS; i++) a[i] = i * 3 % TEST_IDS, b[i] = i * 7 % TEST_IDS;
  assert_ok(rondo_session_add_model(session, "three", &model));
  assert_ok(rondo_session_write(session, "three", "ta", ta, sizeof ta));
  assert_ok(rondo_session_write(session, "three", "tb", tb, sizeof tb));
  const void *inputs[] = {x, a, b};
  void *outputs[] = {y};
  rondo_request r = {RONDO_REQUEST_INIT, .rows = ROWS, .inputs = inputs, .outputs = outputs};
  assert_ok(rondo_session_capture_begin(session, "three"));
  assert_ok(rondo_session_run(session, "three", &r, NULL));
  assert_ok(rondo_session_capture_end(session));
  for (int mode = RONDO_RUN_RECORDED; mode <= RONDO_RUN_EAGER; mode += 2) {
    r.mode = (rondo_run_mode)mode;
    memset(y, 0xff, sizeof y);
    assert_ok(rondo_session_run(session, "three", &r, NULL));
    for (size_t i = 0; i < ROWS * WIDTH; i++)
      assert_true(y[i] == ta[(size_t)a[i / WIDTH] * WIDTH + i % WIDTH] + tb[(size_t)b[i / WIDTH] * WIDTH + i % WIDTH]);
  }
  b[4] = TEST_IDS;
  assert_error(rondo_session_run(session, "three", &r, NULL), RONDO_EXECUTION_FAILED, RONDO_REASON_OUT_OF_RANGE);
  b[4] = 0;
  assert_ok(rondo_session_run(session, "three", &r, NULL));
  r.device_inputs = 1;
  assert_error(rondo_session_run(session, "three", &r, NULL), RONDO_UNSUPPORTED, RONDO_REASON_WRONG_MEMORY);
  assert_ok(rondo_session_destroy(session));
  assert_ok(rondo_device_close(devices[1]));
  assert_ok(rondo_device_close(devices[2]));
}

static void writes_states(test_fixture *t, const pair *p) {
  rondo_session *session = open_session(p, 2);
  static test_request r;
  float table[TEST_IDS * TEST_SCORES], w[TEST_FEATURES * TEST_SCORES] = {0};
  (void)t;
  for (size_t i = 0; i < TEST_IDS * TEST_SCORES; i++) table[i] = (float)i;
  assert_ok(rondo_session_write(session, "scorer", "table", table, sizeof table));
  assert_ok(rondo_session_write(session, "scorer", "w", w, sizeof w));
  for (int mode = RONDO_RUN_RECORDED; mode <= RONDO_RUN_EAGER; mode += 2) {
    test_request_fill(&r, 12, 4);
    r.request.mode = (rondo_run_mode)mode;
    assert_ok(rondo_session_run(session, "scorer", &r.request, NULL));
    for (size_t i = 0; i < 12 * TEST_SCORES; i++)
      assert_true(r.y[i] == table[(size_t)r.ids[i / TEST_SCORES] * TEST_SCORES + i % TEST_SCORES]);
  }
  assert_error(rondo_session_write(session, "scorer", "none", w, sizeof w), RONDO_NOT_FOUND, RONDO_REASON_UNKNOWN_NAME);
  assert_error(rondo_session_write(session, "scorer", "ids", w, sizeof w), RONDO_NOT_FOUND, RONDO_REASON_UNKNOWN_NAME);
  assert_invalid(rondo_session_write(session, "scorer", "table", w, sizeof w), RONDO_REASON_BAD_SIZE);
  assert_ok(rondo_session_destroy(session));
}

TEST(test_se9_states_are_written_where_they_lie) { with_pairs(t, writes_states); }

/* Memory ---------------------------------------------------------------------------------------------------------- */

enum { BIG_ROWS = 1 << 20 };

static rondo_status build_big(void *user, size_t rows, rondo_program *program) {
  const size_t shape[] = {BIG_ROWS, 8};
  rondo_value ids, table, y;
  (void)user;
  rondo_status status = rondo_program_input(program, "ids", RONDO_I32, &rows, 1, &ids);
  if (!status) status = rondo_program_state(program, "table", RONDO_F32, shape, 2, &table);
  if (!status) status = rondo_op_embedding(program, table, ids, &y);
  if (!status) status = rondo_op_tanh(program, y, &y);
  if (!status) status = rondo_program_place(program, y, 0);
  return status ? status : rondo_program_output(program, "y", y);
}

/* 32 MiB, which only the device of look-ups maps. */
TEST(test_se9_tables_take_no_memory_of_the_session_s_device) {
  const uint64_t bytes = (uint64_t)BIG_ROWS * 8 * sizeof(float);
  pair p = open_pair(t, false);
  rondo_session *session = open_empty(&p, (rondo_session_options){.streams = 2});
  const uint64_t before[] = {mapped_on(p.devices[0]), mapped_on(p.devices[1])};
  rondo_model_options model = divided_by(&p, rules, 1);
  model.build = build_big;
  assert_ok(rondo_session_add_model(session, "big", &model));
  capture_sizes(session, "big");
  assert_true(mapped_on(p.devices[0]) - before[0] < bytes);
  assert_true(mapped_on(p.devices[1]) - before[1] >= bytes);
  assert_true(test_model_info(session, "big").upstream_state_bytes >= bytes); /* once, whatever the streams */
  assert_true(test_model_info(session, "big").state_bytes < 2 * bytes);
  assert_true(test_model_info(session, "big").upstream_arena_bytes > 0);
  assert_ok(rondo_session_remove_model(session, "big"));
  assert_true(mapped_on(p.devices[1]) - before[1] < bytes);
  model.device_count = model.rule_count = 0;
  assert_ok(rondo_session_add_model(session, "big", &model)); /* undivided */
  assert_true(mapped_on(p.devices[0]) - before[0] >= bytes);
  assert_int_equal(test_model_info(session, "big").upstream_state_bytes, 0);
  assert_ok(rondo_session_destroy(session));
  close_pair(&p);
}

static void reports_its_bytes(test_fixture *t, const pair *p) {
  rondo_session *session = open_empty(p, (rondo_session_options){.streams = 2});
  rondo_model_bytes planned = {.struct_size = sizeof planned};
  (void)t;
  test_scorer_add(session, "scorer", divided_by(p, rules, 1));
  const rondo_model_info before = test_model_info(session, "scorer");
  assert_ok(rondo_session_plan(session, "scorer", sizes, SIZES, &planned));
  assert_int_equal(test_model_info(session, "scorer").arena_bytes, before.arena_bytes); /* nothing is left */
  assert_int_equal(test_model_info(session, "scorer").staging_bytes, before.staging_bytes);
  capture_sizes(session, "scorer");
  rondo_model_info info = test_model_info(session, "scorer");
  assert_int_equal(planned.state_bytes, info.state_bytes);
  assert_int_equal(planned.arena_bytes, info.arena_bytes);
  assert_int_equal(planned.staging_bytes, info.staging_bytes);
  assert_int_equal(planned.exec_bytes, info.exec_bytes);
  assert_true(info.upstream_arena_bytes > before.upstream_arena_bytes && info.upstream_arena_bytes < info.arena_bytes);
  assert_ok(rondo_session_destroy_graphs(session, "scorer"));
  info = test_model_info(session, "scorer");
  assert_int_equal(info.upstream_arena_bytes, before.upstream_arena_bytes);
  assert_int_equal(info.staging_bytes, before.staging_bytes);
  capture_sizes(session, "scorer");
  (void)run(session, 30, RONDO_RUN_RECORDED);
  assert_ok(rondo_session_destroy(session));
}

TEST(test_se9_bytes_are_reported_before_recording) { with_pairs(t, reports_its_bytes); }

/* Overlap --------------------------------------------------------------------------------------------------------- */

/* Waits for the device to have launched so many execs; a test that waits in vain ends. */
static void await_launches(const rondo_device *device, uint64_t count) {
  for (unsigned waited = 0; launches_of(device) < count; waited++) {
    assert_true(waited < 60000);
    test_sleep_ms(1);
  }
}

/* Stream 0 is blocked before the dense part of a request whose lookups are done. Meanwhile, the requests of the
 * neighbor on stream 1 are looked up and answered repeatedly. */
static void looks_up_during_a_dense_part(test_fixture *t, const pair *p) {
  rondo_session *session = open_session(p, 2);
  static test_request held, next;
  test_gate gate;
  rondo_stream *streams[2] = {NULL};
  rondo_ticket ticket = {0};
  rondo_answer answer = {.struct_size = sizeof answer};
  (void)t;
  test_gate_init(&gate);
  for (size_t i = 0; i < 2; i++) assert_ok(rondo_session_acquire_stream(session, "scorer", i, &streams[i]));
  assert_ok(rondo_session_release_stream(session, 0));
  test_gate_hold(&gate, streams[0]);
  const uint64_t dense = launches_of(p->devices[0]), upstream = launches_of(p->devices[1]);
  test_request_fill(&held, 40, 1);
  held.request.mode = RONDO_RUN_RECORDED;
  assert_ok(rondo_session_submit(session, "scorer", &held.request, &ticket));
  await_launches(p->devices[0], dense + 1); /* which follow the lookups */
  assert_int_equal(launches_of(p->devices[1]), upstream + 1);
  assert_ok(rondo_session_release_stream(session, 1));
  for (size_t i = 0; i < 3; i++) {
    test_request_fill(&next, 10 + i, 2 + i);
    assert_ok(rondo_session_run(session, "scorer", &next.request, &answer));
    assert_true(test_request_is_right(&next));
    assert_int_equal(answer.stream, 1);
    assert_int_equal(launches_of(p->devices[1]), upstream + 2 + i);
    assert_status(rondo_ticket_query(ticket), RONDO_NOT_READY); /* it was in flight all the time */
  }
  test_gate_open(&gate);
  assert_ok(rondo_ticket_wait(ticket, &answer));
  assert_true(test_request_is_right(&held));
  assert_int_equal(answer.stream, 0);
  assert_ok(rondo_session_destroy(session));
  test_gate_destroy(&gate);
}

TEST_WORKERS(test_se9_lookups_run_during_a_neighbor_s_dense_part) {
  test_skip_if_serial();
  with_pairs(t, looks_up_during_a_dense_part);
}

/* Sizes and streams ----------------------------------------------------------------------------------------------- */

/* In a session whose eager runs may use an executor, the part on the session's device uses it. */
static void chooses_sizes(test_fixture *t, const pair *p) {
  const rondo_executor_options executor = {RONDO_EXECUTOR_OPTIONS_INIT, .threads = 1};
  rondo_session *session = open_empty(p, (rondo_session_options){.streams = 2, .timed = true, .executor = &executor});
  size_t history[60];
  uint64_t random = 5;
  (void)t;
  for (size_t i = 0; i < 60; i++) history[i] = 20 + test_random_below(&random, 100);
  rondo_model_options model = divided_by(p, rules, 1);
  model.history = history;
  model.history_count = 60;
  model.max_sizes = 3;
  model.max_batch_rows = 1; /* none together with them */
  test_scorer_add(session, "scorer", model);
  assert_ok(rondo_session_capture(session, "scorer"));
  const rondo_model_info info = test_model_info(session, "scorer");
  assert_true(info.graphs >= 1 && info.graphs <= 3);
  assert_true(info.overlap >= 0.5 && info.overlap <= 1);
  for (size_t i = 0; i < info.graphs; i++) {
    const rondo_model_graph graph = test_model_graph(session, "scorer", i);
    assert_true(graph.run_us > 0 && graph.eager_us > 0);
  }
  for (size_t rows = 1; rows < 120; rows += 9) (void)run(session, rows, RONDO_RUN_AUTO);
  (void)run(session, 50, RONDO_RUN_EAGER);
  rondo_session_usage usage = {.struct_size = sizeof usage};
  assert_ok(rondo_session_get_usage(session, &usage));
  assert_true(usage.parts >= 13 && usage.busy_us > 0);
  assert_ok(rondo_session_destroy(session));
}

TEST(test_se9_sizes_come_from_the_history) { with_pairs(t, chooses_sizes); }

static void runs_by_hand(test_fixture *t, const pair *p) {
  rondo_session *session = open_session(p, 2);
  (void)t;
  for (size_t number = 0; number < 2; number++) {
    rondo_stream *stream = NULL;
    assert_ok(rondo_session_acquire_stream(session, "scorer", number, &stream));
    for (size_t index = 0; index < SIZES; index++) test_run_by_hand(session, stream, index, number, sizes[index], 3);
    assert_ok(rondo_session_release_stream(session, number));
  }
  assert_ok(rondo_session_destroy(session));
}

TEST(test_se9_by_hand) { with_pairs(t, runs_by_hand); }

/* Requests -------------------------------------------------------------------------------------------------------- */

enum { TOGETHER = 4 };

static test_request requests[TOGETHER];
static rondo_ticket tickets[TOGETHER];

static void submit(rondo_session *session, size_t index, size_t rows, rondo_run_mode mode) {
  test_request_fill(&requests[index], rows, 10 + index);
  requests[index].request.mode = mode;
  assert_ok(rondo_session_submit(session, "scorer", &requests[index].request, &tickets[index]));
}

static void hold(rondo_session *session) {
  rondo_stream *stream = NULL;
  assert_ok(rondo_session_acquire_stream(session, "scorer", 0, &stream));
}

static void isolates_bad_requests(test_fixture *t, const pair *p) {
  rondo_session *session = open_session(p, 1);
  (void)t;
  for (int mode = RONDO_RUN_RECORDED; mode <= RONDO_RUN_EAGER; mode += 2) {
    hold(session);
    for (size_t i = 0; i < TOGETHER; i++) submit(session, i, 4, (rondo_run_mode)mode);
    requests[2].ids[3] = TEST_IDS; /* inputs are read when the request runs */
    for (size_t i = 0; i < 4 * TEST_FEATURES; i++) requests[1].x[i] = NAN;
    assert_ok(rondo_session_release_stream(session, 0));
    for (size_t i = 0; i < TOGETHER; i++) {
      if (i == 2) {
        assert_error(rondo_ticket_wait(tickets[i], NULL), RONDO_EXECUTION_FAILED, RONDO_REASON_OUT_OF_RANGE);
        assert_message("embedding");
        continue;
      }
      assert_ok(rondo_ticket_wait(tickets[i], NULL));
      assert_int_equal(test_request_is_right(&requests[i]), i != 1);
    }
    (void)run(session, 30, (rondo_run_mode)mode); /* nothing is left of it */
  }
  assert_int_equal(test_model_info(session, "scorer").isolated, 1); /* those that ran together */
  assert_int_equal(test_model_info(session, "scorer").failed, 2);
  assert_ok(rondo_session_destroy(session));
}

TEST(test_se9_bad_requests_hurt_no_other) { with_pairs(t, isolates_bad_requests); }

/* Deadlines, cancelling and draining are the queue's, whatever runs after it. */
static void drains(test_fixture *t, const pair *p) {
  rondo_session *session = open_session(p, 1);
  (void)t;
  hold(session);
  for (size_t i = 0; i < TOGETHER; i++) {
    test_request_fill(&requests[i], 5 + i, i);
    if (i == 2) requests[i].request.deadline_us = 1000;
    assert_ok(rondo_session_submit(session, "scorer", &requests[i].request, &tickets[i]));
  }
  rondo_ticket_cancel(tickets[1]);
  assert_error(rondo_ticket_wait(tickets[2], NULL), RONDO_LIMIT_EXCEEDED, RONDO_REASON_TIMED_OUT);
  assert_ok(rondo_session_release_stream(session, 0));
  assert_ok(rondo_session_drain(session));
  assert_error(rondo_ticket_wait(tickets[1], NULL), RONDO_INVALID_STATE, RONDO_REASON_ABORTED);
  for (size_t i = 0; i < TOGETHER; i += 3) {
    assert_ok(rondo_ticket_wait(tickets[i], NULL));
    assert_true(test_request_is_right(&requests[i]));
  }
  assert_ok(rondo_session_destroy(session));
}

TEST(test_se9_draining) { with_pairs(t, drains); }

static void serves_threads(test_fixture *t, const pair *p) {
  static test_client clients[4];
  rondo_session *session = open_with(p, (rondo_session_options){.streams = 3, .max_eager_programs = 2});
  (void)t;
  test_clients_run(session, clients, 4, 40);
  assert_int_equal(test_model_info(session, "scorer").requests, 160);
  assert_ok(rondo_session_destroy(session));
}

TEST(test_se9_many_threads) { with_pairs(t, serves_threads); }

/* What is refused ------------------------------------------------------------------------------------------------- */

typedef enum wrong_turn { AFTER, TIED, NOTHING_DENSE, BY_ROWS, LINE, UPDATES } wrong_turn;

/* Random numbers on one device, whose state moves on with each run, and on another one an index, which may be wrong. */
static rondo_status build_updates(size_t rows, rondo_program *program) {
  const size_t shape[] = {rows, TEST_SCORES}, square[] = {TEST_SCORES, TEST_SCORES};
  rondo_value x, ids, table, p, y;
  rondo_status status = rondo_program_input(program, "x", RONDO_F32, shape, 2, &x);
  if (!status) status = rondo_program_input(program, "ids", RONDO_I32, &rows, 1, &ids);
  if (!status) status = rondo_program_state(program, "table", RONDO_F32, square, 2, &table);
  if (!status) status = rondo_op_embedding(program, table, ids, &y);
  if (!status) status = rondo_program_place(program, y, 2);
  if (!status) status = rondo_program_cell(program, "p", 0.5f, &p);
  if (!status) status = rondo_op_dropout(program, x, p, &x);
  if (!status) status = rondo_op_add(program, x, y, &y);
  if (!status) status = rondo_program_place(program, y, 0);
  return status ? status : rondo_program_output(program, "y", y);
}

static rondo_status build_wrong(void *user, size_t rows, rondo_program *program) {
  const wrong_turn turn = *(const wrong_turn *)user;
  if (turn == UPDATES) return build_updates(rows, program);
  const size_t shape[] = {rows, TEST_SCORES}, square[] = {TEST_SCORES, TEST_SCORES};
  rondo_value x, ids, table, y;
  rondo_status status = rondo_program_input(program, "x", RONDO_F32, shape, 2, &x);
  if (!status) status = rondo_program_input(program, "ids", RONDO_I32, &rows, 1, &ids);
  if (!status) status = rondo_program_state(program, "table", RONDO_F32, square, 2, &table);
  if (!status) status = rondo_op_embedding(program, table, ids, &y);
  const bool is_upstream = turn != AFTER && (turn != BY_ROWS || rows < 10);
  if (!status) status = rondo_program_place(program, y, is_upstream);
  if (!status && turn == TIED) status = rondo_op_matmul(program, y, table, (rondo_value){0}, &y);
  if (!status && turn == TIED) status = rondo_program_place(program, y, 0);
  if (!status && turn == LINE) status = rondo_op_tanh(program, y, &y);
  if (!status && turn == LINE) status = rondo_program_place(program, y, 2);
  if (!status) status = rondo_op_add(program, x, y, &y);
  if (!status) status = rondo_program_place(program, y, turn == AFTER || turn == NOTHING_DENSE);
  return status ? status : rondo_program_output(program, "y", y);
}

static void assert_refused(rondo_session *session, rondo_model_options *model, wrong_turn turn, const char *message) {
  model->build = build_wrong;
  model->user = &turn;
  assert_error(rondo_session_add_model(session, "wrong", model), RONDO_UNSUPPORTED, RONDO_REASON_OTHER_DEVICE);
  assert_message(message);
}

TEST(test_se9_what_cannot_be_divided_is_refused) {
  pair p = open_pair(t, false);
  rondo_session *session = open_empty(&p, (rondo_session_options){.streams = 2});
  rondo_device *devices[] = {p.devices[0], p.devices[1], NULL};
  assert_ok(rondo_device_open("cpu:2", NULL, &devices[2]));
  rondo_model_options model = divided_by(&p, NULL, 0);
  model.devices = devices;
  model.device_count = 3;
  assert_refused(session, &model, AFTER, "must run before");
  assert_refused(session, &model, TIED, "only where it is placed");
  assert_refused(session, &model, NOTHING_DENSE, "no operator of model 'wrong' runs on");
  assert_refused(session, &model, LINE, "no results of another device");
  const rondo_placement_rule random[] = {{.operator_name = "dropout", .place = 1},
                                         {.operator_name = "dropout_advance", .place = 1}};
  model.rules = random;
  model.rule_count = 2;
  wrong_turn updates = UPDATES;
  model.user = &updates;
  assert_error(rondo_session_add_model(session, "wrong", &model), RONDO_UNSUPPORTED, RONDO_REASON_RACE);
  assert_message("model 'wrong' changes the state '");
  rondo_session *one = open_empty(&p, (rondo_session_options){.streams = 1});
  assert_refused(one, &model, UPDATES, "must not change a state");
  assert_ok(rondo_session_destroy(one));
  model.rule_count = 0;
  const wrong_turn by_rows = BY_ROWS;
  model.user = (void *)(uintptr_t)&by_rows;
  assert_ok(rondo_session_add_model(session, "by_rows", &model));
  const float x[16 * TEST_SCORES] = {0};
  const int32_t ids[16] = {0};
  float y[16 * TEST_SCORES];
  const void *inputs[] = {x, ids};
  void *outputs[] = {y};
  rondo_request r = {RONDO_REQUEST_INIT, .rows = 16, .inputs = inputs, .outputs = outputs};
  assert_error(rondo_session_run(session, "by_rows", &r, NULL), RONDO_UNSUPPORTED, RONDO_REASON_SHAPE);
  assert_message("table");
  r.rows = 9;
  assert_ok(rondo_session_run(session, "by_rows", &r, NULL));
  assert_ok(rondo_session_destroy(session));
  assert_ok(rondo_device_close(devices[2]));
  close_pair(&p);
}

TEST(test_se9_wrong_options) {
  pair p = open_pair(t, false);
  rondo_session *session = open_empty(&p, (rondo_session_options){.streams = 1});
  const rondo_placement_rule far[] = {{.operator_name = "embedding", .place = 2}}, empty[] = {{.place = 1}};
  rondo_device *const swapped[] = {p.devices[1], p.devices[0]};
  rondo_model_options model = divided_by(&p, far, 1);
  assert_invalid(rondo_session_add_model(session, "m", &model), RONDO_REASON_OUT_OF_RANGE);
  model = divided_by(&p, empty, 1);
  assert_invalid(rondo_session_add_model(session, "m", &model), RONDO_REASON_BAD_OPTIONS);
  model = divided_by(&p, NULL, 1);
  assert_invalid(rondo_session_add_model(session, "m", &model), RONDO_REASON_NULL_ARGUMENT);
  model = divided_by(&p, rules, 1);
  model.devices = NULL;
  assert_invalid(rondo_session_add_model(session, "m", &model), RONDO_REASON_NULL_ARGUMENT);
  model.device_count = 0;
  assert_invalid(rondo_session_add_model(session, "m", &model), RONDO_REASON_BAD_OPTIONS);
  model = divided_by(&p, rules, 1);
  model.device_count = RONDO_MAX_PLACES + 1;
  assert_invalid(rondo_session_add_model(session, "m", &model), RONDO_REASON_OUT_OF_RANGE);
  model = divided_by(&p, rules, 1);
  model.devices = swapped;
  assert_invalid(rondo_session_add_model(session, "m", &model), RONDO_REASON_OTHER_DEVICE);
  const rondo_row_value word = {.name = "word", .type = RONDO_I32};
  rondo_model_options function = {RONDO_MODEL_OPTIONS_INIT, .body = test_body_nothing, .inputs = &word,
                                  .input_count = 1,         .outputs = &word,          .output_count = 1};
  function.devices = p.devices;
  function.device_count = 2;
  assert_invalid(rondo_session_add_model(session, "m", &function), RONDO_REASON_BAD_OPTIONS);
  assert_message("a function is not divided");
  assert_ok(rondo_session_destroy(session));
  close_pair(&p);
}

/* Devices that are all the session's, and rules that nothing meets, divide nothing. */
TEST(test_se9_a_model_that_is_not_divided_after_all) {
  const pair p = {.devices = {t->device, t->device}};
  const rondo_placement_rule none[] = {{.operator_name = "conv", .place = 1}};
  for (size_t i = 0; i < 2; i++) {
    rondo_session *session = open_empty(&p, (rondo_session_options){.streams = 2});
    test_scorer_add(session, "scorer", divided_by(&p, i == 0 ? rules : none, 1));
    capture_sizes(session, "scorer");
    (void)run(session, 30, RONDO_RUN_RECORDED);
    (void)run(session, 31, RONDO_RUN_EAGER);
    assert_int_equal(test_model_info(session, "scorer").upstream_state_bytes, 0);
    assert_ok(rondo_session_destroy(session));
  }
}
