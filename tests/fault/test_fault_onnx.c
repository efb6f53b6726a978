/* SPDX-License-Identifier: MIT
 * Lets host allocations fail while a builder of a model makes programs, and while a runner runs the model in a tree:
 * eagerly, recorded, replayed, in parts, and beyond its limit of programs (ON-9). The error is OUT_OF_MEMORY, nothing
 * is left, and calls that succeed give the right results.
 */
#include <rondo/onnx.h>
#include <rondo/session.h>
#include <string.h>

#include "fault/fault_allocations.h"
#include "support/test_onnx.h"

enum { FLOAT = 1, INT64 = 7, INT4 = 22, MOST_ROWS = 3 };

#define NAMES(...) ((const char *[]){__VA_ARGS__, NULL})
#define DIMS(...) (const int64_t[]){__VA_ARGS__}, sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)

static struct {
  rondo_onnx_model *model;
  rondo_onnx_builder *builder;
  rondo_program *program;
  rondo_device *device;
  rondo_stream *stream;
  rondo_tree *tree;
  rondo_onnx_runner *runner;
  void *memory;
} made;

/* y = norm(x w - row) + nothing, with x [batch, 2] by the numbers of its rows, and the row expanded to the shape of x.
 * The norm changes nothing, and becomes a factor and an offset together with the sum; nothing is a cast of two integers
 * of 4 bits. */
static rondo_status parse(const rondo_allocator *allocator) {
  static const float w[] = {1, 2, 3, 4}, row[] = {10, 20}, two[] = {2, 2}, zero[] = {0, 0}, one[] = {1, 1};
  static const unsigned char none[] = {0};
  static const int64_t begin[] = {0}, step[] = {1};
  const rondo_onnx_options options = {RONDO_ONNX_OPTIONS_INIT, .allocator = allocator};
  onnx_bytes graph = {0};
  onnx_bytes norm = onnx_node("norm", "BatchNormalization", NAMES("sum", "two", "zero", "zero", "one"), NAMES("n"));
  onnx_bytes cast = onnx_node("cast", "Cast", NAMES("none"), NAMES("nothing"));
  onnx_add_float(&norm, "epsilon", 3);
  onnx_add_int(&cast, "to", FLOAT);
  onnx_add_input(&graph, "x", FLOAT, DIMS(-1, 2));
  onnx_add_initializer(&graph, "w", FLOAT, w, sizeof w, DIMS(2, 2));
  onnx_add_initializer(&graph, "row", FLOAT, row, sizeof row, DIMS(1, 2));
  onnx_add_node(&graph, "Shape", NAMES("x"), NAMES("shape"));
  onnx_add_node(&graph, "Expand", NAMES("row", "shape"), NAMES("rows"));
  onnx_add_node(&graph, "Neg", NAMES("rows"), NAMES("negative"));
  onnx_add_initializer(&graph, "first", INT64, begin, sizeof begin, NULL, 0);
  onnx_add_initializer(&graph, "step", INT64, step, sizeof step, NULL, 0);
  onnx_add_node(&graph, "Gather", NAMES("shape", "first"), NAMES("count"));
  onnx_add_node(&graph, "Range", NAMES("first", "count", "step"), NAMES("numbers"));
  onnx_add_node(&graph, "Gather", NAMES("x", "numbers"), NAMES("same"));
  onnx_add_node(&graph, "MatMul", NAMES("same", "w"), NAMES("product"));
  onnx_add_initializer(&graph, "two", FLOAT, two, sizeof two, DIMS(2));
  onnx_add_initializer(&graph, "zero", FLOAT, zero, sizeof zero, DIMS(2));
  onnx_add_initializer(&graph, "one", FLOAT, one, sizeof one, DIMS(2));
  onnx_add_initializer(&graph, "none", INT4, none, sizeof none, DIMS(2));
  onnx_add_node(&graph, "Add", NAMES("product", "negative"), NAMES("sum"));
  onnx_nest(&graph, ONNX_GRAPH_NODE, &norm);
  onnx_nest(&graph, ONNX_GRAPH_NODE, &cast);
  onnx_add_node(&graph, "Add", NAMES("n", "nothing"), NAMES("y"));
  onnx_add_output(&graph, "y");
  const onnx_bytes bytes = onnx_model(&graph);
  return rondo_onnx_parse(bytes.bytes, bytes.count, &options, &made.model);
}

static rondo_status build(const rondo_allocator *allocator) {
  const rondo_onnx_dimension_size other = {.name = "length", .size = 4};
  const rondo_onnx_given_input given = {.name = "x", .shape = (const size_t[]){1, 2}, .rank = 2};
  const rondo_onnx_build_options shapes = {RONDO_ONNX_BUILD_OPTIONS_INIT, .dimensions = &other, .dimension_count = 1,
                                           .inputs = &given, .input_count = 1};
  const rondo_onnx_builder_options options = {RONDO_ONNX_BUILDER_OPTIONS_INIT, .rows = "batch", .build = &shapes,
                                              .allocator = allocator};
  const rondo_program_options program = {RONDO_PROGRAM_OPTIONS_INIT, .allocator = allocator};
  TRY(rondo_onnx_builder_create(made.model, &options, &made.builder));
  TRY(rondo_program_create(&program, &made.program));
  return rondo_onnx_builder_build(made.builder, 3, made.program);
}

static rondo_status call(rondo_function *function, size_t rows) {
  static const float x[MOST_ROWS * 2] = {1, 2, 3, 4, 5, 6}, expected[MOST_ROWS * 2] = {-3, -10, 5, 2, 13, 14};
  float y[MOST_ROWS * 2];
  rondo_buffer *output = NULL;
  const rondo_input input = {.address = made.memory, .bytes = rows * 8, .rank = 2, .shape = {rows, 2}};
  TRY(rondo_copy_async(made.stream, made.memory, x, rows * 8));
  TRY(rondo_function_call(function, made.stream, &input, 1, &output, 1));
  rondo_status status = rondo_buffer_copy(output, made.stream, 0, y, rows * 8);
  const rondo_status waited = rondo_stream_synchronize(made.stream);
  rondo_buffer_release(output);
  if (status == RONDO_OK) status = waited;
  if (status == RONDO_OK) assert_near(y, expected, rows * 2, 1e-6f);
  return status;
}

static rondo_status run_in_tree(const rondo_allocator *allocator) {
  const rondo_onnx_runner_options options = {RONDO_ONNX_RUNNER_OPTIONS_INIT, .max_programs = 1, .allocator = allocator};
  rondo_function *function = NULL;
  TRY(rondo_stream_create(made.device, NULL, &made.stream));
  TRY(rondo_tree_create(made.device, NULL, &made.tree));
  TRY(rondo_malloc(made.device, MOST_ROWS * 8, NULL, &made.memory));
  TRY(rondo_onnx_runner_create(made.model, made.stream, &options, &made.runner));
  const rondo_function_options of = {RONDO_FUNCTION_OPTIONS_INIT, .name = "model", .body = rondo_onnx_run,
                                     .user = made.runner, RONDO_INPUTS(RONDO_INPUT_MOVING)};
  TRY(rondo_function_create(made.tree, &of, &function));
  for (size_t i = 0; i < 3; i++) TRY(call(function, MOST_ROWS));
  TRY(call(function, 2));
  return rondo_onnx_runner_synchronize(made.runner);
}

static rondo_status run(fault_rig *rig) {
  made.device = rig->device;
  TRY(parse(&rig->allocator.table));
  TRY(build(&rig->allocator.table));
  return run_in_tree(&rig->allocator.table);
}

static void destroy(void) {
  assert_ok(rondo_tree_destroy(made.tree));
  assert_ok(rondo_onnx_runner_destroy(made.runner));
  if (made.memory != NULL) assert_ok(rondo_free(made.device, made.memory));
  if (made.stream != NULL) assert_ok(rondo_stream_destroy(made.stream));
  rondo_program_destroy(made.program);
  rondo_onnx_builder_destroy(made.builder);
  rondo_onnx_destroy(made.model);
  memset(&made, 0, sizeof made);
}

/* y = the doubled elements of a sequence x, joined. */
static rondo_status parse_sequences(const rondo_allocator *allocator) {
  const rondo_onnx_options options = {RONDO_ONNX_OPTIONS_INIT, .allocator = allocator};
  onnx_bytes graph = {0}, body = {0};
  onnx_bytes concat = onnx_node("concat", "ConcatFromSequence", NAMES("d"), NAMES("y"));
  onnx_bytes map = onnx_node("map", "SequenceMap", NAMES("x"), NAMES("d"));
  onnx_add_input(&body, "e", FLOAT, DIMS(-1, 2));
  onnx_add_node(&body, "Add", NAMES("e", "e"), NAMES("sum"));
  onnx_add_output(&body, "sum");
  onnx_add_graph(&map, "body", &body);
  onnx_add_int(&concat, "axis", 0);
  onnx_add_list_input(&graph, "x", ONNX_SEQUENCE, FLOAT, DIMS(-1, 2));
  onnx_nest(&graph, ONNX_GRAPH_NODE, &map);
  onnx_nest(&graph, ONNX_GRAPH_NODE, &concat);
  onnx_add_output(&graph, "y");
  onnx_add_output(&graph, "d");
  const onnx_bytes bytes = onnx_model(&graph);
  return rondo_onnx_parse(bytes.bytes, bytes.count, &options, &made.model);
}

static rondo_status run_sequences(fault_rig *rig) {
  const rondo_allocator *allocator = &rig->allocator.table;
  const rondo_onnx_dimension_size length = {"x[]", 2};
  const rondo_onnx_build_options lengths = {RONDO_ONNX_BUILD_OPTIONS_INIT, .dimensions = &length, .dimension_count = 1};
  const rondo_onnx_builder_options options = {RONDO_ONNX_BUILDER_OPTIONS_INIT, .build = &lengths,
                                              .allocator = allocator};
  const rondo_program_options program = {RONDO_PROGRAM_OPTIONS_INIT, .allocator = allocator};
  TRY(parse_sequences(allocator));
  TRY(rondo_onnx_builder_create(made.model, &options, &made.builder));
  TRY(rondo_program_create(&program, &made.program));
  return rondo_onnx_builder_build(made.builder, 3, made.program);
}

/* y = the rows of x whose places a part finds, doubled; n = -x, handed on; k, a constant of the shape of a result. */
static rondo_status parse_parts(const rondo_allocator *allocator) {
  static const int64_t first[] = {0};
  const rondo_onnx_options options = {RONDO_ONNX_OPTIONS_INIT, .allocator = allocator};
  onnx_bytes graph = {0};
  onnx_bytes list = onnx_node("list", "SequenceConstruct", NAMES("n", "x"), NAMES("l"));
  onnx_add_input(&graph, "x", FLOAT, DIMS(-1, 2));
  onnx_add_initializer(&graph, "first", INT64, first, sizeof first, NULL, 0);
  onnx_add_node(&graph, "Neg", NAMES("x"), NAMES("n"));
  onnx_nest(&graph, ONNX_GRAPH_NODE, &list);
  onnx_add_node(&graph, "Shape", NAMES("n"), NAMES("k"));
  onnx_add_node(&graph, "NonZero", NAMES("x"), NAMES("places"));
  onnx_add_node(&graph, "Gather", NAMES("places", "first"), NAMES("rows"));
  onnx_add_node(&graph, "Gather", NAMES("n", "rows"), NAMES("selected"));
  onnx_add_node(&graph, "SequenceAt", NAMES("l", "first"), NAMES("same"));
  onnx_add_node(&graph, "Gather", NAMES("same", "rows"), NAMES("again"));
  onnx_add_node(&graph, "Add", NAMES("selected", "again"), NAMES("y"));
  onnx_add_output(&graph, "y");
  onnx_add_output(&graph, "n");
  onnx_add_output(&graph, "k");
  const onnx_bytes bytes = onnx_model(&graph);
  return rondo_onnx_parse(bytes.bytes, bytes.count, &options, &made.model);
}

/* Two rows, with one place that is not 0 each, or with three in all: y has a row for each. */
static rondo_status call_parts(rondo_function *function, bool has_more) {
  static const float x[] = {1, 0, 0, 2}, more[] = {1, 5, 0, 2}; /* copied after a call that fails, too */
  const float expected[] = {-2, 0, 0, -4}, expected_more[] = {-2, -10, -2, -10, 0, -4};
  const size_t rows = has_more ? 3 : 2;
  float y[6];
  rondo_buffer *output = NULL;
  const rondo_input input = {.address = made.memory, .bytes = sizeof x, .rank = 2, .shape = {2, 2}};
  TRY(rondo_copy_async(made.stream, made.memory, has_more ? more : x, sizeof x));
  TRY(rondo_function_call(function, made.stream, &input, 1, &output, 1));
  rondo_status status = rondo_buffer_copy(output, made.stream, 0, y, rows * 8);
  const rondo_status waited = rondo_stream_synchronize(made.stream);
  rondo_buffer_release(output);
  if (status == RONDO_OK) status = waited;
  if (status == RONDO_OK) assert_near(y, has_more ? expected_more : expected, rows * 2, 1e-6f);
  return status;
}

/* Eagerly, recorded, and beyond the limit of programs. */
static rondo_status run_parts(fault_rig *rig) {
  const rondo_allocator *allocator = &rig->allocator.table;
  const rondo_onnx_runner_options options = {RONDO_ONNX_RUNNER_OPTIONS_INIT, .max_programs = 2, .allocator = allocator};
  rondo_function *function = NULL;
  made.device = rig->device;
  TRY(parse_parts(allocator));
  TRY(rondo_stream_create(made.device, NULL, &made.stream));
  TRY(rondo_tree_create(made.device, NULL, &made.tree));
  TRY(rondo_malloc(made.device, MOST_ROWS * 8, NULL, &made.memory));
  TRY(rondo_onnx_runner_create(made.model, made.stream, &options, &made.runner));
  const rondo_function_options of = {RONDO_FUNCTION_OPTIONS_INIT, .name = "model", .body = rondo_onnx_run,
                                     .user = made.runner, RONDO_INPUTS(RONDO_INPUT_MOVING)};
  TRY(rondo_function_create(made.tree, &of, &function));
  for (size_t i = 0; i < 3; i++) TRY(call_parts(function, i == 2));
  TRY(call_parts(function, false));
  return rondo_onnx_runner_synchronize(made.runner);
}

/* y = x + x [batch, length, 2], with a length. */
static rondo_status run_lengths(fault_rig *rig) {
  const rondo_allocator *allocator = &rig->allocator.table;
  const rondo_onnx_options options = {RONDO_ONNX_OPTIONS_INIT, .allocator = allocator};
  const rondo_onnx_builder_options of = {RONDO_ONNX_BUILDER_OPTIONS_INIT, .rows = "batch", .is_causal = true,
                                         .allocator = allocator};
  const rondo_program_options program = {RONDO_PROGRAM_OPTIONS_INIT, .allocator = allocator};
  const rondo_model_size size = {.rows = 3, .length = 2};
  onnx_bytes graph = {0};
  onnx_add_input(&graph, "x", FLOAT, DIMS(-2, -1, 2));
  onnx_add_node(&graph, "Add", NAMES("x", "x"), NAMES("y"));
  onnx_add_output(&graph, "y");
  const onnx_bytes bytes = onnx_model(&graph);
  TRY(rondo_onnx_parse(bytes.bytes, bytes.count, &options, &made.model));
  TRY(rondo_onnx_builder_create(made.model, &of, &made.builder));
  TRY(rondo_program_create(&program, &made.program));
  return rondo_onnx_builder_build_sized(made.builder, &size, made.program);
}

static const fault_work work = {.run = run, .destroy = destroy};
static const fault_work sequences = {.run = run_sequences, .destroy = destroy};
static const fault_work parts = {.run = run_parts, .destroy = destroy};
static const fault_work lengths = {.run = run_lengths, .destroy = destroy};

UNIT_TEST(test_on9_an_allocation_fails) { fault_allocations(&work, false, 5); }

UNIT_TEST(test_on9_all_allocations_fail_from_then_on) { fault_allocations(&work, true, 11); }

UNIT_TEST(test_on9_an_allocation_for_sequences_fails) {
  fault_allocations(&sequences, false, 1);
  fault_allocations(&sequences, true, 3);
}

UNIT_TEST(test_on9_an_allocation_for_parts_fails) {
  fault_allocations(&parts, false, 7);
  fault_allocations(&parts, true, 13);
}

UNIT_TEST(test_on9_an_allocation_for_lengths_fails) {
  fault_allocations(&lengths, false, 1);
  fault_allocations(&lengths, true, 3);
}
