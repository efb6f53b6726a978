/* SPDX-License-Identifier: MIT
 * Sequences in the backend of Triton Inference Server, with a server in memory: a small GPT as `rondo train --save`
 * writes it, whose steps are requests with correlation ids, or which generates tokens for one request; and the encoder
 * and decoder of examples/translate.c (TS-4). Each call of the server fails once, and so do allocations (TS-6).
 */
#define _POSIX_C_SOURCE 200809L
#include <dlfcn.h>
#include <math.h>
#include <rondo/session.h>
#include <rondo/triton.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake_triton/triton_test.h"
#include "support/rondo_test.h"

enum { CONTEXT = 16, WIDTH = 8, TOKENS = 5, START = TRITON_SEQUENCE_START, END = TRITON_SEQUENCE_END };

/* The model -------------------------------------------------------------------------------------------------------- */

static void add_random(rondo_weights *weights, const char *name, size_t rows, size_t columns, unsigned *random) {
  float values[4 * WIDTH * WIDTH];
  for (size_t i = 0; i < rows * (columns == 0 ? 1 : columns); i++) {
    *random = *random * 1664525u + 1013904223u;
    values[i] = (float)(*random >> 16) / 32768 - 1;
  }
  add_weight(weights, name, rows, columns, values);
}

static void save_gpt(void) {
  static const char *const metadata[][2] = {{"format", "rondo-byte-gpt"},
                                            {"version", "1"},
                                            {"context", "16"},
                                            {"layers", "1"},
                                            {"width", "8"},
                                            {"heads", "2"},
                                            {"vocabulary", "6162636465"},
                                            {"opening", "61616161616161616161616161616161"}};
  static const struct {
    const char *name;
    size_t rows, columns;
  } parameters[] = {{"tokens.embedding", TOKENS, WIDTH},
                    {"places.embedding", CONTEXT, WIDTH},
                    {"block0.norm1.scale", WIDTH, 0},
                    {"block0.norm1.shift", WIDTH, 0},
                    {"block0.qkv.weight", WIDTH, 3 * WIDTH},
                    {"block0.qkv.bias", 3 * WIDTH, 0},
                    {"block0.join.weight", WIDTH, WIDTH},
                    {"block0.join.bias", WIDTH, 0},
                    {"block0.norm2.scale", WIDTH, 0},
                    {"block0.norm2.shift", WIDTH, 0},
                    {"block0.hidden.weight", WIDTH, 4 * WIDTH},
                    {"block0.hidden.bias", 4 * WIDTH, 0},
                    {"block0.output.weight", 4 * WIDTH, WIDTH},
                    {"block0.output.bias", WIDTH, 0},
                    {"norm.scale", WIDTH, 0},
                    {"norm.shift", WIDTH, 0},
                    {"head.weight", WIDTH, TOKENS}};
  unsigned random = 3;
  char path[128];
  rondo_weights *weights;
  (void)snprintf(path, sizeof path, "%s/1/model.safetensors", repository);
  assert_ok(rondo_weights_create(NULL, &weights));
  for (size_t i = 0; i < sizeof metadata / sizeof *metadata; i++)
    assert_ok(rondo_weights_set_metadata(weights, metadata[i][0], metadata[i][1]));
  for (size_t i = 0; i < sizeof parameters / sizeof *parameters; i++)
    add_random(weights, parameters[i].name, parameters[i].rows, parameters[i].columns, &random);
  assert_ok(rondo_weights_save(weights, path));
  rondo_weights_destroy(weights);
}

static void load(const char *config) {
  make_repository();
  save_gpt();
  load_model(config);
}

#define SLOTS(count, more)                                                                                  \
  "{\"model_transaction_policy\":{\"decoupled\":true},\"parameters\":{\"slots\":{\"string_value\":\"" count \
  "\"},"                                                                                                    \
  "\"max_sizes\":{\"string_value\":\"2\"}" more "}}"
#define PARAMETER(key, text) ",\"" key "\":{\"string_value\":\"" text "\"}"

/* Requests --------------------------------------------------------------------------------------------------------- */

static int64_t seed;
static float temperature;

/* A step of a sequence, or a prompt. */
static void make_request(triton_request *request, uint64_t correlation, uint32_t flags, const int32_t *tokens,
                         size_t count) {
  *request = (triton_request){
      .input_count = 3, .output_count = 1, .outputs = {"token"}, .correlation = correlation, .flags = flags};
  request->inputs[0] = (triton_input){.name = "tokens",
                                      .type = TRITON_TYPE_INT32,
                                      .shape = {1, (int64_t)count},
                                      .rank = 2,
                                      .pieces = 1,
                                      .bytes = count * sizeof *tokens,
                                      .data = tokens};
  request->inputs[1] = (triton_input){.name = "seed",
                                      .type = TRITON_TYPE_INT64,
                                      .shape = {1, 1},
                                      .rank = 2,
                                      .pieces = 1,
                                      .bytes = sizeof seed,
                                      .data = &seed};
  request->inputs[2] = (triton_input){.name = "temperature",
                                      .type = TRITON_TYPE_FP32,
                                      .shape = {1, 1},
                                      .rank = 2,
                                      .pieces = 1,
                                      .bytes = sizeof temperature,
                                      .data = &temperature};
}

static void add_parameter(triton_request *request, const char *key, const int64_t *value) {
  request->parameters[request->parameter_count++] = (fake_parameter){key, TRITON_PARAMETER_INT, value};
}

static const int64_t many = 100;

static void make_generation(triton_request *request, const int32_t *prompt, size_t count, const int64_t *max_tokens) {
  make_request(request, 0, 0, prompt, count);
  add_parameter(request, "max_tokens", max_tokens);
}

/* Sends it without waiting. */
static void send(triton_request *request) {
  assert_loaded(TRITONBACKEND_ModelInstanceExecute(&instances[0], &request, 1));
}

static int32_t ask(uint64_t correlation, uint32_t flags, const int32_t *tokens, size_t count) {
  triton_request request;
  make_request(&request, correlation, flags, tokens, count);
  execute(&request);
  if (request.has_error) fail_msg("%s", request.message);
  assert_int_equal(request.token_count, 1);
  return request.tokens[0];
}

/* The most likely tokens after a prompt, by scores of the whole text each time; as many as the context has. */
static size_t write_on(const int32_t *prompt, size_t count, int32_t *out) {
  int32_t text[CONTEXT + 1] = {0};
  size_t written = 0;
  memcpy(text, prompt, count * sizeof *prompt);
  load(SLOTS("0", ""));
  for (; count <= CONTEXT; count++) {
    triton_request request;
    size_t best = 0;
    make_request(&request, 0, 0, text, CONTEXT);
    request.input_count = 1;
    request.outputs[0] = "logits";
    execute(&request);
    assert_false(request.has_error);
    const float *scores = (const float *)(const void *)request.answer[0].data + (count - 1) * TOKENS;
    for (size_t i = 1; i < TOKENS; i++) best = scores[i] > scores[best] ? i : best;
    text[count] = out[written++] = (int32_t)best;
  }
  unload();
  return written;
}

/* Tests ------------------------------------------------------------------------------------------------------------ */

UNIT_TEST(test_ts4_the_length_is_any) {
  load(SLOTS("2", ""));
  assert_string_equal(
      model.completion,
      "{\"max_batch_size\":2,\"input\":[{\"name\":\"tokens\",\"data_type\":\"TYPE_INT32\",\"dims\":[-1]},"
      "{\"name\":\"seed\",\"data_type\":\"TYPE_INT64\",\"dims\":[1]},"
      "{\"name\":\"temperature\",\"data_type\":\"TYPE_FP32\",\"dims\":[1]}],"
      "\"output\":[{\"name\":\"token\",\"data_type\":\"TYPE_INT32\",\"dims\":[1]}]}");
  unload();
}

/* By requests for each step, and by one request for all of them. */
UNIT_TEST(test_ts4_steps_and_generation_are_those_of_the_model) {
  static const int32_t prompt[] = {0, 3, 1};
  int32_t expected[CONTEXT];
  const size_t count = write_on(prompt, 3, expected);
  assert_int_equal(count, CONTEXT - 3 + 1);
  load(SLOTS("3", ""));
  for (uint64_t way = 0; way < 2; way++) { /* with both at once */
    triton_request generation;
    make_generation(&generation, prompt, 3, &many);
    send(&generation);
    int32_t token = ask(7 + way, START, prompt, 3);
    for (size_t i = 0; i < count; i++) {
      assert_int_equal(token, expected[i]);
      if (i + 1 < count) token = ask(7 + way, i + 2 == count ? END : 0, &token, 1);
    }
    await_release(&generation);
    assert_false(generation.has_error);
    assert_int_equal(generation.token_count, count);
    assert_int_equal(atomic_load(&generation.finals), 1);
    assert_memory_equal(generation.tokens, expected, count * sizeof *expected);
  }
  unload();
}

/* More texts than slots wait for each other, and steps of one sequence that are sent together run in their order. */
UNIT_TEST(test_ts4_requests_wait_for_slots) {
  enum { TEXTS = 24 };
  static triton_request requests[TEXTS];
  static int32_t prompts[TEXTS][2], expected[TOKENS][CONTEXT];
  for (int32_t i = 0; i < TOKENS; i++) (void)write_on((const int32_t[]){i, 2}, 2, expected[i]);
  load(SLOTS("3", ""));
  for (int32_t i = 0; i < TEXTS; i++) {
    prompts[i][0] = i % TOKENS;
    prompts[i][1] = 2;
    make_generation(&requests[i], prompts[i], 2, &many);
    send(&requests[i]);
  }
  for (int32_t i = 0; i < TEXTS; i++) {
    await_release(&requests[i]);
    if (requests[i].has_error) fail_msg("%s", requests[i].message);
    assert_int_equal(requests[i].token_count, CONTEXT - 1);
    assert_memory_equal(requests[i].tokens, expected[i % TOKENS], (CONTEXT - 1) * sizeof(int32_t));
  }
  for (int32_t i = 0; i < CONTEXT - 1; i++) {
    make_request(&requests[i], 5, i == 0 ? START : 0, i == 0 ? prompts[1] : &expected[1][i - 1], i == 0 ? 2 : 1);
    send(&requests[i]);
  }
  for (int32_t i = 0; i < CONTEXT - 1; i++) {
    await_release(&requests[i]);
    assert_false(requests[i].has_error);
    assert_int_equal(requests[i].tokens[0], expected[1][i]);
  }
  unload();
}

/* A sequence that has just been opened is not evicted for the next request of the same call. */
UNIT_TEST(test_ts4_sequences_that_begin_together) {
  enum { BEGUN = 3 };
  static triton_request requests[BEGUN];
  triton_request *together[BEGUN];
  static const int32_t prompt[] = {1, 2};
  load(SLOTS("1", ""));
  for (size_t i = 0; i < BEGUN; i++) {
    make_request(&requests[i], 7 + i, START, prompt, 2);
    together[i] = &requests[i];
  }
  assert_loaded(TRITONBACKEND_ModelInstanceExecute(&instances[0], together, BEGUN));
  for (size_t i = 0; i < BEGUN; i++) {
    await_release(&requests[i]);
    if (requests[i].has_error) fail_msg("%s", requests[i].message);
    assert_int_equal(requests[i].token_count, 1);
  }
  unload();
}

UNIT_TEST(test_ts4_generation_ends) {
  static const int32_t prompt[] = {4, 0};
  static const int64_t three = 3;
  int32_t expected[CONTEXT];
  triton_request request;
  (void)write_on(prompt, 2, expected);
  load(SLOTS("2", ""));
  make_generation(&request, prompt, 2, &three);
  execute(&request);
  assert_int_equal(request.token_count, 3);
  assert_memory_equal(request.tokens, expected, 3 * sizeof *expected);
  const int64_t last = expected[4];
  size_t first = 0;
  while (expected[first] != last) first++;
  make_generation(&request, prompt, 2, &many);
  add_parameter(&request, "end_token", &last);
  execute(&request);
  assert_false(request.has_error);
  assert_int_equal(request.token_count, first + 1); /* with the end token */
  make_generation(&request, prompt, 2, &many);
  request.parameters[0] = (fake_parameter){"max_tokens", TRITON_PARAMETER_STRING, "2"};
  execute(&request);
  assert_int_equal(request.token_count, 2);
  unload();
}

/* A sequence goes on with what generation appended, and begins again with the start flag. */
UNIT_TEST(test_ts4_a_sequence_goes_on_after_generation) {
  static const int32_t prompt[] = {1, 1};
  static const int64_t four = 4;
  int32_t expected[CONTEXT];
  triton_request request;
  (void)write_on(prompt, 2, expected);
  load(SLOTS("2", ""));
  for (int i = 0; i < 2; i++) {
    make_generation(&request, prompt, 2, &four);
    request.correlation_text = "user";
    request.flags = START;
    execute(&request);
    assert_int_equal(request.token_count, 4);
    make_request(&request, 0, 0, &expected[3], 1);
    request.correlation_text = "user";
    execute(&request);
    assert_int_equal(request.tokens[0], expected[4]);
  }
  unload();
}

static void assert_step_refused(uint64_t correlation, triton_error_code code, const char *text) {
  static const int32_t token = 1;
  triton_request request;
  make_request(&request, correlation, 0, &token, 1);
  execute(&request);
  assert_answer_error(&request, code, text);
}

UNIT_TEST(test_ts4_sequences_that_are_not_open) {
  static const int32_t prompt[] = {1, 2};
  load(SLOTS("2", ""));
  assert_step_refused(4, TRITON_ERROR_INVALID_ARGUMENT, "sequence 4 is not open");
  (void)ask(4, START | END, prompt, 2);
  assert_step_refused(4, TRITON_ERROR_INVALID_ARGUMENT, "sequence 4 is not open");
  for (uint64_t i = 1; i <= 3; i++) (void)ask(i, START, prompt, 2);
  assert_step_refused(1, TRITON_ERROR_INVALID_ARGUMENT,
                      "sequence 1 was evicted for another one, while it was idle, because the model has 2 slots");
  (void)ask(3, 0, prompt, 1);
  unload();
}

/* Without eviction, a request waits for a slot as long as it may, and gets one when a sequence ends. */
UNIT_TEST(test_ts4_sequences_that_are_not_evicted) {
  static const int32_t prompt[] = {1, 2};
  triton_request waiting, cancelled, late;
  load(SLOTS("1", PARAMETER("evict_idle", "0") PARAMETER("max_queue", "8")));
  (void)ask(1, START, prompt, 2);
  make_request(&late, 2, START, prompt, 2);
  late.timeout_us = 2000;
  execute(&late);
  assert_answer_error(&late, TRITON_ERROR_UNAVAILABLE,
                      "sequence 2 did not get a slot before its deadline of 2000 us, because the 1 slots");
  make_request(&cancelled, 3, START, prompt, 2);
  send(&cancelled);
  make_request(&waiting, 4, START, prompt, 2);
  send(&waiting);
  atomic_store(&cancelled.is_cancelled, true);
  await_release(&cancelled);
  assert_answer_error(&cancelled, TRITON_ERROR_CANCELLED, "was cancelled");
  assert_int_equal(atomic_load(&waiting.released), 0);
  (void)ask(1, END, prompt, 1);
  await_release(&waiting);
  assert_false(waiting.has_error);
  unload();
}

/* A client that has gone without the end flag keeps its slot for a while. */
UNIT_TEST(test_ts4_sequences_that_were_abandoned) {
  static const int32_t prompt[] = {1, 2};
  load(SLOTS("1", PARAMETER("evict_idle", "0") PARAMETER("max_idle_ms", "50")));
  for (uint64_t i = 1; i <= 3; i++) (void)ask(i, START, prompt, 2); /* each waits until the one before has expired */
  assert_step_refused(2, TRITON_ERROR_INVALID_ARGUMENT, "sequence 2 had no request for 50 ms, so it has ended");
  (void)ask(3, START, prompt, 2);
  unload();
  load(SLOTS("1", PARAMETER("max_idle_ms", "0")));
  (void)ask(1, START, prompt, 2);
  test_sleep_ms(60);
  (void)ask(1, 0, prompt, 1);
  unload();
}

/* A request of a sequence waits for those before it. */
UNIT_TEST(test_ts4_requests_that_are_late_in_their_sequence) {
  static const int32_t prompt[] = {1, 2};
  triton_request first, late;
  load(SLOTS("1", PARAMETER("evict_idle", "0")));
  (void)ask(1, START, prompt, 2);
  make_request(&first, 2, START, prompt, 2);
  send(&first); /* waits for a slot */
  make_request(&late, 2, 0, prompt, 1);
  late.timeout_us = 2000;
  execute(&late);
  assert_answer_error(&late, TRITON_ERROR_UNAVAILABLE,
                      "earlier requests of sequence 2 were not answered before the deadline of this one, 2000 us");
  (void)ask(1, END, prompt, 1);
  await_release(&first);
  assert_false(first.has_error);
  unload();
}

/* While all slots are taken, and without a deadline. */
UNIT_TEST(test_ts4_a_prompt_that_no_slot_can_take_does_not_wait) {
  static const int32_t prompt[CONTEXT + 1] = {1, 2};
  triton_request request;
  load(SLOTS("1", PARAMETER("evict_idle", "0")));
  (void)ask(1, START, prompt, 2);
  make_request(&request, 2, START, prompt, CONTEXT + 1);
  execute(&request);
  assert_answer_error(&request, TRITON_ERROR_UNAVAILABLE, "the 17 positions of the prompt do not fit into 16");
  make_generation(&request, prompt, CONTEXT + 1, &many);
  execute(&request);
  assert_answer_error(&request, TRITON_ERROR_UNAVAILABLE, "do not fit into 16, those of a slot");
  (void)ask(1, END, prompt, 1);
  unload();
}

UNIT_TEST(test_ts4_too_many_requests_wait_for_slots) {
  static const int32_t prompt[] = {1, 2};
  static triton_request waiting[2], refused;
  load(SLOTS("1", PARAMETER("evict_idle", "0") PARAMETER("max_queue", "4")));
  (void)ask(1, START, prompt, 2);
  for (uint64_t i = 0; i < 2; i++) {
    make_request(&waiting[i], 2 + i, START | END, prompt, 2);
    send(&waiting[i]);
  }
  make_request(&refused, 9, START, prompt, 2);
  execute(&refused);
  assert_answer_error(&refused, TRITON_ERROR_UNAVAILABLE,
                      "the 1 slots of model 'ranker' are taken, and 2 requests wait");
  (void)ask(1, END, prompt, 1);
  for (size_t i = 0; i < 2; i++) {
    await_release(&waiting[i]);
    assert_false(waiting[i].has_error);
  }
  unload();
}

UNIT_TEST(test_ts4_bad_requests_of_sequences) {
  static const int32_t prompt[CONTEXT + 1] = {1, 2};
  static const int64_t zero = 0;
  static const char config[] = "{\"parameters\":{\"slots\":{\"string_value\":\"2\"}}}";
  triton_request request;
  load(config);
  make_generation(&request, prompt, 2, &many);
  execute(&request);
  assert_answer_error(&request, TRITON_ERROR_UNSUPPORTED, "model_transaction_policy { decoupled: true }");
  make_generation(&request, prompt, 2, &zero);
  execute(&request);
  assert_answer_error(&request, TRITON_ERROR_INVALID_ARGUMENT, "parameter 'max_tokens' is not a number from 1");
  make_request(&request, 3, START, prompt, CONTEXT + 1);
  execute(&request);
  assert_answer_error(&request, TRITON_ERROR_UNAVAILABLE, "do not fit into 16");
  make_request(&request, 3, START, prompt, 2);
  request.inputs[0].shape[1] = 0;
  request.inputs[0].bytes = 0;
  execute(&request);
  assert_answer_error(&request, TRITON_ERROR_INVALID_ARGUMENT, "give at least one row of [-1], where -1 is any length");
  make_request(&request, 3, START, prompt, 2);
  request.inputs[0].bytes = 4;
  execute(&request);
  assert_answer_error(&request, TRITON_ERROR_INVALID_ARGUMENT, "input 'tokens' has 4 bytes: 1 rows of 8 are needed");
  (void)ask(3, START, prompt, 2);
  unload();
  make_repository();
  save_gpt();
  refuse_model("{\"sequence_batching\":{\"direct\":{}}}", TRITON_ERROR_UNSUPPORTED, "with the direct strategy");
  refuse_model("{\"parameters\":{\"slots\":{\"string_value\":\"many\"}}}", TRITON_ERROR_INTERNAL,
               "parameter 'slots' of the configuration is 'many': give a number from 0 to 4096");
  refuse_model("{\"parameters\":{\"history\":{\"string_value\":\"1\"}}}", TRITON_ERROR_INVALID_ARGUMENT,
               "parameter 'history', which is for models without lengths");
  remove_repository();
}

/* A client that has gone: the tokens that follow are not computed. */
UNIT_TEST(test_ts4_generation_is_cancelled) {
  static const int32_t prompt[] = {1, 2};
  triton_request request;
  load(SLOTS("2", ""));
  make_generation(&request, prompt, 2, &many);
  atomic_store(&request.is_cancelled, true);
  execute(&request);
  assert_answer_error(&request, TRITON_ERROR_CANCELLED, "was cancelled");
  (void)ask(3, START, prompt, 2);
  unload();
}

/* Sources: examples/translate.c ------------------------------------------------------------------------------------ */

enum { VOCABULARY = 40, SOURCE = 16, STEPS = 4, TRANSLATIONS = 6 };

typedef struct translation {
  int32_t source[SOURCE], token; /* token: the input of the next step */
  size_t length;
  float scores[STEPS][VOCABULARY];
} translation;

static translation make_translation(size_t number) {
  translation t = {.length = SOURCE - number};
  for (size_t i = 0; i < SOURCE; i++) t.source[i] = (int32_t)((number * 13 + i * 7) % VOCABULARY);
  return t;
}

static int32_t best_of(const float *scores) {
  int32_t best = 0;
  for (int32_t i = 1; i < VOCABULARY; i++) best = scores[i] > scores[best] ? i : best;
  return best;
}

/* In a session, without the backend. */
static void translate(rondo_session *session, translation *t) {
  rondo_sequence sequence;
  const void *source[] = {t->source}, *token[] = {&t->token};
  assert_ok(rondo_sequence_open(session, "translator", &sequence));
  const rondo_request read = {RONDO_REQUEST_INIT, .rows = 1, .length = t->length, .inputs = source,
                              .sequence = sequence};
  assert_ok(rondo_session_run(session, "translator.source", &read, NULL));
  for (size_t i = 0; i < STEPS; i++) {
    void *outputs[] = {t->scores[i]};
    const rondo_request step = {RONDO_REQUEST_INIT, .rows = 1,          .length = 1,
                                .inputs = token,    .outputs = outputs, .sequence = sequence};
    assert_ok(rondo_session_run(session, "translator", &step, NULL));
    t->token = best_of(t->scores[i]);
  }
  assert_ok(rondo_sequence_close(sequence));
}

static void translate_all(translation *out, size_t count) {
  rondo_status (*describe)(const char *folder, rondo_triton_description *out);
  rondo_triton_description description = {.struct_size = sizeof description};
  rondo_device *device;
  rondo_session *session;
  const char *name = getenv("RONDO_TEST_DEVICE");
  void *library = dlopen(RONDO_TEST_TRANSLATOR_MODEL, RTLD_NOW | RTLD_LOCAL), *symbol;
  if (library == NULL) fail_msg("%s", dlerror());
  symbol = dlsym(library, "rondo_triton_model");
  memcpy(&describe, &symbol, sizeof symbol);
  assert_ok(describe("", &description));
  assert_ok(rondo_device_open(name == NULL ? "cpu" : name, NULL, &device));
  assert_ok(rondo_session_create(device, NULL, &session));
  assert_ok(rondo_session_add_model(session, "translator", &description.model));
  assert_ok(rondo_session_capture(session, "translator"));
  for (size_t i = 0; i < count; i++) translate(session, &out[i]);
  assert_ok(rondo_session_destroy(session));
  assert_ok(rondo_device_close(device));
  description.release(&description);
  (void)dlclose(library);
}

static void link_translator(void) {
  char path[128];
  make_repository();
  (void)snprintf(path, sizeof path, "%s/1/model.so", repository);
  assert_int_equal(symlink(RONDO_TEST_TRANSLATOR_MODEL, path), 0);
}

static void load_translator(const char *config) {
  link_translator();
  load_model(config);
}

/* The step of a translation; the first one has the source. */
static void make_step(triton_request *request, uint64_t correlation, const translation *t, size_t step,
                      const int32_t *token) {
  *request = (triton_request){.input_count = step == 0 ? 2 : 1,
                              .output_count = 1,
                              .outputs = {"scores"},
                              .correlation = correlation,
                              .flags = (step == 0 ? START : 0) | (step + 1 == STEPS ? END : 0)};
  request->inputs[0] = (triton_input){.name = "tokens",
                                      .type = TRITON_TYPE_INT32,
                                      .shape = {1, 1},
                                      .rank = 2,
                                      .pieces = 1,
                                      .bytes = sizeof *token,
                                      .data = token};
  request->inputs[1] = (triton_input){.name = "source",
                                      .type = TRITON_TYPE_INT32,
                                      .shape = {1, (int64_t)t->length},
                                      .rank = 2,
                                      .pieces = 2,
                                      .bytes = t->length * sizeof *t->source,
                                      .data = t->source};
}

static void assert_scores(const triton_request *request, const float *expected) {
  if (request->has_error) fail_msg("%s", request->message);
  const float *scores = (const float *)(const void *)request->answer[0].data;
  for (size_t i = 0; i < VOCABULARY; i++) assert_true(fabsf(scores[i] - expected[i]) < 1e-4f);
}

/* More sequences than slots, each of whose first steps brings its source. */
UNIT_TEST(test_ts4_sources_are_read_before_the_first_step) {
  static translation expected[TRANSLATIONS];
  static triton_request requests[TRANSLATIONS][STEPS];
  static int32_t tokens[TRANSLATIONS][STEPS];
  for (size_t i = 0; i < TRANSLATIONS; i++) expected[i] = make_translation(i);
  translate_all(expected, TRANSLATIONS);
  load_translator("{}");
  assert_string_equal(model.completion,
                      "{\"max_batch_size\":2,\"input\":[{\"name\":\"tokens\",\"data_type\":\"TYPE_INT32\","
                      "\"dims\":[-1]},{\"name\":\"source\",\"data_type\":\"TYPE_INT32\",\"dims\":[-1],"
                      "\"optional\":true}],\"output\":[{\"name\":\"scores\",\"data_type\":\"TYPE_FP32\","
                      "\"dims\":[40]}]}");
  for (size_t i = 0; i < TRANSLATIONS; i++) {
    for (size_t k = 0; k < STEPS; k++) {
      tokens[i][k] = k == 0 ? 0 : best_of(expected[i].scores[k - 1]);
      make_step(&requests[i][k], 10 + i, &expected[i], k, &tokens[i][k]);
      send(&requests[i][k]);
    }
  }
  for (size_t i = 0; i < TRANSLATIONS; i++) {
    for (size_t k = 0; k < STEPS; k++) {
      await_release(&requests[i][k]);
      assert_scores(&requests[i][k], expected[i].scores[k]);
    }
  }
  make_step(&requests[0][0], 0, &expected[0], 0, &tokens[0][0]); /* a sequence of its own */
  execute(&requests[0][0]);
  assert_scores(&requests[0][0], expected[0].scores[0]);
  unload();
}

#define TRANSLATOR_INPUTS(more)                                                         \
  "{\"max_batch_size\":2,\"input\":[{\"name\":\"tokens\",\"data_type\":\"TYPE_INT32\"," \
  "\"dims\":[-1]},{\"name\":\"source\",\"data_type\":\"TYPE_INT32\",\"dims\":[-1]" more "}]}"

UNIT_TEST(test_ts4_bad_requests_with_sources) {
  static const int32_t token = 0;
  translation t = make_translation(0);
  triton_request request;
  link_translator();
  refuse_model(TRANSLATOR_INPUTS(""), TRITON_ERROR_INVALID_ARGUMENT, "input 'source' is that of the source");
  load_model(TRANSLATOR_INPUTS(",\"optional\":true"));
  make_step(&request, 3, &t, 0, &token);
  request.input_count = 1;
  execute(&request);
  assert_answer_error(&request, TRITON_ERROR_INVALID_ARGUMENT, "without a source: give it input 'source'");
  make_step(&request, 3, &t, 0, &token);
  request.inputs[1].type = TRITON_TYPE_INT64;
  execute(&request);
  assert_answer_error(&request, TRITON_ERROR_INVALID_ARGUMENT, "input 'source' is TYPE_INT64");
  make_step(&request, 3, &t, 0, &token);
  request.inputs[1].shape[1] = SOURCE + 1;
  request.inputs[1].bytes = (SOURCE + 1) * sizeof *t.source;
  execute(&request);
  assert_answer_error(&request, TRITON_ERROR_INVALID_ARGUMENT, "17");
  make_step(&request, 3, &t, 0, &token); /* the next one is served */
  execute(&request);
  assert_false(request.has_error);
  unload();
}

UNIT_TEST(test_ts6_each_call_of_a_source_fails) {
  static const int32_t token = 0;
  translation t = make_translation(2);
  load_translator("{}");
  bool has_failed = true;
  for (uint64_t number = 1; has_failed; number++) {
    static triton_request request;
    make_step(&request, 0, &t, 0, &token);
    fake_triton_fail_call(number);
    execute(&request);
    has_failed = fake_triton_failed() != NULL;
    assert_int_equal(atomic_load(&request.finals), 1);
    assert_int_equal(atomic_load(&request.released) + atomic_load(&request.release_failed), 1);
    assert_true(!request.has_error || has_failed);
  }
  fake_triton_fail_call(0);
  unload();
}

UNIT_TEST(test_ts5_metrics_of_sequences) {
  static const int32_t prompt[] = {1, 2};
  load(SLOTS("1", ""));
  for (uint64_t i = 1; i <= 3; i++) (void)ask(i, START, prompt, 2);
  for (int i = 0; i < 3000 && fake_triton_metric("rondo_evicted_sequences") < 2; i++) test_sleep_ms(1);
  assert_true(fake_triton_metric("rondo_evicted_sequences") == 2);
  assert_true(fake_triton_metric("rondo_open_sequences") == 1);
  assert_true(fake_triton_metric("rondo_slot_bytes") > 0);
  unload();
}

/* A step and a generation, each of whose calls fails once. What could not be sent is said, and nothing is left. */
UNIT_TEST(test_ts6_each_call_of_a_sequence_fails) {
  static const int32_t prompt[] = {1, 2};
  static const int64_t three = 3;
  load(SLOTS("2", ""));
  bool has_failed = true;
  for (uint64_t number = 1; has_failed; number++) {
    static triton_request requests[2];
    triton_request *list[] = {&requests[0], &requests[1]};
    make_request(&requests[0], 0, 0, prompt, 2);
    requests[0].correlation_text = "a";
    requests[0].flags = START;
    make_generation(&requests[1], prompt, 2, &three);
    fake_triton_fail_call(number);
    assert_loaded(TRITONBACKEND_ModelInstanceExecute(&instances[0], list, 2));
    for (size_t i = 0; i < 2; i++) await_release(&requests[i]);
    const char *failed = fake_triton_failed();
    has_failed = failed != NULL;
    for (size_t i = 0; i < 2; i++) {
      assert_int_equal(atomic_load(&requests[i].finals), 1);
      assert_int_equal(atomic_load(&requests[i].released) + atomic_load(&requests[i].release_failed), 1);
      assert_true(requests[i].has_error ? has_failed : requests[i].token_count == (i == 0 ? 1 : 3));
    }
  }
  fake_triton_fail_call(0);
  (void)ask(3, START, prompt, 2);
  unload();
}

UNIT_TEST(test_ts6_allocations_of_a_sequence_fail) {
  static const int32_t prompt[] = {1, 2};
  static const int64_t three = 3;
  bool has_failed = true;
  for (uint64_t number = 1; has_failed && number < 40; number++) {
    static triton_request request;
    load(SLOTS("1", "")); /* again, so that no flight is idle */
    make_generation(&request, prompt, 2, &three);
    fail_allocation(number);
    execute(&request);
    has_failed = has_failed_allocation();
    fail_allocation(0);
    assert_int_equal(atomic_load(&request.finals), 1);
    assert_true(request.has_error ? has_failed : request.token_count == 3);
    unload();
  }
}
