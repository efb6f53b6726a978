/* SPDX-License-Identifier: MIT
 * Models that a runner divides into parts (ON-9), because nodes must know values, or the sizes of results, that depend
 * on data: the right elements and shapes, the same bits eagerly and recorded, counts of 0, a part for each value, the
 * limit of programs, and what is refused.
 */
#include <rondo/onnx.h>

#include <rondo/capture.h>
#include <stdlib.h>
#include <string.h>

#include "support/test_onnx.h"
#include "support/test_tree.h"

enum { FLOAT = 1, INT64 = 7, BOOL = 9, MOST = 8 };

#define NAMES(...) ((const char *[]){__VA_ARGS__, NULL})
#define DIMS(...) (const int64_t[]){__VA_ARGS__}, sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)

/* Calls ------------------------------------------------------------------------------------------------------------ */

/* A model with a runner and a function of a tree. */
typedef struct divided {
  test_fixture *t;
  rondo_onnx_model *model;
  rondo_onnx_runner *runner;
  rondo_tree *tree;
  rondo_function *function;
} divided;

static void divided_open(test_fixture *t, const onnx_bytes *graph, size_t inputs,
                         const rondo_onnx_runner_options *options, divided *out) {
  uint32_t kinds[MOST];
  const onnx_bytes bytes = onnx_model(graph);
  *out = (divided){.t = t, .tree = test_tree(t, NULL)};
  for (size_t i = 0; i < MOST; i++) kinds[i] = RONDO_INPUT_MOVING;
  assert_ok(rondo_onnx_parse(bytes.bytes, bytes.count, NULL, &out->model));
  assert_ok(rondo_onnx_runner_create(out->model, t->stream, options, &out->runner));
  const rondo_function_options function = {RONDO_FUNCTION_OPTIONS_INIT, .name = "model", .body = rondo_onnx_run,
                                           .user = out->runner,         .inputs = kinds, .input_count = inputs};
  assert_ok(rondo_function_create(out->tree, &function, &out->function));
}

static void divided_close(divided *of) {
  assert_ok(rondo_onnx_runner_synchronize(of->runner));
  test_tree_destroy(of->tree);
  assert_ok(rondo_onnx_runner_destroy(of->runner));
  rondo_onnx_destroy(of->model);
}

static rondo_onnx_runner_info info_of(const divided *of) {
  rondo_onnx_runner_info info = {.struct_size = sizeof info};
  assert_ok(rondo_onnx_runner_get_info(of->runner, &info));
  return info;
}

/* An input, or what is expected of an output. */
typedef struct tensor {
  const void *data;
  size_t bytes, rank, shape[4];
} tensor;

#define FLOATS(...) (const float[]){__VA_ARGS__}, sizeof((const float[]){__VA_ARGS__})
#define INTEGERS(...) (const int64_t[]){__VA_ARGS__}, sizeof((const int64_t[]){__VA_ARGS__})

static rondo_input place(test_fixture *t, const tensor *from) {
  rondo_input input = {.bytes = from->bytes, .rank = (uint32_t)from->rank};
  memcpy(input.shape, from->shape, from->rank * sizeof *from->shape);
  assert_ok(rondo_malloc(t->device, from->bytes, NULL, &input.address));
  assert_ok(rondo_copy_async(t->stream, input.address, from->data, from->bytes));
  assert_ok(rondo_stream_synchronize(t->stream));
  return input;
}

static void assert_buffer(test_fixture *t, rondo_buffer *buffer, const tensor *expected) {
  rondo_buffer_info info = {.struct_size = sizeof info};
  unsigned char found[1024];
  assert_ok(rondo_buffer_get_info(buffer, &info));
  assert_int_equal(info.bytes, expected->bytes);
  assert_int_equal(info.rank, expected->rank);
  for (size_t i = 0; i < expected->rank; i++) assert_int_equal(info.shape[i], expected->shape[i]);
  assert_true(info.bytes <= sizeof found);
  if (info.bytes > 0) assert_ok(rondo_buffer_copy(buffer, t->stream, 0, found, info.bytes));
  assert_ok(rondo_stream_synchronize(t->stream));
  assert_memory_equal(found, expected->data, expected->bytes);
}

/* Calls three times: eagerly, and with the recordings of the parts. All give these bits. */
static void assert_gives(const divided *of, const tensor *inputs, size_t input_count, const tensor *expected,
                         size_t output_count) {
  for (size_t run = 0; run < 3; run++) {
    rondo_input placed[MOST];
    rondo_buffer *outputs[MOST];
    for (size_t i = 0; i < input_count; i++) placed[i] = place(of->t, &inputs[i]);
    assert_ok(rondo_function_call(of->function, of->t->stream, placed, input_count, outputs, output_count));
    for (size_t i = 0; i < output_count; i++) {
      assert_buffer(of->t, outputs[i], &expected[i]);
      rondo_buffer_release(outputs[i]);
    }
    for (size_t i = 0; i < input_count; i++) assert_ok(rondo_free(of->t->device, placed[i].address));
  }
}

static void assert_host_work(const divided *of) {
  const rondo_call_info call = test_last_call(of->tree);
  assert_int_equal(call.outcome, RONDO_CALL_EAGER);
  assert_int_equal(call.skip, RONDO_SKIP_HOST_WORK);
}

/* Sizes that depend on data ---------------------------------------------------------------------------------------- */

/* y = x[where score > 0] w, for the places of rows: NonZero, Transpose, Squeeze, Gather, MatMul. */
static onnx_bytes selected_rows(void) {
  static const float w[] = {1, 10, 100, 1000}, zero[] = {0};
  static const int64_t axis[] = {0};
  onnx_bytes graph = {0};
  onnx_add_input(&graph, "x", FLOAT, DIMS(-1, 2));
  onnx_add_input(&graph, "score", FLOAT, DIMS(-1));
  onnx_add_initializer(&graph, "w", FLOAT, w, sizeof w, DIMS(2, 2));
  onnx_add_initializer(&graph, "zero", FLOAT, zero, sizeof zero, NULL, 0);
  onnx_add_initializer(&graph, "axis", INT64, axis, sizeof axis, DIMS(1));
  onnx_add_node(&graph, "Greater", NAMES("score", "zero"), NAMES("above"));
  onnx_add_node(&graph, "NonZero", NAMES("above"), NAMES("places"));
  onnx_add_node(&graph, "Squeeze", NAMES("places", "axis"), NAMES("rows"));
  onnx_add_node(&graph, "Add", NAMES("x", "x"), NAMES("doubled"));
  onnx_add_node(&graph, "Gather", NAMES("doubled", "rows"), NAMES("selected"));
  onnx_add_node(&graph, "MatMul", NAMES("selected", "w"), NAMES("y"));
  onnx_add_output(&graph, "y");
  onnx_add_output(&graph, "rows");
  onnx_add_output(&graph, "doubled");
  return graph;
}

TEST(test_on9_a_model_is_cut_where_a_size_depends_on_data) {
  const onnx_bytes graph = selected_rows();
  divided of;
  divided_open(t, &graph, 2, NULL, &of);
  const tensor x = {FLOATS(1, 2, 3, 4, 5, 6), 2, {3, 2}}, doubled = {FLOATS(2, 4, 6, 8, 10, 12), 2, {3, 2}};
  const tensor two[] = {x, {FLOATS(1, 0, 2), 1, {3}}}, one[] = {x, {FLOATS(-1, 3, -2), 1, {3}}};
  const tensor two_rows[] = {{FLOATS(402, 4020, 1210, 12100), 2, {2, 2}}, {INTEGERS(0, 2), 1, {2}}, doubled};
  const tensor one_row[] = {{FLOATS(806, 8060), 2, {1, 2}}, {INTEGERS(1), 1, {1}}, doubled};
  assert_gives(&of, two, 2, two_rows, 3);
  assert_host_work(&of);
  assert_int_equal(info_of(&of).parts, 2);
  assert_gives(&of, one, 2, one_row, 3);
  assert_gives(&of, two, 2, two_rows, 3);
  const rondo_onnx_runner_info info = info_of(&of);
  assert_int_equal(info.programs, 3); /* the first part, and one for each count */
  assert_int_equal(info.parts, 3);
  assert_int_equal(info.temporary, 0);
  assert_int_equal(info.waits, 9);
  assert_int_equal(info.state_bytes, 4 * sizeof(float));
  assert_true(info.handed_bytes >= 6 * sizeof(float) + 3 * sizeof(int64_t));
  divided_close(&of);
}

TEST(test_on9_a_count_of_zero) {
  onnx_bytes graph = {0};
  divided of;
  onnx_add_input(&graph, "x", FLOAT, DIMS(2, 2));
  onnx_add_input(&graph, "keep", BOOL, DIMS(2));
  onnx_bytes compress = onnx_node("rows", "Compress", NAMES("x", "keep"), NAMES("rows"));
  onnx_add_int(&compress, "axis", 0);
  onnx_nest(&graph, ONNX_GRAPH_NODE, &compress);
  onnx_add_node(&graph, "Add", NAMES("rows", "rows"), NAMES("y"));
  onnx_add_node(&graph, "Neg", NAMES("x"), NAMES("n"));
  onnx_add_output(&graph, "y");
  onnx_add_output(&graph, "n");
  divided_open(t, &graph, 2, NULL, &of);
  const tensor x = {FLOATS(1, 2, 3, 4), 2, {2, 2}};
  const tensor none[] = {x, {"\0", 2, 1, {2}}}, second[] = {x, {"\0\1", 2, 1, {2}}};
  const tensor nothing[] = {{"", 0, 2, {0, 2}}, {FLOATS(-1, -2, -3, -4), 2, {2, 2}}};
  const tensor doubled[] = {{FLOATS(6, 8), 2, {1, 2}}, {FLOATS(-1, -2, -3, -4), 2, {2, 2}}};
  assert_gives(&of, none, 2, nothing, 2);
  assert_gives(&of, second, 2, doubled, 2);
  divided_close(&of);
}

/* No row is selected: the product has no elements, too. */
TEST(test_on9_a_product_without_rows) {
  const onnx_bytes graph = selected_rows();
  divided of;
  divided_open(t, &graph, 2, NULL, &of);
  const tensor inputs[] = {{FLOATS(1, 2, 3, 4), 2, {2, 2}}, {FLOATS(0, -1), 1, {2}}};
  const tensor expected[] = {{"", 0, 2, {0, 2}}, {"", 0, 1, {0}}, {FLOATS(2, 4, 6, 8), 2, {2, 2}}};
  assert_gives(&of, inputs, 2, expected, 3);
  divided_close(&of);
}

/* The rows of a counted result are not one after the other in its memory: they are handed on without gaps. */
TEST(test_on9_an_output_is_cut_to_its_count) {
  onnx_bytes graph = {0};
  divided of;
  onnx_add_input(&graph, "x", FLOAT, DIMS(2, 3));
  onnx_add_node(&graph, "NonZero", NAMES("x"), NAMES("places"));
  onnx_add_node(&graph, "Transpose", NAMES("places"), NAMES("rows"));
  onnx_add_output(&graph, "places");
  onnx_add_output(&graph, "rows");
  divided_open(t, &graph, 1, NULL, &of);
  const tensor x = {FLOATS(0, 1, 1, 0, 0, 1), 2, {2, 3}};
  const tensor expected[] = {{INTEGERS(0, 0, 1, 1, 2, 2), 2, {2, 3}}, {INTEGERS(0, 1, 0, 2, 1, 2), 2, {3, 2}}};
  assert_gives(&of, &x, 1, expected, 2);
  divided_close(&of);
}

/* More than the bound of the options are left out. */
TEST(test_on9_a_part_with_a_bound) {
  const rondo_onnx_build_options build = {RONDO_ONNX_BUILD_OPTIONS_INIT, .data_dependent_bound = 2};
  const rondo_onnx_runner_options options = {RONDO_ONNX_RUNNER_OPTIONS_INIT, .build = &build};
  const onnx_bytes graph = selected_rows();
  divided of;
  divided_open(t, &graph, 2, &options, &of);
  const tensor inputs[] = {{FLOATS(1, 2, 3, 4, 5, 6), 2, {3, 2}}, {FLOATS(1, 1, 1), 1, {3}}};
  const tensor expected[] = {
      {FLOATS(402, 4020, 806, 8060), 2, {2, 2}}, {INTEGERS(0, 1), 1, {2}}, {FLOATS(2, 4, 6, 8, 10, 12), 2, {3, 2}}};
  assert_gives(&of, inputs, 2, expected, 3);
  divided_close(&of);
}

/* The end of a detector: the boxes that are selected, with their scores. */
TEST(test_on9_selected_boxes_are_gathered) {
  static const int64_t most[] = {3}, box[] = {2}, one[] = {1};
  static const float overlap[] = {0.5f};
  onnx_bytes graph = {0};
  divided of;
  onnx_add_input(&graph, "boxes", FLOAT, DIMS(1, 4, 4));
  onnx_add_input(&graph, "scores", FLOAT, DIMS(1, 1, 4));
  onnx_add_initializer(&graph, "most", INT64, most, sizeof most, DIMS(1));
  onnx_add_initializer(&graph, "overlap", FLOAT, overlap, sizeof overlap, DIMS(1));
  onnx_add_initializer(&graph, "box", INT64, box, sizeof box, NULL, 0);
  onnx_add_initializer(&graph, "one", INT64, one, sizeof one, DIMS(1));
  onnx_bytes select =
      onnx_node("select", "NonMaxSuppression", NAMES("boxes", "scores", "most", "overlap"), NAMES("selected"));
  onnx_bytes index = onnx_node("index", "Gather", NAMES("selected", "box"), NAMES("index"));
  onnx_bytes rows = onnx_node("rows", "Gather", NAMES("boxes", "index"), NAMES("rows"));
  onnx_bytes values = onnx_node("values", "Gather", NAMES("scores", "index"), NAMES("values"));
  onnx_bytes join = onnx_node("join", "Concat", NAMES("rows", "columns"), NAMES("found"));
  onnx_add_int(&index, "axis", 1);
  onnx_add_int(&rows, "axis", 1);
  onnx_add_int(&values, "axis", 2);
  onnx_add_int(&join, "axis", 2);
  onnx_bytes all[] = {select, index, rows, values};
  for (size_t i = 0; i < 4; i++) onnx_nest(&graph, ONNX_GRAPH_NODE, &all[i]);
  onnx_bytes unsqueeze = onnx_node("columns", "Unsqueeze", NAMES("flat", "two"), NAMES("columns"));
  static const int64_t two[] = {2}, first[] = {0};
  onnx_add_initializer(&graph, "two", INT64, two, sizeof two, DIMS(1));
  onnx_add_initializer(&graph, "first", INT64, first, sizeof first, DIMS(1));
  onnx_add_node(&graph, "Squeeze", NAMES("values", "first"), NAMES("flat"));
  onnx_nest(&graph, ONNX_GRAPH_NODE, &unsqueeze);
  onnx_nest(&graph, ONNX_GRAPH_NODE, &join);
  onnx_add_output(&graph, "found");
  divided_open(t, &graph, 2, NULL, &of);
  const tensor inputs[] = {{FLOATS(0, 0, 1, 1, 0, 0, 1, 0.9f, 2, 2, 3, 3, 4, 4, 5, 5), 3, {1, 4, 4}},
                           {FLOATS(0.5f, 0.75f, 0.25f, 1), 3, {1, 1, 4}}};
  const tensor found = {FLOATS(4, 4, 5, 5, 1, 0, 0, 1, 0.9f, 0.75f, 2, 2, 3, 3, 0.25f), 3, {1, 3, 5}};
  assert_gives(&of, inputs, 2, &found, 1);
  divided_close(&of);
}

/* Values that nodes must know -------------------------------------------------------------------------------------- */

/* y = reshape(x, s + s): the shape is computed from an input. */
TEST(test_on9_a_model_is_cut_where_a_shape_is_computed) {
  onnx_bytes graph = {0};
  divided of;
  onnx_add_input(&graph, "x", FLOAT, DIMS(4));
  onnx_add_input(&graph, "s", INT64, DIMS(2));
  onnx_add_node(&graph, "Add", NAMES("s", "s"), NAMES("shape"));
  onnx_add_node(&graph, "Exp", NAMES("x"), NAMES("e"));
  onnx_add_node(&graph, "Reshape", NAMES("e", "shape"), NAMES("y"));
  onnx_add_output(&graph, "y");
  onnx_add_output(&graph, "shape");
  divided_open(t, &graph, 2, NULL, &of);
  const tensor x = {FLOATS(0, 0, 0, 0), 1, {4}};
  const tensor square[] = {x, {INTEGERS(1, 1), 1, {2}}};
  const tensor expected[] = {{FLOATS(1, 1, 1, 1), 2, {2, 2}}, {INTEGERS(2, 2), 1, {2}}};
  assert_gives(&of, square, 2, expected, 2);
  assert_int_equal(info_of(&of).parts, 2);
  divided_close(&of);
}

/* Begin and end of a slice are inputs: the host reads both at once, before anything runs. */
TEST(test_on9_a_model_is_cut_at_values_of_inputs) {
  onnx_bytes graph = {0};
  divided of;
  onnx_add_input(&graph, "x", FLOAT, DIMS(4));
  onnx_add_input(&graph, "begin", INT64, DIMS(1));
  onnx_add_input(&graph, "end", INT64, DIMS(1));
  onnx_add_node(&graph, "Slice", NAMES("x", "begin", "end"), NAMES("y"));
  onnx_add_output(&graph, "y");
  divided_open(t, &graph, 3, NULL, &of);
  const tensor x = {FLOATS(1, 2, 3, 4), 1, {4}};
  const tensor middle[] = {x, {INTEGERS(1), 1, {1}}, {INTEGERS(3), 1, {1}}};
  const tensor none[] = {x, {INTEGERS(2), 1, {1}}, {INTEGERS(2), 1, {1}}};
  const tensor expected = {FLOATS(2, 3), 1, {2}}, nothing = {"", 0, 1, {0}};
  assert_gives(&of, middle, 3, &expected, 1);
  assert_int_equal(info_of(&of).waits, 3);
  assert_gives(&of, none, 3, &nothing, 1);
  divided_close(&of);
}

/* Different elements: an operator that always needs to know its input. */
TEST(test_on9_unique_elements_of_a_result) {
  onnx_bytes graph = {0};
  divided of;
  onnx_add_input(&graph, "x", FLOAT, DIMS(5));
  onnx_add_node(&graph, "Neg", NAMES("x"), NAMES("n"));
  onnx_add_node(&graph, "Unique", NAMES("n"), NAMES("u"));
  onnx_add_node(&graph, "Add", NAMES("u", "u"), NAMES("y"));
  onnx_add_output(&graph, "y");
  divided_open(t, &graph, 1, NULL, &of);
  const tensor x = {FLOATS(1, 2, 1, 3, 2), 1, {5}}, expected = {FLOATS(-6, -4, -2), 1, {3}};
  assert_gives(&of, &x, 1, &expected, 1);
  divided_close(&of);
}

/* Control flow ----------------------------------------------------------------------------------------------------- */

/* The body adds the step to the value; the step is of the graph around it. */
static onnx_bytes adding_body(bool stops_at_ten) {
  static const float ten[] = {10};
  onnx_bytes body = {0};
  onnx_add_input(&body, "i", INT64, NULL, 0);
  onnx_add_input(&body, "go", BOOL, NULL, 0);
  onnx_add_input(&body, "v", FLOAT, DIMS(2));
  onnx_add_node(&body, "Add", NAMES("v", "step"), NAMES("sum"));
  onnx_add_node(&body, "Neg", NAMES("sum"), NAMES("each"));
  if (stops_at_ten) {
    onnx_bytes most = onnx_node("most", "ReduceMax", NAMES("sum"), NAMES("largest"));
    onnx_add_int(&most, "keepdims", 0);
    onnx_add_initializer(&body, "ten", FLOAT, ten, sizeof ten, NULL, 0);
    onnx_nest(&body, ONNX_GRAPH_NODE, &most);
    onnx_add_node(&body, "Less", NAMES("largest", "ten"), NAMES("goes"));
  } else {
    onnx_add_node(&body, "Identity", NAMES("go"), NAMES("goes"));
  }
  onnx_add_output(&body, "goes");
  onnx_add_output(&body, "sum");
  onnx_add_output(&body, "each");
  return body;
}

static void open_loop(test_fixture *t, bool stops_at_ten, divided *out) {
  const onnx_bytes body = adding_body(stops_at_ten);
  const char *trips = stops_at_ten ? "" : "n";
  onnx_bytes graph = {0}, loop = onnx_node("loop", "Loop", NAMES(trips, "", "x"), NAMES("last", "all"));
  onnx_add_graph(&loop, "body", &body);
  onnx_add_input(&graph, "x", FLOAT, DIMS(2));
  onnx_add_input(&graph, "n", INT64, NULL, 0);
  onnx_add_node(&graph, "Abs", NAMES("x"), NAMES("step"));
  onnx_nest(&graph, ONNX_GRAPH_NODE, &loop);
  onnx_add_output(&graph, "last");
  onnx_add_output(&graph, "all");
  divided_open(t, &graph, 2, NULL, out);
}

/* A trip count that is an input, of a few programs. */
TEST(test_on9_a_loop_with_a_trip_count_of_data) {
  divided of;
  open_loop(t, false, &of);
  const tensor x = {FLOATS(1, -2), 1, {2}};
  const tensor two[] = {x, {INTEGERS(2), 0, {0}}}, one[] = {x, {INTEGERS(1), 0, {0}}};
  const tensor after_two[] = {{FLOATS(3, 2), 1, {2}}, {FLOATS(-2, -0.0f, -3, -2), 2, {2, 2}}};
  const tensor after_one[] = {{FLOATS(2, 0), 1, {2}}, {FLOATS(-2, -0.0f), 2, {1, 2}}};
  assert_gives(&of, two, 2, after_two, 2);
  assert_gives(&of, one, 2, after_one, 2);
  divided_close(&of);
}

/* A condition that the body computes: the model is cut in each iteration. */
TEST(test_on9_a_loop_with_a_condition_of_data) {
  divided of;
  open_loop(t, true, &of);
  const tensor inputs[] = {{FLOATS(3, 1), 1, {2}}, {INTEGERS(0), 0, {0}}};
  const tensor expected[] = {{FLOATS(12, 4), 1, {2}}, {FLOATS(-6, -2, -9, -3, -12, -4), 2, {3, 2}}};
  assert_gives(&of, inputs, 2, expected, 2);
  assert_int_equal(info_of(&of).waits, 9);
  divided_close(&of);
}

/* A branch that data choose, in which a size depends on data. */
TEST(test_on9_a_cut_in_a_branch) {
  static const float zero[] = {0};
  onnx_bytes graph = {0}, taken = {0}, other = {0};
  onnx_bytes choice = onnx_node("choice", "If", NAMES("positive"), NAMES("chosen"));
  onnx_bytes sum = onnx_node("sum", "ReduceSum", NAMES("x"), NAMES("total"));
  divided of;
  onnx_add_int(&sum, "keepdims", 0);
  onnx_add_node(&taken, "Add", NAMES("e", "e"), NAMES("doubled"));
  onnx_add_node(&taken, "Compress", NAMES("doubled", "above"), NAMES("kept"));
  onnx_add_node(&taken, "Neg", NAMES("kept"), NAMES("result"));
  onnx_add_output(&taken, "result");
  onnx_add_node(&other, "Identity", NAMES("e"), NAMES("same"));
  onnx_add_output(&other, "same");
  onnx_add_graph(&choice, "then_branch", &taken);
  onnx_add_graph(&choice, "else_branch", &other);
  onnx_add_input(&graph, "x", FLOAT, DIMS(3));
  onnx_add_initializer(&graph, "zero", FLOAT, zero, sizeof zero, NULL, 0);
  onnx_add_node(&graph, "Greater", NAMES("x", "zero"), NAMES("above"));
  onnx_add_node(&graph, "Abs", NAMES("x"), NAMES("e"));
  onnx_nest(&graph, ONNX_GRAPH_NODE, &sum);
  onnx_add_node(&graph, "Greater", NAMES("total", "zero"), NAMES("positive"));
  onnx_nest(&graph, ONNX_GRAPH_NODE, &choice);
  onnx_add_node(&graph, "Exp", NAMES("zero"), NAMES("factor"));
  onnx_add_node(&graph, "Mul", NAMES("chosen", "factor"), NAMES("y"));
  onnx_add_output(&graph, "y");
  divided_open(t, &graph, 1, NULL, &of);
  const tensor up = {FLOATS(1, -2, 4), 1, {3}}, down = {FLOATS(1, -2, -4), 1, {3}};
  const tensor compressed = {FLOATS(-2, -8), 1, {2}}, same = {FLOATS(1, 2, 4), 1, {3}};
  assert_gives(&of, &up, 1, &compressed, 1);
  assert_gives(&of, &down, 1, &same, 1);
  assert_int_equal(info_of(&of).programs, 4);
  divided_close(&of);
}

/* Limits and refusals ---------------------------------------------------------------------------------------------- */

/* Values that always change do not fill the memory: parts beyond the limit are compiled for one call. */
TEST(test_on9_parts_beyond_the_limit_of_programs) {
  const rondo_onnx_runner_options options = {RONDO_ONNX_RUNNER_OPTIONS_INIT, .max_programs = 2};
  const onnx_bytes graph = selected_rows();
  divided of;
  divided_open(t, &graph, 2, &options, &of);
  const tensor x = {FLOATS(1, 2, 3, 4, 5, 6), 2, {3, 2}}, doubled = {FLOATS(2, 4, 6, 8, 10, 12), 2, {3, 2}};
  const tensor two[] = {x, {FLOATS(1, 0, 2), 1, {3}}}, one[] = {x, {FLOATS(-1, 3, -2), 1, {3}}};
  const tensor two_rows[] = {{FLOATS(402, 4020, 1210, 12100), 2, {2, 2}}, {INTEGERS(0, 2), 1, {2}}, doubled};
  const tensor one_row[] = {{FLOATS(806, 8060), 2, {1, 2}}, {INTEGERS(1), 1, {1}}, doubled};
  const tensor other[] = {{FLOATS(1, 2), 2, {1, 2}}, {FLOATS(1), 1, {1}}};
  const tensor other_row[] = {{FLOATS(402, 4020), 2, {1, 2}}, {INTEGERS(0), 1, {1}}, {FLOATS(2, 4), 2, {1, 2}}};
  assert_gives(&of, two, 2, two_rows, 3);
  assert_gives(&of, one, 2, one_row, 3);
  assert_gives(&of, other, 2, other_row, 3); /* the first part is temporary, too */
  assert_gives(&of, two, 2, two_rows, 3);
  assert_int_equal(info_of(&of).programs, 2);
  assert_int_equal(info_of(&of).temporary, 3 + 2 * 3);
  divided_close(&of);
}

/* An operator that does not exist is refused before anything runs. */
TEST(test_on9_parts_with_an_operator_that_does_not_exist) {
  onnx_bytes graph = {0};
  divided of;
  rondo_buffer *output = NULL;
  onnx_add_input(&graph, "x", FLOAT, DIMS(2));
  onnx_add_node(&graph, "NonZero", NAMES("x"), NAMES("places"));
  onnx_add_node(&graph, "Neg", NAMES("places"), NAMES("n"));
  onnx_add_node(&graph, "Nothing", NAMES("n"), NAMES("y"));
  onnx_add_output(&graph, "y");
  divided_open(t, &graph, 1, NULL, &of);
  const rondo_input x = place(t, &(tensor){FLOATS(1, 2), 1, {2}});
  assert_error(rondo_function_call(of.function, t->stream, &x, 1, &output, 1), RONDO_UNSUPPORTED, RONDO_REASON_NONE);
  assert_message("'y' (Nothing)");
  assert_int_equal(info_of(&of).programs, 0);
  assert_ok(rondo_free(t->device, x.address));
  divided_close(&of);
}

/* A text that a branch returns before a cut, and which a node of the last part reads beside a result of this part: the
 * node is refused by name, as without a cut. */
TEST(test_on9_parts_with_a_text) {
  static const bool yes[] = {true};
  onnx_bytes graph = selected_rows(), branch = {0}, text = onnx_tensor("text", 8, NULL, 0);
  onnx_bytes choice = onnx_node("choice", "If", NAMES("yes"), NAMES("label"));
  divided of;
  onnx_data(&text, 6, "a", 1);
  onnx_nest(&graph, ONNX_GRAPH_INITIALIZER, &text);
  onnx_add_node(&branch, "Identity", NAMES("text"), NAMES("same"));
  onnx_add_output(&branch, "same");
  onnx_add_graph(&choice, "then_branch", &branch);
  onnx_add_graph(&choice, "else_branch", &branch);
  onnx_add_initializer(&graph, "yes", BOOL, yes, sizeof yes, NULL, 0);
  onnx_nest(&graph, ONNX_GRAPH_NODE, &choice);
  onnx_add_node(&graph, "Neg", NAMES("y"), NAMES("minus"));
  onnx_add_node(&graph, "Add", NAMES("minus", "label"), NAMES("unused"));
  divided_open(t, &graph, 2, NULL, &of);
  const tensor inputs[] = {{FLOATS(1, 2), 2, {1, 2}}, {FLOATS(1), 1, {1}}};
  rondo_buffer *outputs[3] = {NULL};
  const rondo_input placed[] = {place(t, &inputs[0]), place(t, &inputs[1])};
  assert_error(rondo_function_call(of.function, t->stream, placed, 2, outputs, 3), RONDO_UNSUPPORTED,
               RONDO_REASON_NONE);
  assert_message("'unused' (Add)");
  for (size_t i = 0; i < 2; i++) assert_ok(rondo_free(t->device, placed[i].address));
  divided_close(&of);
}

/* An input that only the host reads has the type of the model, too. */
TEST(test_on9_the_type_of_an_input_that_the_host_reads) {
  onnx_bytes graph = {0};
  divided of;
  rondo_buffer *output = NULL;
  onnx_add_input(&graph, "x", FLOAT, DIMS(4));
  onnx_add_input(&graph, "shape", INT64, DIMS(2));
  onnx_add_node(&graph, "Reshape", NAMES("x", "shape"), NAMES("y"));
  onnx_add_output(&graph, "y");
  divided_open(t, &graph, 2, NULL, &of);
  rondo_input inputs[] = {place(t, &(tensor){FLOATS(1, 2, 3, 4), 1, {4}}), place(t, &(tensor){INTEGERS(2, 2), 1, {2}})};
  inputs[1].type = RONDO_F64;
  assert_error(rondo_function_call(of.function, t->stream, inputs, 2, &output, 1), RONDO_INVALID_ARGUMENT,
               RONDO_REASON_TYPE);
  assert_message("input 'shape' has the type");
  for (size_t i = 0; i < 2; i++) assert_ok(rondo_free(t->device, inputs[i].address));
  divided_close(&of);
}

/* A capture of the caller's has no place for what the host does. */
TEST(test_on9_parts_cannot_be_captured) {
  const onnx_bytes graph = selected_rows();
  divided of;
  rondo_buffer *output = NULL;
  rondo_graph *captured = NULL;
  divided_open(t, &graph, 2, NULL, &of);
  const rondo_input inputs[] = {place(t, &(tensor){FLOATS(1, 2), 2, {1, 2}}), place(t, &(tensor){FLOATS(1), 1, {1}})};
  assert_ok(rondo_function_call(of.function, t->stream, inputs, 2, &output, 1));
  rondo_buffer_release(output);
  assert_ok(rondo_capture_begin(t->stream, RONDO_CAPTURE_THREAD_LOCAL));
  assert_error(rondo_function_call(of.function, t->stream, inputs, 2, &output, 1), RONDO_INVALID_STATE,
               RONDO_REASON_NOT_RECORDED);
  assert_message("outside of the capture");
  if (rondo_capture_end(t->stream, &captured) == RONDO_OK) assert_ok(rondo_graph_destroy(captured));
  test_note_error();
  for (size_t i = 0; i < 2; i++) assert_ok(rondo_free(t->device, inputs[i].address));
  divided_close(&of);
}
