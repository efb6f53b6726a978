/* SPDX-License-Identifier: MIT
 * Models with a second dynamic dimension in sessions (ON-9, PR-5): padded to the lengths of the session where a mask or
 * the options say that padding is safe, and with exact lengths elsewhere; and builders that are refused.
 */
#define _POSIX_C_SOURCE 200809L
#include <rondo/onnx.h>
#include <rondo/session.h>

#include <math.h>
#include <string.h>

#include "support/rondo_test.h"
#include "support/test_onnx.h"
#include "support/test_program.h"
#include "support/test_session.h"

enum { FLOAT = 1, I64 = 7, WIDTH = 2, MOST_ROWS = 4, MOST_LENGTH = 9 };

#define NAMES(...) ((const char *[]){__VA_ARGS__, NULL})
#define DIMS(...) (const int64_t[]){__VA_ARGS__}, sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)

/* Models ----------------------------------------------------------------------------------------------------------- */

static void destroy_model(void *model) { rondo_onnx_destroy(model); }
static void destroy_builder(void *builder) { rondo_onnx_builder_destroy(builder); }

static rondo_onnx_model *parsed(const onnx_bytes *graph) {
  rondo_onnx_model *model = NULL;
  const onnx_bytes bytes = onnx_model(graph);
  assert_ok(rondo_onnx_parse(bytes.bytes, bytes.count, NULL, &model));
  return test_leave(destroy_model, model);
}

static void add_numbers(onnx_bytes *graph) {
  static const int64_t one[] = {1}, two[] = {2}, zero[] = {0};
  static const float unit[] = {1};
  onnx_add_initializer(graph, "zero", I64, zero, sizeof zero, DIMS(1));
  onnx_add_initializer(graph, "one", I64, one, sizeof one, DIMS(1));
  onnx_add_initializer(graph, "two", I64, two, sizeof two, DIMS(1));
  onnx_add_initializer(graph, "unit", FLOAT, unit, sizeof unit, DIMS(1));
}

static void add_sum(onnx_bytes *graph, const char *from, const char *axis, const char *to) {
  onnx_bytes sum = onnx_node(to, "ReduceSum", NAMES(from, axis), NAMES(to));
  onnx_add_int(&sum, "keepdims", 0);
  onnx_nest(graph, ONNX_GRAPH_NODE, &sum);
}

/* y [batch, 2] = the mean of x [batch, length, 2] where mask [batch, length] is 1; z = x + x. */
static rondo_onnx_model *masked_model(void) {
  onnx_bytes graph = {0}, cast = onnx_node("cast", "Cast", NAMES("mask"), NAMES("float"));
  onnx_add_int(&cast, "to", FLOAT);
  onnx_add_input(&graph, "x", FLOAT, DIMS(-1, -2, WIDTH));
  onnx_add_input(&graph, "mask", I64, DIMS(-1, -2));
  add_numbers(&graph);
  onnx_nest(&graph, ONNX_GRAPH_NODE, &cast);
  onnx_add_node(&graph, "Unsqueeze", NAMES("float", "two"), NAMES("wide"));
  onnx_add_node(&graph, "Mul", NAMES("x", "wide"), NAMES("kept"));
  add_sum(&graph, "kept", "one", "sum");
  add_sum(&graph, "wide", "one", "count");
  onnx_add_node(&graph, "Div", NAMES("sum", "count"), NAMES("y"));
  onnx_add_node(&graph, "Add", NAMES("x", "x"), NAMES("z"));
  onnx_add_output(&graph, "y");
  onnx_add_output(&graph, "z");
  return parsed(&graph);
}

/* y [batch, 2] = the sum of x + 1 over the positions, which padding changes; z = x + x. */
static rondo_onnx_model *plain_model(void) {
  onnx_bytes graph = {0};
  onnx_add_input(&graph, "x", FLOAT, DIMS(-1, -2, WIDTH));
  add_numbers(&graph);
  onnx_add_node(&graph, "Add", NAMES("x", "unit"), NAMES("more"));
  add_sum(&graph, "more", "one", "y");
  onnx_add_node(&graph, "Add", NAMES("x", "x"), NAMES("z"));
  onnx_add_output(&graph, "y");
  onnx_add_output(&graph, "z");
  return parsed(&graph);
}

/* y [length, batch, 2] = the sums of x [length, batch, 2] up to each position. */
static rondo_onnx_model *sums_model(void) {
  onnx_bytes graph = {0};
  onnx_add_input(&graph, "x", FLOAT, DIMS(-2, -1, WIDTH));
  add_numbers(&graph);
  onnx_add_node(&graph, "CumSum", NAMES("x", "zero"), NAMES("y"));
  onnx_add_output(&graph, "y");
  return parsed(&graph);
}

static rondo_onnx_builder *new_builder(const rondo_onnx_model *model, const rondo_onnx_builder_options *options) {
  rondo_onnx_builder *builder = NULL;
  assert_ok(rondo_onnx_builder_create(model, options, &builder));
  return test_leave(destroy_builder, builder);
}

/* Requests --------------------------------------------------------------------------------------------------------- */

typedef struct sized_request {
  float x[MOST_ROWS * MOST_LENGTH * WIDTH], y[MOST_ROWS * MOST_LENGTH * WIDTH], z[MOST_ROWS * MOST_LENGTH * WIDTH];
  int64_t mask[MOST_ROWS * MOST_LENGTH];
  size_t used[MOST_ROWS]; /* positions of the row that the mask keeps */
  const void *inputs[2];
  void *outputs[2];
  rondo_request request;
} sized_request;

static void fill(sized_request *r, size_t rows, size_t length, uint64_t seed) {
  uint64_t random = seed + 1;
  memset(r, 0xff, sizeof *r);
  for (size_t i = 0; i < rows * length * WIDTH; i++) r->x[i] = (float)test_random_below(&random, 32);
  for (size_t i = 0; i < rows; i++) {
    r->used[i] = 1 + test_random_below(&random, (uint32_t)length);
    for (size_t at = 0; at < length; at++) r->mask[i * length + at] = at < r->used[i];
  }
  r->inputs[0] = r->x;
  r->inputs[1] = r->mask;
  r->outputs[0] = r->y;
  r->outputs[1] = r->z;
  r->request =
      (rondo_request){RONDO_REQUEST_INIT, .rows = rows, .length = length, .inputs = r->inputs, .outputs = r->outputs};
}

static float sum_of(const sized_request *r, size_t row, size_t column, size_t count) {
  const float *x = r->x + row * r->request.length * WIDTH + column;
  float sum = 0;
  for (size_t at = 0; at < count; at++) sum += x[at * WIDTH];
  return sum;
}

/* Whether the answer is that of the masked model, or of the plain one. */
static bool is_right(const sized_request *r, bool is_masked) {
  const size_t length = r->request.length;
  bool is_right = true;
  for (size_t i = 0; i < r->request.rows * WIDTH; i++) {
    const size_t row = i / WIDTH, used = is_masked ? r->used[row] : length;
    const float sum = sum_of(r, row, i % WIDTH, used);
    is_right &= fabsf(r->y[i] - (is_masked ? sum / (float)used : sum + (float)length)) < 1e-4f;
  }
  for (size_t i = 0; i < r->request.rows * length * WIDTH; i++) is_right &= r->z[i] == 2 * r->x[i];
  return is_right;
}

static bool has_right_sums(const sized_request *r) {
  const size_t length = r->request.length;
  bool is_right = true;
  for (size_t i = 0; i < r->request.rows * length * WIDTH; i++) {
    const size_t row = i / WIDTH / length, at = i / WIDTH % length;
    is_right &= r->y[i] == sum_of(r, row, i % WIDTH, at + 1);
  }
  return is_right;
}

/* Graphs of 4 and 9 positions for 1 to 4 rows. */
static rondo_session *open_session(test_fixture *t, rondo_onnx_builder *builder) {
  static const size_t lengths[] = {4, MOST_LENGTH}, rows[] = {1, 2, 3, MOST_ROWS};
  rondo_session *session = test_session_open(t->device, (rondo_session_options){.streams = 2});
  rondo_model_options options = {RONDO_MODEL_OPTIONS_INIT, .lengths = lengths, .length_count = 2,
                                 .history = rows,          .history_count = 4, .max_batch_rows = 1};
  assert_ok(rondo_onnx_builder_fill_model(builder, &options));
  assert_ok(rondo_session_add_model(session, "model", &options));
  assert_ok(rondo_session_capture(session, "model"));
  return session;
}

static rondo_answer run(rondo_session *session, sized_request *r, rondo_run_mode mode) {
  rondo_answer answer = {.struct_size = sizeof answer};
  r->request.mode = mode;
  assert_ok(rondo_session_run(session, "model", &r->request, &answer));
  return answer;
}

/* Serving ---------------------------------------------------------------------------------------------------------- */

TEST(test_on9_lengths_are_padded_where_a_mask_is_named) {
  const rondo_onnx_builder_options options = {RONDO_ONNX_BUILDER_OPTIONS_INIT, .mask = "mask"};
  rondo_onnx_builder *builder = new_builder(masked_model(), &options);
  rondo_session *session = open_session(t, builder);
  static sized_request r;
  assert_string_equal(rondo_onnx_builder_length(builder), "length");
  for (size_t length = 1; length <= MOST_LENGTH; length++)
    for (size_t rows = 1; rows <= MOST_ROWS; rows++) {
      fill(&r, rows, length, rows * 10 + length);
      assert_int_equal(run(session, &r, RONDO_RUN_RECORDED).length, length <= 4 ? 4 : MOST_LENGTH);
      assert_true(is_right(&r, true));
      fill(&r, rows, length, rows * 10 + length);
      run(session, &r, RONDO_RUN_EAGER);
      assert_true(is_right(&r, true));
    }
}

/* The same bits as alone, by the same graph: the other rows and their lengths do not matter. */
TEST(test_on9_requests_of_several_lengths_run_together) {
  enum { REQUESTS = 3 };
  const rondo_onnx_builder_options options = {RONDO_ONNX_BUILDER_OPTIONS_INIT, .mask = "mask"};
  rondo_session *session = open_session(t, new_builder(masked_model(), &options));
  static sized_request alone[REQUESTS], together[REQUESTS];
  const rondo_request *requests[REQUESTS];
  rondo_ticket tickets[REQUESTS];
  rondo_stream *stream;
  size_t accepted = 0;
  for (size_t i = 0; i < REQUESTS; i++) {
    fill(&alone[i], 1, 5 + 2 * i, i);
    run(session, &alone[i], RONDO_RUN_RECORDED);
    fill(&together[i], 1, 5 + 2 * i, i);
    together[i].request.mode = RONDO_RUN_RECORDED;
    requests[i] = &together[i].request;
  }
  for (size_t i = 0; i < 2; i++) assert_ok(rondo_session_acquire_stream(session, "model", i, &stream));
  assert_ok(rondo_session_submit_batch(session, "model", requests, REQUESTS, tickets, &accepted));
  for (size_t i = 0; i < 2; i++) assert_ok(rondo_session_release_stream(session, i));
  for (size_t i = 0; i < REQUESTS; i++) {
    assert_ok(rondo_ticket_wait(tickets[i], NULL));
    assert_true(is_right(&together[i], true));
    assert_memory_equal(together[i].y, alone[i].y, WIDTH * sizeof(float));
  }
}

/* Without a word about padding: graphs of the lengths that the session has, and eager runs of others. */
TEST(test_on9_lengths_are_exact_by_default) {
  rondo_session *session = open_session(t, new_builder(plain_model(), NULL));
  static sized_request r;
  for (size_t length = 1; length <= MOST_LENGTH; length++) {
    const bool has_graph = length == 4 || length == MOST_LENGTH;
    fill(&r, 1 + length % MOST_ROWS, length, length);
    const rondo_answer answer = run(session, &r, has_graph ? RONDO_RUN_RECORDED : RONDO_RUN_AUTO);
    assert_true(is_right(&r, false));
    assert_int_equal(answer.length, length);
    assert_int_equal(answer.mode == RONDO_RUN_EAGER, !has_graph);
  }
  r.request.mode = RONDO_RUN_RECORDED;
  r.request.length = 5;
  assert_error(rondo_session_run(session, "model", &r.request, NULL), RONDO_UNSUPPORTED, RONDO_REASON_NOT_RECORDED);
}

/* The length is the first dimension of the model and the second one of the session's, of inputs and outputs. */
TEST(test_on9_lengths_of_causal_models_are_padded) {
  const rondo_onnx_builder_options options = {RONDO_ONNX_BUILDER_OPTIONS_INIT, .rows = "batch", .length = "length",
                                              .is_causal = true};
  rondo_session *session = open_session(t, new_builder(sums_model(), &options));
  static sized_request r;
  for (size_t length = 1; length <= MOST_LENGTH; length++) {
    fill(&r, 1 + length % MOST_ROWS, length, length);
    run(session, &r, RONDO_RUN_RECORDED);
    assert_true(has_right_sums(&r));
    run(session, &r, RONDO_RUN_EAGER);
    assert_true(has_right_sums(&r));
  }
}

/* A size that is given for the name of the length is an example, or with the default rule the size itself. */
TEST(test_on9_a_size_of_the_length_is_given) {
  const rondo_onnx_dimension_size size = {"length", 3};
  const rondo_onnx_build_options build = {RONDO_ONNX_BUILD_OPTIONS_INIT, .dimensions = &size, .dimension_count = 1};
  rondo_onnx_builder_options options = {RONDO_ONNX_BUILDER_OPTIONS_INIT, .build = &build};
  assert_null(rondo_onnx_builder_length(new_builder(plain_model(), &options)));
  options.length = "length";
  rondo_session *session = open_session(t, new_builder(plain_model(), &options));
  static sized_request r;
  fill(&r, 2, 4, 1);
  run(session, &r, RONDO_RUN_RECORDED);
  assert_true(is_right(&r, false));
}

/* y [batch, length, 2] = x + the numbers of the positions. They are a constant of each length; so are those of the
 * length of the first program, which is 8. */
TEST(test_on9_constants_of_a_length) {
  static const size_t lengths[] = {7, 8}, rows[] = {3};
  static sized_request r;
  onnx_bytes graph = {0}, cast = onnx_node("cast", "Cast", NAMES("numbers"), NAMES("floats"));
  onnx_add_int(&cast, "to", FLOAT);
  onnx_add_input(&graph, "x", FLOAT, DIMS(-1, -2, WIDTH));
  add_numbers(&graph);
  onnx_add_initializer(&graph, "begin", I64, (const int64_t[]){0}, 8, NULL, 0);
  onnx_add_initializer(&graph, "step", I64, (const int64_t[]){1}, 8, NULL, 0);
  onnx_add_node(&graph, "Shape", NAMES("x"), NAMES("shape"));
  onnx_add_node(&graph, "Gather", NAMES("shape", "step"), NAMES("end"));
  onnx_add_node(&graph, "Range", NAMES("begin", "end", "step"), NAMES("numbers"));
  onnx_nest(&graph, ONNX_GRAPH_NODE, &cast);
  onnx_add_node(&graph, "Unsqueeze", NAMES("floats", "one"), NAMES("column"));
  onnx_add_node(&graph, "Add", NAMES("x", "column"), NAMES("y"));
  onnx_add_output(&graph, "y");
  const rondo_onnx_builder_options options = {RONDO_ONNX_BUILDER_OPTIONS_INIT, .is_causal = true};
  rondo_model_options model = {RONDO_MODEL_OPTIONS_INIT, .lengths = lengths, .length_count = 2,
                               .history = rows,          .history_count = 1, .max_sizes = 1};
  rondo_session *session = test_session_open(t->device, (rondo_session_options){.streams = 1});
  assert_ok(rondo_onnx_builder_fill_model(new_builder(parsed(&graph), &options), &model));
  assert_ok(rondo_session_add_model(session, "model", &model));
  assert_ok(rondo_session_capture(session, "model"));
  for (size_t length = 6; length <= 8; length++) {
    fill(&r, 3, length, length);
    run(session, &r, RONDO_RUN_RECORDED);
    for (size_t i = 0; i < 3 * length * WIDTH; i++) assert_true(r.y[i] == r.x[i] + (float)(i / WIDTH % length));
  }
}

/* Refusals --------------------------------------------------------------------------------------------------------- */

static void assert_refused(const rondo_onnx_model *model, rondo_onnx_builder_options options, rondo_reason reason,
                           const char *message) {
  rondo_onnx_builder *builder = NULL;
  options.struct_size = sizeof options;
  assert_invalid(rondo_onnx_builder_create(model, &options, &builder), reason);
  assert_message(message);
  assert_null(builder);
}

TEST(test_on9_lengths_that_builders_refuse) {
  const rondo_onnx_dimension_size size = {"length", 3}, empty = {"length", 0};
  const rondo_onnx_build_options none = {RONDO_ONNX_BUILD_OPTIONS_INIT, .dimensions = &empty, .dimension_count = 1};
  const rondo_onnx_build_options build = {RONDO_ONNX_BUILD_OPTIONS_INIT, .dimensions = &size, .dimension_count = 1};
  const rondo_onnx_model *masked = masked_model(), *plain = plain_model();
  (void)t;
  assert_refused(plain, (rondo_onnx_builder_options){.length = "positions"}, RONDO_REASON_UNKNOWN_NAME, "'positions'");
  assert_refused(plain, (rondo_onnx_builder_options){.rows = "length", .length = "length"}, RONDO_REASON_BAD_OPTIONS,
                 "give two names");
  assert_refused(masked, (rondo_onnx_builder_options){.mask = "tokens"}, RONDO_REASON_UNKNOWN_NAME,
                 "no input 'tokens'");
  assert_refused(masked, (rondo_onnx_builder_options){.mask = "x"}, RONDO_REASON_SHAPE, "the mask 'x'");
  assert_refused(plain, (rondo_onnx_builder_options){.is_causal = true, .build = &build}, RONDO_REASON_BAD_OPTIONS,
                 "name the length");
  assert_refused(plain, (rondo_onnx_builder_options){.length = "length", .build = &none}, RONDO_REASON_SHAPE,
                 "the length 'length' has the size 0");
  assert_refused(plain, (rondo_onnx_builder_options){.is_causal = true}, RONDO_REASON_SHAPE,
                 "'y' is [1, 2] for 1 row of length 8 and [1, 2] for 1 row of length 7: without the length");
}

/* Outputs [batch, length, length], and [batch * length, 2]. */
TEST(test_on9_outputs_without_one_length_are_refused) {
  static const int64_t flat[] = {-1, WIDTH};
  for (size_t i = 0; i < 2; i++) {
    onnx_bytes graph = {0};
    onnx_add_input(&graph, "x", FLOAT, DIMS(-1, -2, WIDTH));
    onnx_add_input(&graph, "w", FLOAT, DIMS(-1, WIDTH, -2));
    onnx_add_initializer(&graph, "flat", I64, flat, sizeof flat, DIMS(2));
    onnx_add_node(&graph, i == 0 ? "MatMul" : "Reshape", i == 0 ? NAMES("x", "w") : NAMES("x", "flat"), NAMES("y"));
    onnx_add_output(&graph, "y");
    assert_refused(parsed(&graph), (rondo_onnx_builder_options){.rows = NULL}, RONDO_REASON_SHAPE,
                   "one dimension must be the length");
  }
  (void)t;
}

/* More dynamic dimensions than two have no default. */
TEST(test_on9_several_further_dimensions_need_names) {
  const rondo_onnx_dimension_size size = {"other", 3};
  const rondo_onnx_build_options build = {RONDO_ONNX_BUILD_OPTIONS_INIT, .dimensions = &size, .dimension_count = 1};
  const rondo_onnx_builder_options options = {RONDO_ONNX_BUILDER_OPTIONS_INIT, .build = &build};
  onnx_bytes graph = {0};
  onnx_add_input(&graph, "x", FLOAT, DIMS(-1, -2, WIDTH));
  onnx_add_input(&graph, "w", FLOAT, DIMS(-1, -3));
  onnx_add_node(&graph, "Relu", NAMES("x"), NAMES("y"));
  onnx_add_node(&graph, "Relu", NAMES("w"), NAMES("z"));
  onnx_add_output(&graph, "y");
  onnx_add_output(&graph, "z");
  const rondo_onnx_model *model = parsed(&graph);
  assert_refused(model, (rondo_onnx_builder_options){.rows = NULL}, RONDO_REASON_SHAPE,
                 "the dynamic dimensions 'length' and 'other'");
  assert_string_equal(rondo_onnx_builder_length(new_builder(model, &options)), "length");
  (void)t;
}

TEST(test_on9_calls_of_builders_with_a_length) {
  rondo_onnx_builder *builder = new_builder(plain_model(), NULL);
  const rondo_onnx_dimension_size fixed = {"length", 3};
  const rondo_onnx_build_options build = {RONDO_ONNX_BUILD_OPTIONS_INIT, .dimensions = &fixed, .dimension_count = 1};
  const rondo_onnx_builder_options options = {RONDO_ONNX_BUILDER_OPTIONS_INIT, .build = &build};
  rondo_onnx_builder *of_rows = new_builder(plain_model(), &options);
  rondo_program *program = test_new_program();
  rondo_model_size size = {.rows = 1, .length = 2, .slots = 1};
  rondo_model_options model = {RONDO_MODEL_OPTIONS_INIT};
  (void)t;
  assert_invalid(rondo_onnx_builder_build(builder, 1, program), RONDO_REASON_BAD_OPTIONS);
  assert_message("rondo_onnx_builder_build_sized");
  assert_invalid(rondo_onnx_builder_build_sized(builder, &size, program), RONDO_REASON_BAD_OPTIONS);
  size.slots = size.length = 0;
  assert_invalid(rondo_onnx_builder_build_sized(builder, &size, program), RONDO_REASON_SHAPE);
  size.length = 2;
  assert_invalid(rondo_onnx_builder_build_sized(of_rows, &size, program), RONDO_REASON_BAD_OPTIONS);
  assert_ok(rondo_onnx_builder_build_sized(builder, &size, program));
  assert_invalid(rondo_onnx_builder_build_sized(NULL, &size, program), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_onnx_builder_fill_model(NULL, &model), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_onnx_builder_fill_model(builder, NULL), RONDO_REASON_NULL_ARGUMENT);
  assert_ok(rondo_onnx_builder_fill_model(of_rows, &model));
  assert_true(model.build == rondo_onnx_builder_build && model.build_sized == NULL && !model.exact_lengths);
  assert_ok(rondo_onnx_builder_fill_model(builder, &model));
  assert_true(model.build == NULL && model.build_sized == rondo_onnx_builder_build_sized && model.exact_lengths);
  assert_null(rondo_onnx_builder_length(NULL));
}
