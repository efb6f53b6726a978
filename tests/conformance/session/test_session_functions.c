/* SPDX-License-Identifier: MIT
 * Functions as models of a session: recorded at several sizes and run eagerly, on several streams, by requests and by
 * hand; with branches and constants; and bodies that cannot be models (SE-1, SE-3 to SE-8).
 */
#include <stdatomic.h>
#include <string.h>

#include "support/rondo_test.h"
#include "support/test_session.h"

enum { WORDS = 3, MOST = 300 }; /* of a row, rows */

typedef enum trouble {
  TROUBLE_NONE,
  TROUBLE_HOST_WORK,
  TROUBLE_UNKNOWN_SOURCE,
  TROUBLE_SIZE,
  TROUBLE_FAILS,
  TROUBLE_CALLS_SESSION
} trouble;

/* A stream that is forked from a worker's stream: captures do not release streams. */
typedef struct branch {
  const rondo_stream *of;
  rondo_stream *stream;
  rondo_event *fork, *join;
} branch;

enum { BRANCHES = 4 };

/* y = x * 31 + c, of which c is copied from a constant of the host; z = x * 3 + 1 on a stream that is forked off. */
typedef struct body_of {
  test_fixture *fixture;
  uint32_t *constant; /* MOST * WORDS words */
  trouble trouble;
  rondo_session *session; /* where the trouble is to call it */
  atomic_uint runs;
  branch branches[BRANCHES];
} body_of;

static rondo_status launch_words(body_of *b, rondo_stream *stream, test_kernel_id id, size_t words,
                                 const void *const *args, size_t count) {
  return rondo_launch(stream, test_kernel(b->fixture, id), (rondo_grid){(uint32_t)words, 1, 1}, args, count);
}

static rondo_status run_branch(body_of *b, const branch *side, const uint32_t *x, uint32_t *z, size_t words) {
  const uint32_t three = 3, one = 1;
  const void *args[] = {&three, &one, &z};
  rondo_status status = rondo_stream_wait_event(side->stream, side->fork);
  if (status == RONDO_OK) status = rondo_copy_async(side->stream, z, x, words * 4);
  if (status == RONDO_OK) status = launch_words(b, side->stream, TEST_KERNEL_AFFINE, words, args, 3);
  return status == RONDO_OK ? rondo_event_record(side->join, side->stream) : status;
}

static rondo_status run_line(body_of *b, rondo_stream *stream, const uint32_t *x, uint32_t *y, size_t words) {
  void *c = NULL;
  rondo_status status = rondo_malloc_async(stream, words * 4, NULL, &c);
  if (status != RONDO_OK) return status;
  const void *source = b->trouble == TROUBLE_UNKNOWN_SOURCE ? (void *)(b->constant + MOST * WORDS) : b->constant;
  status = rondo_copy_async(stream, c, source, words * 4);
  const void *args[] = {&x, &c, &y};
  if (status == RONDO_OK) status = launch_words(b, stream, TEST_KERNEL_COMBINE, words, args, 3);
  return status == RONDO_OK ? rondo_free_async(stream, c) : status;
}

static rondo_status run_both(body_of *b, rondo_call *call, const branch *side, size_t words) {
  rondo_stream *stream = rondo_call_stream(call);
  const uint32_t *x = rondo_call_input(call, 0);
  void *y = NULL, *z = NULL;
  const size_t more = b->trouble == TROUBLE_SIZE ? 4 : 0;
  rondo_status status = rondo_call_output(call, 0, words * 4 + more, NULL, &y);
  if (status == RONDO_OK) status = rondo_call_output(call, 1, words * 4, NULL, &z);
  if (status == RONDO_OK) status = rondo_event_record(side->fork, stream);
  if (status == RONDO_OK) status = run_branch(b, side, x, z, words);
  if (status == RONDO_OK) status = run_line(b, stream, x, y, words);
  if (status == RONDO_OK && b->trouble == TROUBLE_HOST_WORK) status = rondo_stream_synchronize(stream);
  return status == RONDO_OK ? rondo_stream_wait_event(stream, side->join) : status;
}

/* Stream workers run the body one at a time here. */
static branch *find_branch(body_of *b, const rondo_stream *of) {
  branch *side = b->branches;
  while (side->of != NULL && side->of != of) side++;
  if (side->of != NULL) return side;
  side->of = of;
  assert_ok(rondo_stream_create(b->fixture->device, NULL, &side->stream));
  assert_ok(rondo_event_create(b->fixture->device, NULL, &side->fork));
  assert_ok(rondo_event_create(b->fixture->device, NULL, &side->join));
  return side;
}

static rondo_status body(rondo_call *call, void *user) {
  body_of *b = user;
  rondo_input x;
  atomic_fetch_add(&b->runs, 1);
  if (b->trouble == TROUBLE_FAILS) return RONDO_EXECUTION_FAILED;
  if (b->trouble == TROUBLE_CALLS_SESSION) return rondo_session_drain(b->session);
  assert_ok(rondo_call_get_input(call, 0, &x));
  assert_int_equal(x.rank, 2);
  assert_int_equal(x.shape[1], WORDS);
  assert_int_equal(x.bytes, x.shape[0] * WORDS * 4);
  return run_both(b, call, find_branch(b, rondo_call_stream(call)), x.shape[0] * WORDS);
}

/* Sessions --------------------------------------------------------------------------------------------------------- */

static uint32_t constants[2 * MOST * WORDS];

static rondo_model_options options_of(body_of *b, test_fixture *t) {
  static const rondo_row_value inputs[] = {{.name = "x", .type = RONDO_I32, .rank = 1, .shape = {WORDS}}};
  static const rondo_row_value outputs[] = {{.name = "y", .type = RONDO_I32, .rank = 1, .shape = {WORDS}},
                                            {.name = "z", .type = RONDO_I32, .rank = 1, .shape = {WORDS}}};
  static const rondo_host_range held = {.address = constants, .bytes = MOST * WORDS * 4, .name = "c"};
  *b = (body_of){.fixture = t, .constant = constants};
  for (size_t i = 0; i < 2 * MOST * WORDS; i++) constants[i] = (uint32_t)(i * 7);
  return (rondo_model_options){RONDO_MODEL_OPTIONS_INIT, .body = body,       .user = b,
                               .inputs = inputs,         .input_count = 1,   .outputs = outputs,
                               .output_count = 2,        .constants = &held, .constant_count = 1};
}

static rondo_session *open_session(test_fixture *t, uint32_t streams, const rondo_model_options *model) {
  rondo_session *session = NULL;
  const rondo_session_options options = {RONDO_SESSION_OPTIONS_INIT, .streams = streams, .timed = true};
  assert_ok(rondo_session_create(t->device, &options, &session));
  assert_ok(rondo_session_add_model(session, "f", model));
  return session;
}

static void close_session(rondo_session *session, body_of *b) {
  assert_ok(rondo_session_destroy(session));
  for (branch *side = b->branches; side->of != NULL; side++) {
    rondo_event_destroy(side->fork);
    rondo_event_destroy(side->join);
    assert_ok(rondo_stream_destroy(side->stream));
  }
}

typedef struct words_request {
  uint32_t x[MOST * WORDS], y[MOST * WORDS], z[MOST * WORDS];
  const void *inputs[1];
  void *outputs[2];
  rondo_request request;
} words_request;

static void fill(words_request *r, size_t rows, uint32_t seed) {
  for (size_t i = 0; i < rows * WORDS; i++) r->x[i] = (uint32_t)i * 11 + seed;
  memset(r->y, 0, sizeof r->y);
  memset(r->z, 0, sizeof r->z);
  r->inputs[0] = r->x;
  r->outputs[0] = r->y;
  r->outputs[1] = r->z;
  r->request = (rondo_request){RONDO_REQUEST_INIT, .rows = rows, .inputs = r->inputs, .outputs = r->outputs};
}

/* The constant that a row gets depends on its position in the graph: only the first part or batch is compared. */
static void assert_right(const words_request *r, size_t rows) {
  for (size_t i = 0; i < rows * WORDS; i++) {
    assert_int_equal(r->y[i], r->x[i] * 31 + constants[i]);
    assert_int_equal(r->z[i], r->x[i] * 3 + 1);
  }
}

static void capture_sizes(rondo_session *session, const size_t *sizes, size_t count) {
  static words_request r;
  assert_ok(rondo_session_capture_begin(session, "f"));
  for (size_t i = 0; i < count; i++) {
    fill(&r, sizes[i], 1);
    assert_ok(rondo_session_run(session, "f", &r.request, NULL));
  }
  assert_ok(rondo_session_capture_end(session));
}

static void assert_runs(rondo_session *session, size_t rows, rondo_run_mode asked, rondo_run_mode mode) {
  static words_request r;
  rondo_answer answer = {.struct_size = sizeof answer};
  fill(&r, rows, (uint32_t)rows);
  r.request.mode = asked;
  assert_ok(rondo_session_run(session, "f", &r.request, &answer));
  assert_int_equal(answer.mode, mode);
  if (mode != RONDO_RUN_SPLIT) assert_right(&r, rows);
}

/* Serving --------------------------------------------------------------------------------------------------------- */

TEST(test_se6_a_function_is_served) {
  static body_of b;
  const rondo_model_options model = options_of(&b, t);
  rondo_session *session = open_session(t, 2, &model);
  const size_t sizes[] = {64, 16};
  const double times[] = {4, 2};
  assert_runs(session, 5, RONDO_RUN_AUTO, RONDO_RUN_EAGER);
  capture_sizes(session, sizes, 2);
  assert_ok(rondo_session_set_times(session, "f", times, NULL, 2, 1));
  const uint32_t before = atomic_load(&b.runs);
  for (size_t rows = 1; rows <= 64; rows += 9) assert_runs(session, rows, RONDO_RUN_AUTO, RONDO_RUN_RECORDED);
  assert_runs(session, 150, RONDO_RUN_AUTO, RONDO_RUN_SPLIT);
  assert_int_equal(atomic_load(&b.runs), before); /* replayed */
  for (size_t rows = 100; rows < 120; rows++) assert_runs(session, rows, RONDO_RUN_EAGER, RONDO_RUN_EAGER);
  atomic_fetch_sub(&b.runs, 20);
  assert_runs(session, 150, RONDO_RUN_EAGER, RONDO_RUN_EAGER);
  assert_runs(session, 7, RONDO_RUN_EAGER, RONDO_RUN_EAGER);
  assert_int_equal(atomic_load(&b.runs), before + 2);
  assert_runs(session, 16, RONDO_RUN_AUTO, RONDO_RUN_RECORDED); /* the eager run moved nothing */
  rondo_session_usage usage = {.struct_size = sizeof usage};
  assert_ok(rondo_session_get_usage(session, &usage));
  assert_true(usage.parts > 10 && usage.busy_us > 0);
  close_session(session, &b);
}

TEST(test_se3_sizes_of_a_function_share_an_arena) {
  static body_of b;
  const rondo_model_options model = options_of(&b, t);
  rondo_session *session = open_session(t, 1, &model);
  rondo_model_info info = {.struct_size = sizeof info};
  rondo_model_graph largest = {.struct_size = sizeof largest};
  const size_t sizes[] = {256, 64, 16};
  rondo_model_bytes planned = {.struct_size = sizeof planned};
  assert_error(rondo_session_plan(session, "f", sizes, 3, &planned), RONDO_UNSUPPORTED, RONDO_REASON_NONE);
  capture_sizes(session, sizes, 3);
  assert_ok(rondo_session_get_model_info(session, "f", &info));
  assert_ok(rondo_session_get_graph(session, "f", 0, &largest));
  assert_int_equal(info.graphs, 3);
  assert_true(largest.arena_bytes > 0 && largest.nodes >= 4 && largest.exec_bytes > 0 && largest.run_us > 0);
  rondo_device_info device = test_device_info(t->device);
  if (!device.guarded) assert_int_equal(info.arena_bytes, largest.arena_bytes); /* otherwise no addresses are shared */
  assert_ok(rondo_session_destroy_graphs(session, "f"));
  assert_runs(session, 16, RONDO_RUN_AUTO, RONDO_RUN_EAGER);
  capture_sizes(session, sizes, 2); /* again */
  assert_runs(session, 16, RONDO_RUN_RECORDED, RONDO_RUN_RECORDED);
  assert_ok(rondo_session_remove_model(session, "f"));
  close_session(session, &b);
}

TEST(test_se7_sizes_of_a_function_are_chosen) {
  static body_of b;
  rondo_model_options model = options_of(&b, t);
  const size_t history[] = {3, 9, 9, 27, 30, 60};
  model.history = history;
  model.history_count = 6;
  model.max_sizes = 3;
  model.max_batch_rows = 1; /* none together with them */
  rondo_session *session = open_session(t, 2, &model);
  rondo_model_info info = {.struct_size = sizeof info};
  assert_ok(rondo_session_capture(session, "f"));
  assert_ok(rondo_session_get_model_info(session, "f", &info));
  assert_true(info.graphs >= 1 && info.graphs <= 3);
  static words_request r;
  rondo_answer answer = {.struct_size = sizeof answer};
  fill(&r, 60, 3);
  r.request.mode = RONDO_RUN_RECORDED;
  assert_ok(rondo_session_run(session, "f", &r.request, &answer));
  assert_true(answer.mode == RONDO_RUN_RECORDED || answer.mode == RONDO_RUN_SPLIT); /* by measured times */
  for (size_t i = 0; i < 60 * WORDS; i++) assert_int_equal(r.z[i], r.x[i] * 3 + 1);
  close_session(session, &b);
}

TEST(test_se6_a_function_by_hand) {
  static body_of b;
  static words_request r;
  const rondo_model_options model = options_of(&b, t);
  rondo_session *session = open_session(t, 2, &model);
  const size_t sizes[] = {32, 8};
  rondo_stream *stream = NULL;
  rondo_input_copy copy;
  const void *result = NULL;
  capture_sizes(session, sizes, 2);
  fill(&r, 8, 5);
  assert_ok(rondo_session_acquire_stream(session, "f", 1, &stream));
  assert_ok(rondo_session_get_input_copy(session, "f", 1, 1, 0, &copy));
  assert_int_equal(copy.copy.width, 8 * WORDS * 4);
  assert_ok(rondo_copy_async(stream, copy.copy.dst, r.x, copy.copy.width));
  assert_ok(rondo_session_launch(session, "f", 1, 1));
  assert_ok(rondo_stream_synchronize(stream));
  assert_ok(rondo_session_get_result(session, "f", 1, 0, &result));
  memcpy(r.y, result, 8 * WORDS * 4);
  assert_ok(rondo_session_get_result(session, "f", 1, 1, &result));
  memcpy(r.z, result, 8 * WORDS * 4);
  assert_right(&r, 8);
  assert_ok(rondo_session_release_stream(session, 1));
  assert_error(rondo_session_write(session, "f", "w", r.x, 4), RONDO_NOT_FOUND, RONDO_REASON_UNKNOWN_NAME);
  close_session(session, &b);
}

/* Bodies that are no model ---------------------------------------------------------------------------------------- */

static void assert_capture_fails(test_fixture *t, trouble what, rondo_status status, rondo_reason reason,
                                 const char *words) {
  static body_of b;
  static words_request r;
  const rondo_model_options model = options_of(&b, t);
  rondo_session *session = open_session(t, 2, &model);
  b.trouble = what;
  fill(&r, 16, 1);
  assert_ok(rondo_session_capture_begin(session, "f"));
  assert_error(rondo_session_run(session, "f", &r.request, NULL), status, reason);
  if (words != NULL) assert_message(words);
  b.trouble = TROUBLE_NONE;
  assert_ok(rondo_session_run(session, "f", &r.request, NULL)); /* the failure left nothing */
  assert_ok(rondo_session_capture_end(session));
  assert_runs(session, 16, RONDO_RUN_RECORDED, RONDO_RUN_RECORDED);
  close_session(session, &b);
}

TEST(test_se4_a_copy_from_unknown_host_memory) {
  assert_capture_fails(t, TROUBLE_UNKNOWN_SOURCE, RONDO_CAPTURE_REFUSED, RONDO_REASON_WRONG_MEMORY, NULL);
}

TEST(test_se1_a_body_that_waits) {
  assert_capture_fails(t, TROUBLE_HOST_WORK, RONDO_UNSUPPORTED, RONDO_REASON_NOT_RECORDED, "HOST_WORK");
}

TEST(test_se1_an_output_of_another_size) {
  assert_capture_fails(t, TROUBLE_SIZE, RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE, "'y'");
}

/* An eager run fails; the next one does not. */
TEST(test_se1_se8_bodies_that_fail_or_call_their_session) {
  for (int calls = 0; calls < 2; calls++) {
    static body_of b;
    static words_request r;
    const rondo_model_options model = options_of(&b, t);
    rondo_session *session = open_session(t, 1, &model);
    b.trouble = calls ? TROUBLE_CALLS_SESSION : TROUBLE_FAILS;
    b.session = session;
    fill(&r, 16, 1);
    const rondo_status status = rondo_session_run(session, "f", &r.request, NULL);
    if (calls)
      assert_error(status, RONDO_INVALID_STATE, RONDO_REASON_IN_CALLBACK);
    else
      assert_status(status, RONDO_EXECUTION_FAILED);
    if (calls) assert_message("rondo_session_drain");
    b.trouble = TROUBLE_NONE;
    assert_runs(session, 16, RONDO_RUN_AUTO, RONDO_RUN_EAGER);
    close_session(session, &b);
  }
}

TEST(test_functions_that_are_no_models) {
  static body_of b;
  rondo_session *session = NULL;
  assert_ok(rondo_session_create(t->device, NULL, &session));
  rondo_model_options model = options_of(&b, t);
  model.build = test_build_scorer;
  assert_invalid(rondo_session_add_model(session, "f", &model), RONDO_REASON_BAD_OPTIONS);
  model.build = NULL;
  model.input_count = 0;
  assert_invalid(rondo_session_add_model(session, "f", &model), RONDO_REASON_OUT_OF_RANGE);
  model.input_count = 1;
  const rondo_row_value deep = {.name = "x", .type = RONDO_F32, .rank = RONDO_TREE_MAX_RANK};
  model.inputs = &deep;
  assert_invalid(rondo_session_add_model(session, "f", &model), RONDO_REASON_SHAPE);
  const rondo_row_value empty = {.name = "x", .type = RONDO_F32, .rank = 1};
  model.inputs = &empty;
  assert_invalid(rondo_session_add_model(session, "f", &model), RONDO_REASON_SHAPE);
  const rondo_row_value nameless = {.type = RONDO_F32};
  model.inputs = &nameless;
  assert_invalid(rondo_session_add_model(session, "f", &model), RONDO_REASON_NULL_ARGUMENT);
  assert_ok(rondo_session_destroy(session));
}
