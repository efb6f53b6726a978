/* SPDX-License-Identifier: MIT
 * Serves a model from recordings. The program adds a small network to a session, together with the row counts of
 * earlier requests. The session chooses batch sizes from them and records each on every stream. A request may have any
 * number of rows. The session batches waiting requests and runs them in the cheapest way. Answers report how they ran.
 *
 *   serve [DEVICE]
 *
 * Prints: 40 requests answered, all of them right
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <rondo/rondo.h>

#define TRY(call)                                  \
  do {                                             \
    const rondo_status try_status = (call);        \
    if (try_status != RONDO_OK) return try_status; \
  } while (0)

enum { FEATURES = 16, HIDDEN = 32, MOST_ROWS = 300, HISTORY = 100, REQUESTS = 40, AT_ONCE = 4 };

typedef struct scoring {
  float x[MOST_ROWS * FEATURES], scores[MOST_ROWS];
  const void *inputs[1];
  void *outputs[1];
  rondo_request request;
} scoring;

typedef struct server {
  rondo_device *device;
  rondo_session *session;
  rondo_weights *weights;
  float w1[FEATURES * HIDDEN], w2[HIDDEN];
  scoring scorings[AT_ONCE];
  size_t right;
} server;

/* The network for a number of rows. */
static rondo_status build(void *user, size_t rows, rondo_program *program) {
  const size_t x_shape[] = {rows, FEATURES}, w1_shape[] = {FEATURES, HIDDEN}, w2_shape[] = {HIDDEN, 1};
  const rondo_value none = {0};
  rondo_value x, w1, w2, hidden, active, scores;
  (void)user;
  TRY(rondo_program_input(program, "x", RONDO_F32, x_shape, 2, &x));
  TRY(rondo_program_state(program, "w1", RONDO_F32, w1_shape, 2, &w1));
  TRY(rondo_program_state(program, "w2", RONDO_F32, w2_shape, 2, &w2));
  TRY(rondo_op_matmul(program, x, w1, none, &hidden));
  TRY(rondo_op_relu(program, hidden, &active));
  TRY(rondo_op_matmul(program, active, w2, none, &scores));
  return rondo_program_output(program, "scores", scores);
}

static rondo_status make_weights(server *s) {
  for (size_t i = 0; i < FEATURES * HIDDEN; i++) s->w1[i] = (float)((int)(i * 7 % 13) - 6) / 16;
  for (size_t i = 0; i < HIDDEN; i++) s->w2[i] = (float)((int)(i * 5 % 11) - 5) / 8;
  const rondo_weight w1 = {
      .name = "w1", .type = RONDO_F32, .rank = 2, .shape = {FEATURES, HIDDEN}, .data = s->w1, .bytes = sizeof s->w1};
  const rondo_weight w2 = {
      .name = "w2", .type = RONDO_F32, .rank = 2, .shape = {HIDDEN, 1}, .data = s->w2, .bytes = sizeof s->w2};
  TRY(rondo_weights_create(NULL, &s->weights));
  TRY(rondo_weights_add(s->weights, &w1));
  return rondo_weights_add(s->weights, &w2);
}

/* Most requests are small, some are large. */
static size_t rows_of(size_t request) {
  const size_t drawn = request * 37 % 101;
  return 10 + drawn * drawn * 290 / 10000;
}

static rondo_status start(server *s) {
  size_t history[HISTORY];
  for (size_t i = 0; i < HISTORY; i++) history[i] = rows_of(i);
  const rondo_session_options options = {RONDO_SESSION_OPTIONS_INIT, .streams = 2, .max_delay_us = 200};
  const rondo_model_options model = {RONDO_MODEL_OPTIONS_INIT, .build = build,           .weights = s->weights,
                                     .history = history,       .history_count = HISTORY, .max_sizes = 4};
  TRY(rondo_session_create(s->device, &options, &s->session));
  TRY(rondo_session_add_model(s->session, "scorer", &model));
  return rondo_session_capture(s->session, "scorer");
}

/* Requests -------------------------------------------------------------------------------------------------------- */

static void fill(scoring *c, size_t request) {
  const size_t rows = rows_of(request);
  for (size_t i = 0; i < rows * FEATURES; i++) c->x[i] = (float)((int)((i + request) % 17) - 8) / 8;
  c->inputs[0] = c->x;
  c->outputs[0] = c->scores;
  c->request = (rondo_request){RONDO_REQUEST_INIT, .rows = rows, .inputs = c->inputs, .outputs = c->outputs};
}

static float score(const server *s, const float *x) {
  float sum = 0;
  for (size_t j = 0; j < HIDDEN; j++) {
    float hidden = 0;
    for (size_t i = 0; i < FEATURES; i++) hidden += x[i] * s->w1[i * HIDDEN + j];
    sum += hidden > 0 ? hidden * s->w2[j] : 0;
  }
  return sum;
}

static bool is_right(const server *s, const scoring *c) {
  for (size_t row = 0; row < c->request.rows; row++) {
    const float wanted = score(s, c->x + row * FEATURES);
    if (!(fabsf(c->scores[row] - wanted) <= 1e-4f * (1 + fabsf(wanted)))) return false;
  }
  return true;
}

static const char *name_of(rondo_run_mode mode) {
  return mode == RONDO_RUN_RECORDED ? "one graph" : mode == RONDO_RUN_SPLIT ? "several graphs" : "eager";
}

/* Submits several at once, so that waiting requests can be batched. */
static rondo_status serve(server *s, size_t first) {
  rondo_ticket tickets[AT_ONCE] = {{0}};
  rondo_status status = RONDO_OK;
  for (size_t i = 0; i < AT_ONCE && status == RONDO_OK; i++) {
    fill(&s->scorings[i], first + i);
    status = rondo_session_submit(s->session, "scorer", &s->scorings[i].request, &tickets[i]);
  }
  for (size_t i = 0; i < AT_ONCE && tickets[i].session != NULL; i++) {
    rondo_answer answer = {.struct_size = sizeof answer};
    const rondo_status waited = rondo_ticket_wait(tickets[i], &answer);
    if (status == RONDO_OK) status = waited;
    if (waited == RONDO_OK) s->right += is_right(s, &s->scorings[i]);
    printf("request %zu: %zu rows, %s, %u together, %llu rows of padding\n", first + i, s->scorings[i].request.rows,
           name_of(answer.mode), answer.batch_requests, (unsigned long long)answer.padding_rows);
  }
  return status;
}

static rondo_status run(server *s, const char *device) {
  TRY(rondo_device_open(device, NULL, &s->device));
  TRY(make_weights(s));
  TRY(start(s));
  for (size_t i = 0; i < REQUESTS; i += AT_ONCE) TRY(serve(s, i));
  return RONDO_OK;
}

int main(int argc, char **argv) {
  static server s;
  rondo_status status = run(&s, argc > 1 ? argv[1] : "cpu");
  if (status != RONDO_OK) fprintf(stderr, "serve: %s\n", rondo_last_error()->message);
  const rondo_status destroyed = rondo_session_destroy(s.session);
  rondo_weights_destroy(s.weights);
  const rondo_status closed = rondo_device_close(s.device);
  if (status != RONDO_OK || destroyed != RONDO_OK || closed != RONDO_OK) return EXIT_FAILURE;
  printf("%d requests answered, %s of them right\n", REQUESTS, s.right == REQUESTS ? "all" : "not all");
  return EXIT_SUCCESS;
}
