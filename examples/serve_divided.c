/* SPDX-License-Identifier: MIT
 * Serves a model on two devices. The embedding tables are on a CPU device, which looks up their rows. The rest of the
 * model is recorded on DEVICE, which needs no room for the tables. Several requests are submitted at once, so that rows
 * of one are looked up while the rest of the model runs for another. One request asks for a row that does not exist.
 * Only this request fails.
 *
 *   serve_divided [DEVICE]
 *
 * Prints: 40 requests, 39 answered right, 1 refused
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rondo/rondo.h>

#define TRY(call)                                  \
  do {                                             \
    const rondo_status try_status = (call);        \
    if (try_status != RONDO_OK) return try_status; \
  } while (0)

enum {
  NUMBERS = 4,
  WORDS = 3,
  WIDTH = 8,
  TABLE_ROWS = 20000,
  MOST_ROWS = 200,
  HISTORY = 60,
  REQUESTS = 40,
  AT_ONCE = 4
};

typedef struct scoring {
  float numbers[MOST_ROWS * NUMBERS], scores[MOST_ROWS];
  int32_t words[MOST_ROWS * WORDS];
  const void *inputs[2];
  void *outputs[1];
  rondo_request request;
} scoring;

typedef struct server {
  rondo_device *devices[2]; /* the session's, and the one with the table */
  rondo_session *session;
  rondo_weights *weights;
  float table[TABLE_ROWS * WIDTH], w[NUMBERS * WIDTH], v[WIDTH];
  scoring scorings[AT_ONCE];
  int right, refused;
} server;

/* score = (relu(numbers w) + the sum of the words' rows) v, for a number of rows. */
static rondo_status build(void *user, size_t rows, rondo_program *program) {
  const size_t number_shape[] = {rows, NUMBERS}, word_shape[] = {rows, WORDS}, table_shape[] = {TABLE_ROWS, WIDTH};
  const size_t w_shape[] = {NUMBERS, WIDTH}, v_shape[] = {WIDTH, 1};
  const rondo_value none = {0};
  rondo_value numbers, words, table, w, v, hidden, meaning, scores;
  (void)user;
  TRY(rondo_program_input(program, "numbers", RONDO_F32, number_shape, 2, &numbers));
  TRY(rondo_program_input(program, "words", RONDO_I32, word_shape, 2, &words));
  TRY(rondo_program_state(program, "table", RONDO_F32, table_shape, 2, &table));
  TRY(rondo_program_state(program, "w", RONDO_F32, w_shape, 2, &w));
  TRY(rondo_program_state(program, "v", RONDO_F32, v_shape, 2, &v));
  TRY(rondo_op_embedding(program, table, words, &meaning));
  TRY(rondo_op_sum(program, meaning, (const size_t[]){1}, 1, false, &meaning)); /* of the lookups, so its position */
  TRY(rondo_op_matmul(program, numbers, w, none, &hidden));
  TRY(rondo_op_relu(program, hidden, &hidden));
  TRY(rondo_op_add(program, hidden, meaning, &hidden));
  TRY(rondo_op_matmul(program, hidden, v, none, &scores));
  return rondo_program_output(program, "scores", scores);
}

static rondo_status add_weight(server *s, const char *name, const float *data, size_t rows, size_t columns) {
  const rondo_weight weight = {.name = name,
                               .type = RONDO_F32,
                               .rank = 2,
                               .shape = {rows, columns},
                               .data = data,
                               .bytes = rows * columns * sizeof *data};
  return rondo_weights_add(s->weights, &weight);
}

static rondo_status make_weights(server *s) {
  for (size_t i = 0; i < TABLE_ROWS * WIDTH; i++) s->table[i] = (float)((int)(i * 7 % 101) - 50) / 64;
  for (size_t i = 0; i < NUMBERS * WIDTH; i++) s->w[i] = (float)((int)(i * 5 % 13) - 6) / 8;
  for (size_t i = 0; i < WIDTH; i++) s->v[i] = (float)((int)(i * 3 % 7) - 3) / 4;
  TRY(rondo_weights_create(NULL, &s->weights));
  TRY(add_weight(s, "table", s->table, TABLE_ROWS, WIDTH));
  TRY(add_weight(s, "w", s->w, NUMBERS, WIDTH));
  return add_weight(s, "v", s->v, WIDTH, 1);
}

static size_t rows_of(size_t request) { return 10 + request * 37 % 191; }

/* At least two streams: while one runs the rest of the model, rows are looked up for the other. */
static rondo_status start(server *s) {
  size_t history[HISTORY];
  for (size_t i = 0; i < HISTORY; i++) history[i] = rows_of(i);
  const rondo_placement_rule look_ups = {.operator_name = "embedding", .place = 1};
  const rondo_session_options options = {RONDO_SESSION_OPTIONS_INIT, .streams = 2};
  const rondo_model_options model = {RONDO_MODEL_OPTIONS_INIT, .build = build,           .weights = s->weights,
                                     .history = history,       .history_count = HISTORY, .max_sizes = 3,
                                     .devices = s->devices,    .device_count = 2,        .rules = &look_ups,
                                     .rule_count = 1};
  rondo_model_info info = {.struct_size = sizeof info};
  TRY(rondo_session_create(s->devices[0], &options, &s->session));
  TRY(rondo_session_add_model(s->session, "scorer", &model));
  TRY(rondo_session_capture(s->session, "scorer"));
  TRY(rondo_session_get_model_info(s->session, "scorer", &info));
  printf("%llu bytes of states, %llu of them beside the table's device\n", (unsigned long long)info.state_bytes,
         (unsigned long long)(info.state_bytes - info.upstream_state_bytes));
  return RONDO_OK;
}

/* Requests -------------------------------------------------------------------------------------------------------- */

static void fill(scoring *c, size_t request) {
  const size_t rows = rows_of(request);
  for (size_t i = 0; i < rows * NUMBERS; i++) c->numbers[i] = (float)((int)((i + request) % 17) - 8) / 8;
  for (size_t i = 0; i < rows * WORDS; i++) c->words[i] = (int32_t)((i * 7919 + request) % TABLE_ROWS);
  if (request == 21) c->words[rows] = TABLE_ROWS; /* past the end */
  c->inputs[0] = c->numbers;
  c->inputs[1] = c->words;
  c->outputs[0] = c->scores;
  c->request = (rondo_request){RONDO_REQUEST_INIT, .rows = rows, .inputs = c->inputs, .outputs = c->outputs};
}

static float score(const server *s, const float *numbers, const int32_t *words) {
  float sum = 0;
  for (size_t j = 0; j < WIDTH; j++) {
    float hidden = 0;
    for (size_t i = 0; i < NUMBERS; i++) hidden += numbers[i] * s->w[i * WIDTH + j];
    if (!(hidden > 0)) hidden = 0;
    for (size_t i = 0; i < WORDS; i++) hidden += s->table[(size_t)words[i] * WIDTH + j];
    sum += hidden * s->v[j];
  }
  return sum;
}

static bool is_right(const server *s, const scoring *c) {
  for (size_t row = 0; row < c->request.rows; row++) {
    const float wanted = score(s, c->numbers + row * NUMBERS, c->words + row * WORDS);
    if (!(fabsf(c->scores[row] - wanted) <= 1e-4f * (1 + fabsf(wanted)))) return false;
  }
  return true;
}

static rondo_status serve(server *s, size_t first) {
  rondo_ticket tickets[AT_ONCE] = {{0}};
  rondo_status status = RONDO_OK;
  for (size_t i = 0; i < AT_ONCE && status == RONDO_OK; i++) {
    fill(&s->scorings[i], first + i);
    status = rondo_session_submit(s->session, "scorer", &s->scorings[i].request, &tickets[i]);
  }
  for (size_t i = 0; i < AT_ONCE && tickets[i].session != NULL; i++) {
    const rondo_status waited = rondo_ticket_wait(tickets[i], NULL);
    s->right += waited == RONDO_OK && is_right(s, &s->scorings[i]);
    s->refused += waited == RONDO_EXECUTION_FAILED;
    if (waited == RONDO_EXECUTION_FAILED)
      printf("request %zu: %s\n", first + i, rondo_last_error()->message);
    else if (status == RONDO_OK)
      status = waited;
  }
  return status;
}

static rondo_status run(server *s, const char *device) {
  TRY(rondo_device_open(device, NULL, &s->devices[0]));
  TRY(rondo_device_open(strcmp(device, "cpu") == 0 ? "cpu:1" : "cpu", NULL, &s->devices[1]));
  TRY(make_weights(s));
  TRY(start(s));
  for (size_t i = 0; i < REQUESTS; i += AT_ONCE) TRY(serve(s, i));
  return RONDO_OK;
}

int main(int argc, char **argv) {
  static server s;
  rondo_status status = run(&s, argc > 1 ? argv[1] : "cpu");
  if (status != RONDO_OK) fprintf(stderr, "serve_divided: %s\n", rondo_last_error()->message);
  const rondo_status destroyed = rondo_session_destroy(s.session);
  rondo_weights_destroy(s.weights);
  for (int i = 0; i < 2; i++) {
    const rondo_status closed = rondo_device_close(s.devices[i]);
    if (status == RONDO_OK) status = closed;
  }
  if (status != RONDO_OK || destroyed != RONDO_OK) return EXIT_FAILURE;
  printf("%d requests, %d answered right, %d refused\n", REQUESTS, s.right, s.refused);
  return EXIT_SUCCESS;
}
