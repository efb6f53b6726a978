/* SPDX-License-Identifier: MIT
 * Sequences with sources (PR-5): an encoder writes keys and values to a slot, and the steps of a decoder read them by
 * cross-attention. The same as one program over both texts, the same bits as one sequence alone, and what is refused.
 */
#include <string.h>

#include "support/rondo_test.h"
#include "support/test_program.h"
#include "support/test_session.h"

enum { VOCABULARY = 20, WIDTH = 32, HEADS = 2, HEAD = WIDTH / HEADS, CONTEXT = 24, SOURCE = 16, SLOTS = 4, STEPS = 8 };

static const rondo_value none = {0};
static const size_t lengths[] = {1, 4}, source_lengths[] = {4, SOURCE};

/* The networks ----------------------------------------------------------------------------------------------------- */

static const struct {
  const char *name;
  size_t rows, columns;
} parameters[] = {{"tokens_table", VOCABULARY, WIDTH}, /* of both networks, as in T5 */
                  {"encoder.qkv", WIDTH, 3 * WIDTH},   {"encoder.join", WIDTH, WIDTH}, {"cross.k", WIDTH, WIDTH},
                  {"cross.v", WIDTH, WIDTH},           {"qkv", WIDTH, 3 * WIDTH},      {"join", WIDTH, WIDTH},
                  {"cross.q", WIDTH, WIDTH},           {"cross.join", WIDTH, WIDTH},   {"head", WIDTH, VOCABULARY}};
enum { TOKENS, ENCODER_QKV, ENCODER_JOIN, CROSS_K, CROSS_V, QKV, JOIN, CROSS_Q, CROSS_JOIN, HEAD_OF, PARAMETERS };

static rondo_status add_state(rondo_program *program, int which, rondo_value *out) {
  return rondo_program_state(program, parameters[which].name, RONDO_F32,
                             (size_t[]){parameters[which].rows, parameters[which].columns}, 2, out);
}

static rondo_status multiply(rondo_program *program, rondo_value x, int which, rondo_value *out) {
  rondo_value w;
  TRY(add_state(program, which, &w));
  return rondo_op_matmul(program, x, w, none, out);
}

/* x [rows, length, WIDTH] times a matrix, by heads: [rows, HEADS, length, HEAD]. */
static rondo_status add_heads(rondo_program *program, const rondo_model_size *size, rondo_value x, int which,
                              rondo_value *out) {
  const size_t shape[] = {size->rows, size->length, HEADS, HEAD}, order[] = {0, 2, 1, 3};
  TRY(multiply(program, x, which, out));
  TRY(rondo_op_reshape(program, *out, shape, 4, out));
  return rondo_op_permute(program, *out, order, out);
}

static rondo_status join_heads(rondo_program *program, const rondo_model_size *size, rondo_value y, int which,
                               rondo_value *inout_x) {
  const size_t shape[] = {size->rows, size->length, WIDTH}, order[] = {0, 2, 1, 3};
  TRY(rondo_op_permute(program, y, order, &y));
  TRY(rondo_op_reshape(program, y, shape, 3, &y));
  TRY(multiply(program, y, which, &y));
  return rondo_op_add(program, *inout_x, y, inout_x);
}

static rondo_status add_self(rondo_program *program, int qkv_of, int join_of, const rondo_attention_options *options,
                             rondo_value *inout_x) {
  rondo_value qkv, y;
  TRY(multiply(program, *inout_x, qkv_of, &qkv));
  TRY(rondo_op_attention_packed(program, qkv, HEADS, HEADS, options, &y));
  TRY(multiply(program, y, join_of, &y));
  return rondo_op_add(program, *inout_x, y, inout_x);
}

/* Of a table that is declared here. */
static rondo_status embed(rondo_program *program, rondo_value tokens, rondo_value *out_table, rondo_value *out) {
  TRY(add_state(program, TOKENS, out_table));
  return rondo_op_embedding(program, *out_table, tokens, out);
}

static rondo_status add_cross_caches(rondo_program *program, size_t slots, rondo_attention_options *options) {
  const size_t shape[] = {slots, HEADS, SOURCE, HEAD};
  TRY(rondo_program_state(program, "cross.k_cache", RONDO_F32, shape, 4, &options->k_cache));
  return rondo_program_state(program, "cross.v_cache", RONDO_F32, shape, 4, &options->v_cache);
}

static rondo_status add_slots(rondo_program *program, const rondo_model_size *size, rondo_value *out) {
  TRY(rondo_program_input(program, "slot", RONDO_I32, &size->rows, 1, out));
  return rondo_op_reshape(program, *out, (size_t[]){size->rows, 1}, 2, out);
}

/* The encoder: attention within the source, then keys and values of it for the slot. */
static rondo_status build_source(void *user, const rondo_model_size *size, rondo_program *program) {
  rondo_attention_options within = {RONDO_ATTENTION_OPTIONS_INIT}, to = {RONDO_ATTENTION_OPTIONS_INIT};
  rondo_value tokens, table, x, k, v;
  (void)user;
  TRY(rondo_program_input(program, "source", RONDO_I32, (size_t[]){size->rows, size->length}, 2, &tokens));
  TRY(rondo_program_input(program, "length", RONDO_I32, &size->rows, 1, &to.new_rows));
  TRY(add_slots(program, size, &to.block_table));
  TRY(embed(program, tokens, &table, &x));
  within.lengths = to.new_rows;
  TRY(add_self(program, ENCODER_QKV, ENCODER_JOIN, &within, &x));
  TRY(add_heads(program, size, x, CROSS_K, &k));
  TRY(add_heads(program, size, x, CROSS_V, &v));
  TRY(add_cross_caches(program, size->slots, &to));
  return rondo_op_attention_append(program, k, v, &to);
}

static rondo_status add_head(rondo_program *program, const rondo_model_size *size, rondo_value x, rondo_value *out) {
  TRY(multiply(program, x, HEAD_OF, out));
  return rondo_op_reshape(program, *out, (size_t[]){size->rows * size->length, VOCABULARY}, 2, out);
}

static rondo_status build_steps(void *user, const rondo_model_size *size, rondo_program *program) {
  const size_t cache[] = {size->slots, HEADS, CONTEXT, HEAD};
  rondo_attention_options self = {RONDO_ATTENTION_OPTIONS_INIT}, cross = {RONDO_ATTENTION_OPTIONS_INIT};
  rondo_value tokens, last, table, x, q, y;
  (void)user;
  TRY(rondo_program_state(program, "k_cache", RONDO_F32, cache, 4, &self.k_cache));
  TRY(rondo_program_state(program, "v_cache", RONDO_F32, cache, 4, &self.v_cache));
  TRY(add_cross_caches(program, size->slots, &cross));
  TRY(rondo_program_input(program, "tokens", RONDO_I32, (size_t[]){size->rows, size->length}, 2, &tokens));
  TRY(rondo_program_input(program, "length", RONDO_I32, &size->rows, 1, &self.new_rows));
  TRY(rondo_program_input(program, "start", RONDO_I32, &size->rows, 1, &self.lengths));
  TRY(rondo_program_input(program, "source_length", RONDO_I32, &size->rows, 1, &cross.lengths));
  TRY(rondo_program_input(program, "last", RONDO_I32, &size->rows, 1, &last));
  TRY(add_slots(program, size, &self.block_table));
  cross.block_table = self.block_table;
  cross.new_rows = self.new_rows;
  TRY(embed(program, tokens, &table, &x));
  TRY(add_self(program, QKV, JOIN, &self, &x));
  TRY(add_heads(program, size, x, CROSS_Q, &q));
  TRY(rondo_op_attention(program, q, none, none, &cross, &y));
  TRY(join_heads(program, size, y, CROSS_JOIN, &x));
  TRY(add_head(program, size, x, &y));
  TRY(rondo_op_index_select(program, y, last, 0, &y));
  return rondo_program_output(program, "logits", y);
}

static rondo_weights *make_weights(void) {
  static float values[WIDTH * 3 * WIDTH];
  rondo_weights *weights = NULL;
  uint64_t random = 5;
  assert_ok(rondo_weights_create(NULL, &weights));
  for (size_t p = 0; p < PARAMETERS; p++) {
    const size_t count = parameters[p].rows * parameters[p].columns;
    for (size_t i = 0; i < count; i++) values[i] = ((float)test_random_below(&random, 2001) - 1000) / 2000;
    const rondo_weight weight = {.name = parameters[p].name,
                                 .type = RONDO_F32,
                                 .rank = 2,
                                 .shape = {parameters[p].rows, parameters[p].columns},
                                 .data = values,
                                 .bytes = count * sizeof *values};
    assert_ok(rondo_weights_add(weights, &weight));
  }
  return weights;
}

static rondo_model_options source_options(void) {
  return (rondo_model_options){RONDO_MODEL_OPTIONS_INIT, .build_sized = build_source, .lengths = source_lengths,
                               .length_count = 2, .row_inputs = {.length = "length", .slot = "slot"}};
}

static rondo_model_options step_options(const rondo_model_options *source) {
  return (rondo_model_options){
      RONDO_MODEL_OPTIONS_INIT,
      .build_sized = build_steps,
      .lengths = lengths,
      .length_count = 2,
      .slots = SLOTS,
      .slot_positions = CONTEXT,
      .row_inputs = {.length = "length", .slot = "slot", .start = "start", .source = "source_length", .last = "last"},
      .source = source};
}

/* One graph of SLOTS rows for each length of both networks. */
static rondo_session *open_session(test_fixture *t, uint32_t streams) {
  rondo_session *session = test_session_open(t->device, (rondo_session_options){.streams = streams});
  rondo_weights *weights = make_weights();
  const rondo_model_options source = source_options();
  rondo_model_options options = step_options(&source);
  options.weights = weights;
  assert_ok(rondo_session_add_model(session, "t5", &options));
  rondo_weights_destroy(weights);
  const int32_t token = 0;
  assert_ok(rondo_session_capture_begin(session, "t5"));
  for (size_t i = 0; i < 4; i++) {
    const rondo_request request = {RONDO_REQUEST_INIT, .rows = SLOTS,
                                   .length = i < 2 ? lengths[i] : source_lengths[i - 2],
                                   .inputs = (const void *[]){&token}};
    assert_ok(rondo_session_run(session, i < 2 ? "t5" : "t5.source", &request, NULL));
  }
  assert_ok(rondo_session_capture_end(session));
  return session;
}

/* Texts ------------------------------------------------------------------------------------------------------------ */

typedef struct text {
  int32_t source[SOURCE], tokens[CONTEXT], input[CONTEXT];
  size_t source_length, prompt, count;
  float scores[VOCABULARY], logits[STEPS + 1][VOCABULARY]; /* logits: after the prompt and after each token */
  const void *inputs[1];
  void *outputs[1];
  rondo_request request;
} text;

static size_t write_next(void *user, const rondo_answer *answer) {
  text *t = user;
  int32_t best = 0;
  memcpy(t->logits[answer->steps - 1], t->scores, sizeof t->scores);
  if (answer->steps > STEPS) return 0;
  for (int32_t i = 1; i < VOCABULARY; i++)
    if (t->scores[i] > t->scores[best]) best = i;
  t->input[0] = t->tokens[t->count++] = best;
  return 1;
}

static rondo_status read_source(text *t, rondo_session *session) {
  const void *inputs[] = {t->source};
  const rondo_request request = {RONDO_REQUEST_INIT, .mode = RONDO_RUN_RECORDED,
                                 .rows = 1,          .length = t->source_length,
                                 .inputs = inputs,   .sequence = t->request.sequence};
  return rondo_session_run(session, "t5.source", &request, NULL);
}

static void begin_text(text *t, rondo_session *session, size_t number) {
  uint64_t random = number + 1;
  *t = (text){.source_length = 1 + 4 * number, .prompt = 1 + 2 * number};
  t->count = t->prompt;
  for (size_t i = 0; i < t->source_length; i++) t->source[i] = (int32_t)test_random_below(&random, VOCABULARY);
  for (size_t i = 0; i < t->prompt; i++) t->input[i] = t->tokens[i] = (int32_t)test_random_below(&random, VOCABULARY);
  t->inputs[0] = t->input;
  t->outputs[0] = t->scores;
  t->request = (rondo_request){RONDO_REQUEST_INIT,  .mode = RONDO_RUN_RECORDED, .rows = 1,          .length = t->prompt,
                               .inputs = t->inputs, .outputs = t->outputs,      .next = write_next, .user = t};
  assert_ok(rondo_sequence_open(session, "t5", &t->request.sequence));
  assert_ok(read_source(t, session));
}

static void begin_texts(text *texts, rondo_session *session) {
  for (size_t i = 0; i < SLOTS; i++) begin_text(&texts[i], session, i);
}

static void end_texts(const text *texts) {
  for (size_t i = 0; i < SLOTS; i++) assert_ok(rondo_sequence_close(texts[i].request.sequence));
}

static void write_together(text *texts, rondo_session *session) {
  rondo_ticket tickets[SLOTS];
  begin_texts(texts, session);
  for (size_t i = 0; i < SLOTS; i++) assert_ok(rondo_session_submit(session, "t5", &texts[i].request, &tickets[i]));
  for (size_t i = 0; i < SLOTS; i++) assert_ok(rondo_ticket_wait(tickets[i], NULL));
  end_texts(texts);
}

static void compare_with_alone(test_fixture *t, uint32_t streams) {
  static text texts[SLOTS], alone[SLOTS];
  rondo_session *session = open_session(t, streams);
  for (int round = 0; round < 2; round++) write_together(texts, session); /* the second time in used slots */
  begin_texts(alone, session);
  for (size_t i = 0; i < SLOTS; i++) {
    assert_ok(rondo_session_run(session, "t5", &alone[i].request, NULL));
    assert_int_equal(alone[i].count, alone[i].prompt + STEPS);
    assert_memory_equal(alone[i].tokens, texts[i].tokens, sizeof texts[i].tokens);
    assert_memory_equal(alone[i].logits, texts[i].logits, sizeof texts[i].logits);
  }
  end_texts(alone);
}

TEST(test_pr5_sources_have_the_same_bits_as_one_sequence_alone) { compare_with_alone(t, 1); }

TEST(test_pr5_sources_have_the_same_bits_on_several_streams) { compare_with_alone(t, 3); }

/* Both networks over whole texts, without caches. */
static rondo_program *make_whole(const text *of) {
  const rondo_model_size source = {.rows = 1, .length = of->source_length}, target = {.rows = 1, .length = of->count};
  const rondo_attention_options causal = {RONDO_ATTENTION_OPTIONS_INIT, .causal = true};
  rondo_program *program = NULL;
  rondo_value tokens, table, x, k, v, q, y;
  assert_ok(rondo_program_create(NULL, &program));
  assert_ok(rondo_program_input(program, "source", RONDO_I32, (size_t[]){1, source.length}, 2, &tokens));
  assert_ok(embed(program, tokens, &table, &x));
  assert_ok(add_self(program, ENCODER_QKV, ENCODER_JOIN, NULL, &x));
  assert_ok(add_heads(program, &source, x, CROSS_K, &k));
  assert_ok(add_heads(program, &source, x, CROSS_V, &v));
  assert_ok(rondo_program_input(program, "tokens", RONDO_I32, (size_t[]){1, target.length}, 2, &tokens));
  assert_ok(rondo_op_embedding(program, table, tokens, &x));
  assert_ok(add_self(program, QKV, JOIN, &causal, &x));
  assert_ok(add_heads(program, &target, x, CROSS_Q, &q));
  assert_ok(rondo_op_attention(program, q, k, v, NULL, &y));
  assert_ok(join_heads(program, &target, y, CROSS_JOIN, &x));
  assert_ok(add_head(program, &target, x, &y));
  assert_ok(rondo_program_output(program, "logits", y));
  return program;
}

TEST(test_pr5_a_source_and_steps_are_as_whole_texts) {
  static text written;
  static float all[CONTEXT * VOCABULARY];
  rondo_session *session = open_session(t, 1);
  begin_text(&written, session, 3);
  assert_ok(rondo_session_run(session, "t5", &written.request, NULL));
  assert_ok(rondo_sequence_close(written.request.sequence));
  rondo_compiled *compiled = test_compile(make_whole(&written), t->device, NULL);
  rondo_weights *weights = make_weights();
  assert_ok(rondo_weights_apply(weights, compiled, NULL, NULL));
  rondo_weights_destroy(weights);
  assert_ok(rondo_compiled_write(compiled, "source", written.source, written.source_length * sizeof(int32_t)));
  assert_ok(rondo_compiled_write(compiled, "tokens", written.tokens, written.count * sizeof(int32_t)));
  assert_ok(rondo_compiled_run(compiled));
  assert_ok(rondo_compiled_read(compiled, "logits", all, written.count * VOCABULARY * sizeof(float)));
  for (size_t i = 0; i <= STEPS; i++)
    assert_near(written.logits[i], all + (written.prompt - 1 + i) * VOCABULARY, VOCABULARY, 1e-4f);
}

/* States ----------------------------------------------------------------------------------------------------------- */

static rondo_sequence_info info_of(rondo_sequence sequence) {
  rondo_sequence_info info = {.struct_size = sizeof info};
  assert_ok(rondo_sequence_get_info(sequence, &info));
  return info;
}

TEST(test_pr5_a_sequence_needs_a_source) {
  static text first, other;
  rondo_session *session = open_session(t, 1);
  begin_text(&first, session, 2);
  assert_int_equal(info_of(first.request.sequence).source_positions, 9);
  assert_int_equal(info_of(first.request.sequence).positions, 0);
  assert_ok(rondo_session_run(session, "t5", &first.request, NULL));
  assert_ok(rondo_sequence_close(first.request.sequence));
  other = first;
  assert_ok(rondo_sequence_open(session, "t5", &other.request.sequence)); /* in the same slot */
  assert_int_equal(info_of(other.request.sequence).source_positions, 0);
  assert_error(rondo_session_run(session, "t5", &other.request, NULL), RONDO_INVALID_STATE, RONDO_REASON_CALL_ORDER);
  assert_message("run 't5.source' with it first");
  assert_ok(read_source(&other, session));
  other.source_length = 4; /* another source replaces it */
  assert_ok(read_source(&other, session));
  assert_int_equal(info_of(other.request.sequence).source_positions, 4);
  assert_ok(rondo_sequence_close(other.request.sequence));
}

TEST(test_pr5_names_of_a_source) {
  rondo_session *session = open_session(t, 1);
  rondo_model_length length = {.struct_size = sizeof length};
  assert_ok(rondo_session_get_length(session, "t5.source", 1, &length));
  assert_int_equal(length.length, SOURCE);
  assert_string_equal(length.name, "t5.source[16]");
  assert_error(rondo_session_get_length(session, "t5", 2, &length), RONDO_NOT_FOUND, RONDO_REASON_OUT_OF_RANGE);
  assert_error(rondo_session_remove_model(session, "t5.source"), RONDO_NOT_FOUND, RONDO_REASON_UNKNOWN_NAME);
  assert_message("'t5.source' is the source of model 't5'");
  assert_int_equal(test_model_info(session, "t5.source").graphs, 1);
  assert_ok(rondo_session_destroy_graphs(session, "t5.source"));
  assert_int_equal(test_model_info(session, "t5.source[16]").graphs, 0);
  assert_int_equal(test_model_info(session, "t5").graphs, 1);
  assert_ok(rondo_session_capture(session, "t5.source")); /* alone: one request at a time */
  assert_ok(rondo_session_destroy_graphs(session, "t5"));
  assert_int_equal(test_model_info(session, "t5.source").graphs, 0);
  assert_ok(rondo_session_capture(session, "t5")); /* both */
  assert_true(test_model_info(session, "t5.source").graphs > 0);
  float matrix[WIDTH * WIDTH] = {0};
  assert_ok(rondo_session_write(session, "t5", "cross.k", matrix, sizeof matrix)); /* of the encoder alone */
  assert_ok(rondo_session_remove_model(session, "t5"));
  assert_error(rondo_session_get_length(session, "t5.source", 0, &length), RONDO_NOT_FOUND, RONDO_REASON_UNKNOWN_NAME);
}

/* Refusals --------------------------------------------------------------------------------------------------------- */

TEST(test_pr5_requests_for_sources_that_are_refused) {
  static text one;
  rondo_session *session = open_session(t, 1);
  begin_text(&one, session, 1);
  const void *inputs[] = {one.source};
  rondo_request request = {RONDO_REQUEST_INIT, .rows = 1, .length = SOURCE + 1, .inputs = inputs,
                           .sequence = one.request.sequence};
  assert_error(rondo_session_run(session, "t5.source", &request, NULL), RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE);
  assert_message("whose longest is 16");
  request.length = 3;
  request.next = write_next;
  assert_error(rondo_session_run(session, "t5.source", &request, NULL), RONDO_INVALID_ARGUMENT,
               RONDO_REASON_BAD_OPTIONS);
  request.next = NULL;
  request.sequence = (rondo_sequence){.session = NULL};
  assert_error(rondo_session_run(session, "t5.source", &request, NULL), RONDO_INVALID_ARGUMENT,
               RONDO_REASON_NULL_ARGUMENT);
  assert_int_equal(info_of(one.request.sequence).source_positions, one.source_length);
  assert_ok(rondo_session_run(session, "t5", &one.request, NULL));
  assert_ok(rondo_sequence_close(one.request.sequence));
}

static void assert_model_refused(test_fixture *t, const rondo_model_options *options, rondo_reason reason,
                                 const char *said) {
  rondo_session *session = test_session_open(t->device, (rondo_session_options){.streams = 1});
  assert_error(rondo_session_add_model(session, "t5", options), RONDO_INVALID_ARGUMENT, reason);
  assert_message(said);
}

/* The caches of the steps alone. */
static rondo_status build_deaf_steps(void *user, const rondo_model_size *size, rondo_program *program) {
  const size_t cache[] = {size->slots, 1};
  rondo_value kept, tokens, slot, length, x;
  (void)user;
  TRY(rondo_program_state(program, "kept", RONDO_F32, cache, 2, &kept));
  TRY(rondo_program_input(program, "tokens", RONDO_I32, (size_t[]){size->rows, size->length}, 2, &tokens));
  TRY(rondo_program_input(program, "slot", RONDO_I32, &size->rows, 1, &slot));
  TRY(rondo_program_input(program, "length", RONDO_I32, &size->rows, 1, &length));
  TRY(rondo_op_embedding(program, kept, slot, &x));
  return rondo_program_output(program, "y", x);
}

static rondo_status build_idle_source(void *user, const rondo_model_size *size, rondo_program *program) {
  rondo_value tokens, slot, length;
  (void)user;
  TRY(rondo_program_input(program, "source", RONDO_I32, (size_t[]){size->rows, size->length}, 2, &tokens));
  TRY(rondo_program_input(program, "slot", RONDO_I32, &size->rows, 1, &slot));
  TRY(rondo_program_input(program, "length", RONDO_I32, &size->rows, 1, &length));
  return rondo_program_output(program, "y", length);
}

TEST(test_pr5_sources_that_are_refused) {
  rondo_model_options source = source_options(), options = step_options(&source);
  options.source = NULL;
  assert_model_refused(t, &options, RONDO_REASON_BAD_OPTIONS, "the row input `source` needs a network");
  options = step_options(&source);
  source.slots = 2;
  source.slot_positions = SOURCE;
  assert_model_refused(t, &options, RONDO_REASON_BAD_OPTIONS, "leave them out of the options of its source");
  source = source_options();
  source.row_inputs.slot = NULL;
  assert_model_refused(t, &options, RONDO_REASON_BAD_OPTIONS, "the options of the source need the inputs");
  source = source_options();
  source.build_sized = build_idle_source;
  assert_model_refused(t, &options, RONDO_REASON_SHAPE, "it must write to caches that model 't5[1]' reads");
  source = source_options();
  options.build_sized = build_deaf_steps;
  options.row_inputs = (rondo_row_inputs){.length = "length", .slot = "slot"};
  assert_model_refused(t, &options, RONDO_REASON_SHAPE, "and model 't5[1]' has no such cache to read");
  options = step_options(&source);
  options.slots = options.slot_positions = 0;
  assert_model_refused(t, &options, RONDO_REASON_BAD_OPTIONS, "a model with a source needs slots");
}
