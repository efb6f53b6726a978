/* SPDX-License-Identifier: MIT
 * Serves an encoder and a decoder, as translation has them (T5, Whisper). Each text is a sequence of a session. The
 * encoder reads the source of a sequence once, and writes keys and values of it to the sequence's slot; the steps of
 * the decoder read them by cross-attention. Sources and steps of different texts run in batches. Then the same texts
 * are written one at a time, with the same bits. The weights are random.
 *
 *   translate [DEVICE]
 *
 * As a shared object it is a model for Triton Inference Server (<rondo/triton.h>), whose requests have the inputs
 * `source` [1, length], for the first step, and `tokens` [1, 1].
 *
 * Prints: 4 texts of 12 tokens, written at once and one at a time: all the same
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rondo/rondo.h>
#include <rondo/triton.h>

#define TRY(call)                                  \
  do {                                             \
    const rondo_status try_status = (call);        \
    if (try_status != RONDO_OK) return try_status; \
  } while (0)

enum { VOCABULARY = 40, WIDTH = 32, SOURCE = 16, CONTEXT = 32, TEXTS = 4, TOKENS = 12, BEGIN = 0 };

typedef struct text {
  int32_t source[SOURCE], token, written[TOKENS]; /* token: the input of the next step */
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

/* The networks ---------------------------------------------------------------------------------------------------- */

enum { TABLE, ENCODE, KEYS, VALUES, DECODE, QUERIES, OUT, MATRICES };
static const struct {
  const char *name;
  size_t rows, columns;
} matrices[] = {{"tokens_table", VOCABULARY, WIDTH}, /* of both networks */
                {"encode_qkv", WIDTH, 3 * WIDTH},    {"cross_k", WIDTH, WIDTH}, {"cross_v", WIDTH, WIDTH},
                {"decode_qkv", WIDTH, 3 * WIDTH},    {"cross_q", WIDTH, WIDTH}, {"out", WIDTH, VOCABULARY}};

static rondo_status add_matrix(rondo_program *program, int which, rondo_value *out) {
  return rondo_program_state(program, matrices[which].name, RONDO_F32,
                             (size_t[]){matrices[which].rows, matrices[which].columns}, 2, out);
}

static rondo_status multiply(rondo_program *program, rondo_value x, int which, rondo_value *out) {
  rondo_value matrix;
  TRY(add_matrix(program, which, &matrix));
  return rondo_op_matmul(program, x, matrix, (rondo_value){0}, out);
}

/* [rows, length, WIDTH] times a matrix, as one head: [rows, 1, length, WIDTH]. */
static rondo_status add_head(rondo_program *program, const rondo_model_size *size, rondo_value x, int which,
                             rondo_value *out) {
  TRY(multiply(program, x, which, out));
  return rondo_op_reshape(program, *out, (size_t[]){size->rows, 1, size->length, WIDTH}, 4, out);
}

/* The slots as a block table: a slot is one block of the caches. */
static rondo_status add_slots(rondo_program *program, const rondo_model_size *size, rondo_value *out) {
  TRY(rondo_program_input(program, "slot", RONDO_I32, &size->rows, 1, out));
  return rondo_op_reshape(program, *out, (size_t[]){size->rows, 1}, 2, out);
}

static rondo_status add_caches(rondo_program *program, const char *k, const char *v, size_t slots, size_t positions,
                               rondo_attention_options *options) {
  const size_t shape[] = {slots, 1, positions, WIDTH};
  TRY(rondo_program_state(program, k, RONDO_F32, shape, 4, &options->k_cache));
  return rondo_program_state(program, v, RONDO_F32, shape, 4, &options->v_cache);
}

/* Attention within a text, added to x. */
static rondo_status add_self(rondo_program *program, int which, const rondo_attention_options *options,
                             rondo_value *inout_x) {
  rondo_value y;
  TRY(multiply(program, *inout_x, which, &y));
  TRY(rondo_op_attention_packed(program, y, 1, 1, options, &y));
  return rondo_op_add(program, *inout_x, y, inout_x);
}

/* The encoder, for `rows` sources of `length` tokens. */
static rondo_status build_encoder(void *user, const rondo_model_size *size, rondo_program *program) {
  rondo_attention_options within = {RONDO_ATTENTION_OPTIONS_INIT}, to = {RONDO_ATTENTION_OPTIONS_INIT};
  rondo_value tokens, table, x, k, v;
  (void)user;
  TRY(rondo_program_input(program, "source", RONDO_I32, (size_t[]){size->rows, size->length}, 2, &tokens));
  TRY(rondo_program_input(program, "length", RONDO_I32, &size->rows, 1, &within.lengths));
  TRY(add_matrix(program, TABLE, &table));
  TRY(rondo_op_embedding(program, table, tokens, &x));
  TRY(add_self(program, ENCODE, &within, &x));
  TRY(add_head(program, size, x, KEYS, &k));
  TRY(add_head(program, size, x, VALUES, &v));
  TRY(add_caches(program, "source_k", "source_v", size->slots, SOURCE, &to));
  TRY(add_slots(program, size, &to.block_table));
  to.new_rows = within.lengths;
  return rondo_op_attention_append(program, k, v, &to); /* to the slot, from its first position on */
}

/* The decoder, for `rows` sequences with `length` new tokens each. */
static rondo_status build_decoder(void *user, const rondo_model_size *size, rondo_program *program) {
  rondo_attention_options self = {RONDO_ATTENTION_OPTIONS_INIT}, cross = {RONDO_ATTENTION_OPTIONS_INIT};
  const size_t shape[] = {size->rows, size->length, WIDTH}, all[] = {size->rows * size->length, WIDTH};
  const rondo_value none = {0};
  rondo_value tokens, last, table, x, y;
  (void)user;
  TRY(rondo_program_input(program, "tokens", RONDO_I32, shape, 2, &tokens));
  TRY(rondo_program_input(program, "length", RONDO_I32, shape, 1, &self.new_rows));
  TRY(rondo_program_input(program, "start", RONDO_I32, shape, 1, &self.lengths));
  TRY(rondo_program_input(program, "source_length", RONDO_I32, shape, 1, &cross.lengths));
  TRY(rondo_program_input(program, "last", RONDO_I32, shape, 1, &last));
  TRY(add_slots(program, size, &self.block_table));
  TRY(add_caches(program, "k_cache", "v_cache", size->slots, CONTEXT, &self));
  TRY(add_caches(program, "source_k", "source_v", size->slots, SOURCE, &cross));
  TRY(add_matrix(program, TABLE, &table));
  TRY(rondo_op_embedding(program, table, tokens, &x));
  TRY(add_self(program, DECODE, &self, &x));
  TRY(add_head(program, size, x, QUERIES, &y));
  cross.new_rows = self.new_rows;
  cross.block_table = self.block_table;
  TRY(rondo_op_attention(program, y, none, none, &cross, &y)); /* reads the source */
  TRY(rondo_op_reshape(program, y, shape, 3, &y));
  TRY(rondo_op_add(program, x, y, &x));
  TRY(rondo_op_reshape(program, x, all, 2, &x));
  TRY(rondo_op_index_select(program, x, last, 0, &x));
  TRY(multiply(program, x, OUT, &y));
  return rondo_program_output(program, "scores", y);
}

static rondo_status make_weights(rondo_weights **out) {
  static float values[WIDTH * 3 * WIDTH];
  uint32_t random = 1;
  TRY(rondo_weights_create(NULL, out));
  for (size_t i = 0; i < MATRICES; i++) {
    const size_t count = matrices[i].rows * matrices[i].columns;
    for (size_t j = 0; j < count; j++)
      values[j] = (float)((random = random * 1664525 + 1013904223) >> 8) / 0x1p24f - 0.5f;
    const rondo_weight weight = {.name = matrices[i].name,
                                 .type = RONDO_F32,
                                 .rank = 2,
                                 .shape = {matrices[i].rows, matrices[i].columns},
                                 .data = values,
                                 .bytes = count * sizeof *values};
    TRY(rondo_weights_add(*out, &weight));
  }
  return RONDO_OK;
}

/* Both networks have one size: a row for each slot. */
static const size_t length = 1, source_length = SOURCE, history[] = {TEXTS};
static const rondo_model_options encoder = {RONDO_MODEL_OPTIONS_INIT,
                                            .build_sized = build_encoder,
                                            .lengths = &source_length,
                                            .length_count = 1,
                                            .history = history,
                                            .history_count = 1,
                                            .max_sizes = 1,
                                            .row_inputs = {.length = "length", .slot = "slot"}};

static rondo_model_options decoder_options(const rondo_weights *weights) {
  return (rondo_model_options){
      RONDO_MODEL_OPTIONS_INIT,
      .build_sized = build_decoder,
      .weights = weights, /* of both */
      .lengths = &length,
      .length_count = 1,
      .slots = TEXTS,
      .slot_positions = CONTEXT,
      .history = history,
      .history_count = 1,
      .max_sizes = 1,
      .row_inputs = {.length = "length", .slot = "slot", .start = "start", .source = "source_length", .last = "last"},
      .source = &encoder};
}

static rondo_status start(writer *w) {
  const rondo_session_options options = {RONDO_SESSION_OPTIONS_INIT, .streams = 1};
  const rondo_model_options decoder = decoder_options(w->weights);
  TRY(rondo_session_create(w->device, &options, &w->session));
  TRY(rondo_session_add_model(w->session, "translator", &decoder));
  return rondo_session_capture(w->session, "translator");
}

/* Texts ----------------------------------------------------------------------------------------------------------- */

static rondo_status read_source(writer *w, text *t, size_t number) {
  const void *inputs[] = {t->source};
  const rondo_request request = {RONDO_REQUEST_INIT, .mode = RONDO_RUN_RECORDED,
                                 .rows = 1,          .length = SOURCE - 3 * number,
                                 .inputs = inputs,   .sequence = t->sequence};
  for (size_t i = 0; i < SOURCE; i++) t->source[i] = (int32_t)((number * 13 + i * 7) % VOCABULARY);
  return rondo_session_run(w->session, "translator.source", &request, NULL);
}

/* The session calls it after each step. The likeliest token is the input of the next one. */
static size_t choose_token(void *user, const rondo_answer *answer) {
  text *t = user;
  int32_t best = 0;
  (void)answer;
  for (int32_t i = 1; i < VOCABULARY; i++)
    if (t->scores[i] > t->scores[best]) best = i;
  t->written[t->count++] = t->token = best;
  return t->count < TOKENS ? 1 : 0;
}

static rondo_request begin(text *t) {
  t->token = BEGIN;
  t->inputs[0] = &t->token;
  t->outputs[0] = t->scores;
  return (rondo_request){RONDO_REQUEST_INIT,
                         .mode = RONDO_RUN_RECORDED,
                         .rows = 1,
                         .length = 1,
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
    const rondo_request request = begin(&w->at_once[i]);
    status = rondo_session_submit(w->session, "translator", &request, &tickets[i]);
  }
  for (size_t i = 0; i < TEXTS && tickets[i].session != NULL; i++) {
    const rondo_status waited = rondo_ticket_wait(tickets[i], NULL);
    if (status == RONDO_OK) status = waited;
  }
  return status;
}

static rondo_status write_one_by_one(writer *w) {
  for (size_t i = 0; i < TEXTS; i++) {
    const rondo_request request = begin(&w->one_by_one[i]);
    TRY(rondo_session_run(w->session, "translator", &request, NULL));
  }
  return RONDO_OK;
}

static rondo_status open_texts(writer *w, text *texts) {
  for (size_t i = 0; i < TEXTS; i++) {
    TRY(rondo_sequence_open(w->session, "translator", &texts[i].sequence));
    TRY(read_source(w, &texts[i], i));
  }
  return RONDO_OK;
}

static rondo_status close_texts(const text *texts) {
  for (size_t i = 0; i < TEXTS; i++) TRY(rondo_sequence_close(texts[i].sequence));
  return RONDO_OK;
}

static rondo_status run(writer *w, const char *device) {
  TRY(rondo_device_open(device, NULL, &w->device));
  TRY(make_weights(&w->weights));
  TRY(start(w));
  TRY(open_texts(w, w->at_once));
  TRY(write_at_once(w));
  TRY(close_texts(w->at_once));
  TRY(open_texts(w, w->one_by_one));
  TRY(write_one_by_one(w));
  TRY(close_texts(w->one_by_one));
  for (size_t i = 0; i < TEXTS; i++)
    w->same += memcmp(w->at_once[i].written, w->one_by_one[i].written, sizeof w->at_once[i].written) == 0;
  return RONDO_OK;
}

/* A served model ------------------------------------------------------------------------------------------------- */

static void release(rondo_triton_description *description) { rondo_weights_destroy(description->user); }

rondo_status rondo_triton_model(const char *folder, rondo_triton_description *out) {
  rondo_weights *weights;
  (void)folder;
  TRY(make_weights(&weights));
  out->model = decoder_options(weights);
  out->release = release;
  out->user = weights;
  return RONDO_OK;
}

int main(int argc, char **argv) {
  static writer w;
  const rondo_status status = run(&w, argc > 1 ? argv[1] : "cpu");
  if (status != RONDO_OK) fprintf(stderr, "translate: %s\n", rondo_last_error()->message);
  const rondo_status destroyed = rondo_session_destroy(w.session);
  rondo_weights_destroy(w.weights);
  const rondo_status closed = rondo_device_close(w.device);
  if (status != RONDO_OK || destroyed != RONDO_OK || closed != RONDO_OK) return EXIT_FAILURE;
  printf("%d texts of %d tokens, written at once and one at a time: %s\n", TEXTS, TOKENS,
         w.same == TEXTS ? "all the same" : "they differ");
  return w.same == TEXTS ? EXIT_SUCCESS : EXIT_FAILURE;
}
