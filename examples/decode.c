/* SPDX-License-Identifier: MIT
 * Writes several texts at once with a small transformer. Each text is a sequence of a session: its keys and values are
 * in a slot of the caches. A request continues a sequence token by token, and each step runs in one batch with those of
 * the other texts. Then the same texts are written one at a time, with the same bits. The weights are random.
 *
 *   decode [DEVICE]
 *
 * Prints: 6 texts of 20 tokens, written at once and one at a time: all the same
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rondo/rondo.h>

#define TRY(call)                                  \
  do {                                             \
    const rondo_status try_status = (call);        \
    if (try_status != RONDO_OK) return try_status; \
  } while (0)

enum { VOCABULARY = 40, WIDTH = 32, HEADS = 2, CONTEXT = 64, TEXTS = 6, PROMPT = 7, TOKENS = 20 };

typedef struct text {
  int32_t tokens[CONTEXT], written[TOKENS]; /* tokens: the input of the next step */
  size_t count;
  float scores[VOCABULARY];
  const void *inputs[1];
  void *outputs[1];
  rondo_sequence sequence;
} text;

typedef struct writer {
  rondo_device *device;
  rondo_session *session;
  rondo_weights *weights;
  text at_once[TEXTS], one_by_one[TEXTS];
  size_t same;
} writer;

/* The network ----------------------------------------------------------------------------------------------------- */

static const char *const names[] = {"tokens_table", "places_table", "qkv", "out"};
static const size_t shapes[][2] = {{VOCABULARY, WIDTH}, {CONTEXT, WIDTH}, {WIDTH, 3 * WIDTH}, {WIDTH, VOCABULARY}};

/* For `rows` sequences, with `length` new tokens each. The session writes all inputs but the tokens. */
static rondo_status build(void *user, const rondo_model_size *size, rondo_program *program) {
  const size_t shape[] = {size->rows, size->length}, all[] = {size->rows * size->length, WIDTH};
  const size_t cache[] = {size->slots, HEADS, CONTEXT, WIDTH / HEADS};
  rondo_attention_options options = {RONDO_ATTENTION_OPTIONS_INIT};
  rondo_value states[4], tokens, positions, last, x, y;
  const rondo_value none = {0};
  (void)user;
  for (size_t i = 0; i < 4; i++) TRY(rondo_program_state(program, names[i], RONDO_F32, shapes[i], 2, &states[i]));
  TRY(rondo_program_state(program, "k_cache", RONDO_F32, cache, 4, &options.k_cache));
  TRY(rondo_program_state(program, "v_cache", RONDO_F32, cache, 4, &options.v_cache));
  TRY(rondo_program_input(program, "tokens", RONDO_I32, shape, 2, &tokens));
  TRY(rondo_program_input(program, "length", RONDO_I32, shape, 1, &options.new_rows));
  TRY(rondo_program_input(program, "slot", RONDO_I32, shape, 1, &options.block_table));
  TRY(rondo_program_input(program, "start", RONDO_I32, shape, 1, &options.lengths));
  TRY(rondo_program_input(program, "positions", RONDO_I32, shape, 2, &positions));
  TRY(rondo_program_input(program, "last", RONDO_I32, shape, 1, &last));
  TRY(rondo_op_reshape(program, options.block_table, (size_t[]){size->rows, 1}, 2, &options.block_table));
  TRY(rondo_op_embedding(program, states[0], tokens, &x));
  TRY(rondo_op_embedding(program, states[1], positions, &y));
  TRY(rondo_op_add(program, x, y, &x));
  TRY(rondo_op_matmul(program, x, states[2], none, &y));
  TRY(rondo_op_attention_packed(program, y, HEADS, HEADS, &options, &y));
  TRY(rondo_op_add(program, x, y, &x));
  TRY(rondo_op_reshape(program, x, all, 2, &x));
  TRY(rondo_op_index_select(program, x, last, 0, &x));
  TRY(rondo_op_matmul(program, x, states[3], none, &y));
  return rondo_program_output(program, "scores", y);
}

static rondo_status make_weights(writer *w) {
  static float values[WIDTH * 3 * WIDTH];
  uint32_t random = 1;
  TRY(rondo_weights_create(NULL, &w->weights));
  for (size_t i = 0; i < 4; i++) {
    const size_t count = shapes[i][0] * shapes[i][1];
    for (size_t j = 0; j < count; j++)
      values[j] = (float)((random = random * 1664525 + 1013904223) >> 8) / 0x1p24f - 0.5f;
    const rondo_weight weight = {.name = names[i],
                                 .type = RONDO_F32,
                                 .rank = 2,
                                 .shape = {shapes[i][0], shapes[i][1]},
                                 .data = values,
                                 .bytes = count * sizeof *values};
    TRY(rondo_weights_add(w->weights, &weight));
  }
  return RONDO_OK;
}

/* Steps of one token, and prompts of up to 8, each recorded with one row for each slot. */
static rondo_status start(writer *w) {
  static const size_t lengths[] = {1, 8}, history[] = {TEXTS};
  const rondo_session_options options = {RONDO_SESSION_OPTIONS_INIT, .streams = 1};
  const rondo_model_options model = {
      RONDO_MODEL_OPTIONS_INIT,
      .build_sized = build,
      .weights = w->weights,
      .lengths = lengths,
      .length_count = 2,
      .slots = TEXTS,
      .slot_positions = CONTEXT,
      .history = history,
      .history_count = 1,
      .max_sizes = 1,
      .max_batch_rows = 1,
      .row_inputs = {.length = "length", .slot = "slot", .start = "start", .positions = "positions", .last = "last"}};
  TRY(rondo_session_create(w->device, &options, &w->session));
  TRY(rondo_session_add_model(w->session, "writer", &model));
  return rondo_session_capture(w->session, "writer");
}

/* Texts ----------------------------------------------------------------------------------------------------------- */

/* The session calls it after each step. The likeliest token is the input of the next one. */
static size_t choose_token(void *user, const rondo_answer *answer) {
  text *t = user;
  int32_t best = 0;
  (void)answer;
  for (int32_t i = 1; i < VOCABULARY; i++)
    if (t->scores[i] > t->scores[best]) best = i;
  t->written[t->count++] = t->tokens[0] = best;
  return t->count < TOKENS ? 1 : 0;
}

static rondo_request begin(text *t, size_t number) {
  for (size_t i = 0; i < PROMPT; i++) t->tokens[i] = (int32_t)((number * 13 + i * 7) % VOCABULARY);
  t->inputs[0] = t->tokens;
  t->outputs[0] = t->scores;
  return (rondo_request){RONDO_REQUEST_INIT,
                         .mode = RONDO_RUN_RECORDED,
                         .rows = 1,
                         .length = PROMPT - number % 3,
                         .inputs = t->inputs,
                         .outputs = t->outputs,
                         .sequence = t->sequence,
                         .next = choose_token,
                         .user = t};
}

static rondo_status write_at_once(writer *w) {
  rondo_ticket tickets[TEXTS] = {{0}};
  rondo_status status = RONDO_OK;
  for (size_t i = 0; i < TEXTS && status == RONDO_OK; i++) {
    const rondo_request request = begin(&w->at_once[i], i);
    status = rondo_session_submit(w->session, "writer", &request, &tickets[i]);
  }
  for (size_t i = 0; i < TEXTS && tickets[i].session != NULL; i++) {
    const rondo_status waited = rondo_ticket_wait(tickets[i], NULL);
    if (status == RONDO_OK) status = waited;
  }
  return status;
}

static rondo_status write_one_by_one(writer *w) {
  for (size_t i = 0; i < TEXTS; i++) {
    const rondo_request request = begin(&w->one_by_one[i], i);
    TRY(rondo_session_run(w->session, "writer", &request, NULL));
  }
  return RONDO_OK;
}

static rondo_status open_sequences(writer *w, text *texts) {
  for (size_t i = 0; i < TEXTS; i++) TRY(rondo_sequence_open(w->session, "writer", &texts[i].sequence));
  return RONDO_OK;
}

static rondo_status close_sequences(const text *texts) {
  for (size_t i = 0; i < TEXTS; i++) TRY(rondo_sequence_close(texts[i].sequence));
  return RONDO_OK;
}

static rondo_status run(writer *w, const char *device) {
  TRY(rondo_device_open(device, NULL, &w->device));
  TRY(make_weights(w));
  TRY(start(w));
  TRY(open_sequences(w, w->at_once));
  TRY(write_at_once(w));
  TRY(close_sequences(w->at_once));
  TRY(open_sequences(w, w->one_by_one));
  TRY(write_one_by_one(w));
  TRY(close_sequences(w->one_by_one));
  for (size_t i = 0; i < TEXTS; i++)
    w->same += memcmp(w->at_once[i].written, w->one_by_one[i].written, sizeof w->at_once[i].written) == 0;
  return RONDO_OK;
}

int main(int argc, char **argv) {
  static writer w;
  const rondo_status status = run(&w, argc > 1 ? argv[1] : "cpu");
  if (status != RONDO_OK) fprintf(stderr, "decode: %s\n", rondo_last_error()->message);
  const rondo_status destroyed = rondo_session_destroy(w.session);
  rondo_weights_destroy(w.weights);
  const rondo_status closed = rondo_device_close(w.device);
  if (status != RONDO_OK || destroyed != RONDO_OK || closed != RONDO_OK) return EXIT_FAILURE;
  printf("%d texts of %d tokens, written at once and one at a time: %s\n", TEXTS, TOKENS,
         w.same == TEXTS ? "all the same" : "they differ");
  return w.same == TEXTS ? EXIT_SUCCESS : EXIT_FAILURE;
}
