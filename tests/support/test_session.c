/* SPDX-License-Identifier: MIT
 * The model's program and states, its expected answers in plain C, and the setup of its sessions.
 */
#include "support/test_session.h"

#include <math.h>
#include <rondo/operators.h>
#include <stdatomic.h>
#include <string.h>

#include "support/test_cleanup.h"

static rondo_status destroy_session(void *object) { return (rondo_session_destroy)(object); }

TEST_DESTROYS(session)

void test_leave_session(rondo_session *session) { test_leave_with(TEST_LEFT_SESSION, session, destroy_session); }

static float weight(size_t i) { return (float)((int)(i * 7 % 11) - 5) / 8; }
static float entry(size_t i) { return (float)((int)(i * 5 % 13) - 6) / 4; }

rondo_status test_build_scorer(void *user, size_t rows, rondo_program *program) {
  const size_t x_shape[] = {rows, TEST_FEATURES}, id_shape[] = {rows};
  const size_t w_shape[] = {TEST_FEATURES, TEST_SCORES}, table_shape[] = {TEST_IDS, TEST_SCORES};
  rondo_value x, ids, w, table, product, looked_up, y;
  if (user != NULL) atomic_fetch_add((atomic_uint *)user, 1);
  TRY(rondo_program_input(program, "x", RONDO_F32, x_shape, 2, &x));
  TRY(rondo_program_input(program, "ids", RONDO_I32, id_shape, 1, &ids));
  TRY(rondo_program_state(program, "w", RONDO_F32, w_shape, 2, &w));
  TRY(rondo_program_state(program, "table", RONDO_F32, table_shape, 2, &table));
  TRY(rondo_op_matmul(program, x, w, (rondo_value){0}, &product));
  TRY(rondo_op_embedding(program, table, ids, &looked_up));
  TRY(rondo_op_add(program, product, looked_up, &y));
  return rondo_program_output(program, "y", y);
}

rondo_weights *test_scorer_weights(void) {
  rondo_weights *weights = NULL;
  float w[TEST_FEATURES * TEST_SCORES], table[TEST_IDS * TEST_SCORES];
  for (size_t i = 0; i < TEST_FEATURES * TEST_SCORES; i++) w[i] = weight(i);
  for (size_t i = 0; i < TEST_IDS * TEST_SCORES; i++) table[i] = entry(i);
  const rondo_weight all[] = {
      {.name = "w", .type = RONDO_F32, .rank = 2, .shape = {TEST_FEATURES, TEST_SCORES}, .data = w, .bytes = sizeof w},
      {.name = "table",
       .type = RONDO_F32,
       .rank = 2,
       .shape = {TEST_IDS, TEST_SCORES},
       .data = table,
       .bytes = sizeof table}};
  assert_ok(rondo_weights_create(NULL, &weights));
  assert_ok(rondo_weights_add(weights, &all[0]));
  assert_ok(rondo_weights_add(weights, &all[1]));
  return weights;
}

rondo_session *test_session_open(rondo_device *device, rondo_session_options options) {
  rondo_session *session = NULL;
  rondo_stream *streams[RONDO_SESSION_MAX_STREAMS];
  options.struct_size = sizeof options;
  const bool adopts = test_adopts_streams() && options.stream_list == NULL;
  const uint32_t count = !adopts ? 0 : options.streams == 0 ? 1 : options.streams;
  for (uint32_t i = 0; i < count; i++) streams[i] = test_adopted_stream(device, NULL);
  if (adopts) options.stream_list = streams;
  assert_ok(rondo_session_create(device, &options, &session));
  test_leave_session(session);
  return session;
}

void test_scorer_add(rondo_session *session, const char *name, rondo_model_options options) {
  rondo_weights *weights = test_scorer_weights();
  options.struct_size = sizeof options;
  if (options.build == NULL) options.build = test_build_scorer;
  if (options.weights == NULL) options.weights = weights;
  assert_ok(rondo_session_add_model(session, name, &options));
  rondo_weights_destroy(weights);
}

void test_scorer_capture(rondo_session *session, const char *name, const size_t *sizes, size_t count) {
  static test_request r;
  assert_ok(rondo_session_capture_begin(session, name));
  for (size_t i = 0; i < count; i++) {
    rondo_answer answer = {.struct_size = sizeof answer};
    test_request_fill(&r, sizes[i], 1);
    assert_ok(rondo_session_run(session, name, &r.request, &answer));
    assert_int_equal(answer.mode, RONDO_RUN_CAPTURED);
    assert_int_equal(answer.reason, RONDO_RUN_CAPTURING);
    assert_int_equal(answer.graph, i);
  }
  assert_ok(rondo_session_capture_end(session));
}

rondo_model_info test_model_info(rondo_session *session, const char *name) {
  rondo_model_info info = {.struct_size = sizeof info};
  assert_ok(rondo_session_get_model_info(session, name, &info));
  return info;
}

/* Requests -------------------------------------------------------------------------------------------------------- */

rondo_model_graph test_model_graph(rondo_session *session, const char *name, size_t index) {
  rondo_model_graph graph = {.struct_size = sizeof graph};
  assert_ok(rondo_session_get_graph(session, name, index, &graph));
  return graph;
}

void test_request_fill(test_request *r, size_t rows, uint64_t seed) {
  uint64_t random = seed;
  memset(r->y, 0xff, sizeof r->y);
  for (size_t i = 0; i < rows * TEST_FEATURES; i++) r->x[i] = (float)test_random_below(&random, 64) / 16 - 2;
  for (size_t i = 0; i < rows; i++) r->ids[i] = (int32_t)test_random_below(&random, TEST_IDS);
  r->inputs[0] = r->x;
  r->inputs[1] = r->ids;
  r->outputs[0] = r->y;
  r->request = (rondo_request){RONDO_REQUEST_INIT, .rows = rows, .inputs = r->inputs, .outputs = r->outputs};
}

bool test_request_row_is_right(const test_request *r, size_t row) {
  for (size_t j = 0; j < TEST_SCORES; j++) {
    float wanted = entry((size_t)r->ids[row] * TEST_SCORES + j);
    for (size_t k = 0; k < TEST_FEATURES; k++) wanted += r->x[row * TEST_FEATURES + k] * weight(k * TEST_SCORES + j);
    if (!(fabsf(r->y[row * TEST_SCORES + j] - wanted) <= 1e-5f)) return false;
  }
  return true;
}

bool test_request_is_right(const test_request *r) {
  for (size_t row = 0; row < r->request.rows; row++)
    if (!test_request_row_is_right(r, row)) return false;
  return true;
}

void test_request_move_input(rondo_device *device, test_request *r, size_t input, size_t bytes) {
  void *memory;
  assert_ok(rondo_host_malloc(device, bytes, &memory));
  memcpy(memory, r->inputs[input], bytes);
  r->inputs[input] = memory;
}

rondo_answer test_request_run(rondo_session *session, const char *name, test_request *r, size_t rows,
                              rondo_run_mode mode) {
  rondo_answer answer = {.struct_size = sizeof answer};
  test_request_fill(r, rows, rows);
  r->request.mode = mode;
  assert_ok(rondo_session_run(session, name, &r->request, &answer));
  assert_true(test_request_is_right(r));
  return answer;
}

static rondo_status submit_and_wait(test_client *c) {
  rondo_ticket ticket = {0};
  const rondo_status status = rondo_session_submit(c->session, "scorer", &c->request.request, &ticket);
  return status == RONDO_OK ? rondo_ticket_wait(ticket, NULL) : status;
}

void test_run_by_hand(rondo_session *session, rondo_stream *stream, size_t index, size_t number, size_t rows,
                      size_t launches) {
  static test_request r;
  const void *result = NULL;
  test_request_fill(&r, rows, 100 * index + number);
  for (size_t i = 0; i < 2; i++) {
    rondo_input_copy copy;
    rondo_model_value value = {.struct_size = sizeof value};
    assert_ok(rondo_session_get_input_copy(session, "scorer", index, number, i, &copy));
    assert_ok(rondo_session_get_input(session, "scorer", i, &value));
    assert_int_equal(copy.input, i);
    assert_int_equal(copy.copy.width, rows * value.row_bytes);
    assert_ok(rondo_copy_async(stream, copy.copy.dst, r.inputs[i], copy.copy.width));
  }
  for (size_t i = 0; i < launches; i++) assert_ok(rondo_session_launch(session, "scorer", index, number));
  assert_ok(rondo_stream_synchronize(stream));
  assert_ok(rondo_session_get_result(session, "scorer", number, 0, &result));
  memcpy(r.y, result, rows * TEST_SCORES * sizeof(float));
  assert_true(test_request_is_right(&r));
}

void test_client_serve(void *client) {
  test_client *c = client;
  uint64_t random = c->seed;
  for (uint32_t i = 0; i < c->rounds; i++) {
    test_request_fill(&c->request, 1 + test_random_below(&random, 150), random);
    if (test_random_below(&random, 4) == 0) c->request.request.mode = RONDO_RUN_EAGER;
    const rondo_status status =
        c->submits ? submit_and_wait(c) : rondo_session_run(c->session, "scorer", &c->request.request, NULL);
    c->failed += status != RONDO_OK;
    c->wrong += status == RONDO_OK && !test_request_is_right(&c->request);
  }
}

void test_clients_run(rondo_session *session, test_client *clients, size_t count, uint32_t rounds) {
  test_thread threads[16];
  assert_true(count <= 16);
  for (size_t i = 0; i < count; i++) {
    clients[i] = (test_client){.session = session, .seed = i + 1, .rounds = rounds, .submits = i % 2 == 1};
    threads[i] = (test_thread){test_client_serve, &clients[i]};
  }
  test_on_threads(threads, count);
  for (size_t i = 0; i < count; i++) {
    assert_int_equal(clients[i].failed, 0);
    assert_int_equal(clients[i].wrong, 0);
  }
}
