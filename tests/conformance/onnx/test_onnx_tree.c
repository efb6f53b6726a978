/* SPDX-License-Identifier: MIT
 * Models as functions of trees (ON-9): recorded for each form of inputs, of two dynamic dimensions and of models of
 * libonnx-testdata, with the bits of eager calls; inputs at any address; memory that is planned; what is refused.
 */
#define _POSIX_C_SOURCE 200809L
#include <rondo/onnx.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/test_allocator.h"
#include "support/test_onnx.h"
#include "support/test_program.h"
#include "support/test_tree.h"

enum { FLOAT = 1, INT64 = 7, UINT32 = 12, WORDS = 10, WIDTH = 8, MOST_INPUTS = 8, MOST_OUTPUTS = 8 };

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

/* y = relu((table[ids] + positions) w) for ids [batch, length], where the positions are one row, expanded to the shape
 * of table[ids]; m = sum of y mask over the length; sizes = the shape of ids. */
static rondo_onnx_model *encoder(void) {
  float table[WORDS * WIDTH], w[WIDTH * WIDTH], row[WIDTH];
  static const int64_t one[] = {1}, two[] = {2};
  onnx_bytes graph = {0};
  fill(table, WORDS * WIDTH, 1);
  fill(w, WIDTH * WIDTH, 2);
  fill(row, WIDTH, 3);
  onnx_add_input(&graph, "ids", INT64, DIMS(-1, -2));
  onnx_add_input(&graph, "mask", FLOAT, DIMS(-1, -2));
  onnx_add_initializer(&graph, "table", FLOAT, table, sizeof table, DIMS(WORDS, WIDTH));
  onnx_add_initializer(&graph, "w", FLOAT, w, sizeof w, DIMS(WIDTH, WIDTH));
  onnx_add_initializer(&graph, "row", FLOAT, row, sizeof row, DIMS(1, 1, WIDTH));
  onnx_add_initializer(&graph, "one", INT64, one, sizeof one, DIMS(1));
  onnx_add_initializer(&graph, "two", INT64, two, sizeof two, DIMS(1));
  onnx_add_node(&graph, "Gather", NAMES("table", "ids"), NAMES("words"));
  onnx_add_node(&graph, "Shape", NAMES("words"), NAMES("shape"));
  onnx_add_node(&graph, "Expand", NAMES("row", "shape"), NAMES("rows"));
  onnx_add_node(&graph, "Neg", NAMES("rows"), NAMES("positions"));
  onnx_add_node(&graph, "Add", NAMES("words", "positions"), NAMES("placed"));
  onnx_add_node(&graph, "MatMul", NAMES("placed", "w"), NAMES("product"));
  onnx_add_node(&graph, "Relu", NAMES("product"), NAMES("y"));
  onnx_add_node(&graph, "Unsqueeze", NAMES("mask", "two"), NAMES("column"));
  onnx_add_node(&graph, "Mul", NAMES("y", "column"), NAMES("masked"));
  onnx_add_node(&graph, "ReduceSum", NAMES("masked", "one"), NAMES("m"));
  onnx_add_node(&graph, "Shape", NAMES("ids"), NAMES("sizes"));
  onnx_add_output(&graph, "y");
  onnx_add_output(&graph, "m");
  onnx_add_output(&graph, "sizes");
  rondo_onnx_model *model = NULL;
  const onnx_bytes bytes = onnx_model(&graph);
  assert_ok(rondo_onnx_parse(bytes.bytes, bytes.count, NULL, &model));
  return test_leave(destroy_model, model);
}

/* Calls ------------------------------------------------------------------------------------------------------------ */

static rondo_function *runner_function(rondo_tree *tree, rondo_onnx_runner *runner, size_t inputs) {
  uint32_t kinds[MOST_INPUTS];
  rondo_function *function = NULL;
  for (size_t i = 0; i < MOST_INPUTS; i++) kinds[i] = RONDO_INPUT_MOVING;
  const rondo_function_options options = {RONDO_FUNCTION_OPTIONS_INIT,
                                          .name = "model",
                                          .body = rondo_onnx_run,
                                          .user = runner,
                                          .inputs = kinds,
                                          .input_count = inputs,
                                          .binding = RONDO_BINDING_PATCH};
  assert_ok(rondo_function_create(tree, &options, &function));
  return function;
}

/* An input in new device memory, with these bytes. */
static rondo_input placed_input(test_fixture *t, const void *data, size_t bytes) {
  rondo_input input = {.bytes = bytes};
  assert_ok(rondo_malloc(t->device, bytes, NULL, &input.address));
  assert_ok(rondo_copy_async(t->stream, input.address, data, bytes));
  assert_ok(rondo_stream_synchronize(t->stream));
  return input;
}

/* The bytes of all outputs, one after the other; releases the outputs. */
static size_t take_outputs(test_fixture *t, rondo_buffer **outputs, size_t count, uint8_t **out) {
  size_t at = 0;
  *out = NULL;
  for (size_t i = 0; i < count; i++) {
    rondo_buffer_info info = {.struct_size = sizeof info};
    assert_ok(rondo_buffer_get_info(outputs[i], &info));
    *out = realloc(*out, at + info.bytes + 1);
    assert_non_null(*out);
    if (info.bytes > 0) assert_ok(rondo_buffer_copy(outputs[i], t->stream, 0, *out + at, info.bytes));
    assert_ok(rondo_stream_synchronize(t->stream));
    at += info.bytes;
    rondo_buffer_release(outputs[i]);
  }
  return at;
}

typedef struct encoder_call {
  rondo_function *function;
  size_t batch, length;
} encoder_call;

/* Calls with new memory for the inputs, and returns the bytes of the outputs. The contents depend on the seed alone. */
static size_t call_encoder(test_fixture *t, const encoder_call *c, uint32_t seed, uint8_t **out) {
  enum { MOST = 64 };
  int64_t ids[MOST];
  float mask[MOST];
  const size_t count = c->batch * c->length;
  rondo_buffer *outputs[3];
  assert_true(count <= MOST);
  fill(mask, count, seed);
  for (size_t i = 0; i < count; i++) ids[i] = (int64_t)((i * 7 + seed) % WORDS);
  rondo_input inputs[] = {placed_input(t, ids, count * sizeof *ids), placed_input(t, mask, count * sizeof *mask)};
  for (size_t i = 0; i < 2; i++) {
    inputs[i].type = i == 0 ? RONDO_I64 : RONDO_F32;
    inputs[i].rank = 2;
    inputs[i].shape[0] = c->batch;
    inputs[i].shape[1] = c->length;
  }
  assert_ok(rondo_function_call(c->function, t->stream, inputs, 2, outputs, 3));
  const size_t bytes = take_outputs(t, outputs, 3, out);
  for (size_t i = 0; i < 2; i++) assert_ok(rondo_free(t->device, inputs[i].address));
  return bytes;
}

/* Three calls, each with its inputs at other addresses: eager, recorded, replayed. */
static void assert_recorded(test_fixture *t, rondo_tree *tree, const encoder_call *c) {
  static const rondo_call_outcome outcomes[] = {RONDO_CALL_EAGER, RONDO_CALL_RECORDED, RONDO_CALL_REPLAYED};
  uint8_t *eager, *again;
  size_t bytes = 0;
  for (size_t i = 0; i < 3; i++) {
    const size_t found = call_encoder(t, c, 5, i == 0 ? &eager : &again);
    assert_outcome(tree, outcomes[i]);
    if (i == 0) bytes = found;
    assert_int_equal(found, c->batch * c->length * WIDTH * 4 + c->batch * WIDTH * 4 + 16);
    assert_memory_equal(i == 0 ? eager : again, eager, bytes);
    const int64_t sizes[] = {(int64_t)c->batch, (int64_t)c->length};
    assert_memory_equal(eager + bytes - sizeof sizes, sizes, sizeof sizes);
    if (i > 0) free(again);
  }
  free(eager);
}

/* Trees ------------------------------------------------------------------------------------------------------------ */

TEST(test_on9_a_tree_records_a_model_for_each_form_of_inputs) {
  static const size_t sizes[][2] = {{4, 6}, {2, 6}, {4, 3}, {1, 1}};
  rondo_onnx_model *model = encoder();
  rondo_onnx_runner *runner = NULL;
  rondo_onnx_runner_info info = {.struct_size = sizeof info};
  rondo_tree *tree = test_tree(t, NULL);
  assert_ok(rondo_onnx_runner_create(model, t->stream, NULL, &runner));
  encoder_call c = {.function = runner_function(tree, runner, 2)};
  for (size_t i = 0; i < 4; i++) {
    c.batch = sizes[i][0];
    c.length = sizes[i][1];
    assert_recorded(t, tree, &c);
  }
  const rondo_tree_info counted = test_tree_info(tree);
  assert_int_equal(counted.replayed, 4);
  assert_true(counted.patched_inputs >= 2 * counted.replayed);
  assert_int_equal(counted.copied_inputs, 0);
  assert_ok(rondo_onnx_runner_get_info(runner, &info));
  assert_int_equal(info.programs, 4);
  assert_int_equal(info.temporary, 0);
  /* Of the sizes, each form has its own, of which the last one's repeat. */
  assert_int_equal(info.state_bytes, (WORDS + WIDTH + 1) * WIDTH * sizeof(float) + 3 * 16 + 8);
  assert_true(info.planned_bytes > 0 && info.planned_bytes < info.unplanned_bytes);
  assert_int_equal(info.arena_bytes, info.planned_bytes); /* the largest came first */
  assert_ok(rondo_onnx_runner_synchronize(runner));
  test_tree_destroy(tree);
  assert_ok(rondo_onnx_runner_destroy(runner));
}

/* Programs beyond the limit are compiled for one call, and not recorded. */
TEST(test_on9_a_runner_has_a_limit_of_programs) {
  rondo_onnx_model *model = encoder();
  rondo_onnx_runner *runner = NULL;
  rondo_onnx_runner_info info = {.struct_size = sizeof info};
  const rondo_onnx_runner_options options = {RONDO_ONNX_RUNNER_OPTIONS_INIT, .max_programs = 1};
  rondo_tree *tree = test_tree(t, NULL);
  uint8_t *first, *again;
  assert_ok(rondo_onnx_runner_create(model, t->stream, &options, &runner));
  encoder_call c = {.function = runner_function(tree, runner, 2), .batch = 2, .length = 3};
  assert_recorded(t, tree, &c);
  c.length = 4;
  const size_t bytes = call_encoder(t, &c, 5, &first);
  for (size_t i = 0; i < 2; i++) {
    assert_int_equal(call_encoder(t, &c, 5, &again), bytes);
    assert_skip(tree, UNKNOWN_SHAPE);
    assert_memory_equal(first, again, bytes);
    free(again);
  }
  free(first);
  assert_ok(rondo_onnx_runner_get_info(runner, &info));
  assert_int_equal(info.programs, 1);
  assert_int_equal(info.temporary, 3);
  c.length = 3;
  assert_int_equal(call_encoder(t, &c, 6, &again), 2 * 3 * WIDTH * 4 + 2 * WIDTH * 4 + 16);
  assert_outcome(tree, RONDO_CALL_REPLAYED);
  free(again);
  test_tree_destroy(tree);
  assert_ok(rondo_onnx_runner_destroy(runner));
}

/* Weights ---------------------------------------------------------------------------------------------------------- */

enum { ROWS = 1 << 15, TABLE_BYTES = ROWS * WIDTH * (int)sizeof(float) };

/* y = table[ids], with a table of 1 MiB in a file beside the model, where no float has an even address. */
static rondo_onnx_model *looked_up(const float *table) {
  static const char *const pairs[][2] = {{"location", "table"}, {"offset", "1"}};
  char folder[] = "/tmp/rondo_onnx_XXXXXX", path[sizeof folder + 8];
  onnx_bytes graph = {0}, tensor = onnx_tensor("table", FLOAT, DIMS(ROWS, WIDTH));
  rondo_onnx_model *model = NULL;
  assert_non_null(mkdtemp(folder));
  (void)snprintf(path, sizeof path, "%s/table", folder);
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_true(fputc(0, file) == 0 && fwrite(table, TABLE_BYTES, 1, file) == 1);
  assert_int_equal(fclose(file), 0);
  for (size_t i = 0; i < 2; i++) {
    onnx_bytes pair = {0};
    onnx_text(&pair, 1, pairs[i][0]);
    onnx_text(&pair, 2, pairs[i][1]);
    onnx_nest(&tensor, ONNX_TENSOR_EXTERNAL, &pair);
  }
  onnx_number(&tensor, ONNX_TENSOR_LOCATION, 1);
  onnx_nest(&graph, ONNX_GRAPH_INITIALIZER, &tensor);
  onnx_add_input(&graph, "ids", INT64, DIMS(-1));
  onnx_add_node(&graph, "Gather", NAMES("table", "ids"), NAMES("y"));
  onnx_add_output(&graph, "y");
  const onnx_bytes bytes = onnx_model(&graph);
  const rondo_onnx_options options = {RONDO_ONNX_OPTIONS_INIT, .folder = folder};
  assert_ok(rondo_onnx_parse(bytes.bytes, bytes.count, &options, &model));
  assert_int_equal(unlink(path), 0);
  assert_int_equal(rmdir(folder), 0);
  return test_leave(destroy_model, model);
}

static void assert_looked_up(test_fixture *t, rondo_function *function, size_t count, const float *table) {
  int64_t ids[4];
  rondo_buffer *output;
  uint8_t *rows;
  for (size_t i = 0; i < count; i++) ids[i] = (int64_t)(ROWS - 1 - i);
  rondo_input input = placed_input(t, ids, count * sizeof *ids);
  input.rank = 1;
  input.shape[0] = count;
  assert_ok(rondo_function_call(function, t->stream, &input, 1, &output, 1));
  assert_int_equal(take_outputs(t, &output, 1, &rows), count * WIDTH * sizeof *table);
  for (size_t i = 0; i < count; i++)
    assert_memory_equal(rows + i * WIDTH * sizeof *table, table + (ROWS - 1 - i) * WIDTH, WIDTH * sizeof *table);
  free(rows);
  assert_ok(rondo_free(t->device, input.address));
}

/* What a program needed to load its weights is freed, also where the file has no float at a multiple of four. */
TEST(test_on9_programs_of_a_runner_keep_no_copy_of_the_weights) {
  float *table = malloc(TABLE_BYTES);
  test_allocator counting;
  rondo_onnx_runner *runner = NULL;
  rondo_tree *tree = test_tree(t, NULL);
  assert_non_null(table);
  test_allocator_init(&counting);
  fill(table, ROWS * WIDTH, 4);
  const rondo_onnx_runner_options options = {RONDO_ONNX_RUNNER_OPTIONS_INIT, .allocator = &counting.table};
  assert_ok(rondo_onnx_runner_create(looked_up(table), t->stream, &options, &runner));
  rondo_function *function = runner_function(tree, runner, 1);
  for (size_t count = 3; count > 0; count--) assert_looked_up(t, function, count, table);
  assert_true(counting.live_bytes < TABLE_BYTES / 4);
  assert_ok(rondo_onnx_runner_synchronize(runner));
  test_tree_destroy(tree);
  assert_ok(rondo_onnx_runner_destroy(runner));
  assert_true(test_allocator_is_clean(&counting));
  free(table);
}

/* Given values, constants ------------------------------------------------------------------------------------------ */

static rondo_onnx_model *parsed(const onnx_bytes *graph) {
  rondo_onnx_model *model = NULL;
  const onnx_bytes bytes = onnx_model(graph);
  assert_ok(rondo_onnx_parse(bytes.bytes, bytes.count, NULL, &model));
  return test_leave(destroy_model, model);
}

/* y = reshape(x, s), with x [batch, 2]; `wide` of type uint32, and no elements of `none`, are the same in each run. */
static rondo_onnx_model *reshaper(void) {
  static const uint32_t wide[] = {1, 2, 3};
  onnx_bytes graph = {0};
  onnx_add_input(&graph, "x", FLOAT, DIMS(-1, 2));
  onnx_add_input(&graph, "s", INT64, DIMS(1));
  onnx_add_initializer(&graph, "w", UINT32, wide, sizeof wide, DIMS(3));
  onnx_add_initializer(&graph, "n", FLOAT, "", 0, DIMS(2, 0));
  onnx_add_node(&graph, "Reshape", NAMES("x", "s"), NAMES("y"));
  onnx_add_node(&graph, "Identity", NAMES("w"), NAMES("wide"));
  onnx_add_node(&graph, "Identity", NAMES("n"), NAMES("none"));
  onnx_add_output(&graph, "y");
  onnx_add_output(&graph, "wide");
  onnx_add_output(&graph, "none");
  return parsed(&graph);
}

static void assert_reshaped(test_fixture *t, rondo_buffer **outputs) {
  static const float x[] = {1, 2, 3, 4};
  static const uint32_t wide[] = {1, 2, 3};
  rondo_buffer_info info = {.struct_size = sizeof info};
  uint8_t *all;
  assert_ok(rondo_buffer_get_info(outputs[0], &info));
  assert_int_equal(info.type, RONDO_F32);
  assert_int_equal(info.rank, 1);
  assert_int_equal(info.shape[0], 4);
  assert_ok(rondo_buffer_get_info(outputs[2], &info));
  assert_int_equal(info.rank, 2);
  assert_int_equal(info.bytes, 0);
  assert_int_equal(take_outputs(t, outputs, 3, &all), sizeof x + sizeof wide);
  assert_memory_equal(all, x, sizeof x);
  assert_memory_equal(all + sizeof x, wide, sizeof wide);
  free(all);
}

/* The options give the shape of the reshape, so calls have no such input. The size of x is that of the options. */
TEST(test_on9_a_runner_with_the_value_of_an_input) {
  static const float x[] = {1, 2, 3, 4};
  static const int64_t four[] = {4};
  const rondo_onnx_given_input given[] = {{.name = "s", .data = four, .bytes = sizeof four},
                                          {.name = "x", .shape = (const size_t[]){2, 2}, .rank = 2}};
  const rondo_onnx_build_options build = {RONDO_ONNX_BUILD_OPTIONS_INIT, .inputs = given, .input_count = 2};
  const rondo_compile_options compile = {RONDO_COMPILE_OPTIONS_INIT, .fusion = RONDO_FUSION_NEVER};
  const rondo_onnx_runner_options options = {RONDO_ONNX_RUNNER_OPTIONS_INIT, .build = &build, .compile = &compile};
  rondo_onnx_runner *runner = NULL;
  rondo_tree *tree = test_tree(t, NULL);
  assert_ok(rondo_onnx_runner_create(reshaper(), t->stream, &options, &runner));
  rondo_function *function = runner_function(tree, runner, 1);
  const rondo_input input = placed_input(t, x, sizeof x);
  for (size_t i = 0; i < 3; i++) {
    rondo_buffer *outputs[3];
    assert_ok(rondo_function_call(function, t->stream, &input, 1, outputs, 3));
    assert_reshaped(t, outputs);
  }
  assert_outcome(tree, RONDO_CALL_REPLAYED);
  assert_ok(rondo_free(t->device, input.address));
  test_tree_destroy(tree);
  assert_ok(rondo_onnx_runner_destroy(runner));
}

/* No output depends on a run: nothing is compiled. */
TEST(test_on9_a_model_of_constants_in_a_tree) {
  static const uint32_t wide[] = {1, 2, 3};
  rondo_onnx_runner *runner = NULL;
  rondo_onnx_runner_info info = {.struct_size = sizeof info};
  rondo_tree *tree = test_tree(t, NULL);
  onnx_bytes graph = {0};
  onnx_add_initializer(&graph, "w", UINT32, wide, sizeof wide, DIMS(3));
  onnx_add_node(&graph, "Identity", NAMES("w"), NAMES("wide"));
  onnx_add_output(&graph, "wide");
  assert_ok(rondo_onnx_runner_create(parsed(&graph), t->stream, NULL, &runner));
  rondo_function *function = runner_function(tree, runner, 0);
  for (size_t i = 0; i < 3; i++) {
    rondo_buffer *output;
    uint8_t *all;
    assert_ok(rondo_function_call(function, t->stream, NULL, 0, &output, 1));
    assert_int_equal(take_outputs(t, &output, 1, &all), sizeof wide);
    assert_memory_equal(all, wide, sizeof wide);
    free(all);
  }
  assert_ok(rondo_onnx_runner_get_info(runner, &info));
  assert_int_equal(info.programs, 1);
  assert_int_equal(info.arena_bytes, 0);
  assert_ok(rondo_onnx_runner_synchronize(runner));
  test_tree_destroy(tree);
  assert_ok(rondo_onnx_runner_destroy(runner));
}

static rondo_status sleep_and_mark(void *is_done) {
  test_sleep_ms(50);
  *(bool *)is_done = true;
  return RONDO_OK;
}

/* The copies of constants read what the runner frees. */
TEST(test_on9_a_runner_waits_for_copies_of_constants) {
  static const uint32_t wide[] = {1, 2, 3};
  bool is_done = false;
  rondo_onnx_runner *runner = NULL;
  rondo_buffer *output;
  rondo_tree *tree = test_tree(t, NULL);
  onnx_bytes graph = {0};
  onnx_add_initializer(&graph, "w", UINT32, wide, sizeof wide, DIMS(3));
  onnx_add_node(&graph, "Identity", NAMES("w"), NAMES("wide"));
  onnx_add_output(&graph, "wide");
  assert_ok(rondo_onnx_runner_create(parsed(&graph), t->stream, NULL, &runner));
  rondo_function *function = runner_function(tree, runner, 0);
  assert_ok(rondo_host_async(t->stream, sleep_and_mark, &is_done));
  assert_ok(rondo_function_call(function, t->stream, NULL, 0, &output, 1));
  assert_ok(rondo_function_destroy(function));
  assert_ok(rondo_onnx_runner_destroy(runner));
  assert_true(is_done);
  rondo_buffer_release(output);
  test_tree_destroy(tree);
}

/* y = reshape(x, s), where the model does not say which shape x has. */
static rondo_onnx_model *shapeless(void) {
  onnx_bytes graph = {0}, value = {0}, kind = {0}, tensor = {0};
  onnx_number(&tensor, 1, FLOAT);
  onnx_nest(&kind, 1, &tensor);
  onnx_text(&value, 1, "x");
  onnx_nest(&value, 2, &kind);
  onnx_nest(&graph, ONNX_GRAPH_INPUT, &value);
  onnx_add_input(&graph, "s", INT64, DIMS(0));
  onnx_add_node(&graph, "Reshape", NAMES("x", "s"), NAMES("y"));
  onnx_add_output(&graph, "y");
  return parsed(&graph);
}

/* A shape without dimensions and a value without elements are given, too. */
TEST(test_on9_a_runner_with_an_empty_shape_and_an_empty_value) {
  static const float x = 5;
  const int64_t nothing = 0;
  const rondo_onnx_given_input given[] = {{.name = "s", .data = &nothing},
                                          {.name = "x", .shape = (const size_t[]){1}, .rank = 0}};
  const rondo_onnx_build_options build = {RONDO_ONNX_BUILD_OPTIONS_INIT, .inputs = given, .input_count = 2};
  const rondo_onnx_runner_options options = {RONDO_ONNX_RUNNER_OPTIONS_INIT, .build = &build};
  rondo_onnx_runner *runner = NULL;
  rondo_buffer *output;
  rondo_tree *tree = test_tree(t, NULL);
  uint8_t *y;
  assert_ok(rondo_onnx_runner_create(shapeless(), t->stream, &options, &runner));
  const rondo_input input = placed_input(t, &x, sizeof x);
  assert_ok(rondo_function_call(runner_function(tree, runner, 1), t->stream, &input, 1, &output, 1));
  assert_int_equal(take_outputs(t, &output, 1, &y), sizeof x);
  assert_memory_equal(y, &x, sizeof x);
  free(y);
  assert_ok(rondo_free(t->device, input.address));
  test_tree_destroy(tree);
  assert_ok(rondo_onnx_runner_destroy(runner));
}

/* Programs are compiled in calls, when the text of the caller may be gone; the options may be of a later version. */
TEST(test_on9_a_runner_keeps_the_options_of_compilation) {
  static const uint32_t zeros[12] = {0};
  char patterns[] = "all";
  union {
    rondo_compile_options known;
    uint8_t bytes[4096];
  } later = {.known = {.struct_size = sizeof later, .without_patterns = patterns}};
  const rondo_onnx_runner_options options = {RONDO_ONNX_RUNNER_OPTIONS_INIT, .compile = &later.known};
  rondo_onnx_runner *runner = NULL;
  rondo_buffer *outputs[3];
  uint8_t *all;
  rondo_tree *tree = test_tree(t, NULL);
  assert_ok(rondo_onnx_runner_create(encoder(), t->stream, &options, &runner));
  memset(patterns, 'x', sizeof patterns - 1);
  rondo_input inputs[] = {placed_input(t, zeros, 48), placed_input(t, zeros, 24)};
  for (size_t i = 0; i < 2; i++) {
    inputs[i].rank = 2;
    inputs[i].shape[0] = 2;
    inputs[i].shape[1] = 3;
  }
  assert_ok(rondo_function_call(runner_function(tree, runner, 2), t->stream, inputs, 2, outputs, 3));
  (void)take_outputs(t, outputs, 3, &all);
  free(all);
  for (size_t i = 0; i < 2; i++) assert_ok(rondo_free(t->device, inputs[i].address));
  test_tree_destroy(tree);
  assert_ok(rondo_onnx_runner_destroy(runner));
}

/* Refusals --------------------------------------------------------------------------------------------------------- */

static rondo_status call_with(test_fixture *t, rondo_function *function, const rondo_input *inputs, size_t count) {
  rondo_buffer *outputs[3] = {NULL};
  const rondo_status status = rondo_function_call(function, t->stream, inputs, count, outputs, 3);
  for (size_t i = 0; i < 3; i++) rondo_buffer_release(outputs[i]);
  return status;
}

TEST(test_on9_calls_that_do_not_fit_the_model) {
  static const int64_t zeros[6] = {0}, far[6] = {WORDS};
  rondo_onnx_model *model = encoder();
  rondo_onnx_runner *runner = NULL;
  rondo_tree *tree = test_tree(t, NULL);
  assert_ok(rondo_onnx_runner_create(model, t->stream, NULL, &runner));
  rondo_function *function = runner_function(tree, runner, 2), *few = runner_function(tree, runner, 1),
                 *many = runner_function(tree, runner, 3);
  rondo_input inputs[3];
  for (size_t i = 0; i < 3; i++) {
    inputs[i] = placed_input(t, zeros, i == 0 ? 48 : 24);
    inputs[i].rank = 2;
    inputs[i].shape[0] = 2;
    inputs[i].shape[1] = 3;
  }
  assert_invalid(call_with(t, few, inputs, 1), RONDO_REASON_ARGUMENT_COUNT);
  assert_message("'mask' is missing");
  assert_invalid(call_with(t, many, inputs, 3), RONDO_REASON_ARGUMENT_COUNT);
  inputs[0].type = RONDO_I32;
  assert_invalid(call_with(t, function, inputs, 2), RONDO_REASON_TYPE);
  assert_message("'ids'");
  inputs[0].type = 0;
  inputs[0].bytes = 40;
  assert_invalid(call_with(t, function, inputs, 2), RONDO_REASON_BAD_SIZE);
  inputs[0].bytes = 48;
  inputs[1].shape[0] = 3;
  assert_invalid(call_with(t, function, inputs, 2), RONDO_REASON_SHAPE);
  inputs[1].shape[0] = 2;
  assert_ok(call_with(t, function, inputs, 2));
  assert_ok(rondo_copy_async(t->stream, inputs[0].address, far, sizeof far));
  assert_ok(call_with(t, function, inputs, 2));
  assert_error(rondo_onnx_runner_synchronize(runner), RONDO_EXECUTION_FAILED, RONDO_REASON_OUT_OF_RANGE);
  assert_ok(rondo_onnx_runner_synchronize(runner));
  for (size_t i = 0; i < 3; i++) assert_ok(rondo_free(t->device, inputs[i].address));
  test_tree_destroy(tree);
  assert_ok(rondo_onnx_runner_destroy(runner));
}

/* It is refused before work is enqueued: no program is kept. */
TEST(test_on9_outputs_with_more_dimensions_than_calls_have) {
  static const float x[2] = {1};
  static const int64_t shape[] = {1, 1, 1, 1, 1, 1, 1, 1, 2};
  rondo_onnx_runner_info info = {.struct_size = sizeof info};
  rondo_onnx_runner *runner = NULL;
  rondo_buffer *output = NULL;
  rondo_tree *tree = test_tree(t, NULL);
  onnx_bytes graph = {0};
  onnx_add_input(&graph, "x", FLOAT, DIMS(2));
  onnx_add_initializer(&graph, "shape", INT64, shape, sizeof shape, DIMS(9));
  onnx_add_node(&graph, "Reshape", NAMES("x", "shape"), NAMES("deep"));
  onnx_add_output(&graph, "deep");
  assert_ok(rondo_onnx_runner_create(parsed(&graph), t->stream, NULL, &runner));
  const rondo_input input = placed_input(t, x, sizeof x);
  assert_error(rondo_function_call(runner_function(tree, runner, 1), t->stream, &input, 1, &output, 1),
               RONDO_UNSUPPORTED, RONDO_REASON_SHAPE);
  assert_message("output 'deep' has 9 dimensions, and calls at most 8");
  assert_ok(rondo_onnx_runner_get_info(runner, &info));
  assert_int_equal(info.programs, 0);
  assert_ok(rondo_free(t->device, input.address));
  test_tree_destroy(tree);
  assert_ok(rondo_onnx_runner_destroy(runner));
}

TEST(test_on9_options_of_runners_that_do_not_fit) {
  static const float mask[6] = {0};
  static const int64_t zeros[6] = {0};
  const size_t shape[] = {2, 3};
  rondo_onnx_given_input given = {.name = "mask", .shape = shape, .rank = 2, .data = mask, .bytes = sizeof mask};
  const rondo_onnx_build_options build = {RONDO_ONNX_BUILD_OPTIONS_INIT, .inputs = &given, .input_count = 1};
  const rondo_onnx_runner_options options = {RONDO_ONNX_RUNNER_OPTIONS_INIT, .build = &build};
  rondo_onnx_model *model = encoder();
  rondo_onnx_runner *runner = NULL;
  rondo_tree *tree = test_tree(t, NULL);
  rondo_input ids = placed_input(t, zeros, sizeof zeros);
  assert_invalid(rondo_onnx_runner_create(NULL, t->stream, NULL, &runner), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_onnx_runner_create(model, NULL, NULL, &runner), RONDO_REASON_NULL_ARGUMENT);
  assert_null(runner);
  assert_ok(rondo_onnx_runner_create(model, t->stream, &options, &runner));
  ids.rank = 2;
  ids.shape[0] = 2;
  ids.shape[1] = 3;
  assert_invalid(call_with(t, runner_function(tree, runner, 1), &ids, 1), RONDO_REASON_BAD_OPTIONS);
  assert_message("'mask'");
  rondo_stream *other = test_stream(t, "other");
  rondo_buffer *outputs[3] = {NULL};
  assert_invalid(rondo_function_call(runner_function(tree, runner, 1), other, &ids, 1, outputs, 3),
                 RONDO_REASON_OTHER_DEVICE);
  assert_ok(rondo_free(t->device, ids.address));
  test_tree_destroy(tree);
  assert_ok(rondo_onnx_runner_destroy(runner));
  given.name = "nothing";
  assert_ok(rondo_onnx_runner_create(model, t->stream, &options, &runner));
  tree = test_tree(t, NULL);
  ids = placed_input(t, zeros, sizeof zeros);
  const rondo_input both[] = {ids, ids};
  assert_invalid(call_with(t, runner_function(tree, runner, 2), both, 2), RONDO_REASON_UNKNOWN_NAME);
  assert_ok(rondo_free(t->device, ids.address));
  test_tree_destroy(tree);
  assert_ok(rondo_onnx_runner_destroy(runner));
}

/* Models of libonnx-testdata --------------------------------------------------------------------------------------- */

#define DATA "/usr/share/libonnx-testdata/data"
enum { SHARE = 4 };

/* Inputs of the model, at new addresses: floats are random, and other elements 0 or 1. */
static bool place_inputs(test_fixture *t, const rondo_onnx_build *build, rondo_input *out, size_t *out_count) {
  rondo_onnx_built_value value = {.struct_size = sizeof value};
  for (*out_count = 0; rondo_onnx_build_get_input(build, *out_count, &value) == RONDO_OK; ++*out_count) {
    size_t bytes = rondo_type_bytes(value.type);
    for (size_t i = 0; i < value.rank; i++) bytes *= value.shape[i];
    if (value.program_name == NULL || bytes == 0 || *out_count == MOST_INPUTS) return false;
    uint8_t *data = calloc(bytes, 1);
    assert_non_null(data);
    if (value.type == RONDO_F32) fill((float *)(void *)data, bytes / sizeof(float), (uint32_t)*out_count);
    test_note_error();
    out[*out_count] = placed_input(t, data, bytes);
    free(data);
    out[*out_count].rank = (uint32_t)value.rank;
    for (size_t i = 0; i < value.rank; i++) out[*out_count].shape[i] = value.shape[i];
  }
  return *out_count > 0;
}

static void free_inputs(test_fixture *t, const rondo_input *inputs, size_t count) {
  for (size_t i = 0; i < count; i++) assert_ok(rondo_free(t->device, inputs[i].address));
}

/* Whether three calls, at other addresses, give the same bits, the last of them replayed. */
static bool is_same_replayed(test_fixture *t, rondo_onnx_runner *runner, const rondo_onnx_build *build,
                             const rondo_onnx_build_info *info) {
  rondo_tree *tree = test_tree(t, NULL);
  uint8_t *bytes[3] = {NULL};
  rondo_function *function = runner_function(tree, runner, info->inputs);
  bool is_same = true;
  for (size_t i = 0; i < 3; i++) {
    rondo_input inputs[MOST_INPUTS];
    rondo_buffer *outputs[MOST_OUTPUTS];
    size_t count;
    assert_true(place_inputs(t, build, inputs, &count));
    test_note_error();
    assert_ok(rondo_function_call(function, t->stream, inputs, count, outputs, info->outputs));
    const size_t found = take_outputs(t, outputs, info->outputs, &bytes[i]);
    if (i > 0) is_same &= memcmp(bytes[0], bytes[i], found) == 0;
    free_inputs(t, inputs, count);
  }
  is_same &= test_last_call(tree).outcome == RONDO_CALL_REPLAYED;
  for (size_t i = 0; i < 3; i++) free(bytes[i]);
  test_tree_destroy(tree);
  return is_same;
}

/* Models that need values of inputs, or that are not supported, are for test_onnx_models.c. */
static bool is_right(test_fixture *t, const char *path, size_t *inout_run) {
  rondo_onnx_model *model = NULL;
  rondo_onnx_build *build = NULL;
  rondo_onnx_runner *runner = NULL;
  rondo_onnx_build_info info = {.struct_size = sizeof info};
  rondo_input inputs[MOST_INPUTS];
  size_t count = 0;
  bool is_same = true;
  if (rondo_onnx_load(path, NULL, &model) == RONDO_OK &&
      rondo_onnx_build_program(model, NULL, test_new_program(), &build) == RONDO_OK) {
    test_note_error();
    assert_ok(rondo_onnx_build_get_info(build, &info));
    const bool can_run = place_inputs(t, build, inputs, &count) && info.outputs <= MOST_OUTPUTS;
    test_note_error();
    free_inputs(t, inputs, count);
    if (can_run) {
      assert_ok(rondo_onnx_runner_create(model, t->stream, NULL, &runner));
      is_same = is_same_replayed(t, runner, build, &info);
      test_note_error();
      assert_ok(rondo_onnx_runner_destroy(runner));
      ++*inout_run;
    }
  }
  test_note_error();
  rondo_onnx_build_destroy(build);
  rondo_onnx_destroy(model);
  return is_same;
}

TEST(test_on9_models_of_libonnx_testdata_in_trees) {
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
      if (!is_right(t, path, &run)) print_error("%s: other bits, or not replayed\n", path), fail();
    }
    closedir(directory);
  }
  assert_true(run > 10);
}
