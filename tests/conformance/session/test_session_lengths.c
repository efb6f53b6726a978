/* SPDX-License-Identifier: MIT
 * Models with lengths (PR-5): lengths and sizes from a history of rows and lengths, padding in both dimensions, rows
 * that are shorter than their request, batches, and refusals. The model is the mean of the valid positions of a row.
 */
#include <math.h>
#include <string.h>

#include "support/rondo_test.h"
#include "support/test_effort.h"
#include "support/test_session.h"

enum { WIDTH = 2, MOST_ROWS = 12, MOST_LENGTH = 40 };

/* y [rows, 2]: means; z [rows, length, 2]: x minus the mean, with garbage in the padding. */
static rondo_status build_mean(void *user, const rondo_model_size *size, rondo_program *program) {
  const size_t shape[] = {size->rows, size->length, WIDTH}, one[] = {1};
  rondo_value x, length, at, mask, sum, count, y, z;
  (void)user;
  TRY(rondo_program_input(program, "length", RONDO_I32, shape, 1, &length));
  TRY(rondo_program_input(program, "x", RONDO_F32, shape, 3, &x));
  TRY(rondo_op_arange(program, RONDO_I32, size->length, 0, 1, &at));
  TRY(rondo_op_reshape(program, at, (size_t[]){1, size->length, 1}, 3, &at));
  TRY(rondo_op_reshape(program, length, (size_t[]){size->rows, 1, 1}, 3, &length));
  TRY(rondo_op_less(program, at, length, &mask));
  TRY(rondo_op_cast(program, mask, RONDO_F32, &mask));
  TRY(rondo_op_mul(program, x, mask, &sum));
  TRY(rondo_op_sum(program, sum, one, 1, true, &sum));
  TRY(rondo_op_cast(program, length, RONDO_F32, &count));
  TRY(rondo_op_div(program, sum, count, &y));
  TRY(rondo_op_sub(program, x, y, &z));
  TRY(rondo_op_reshape(program, y, (size_t[]){size->rows, WIDTH}, 2, &y));
  TRY(rondo_program_output(program, "z", z));
  return rondo_program_output(program, "y", y);
}

typedef struct mean_request {
  float x[MOST_ROWS * MOST_LENGTH * WIDTH], z[MOST_ROWS * MOST_LENGTH * WIDTH], y[MOST_ROWS * WIDTH];
  int32_t lengths[MOST_ROWS];
  const void *inputs[1];
  void *outputs[2];
  rondo_request request;
} mean_request;

static void fill(mean_request *r, size_t rows, size_t length, bool varies, uint64_t seed) {
  uint64_t random = seed + 1;
  memset(r->z, 0xff, sizeof r->z);
  memset(r->y, 0xff, sizeof r->y);
  for (size_t i = 0; i < rows * length * WIDTH; i++) r->x[i] = (float)test_random_below(&random, 32);
  for (size_t i = 0; i < rows; i++)
    r->lengths[i] = varies ? (int32_t)(1 + test_random_below(&random, (uint32_t)length)) : (int32_t)length;
  r->inputs[0] = r->x;
  r->outputs[0] = r->z;
  r->outputs[1] = r->y;
  r->request = (rondo_request){RONDO_REQUEST_INIT,  .rows = rows,          .length = length,
                               .inputs = r->inputs, .outputs = r->outputs, .lengths = varies ? r->lengths : NULL};
}

static bool is_right(const mean_request *r) {
  const size_t length = r->request.length;
  bool is_right = true;
  for (size_t i = 0; i < r->request.rows * WIDTH; i++) {
    const float *x = r->x + i / WIDTH * length * WIDTH + i % WIDTH, *z = r->z + (x - r->x);
    const size_t valid = (size_t)r->lengths[i / WIDTH];
    float sum = 0;
    for (size_t j = 0; j < valid; j++) sum += x[j * WIDTH];
    is_right &= fabsf(r->y[i] - sum / (float)valid) <= 1e-5f;
    for (size_t j = 0; j < valid; j++) is_right &= fabsf(z[j * WIDTH] - (x[j * WIDTH] - r->y[i])) <= 1e-5f;
  }
  return is_right;
}

static rondo_answer run(rondo_session *session, size_t rows, size_t length, bool varies, rondo_run_mode mode) {
  static mean_request r;
  rondo_answer answer = {.struct_size = sizeof answer};
  fill(&r, rows, length, varies, rows * 100 + length);
  r.request.mode = mode;
  assert_ok(rondo_session_run(session, "mean", &r.request, &answer));
  assert_true(is_right(&r));
  return answer;
}

static rondo_model_options options_of(const size_t *lengths, size_t count) {
  return (rondo_model_options){RONDO_MODEL_OPTIONS_INIT, .build_sized = build_mean, .lengths = lengths,
                               .length_count = count, .row_inputs = {.length = "length"}};
}

static rondo_session *open_with(test_fixture *t, const rondo_model_options *options) {
  rondo_session *session = test_session_open(t->device, (rondo_session_options){.streams = 2});
  assert_ok(rondo_session_add_model(session, "mean", options));
  return session;
}

/* Graphs of 4 and 8 rows, each with 8 and 40 positions. */
static rondo_session *open_session(test_fixture *t) {
  static const size_t lengths[] = {40, 8}, rows[] = {8, 4};
  const rondo_model_options options = options_of(lengths, 2);
  rondo_session *session = open_with(t, &options);
  static mean_request r;
  fill(&r, 1, 1, false, 1);
  assert_ok(rondo_session_capture_begin(session, "mean"));
  for (size_t i = 0; i < 4; i++) {
    r.request.rows = rows[i % 2];
    r.request.length = lengths[i / 2];
    assert_ok(rondo_session_run(session, "mean", &r.request, NULL));
  }
  assert_ok(rondo_session_capture_end(session));
  return session;
}

TEST(test_pr5_rows_and_lengths_are_padded) {
  rondo_session *session = open_session(t);
  for (size_t rows = 1; rows <= 8; rows += 3) {
    for (size_t length = 1; length <= MOST_LENGTH; length += 13) {
      const rondo_answer answer = run(session, rows, length, false, RONDO_RUN_RECORDED);
      assert_int_equal(answer.length, length <= 8 ? 8 : 40);
      assert_int_equal(answer.steps, 0);
      run(session, rows, length, true, RONDO_RUN_RECORDED);
      run(session, rows, length, true, RONDO_RUN_EAGER);
    }
  }
  run(session, MOST_ROWS, MOST_LENGTH, true, RONDO_RUN_RECORDED); /* by several graphs */
}

TEST(test_pr5_requests_of_other_lengths_run_together) {
  rondo_session *session = open_session(t);
  static mean_request r[4];
  rondo_ticket tickets[4];
  rondo_stream *stream;
  for (size_t i = 0; i < 2; i++) assert_ok(rondo_session_acquire_stream(session, "mean", i, &stream));
  for (size_t i = 0; i < 4; i++) {
    fill(&r[i], 1 + i % 2, 1 + 2 * i, i % 2 == 0, i);
    r[i].request.mode = RONDO_RUN_RECORDED;
    assert_ok(rondo_session_submit(session, "mean", &r[i].request, &tickets[i]));
  }
  for (size_t i = 0; i < 2; i++) assert_ok(rondo_session_release_stream(session, i));
  for (size_t i = 0; i < 4; i++) {
    rondo_answer answer = {.struct_size = sizeof answer};
    assert_ok(rondo_ticket_wait(tickets[i], &answer));
    assert_true(is_right(&r[i]));
    assert_int_equal(answer.length, 8);
  }
}

TEST(test_pr5_lengths_and_sizes_come_from_a_history) {
  enum { REQUESTS = 60 };
  size_t rows[REQUESTS], lengths[REQUESTS];
  for (size_t i = 0; i < REQUESTS; i++) {
    lengths[i] = i % 3 == 0 ? 5 : i % 3 == 1 ? 6 : 33;
    rows[i] = i % 3 == 2 ? 2 : 7;
  }
  rondo_model_options options = options_of(NULL, 0);
  options.history = rows;
  options.history_lengths = lengths;
  options.history_count = REQUESTS;
  options.max_lengths = 2;
  options.max_sizes = 3;
  rondo_session *session = open_with(t, &options);
  rondo_model_length found = {.struct_size = sizeof found};
  assert_ok(rondo_session_get_length(session, "mean", 0, &found));
  assert_int_equal(found.length, 6);
  assert_ok(rondo_session_get_length(session, "mean", 1, &found));
  assert_int_equal(found.length, 33);
  assert_error(rondo_session_get_length(session, "mean", 2, &found), RONDO_NOT_FOUND, RONDO_REASON_OUT_OF_RANGE);
  assert_ok(rondo_session_capture(session, "mean"));
  assert_int_equal(run(session, 7, 5, false, RONDO_RUN_RECORDED).length, 6);
  assert_int_equal(run(session, 7, 5, true, RONDO_RUN_RECORDED).padding_rows, 0);
  assert_int_equal(run(session, 2, 7, true, RONDO_RUN_RECORDED).padding_rows, 0);
}

/* The rows weigh: without them, 30 would not be worth a length of its own. */
TEST(test_pr5_lengths_of_many_rows_count_more) {
  static const size_t lengths[] = {2, 30, 40};
  size_t rows[] = {1, 1, 1};
  rondo_model_options options = options_of(NULL, 0);
  rondo_model_length found = {.struct_size = sizeof found};
  options.history = rows;
  options.history_lengths = lengths;
  options.history_count = 3;
  options.max_lengths = 2;
  rondo_session *session = open_with(t, &options);
  assert_ok(rondo_session_get_length(session, "mean", 0, &found));
  assert_int_equal(found.length, 2);
  rows[1] = 200;
  assert_ok(rondo_session_remove_model(session, "mean"));
  assert_ok(rondo_session_add_model(session, "mean", &options));
  assert_ok(rondo_session_get_length(session, "mean", 0, &found));
  assert_int_equal(found.length, 30);
}

typedef struct client {
  rondo_session *session;
  uint32_t rounds, failed, wrong;
  uint64_t seed;
  mean_request request;
} client;

static void serve(void *user) {
  client *c = user;
  for (uint32_t i = 0; i < c->rounds; i++) {
    fill(&c->request, 1 + test_random_below(&c->seed, 8), 1 + test_random_below(&c->seed, MOST_LENGTH), i % 2 == 0,
         c->seed);
    const rondo_status status = rondo_session_run(c->session, "mean", &c->request.request, NULL);
    c->failed += status != RONDO_OK;
    c->wrong += status == RONDO_OK && !is_right(&c->request);
  }
}

TEST(test_pr5_lengths_of_many_threads) {
  enum { CLIENTS = 4 };
  rondo_session *session = open_session(t);
  static client clients[CLIENTS];
  test_thread threads[CLIENTS];
  for (size_t i = 0; i < CLIENTS; i++) {
    clients[i] = (client){.session = session, .rounds = (uint32_t)test_effort(60), .seed = i + 1};
    threads[i] = (test_thread){serve, &clients[i]};
  }
  test_on_threads(threads, CLIENTS);
  for (size_t i = 0; i < CLIENTS; i++) {
    assert_int_equal(clients[i].failed, 0);
    assert_int_equal(clients[i].wrong, 0);
  }
}

/* Before anything is recorded, requests run eagerly, padded to a length. A run object has the rows of one length. */
TEST(test_pr5_one_length_by_its_name) {
  rondo_session *session = open_session(t);
  static mean_request r;
  rondo_model_run *model_run = NULL;
  fill(&r, 3, 8, false, 5);
  r.request.length = 0;
  assert_ok(rondo_session_run(session, "mean[8]", &r.request, NULL));
  r.request.length = 8;
  assert_true(is_right(&r));
  assert_ok(rondo_model_run_create(session, "mean[8]", &model_run));
  assert_ok(rondo_model_run_reshape(model_run, 3));
  assert_ok(rondo_model_run_bind(model_run, r.inputs, r.outputs));
  memset(r.y, 0xff, sizeof r.y);
  assert_ok(rondo_model_run_invoke(model_run, NULL));
  assert_true(is_right(&r));
  assert_error(rondo_session_remove_model(session, "mean"), RONDO_INVALID_STATE, RONDO_REASON_STILL_IN_USE);
  rondo_model_run_destroy(model_run);
  assert_ok(rondo_session_remove_model(session, "mean"));
}

static size_t end_at_once(void *user, const rondo_answer *answer) {
  (void)user, (void)answer;
  return 0;
}

TEST(test_pr5_lengths_that_are_refused) {
  rondo_session *session = open_session(t);
  static mean_request r;
  fill(&r, 2, MOST_LENGTH, true, 1);
  r.request.length = 0;
  assert_invalid(rondo_session_run(session, "mean", &r.request, NULL), RONDO_REASON_BAD_OPTIONS);
  r.request.lengths = NULL;
  assert_invalid(rondo_session_run(session, "mean", &r.request, NULL), RONDO_REASON_SHAPE);
  r.request.length = MOST_LENGTH + 1;
  assert_invalid(rondo_session_run(session, "mean", &r.request, NULL), RONDO_REASON_SHAPE);
  assert_message("whose longest is 40");
  r.request.length = 4;
  r.request.lengths = (int32_t[]){4, 5};
  assert_invalid(rondo_session_run(session, "mean", &r.request, NULL), RONDO_REASON_OUT_OF_RANGE);
  assert_message("row 1 has 5 valid positions");
  r.request.lengths = (int32_t[]){0, 4};
  assert_invalid(rondo_session_run(session, "mean", &r.request, NULL), RONDO_REASON_OUT_OF_RANGE);
  r.request.lengths = NULL;
  r.request.next = end_at_once;
  assert_invalid(rondo_session_run(session, "mean", &r.request, NULL), RONDO_REASON_BAD_OPTIONS);
  r.request.next = NULL;
  r.request.device_outputs = 1;
  assert_error(rondo_session_run(session, "mean", &r.request, NULL), RONDO_UNSUPPORTED, RONDO_REASON_WRONG_MEMORY);
  assert_message("has lengths");
  rondo_model_options options = options_of((const size_t[]){8}, 1);
  options.max_lengths = 40;
  assert_invalid(rondo_session_add_model(session, "m", &options), RONDO_REASON_OUT_OF_RANGE);
  assert_message("40 lengths");
  options = options_of(NULL, 0);
  options.build = test_build_scorer;
  assert_invalid(rondo_session_add_model(session, "m", &options), RONDO_REASON_BAD_OPTIONS);
  options.build_sized = NULL;
  assert_invalid(rondo_session_add_model(session, "m", &options), RONDO_REASON_BAD_OPTIONS);
  assert_message("need build_sized");
}

/* Exact lengths ---------------------------------------------------------------------------------------------------- */

/* y [rows, 2]: the means of all positions, which padding would change; z [rows, length, 2]: x minus the mean. */
static rondo_status build_plain_mean(void *user, const rondo_model_size *size, rondo_program *program) {
  const size_t shape[] = {size->rows, size->length, WIDTH}, one[] = {1};
  rondo_value x, y, z;
  (void)user;
  TRY(rondo_program_input(program, "x", RONDO_F32, shape, 3, &x));
  TRY(rondo_op_mean(program, x, one, 1, true, &y));
  TRY(rondo_op_sub(program, x, y, &z));
  TRY(rondo_op_reshape(program, y, (size_t[]){size->rows, WIDTH}, 2, &y));
  TRY(rondo_program_output(program, "z", z));
  return rondo_program_output(program, "y", y);
}

static rondo_model_options exact_options_of(const size_t *lengths, size_t count) {
  return (rondo_model_options){RONDO_MODEL_OPTIONS_INIT, .build_sized = build_plain_mean, .lengths = lengths,
                               .length_count = count, .exact_lengths = true};
}

TEST(test_pr5_exact_lengths_are_not_padded) {
  static const size_t lengths[] = {8, MOST_LENGTH};
  const rondo_model_options options = exact_options_of(lengths, 2);
  rondo_session *session = open_with(t, &options);
  assert_ok(rondo_session_capture(session, "mean"));
  for (size_t length = 1; length <= MOST_LENGTH; length++) {
    const bool has_graph = length == 8 || length == MOST_LENGTH;
    const rondo_run_mode mode = has_graph ? RONDO_RUN_RECORDED : RONDO_RUN_AUTO;
    const rondo_answer answer = run(session, 1 + length % 3, length, false, mode);
    assert_int_equal(answer.length, length);
    assert_int_equal(answer.mode == RONDO_RUN_EAGER, !has_graph);
    if (!has_graph || answer.reason != RONDO_RUN_TRIAL) /* a graph is measured again now and then */
      assert_int_equal(answer.reason, has_graph ? RONDO_RUN_REQUESTED : RONDO_RUN_NO_GRAPH);
    run(session, 1 + length % 3, length, false, RONDO_RUN_EAGER);
  }
}

/* Programs of other lengths are among those that a stream caches: one for each number of rows and length. */
TEST(test_pr5_programs_of_exact_lengths_are_cached) {
  static const size_t lengths[] = {MOST_LENGTH};
  const rondo_model_options options = exact_options_of(lengths, 1);
  rondo_session *session = test_session_open(t->device, (rondo_session_options){.max_eager_programs = 2});
  rondo_model_info info = {.struct_size = sizeof info};
  assert_ok(rondo_session_add_model(session, "mean", &options));
  for (size_t i = 0; i < 8; i++) run(session, 2, 5 + i % 2, false, RONDO_RUN_AUTO);
  assert_ok(rondo_session_get_model_info(session, "mean[40]", &info));
  assert_int_equal(info.eager_programs, 2);
  assert_int_equal(info.evicted, 0);
  run(session, 3, 5, false, RONDO_RUN_AUTO);
  assert_ok(rondo_session_get_model_info(session, "mean[40]", &info));
  assert_int_equal(info.eager_programs, 3);
  assert_int_equal(info.evicted, 1);
}

/* The lengths of the most positions, and the longest; the sizes of a length are for the requests of exactly this one.
 */
TEST(test_pr5_exact_lengths_come_from_a_history) {
  static const size_t rows[] = {4, 1, 1, 1, 1, 2, 1}, lengths[] = {6, 7, 7, 7, 9, 12, 33};
  rondo_model_options options = exact_options_of(NULL, 0);
  options.history = rows;
  options.history_lengths = lengths;
  options.history_count = 7;
  options.max_lengths = 3;
  options.max_sizes = 1;
  options.max_batch_rows = 1;
  rondo_session *session = open_with(t, &options);
  static const size_t expected[] = {6, 12, 33}, most_rows[] = {4, 2, 1};
  assert_ok(rondo_session_capture(session, "mean"));
  for (size_t i = 0; i < 3; i++) {
    rondo_model_length found = {.struct_size = sizeof found};
    rondo_model_graph graph = {.struct_size = sizeof graph};
    assert_ok(rondo_session_get_length(session, "mean", i, &found));
    assert_int_equal(found.length, expected[i]);
    assert_ok(rondo_session_get_graph(session, found.name, 0, &graph));
    assert_int_equal(graph.rows, most_rows[i]);
  }
}

TEST(test_pr5_exact_lengths_that_are_refused) {
  static const size_t lengths[] = {8, MOST_LENGTH};
  rondo_model_options options = exact_options_of(lengths, 2);
  rondo_session *session = open_with(t, &options);
  static mean_request r;
  assert_ok(rondo_session_capture(session, "mean"));
  fill(&r, 2, 7, false, 1);
  r.request.mode = RONDO_RUN_RECORDED;
  assert_error(rondo_session_run(session, "mean", &r.request, NULL), RONDO_UNSUPPORTED, RONDO_REASON_NOT_RECORDED);
  assert_message("no graph of exactly 7 positions");
  r.request.lengths = (int32_t[]){7, 5};
  assert_invalid(rondo_session_run(session, "mean", &r.request, NULL), RONDO_REASON_BAD_OPTIONS);
  assert_message("row 1 has 5 valid positions of 7");
  r.request.lengths = (int32_t[]){7, 7};
  r.request.mode = RONDO_RUN_AUTO;
  assert_ok(rondo_session_run(session, "mean", &r.request, NULL));
  assert_true(is_right(&r));
  options.slots = 2;
  options.slot_positions = MOST_LENGTH;
  assert_invalid(rondo_session_add_model(session, "m", &options), RONDO_REASON_BAD_OPTIONS);
  assert_message("leave out exact_lengths");
  options = exact_options_of(NULL, 0);
  options.build_sized = NULL;
  options.build = test_build_scorer;
  assert_invalid(rondo_session_add_model(session, "m", &options), RONDO_REASON_BAD_OPTIONS);
  assert_message("need build_sized");
}

static void serve_exact(void *user) {
  client *c = user;
  for (uint32_t i = 0; i < c->rounds; i++) {
    fill(&c->request, 1 + test_random_below(&c->seed, 4), 6 + test_random_below(&c->seed, 4), false, c->seed);
    const rondo_status status = rondo_session_run(c->session, "mean", &c->request.request, NULL);
    c->failed += status != RONDO_OK;
    c->wrong += status == RONDO_OK && !is_right(&c->request);
  }
}

/* Requests that wait together: those of a length with graphs are batched, others run alone. */
TEST(test_pr5_exact_lengths_of_many_threads) {
  enum { CLIENTS = 4 };
  static const size_t lengths[] = {8, MOST_LENGTH};
  static client clients[CLIENTS];
  test_thread threads[CLIENTS];
  rondo_model_options options = exact_options_of(lengths, 2);
  options.history = (const size_t[]){1, 2, 8};
  options.history_lengths = (const size_t[]){8, 8, 8};
  options.history_count = 3;
  rondo_session *session = open_with(t, &options);
  assert_ok(rondo_session_capture(session, "mean"));
  for (size_t i = 0; i < CLIENTS; i++) {
    clients[i] = (client){.session = session, .rounds = (uint32_t)test_effort(60), .seed = i + 1};
    threads[i] = (test_thread){serve_exact, &clients[i]};
  }
  test_on_threads(threads, CLIENTS);
  for (size_t i = 0; i < CLIENTS; i++) {
    assert_int_equal(clients[i].failed, 0);
    assert_int_equal(clients[i].wrong, 0);
  }
}
