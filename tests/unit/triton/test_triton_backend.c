/* SPDX-License-Identifier: MIT
 * The backend of Triton Inference Server, with a server in memory (tests/fake_triton): models in ONNX files and in
 * shared objects, completed configurations, answers, bad requests, cancellation, timeouts, statistics and metrics (TS-1
 * to TS-5). Each call of the server fails once, and so do allocations (TS-6). With
 * RONDO_TEST_DEVICE=cuda:0, instances are on a GPU.
 */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rondo/operators.h>

#include "fake_triton/triton_test.h"
#include "support/rondo_test.h"
#include "support/test_onnx.h"
#include "triton/served_types.h"
#include "triton/sizes/size_regret.h"

enum { FLOAT = 1, INT64 = 7, STRING = 8, MOST_ROWS = 8 };

#define NAMES(...) ((const char *[]){__VA_ARGS__, NULL})
#define DIMS(...) (const int64_t[]){__VA_ARGS__}, sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)

/* Models ----------------------------------------------------------------------------------------------------------- */

/* y [batch, 2] = x [batch, 2] w, and twice = ids + ids. */
static void write_ranker(void) {
  static const float w[] = {1, 2, 3, 4};
  onnx_bytes graph = {0};
  onnx_add_input(&graph, "x", FLOAT, DIMS(-1, 2));
  onnx_add_input(&graph, "ids", INT64, DIMS(-1));
  onnx_add_initializer(&graph, "w", FLOAT, w, sizeof w, DIMS(2, 2));
  onnx_add_node(&graph, "MatMul", NAMES("x", "w"), NAMES("y"));
  onnx_add_node(&graph, "Add", NAMES("ids", "ids"), NAMES("twice"));
  onnx_add_output(&graph, "y");
  onnx_add_output(&graph, "twice");
  const onnx_bytes file = onnx_model(&graph);
  write_file("model.onnx", file.bytes, file.count);
}

static void write_texts(void) {
  onnx_bytes graph = {0};
  onnx_add_input(&graph, "text", STRING, DIMS(-1, 1));
  onnx_add_node(&graph, "Identity", NAMES("text"), NAMES("same"));
  onnx_add_output(&graph, "same");
  const onnx_bytes file = onnx_model(&graph);
  write_file("model.onnx", file.bytes, file.count);
}

static void load(const char *config) {
  make_repository();
  write_ranker();
  load_model(config);
}

/* Requests --------------------------------------------------------------------------------------------------------- */

static float xs[MOST_ROWS * 2];
static int64_t ids[MOST_ROWS];

/* A request for all outputs. */
static void make_request(triton_request *request, size_t rows) {
  *request = (triton_request){.input_count = 2, .output_count = 2, .outputs = {"y", "twice"}};
  request->inputs[0] = (triton_input){.name = "x",
                                      .type = TRITON_TYPE_FP32,
                                      .shape = {(int64_t)rows, 2},
                                      .rank = 2,
                                      .pieces = 1,
                                      .bytes = rows * 2 * sizeof *xs,
                                      .data = xs};
  request->inputs[1] = (triton_input){.name = "ids",
                                      .type = TRITON_TYPE_INT64,
                                      .shape = {(int64_t)rows, 1},
                                      .rank = 2,
                                      .pieces = 1,
                                      .bytes = rows * sizeof *ids,
                                      .data = ids};
  for (size_t i = 0; i < MOST_ROWS; i++) {
    xs[2 * i] = (float)i;
    xs[2 * i + 1] = 1;
    ids[i] = (int64_t)i + 5;
  }
}

static bool is_right(const triton_request *request, size_t rows) {
  if (request->has_error || request->answer_count != request->output_count) return false;
  for (uint32_t k = 0; k < request->answer_count; k++) {
    const triton_output *output = &request->answer[k];
    const float *y = (const float *)(const void *)output->data;
    const int64_t *twice = (const int64_t *)(const void *)output->data;
    const bool is_y = strcmp(output->name, "y") == 0;
    if (output->rank != 2 || output->shape[0] != (int64_t)rows || output->shape[1] != (is_y ? 2 : 1)) return false;
    for (size_t i = 0; i < rows; i++) {
      const float row = (float)i;
      if (is_y ? y[2 * i] != row + 3 || y[2 * i + 1] != 2 * row + 4 : twice[i] != 2 * ((int64_t)i + 5)) return false;
    }
  }
  return true;
}

/* Tests: models ---------------------------------------------------------------------------------------------------- */

/* The first test: functions that were found are not looked up again. */
UNIT_TEST(test_ts1_a_server_that_lacks_a_function) {
  start_server("{}");
  lacking = "TRITONBACKEND_ModelBackend";
  assert_refused(TRITONBACKEND_Initialize(&backend), TRITON_ERROR_UNAVAILABLE,
                 "this process has no function TRITONBACKEND_ModelBackend");
  lacking = NULL;
  assert_loaded(TRITONBACKEND_Initialize(&backend));
  assert_loaded(TRITONBACKEND_Finalize(&backend));
  assert_int_equal(fake_triton_alive(), 0);
}

UNIT_TEST(test_ts1_a_configuration_is_completed_from_the_model) {
  load("{\"name\":\"ranker\",\"backend\":\"rondo\",\"dynamic_batching\":{\"preferred_batch_size\":[4]}}");
  assert_int_equal(model.completed, 1);
  assert_string_equal(model.completion,
                      "{\"max_batch_size\":2,\"input\":[{\"name\":\"x\",\"data_type\":\"TYPE_FP32\",\"dims\":[2]},"
                      "{\"name\":\"ids\",\"data_type\":\"TYPE_INT64\",\"dims\":[1]}],\"output\":["
                      "{\"name\":\"y\",\"data_type\":\"TYPE_FP32\",\"dims\":[2]},"
                      "{\"name\":\"twice\",\"data_type\":\"TYPE_INT64\",\"dims\":[1]}],\"dynamic_batching\":{}}");
  unload();
}

#define INPUTS                                                                   \
  "\"input\":[{\"name\":\"ids\",\"data_type\":\"TYPE_INT64\",\"dims\":[\"1\"]}," \
  "{\"name\":\"x\",\"data_type\":\"TYPE_FP32\",\"dims\":[-1]}]"
#define OUTPUTS "\"output\":[{\"name\":\"y\",\"data_type\":\"TYPE_FP32\",\"dims\":[2]}]"

UNIT_TEST(test_ts1_what_a_configuration_gives_stays) {
  load("{\"max_batch_size\":8," INPUTS "}");
  assert_int_equal(model.completed, 1);
  assert_non_null(strstr(model.config,
                         "\"max_batch_size\":8,\"input\":[{\"name\":\"ids\",\"data_type\":\"TYPE_INT64\","
                         "\"dims\":[\"1\"]}"));
  unload();
  load("{\"max_batch_size\":8," INPUTS "," OUTPUTS "}");
  assert_int_equal(model.completed, 0);
  unload();
}

UNIT_TEST(test_ts1_a_model_that_does_not_load_says_why) {
  make_repository();
  refuse_model("{}", TRITON_ERROR_NOT_FOUND, "has no model: put model.onnx there");
  write_file("model.onnx", "none", 4);
  refuse_model("{}", TRITON_ERROR_INTERNAL, "/1/model.onnx");
  write_texts();
  refuse_model("{}", TRITON_ERROR_UNSUPPORTED, "input 'text' is a string");
  write_ranker();
  refuse_model("[1", TRITON_ERROR_INTERNAL, "column 3");
  refuse_model("{\"max_batch_size\":8,\"input\":[{\"name\":\"z\",\"data_type\":\"TYPE_FP32\",\"dims\":[2]}]}",
               TRITON_ERROR_INVALID_ARGUMENT, "input 'z' of the configuration is not one of the model's");
  refuse_model("{\"max_batch_size\":8,\"input\":[{\"name\":\"x\",\"data_type\":\"TYPE_FP32\",\"dims\":[2]}]}",
               TRITON_ERROR_INVALID_ARGUMENT, "lacks input 'ids'");
  refuse_model("{\"max_batch_size\":8,\"input\":[{\"name\":\"x\",\"data_type\":\"TYPE_FP32\",\"dims\":[3]}]}",
               TRITON_ERROR_INVALID_ARGUMENT, "where a row is [2]");
  refuse_model("{\"max_batch_size\":8,\"input\":[{\"name\":\"x\",\"data_type\":\"TYPE_FP16\",\"dims\":[2]}]}",
               TRITON_ERROR_INVALID_ARGUMENT, "TYPE_FP16 in the configuration and TYPE_FP32 in the model");
  refuse_model("{\"max_batch_size\":8," INPUTS ",\"output\":[{\"name\":\"y\",\"data_type\":\"TYPE_STRING\"}]}",
               TRITON_ERROR_UNSUPPORTED, "have no strings");
  refuse_model("{\"parameters\":{\"streams\":{\"string_value\":\"17\"}}}", TRITON_ERROR_INVALID_ARGUMENT,
               "parameter 'streams' of the configuration is '17': give a number from 1 to 16");
  refuse_model("{\"parameters\":{\"history\":{\"string_value\":\"4:0\"}}}", TRITON_ERROR_INVALID_ARGUMENT,
               "parameter 'history' of the configuration is '4:0'");
  refuse_model("{\"parameters\":{\"rows\":{\"string_value\":\"words\"}}}", TRITON_ERROR_INVALID_ARGUMENT, "'words'");
  refuse_model("{\"parameters\":{\"dimensions\":{\"string_value\":\"length\"}}}", TRITON_ERROR_INVALID_ARGUMENT,
               "'length' in parameter 'dimensions'");
  remove_repository();
}

/* y [batch, 2] = the sums of x [batch, length, 2] where mask [batch, length] is 1; or all, without the mask. z = x + 1.
 */
static void write_text_model(bool has_mask) {
  static const int64_t axes[] = {1, 2};
  static const float one[] = {1};
  onnx_bytes graph = {0}, sum = onnx_node("sum", "ReduceSum", NAMES(has_mask ? "kept" : "z", "one"), NAMES("y"));
  onnx_add_int(&sum, "keepdims", 0);
  onnx_add_input(&graph, "x", FLOAT, DIMS(-1, -2, 2));
  if (has_mask) onnx_add_input(&graph, "mask", FLOAT, DIMS(-1, -2));
  onnx_add_initializer(&graph, "one", INT64, &axes[0], sizeof *axes, DIMS(1));
  onnx_add_initializer(&graph, "two", INT64, &axes[1], sizeof *axes, DIMS(1));
  onnx_add_initializer(&graph, "unit", FLOAT, one, sizeof one, DIMS(1));
  onnx_add_node(&graph, "Add", NAMES("x", "unit"), NAMES("z"));
  if (has_mask) onnx_add_node(&graph, "Unsqueeze", NAMES("mask", "two"), NAMES("wide"));
  if (has_mask) onnx_add_node(&graph, "Mul", NAMES("z", "wide"), NAMES("kept"));
  onnx_nest(&graph, ONNX_GRAPH_NODE, &sum);
  onnx_add_output(&graph, "y");
  onnx_add_output(&graph, "z");
  const onnx_bytes file = onnx_model(&graph);
  write_file("model.onnx", file.bytes, file.count);
}

/* A request of two rows of this length, whose elements are 0, 1, 2, ... */
static void ask_text_model(size_t length, bool has_mask) {
  static float x[2 * 8 * 2], mask[2 * 8];
  triton_request request = {.input_count = has_mask ? 2 : 1, .output_count = 2, .outputs = {"y", "z"}};
  for (size_t i = 0; i < 2 * length * 2; i++) x[i] = (float)i;
  for (size_t i = 0; i < 2 * length; i++) mask[i] = 1;
  request.inputs[0] = (triton_input){.name = "x",
                                     .type = TRITON_TYPE_FP32,
                                     .shape = {2, (int64_t)length, 2},
                                     .rank = 3,
                                     .pieces = 1,
                                     .bytes = 2 * length * 2 * sizeof *x,
                                     .data = x};
  request.inputs[1] = (triton_input){.name = "mask",
                                     .type = TRITON_TYPE_FP32,
                                     .shape = {2, (int64_t)length},
                                     .rank = 2,
                                     .pieces = 1,
                                     .bytes = 2 * length * sizeof *mask,
                                     .data = mask};
  execute(&request);
  assert_false(request.has_error);
  const float *y = (const float *)(const void *)request.answer[0].data;
  const float *z = (const float *)(const void *)request.answer[1].data;
  assert_int_equal(request.answer[1].shape[1], length);
  for (size_t i = 0; i < 4; i++) {
    float sum = 0;
    for (size_t at = 0; at < length; at++) sum += x[(i / 2 * length + at) * 2 + i % 2] + 1;
    assert_true(y[i] == sum);
  }
  for (size_t i = 0; i < 2 * length * 2; i++) assert_true(z[i] == x[i] + 1);
}

/* Requests of lengths between those that are recorded are padded, or run eagerly. */
UNIT_TEST(test_ts1_lengths_of_a_model) {
  static const char lengths[] = "{\"parameters\":{\"lengths\":{\"string_value\":\"4,8\"}}}";
  for (size_t i = 0; i < 2; i++) {
    const bool has_mask = i == 0;
    make_repository();
    write_text_model(has_mask);
    load_model(has_mask
                   ? "{\"parameters\":{\"lengths\":{\"string_value\":\"4,8\"},\"mask\":{\"string_value\":\"mask\"}}}"
                   : lengths);
    assert_non_null(strstr(model.completion, "\"name\":\"x\",\"data_type\":\"TYPE_FP32\",\"dims\":[-1,2]"));
    for (size_t length = 1; length <= 8; length++) ask_text_model(length, has_mask);
    unload();
  }
}

UNIT_TEST(test_ts1_lengths_that_are_refused) {
  make_repository();
  write_text_model(true);
  refuse_model("{}", TRITON_ERROR_INVALID_ARGUMENT, "give the lengths to record as parameter 'lengths'");
  refuse_model("{\"parameters\":{\"lengths\":{\"string_value\":\"4,x\"}}}", TRITON_ERROR_INVALID_ARGUMENT,
               "parameter 'lengths' of the configuration is '4,x'");
  refuse_model("{\"parameters\":{\"lengths\":{\"string_value\":\"\"}}}", TRITON_ERROR_INVALID_ARGUMENT,
               "parameter 'lengths' of the configuration is ''");
  refuse_model("{\"parameters\":{\"lengths\":{\"string_value\":\"4\"},\"dimensions\":{\"string_value\":\"length=4\"}}}",
               TRITON_ERROR_INVALID_ARGUMENT, "no length of the model varies");
  refuse_model("{\"parameters\":{\"lengths\":{\"string_value\":\"4\"},\"causal\":{\"string_value\":\"1\"}}}",
               TRITON_ERROR_INVALID_ARGUMENT, "the output 'y' is");
  refuse_model("{\"parameters\":{\"lengths\":{\"string_value\":\"4\"},\"mask\":{\"string_value\":\"words\"}}}",
               TRITON_ERROR_INVALID_ARGUMENT, "no input 'words'");
  remove_repository();
}

/* y = x + x, in a shared object. */
UNIT_TEST(test_ts1_a_model_in_a_shared_object) {
  char path[128];
  triton_request request;
  make_repository();
  (void)snprintf(path, sizeof path, "%s/1/model.so", repository);
  assert_int_equal(symlink(RONDO_TEST_SCORER_MODEL, path), 0);
  write_file("broken", "", 0);
  refuse_model("{}", TRITON_ERROR_INTERNAL, "/1/model.so: the scorer's folder says that it is broken");
  remove_file("broken");
  start_server("{\"max_batch_size\":4}");
  assert_loaded(TRITONBACKEND_Initialize(&backend));
  assert_loaded(TRITONBACKEND_ModelInitialize(&model));
  assert_loaded(TRITONBACKEND_ModelInstanceInitialize(&instances[0]));
  make_request(&request, 2);
  request.input_count = request.output_count = 1;
  execute(&request);
  assert_false(request.has_error);
  const float *y = (const float *)(const void *)request.answer[0].data;
  for (size_t i = 0; i < 4; i++) assert_true(y[i] == 2 * xs[i]);
  unload();
}

/* The kind character, with a context of one byte, and all widths 1: logits = [1, -1] tanh(2 e) + [0.5, 0], where e is 0
 * for the byte a and 1 for b. */
static void save_character_model(void) {
  static const char *const metadata[][2] = {
      {"format", "rondo-byte-model"}, {"version", "1"}, {"context", "1"}, {"embedding", "1"}, {"hidden", "1"},
      {"vocabulary", "6162"},         {"opening", "61"}};
  char path[128];
  rondo_weights *weights;
  (void)snprintf(path, sizeof path, "%s/1/model.safetensors", repository);
  assert_ok(rondo_weights_create(NULL, &weights));
  for (size_t i = 0; i < sizeof metadata / sizeof *metadata; i++)
    assert_ok(rondo_weights_set_metadata(weights, metadata[i][0], metadata[i][1]));
  add_weight(weights, "embedding", 2, 1, (const float[]){0, 1});
  add_weight(weights, "hidden.weight", 1, 1, (const float[]){2});
  add_weight(weights, "hidden.bias", 1, 0, (const float[]){0});
  add_weight(weights, "output.weight", 1, 2, (const float[]){1, -1});
  add_weight(weights, "output.bias", 2, 0, (const float[]){0.5f, 0});
  assert_ok(rondo_weights_save(weights, path));
  rondo_weights_destroy(weights);
}

/* A model as `rondo train --save` writes it. */
UNIT_TEST(test_ts1_a_saved_model) {
  static const int32_t tokens[] = {0, 1, 1};
  triton_request request = {.input_count = 1, .output_count = 1, .outputs = {"logits"}};
  make_repository();
  write_file("model.safetensors", "none", 4);
  refuse_model("{}", TRITON_ERROR_INTERNAL, "model.safetensors: ");
  save_character_model();
  start_server("{}");
  assert_loaded(TRITONBACKEND_Initialize(&backend));
  assert_loaded(TRITONBACKEND_ModelInitialize(&model));
  assert_string_equal(model.completion,
                      "{\"max_batch_size\":2,\"input\":[{\"name\":\"tokens\",\"data_type\":\"TYPE_INT32\","
                      "\"dims\":[1]}],\"output\":[{\"name\":\"logits\",\"data_type\":\"TYPE_FP32\",\"dims\":[2]}]}");
  assert_loaded(TRITONBACKEND_ModelInstanceInitialize(&instances[0]));
  request.inputs[0] = (triton_input){.name = "tokens",
                                     .type = TRITON_TYPE_INT32,
                                     .shape = {3, 1},
                                     .rank = 2,
                                     .pieces = 1,
                                     .bytes = sizeof tokens,
                                     .data = tokens};
  execute(&request);
  assert_false(request.has_error);
  const float *logits = (const float *)(const void *)request.answer[0].data;
  for (size_t i = 0; i < 3; i++) {
    const float hidden = tokens[i] == 1 ? 0.9640276f : 0; /* tanh(2) */
    assert_true(fabsf(logits[2 * i] - (hidden + 0.5f)) < 1e-6f && fabsf(logits[2 * i + 1] + hidden) < 1e-6f);
  }
  unload();
}

/* Copies a file over model.so, in place. */
static void copy_model(const char *from) {
  char bytes[65536];
  FILE *file = fopen(from, "rb");
  assert_non_null(file);
  const size_t count = fread(bytes, 1, sizeof bytes, file);
  assert_in_range(count, 1, sizeof bytes - 1);
  assert_int_equal(fclose(file), 0);
  write_file("model.so", bytes, count);
}

static float score_of(triton_instance *instance) {
  triton_request request, *list = &request;
  make_request(&request, 2);
  request.input_count = request.output_count = 1;
  assert_loaded(TRITONBACKEND_ModelInstanceExecute(instance, &list, 1));
  await_release(&request);
  assert_false(request.has_error);
  return ((const float *)(const void *)request.answer[0].data)[2] / xs[2];
}

/* The new code is loaded while the old one is served, from the same path; and the file was written in place. */
UNIT_TEST(test_ts6_a_changed_shared_object) {
  static triton_model changed;
  make_repository();
  copy_model(RONDO_TEST_SCORER_MODEL);
  load_model("{\"max_batch_size\":4}");
  copy_model(RONDO_TEST_OTHER_SCORER_MODEL);
  changed = model;
  changed.state = NULL;
  instances[1].model = &changed;
  assert_loaded(TRITONBACKEND_ModelInitialize(&changed));
  assert_loaded(TRITONBACKEND_ModelInstanceInitialize(&instances[1]));
  assert_true(score_of(&instances[0]) == 2);
  assert_true(score_of(&instances[1]) == 4);
  assert_loaded(TRITONBACKEND_ModelInstanceFinalize(&instances[0]));
  assert_loaded(TRITONBACKEND_ModelFinalize(&model));
  assert_true(score_of(&instances[1]) == 4);
  assert_loaded(TRITONBACKEND_ModelInitialize(&model));
  assert_loaded(TRITONBACKEND_ModelInstanceInitialize(&instances[0]));
  assert_true(score_of(&instances[0]) == 4);
  assert_loaded(TRITONBACKEND_ModelInstanceFinalize(&instances[1]));
  assert_loaded(TRITONBACKEND_ModelFinalize(&changed));
  unload();
}

UNIT_TEST(test_ts1_a_shared_object_without_a_place_for_its_copy) {
  make_repository();
  copy_model(RONDO_TEST_SCORER_MODEL);
  assert_int_equal(setenv("TMPDIR", "/nowhere", 1), 0);
  refuse_model("{}", TRITON_ERROR_INTERNAL, "creating /nowhere/rondo-model.");
  assert_int_equal(unsetenv("TMPDIR"), 0);
  remove_repository();
}

/* y [rows, length] = 2 x, and 4 x for even lengths, by another operation; `more` [rows] is missing for odd ones if the
 * user wants that. */
static rondo_status build_by_length(void *user, const rondo_model_size *size, rondo_program *program) {
  const size_t shape[] = {size->rows, size->length};
  rondo_value x, y, more;
  RONDO_TRY(rondo_program_input(program, "x", RONDO_F32, shape, 2, &x));
  RONDO_TRY(rondo_op_add(program, x, x, &y));
  if (size->length % 2 == 0) RONDO_TRY(rondo_op_add(program, y, y, &y));
  if (user == NULL || size->length % 2 == 0) {
    RONDO_TRY(rondo_program_input(program, "more", RONDO_F32, shape, 1, &more));
    RONDO_TRY(rondo_program_output(program, "same", more));
  }
  return rondo_program_output(program, "y", y);
}

UNIT_TEST(test_ts4_values_of_two_lengths_are_found_by_name) {
  static const size_t lengths[] = {4};
  static char lacks_more;
  const rondo_allocator allocator = rondo_allocator_default();
  rondo_scratch scratch = {.allocator = &allocator};
  rondo_model_options options = {RONDO_MODEL_OPTIONS_INIT, .build_sized = build_by_length, .lengths = lengths,
                                 .length_count = 1};
  rondo_triton_tensors inputs, outputs;
  bool changes_states;
  assert_ok(rondo_triton_describe(&scratch, &options, &inputs, &outputs, &changes_states));
  assert_int_equal(inputs.count, 2);
  assert_true(rondo_triton_find_tensor(&inputs, "x")->has_length);
  assert_false(rondo_triton_find_tensor(&inputs, "more")->has_length);
  assert_true(rondo_triton_find_tensor(&outputs, "y")->has_length);
  assert_false(rondo_triton_find_tensor(&outputs, "same")->has_length);
  options.user = &lacks_more;
  assert_fails(rondo_triton_describe(&scratch, &options, &inputs, &outputs, &changes_states), RONDO_INVALID_ARGUMENT);
  assert_non_null(strstr(rondo_last_error()->message, "no input 'more' for another length"));
  rondo_scratch_free(&scratch);
}

UNIT_TEST(test_ts1_a_shared_object_that_is_none) {
  make_repository();
  write_file("model.so", "none", 4);
  refuse_model("{}", TRITON_ERROR_UNAVAILABLE, "the shared object does not load");
  remove_repository();
}

UNIT_TEST(test_ts1_a_server_of_another_version) {
  start_server("{}");
  fake_triton_set_version(2, 0);
  assert_refused(TRITONBACKEND_Initialize(&backend), TRITON_ERROR_UNSUPPORTED, "version 2.0 of the backend interface");
  assert_int_equal(fake_triton_alive(), 0);
}

UNIT_TEST(test_ts1_a_default_batch_size_that_is_none) {
  static const char *const configs[] = {"0", "-3", "many", "4x", "", "1048577"};
  for (size_t i = 0; i < sizeof configs / sizeof *configs; i++) {
    char config[96], text[96];
    start_server("{}");
    (void)snprintf(config, sizeof config, "{\"cmdline\":{\"default-max-batch-size\":\"%s\"}}", configs[i]);
    (void)snprintf(text, sizeof text, "default-max-batch-size is '%s': give a number from 1 to 1048576", configs[i]);
    backend.config = config;
    assert_refused(TRITONBACKEND_Initialize(&backend), TRITON_ERROR_INVALID_ARGUMENT, text);
    assert_int_equal(fake_triton_alive(), 0);
  }
}

/* Nothing is left of a device that was not opened, as AddressSanitizer sees. */
UNIT_TEST(test_ts1_an_instance_on_a_gpu_that_is_not_there) {
  make_repository();
  write_ranker();
  start_server("{}");
  assert_loaded(TRITONBACKEND_Initialize(&backend));
  assert_loaded(TRITONBACKEND_ModelInitialize(&model));
  instances[0].kind = TRITON_INSTANCE_GPU;
  instances[0].device = 99;
  triton_error *error = TRITONBACKEND_ModelInstanceInitialize(&instances[0]);
  assert_non_null(error);
  TRITONSERVER_ErrorDelete(error);
  assert_loaded(TRITONBACKEND_ModelFinalize(&model));
  assert_loaded(TRITONBACKEND_Finalize(&backend));
  assert_int_equal(fake_triton_alive(), 0);
  remove_repository();
}

UNIT_TEST(test_ts1_instances_that_are_neither_cpu_nor_gpu) {
  make_repository();
  write_ranker();
  start_server("{}");
  assert_loaded(TRITONBACKEND_Initialize(&backend));
  assert_loaded(TRITONBACKEND_ModelInitialize(&model));
  instances[0].kind = TRITON_INSTANCE_MODEL;
  assert_refused(TRITONBACKEND_ModelInstanceInitialize(&instances[0]), TRITON_ERROR_UNSUPPORTED, "neither KIND_CPU");
  assert_loaded(TRITONBACKEND_ModelFinalize(&model));
  assert_loaded(TRITONBACKEND_Finalize(&backend));
  assert_int_equal(fake_triton_alive(), 0);
  remove_repository();
}

/* Tests: requests -------------------------------------------------------------------------------------------------- */

#define SMALL "{\"parameters\":{\"history\":{\"string_value\":\"4\"},\"max_sizes\":{\"string_value\":\"1\"}}}"

UNIT_TEST(test_ts3_answers_are_those_of_the_model) {
  load("{\"parameters\":{\"history\":{\"string_value\":\"1:3,4\"}}}");
  for (size_t rows = 1; rows <= MOST_ROWS; rows++) {
    triton_request request;
    make_request(&request, rows);
    execute(&request);
    assert_true(is_right(&request, rows));
    make_request(&request, rows); /* inputs in pieces */
    request.inputs[0].pieces = 3;
    request.inputs[1].pieces = 2;
    execute(&request);
    assert_true(is_right(&request, rows));
  }
  assert_int_equal(atomic_load(&instances[0].succeeded), 2 * MOST_ROWS);
  assert_int_equal(atomic_load(&instances[0].failed), 0);
  assert_int_equal(atomic_load(&instances[0].batches), 2 * MOST_ROWS);
  assert_int_equal(atomic_load(&instances[0].batch_rows), MOST_ROWS * (MOST_ROWS + 1));
  unload();
}

static rondo_device *device_of_instance(void) {
  return ((const rondo_triton_instance *)instances[0].state)->served->device;
}

static void copy(rondo_stream *stream, void *to, const void *from, size_t bytes) {
  assert_ok(rondo_copy_async(stream, to, from, bytes));
  assert_ok(rondo_stream_synchronize(stream));
}

/* A region that a client has registered, with x and y of a request; ids and twice are sent. */
typedef struct device_region {
  rondo_stream *stream;
  void *x, *y;
} device_region;

static void open_region(device_region *out) {
  assert_ok(rondo_stream_create(device_of_instance(), NULL, &out->stream));
  assert_ok(rondo_malloc(device_of_instance(), sizeof xs, NULL, &out->x));
  assert_ok(rondo_malloc(device_of_instance(), sizeof xs, NULL, &out->y));
}

static void close_region(device_region *region) {
  assert_ok(rondo_free(device_of_instance(), region->x));
  assert_ok(rondo_free(device_of_instance(), region->y));
  assert_ok(rondo_stream_destroy(region->stream));
}

static void make_device_request(triton_request *request, size_t rows, const device_region *region) {
  make_request(request, rows);
  copy(region->stream, region->x, xs, rows * 2 * sizeof *xs);
  request->inputs[0].memory = TRITON_MEMORY_GPU;
  request->inputs[0].data = region->x;
  request->device_outputs[0] = region->y;
}

static void read_device_answer(triton_request *request, const device_region *region) {
  if (request->has_error) fail_msg("%s", request->message);
  copy(region->stream, request->answer[0].data, region->y, (size_t)request->answer[0].bytes);
}

/* CUDA shared memory: by itself, and in a batch with a request that is sent. */
UNIT_TEST(test_ts3_memory_of_the_gpu) {
  static triton_request requests[2];
  triton_request *list[] = {&requests[0], &requests[1]};
  device_region region;
  load("{\"parameters\":{\"history\":{\"string_value\":\"3,4\"}}}");
  if (instances[0].kind != TRITON_INSTANCE_GPU) {
    unload();
    skip();
  }
  open_region(&region);
  for (size_t rows = 1; rows <= MOST_ROWS; rows++) {
    make_device_request(&requests[0], rows, &region);
    execute(&requests[0]);
    read_device_answer(&requests[0], &region);
    assert_true(is_right(&requests[0], rows));
  }
  make_device_request(&requests[0], 2, &region);
  make_request(&requests[1], 1);
  assert_loaded(TRITONBACKEND_ModelInstanceExecute(&instances[0], list, 2));
  for (size_t i = 0; i < 2; i++) await_release(&requests[i]);
  read_device_answer(&requests[0], &region);
  assert_true(is_right(&requests[0], 2) && is_right(&requests[1], 1));
  make_device_request(&requests[0], 2, &region);
  requests[0].inputs[0].data = xs;
  execute(&requests[0]);
  assert_answer_error(&requests[0], TRITON_ERROR_INVALID_ARGUMENT, "'x' of model 'ranker' at");
  close_region(&region);
  unload();
}

UNIT_TEST(test_ts4_outputs_that_are_not_wanted) {
  triton_request request;
  load(SMALL);
  make_request(&request, 3);
  request.output_count = 1;
  request.outputs[0] = "twice";
  execute(&request);
  assert_true(is_right(&request, 3));
  make_request(&request, 3);
  request.output_count = 0;
  execute(&request);
  assert_true(is_right(&request, 3));
  unload();
}

/* It would take longer to wake a thread for it. */
UNIT_TEST(test_ts2_a_brief_request_runs_in_the_call) {
  triton_request request, *list = &request;
  load(SMALL);
  const rondo_triton_instance *state = instances[0].state;
  const double recorded = 1, eager = 1000;
  assert_ok(rondo_session_set_times(state->served->recorded->session, "ranker", &recorded, &eager, 1, 0));
  for (size_t rows = 1; rows <= 4; rows++) {
    make_request(&request, rows);
    assert_loaded(TRITONBACKEND_ModelInstanceExecute(&instances[0], &list, 1));
    assert_int_equal(atomic_load(&request.released), 1);
    assert_true(is_right(&request, rows));
  }
  unload();
}

UNIT_TEST(test_ts2_requests_of_one_call_run_together) {
  enum { REQUESTS = 4 };
  static triton_request requests[REQUESTS];
  triton_request *list[REQUESTS];
  load(SMALL);
  for (size_t i = 0; i < REQUESTS; i++) {
    make_request(&requests[i], 1);
    list[i] = &requests[i];
  }
  assert_loaded(TRITONBACKEND_ModelInstanceExecute(&instances[0], list, REQUESTS));
  for (size_t i = 0; i < REQUESTS; i++) {
    await_release(&requests[i]);
    assert_true(is_right(&requests[i], 1));
  }
  assert_int_equal(atomic_load(&instances[0].batch_rows), REQUESTS);
  unload();
}

/* More than the session takes at once, in one call. */
UNIT_TEST(test_ts2_requests_wait_for_places) {
  enum { REQUESTS = 20 };
  static triton_request requests[REQUESTS];
  triton_request *list[REQUESTS];
  load("{\"parameters\":{\"history\":{\"string_value\":\"1\"},\"max_queue\":{\"string_value\":\"3\"}}}");
  for (size_t i = 0; i < REQUESTS; i++) {
    make_request(&requests[i], 1 + i % 3);
    list[i] = &requests[i];
  }
  assert_loaded(TRITONBACKEND_ModelInstanceExecute(&instances[0], list, REQUESTS));
  for (size_t i = 0; i < REQUESTS; i++) {
    await_release(&requests[i]);
    assert_true(is_right(&requests[i], 1 + i % 3));
  }
  unload();
}

UNIT_TEST(test_ts2_instances_of_a_device_share_a_session) {
  triton_request request, other, *list = &other;
  load(
      "{\"instance_group\":[{\"kind\":\"KIND_CPU\",\"count\":2}],\"parameters\":{\"history\":{\"string_value\":\"2\"}}"
      "}");
  assert_loaded(TRITONBACKEND_ModelInstanceInitialize(&instances[1]));
  make_request(&other, 2);
  assert_loaded(TRITONBACKEND_ModelInstanceExecute(&instances[1], &list, 1));
  assert_loaded(TRITONBACKEND_ModelInstanceFinalize(&instances[1])); /* waits for the answer */
  assert_true(is_right(&other, 2));
  assert_int_equal(atomic_load(&instances[1].succeeded), 1);
  make_request(&request, 1);
  execute(&request);
  assert_true(is_right(&request, 1));
  unload();
}

static unsigned times_locked;

/* Called in each allocation of the thread, until it is unset. */
static void count_locked_model(void) {
  rondo_triton_model_state *state = model.state;
  if (pthread_mutex_trylock(&state->lock) != 0)
    times_locked++;
  else
    pthread_mutex_unlock(&state->lock);
  in_allocation = count_locked_model;
}

UNIT_TEST(test_ts2_no_lock_is_held_while_a_model_is_recorded) {
  make_repository();
  write_ranker();
  start_server(SMALL);
  assert_loaded(TRITONBACKEND_Initialize(&backend));
  assert_loaded(TRITONBACKEND_ModelInitialize(&model));
  times_locked = 0;
  in_allocation = count_locked_model;
  assert_loaded(TRITONBACKEND_ModelInstanceInitialize(&instances[0]));
  in_allocation = NULL;
  assert_in_range(times_locked, 0, 1); /* that of the list's member */
  unload();
}

static pthread_t second_instance;
static triton_error *second_failure;

static void *initialize_second_instance(void *unused) {
  (void)unused;
  second_failure = TRITONBACKEND_ModelInstanceInitialize(&instances[1]);
  return NULL;
}

/* While the first instance records, a second one comes; then an allocation of the first one fails, or of the second. */
static void start_second_instance(void) {
  const rondo_triton_model_state *state = model.state;
  if (state->sessions == NULL) {
    in_allocation = start_second_instance;
    return;
  }
  assert_int_equal(pthread_create(&second_instance, NULL, initialize_second_instance, NULL), 0);
  test_sleep_ms(20); /* so that it waits, mostly */
  fail_allocation(1);
}

/* The second one waits for the first one, and records the model itself after that has failed. */
UNIT_TEST(test_ts6_the_first_of_two_instances_fails) {
  triton_request request;
  make_repository();
  write_ranker();
  start_server(SMALL);
  assert_loaded(TRITONBACKEND_Initialize(&backend));
  assert_loaded(TRITONBACKEND_ModelInitialize(&model));
  in_allocation = start_second_instance;
  triton_error *failure = TRITONBACKEND_ModelInstanceInitialize(&instances[0]);
  assert_int_equal(pthread_join(second_instance, NULL), 0);
  fail_allocation(0);
  assert_true((failure == NULL) != (second_failure == NULL));
  TRITONSERVER_ErrorDelete(failure == NULL ? second_failure : failure);
  if (failure != NULL) assert_loaded(TRITONBACKEND_ModelInstanceInitialize(&instances[0]));
  if (second_failure == NULL) assert_loaded(TRITONBACKEND_ModelInstanceFinalize(&instances[1]));
  make_request(&request, 3);
  execute(&request);
  assert_true(is_right(&request, 3));
  unload();
}

UNIT_TEST(test_ts4_a_bad_request_is_answered_by_name) {
  triton_request request;
  load(SMALL);
  make_request(&request, 2);
  request.input_count = 1;
  execute(&request);
  assert_answer_error(&request, TRITON_ERROR_INVALID_ARGUMENT, "a request lacks an input: ids");
  make_request(&request, 2);
  request.inputs[0].type = TRITON_TYPE_FP64;
  execute(&request);
  assert_answer_error(&request, TRITON_ERROR_INVALID_ARGUMENT, "input 'x' is TYPE_FP64: the model has TYPE_FP32");
  make_request(&request, 2);
  request.inputs[0].shape[1] = 3;
  execute(&request);
  assert_answer_error(&request, TRITON_ERROR_INVALID_ARGUMENT, "input 'x' has the shape [2, 3]");
  make_request(&request, 2);
  request.inputs[0].shape[0] = 0;
  execute(&request);
  assert_answer_error(&request, TRITON_ERROR_INVALID_ARGUMENT, "input 'x' has the shape [0, 2]");
  make_request(&request, 2);
  request.inputs[1].shape[0] = 1;
  request.inputs[1].bytes = sizeof *ids;
  execute(&request);
  assert_answer_error(&request, TRITON_ERROR_INVALID_ARGUMENT, "input 'ids' has 1 rows and another input");
  make_request(&request, 2);
  request.inputs[0].bytes--;
  execute(&request);
  assert_answer_error(&request, TRITON_ERROR_INVALID_ARGUMENT, "input 'x' has 15 bytes: 2 rows of 8 are needed");
  make_request(&request, 2);
  request.inputs[0].memory = TRITON_MEMORY_GPU;
  request.inputs[0].memory_id = 1; /* not the instance's */
  execute(&request);
  assert_answer_error(&request, TRITON_ERROR_UNSUPPORTED, "input 'x' is in memory of a GPU");
  make_request(&request, 2);
  request.outputs[1] = "none";
  execute(&request);
  assert_answer_error(&request, TRITON_ERROR_INVALID_ARGUMENT, "the model has no output 'none'");
  assert_int_equal(atomic_load(&instances[0].failed), 8);
  make_request(&request, 2); /* the next one is served */
  execute(&request);
  assert_true(is_right(&request, 2));
  unload();
}

UNIT_TEST(test_ts4_a_cancelled_request) {
  triton_request request;
  load(SMALL);
  make_request(&request, 1);
  atomic_store(&request.is_cancelled, true);
  execute(&request);
  assert_answer_error(&request, TRITON_ERROR_CANCELLED, "was cancelled");
  unload();
}

/* Requests that wait for others, which never come. */
#define PATIENT \
  "{\"parameters\":{\"history\":{\"string_value\":\"4\"},\"max_delay_us\":{\"string_value\":\"10000000\"}}}"

UNIT_TEST(test_ts4_a_request_that_is_cancelled_while_it_waits) {
  triton_request request, *list = &request;
  load(PATIENT);
  make_request(&request, 1);
  assert_loaded(TRITONBACKEND_ModelInstanceExecute(&instances[0], &list, 1));
  atomic_store(&request.is_cancelled, true);
  await_release(&request);
  assert_answer_error(&request, TRITON_ERROR_CANCELLED, "was cancelled");
  unload();
}

static triton_request second;

static void execute_second(void) {
  triton_request *list = &second;
  assert_loaded(TRITONBACKEND_ModelInstanceExecute(&instances[0], &list, 1));
}

/* While one call allocates memory for its request, another call brings one. */
UNIT_TEST(test_ts4_requests_that_begin_together_are_watched) {
  triton_request first, *list = &first;
  load(PATIENT);
  make_request(&first, 1);
  make_request(&second, 1);
  test_sleep_ms(20); /* the watching thread sleeps */
  in_allocation = execute_second;
  assert_loaded(TRITONBACKEND_ModelInstanceExecute(&instances[0], &list, 1));
  assert_true(in_allocation == NULL);
  atomic_store(&first.is_cancelled, true);
  atomic_store(&second.is_cancelled, true);
  for (int i = 0; i < 3000 && atomic_load(&second.released) + atomic_load(&first.released) < 2; i++) test_sleep_ms(1);
  assert_answer_error(&first, TRITON_ERROR_CANCELLED, "was cancelled");
  assert_answer_error(&second, TRITON_ERROR_CANCELLED, "was cancelled");
  unload();
}

/* A request waits for others for half of its time. */
UNIT_TEST(test_ts4_a_timeout_is_a_deadline) {
  triton_request request;
  load(PATIENT);
  make_request(&request, 1);
  request.timeout_us = 1000000;
  execute(&request); /* does not take the ten seconds */
  assert_true(is_right(&request, 1));
  make_request(&request, 1);
  request.timeout_us = 1;
  execute(&request);
  if (request.has_error) assert_answer_error(&request, TRITON_ERROR_UNAVAILABLE, "before its deadline");
  unload();
}

static void await_metric(const char *family, double value) {
  for (int i = 0; i < 3000 && fake_triton_metric(family) < value; i++) test_sleep_ms(1);
  assert_true(fake_triton_metric(family) == value);
}

UNIT_TEST(test_ts5_metrics_are_those_of_the_session) {
  triton_request request;
  load(SMALL);
  for (size_t i = 0; i < 3; i++) {
    make_request(&request, 3);
    execute(&request);
  }
  await_metric("rondo_request_rows", 9);
  assert_true(fake_triton_metric("rondo_recorded_requests") + fake_triton_metric("rondo_eager_requests") == 3);
  assert_true(fake_triton_metric("rondo_arena_bytes") > 0);
  unload();
  assert_true(fake_triton_metric("rondo_request_rows") < 0);
}

UNIT_TEST(test_ts5_requests_with_padding) {
  triton_request request;
  load(SMALL); /* one graph, of 4 rows */
  const rondo_triton_instance *state = instances[0].state;
  const double recorded = 1, eager = 1000;
  assert_ok(rondo_session_set_times(state->served->recorded->session, "ranker", &recorded, &eager, 1, 0));
  for (size_t rows = 1; rows <= 4; rows++) {
    make_request(&request, rows);
    execute(&request);
  }
  await_metric("rondo_request_rows", 10);
  assert_true(fake_triton_metric("rondo_padded_requests") == 3);
  assert_true(fake_triton_metric("rondo_padding_rows") == 6);
  unload();
}

/* A reload makes the new model before the old one ends; both have the same counters. */
UNIT_TEST(test_ts5_counters_go_on_when_a_model_is_loaded_again) {
  static triton_model again;
  triton_request request;
  load(SMALL);
  again = model;
  again.state = NULL;
  instances[1].model = &again;
  assert_loaded(TRITONBACKEND_ModelInitialize(&again));
  assert_loaded(TRITONBACKEND_ModelInstanceInitialize(&instances[1]));
  for (size_t i = 0; i < 5; i++) {
    make_request(&request, 3);
    execute(&request);
  }
  assert_loaded(TRITONBACKEND_ModelInstanceFinalize(&instances[0]));
  assert_true(fake_triton_metric("rondo_request_rows") == 15);
  assert_loaded(TRITONBACKEND_ModelFinalize(&model));
  assert_loaded(TRITONBACKEND_ModelInitialize(&model));
  assert_loaded(TRITONBACKEND_ModelInstanceInitialize(&instances[0]));
  assert_loaded(TRITONBACKEND_ModelInstanceFinalize(&instances[1]));
  assert_loaded(TRITONBACKEND_ModelFinalize(&again));
  make_request(&request, 3);
  execute(&request);
  await_metric("rondo_request_rows", 18);
  unload();
}

static void run_second(void) {
  execute_second();
  await_release(&second);
  test_sleep_ms(20); /* nothing is in flight */
}

UNIT_TEST(test_ts5_a_request_during_a_report_is_reported) {
  triton_request request;
  load(SMALL);
  make_request(&request, 3);
  make_request(&second, 2);
  await_metric("rondo_request_rows", 0);
  fake_triton_on_report(run_second);
  execute(&request);
  await_metric("rondo_request_rows", 5);
  unload();
}

UNIT_TEST(test_ts5_a_server_without_metrics) {
  triton_request request;
  make_repository();
  write_ranker();
  start_server(SMALL);
  fake_triton_without_metrics();
  assert_loaded(TRITONBACKEND_Initialize(&backend));
  assert_loaded(TRITONBACKEND_ModelInitialize(&model));
  assert_loaded(TRITONBACKEND_ModelInstanceInitialize(&instances[0]));
  make_request(&request, 3);
  execute(&request);
  assert_true(is_right(&request, 3));
  unload();
}

/* Whether a graph for this number of rows is recorded for an instance. */
static bool has_graph(const triton_instance *instance, size_t rows) {
  const rondo_triton_instance *state = instance->state;
  rondo_model_graph graph = {.struct_size = sizeof graph};
  for (size_t i = 0; rondo_session_get_graph(state->served->recorded->session, "ranker", i, &graph) == RONDO_OK; i++)
    if (graph.rows == rows) return true;
  return false;
}

/* The backend remembers the sizes that came. The server loads a model again before it unloads it, so none is refused.
 */
UNIT_TEST(test_ts2_sizes_are_chosen_for_what_came) {
  static triton_model again;
  load("{\"max_batch_size\":8,\"parameters\":{\"max_sizes\":{\"string_value\":\"2\"}}}");
  assert_false(has_graph(&instances[0], 7));
  for (size_t i = 0; i < 200; i++) {
    triton_request request;
    make_request(&request, 7);
    execute(&request);
    assert_true(is_right(&request, 7));
  }
  again = model;
  again.state = NULL;
  instances[1].model = &again;
  assert_loaded(TRITONBACKEND_ModelInitialize(&again));
  assert_loaded(TRITONBACKEND_ModelInstanceInitialize(&instances[1]));
  assert_true(has_graph(&instances[1], 7));
  assert_loaded(TRITONBACKEND_ModelInstanceFinalize(&instances[1]));
  assert_loaded(TRITONBACKEND_ModelFinalize(&again));
  unload();
}

static const int64_t one = 1;
static const bool yes = true;

/* A request after which sizes are chosen again. */
static void want_sizes(size_t rows) {
  triton_request request;
  make_request(&request, rows);
  request.parameter_count = 1;
  request.parameters[0] = (fake_parameter){"choose_sizes", TRITON_PARAMETER_BOOL, &yes};
  execute(&request);
  assert_true(is_right(&request, rows));
}

/* Whether sizes are being chosen, or the session from before has not been freed. */
static bool is_choosing(void) {
  const rondo_triton_instance *state = instances[0].state;
  rondo_triton_served *served = state->served;
  pthread_mutex_lock(&served->lock);
  const bool is = served->choice.is_wanted || served->choice.is_running || served->retired != NULL;
  pthread_mutex_unlock(&served->lock);
  return is;
}

#define FEW_SIZES(more) "{\"max_batch_size\":8,\"parameters\":{\"max_sizes\":{\"string_value\":\"2\"}" more "}}"
#define ALLOW_CHOOSING ",\"allow_choose_sizes\":{\"string_value\":\"1\"}"
#define MAX_REGRET(percent) ",\"max_regret\":{\"string_value\":\"" percent "\"}"

/* Requests are answered all the time, and the counters go on. */
UNIT_TEST(test_ts2_sizes_are_chosen_again_while_the_model_is_served) {
  size_t count = 0;
  load(FEW_SIZES(MAX_REGRET("1")));
  assert_false(has_graph(&instances[0], 7));
  await_metric("rondo_size_choices", 0);
  while (fake_triton_metric("rondo_size_choices") < 1 || is_choosing()) {
    triton_request request;
    make_request(&request, 7);
    execute(&request);
    assert_true(is_right(&request, 7));
    count++;
  }
  assert_true(count >= 256);
  assert_true(has_graph(&instances[0], 7));
  await_metric("rondo_request_rows", (double)(7 * count));
  assert_true(fake_triton_metric("rondo_arena_bytes") > 0);
  unload();
}

UNIT_TEST(test_ts2_sizes_are_chosen_again_on_request) {
  static const fake_parameter parameters[] = {{"choose_sizes", TRITON_PARAMETER_INT, &one},
                                              {"choose_sizes", TRITON_PARAMETER_STRING, "1"}};
  triton_request request;
  load(FEW_SIZES(ALLOW_CHOOSING));
  for (size_t i = 0; i < 300; i++) {
    make_request(&request, 7);
    execute(&request);
  }
  assert_false(is_choosing());
  want_sizes(7);
  await_metric("rondo_size_choices", 1);
  assert_true(has_graph(&instances[0], 7));
  for (size_t i = 0; i < 2; i++) {
    make_request(&request, 3);
    request.parameter_count = 1;
    request.parameters[0] = parameters[i];
    execute(&request);
    assert_true(is_right(&request, 3));
    await_metric("rondo_size_choices", (double)(2 + i));
  }
  make_request(&request, 3);
  request.parameter_count = 1;
  request.parameters[0] = (fake_parameter){"choose_sizes", TRITON_PARAMETER_STRING, "now"};
  execute(&request);
  assert_answer_error(&request, TRITON_ERROR_INVALID_ARGUMENT, "'choose_sizes' is not a number from 0 to 1");
  want_sizes(2); /* the model is unloaded meanwhile */
  unload();
}

/* Any client could keep the server busy, so the configuration must allow it. */
UNIT_TEST(test_ts2_sizes_that_requests_may_not_choose) {
  triton_request request;
  load(FEW_SIZES(MAX_REGRET("1")));
  make_request(&request, 3);
  request.parameter_count = 1;
  request.parameters[0] = (fake_parameter){"choose_sizes", TRITON_PARAMETER_INT, &one};
  execute(&request);
  assert_answer_error(&request, TRITON_ERROR_UNSUPPORTED, "'allow_choose_sizes' with the value 1");
  assert_false(is_choosing());
  unload();
}

UNIT_TEST(test_ts2_sizes_that_are_fixed) {
  triton_request request;
  load(SMALL);
  make_request(&request, 3);
  request.parameter_count = 1;
  request.parameters[0] = (fake_parameter){"choose_sizes", TRITON_PARAMETER_INT, &one};
  execute(&request);
  assert_answer_error(&request, TRITON_ERROR_UNSUPPORTED, "fixed, by the parameter 'history' of its configuration");
  assert_false(is_choosing());
  unload();
}

/* A new session would begin with the initial values of the states. */
UNIT_TEST(test_ts2_sizes_of_a_model_that_changes_states) {
  triton_request request;
  make_repository();
  copy_model(RONDO_TEST_SCORER_MODEL);
  refuse_model("{\"parameters\":{\"counts\":{\"string_value\":\"1\"}" MAX_REGRET("5") "}}",
               TRITON_ERROR_INVALID_ARGUMENT,
               "'max_regret' of the configuration is '5', but the sizes of model 'ranker'");
  load_model(FEW_SIZES(",\"counts\":{\"string_value\":\"1\"}"));
  for (size_t i = 0; i < 4; i++) {
    make_request(&request, 1);
    request.input_count = request.output_count = 1;
    if (i == 2) {
      request.parameter_count = 1;
      request.parameters[0] = (fake_parameter){"choose_sizes", TRITON_PARAMETER_INT, &one};
    }
    execute(&request);
    if (i == 2)
      assert_answer_error(&request, TRITON_ERROR_UNSUPPORTED, "fixed, by states that it changes");
    else
      assert_true(((const float *)(const void *)request.answer[0].data)[1] == 2 + (float)(i < 2 ? i : i - 1));
  }
  unload();
}

/* What unloading says to a thread that records. */
UNIT_TEST(test_ts6_unloading_ends_a_recording) {
  triton_request request;
  load(FEW_SIZES(ALLOW_CHOOSING));
  const rondo_triton_instance *state = instances[0].state;
  atomic_store(&state->served->choice.is_unwanted, true);
  want_sizes(5);
  while (is_choosing()) test_sleep_ms(1);
  assert_true(fake_triton_metric("rondo_size_choices") == 0);
  assert_string_equal(fake_triton_logged(), "");
  make_request(&request, 2); /* of a recorded size */
  execute(&request);
  assert_true(is_right(&request, 2));
  unload();
}

/* The old sizes stay, whatever fails. */
UNIT_TEST(test_ts6_allocations_of_a_choice_fail) {
  load(FEW_SIZES(ALLOW_CHOOSING));
  bool has_failed = true;
  for (uint64_t number = 1; has_failed; number += 1 + number / 4) {
    triton_request request;
    want_sizes(5);
    fail_allocation(number);
    while (is_choosing()) test_sleep_ms(1);
    has_failed = has_failed_allocation();
    fail_allocation(0);
    make_request(&request, 3);
    execute(&request);
    assert_true(is_right(&request, 3));
  }
  unload();
}

UNIT_TEST(test_ts2_the_regret_of_sizes) {
  rondo_triton_size_time sizes[] = {{64, 74}, {2, 43}};
  const rondo_size_demand demands[] = {{.rows = 7, .requests = 100}, {.rows = 70, .requests = 1}};
  double regret = -1;
  assert_ok(rondo_triton_size_regret(sizes, 0, demands, 1, 2, &regret));
  assert_true(regret == 0);
  assert_ok(rondo_triton_size_regret(sizes, 2, demands, 0, 2, &regret));
  assert_true(regret == 0);
  assert_ok(rondo_triton_size_regret(sizes, 1, demands, 1, 2, &regret)); /* 7 rows in 64, or in 7 */
  assert_true(fabs(regret - 148 / (37 * 71 / 64.0 + 74 / 64.0 * 7) + 1) < 1e-9);
  assert_ok(rondo_triton_size_regret(sizes, 2, demands, 1, 2, &regret));
  assert_true(fabs(regret - 148 / (45.5 + 74 / 64.0 * 7) + 1) < 1e-9);
  rondo_triton_size_time best[] = {{7, 17}, {70, 80}};
  assert_ok(rondo_triton_size_regret(best, 2, demands, 2, 2, &regret));
  assert_true(regret == 0);
  rondo_triton_size_time small[] = {{1, 10}, {4, 11}}; /* 64 rows in 16 graphs, or in one of 31 us */
  const rondo_size_demand large = {.rows = 64, .requests = 5};
  assert_ok(rondo_triton_size_regret(small, 2, &large, 1, 2, &regret));
  assert_true(fabs(regret - (16 * 11 + 64 * 11 / 4.0) / (31 + 64 * 11 / 4.0) + 1) < 1e-9);
}

UNIT_TEST(test_ts2_a_history_of_rows) {
  static const size_t counted[][2] = {{1, 1},     {256, 256}, {257, 288},     {288, 288},        {289, 320},
                                      {512, 512}, {513, 576}, {60000, 61440}, {1 << 24, 1 << 24}};
  const rondo_allocator allocator = rondo_allocator_default();
  rondo_triton_histories histories;
  rondo_triton_history *history, *same;
  rondo_triton_histories_init(&allocator, &histories);
  for (size_t i = 0; i < sizeof counted / sizeof *counted; i++) {
    char name[16];
    rondo_triton_row_list rows = {.count = 0};
    (void)snprintf(name, sizeof name, "model%zu", i);
    assert_ok(rondo_triton_history_open(&histories, name, &history));
    rondo_triton_history_count(history, counted[i][0]);
    rondo_triton_history_close(&histories, history);
    assert_ok(rondo_triton_history_open(&histories, name, &same));
    assert_ptr_equal(same, history);
    assert_ok(rondo_triton_history_list(&allocator, history, &rows));
    assert_int_equal(rows.count, 1);
    assert_int_equal(rows.items[0], counted[i][1]);
    for (int k = 1; k < RONDO_TRITON_MOST_COUNTED; k++) rondo_triton_history_count(history, 3);
    rows.count = 0;
    assert_ok(rondo_triton_history_list(&allocator, history, &rows)); /* old ones count less */
    assert_in_range(rows.count, RONDO_TRITON_MOST_COUNTED / 2 - 1, RONDO_TRITON_MOST_COUNTED / 2);
    rondo_array_free(&allocator, &rows);
    rondo_triton_history_close(&histories, history);
  }
  for (int i = 0; i < RONDO_TRITON_MOST_HISTORIES; i++) { /* the oldest are forgotten */
    char name[16];
    (void)snprintf(name, sizeof name, "other%d", i);
    assert_ok(rondo_triton_history_open(&histories, name, &history));
  }
  assert_fails(rondo_triton_history_open(&histories, "more", &history), RONDO_LIMIT_EXCEEDED);
  for (size_t i = 0; i < histories.items.count; i++) rondo_triton_history_close(&histories, histories.items.items[i]);
  rondo_triton_histories_free(&histories);
}

/* Tests: memory ---------------------------------------------------------------------------------------------------- */

/* What a device has given out, and the library's own allocations. */
typedef struct memory_use {
  rondo_memory_statistics memory;
  uint64_t mapped_bytes;
  size_t host_bytes;
} memory_use;

static memory_use use_of(const triton_instance *instance) {
  const rondo_triton_instance *state = instance->state;
  memory_use use = {.memory = {.struct_size = sizeof use.memory}};
  rondo_device_statistics statistics = {.struct_size = sizeof statistics};
  assert_ok(rondo_memory_get_statistics(state->served->device, &use.memory));
  assert_ok(rondo_device_get_statistics(state->served->device, &statistics));
  use.mapped_bytes = statistics.mapped_bytes;
  use.host_bytes = live_bytes();
  return use;
}

static void load_and_use(triton_model *other, triton_instance *instance) {
  assert_loaded(TRITONBACKEND_ModelInitialize(other));
  assert_loaded(TRITONBACKEND_ModelInstanceInitialize(instance));
  for (size_t rows = 1; rows <= MOST_ROWS; rows++) {
    triton_request request, *list = &request;
    make_request(&request, rows);
    assert_loaded(TRITONBACKEND_ModelInstanceExecute(instance, &list, 1));
    await_release(&request);
    assert_true(is_right(&request, rows));
  }
  assert_loaded(TRITONBACKEND_ModelInstanceFinalize(instance));
  assert_loaded(TRITONBACKEND_ModelFinalize(other));
}

/* A device remembers the addresses that were freed last, to refuse their use: 512 of each kind. It also keeps events.
 */
static void free_many(rondo_device *device) {
  enum { MANY = 600, EVENTS = 64 };
  void *addresses[2][MANY];
  rondo_event *events[2][EVENTS];
  for (size_t i = 0; i < 2 * EVENTS; i++)
    assert_ok(rondo_event_create(device, &(rondo_event_options){RONDO_EVENT_OPTIONS_INIT, .timing = i % 2 == 1},
                                 &events[i % 2][i / 2]));
  for (size_t i = 0; i < 2 * EVENTS; i++) rondo_event_destroy(events[i % 2][i / 2]);
  for (size_t i = 0; i < MANY; i++) {
    assert_ok(rondo_host_malloc(device, 256, &addresses[0][i]));
    assert_ok(rondo_malloc(device, 256, NULL, &addresses[1][i]));
  }
  for (size_t i = 0; i < MANY; i++) {
    assert_ok(rondo_host_free(device, addresses[0][i]));
    assert_ok(rondo_free(device, addresses[1][i]));
  }
  assert_ok(rondo_memory_trim(device));
}

/* On a device that another model keeps open. The first time, the device and the backend get what they keep. */
UNIT_TEST(test_ts6_memory_is_given_back_to_the_byte) {
  static triton_model other;
  load(SMALL);
  other = model;
  other.name = "other";
  other.state = NULL;
  instances[1].model = &other;
  free_many(((const rondo_triton_instance *)instances[0].state)->served->device);
  load_and_use(&other, &instances[1]);
  const memory_use before = use_of(&instances[0]);
  for (int i = 0; i < 5; i++) {
    load_and_use(&other, &instances[1]);
    const memory_use after = use_of(&instances[0]);
    assert_int_equal(after.memory.live_allocations, before.memory.live_allocations);
    assert_int_equal(after.memory.pool_used, before.memory.pool_used);
    assert_int_equal(after.memory.pool_reserved, before.memory.pool_reserved);
    assert_int_equal(after.memory.graph_used, before.memory.graph_used);
    assert_int_equal(after.memory.graph_reserved, before.memory.graph_reserved);
    assert_int_equal(after.memory.host_withheld, before.memory.host_withheld);
    assert_int_equal(after.mapped_bytes, before.mapped_bytes);
    assert_int_equal(after.host_bytes, before.host_bytes);
  }
  unload();
}

/* Tests: each call fails once -------------------------------------------------------------------------------------- */

/* Loads a model and ends what was loaded. Returns whether all of it was. */
static bool try_to_load(void) {
  triton_error *error = TRITONBACKEND_Initialize(&backend);
  if (error != NULL) {
    TRITONSERVER_ErrorDelete(error);
    return false;
  }
  error = TRITONBACKEND_ModelInitialize(&model);
  if (error == NULL) {
    error = TRITONBACKEND_ModelInstanceInitialize(&instances[0]);
    if (error == NULL) assert_loaded(TRITONBACKEND_ModelInstanceFinalize(&instances[0]));
    assert_loaded(TRITONBACKEND_ModelFinalize(&model));
  }
  const bool is_loaded = error == NULL;
  if (error != NULL) TRITONSERVER_ErrorDelete(error);
  assert_loaded(TRITONBACKEND_Finalize(&backend));
  return is_loaded;
}

/* A metric that fails is left out; everything else is why the model does not load. */
UNIT_TEST(test_ts6_each_call_of_loading_fails) {
  make_repository();
  write_ranker();
  for (uint64_t number = 1;; number++) {
    start_server(SMALL);
    fake_triton_fail_call(number);
    const bool is_loaded = try_to_load();
    const char *failed = fake_triton_failed();
    assert_int_equal(fake_triton_alive(), 0);
    if (failed == NULL) break;
    const bool is_metric = strstr(failed, "Metric") != NULL;
    if (is_loaded != is_metric) fail_msg("%s failed, and the model %s", failed, is_loaded ? "was loaded" : "was not");
  }
  remove_repository();
}

/* Every request is answered once, or the server was told that it could not be, and nothing is left. */
UNIT_TEST(test_ts6_each_call_of_a_request_fails) {
  load(SMALL);
  bool has_failed = true;
  for (uint64_t number = 1; has_failed; number++) {
    static triton_request requests[2];
    triton_request *list[] = {&requests[0], &requests[1]};
    for (size_t i = 0; i < 2; i++) {
      make_request(&requests[i], 1 + i);
      requests[i].inputs[0].pieces = 2;
    }
    fake_triton_fail_call(number);
    assert_loaded(TRITONBACKEND_ModelInstanceExecute(&instances[0], list, 2));
    for (size_t i = 0; i < 2; i++) await_release(&requests[i]);
    has_failed = fake_triton_failed() != NULL;
    for (size_t i = 0; i < 2; i++) {
      assert_int_equal(atomic_load(&requests[i].sent), 1);
      assert_int_equal(atomic_load(&requests[i].released) + atomic_load(&requests[i].release_failed), 1);
      assert_true(requests[i].has_error ? has_failed : is_right(&requests[i], 1 + i));
    }
  }
  fake_triton_fail_call(0);
  triton_request request;
  make_request(&request, 4);
  execute(&request);
  assert_true(is_right(&request, 4));
  unload();
}

/* All of the first ones, then ever fewer: a failure is handled by the layer below, and what has been made is freed. */
UNIT_TEST(test_ts6_allocations_of_loading_fail) {
  make_repository();
  write_ranker();
  bool has_failed = true;
  for (uint64_t number = 1; has_failed; number += 1 + number / 8) {
    start_server(SMALL);
    fail_allocation(number);
    (void)try_to_load(); /* it may be one that is not needed */
    has_failed = has_failed_allocation();
    fail_allocation(0);
    assert_int_equal(fake_triton_alive(), 0);
  }
  remove_repository();
}

UNIT_TEST(test_ts6_allocations_of_a_request_fail) {
  bool has_failed = true;
  for (uint64_t number = 1; has_failed && number < 50; number++) {
    static triton_request request;
    triton_request *list = &request;
    load(SMALL); /* again, so that no flight is idle */
    make_request(&request, 2);
    request.inputs[0].pieces = 2;
    fail_allocation(number);
    assert_loaded(TRITONBACKEND_ModelInstanceExecute(&instances[0], &list, 1));
    await_release(&request);
    has_failed = has_failed_allocation();
    fail_allocation(0);
    assert_true(request.has_error ? has_failed : is_right(&request, 2));
    unload();
  }
}
