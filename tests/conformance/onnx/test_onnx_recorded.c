/* SPDX-License-Identifier: MIT
 * Models run eagerly and recorded with the same bits (ON-9): programs of several shapes that share their weights, a
 * share of the models of libonnx-testdata, and a session that serves a model by batch sizes.
 */
#define _POSIX_C_SOURCE 200809L
#include <rondo/onnx.h>
#include <rondo/session.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/rondo_test.h"
#include "support/test_onnx.h"
#include "support/test_program.h"

enum { FLOAT = 1, WIDTH = 8, CLASSES = 5 };

#define NAMES(...) ((const char *[]){__VA_ARGS__, NULL})
#define DIMS(...) (const int64_t[]){__VA_ARGS__}, sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)

/* Models ----------------------------------------------------------------------------------------------------------- */

static void destroy_model(void *model) { rondo_onnx_destroy(model); }

static void fill(float *out, size_t count, uint32_t seed) {
  for (size_t i = 0; i < count; i++) {
    seed = seed * 1664525u + 1013904223u;
    out[i] = (float)(seed >> 16) / 65536.0f - 0.5f;
  }
}

/* probabilities = softmax(relu((x - row) w + b) v), x [rows, WIDTH], where exporters expand the row to the shape of x.
 * `rows` is a size, -1 for the dimension "batch", or -2 for "length". */
static rondo_onnx_model *classifier_of(int64_t rows) {
  float w[WIDTH * WIDTH], b[WIDTH], v[WIDTH * CLASSES], row[WIDTH];
  static const int64_t rest[] = {0, -1};
  onnx_bytes graph = {0};
  fill(row, WIDTH, 4);
  fill(w, WIDTH * WIDTH, 1);
  fill(b, WIDTH, 2);
  fill(v, WIDTH * CLASSES, 3);
  onnx_add_input(&graph, "x", FLOAT, DIMS(rows, WIDTH));
  onnx_add_initializer(&graph, "row", FLOAT, row, sizeof row, DIMS(1, WIDTH));
  onnx_add_initializer(&graph, "w", FLOAT, w, sizeof w, DIMS(WIDTH, WIDTH));
  onnx_add_initializer(&graph, "b", FLOAT, b, sizeof b, DIMS(WIDTH));
  onnx_add_initializer(&graph, "v", FLOAT, v, sizeof v, DIMS(WIDTH, CLASSES));
  onnx_add_initializer(&graph, "rest", 7, rest, sizeof rest, DIMS(2));
  onnx_add_node(&graph, "Shape", NAMES("x"), NAMES("shape"));
  onnx_add_node(&graph, "Expand", NAMES("row", "shape"), NAMES("expanded"));
  onnx_add_node(&graph, "Neg", NAMES("expanded"), NAMES("negative"));
  onnx_add_node(&graph, "Add", NAMES("x", "negative"), NAMES("moved"));
  onnx_add_node(&graph, "Gemm", NAMES("moved", "w", "b"), NAMES("sum"));
  onnx_add_node(&graph, "Relu", NAMES("sum"), NAMES("hidden"));
  onnx_add_node(&graph, "Reshape", NAMES("hidden", "rest"), NAMES("flat"));
  onnx_add_node(&graph, "MatMul", NAMES("flat", "v"), NAMES("scores"));
  onnx_add_node(&graph, "Softmax", NAMES("scores"), NAMES("probabilities"));
  onnx_add_output(&graph, "probabilities");
  rondo_onnx_model *model = NULL;
  const onnx_bytes bytes = onnx_model(&graph);
  assert_ok(rondo_onnx_parse(bytes.bytes, bytes.count, NULL, &model));
  return test_leave(destroy_model, model);
}

static rondo_onnx_model *classifier(void) { return classifier_of(-1); }

static rondo_status build_batch(const rondo_onnx_model *model, size_t batch, rondo_program *program,
                                rondo_onnx_build **out) {
  const rondo_onnx_dimension_size size = {"batch", batch};
  const rondo_onnx_build_options options = {RONDO_ONNX_BUILD_OPTIONS_INIT, .dimensions = &size, .dimension_count = 1};
  return rondo_onnx_build_program(model, &options, program, out);
}

/* Two ways --------------------------------------------------------------------------------------------------------- */

/* Named values of a program: 'i' inputs, 'o' outputs. */
static bool next_value(rondo_compiled *of, char kind, size_t *inout_index, rondo_compiled_value *out) {
  *out = (rondo_compiled_value){.struct_size = sizeof *out};
  while (rondo_compiled_get_value(of, (*inout_index)++, out) == RONDO_OK)
    if (out->kind == kind) return true;
  return false;
}

/* Floats are random; other elements are 0 or 1, as indices and masks need. */
static void write_inputs(rondo_compiled *of) {
  rondo_compiled_value value;
  for (size_t i = 0; next_value(of, 'i', &i, &value);) {
    uint8_t *data = calloc(value.bytes, 1);
    assert_non_null(data);
    if (value.type == RONDO_F32) fill((float *)(void *)data, value.bytes / sizeof(float), (uint32_t)i);
    assert_ok(rondo_compiled_write(of, value.name, data, value.bytes));
    free(data);
  }
}

static uint8_t *read_outputs(rondo_compiled *of, size_t *out_bytes) {
  rondo_compiled_value value;
  uint8_t *all = NULL;
  size_t bytes = 0;
  for (size_t i = 0; next_value(of, 'o', &i, &value); bytes += value.bytes) {
    all = realloc(all, bytes + value.bytes);
    assert_non_null(all);
    assert_ok(rondo_compiled_read(of, value.name, all + bytes, value.bytes));
  }
  *out_bytes = bytes;
  return all;
}

/* Runs eagerly and recorded. */
static bool has_same_bits(rondo_compiled *of) {
  size_t bytes = 0, again_bytes = 0;
  write_inputs(of);
  assert_ok(rondo_compiled_run_eager(of));
  uint8_t *eager = read_outputs(of, &bytes);
  write_inputs(of);
  assert_ok(rondo_compiled_run(of));
  uint8_t *recorded = read_outputs(of, &again_bytes);
  const bool are_same = bytes == again_bytes && (bytes == 0 || memcmp(eager, recorded, bytes) == 0);
  free(eager);
  free(recorded);
  return are_same;
}

/* Programs of several batch sizes, which share their weights: the largest first. */
TEST(test_on9_eager_and_recorded_by_shapes) {
  static const size_t batches[] = {7, 4, 1};
  rondo_onnx_model *model = classifier();
  rondo_compiled *first = NULL;
  for (size_t i = 0; i < 3; i++) {
    rondo_program *program = test_new_program();
    rondo_onnx_build *build = NULL;
    assert_ok(build_batch(model, batches[i], program, &build));
    const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .share = first};
    rondo_compiled *of = test_compile_kept(program, t->device, &options);
    if (first == NULL) assert_ok(rondo_weights_apply(rondo_onnx_build_weights(build), of, NULL, NULL));
    assert_true(has_same_bits(of));
    if (first == NULL) first = of;
    rondo_onnx_build_destroy(build);
  }
}

/* Models of libonnx-testdata --------------------------------------------------------------------------------------- */

#define DATA "/usr/share/libonnx-testdata/data"
enum { SHARE = 5 };

/* Whether the model has the same bits in both ways. Models that need values of inputs, or that are not supported, are
 * for test_onnx_models.c. */
static bool is_right(rondo_device *device, const char *path, size_t *inout_run) {
  rondo_onnx_model *model = NULL;
  rondo_onnx_build *build = NULL;
  rondo_program *program = test_new_program();
  rondo_compiled *of = NULL;
  bool is_same = true;
  test_note_error();
  if (rondo_onnx_load(path, NULL, &model) == RONDO_OK &&
      rondo_onnx_build_program(model, NULL, program, &build) == RONDO_OK &&
      rondo_compile(program, device, NULL, &of) == RONDO_OK) {
    test_note_error();
    assert_ok(rondo_weights_apply(rondo_onnx_build_weights(build), of, NULL, NULL));
    is_same = has_same_bits(of);
    ++*inout_run;
  }
  assert_ok(rondo_compiled_destroy(of));
  rondo_onnx_build_destroy(build);
  rondo_onnx_destroy(model);
  return is_same;
}

TEST(test_on9_models_of_libonnx_testdata) {
  static const char *const folders[] = {"pytorch-converted", "pytorch-operator", "simple"};
  size_t seen = 0, run = 0;
  for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
    char path[600];
    (void)snprintf(path, sizeof path, DATA "/%s", folders[i]);
    DIR *directory = opendir(path);
    if (directory == NULL) skip();
    for (const struct dirent *entry; (entry = readdir(directory)) != NULL;) {
      if (strncmp(entry->d_name, "test_", 5) != 0 || seen++ % SHARE != 0) continue;
      (void)snprintf(path, sizeof path, DATA "/%s/%s/model.onnx", folders[i], entry->d_name);
      if (!is_right(t->device, path, &run)) print_error("%s: other bits\n", path), fail();
    }
    closedir(directory);
  }
  assert_true(run > 10);
}

/* Sessions --------------------------------------------------------------------------------------------------------- */

static void run_request(rondo_session *session, rondo_run_mode mode, size_t rows, const float *x, float *y) {
  const void *input = x;
  void *output = y;
  const rondo_request request = {RONDO_REQUEST_INIT, .mode = mode, .rows = rows, .inputs = &input, .outputs = &output};
  assert_ok(rondo_session_run(session, "classifier", &request, NULL));
}

static void destroy_builder(void *builder) { rondo_onnx_builder_destroy(builder); }

static rondo_onnx_builder *new_builder(const rondo_onnx_model *model, const rondo_onnx_builder_options *options) {
  rondo_onnx_builder *builder = NULL;
  assert_ok(rondo_onnx_builder_create(model, options, &builder));
  return test_leave(destroy_builder, builder);
}

/* Each recorded size has the bits of an eager run of as many rows. All sizes share the weights of the builder. */
static void serve(test_fixture *t, rondo_onnx_builder *builder) {
  enum { MOST = 8 };
  rondo_session *session = NULL;
  float x[MOST * WIDTH], recorded[MOST * CLASSES], eager[MOST * CLASSES];
  rondo_model_info info = {.struct_size = sizeof info};
  fill(x, MOST * WIDTH, 9);
  const rondo_model_options options = {RONDO_MODEL_OPTIONS_INIT, .build = rondo_onnx_builder_build, .user = builder,
                                       .weights = rondo_onnx_builder_weights(builder)};
  assert_ok(rondo_session_create(t->device, NULL, &session));
  assert_ok(rondo_session_add_model(session, "classifier", &options));
  assert_ok(rondo_session_capture_begin(session, "classifier"));
  for (size_t rows = MOST; rows > 0; rows /= 2) run_request(session, RONDO_RUN_AUTO, rows, x, recorded);
  assert_ok(rondo_session_capture_end(session));
  for (size_t rows = 1; rows <= MOST; rows++) {
    run_request(session, RONDO_RUN_RECORDED, rows, x, recorded);
    run_request(session, RONDO_RUN_EAGER, rows, x, eager);
    assert_near(recorded, eager, rows * CLASSES, 1e-5f);
    const bool has_graph = (rows & (rows - 1)) == 0;
    if (has_graph) assert_memory_equal(recorded, eager, rows * CLASSES * sizeof(float));
  }
  assert_ok(rondo_session_get_model_info(session, "classifier", &info));
  assert_int_equal(info.graphs, 4);
  assert_true(info.state_bytes < 2 * (WIDTH * (WIDTH + CLASSES + 2)) * sizeof(float) + 4 * 256); /* once, rounded up */
  assert_ok(rondo_session_destroy(session));
}

TEST(test_on9_a_session_serves_a_model_by_batch_sizes) { serve(t, new_builder(classifier(), NULL)); }

/* The rows are a dimension of another name, which the options give. */
TEST(test_on9_a_session_serves_a_model_by_a_named_dimension) {
  rondo_onnx_builder_options options = {RONDO_ONNX_BUILDER_OPTIONS_INIT, .rows = "length"};
  serve(t, new_builder(classifier_of(-2), &options));
  serve(t, new_builder(classifier_of(-2), NULL)); /* the first dimension */
}

TEST(test_on9_builders_that_have_no_rows) {
  rondo_onnx_builder *builder = NULL;
  rondo_onnx_builder_options options = {RONDO_ONNX_BUILDER_OPTIONS_INIT, .rows = "rows"};
  const rondo_onnx_dimension_size unnamed = {.size = 2};
  const rondo_onnx_build_options build = {RONDO_ONNX_BUILD_OPTIONS_INIT, .dimensions = &unnamed, .dimension_count = 1};
  rondo_onnx_model *model = classifier(), *fixed = classifier_of(4);
  assert_invalid(rondo_onnx_builder_create(model, &options, &builder), RONDO_REASON_UNKNOWN_NAME);
  assert_message("'rows'");
  assert_null(builder);
  assert_invalid(rondo_onnx_builder_create(fixed, NULL, &builder), RONDO_REASON_SHAPE);
  assert_message("dynamic batch size");
  options = (rondo_onnx_builder_options){RONDO_ONNX_BUILDER_OPTIONS_INIT, .build = &build};
  assert_invalid(rondo_onnx_builder_create(model, &options, &builder), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_onnx_builder_build(new_builder(model, NULL), 0, test_new_program()), RONDO_REASON_SHAPE);
}

/* y = x + threes, and perhaps threes [batch, 1]: for one row it has a single element, which is a constant of the
 * program. */
static rondo_onnx_model *model_with_threes(bool is_output) {
  static const int64_t one[] = {1}, zero[] = {0};
  static const float three[] = {3};
  onnx_bytes graph = {0};
  onnx_bytes concat = onnx_node("concat", "Concat", NAMES("rows", "one"), NAMES("size"));
  onnx_add_int(&concat, "axis", 0);
  onnx_add_input(&graph, "x", FLOAT, DIMS(-1, 2));
  onnx_add_initializer(&graph, "one", 7, one, sizeof one, DIMS(1));
  onnx_add_initializer(&graph, "first", 7, zero, sizeof zero, DIMS(1));
  onnx_add_initializer(&graph, "three", FLOAT, three, sizeof three, DIMS(1));
  onnx_add_node(&graph, "Shape", NAMES("x"), NAMES("shape"));
  onnx_add_node(&graph, "Gather", NAMES("shape", "first"), NAMES("rows"));
  onnx_nest(&graph, ONNX_GRAPH_NODE, &concat);
  onnx_add_node(&graph, "ConstantOfShape", NAMES("size"), NAMES("zeros"));
  onnx_add_node(&graph, "Add", NAMES("zeros", "three"), NAMES("threes"));
  onnx_add_node(&graph, "Add", NAMES("x", "threes"), NAMES("y"));
  onnx_add_output(&graph, "y");
  if (is_output) onnx_add_output(&graph, "threes");
  const onnx_bytes bytes = onnx_model(&graph);
  rondo_onnx_model *model = NULL;
  assert_ok(rondo_onnx_parse(bytes.bytes, bytes.count, NULL, &model));
  return test_leave(destroy_model, model);
}

static void serve_threes(test_fixture *t, bool is_output) {
  enum { MOST = 4 };
  static const float x[MOST * 2] = {1, 2, 3, 4, 5, 6, 7, 8};
  rondo_session *session = NULL;
  rondo_onnx_builder *builder = new_builder(model_with_threes(is_output), NULL);
  const rondo_model_options options = {RONDO_MODEL_OPTIONS_INIT, .build = rondo_onnx_builder_build, .user = builder,
                                       .weights = rondo_onnx_builder_weights(builder)};
  assert_ok(rondo_session_create(t->device, NULL, &session));
  assert_ok(rondo_session_add_model(session, "threes", &options));
  for (size_t rows = 1; rows <= MOST; rows++) {
    float y[MOST * 2], threes[MOST];
    const rondo_request request = {RONDO_REQUEST_INIT, .rows = rows, .inputs = (const void *[]){x},
                                   .outputs = (void *[]){y, threes}};
    assert_ok(rondo_session_run(session, "threes", &request, NULL));
    for (size_t i = 0; i < rows * 2; i++) assert_true(y[i] == x[i] + 3);
    for (size_t i = 0; i < rows && is_output; i++) assert_true(threes[i] == 3);
  }
  assert_ok(rondo_session_destroy(session));
}

TEST(test_on9_constants_with_one_element_for_each_row) {
  serve_threes(t, false);
  serve_threes(t, true);
}

/* y = x + the shape of x; or y = x by the numbers of its rows. Both are other constants for other numbers of rows. */
static rondo_onnx_model *model_of_rows(bool has_numbers) {
  static const int64_t zero[] = {0}, one[] = {1};
  onnx_bytes graph = {0};
  onnx_bytes cast = onnx_node("cast", "Cast", NAMES("shape"), NAMES("sizes"));
  onnx_add_int(&cast, "to", FLOAT);
  onnx_add_input(&graph, "x", FLOAT, DIMS(-1, 2));
  onnx_add_initializer(&graph, "zero", 7, zero, sizeof zero, NULL, 0);
  onnx_add_initializer(&graph, "one", 7, one, sizeof one, NULL, 0);
  onnx_add_node(&graph, "Shape", NAMES("x"), NAMES("shape"));
  if (has_numbers) {
    onnx_add_node(&graph, "Gather", NAMES("shape", "zero"), NAMES("rows"));
    onnx_add_node(&graph, "Range", NAMES("zero", "rows", "one"), NAMES("numbers"));
    onnx_add_node(&graph, "Gather", NAMES("x", "numbers"), NAMES("y"));
  } else {
    onnx_nest(&graph, ONNX_GRAPH_NODE, &cast);
    onnx_add_node(&graph, "Add", NAMES("x", "sizes"), NAMES("y"));
  }
  onnx_add_output(&graph, "y");
  const onnx_bytes bytes = onnx_model(&graph);
  rondo_onnx_model *model = NULL;
  assert_ok(rondo_onnx_parse(bytes.bytes, bytes.count, NULL, &model));
  return test_leave(destroy_model, model);
}

static void run_rows(rondo_session *session, rondo_run_mode mode, size_t rows, const float *x, float *y) {
  const rondo_request request = {RONDO_REQUEST_INIT, .mode = mode, .rows = rows, .inputs = (const void *[]){x},
                                 .outputs = (void *[]){y}};
  assert_ok(rondo_session_run(session, "rows", &request, NULL));
}

static rondo_session *session_of(rondo_device *device, rondo_onnx_builder *builder) {
  rondo_session *session = NULL;
  const rondo_model_options options = {RONDO_MODEL_OPTIONS_INIT, .build = rondo_onnx_builder_build, .user = builder,
                                       .weights = rondo_onnx_builder_weights(builder)};
  assert_ok(rondo_session_create(device, &(rondo_session_options){RONDO_SESSION_OPTIONS_INIT, .streams = 2}, &session));
  assert_ok(rondo_session_add_model(session, "rows", &options));
  return session;
}

/* Graphs of 2 and 4 rows, on two streams, and programs of other sizes have constants of their own. */
TEST(test_on9_numbers_of_rows_are_constants_of_each_size) {
  enum { MOST = 4 };
  static const float x[MOST * 2] = {1, 2, 3, 4, 5, 6, 7, 8};
  float y[MOST * 2];
  rondo_session *session = session_of(t->device, new_builder(model_of_rows(true), NULL));
  assert_ok(rondo_session_capture_begin(session, "rows"));
  for (size_t rows = MOST; rows > 1; rows /= 2) run_rows(session, RONDO_RUN_AUTO, rows, x, y);
  assert_ok(rondo_session_capture_end(session));
  for (size_t rows = 1; rows <= MOST; rows++) {
    for (size_t i = 0; i < 2; i++) {
      memset(y, 0, sizeof y);
      run_rows(session, i == 0 ? RONDO_RUN_RECORDED : RONDO_RUN_EAGER, rows, x, y);
      assert_memory_equal(y, x, rows * 2 * sizeof *x);
    }
  }
  assert_ok(rondo_session_destroy(session));
}

/* Of a size that no graph has, so that each request runs with as many rows as it has. */
TEST(test_on9_sizes_are_constants_of_each_size) {
  enum { MOST = 3 };
  static const float x[MOST * 2] = {1, 2, 3, 4, 5, 6};
  rondo_session *session = session_of(t->device, new_builder(model_of_rows(false), NULL));
  for (size_t rows = 1; rows <= MOST; rows++) {
    float y[MOST * 2];
    run_rows(session, RONDO_RUN_EAGER, rows, x, y);
    for (size_t i = 0; i < rows * 2; i++) assert_true(y[i] == x[i] + (i % 2 == 0 ? (float)rows : 2));
  }
  assert_ok(rondo_session_destroy(session));
}

/* One row's constants are states, which the session writes; those of three rows are the program's, with its bytes. */
TEST(test_on9_programs_count_their_constants) {
  rondo_onnx_builder *builder = new_builder(model_of_rows(false), NULL);
  rondo_compiled *first = NULL;
  for (size_t rows = 1; rows <= 3; rows += 2) {
    rondo_compiled_info info = {.struct_size = sizeof info};
    rondo_program *program = test_new_program();
    assert_ok(rondo_onnx_builder_build(builder, rows, program));
    const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .share = first};
    rondo_compiled *of = test_compile_kept(program, t->device, &options);
    assert_ok(rondo_compiled_get_info(of, &info));
    assert_int_equal(info.constant_bytes, rows == 1 ? 0 : 256);
    assert_true(info.state_bytes >= info.constant_bytes);
    if (first == NULL) first = of;
  }
}

/* y = x x^T, the sum of the rows of x, or x without its zeros. */
static rondo_onnx_model *model_without_rows(const char *operator_name) {
  static const int64_t zero[] = {0};
  const bool is_sum = strcmp(operator_name, "ReduceSum") == 0, is_product = strcmp(operator_name, "MatMul") == 0;
  onnx_bytes graph = {0};
  onnx_add_input(&graph, "x", FLOAT, DIMS(-1, 2));
  onnx_add_initializer(&graph, "axes", 7, zero, sizeof zero, DIMS(1));
  onnx_add_node(&graph, "Transpose", NAMES("x"), NAMES("turned"));
  onnx_add_node(&graph, operator_name,
                is_product ? NAMES("x", "turned")
                : is_sum   ? NAMES("x", "axes")
                           : NAMES("x"),
                NAMES("y"));
  onnx_add_output(&graph, "y");
  const onnx_bytes bytes = onnx_model(&graph);
  rondo_onnx_model *model = NULL;
  assert_ok(rondo_onnx_parse(bytes.bytes, bytes.count, NULL, &model));
  return test_leave(destroy_model, model);
}

/* What an output is for one row and for two says whether it has rows. */
TEST(test_on9_outputs_without_rows_are_refused) {
  static const char *const models[][2] = {
      {"MatMul", "'y' is [1, 1] for 1 row and [2, 2] for 2 rows: one dimension must be the number of rows"},
      {"ReduceSum", "'y' is [1, 2] for 1 row and [1, 2] for 2 rows: it does not have the number of rows"},
      {"NonZero", "the size of the output 'y' depends on data"}};
  for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
    rondo_onnx_builder *builder = NULL;
    assert_invalid(rondo_onnx_builder_create(model_without_rows(models[i][0]), NULL, &builder), RONDO_REASON_SHAPE);
    assert_message(models[i][1]);
    assert_null(builder);
  }
  (void)t;
}

/* y is the sum of x + h over the layers, and h_out = h + h. The rows of h and h_out, [layers, rows, 2], are the second
 * dimension, as those of a recurrent network's states; exporters do not always give that of an output the name. */
static rondo_onnx_model *model_with_states(bool has_name) {
  static const int64_t zero[] = {0};
  onnx_bytes graph = {0};
  onnx_bytes sum = onnx_node("sum", "ReduceSum", NAMES("both", "axes"), NAMES("y"));
  onnx_add_int(&sum, "keepdims", 0);
  onnx_add_input(&graph, "x", FLOAT, DIMS(-1, 2));
  onnx_add_input(&graph, "h", FLOAT, DIMS(3, -1, 2));
  onnx_add_initializer(&graph, "axes", 7, zero, sizeof zero, DIMS(1));
  onnx_add_node(&graph, "Add", NAMES("h", "x"), NAMES("both"));
  onnx_nest(&graph, ONNX_GRAPH_NODE, &sum);
  onnx_add_node(&graph, "Add", NAMES("h", "h"), NAMES("h_out"));
  onnx_add_output(&graph, "y");
  const onnx_bytes states = onnx_value("h_out", FLOAT, DIMS(3, has_name ? -1 : -2, 2));
  onnx_nest(&graph, ONNX_GRAPH_OUTPUT, &states);
  const onnx_bytes bytes = onnx_model(&graph);
  rondo_onnx_model *model = NULL;
  assert_ok(rondo_onnx_parse(bytes.bytes, bytes.count, NULL, &model));
  return test_leave(destroy_model, model);
}

static void serve_states(test_fixture *t, const rondo_onnx_model *model, const char *rows_name) {
  enum { MOST = 4, LAYERS = 3, STATES = LAYERS * 2 };
  float x[MOST * 2], h[MOST * STATES], y[MOST * 2], h_out[MOST * STATES];
  const rondo_onnx_builder_options options = {RONDO_ONNX_BUILDER_OPTIONS_INIT, .rows = rows_name};
  rondo_session *session = session_of(t->device, new_builder(model, &options));
  for (size_t i = 0; i < MOST * 2; i++) x[i] = (float)i;
  for (size_t i = 0; i < MOST * STATES; i++) h[i] = (float)(i * i);
  for (size_t rows = MOST; rows > 0; rows--) {
    const rondo_request request = {RONDO_REQUEST_INIT, .rows = rows, .inputs = (const void *[]){x, h},
                                   .outputs = (void *[]){y, h_out}};
    assert_ok(rondo_session_run(session, "rows", &request, NULL));
    for (size_t i = 0; i < rows * STATES; i++) assert_true(h_out[i] == 2 * h[i]);
    for (size_t i = 0; i < rows * 2; i++) {
      const float *of_row = h + i / 2 * STATES + i % 2;
      assert_true(y[i] == of_row[0] + of_row[2] + of_row[4] + LAYERS * x[i]);
    }
  }
  assert_ok(rondo_session_destroy(session));
}

TEST(test_on9_rows_that_are_not_the_first_dimension) {
  serve_states(t, model_with_states(true), NULL);
  serve_states(t, model_with_states(true), "batch");
  serve_states(t, model_with_states(false), NULL);
}

/* Values with more dimensions than programs have are merged in them. The output gets its dimensions from Unsqueeze. */
TEST(test_on9_rows_that_cannot_be_moved) {
  static const int64_t axes[] = {0, 2, 4, 5, 6, 7};
  for (size_t i = 0; i < 2; i++) {
    onnx_bytes graph = {0};
    if (i == 0)
      onnx_add_input(&graph, "x", FLOAT, DIMS(1, -1, 2, 1, 1, 1, 1, 2));
    else
      onnx_add_input(&graph, "x", FLOAT, DIMS(-1, 2));
    onnx_add_initializer(&graph, "axes", 7, axes, sizeof axes, DIMS(6));
    onnx_add_node(&graph, i == 0 ? "Relu" : "Unsqueeze", i == 0 ? NAMES("x") : NAMES("x", "axes"), NAMES("y"));
    onnx_add_output(&graph, "y");
    const onnx_bytes bytes = onnx_model(&graph);
    const rondo_onnx_builder_options options = {RONDO_ONNX_BUILDER_OPTIONS_INIT, .rows = "batch"};
    rondo_onnx_model *model = NULL;
    rondo_onnx_builder *builder = NULL;
    assert_ok(rondo_onnx_parse(bytes.bytes, bytes.count, NULL, &model));
    (void)test_leave(destroy_model, model);
    assert_error(rondo_onnx_builder_create(model, &options, &builder), RONDO_UNSUPPORTED,
                 i == 0 ? RONDO_REASON_NONE : RONDO_REASON_SHAPE);
    assert_message("it has 8 dimensions, more than 6, and dimension 1 is the number of rows");
    assert_message(i == 0 ? "input 'x'" : "output 'y'");
  }
  (void)t;
}
