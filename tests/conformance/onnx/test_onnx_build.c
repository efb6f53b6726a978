/* SPDX-License-Identifier: MIT
 * Programs of ONNX models (ON-2): inputs, outputs and weights by name, sizes of dynamic dimensions, constants that are
 * computed at import, given values of inputs, and what is not supported. Loops and branches are unrolled (ON-4).
 */
#include <rondo/onnx.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "support/rondo_test.h"
#include "support/test_onnx.h"
#include "support/test_program.h"

enum { FLOAT = 1, INT8 = 3, INT16 = 5, INT64 = 7, BOOL = 9, DOUBLE = 11, UINT64 = 13, INT4 = 22 };

#define NAMES(...) ((const char *[]){__VA_ARGS__, NULL})
#define DIMS(...) (const int64_t[]){__VA_ARGS__}, sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)

/* Models ----------------------------------------------------------------------------------------------------------- */

static void destroy_model(void *model) { rondo_onnx_destroy(model); }

static rondo_onnx_model *parsed(const onnx_bytes *graph) {
  rondo_onnx_model *model = NULL;
  const onnx_bytes bytes = onnx_model(graph);
  assert_ok(rondo_onnx_parse(bytes.bytes, bytes.count, NULL, &model));
  return test_leave(destroy_model, model);
}

/* Programs --------------------------------------------------------------------------------------------------------- */

static rondo_onnx_build *built(const rondo_onnx_model *model, const rondo_onnx_build_options *options,
                               rondo_program *program) {
  rondo_onnx_build *build = NULL;
  assert_ok(rondo_onnx_build_program(model, options, program, &build));
  return build;
}

static rondo_onnx_build_info info_of(const rondo_onnx_build *build) {
  rondo_onnx_build_info info = {.struct_size = sizeof info};
  assert_ok(rondo_onnx_build_get_info(build, &info));
  return info;
}

static rondo_onnx_built_value input_of(const rondo_onnx_build *build, size_t index) {
  rondo_onnx_built_value value = {.struct_size = sizeof value};
  assert_ok(rondo_onnx_build_get_input(build, index, &value));
  return value;
}

static rondo_onnx_built_value output_of(const rondo_onnx_build *build, size_t index) {
  rondo_onnx_built_value value = {.struct_size = sizeof value};
  assert_ok(rondo_onnx_build_get_output(build, index, &value));
  return value;
}

/* Compiles, and loads the weights. */
static rondo_compiled *compiled(test_fixture *t, rondo_program *program, const rondo_onnx_build *build,
                                rondo_compiled *share) {
  const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .share = share};
  rondo_compiled *made = test_compile_kept(program, t->device, &options);
  if (build != NULL) assert_ok(rondo_weights_apply(rondo_onnx_build_weights(build), made, NULL, NULL));
  return made;
}

static void assert_output(rondo_compiled *of, const char *name, const float *expected, size_t count) {
  float actual[64];
  assert_true(count <= 64);
  assert_ok(rondo_compiled_read(of, name, actual, count * sizeof *actual));
  assert_near(actual, expected, count, 1e-6f);
}

/* y = relu(x w + b), with x [batch, 2]. */
static onnx_bytes layer_graph(void) {
  static const float w[] = {1, 2, 3, 4}, b[] = {0.5f, -20};
  onnx_bytes graph = {0};
  onnx_add_input(&graph, "x", FLOAT, DIMS(-1, 2));
  onnx_add_initializer(&graph, "w", FLOAT, w, sizeof w, DIMS(2, 2));
  onnx_add_initializer(&graph, "b", FLOAT, b, sizeof b, DIMS(2));
  onnx_add_node(&graph, "Gemm", NAMES("x", "w", "b"), NAMES("sum"));
  onnx_add_node(&graph, "Relu", NAMES("sum"), NAMES("y"));
  onnx_add_output(&graph, "y");
  return graph;
}

enum { ATTRIBUTE_NAME = 1, ATTRIBUTE_TENSOR = 5, ATTRIBUTE_INTS = 8, ATTRIBUTE_TYPE = 20, IS_TENSOR = 4, IS_INTS = 7 };

/* More dimensions than programs have ------------------------------------------------------------------------------ */

enum { MANY = 8 };
static const size_t many[MANY] = {1, 2, 2, 1, 3, 2, 2, 2}, places[MANY] = {0, 1, 4, 2, 3, 5, 7, 6};

/* y = relu(x, transposed) + b, where x has 8 dimensions, and b [2, 1]; z = y without its dimension 0. */
static rondo_onnx_model *model_of_many_dimensions(void) {
  static const float b[] = {10, 20};
  static const int64_t zero[] = {0};
  onnx_bytes graph = {0}, order = {0};
  onnx_bytes transpose = onnx_node("transpose", "Transpose", NAMES("x"), NAMES("t"));
  onnx_text(&order, ATTRIBUTE_NAME, "perm");
  for (size_t i = 0; i < MANY; i++) onnx_number(&order, ATTRIBUTE_INTS, places[i]);
  onnx_number(&order, ATTRIBUTE_TYPE, IS_INTS);
  onnx_nest(&transpose, ONNX_NODE_ATTRIBUTE, &order);
  onnx_add_input(&graph, "x", FLOAT, DIMS(1, 2, 2, 1, 3, 2, 2, 2));
  onnx_add_initializer(&graph, "b", FLOAT, b, sizeof b, DIMS(2, 1));
  onnx_add_initializer(&graph, "zero", INT64, zero, sizeof zero, DIMS(1));
  onnx_nest(&graph, ONNX_GRAPH_NODE, &transpose);
  onnx_add_node(&graph, "Relu", NAMES("t"), NAMES("r"));
  onnx_add_node(&graph, "Add", NAMES("r", "b"), NAMES("y"));
  onnx_add_node(&graph, "Squeeze", NAMES("y", "zero"), NAMES("z"));
  onnx_add_output(&graph, "y");
  onnx_add_output(&graph, "z");
  return parsed(&graph);
}

static float element_of_many(const float *x, size_t index) {
  size_t at[MANY], from = 0, column = 0;
  for (size_t i = MANY; i-- > 0;) {
    at[places[i]] = index % many[places[i]];
    if (i == MANY - 2) column = at[places[i]];
    index /= many[places[i]];
  }
  for (size_t i = 0; i < MANY; i++) from = from * many[i] + at[i];
  return (x[from] > 0 ? x[from] : 0) + (column == 0 ? 10.0f : 20.0f);
}

TEST(test_on3_values_with_more_dimensions_than_programs_have) {
  enum { COUNT = 96 };
  float x[COUNT], y[COUNT], z[COUNT];
  rondo_program *program = test_new_program();
  rondo_onnx_build *build = built(model_of_many_dimensions(), NULL, program);
  rondo_compiled *of = compiled(t, program, build, NULL);
  for (size_t i = 0; i < COUNT; i++) x[i] = (float)(i % 7) - 3 + (float)i / 128;
  assert_int_equal(input_of(build, 0).rank, MANY);
  assert_int_equal(output_of(build, 0).rank, MANY);
  assert_int_equal(output_of(build, 0).shape[2], many[places[2]]);
  assert_int_equal(output_of(build, 1).rank, MANY - 1);
  assert_ok(rondo_compiled_write(of, "x", x, sizeof x));
  assert_ok(rondo_compiled_run(of));
  assert_ok(rondo_compiled_read(of, "y", y, sizeof y));
  assert_ok(rondo_compiled_read(of, "z", z, sizeof z));
  for (size_t i = 0; i < COUNT; i++) assert_true(y[i] == element_of_many(x, i));
  assert_memory_equal(y, z, sizeof y);
  rondo_onnx_build_destroy(build);
}

/* Broadcasting within the dimensions that are one in programs, and operators that cannot have so many. */
TEST(test_on3_dimensions_that_programs_cannot_have) {
  onnx_bytes graph = {0};
  rondo_onnx_build *build = NULL;
  rondo_onnx_unsupported item = {.struct_size = sizeof item};
  onnx_add_input(&graph, "a", FLOAT, DIMS(2, 2, 1, 2, 2, 2, 2));
  onnx_add_input(&graph, "b", FLOAT, DIMS(2, 1, 2, 2, 2, 2, 2));
  onnx_add_node(&graph, "Add", NAMES("a", "b"), NAMES("sum"));
  onnx_add_node(&graph, "Softmax", NAMES("a"), NAMES("soft"));
  onnx_add_output(&graph, "sum");
  onnx_add_output(&graph, "soft");
  assert_error(rondo_onnx_build_program(parsed(&graph), NULL, test_new_program(), &build), RONDO_UNSUPPORTED,
               RONDO_REASON_NONE);
  assert_ok(rondo_onnx_build_get_unsupported(build, 0, &item));
  assert_non_null(strstr(item.reason, "input 0 is broadcast along some of dimensions 1 to 2 of 7"));
  assert_ok(rondo_onnx_build_get_unsupported(build, 1, &item));
  assert_non_null(strstr(item.reason, "programs have at most 6"));
  rondo_onnx_build_destroy(build);
  (void)t;
}

/* Tests ------------------------------------------------------------------------------------------------------------ */

/* Programs of two batch sizes share the weights. */
TEST(test_on2_a_program_for_each_batch_size) {
  const onnx_bytes graph = layer_graph();
  rondo_onnx_model *model = parsed(&graph);
  rondo_compiled *first = NULL;
  static const float x[] = {1, 2, 3, 4, 5, 6}, y[] = {7.5f, 0, 15.5f, 2, 23.5f, 14};
  for (size_t batch = 3; batch >= 1; batch = batch == 3 ? 1 : 0) {
    const rondo_onnx_dimension_size size = {"batch", batch};
    const rondo_onnx_build_options options = {RONDO_ONNX_BUILD_OPTIONS_INIT, .dimensions = &size, .dimension_count = 1};
    rondo_program *program = test_new_program();
    rondo_onnx_build *build = built(model, &options, program);
    assert_int_equal(info_of(build).states, 2);
    assert_int_equal(info_of(build).state_bytes, 24);
    rondo_compiled *of = compiled(t, program, first == NULL ? build : NULL, first);
    assert_ok(rondo_compiled_write(of, "x", x, batch * 8));
    assert_ok(rondo_compiled_run(of));
    assert_output(of, "y", y, batch * 2);
    if (first == NULL) first = of;
    rondo_onnx_build_destroy(build);
  }
}

enum { LONG = 200 };

/* y = (x w + row) + b, where w [LONG, LONG] is filled with 0.5, b is computed from it, and row is an initializer. */
static onnx_bytes computed_graph(void) {
  static const int64_t sizes[] = {LONG, LONG}, first[] = {0};
  static float row[LONG];
  onnx_bytes graph = {0};
  for (int i = 0; i < LONG; i++) row[i] = (float)i;
  onnx_bytes fill = onnx_node("fill", "ConstantOfShape", NAMES("sizes"), NAMES("w"));
  onnx_bytes value = onnx_tensor("value", FLOAT, DIMS(1)), attribute = {0};
  onnx_data(&value, ONNX_TENSOR_RAW, &(const float){0.5f}, sizeof(float));
  onnx_text(&attribute, ATTRIBUTE_NAME, "value");
  onnx_nest(&attribute, ATTRIBUTE_TENSOR, &value);
  onnx_number(&attribute, ATTRIBUTE_TYPE, IS_TENSOR);
  onnx_nest(&fill, ONNX_NODE_ATTRIBUTE, &attribute);
  onnx_nest(&graph, ONNX_GRAPH_NODE, &fill);
  onnx_add_input(&graph, "x", FLOAT, DIMS(1, LONG));
  onnx_add_initializer(&graph, "sizes", INT64, sizes, sizeof sizes, DIMS(2));
  onnx_add_initializer(&graph, "row", FLOAT, row, sizeof row, DIMS(LONG));
  onnx_add_initializer(&graph, "first", INT64, first, sizeof first, DIMS(1));
  onnx_add_node(&graph, "Exp", NAMES("w"), NAMES("powers"));
  onnx_add_node(&graph, "Mul", NAMES("powers", "row"), NAMES("products"));
  onnx_add_node(&graph, "Gather", NAMES("products", "first"), NAMES("b"));
  onnx_add_node(&graph, "MatMul", NAMES("x", "w"), NAMES("xw"));
  onnx_add_node(&graph, "Add", NAMES("xw", "row"), NAMES("sum"));
  onnx_add_node(&graph, "Add", NAMES("sum", "b"), NAMES("y"));
  onnx_add_output(&graph, "y");
  return graph;
}

static void assert_computed(rondo_compiled *of) {
  float x[LONG], y[LONG];
  for (int i = 0; i < LONG; i++) x[i] = (float)(i % 2);
  assert_ok(rondo_compiled_write(of, "x", x, sizeof x));
  assert_ok(rondo_compiled_run(of));
  assert_ok(rondo_compiled_read(of, "y", y, sizeof y));
  for (int i = 0; i < LONG; i++) {
    const float expected = 0.5f * LONG / 2 + (float)i * (1 + 1.6487213f);
    assert_near(&y[i], &expected, 1, 1e-5f);
  }
}

/* Weights of files, those that are filled and those that are computed are written once, and freed. */
TEST(test_on2_weights_are_moved_to_the_program) {
  const onnx_bytes graph = computed_graph(), others = layer_graph();
  const rondo_onnx_dimension_size size = {"batch", 1};
  const rondo_onnx_build_options options = {RONDO_ONNX_BUILD_OPTIONS_INIT, .dimensions = &size, .dimension_count = 1};
  rondo_program *program = test_new_program(), *other_program = test_new_program();
  rondo_onnx_build *build = built(parsed(&graph), NULL, program);
  rondo_onnx_build *other = built(parsed(&others), &options, other_program);
  rondo_compiled *of = compiled(t, program, NULL, NULL), *of_other = compiled(t, other_program, NULL, NULL);
  assert_int_equal(info_of(build).states, 3);
  assert_error(rondo_onnx_build_move_weights(build, of_other), RONDO_INVALID_DATA, RONDO_REASON_UNKNOWN_NAME);
  assert_non_null(rondo_onnx_build_weights(build));
  assert_ok(rondo_onnx_build_move_weights(build, of));
  assert_null(rondo_onnx_build_weights(build));
  assert_computed(of);
  assert_error(rondo_onnx_build_move_weights(build, of), RONDO_INVALID_STATE, RONDO_REASON_NONE);
  assert_message("freed or moved before");
  rondo_onnx_build_destroy(build);
  rondo_onnx_build_destroy(other);
}

/* rows = table[ids], y = rows tableT + rows tableT: the table is one state, and its transpose is not computed. */
static onnx_bytes tied_graph(void) {
  static const float table[] = {1, 2, 3, 4, 5, 6};
  onnx_bytes graph = {0};
  onnx_add_input(&graph, "ids", INT64, DIMS(1));
  onnx_add_initializer(&graph, "table", FLOAT, table, sizeof table, DIMS(3, 2));
  onnx_add_node(&graph, "Gather", NAMES("table", "ids"), NAMES("rows"));
  onnx_add_node(&graph, "Transpose", NAMES("table"), NAMES("turned"));
  onnx_add_node(&graph, "MatMul", NAMES("rows", "turned"), NAMES("product"));
  onnx_add_node(&graph, "Gemm", NAMES("rows", "turned"), NAMES("gemm"));
  onnx_add_node(&graph, "Add", NAMES("product", "gemm"), NAMES("y"));
  onnx_add_output(&graph, "y");
  return graph;
}

TEST(test_on2_products_read_a_transposed_constant_as_it_is_stored) {
  const onnx_bytes graph = tied_graph();
  const int64_t id = 1;
  rondo_program *program = test_new_program();
  rondo_onnx_build *build = built(parsed(&graph), NULL, program);
  assert_int_equal(info_of(build).states, 1);
  assert_int_equal(info_of(build).foldings, 0);
  rondo_compiled *of = compiled(t, program, build, NULL);
  assert_ok(rondo_compiled_write(of, "ids", &id, sizeof id));
  assert_ok(rondo_compiled_run(of));
  assert_output(of, "y", (const float[]){2 * 11, 2 * 25, 2 * 39}, 3);
  rondo_onnx_build_destroy(build);
}

/* A set has all elements of a filled weight for those who ask, and can still be applied. */
TEST(test_on2_weights_that_are_filled) {
  const onnx_bytes graph = computed_graph();
  rondo_program *program = test_new_program();
  rondo_onnx_build *build = built(parsed(&graph), NULL, program);
  rondo_weight weight, filled = {0};
  for (size_t i = 0; i < info_of(build).states; i++) {
    assert_ok(rondo_weights_at(rondo_onnx_build_weights(build), i, &weight));
    if (weight.rank == 2 && weight.shape[0] == LONG) filled = weight;
  }
  assert_int_equal(filled.bytes, LONG * LONG * sizeof(float));
  for (size_t i = 0; i < LONG * LONG; i++) assert_true(((const float *)filled.data)[i] == 0.5f);
  for (int i = 0; i < 2; i++) assert_computed(compiled(t, program, build, NULL));
  rondo_onnx_build_destroy(build);
}

/* The shape of a reshape is computed from that of another value. */
TEST(test_on2_arithmetic_of_shapes_is_computed_once) {
  static const int64_t zero[] = {0}, two[] = {2}, rest[] = {-1};
  static const float x[] = {1, 2, 3, 4, 5, 6};
  onnx_bytes graph = {0};
  onnx_bytes concat = onnx_node("join", "Concat", NAMES("half", "rest"), NAMES("shape"));
  onnx_add_int(&concat, "axis", 0);
  onnx_add_input(&graph, "x", FLOAT, DIMS(-1, 3));
  onnx_add_initializer(&graph, "zero", INT64, zero, sizeof zero, DIMS(1));
  onnx_add_initializer(&graph, "two", INT64, two, sizeof two, DIMS(1));
  onnx_add_initializer(&graph, "rest", INT64, rest, sizeof rest, DIMS(1));
  onnx_add_node(&graph, "Shape", NAMES("x"), NAMES("sizes"));
  onnx_add_node(&graph, "Gather", NAMES("sizes", "zero"), NAMES("rows"));
  onnx_add_node(&graph, "Div", NAMES("rows", "two"), NAMES("half"));
  onnx_nest(&graph, ONNX_GRAPH_NODE, &concat);
  onnx_add_node(&graph, "Reshape", NAMES("x", "shape"), NAMES("y"));
  onnx_add_output(&graph, "y");
  rondo_onnx_model *model = parsed(&graph);
  const rondo_onnx_dimension_size size = {"batch", 2};
  const rondo_onnx_build_options options = {RONDO_ONNX_BUILD_OPTIONS_INIT, .dimensions = &size, .dimension_count = 1};
  rondo_program *program = test_new_program();
  rondo_onnx_build *build = built(model, &options, program);
  assert_int_equal(info_of(build).foldings, 1);
  assert_int_equal(info_of(build).states, 0);
  const rondo_onnx_built_value y = output_of(build, 0);
  assert_int_equal(y.rank, 2);
  assert_int_equal(y.shape[0], 1);
  assert_int_equal(y.shape[1], 6);
  rondo_compiled *of = compiled(t, program, build, NULL);
  assert_ok(rondo_compiled_write(of, "x", x, sizeof x));
  assert_ok(rondo_compiled_run(of));
  assert_output(of, "y", x, 6);
  rondo_onnx_build_destroy(build);
}

/* The positions of each row, as exporters write them: one row, expanded to the shape of x and negated, and added. */
static onnx_bytes positions_graph(void) {
  static const float row[] = {1, 2, 3};
  onnx_bytes graph = {0};
  onnx_add_input(&graph, "x", FLOAT, DIMS(-1, 3));
  onnx_add_initializer(&graph, "row", FLOAT, row, sizeof row, DIMS(1, 3));
  onnx_add_node(&graph, "Shape", NAMES("x"), NAMES("shape"));
  onnx_add_node(&graph, "Expand", NAMES("row", "shape"), NAMES("rows"));
  onnx_add_node(&graph, "Neg", NAMES("rows"), NAMES("positions"));
  onnx_add_node(&graph, "Add", NAMES("x", "positions"), NAMES("y"));
  onnx_add_output(&graph, "y");
  return graph;
}

/* A constant that depends on the batch size has one state for all batch sizes, which programs can share. */
TEST(test_on2_constants_that_repeat_for_each_row) {
  const onnx_bytes graph = positions_graph();
  rondo_onnx_model *model = parsed(&graph);
  rondo_compiled *first = NULL;
  char name[64] = "";
  static const float x[] = {1, 2, 3, 4, 5, 6, 7, 8, 9}, y[] = {0, 0, 0, 3, 3, 3, 6, 6, 6};
  for (size_t batch = 3; batch >= 1; batch--) {
    const rondo_onnx_dimension_size size = {"batch", batch};
    const rondo_onnx_build_options options = {RONDO_ONNX_BUILD_OPTIONS_INIT, .dimensions = &size, .dimension_count = 1};
    rondo_program *program = test_new_program();
    rondo_onnx_build *build = built(model, &options, program);
    rondo_weight weight;
    assert_int_equal(info_of(build).states, 1);
    assert_int_equal(info_of(build).state_bytes, 12);
    assert_ok(rondo_weights_at(rondo_onnx_build_weights(build), 0, &weight));
    if (first == NULL) (void)snprintf(name, sizeof name, "%s", weight.name);
    assert_string_equal(weight.name, name);
    rondo_compiled *of = compiled(t, program, first == NULL ? build : NULL, first);
    assert_ok(rondo_compiled_write(of, "x", x, batch * 12));
    assert_ok(rondo_compiled_run(of));
    assert_output(of, "y", y, batch * 3);
    if (first == NULL) first = of;
    rondo_onnx_build_destroy(build);
  }
}

/* y = reshape(x, s + 1), where s is an input. */
static onnx_bytes reshape_graph(void) {
  static const int64_t one[] = {1};
  onnx_bytes graph = {0};
  onnx_add_input(&graph, "x", FLOAT, DIMS(2, 3));
  onnx_add_input(&graph, "s", INT64, DIMS(1));
  onnx_add_initializer(&graph, "one", INT64, one, sizeof one, DIMS(1));
  onnx_add_node(&graph, "Add", NAMES("s", "one"), NAMES("shape"));
  onnx_add_node(&graph, "Reshape", NAMES("x", "shape"), NAMES("y"));
  onnx_add_output(&graph, "y");
  return graph;
}

TEST(test_on2_a_value_that_must_be_known_is_frozen) {
  static const int64_t five[] = {5};
  static const float x[] = {1, 2, 3, 4, 5, 6};
  const onnx_bytes graph = reshape_graph();
  rondo_onnx_model *model = parsed(&graph);
  rondo_program *program = test_new_program();
  rondo_onnx_build *build = NULL;
  assert_error(rondo_onnx_build_program(model, NULL, program, &build), RONDO_UNSUPPORTED, RONDO_REASON_NONE);
  assert_message("'shape' must be known at import");
  rondo_onnx_build_destroy(build);
  const rondo_onnx_given_input given[] = {{.name = "s", .data = five, .bytes = sizeof five},
                                          {.name = "x", .data = x, .bytes = sizeof x}};
  const rondo_onnx_build_options options = {RONDO_ONNX_BUILD_OPTIONS_INIT, .inputs = given, .input_count = 2};
  build = built(model, &options, program);
  assert_false(input_of(build, 0).is_frozen);
  assert_string_equal(input_of(build, 0).program_name, "x");
  assert_true(input_of(build, 1).is_frozen);
  assert_int_equal(output_of(build, 0).rank, 1);
  rondo_compiled *of = compiled(t, program, build, NULL);
  assert_ok(rondo_compiled_write(of, "x", x, sizeof x));
  assert_ok(rondo_compiled_run(of));
  assert_output(of, "y", x, 6);
  rondo_onnx_build_destroy(build);
}

/* A weight of more dimensions than are supported is listed, also where nothing uses it. */
TEST(test_on2_an_initializer_that_is_not_supported_is_listed) {
  static const float number = 1;
  onnx_bytes graph = layer_graph();
  rondo_onnx_unsupported item = {.struct_size = sizeof item};
  rondo_onnx_build *build = NULL;
  onnx_add_initializer(&graph, "deep", FLOAT, &number, sizeof number,
                       DIMS(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1));
  rondo_onnx_model *model = parsed(&graph);
  const rondo_onnx_dimension_size size = {"batch", 1};
  const rondo_onnx_build_options options = {RONDO_ONNX_BUILD_OPTIONS_INIT, .dimensions = &size, .dimension_count = 1};
  assert_error(rondo_onnx_build_program(model, &options, test_new_program(), &build), RONDO_UNSUPPORTED,
               RONDO_REASON_NONE);
  assert_non_null(build);
  assert_ok(rondo_onnx_build_get_unsupported(build, 0, &item));
  assert_string_equal(item.node, "initializer 'deep'");
  assert_non_null(strstr(item.reason, "17 dimensions"));
  rondo_onnx_build_destroy(build);
  (void)t;
}

/* All are said at once, and nodes that only lack their results are not said, if their operator exists. The program
 * stays as it was. */
TEST(test_on2_what_is_not_supported_is_listed) {
  onnx_bytes graph = layer_graph();
  onnx_bytes relu = onnx_node("odd", "Relu", NAMES("sum"), NAMES("z"));
  onnx_add_int(&relu, "odd_attribute", 1);
  onnx_nest(&graph, ONNX_GRAPH_NODE, &relu);
  onnx_add_node(&graph, "NoSuchOperator", NAMES("y"), NAMES("a"));
  onnx_add_node(&graph, "Add", NAMES("a", "z"), NAMES("b2"));
  onnx_add_node(&graph, "NoOtherOperator", NAMES("b2"), NAMES("c"));
  rondo_onnx_model *model = parsed(&graph);
  const rondo_onnx_dimension_size size = {"batch", 1};
  const rondo_onnx_build_options options = {RONDO_ONNX_BUILD_OPTIONS_INIT, .dimensions = &size, .dimension_count = 1};
  rondo_program *program = test_new_program();
  rondo_value x;
  rondo_onnx_build *build = NULL;
  rondo_onnx_unsupported item = {.struct_size = sizeof item};
  assert_error(rondo_onnx_build_program(model, &options, program, &build), RONDO_UNSUPPORTED, RONDO_REASON_NONE);
  assert_message("3 of the model's nodes cannot be imported");
  assert_int_equal(info_of(build).unsupported, 3);
  assert_ok(rondo_onnx_build_get_unsupported(build, 0, &item));
  assert_string_equal(item.node, "node 'odd' (Relu)");
  assert_string_equal(item.attribute, "odd_attribute");
  assert_int_equal(item.opset, 17);
  assert_ok(rondo_onnx_build_get_unsupported(build, 1, &item));
  assert_string_equal(item.op, "NoSuchOperator");
  assert_string_equal(item.domain, "");
  assert_ok(rondo_onnx_build_get_unsupported(build, 2, &item));
  assert_string_equal(item.op, "NoOtherOperator");
  assert_error(rondo_onnx_build_get_unsupported(build, 3, &item), RONDO_NOT_FOUND, RONDO_REASON_OUT_OF_RANGE);
  rondo_onnx_build_destroy(build);
  assert_ok(rondo_program_input(program, "x", RONDO_F32, NULL, 0, &x));
  (void)t;
}

/* Constants: of equal content, as outputs, and without elements. */
TEST(test_on2_constants_and_their_states) {
  static const float same[] = {1, 2}, x[] = {10, 20}, y[] = {12, 24};
  onnx_bytes graph = {0};
  onnx_add_input(&graph, "x", FLOAT, DIMS(2));
  onnx_add_initializer(&graph, "p", FLOAT, same, sizeof same, DIMS(2));
  onnx_add_initializer(&graph, "q", FLOAT, same, sizeof same, DIMS(2));
  onnx_add_initializer(&graph, "none", FLOAT, NULL, 0, DIMS(0));
  onnx_add_node(&graph, "Add", NAMES("x", "p"), NAMES("sum"));
  onnx_add_node(&graph, "Add", NAMES("sum", "q"), NAMES("y"));
  onnx_add_node(&graph, "Add", NAMES("p", "q"), NAMES("folded"));
  const char *const outputs[] = {"y", "x", "p", "folded", "none"};
  for (size_t i = 0; i < 5; i++) onnx_add_output(&graph, outputs[i]);
  rondo_onnx_model *model = parsed(&graph);
  rondo_program *program = test_new_program();
  rondo_onnx_build *build = built(model, NULL, program);
  assert_int_equal(info_of(build).states, 2);
  assert_int_equal(info_of(build).foldings, 1);
  assert_string_equal(output_of(build, 1).program_name, "x.output");
  assert_string_equal(output_of(build, 2).program_name, "p.output");
  assert_string_equal(output_of(build, 3).program_name, "folded");
  assert_true(((const float *)output_of(build, 3).data)[1] == 4);
  assert_null(output_of(build, 4).program_name);
  assert_int_equal(output_of(build, 4).shape[0], 0);
  rondo_compiled *of = compiled(t, program, build, NULL);
  assert_ok(rondo_compiled_write(of, "x", x, sizeof x));
  assert_ok(rondo_compiled_run(of));
  assert_output(of, "y", y, 2);
  assert_output(of, "x.output", x, 2);
  assert_output(of, "p.output", same, 2);
  assert_output(of, "folded", (const float[]){2, 4}, 2);
  rondo_onnx_build_destroy(build);
}

/* Loop: v = v + v, three times, and the values of each iteration; If inside it. */
static onnx_bytes loop_graph(void) {
  static const int64_t three[] = {3};
  static const unsigned char yes[] = {1};
  onnx_bytes then_branch = {0}, else_branch = {0}, body = {0}, graph = {0};
  onnx_add_node(&then_branch, "Add", NAMES("v", "v"), NAMES("t"));
  onnx_add_output(&then_branch, "t");
  onnx_add_node(&else_branch, "NoSuchOperator", NAMES("v"), NAMES("e"));
  onnx_add_output(&else_branch, "e");
  onnx_bytes branch = onnx_node("if", "If", NAMES("go"), NAMES("next"));
  onnx_add_graph(&branch, "then_branch", &then_branch);
  onnx_add_graph(&branch, "else_branch", &else_branch);
  onnx_add_input(&body, "i", INT64, NULL, 0);
  onnx_add_input(&body, "go", BOOL, NULL, 0);
  onnx_add_input(&body, "v", FLOAT, DIMS(1));
  onnx_nest(&body, ONNX_GRAPH_NODE, &branch);
  onnx_add_node(&body, "Identity", NAMES("go"), NAMES("go_on"));
  onnx_add_node(&body, "Identity", NAMES("next"), NAMES("each"));
  const char *const outputs[] = {"go_on", "next", "each"};
  for (size_t i = 0; i < 3; i++) onnx_add_output(&body, outputs[i]);
  onnx_add_input(&graph, "x", FLOAT, DIMS(1));
  onnx_add_initializer(&graph, "trips", INT64, three, sizeof three, NULL, 0);
  onnx_add_initializer(&graph, "yes", BOOL, yes, sizeof yes, NULL, 0);
  onnx_bytes loop = onnx_node("loop", "Loop", NAMES("trips", "yes", "x"), NAMES("y", "all"));
  onnx_add_graph(&loop, "body", &body);
  onnx_nest(&graph, ONNX_GRAPH_NODE, &loop);
  onnx_add_output(&graph, "y");
  onnx_add_output(&graph, "all");
  return graph;
}

TEST(test_on4_loops_and_branches_are_unrolled) {
  const onnx_bytes graph = loop_graph();
  rondo_onnx_model *model = parsed(&graph);
  rondo_program *program = test_new_program();
  rondo_onnx_build *build = built(model, NULL, program);
  static const float x[] = {1}, all[] = {2, 4, 8};
  rondo_compiled *of = compiled(t, program, build, NULL);
  assert_ok(rondo_compiled_write(of, "x", x, sizeof x));
  assert_ok(rondo_compiled_run(of));
  assert_output(of, "y", (const float[]){8}, 1);
  assert_output(of, "all", all, 3);
  rondo_onnx_build_destroy(build);
}

/* A function of the model: f(a, b) = a + b, where a is cast to the type that an attribute of the call says. Values of
 * its body have names of their own. */
static onnx_bytes function_model(void) {
  onnx_bytes function = {0}, opset = {0}, reference = {0}, graph = {0};
  onnx_bytes cast = onnx_node("cast", "Cast", NAMES("a"), NAMES("x"));
  onnx_text(&reference, 1, "to");
  onnx_number(&reference, 20, 2);
  onnx_text(&reference, 21, "type");
  onnx_nest(&cast, ONNX_NODE_ATTRIBUTE, &reference);
  const onnx_bytes add = onnx_node("add", "Add", NAMES("x", "b"), NAMES("y"));
  onnx_number(&opset, 2, 17);
  onnx_text(&function, 1, "CastAdd");
  onnx_text(&function, 4, "a");
  onnx_text(&function, 4, "b");
  onnx_text(&function, 5, "y");
  onnx_text(&function, 6, "type");
  onnx_nest(&function, 7, &cast);
  onnx_nest(&function, 7, &add);
  onnx_nest(&function, 9, &opset);
  onnx_text(&function, 10, "of.a.test");
  onnx_bytes call = onnx_node("call", "CastAdd", NAMES("x", "y"), NAMES("z"));
  onnx_text(&call, 7, "of.a.test");
  onnx_add_int(&call, "type", FLOAT);
  onnx_add_input(&graph, "x", INT64, DIMS(1));
  onnx_add_input(&graph, "y", FLOAT, DIMS(1));
  onnx_nest(&graph, ONNX_GRAPH_NODE, &call);
  onnx_add_output(&graph, "z");
  onnx_bytes model = onnx_model(&graph);
  onnx_nest(&model, ONNX_MODEL_FUNCTION, &function);
  return model;
}

TEST(test_on2_functions_of_the_model) {
  static const int64_t x[] = {3};
  static const float y[] = {0.5f}, z[] = {3.5f};
  const onnx_bytes bytes = function_model();
  rondo_onnx_model *model = NULL;
  assert_ok(rondo_onnx_parse(bytes.bytes, bytes.count, NULL, &model));
  rondo_program *program = test_new_program();
  rondo_onnx_build *build = built(model, NULL, program);
  rondo_compiled *of = compiled(t, program, build, NULL);
  assert_ok(rondo_compiled_write(of, "x", x, sizeof x));
  assert_ok(rondo_compiled_write(of, "y", y, sizeof y));
  assert_ok(rondo_compiled_run(of));
  assert_output(of, "z", z, 1);
  rondo_onnx_build_destroy(build);
  rondo_onnx_destroy(model);
}

/* Models of one operator ------------------------------------------------------------------------------------------- */

/* x [2, 3] and, as a second input, an initializer of one integer. */
static onnx_bytes operator_graph(const char *op, const char *attribute, int64_t value, bool has_number) {
  static const int64_t two[] = {2};
  onnx_bytes graph = {0}, node = onnx_node("it", op, has_number ? NAMES("x", "n") : NAMES("x"), NAMES("y"));
  if (attribute != NULL) onnx_add_int(&node, attribute, value);
  onnx_add_input(&graph, "x", FLOAT, DIMS(2, 3));
  onnx_add_initializer(&graph, "n", INT64, two, sizeof two, DIMS(1));
  onnx_nest(&graph, ONNX_GRAPH_NODE, &node);
  onnx_add_output(&graph, "y");
  return graph;
}

/* What cannot be imported says why, and the program stays as it was. */
TEST(test_on3_refusals_say_why) {
  static const struct {
    const char *op, *attribute;
    int64_t value;
    bool has_number;
    const char *message;
  } cases[] = {
      {"NonZero", NULL, 0, false, NULL},
      {"Unique", NULL, 0, false, "'x' must be known at import"},
      {"MaxPool", NULL, 0, false, "input 0 has 2 dimensions, and 3 to 5 are supported"},
      {"DepthToSpace", "blocksize", 0, false, "blocksize"},
      {"LpNormalization", "p", 3, false, "it is 3, not 1 or 2"},
      {"LRN", "size", 0, false, "size"},
      {"TopK", "axis", 0, true, NULL},
      {"TopK", "axis", 5, true, "axis 5 of 2 dimensions"},
      {"Tile", NULL, 0, true, "1 repeats for 2 dimensions"},
      {"Pad", NULL, 0, true, "1 counts for 2 axes"},
      {"CumSum", NULL, 0, true, "axis 2 of 2 dimensions"},
      {"SequenceAt", NULL, 0, true, "input 0 is no sequence"},
      {"BatchNormalization", NULL, 0, false, "input 1 is missing"},
      {"Dropout", "seed", 1, false, NULL},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const onnx_bytes graph = operator_graph(cases[i].op, cases[i].attribute, cases[i].value, cases[i].has_number);
    rondo_onnx_model *model = parsed(&graph);
    rondo_program *program = test_new_program();
    rondo_onnx_build *build = NULL;
    const rondo_status status = rondo_onnx_build_program(model, NULL, program, &build);
    if (cases[i].message == NULL) {
      assert_ok(status);
    } else {
      assert_error(status, RONDO_UNSUPPORTED, RONDO_REASON_NONE);
      assert_message(cases[i].message);
    }
    rondo_onnx_build_destroy(build);
  }
  (void)t;
}

/* Old models list the mask of Dropout, of the type of the input, and keep all elements. */
TEST(test_on3_dropout_of_old_models_has_a_mask_of_ones) {
  static const float x[] = {-1, 2, 3}, ones[] = {1, 1, 1};
  onnx_bytes graph = {0}, model_bytes = {0}, opset = {0};
  onnx_add_input(&graph, "x", FLOAT, DIMS(3));
  onnx_add_node(&graph, "Dropout", NAMES("x"), NAMES("kept", "mask"));
  onnx_add_node(&graph, "Abs", NAMES("kept"), NAMES("y"));
  onnx_add_output(&graph, "y");
  onnx_add_output(&graph, "mask");
  onnx_number(&opset, 2, 9);
  onnx_number(&model_bytes, ONNX_MODEL_IR_VERSION, 4);
  onnx_nest(&model_bytes, ONNX_MODEL_GRAPH, &graph);
  onnx_nest(&model_bytes, ONNX_MODEL_OPSET, &opset);
  rondo_onnx_model *model = NULL;
  assert_ok(rondo_onnx_parse(model_bytes.bytes, model_bytes.count, NULL, &model));
  rondo_program *program = test_new_program();
  rondo_onnx_build *build = built(model, NULL, program);
  rondo_compiled *of = compiled(t, program, build, NULL);
  assert_ok(rondo_compiled_write(of, "x", x, sizeof x));
  assert_ok(rondo_compiled_run(of));
  assert_output(of, "y", (const float[]){1, 2, 3}, 3);
  assert_memory_equal(output_of(build, 1).data, ones, sizeof ones);
  rondo_onnx_build_destroy(build);
  rondo_onnx_destroy(model);
}

static void add_text(onnx_bytes *node, const char *name, const char *text) {
  onnx_bytes attribute = {0};
  onnx_text(&attribute, 1, name);
  onnx_number(&attribute, 20, 3);
  onnx_text(&attribute, 4, text);
  onnx_nest(node, ONNX_NODE_ATTRIBUTE, &attribute);
}

/* The model of the graph cannot be imported, and the message has this text. */
static void assert_refused(const onnx_bytes *graph, const char *message) {
  rondo_onnx_build *build = NULL;
  assert_error(rondo_onnx_build_program(parsed(graph), NULL, test_new_program(), &build), RONDO_UNSUPPORTED,
               RONDO_REASON_NONE);
  assert_message(message);
  rondo_onnx_build_destroy(build);
}

/* Lists of inputs have no gaps. */
TEST(test_on10_inputs_of_a_list_that_are_left_out) {
  static const struct {
    const char *op, *attribute, *equation;
  } cases[] = {{"Concat", "axis", NULL}, {"Max", NULL, NULL},       {"Sum", NULL, NULL},
               {"Mean", NULL, NULL},     {"Einsum", NULL, "ij,ij"}, {"SequenceConstruct", NULL, NULL}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    onnx_bytes graph = {0}, node = onnx_node("it", cases[i].op, NAMES("x", ""), NAMES("y"));
    if (cases[i].attribute != NULL) onnx_add_int(&node, cases[i].attribute, 0);
    if (cases[i].equation != NULL) add_text(&node, "equation", cases[i].equation);
    onnx_add_input(&graph, "x", FLOAT, DIMS(2, 3));
    onnx_nest(&graph, ONNX_GRAPH_NODE, &node);
    onnx_add_output(&graph, "y");
    assert_refused(&graph, "input 1 is missing");
  }
  (void)t;
}

TEST(test_on10_a_scan_over_nothing) {
  onnx_bytes body = {0}, graph = {0}, node = onnx_node("it", "Scan", NAMES("x", ""), NAMES("y"));
  onnx_add_input(&body, "v", FLOAT, DIMS(3));
  onnx_add_input(&body, "e", FLOAT, DIMS(3));
  onnx_add_node(&body, "Relu", NAMES("v"), NAMES("s"));
  onnx_add_output(&body, "s");
  onnx_add_graph(&node, "body", &body);
  onnx_add_int(&node, "num_scan_inputs", 1);
  onnx_add_input(&graph, "x", FLOAT, DIMS(3));
  onnx_nest(&graph, ONNX_GRAPH_NODE, &node);
  onnx_add_output(&graph, "y");
  assert_refused(&graph, "input 1 is missing");
  (void)t;
}

/* What is joined along the iterations is a tensor: no optional without a value, and no sequence. */
TEST(test_on10_a_scan_output_that_is_no_tensor) {
  static const char *const ops[] = {"Optional", "SequenceEmpty"};
  for (size_t i = 0; i < 2; i++) {
    onnx_bytes body = {0}, graph = {0}, node = onnx_node("it", "Scan", NAMES("x"), NAMES("y"));
    onnx_add_input(&body, "e", FLOAT, DIMS(3));
    onnx_add_node(&body, ops[i], NAMES(NULL), NAMES("s"));
    onnx_add_output(&body, "s");
    onnx_add_graph(&node, "body", &body);
    onnx_add_int(&node, "num_scan_inputs", 1);
    onnx_add_input(&graph, "x", FLOAT, DIMS(2, 3));
    onnx_nest(&graph, ONNX_GRAPH_NODE, &node);
    onnx_add_output(&graph, "y");
    assert_refused(&graph, "item 0 is a sequence or an optional, not a tensor");
  }
  (void)t;
}

/* Shapes and numbers at their limits ----------------------------------------------------------------------------- */

static void add_ints(onnx_bytes *node, const char *name, const int64_t *numbers, size_t count) {
  onnx_bytes attribute = {0};
  onnx_text(&attribute, 1, name);
  onnx_number(&attribute, 20, 7);
  for (size_t i = 0; i < count; i++) onnx_number(&attribute, 8, (uint64_t)numbers[i]);
  onnx_nest(node, ONNX_NODE_ATTRIBUTE, &attribute);
}

/* The first output is a constant of this shape; copies its elements. */
static void assert_constant(const onnx_bytes *graph, const size_t *shape, size_t rank, void *out, size_t bytes) {
  rondo_onnx_build *build = built(parsed(graph), NULL, test_new_program());
  const rondo_onnx_built_value y = output_of(build, 0);
  assert_int_equal(y.rank, rank);
  assert_memory_equal(y.shape, shape, rank * sizeof *shape);
  assert_int_equal(y.bytes, bytes);
  if (bytes > 0) memcpy(out, y.data, bytes);
  rondo_onnx_build_destroy(build);
}

/* As in NumPy: NaN is the largest, and there is one. */
TEST(test_on3_unique_has_one_nan) {
  const float x[] = {2, NAN, 1, 3, NAN, 2}, expected[] = {1, 2, 3};
  onnx_bytes graph = {0};
  float y[4];
  onnx_add_initializer(&graph, "x", FLOAT, x, sizeof x, DIMS(6));
  onnx_add_node(&graph, "Unique", NAMES("x"), NAMES("y"));
  onnx_add_output(&graph, "y");
  assert_constant(&graph, (const size_t[]){4}, 1, y, sizeof y);
  assert_memory_equal(y, expected, sizeof expected);
  assert_true(isnan(y[3]));
  (void)t;
}

TEST(test_on3_resize_refuses_sizes_that_no_size_can_be) {
  const int64_t sizes[] = {1, INT64_MAX};
  onnx_bytes graph = {0}, node = onnx_node("it", "Resize", NAMES("x", "", "", "sizes"), NAMES("y"));
  add_text(&node, "keep_aspect_ratio_policy", "not_smaller");
  onnx_add_input(&graph, "x", FLOAT, DIMS(1000, 1));
  onnx_add_initializer(&graph, "sizes", INT64, sizes, sizeof sizes, DIMS(2));
  onnx_nest(&graph, ONNX_GRAPH_NODE, &node);
  onnx_add_output(&graph, "y");
  assert_refused(&graph, "for the size 1000");
  (void)t;
}

/* A float may be no number that an integer can be. */
TEST(test_on10_the_axis_of_a_fourier_transform_is_an_integer) {
  static const float axis = NAN;
  onnx_bytes graph = {0}, model = {0}, opset = {0};
  rondo_onnx_model *parsed_model = NULL;
  rondo_onnx_build *build = NULL;
  onnx_add_input(&graph, "x", FLOAT, DIMS(1, 4, 1));
  onnx_add_initializer(&graph, "axis", FLOAT, &axis, sizeof axis, NULL, 0);
  onnx_add_node(&graph, "DFT", NAMES("x", "", "axis"), NAMES("y"));
  onnx_add_output(&graph, "y");
  onnx_number(&opset, 2, 20);
  onnx_number(&model, ONNX_MODEL_IR_VERSION, 9);
  onnx_nest(&model, ONNX_MODEL_GRAPH, &graph);
  onnx_nest(&model, ONNX_MODEL_OPSET, &opset);
  assert_ok(rondo_onnx_parse(model.bytes, model.count, NULL, &parsed_model));
  assert_error(rondo_onnx_build_program(parsed_model, NULL, test_new_program(), &build), RONDO_UNSUPPORTED,
               RONDO_REASON_NONE);
  assert_message("input 2 has the type 'float', not integers");
  rondo_onnx_build_destroy(build);
  rondo_onnx_destroy(parsed_model);
  (void)t;
}

/* The sum of these lengths is 4, if it is counted modulo 2^64. */
TEST(test_on3_split_to_sequence_refuses_lengths_beyond_the_end) {
  static const int64_t lengths[] = {INT64_MAX, INT64_MAX, 6};
  onnx_bytes graph = {0};
  onnx_add_initializer(&graph, "x", FLOAT, NULL, 0, DIMS(4, 0));
  onnx_add_initializer(&graph, "lengths", INT64, lengths, sizeof lengths, DIMS(3));
  onnx_add_node(&graph, "SplitToSequence", NAMES("x", "lengths"), NAMES("parts"));
  onnx_add_node(&graph, "SequenceLength", NAMES("parts"), NAMES("y"));
  onnx_add_output(&graph, "y");
  assert_refused(&graph, "of part 0, of 4");
  (void)t;
}

TEST(test_on3_mel_filters_of_frequencies_that_are_not_finite) {
  static const int64_t filters = 2, length = 8, rate = 16;
  static const float lowest = 0, highest = INFINITY;
  onnx_bytes graph = {0};
  onnx_add_initializer(&graph, "filters", INT64, &filters, sizeof filters, NULL, 0);
  onnx_add_initializer(&graph, "length", INT64, &length, sizeof length, NULL, 0);
  onnx_add_initializer(&graph, "rate", INT64, &rate, sizeof rate, NULL, 0);
  onnx_add_initializer(&graph, "lowest", FLOAT, &lowest, sizeof lowest, NULL, 0);
  onnx_add_initializer(&graph, "highest", FLOAT, &highest, sizeof highest, NULL, 0);
  onnx_add_node(&graph, "MelWeightMatrix", NAMES("filters", "length", "rate", "lowest", "highest"), NAMES("y"));
  onnx_add_output(&graph, "y");
  assert_refused(&graph, "frequencies from 0 to inf");
  (void)t;
}

TEST(test_on3_max_unpool_refuses_negative_sizes) {
  const int64_t sizes[] = {INT64_MIN, 1, 4, 4}, kernel[] = {2, 2}, indices[4] = {0};
  onnx_bytes graph = {0}, node = onnx_node("it", "MaxUnpool", NAMES("x", "indices", "sizes"), NAMES("y"));
  add_ints(&node, "kernel_shape", kernel, 2);
  add_ints(&node, "strides", kernel, 2);
  onnx_add_input(&graph, "x", FLOAT, DIMS(1, 1, 2, 2));
  onnx_add_initializer(&graph, "indices", INT64, indices, sizeof indices, DIMS(1, 1, 2, 2));
  onnx_add_initializer(&graph, "sizes", INT64, sizes, sizeof sizes, DIMS(4));
  onnx_nest(&graph, ONNX_GRAPH_NODE, &node);
  onnx_add_output(&graph, "y");
  assert_refused(&graph, "smaller than what was pooled");
  (void)t;
}

/* A value that a loop carries and that the model leaves out: the node that reads it is refused. */
TEST(test_on4_a_loop_that_carries_nothing) {
  static const int64_t three[] = {3};
  static const unsigned char yes[] = {1};
  onnx_bytes body = {0}, graph = {0}, scan_body = {0}, scan_graph = {0};
  onnx_bytes loop = onnx_node("loop", "Loop", NAMES("trips", "yes", ""), NAMES("y"));
  onnx_add_input(&body, "i", INT64, NULL, 0);
  onnx_add_input(&body, "go", BOOL, NULL, 0);
  onnx_add_input(&body, "v", FLOAT, DIMS(1));
  onnx_add_node(&body, "Identity", NAMES("go"), NAMES("go_on"));
  onnx_add_node(&body, "Neg", NAMES("v"), NAMES("next"));
  onnx_add_output(&body, "go_on");
  onnx_add_output(&body, "next");
  onnx_add_graph(&loop, "body", &body);
  onnx_add_initializer(&graph, "trips", INT64, three, sizeof three, NULL, 0);
  onnx_add_initializer(&graph, "yes", BOOL, yes, sizeof yes, NULL, 0);
  onnx_nest(&graph, ONNX_GRAPH_NODE, &loop);
  onnx_add_output(&graph, "y");
  assert_refused(&graph, "node 'next' (Neg): input 0 is missing");
  onnx_bytes scan = onnx_node("scan", "Scan", NAMES("", "x"), NAMES("y"));
  onnx_add_input(&scan_body, "v", FLOAT, DIMS(1));
  onnx_add_input(&scan_body, "e", FLOAT, DIMS(1));
  onnx_add_node(&scan_body, "Add", NAMES("v", "e"), NAMES("next"));
  onnx_add_output(&scan_body, "next");
  onnx_add_graph(&scan, "body", &scan_body);
  onnx_add_int(&scan, "num_scan_inputs", 1);
  onnx_add_input(&scan_graph, "x", FLOAT, DIMS(3, 1));
  onnx_nest(&scan_graph, ONNX_GRAPH_NODE, &scan);
  onnx_add_output(&scan_graph, "y");
  assert_refused(&scan_graph, "input 0 is missing");
  (void)t;
}

/* Without iterations, the axis of the iterations has the size 0, wherever it is. */
TEST(test_on4_a_scan_without_iterations) {
  const int64_t second = 1;
  onnx_bytes body = {0}, graph = {0}, node = onnx_node("it", "Scan", NAMES("x"), NAMES("y"));
  const onnx_bytes made = onnx_value("s", FLOAT, DIMS(3));
  onnx_add_input(&body, "e", FLOAT, DIMS(3));
  onnx_add_node(&body, "Relu", NAMES("e"), NAMES("s"));
  onnx_nest(&body, ONNX_GRAPH_OUTPUT, &made);
  onnx_add_graph(&node, "body", &body);
  onnx_add_int(&node, "num_scan_inputs", 1);
  add_ints(&node, "scan_output_axes", &second, 1);
  onnx_add_initializer(&graph, "x", FLOAT, NULL, 0, DIMS(0, 3));
  onnx_nest(&graph, ONNX_GRAPH_NODE, &node);
  onnx_add_output(&graph, "y");
  assert_constant(&graph, (const size_t[]){3, 0}, 2, NULL, 0);
  (void)t;
}

/* A shape with a size 0 has no elements, even if the product of its other sizes is larger than any number. */
TEST(test_on10_shapes_with_large_sizes_and_a_size_of_0) {
  const int64_t last = 2, large = INT64_C(1) << 40;
  onnx_bytes body = {0}, graph = {0}, stored = {0}, node = onnx_node("it", "Scan", NAMES("x"), NAMES("y"));
  const onnx_bytes made = onnx_value("s", FLOAT, DIMS(large, large));
  onnx_add_input(&body, "e", FLOAT, DIMS(3));
  onnx_add_node(&body, "Relu", NAMES("e"), NAMES("s"));
  onnx_nest(&body, ONNX_GRAPH_OUTPUT, &made);
  onnx_add_graph(&node, "body", &body);
  onnx_add_int(&node, "num_scan_inputs", 1);
  add_ints(&node, "scan_output_axes", &last, 1);
  onnx_add_initializer(&graph, "x", FLOAT, NULL, 0, DIMS(0, 3));
  onnx_nest(&graph, ONNX_GRAPH_NODE, &node);
  onnx_add_output(&graph, "y");
  assert_constant(&graph, (const size_t[]){(size_t)large, (size_t)large, 0}, 3, NULL, 0);
  onnx_add_initializer(&stored, "x", FLOAT, NULL, 0, DIMS(large, large, 0));
  onnx_add_node(&stored, "Identity", NAMES("x"), NAMES("y"));
  onnx_add_output(&stored, "y");
  assert_constant(&stored, (const size_t[]){(size_t)large, (size_t)large, 0}, 3, NULL, 0);
  (void)t;
}

/* Whether a loop goes on after its last trip need not be known, and values that nobody reads are not joined. */
TEST(test_on4_a_loop_of_one_trip) {
  static const int64_t one[] = {1};
  static const unsigned char yes[] = {1};
  static const float x[] = {2};
  onnx_bytes body = {0}, graph = {0}, node = onnx_node("it", "Loop", NAMES("trips", "yes", "x"), NAMES("y", ""));
  rondo_program *program = test_new_program();
  onnx_add_input(&body, "i", INT64, NULL, 0);
  onnx_add_input(&body, "go", BOOL, NULL, 0);
  onnx_add_input(&body, "v", FLOAT, DIMS(1));
  onnx_add_node(&body, "Greater", NAMES("v", "v"), NAMES("go_on"));
  onnx_add_node(&body, "Add", NAMES("v", "v"), NAMES("next"));
  onnx_add_node(&body, "Optional", NAMES(NULL), NAMES("each"));
  onnx_add_output(&body, "go_on");
  onnx_add_output(&body, "next");
  onnx_add_output(&body, "each");
  onnx_add_graph(&node, "body", &body);
  onnx_add_input(&graph, "x", FLOAT, DIMS(1));
  onnx_add_initializer(&graph, "trips", INT64, one, sizeof one, NULL, 0);
  onnx_add_initializer(&graph, "yes", BOOL, yes, sizeof yes, NULL, 0);
  onnx_nest(&graph, ONNX_GRAPH_NODE, &node);
  onnx_add_output(&graph, "y");
  rondo_onnx_build *build = built(parsed(&graph), NULL, program);
  rondo_compiled *of = compiled(t, program, build, NULL);
  assert_ok(rondo_compiled_write(of, "x", x, sizeof x));
  assert_ok(rondo_compiled_run(of));
  assert_output(of, "y", (const float[]){4}, 1);
  rondo_onnx_build_destroy(build);
}

/* Values of two iterations that have as many elements, but not in one shape, are not joined. */
TEST(test_on4_values_of_iterations_of_different_shapes) {
  static const int64_t two[] = {2};
  static const unsigned char yes[] = {1};
  onnx_bytes body = {0}, graph = {0}, node = onnx_node("it", "Loop", NAMES("trips", "yes", "x"), NAMES("last", "y"));
  onnx_add_input(&body, "i", INT64, NULL, 0);
  onnx_add_input(&body, "go", BOOL, NULL, 0);
  onnx_add_input(&body, "v", FLOAT, DIMS(2, 3));
  onnx_add_node(&body, "Identity", NAMES("go"), NAMES("go_on"));
  onnx_add_node(&body, "Transpose", NAMES("v"), NAMES("turned"));
  onnx_add_node(&body, "Identity", NAMES("turned"), NAMES("each"));
  onnx_add_output(&body, "go_on");
  onnx_add_output(&body, "turned");
  onnx_add_output(&body, "each");
  onnx_add_graph(&node, "body", &body);
  onnx_add_input(&graph, "x", FLOAT, DIMS(2, 3));
  onnx_add_initializer(&graph, "trips", INT64, two, sizeof two, NULL, 0);
  onnx_add_initializer(&graph, "yes", BOOL, yes, sizeof yes, NULL, 0);
  onnx_nest(&graph, ONNX_GRAPH_NODE, &node);
  onnx_add_output(&graph, "y");
  assert_refused(&graph, "items 0 and 1 cannot be joined along axis 0");
  (void)t;
}

/* A sequence may have items without elements, which add nothing. */
TEST(test_on3_sequences_of_empty_items_are_joined) {
  static const int64_t lengths[] = {0, 2};
  static const float x[] = {1, 2};
  onnx_bytes graph = {0}, node = onnx_node("it", "ConcatFromSequence", NAMES("parts"), NAMES("y"));
  float y[2];
  onnx_add_int(&node, "axis", 0);
  onnx_add_initializer(&graph, "x", FLOAT, x, sizeof x, DIMS(2));
  onnx_add_initializer(&graph, "lengths", INT64, lengths, sizeof lengths, DIMS(2));
  onnx_add_node(&graph, "SplitToSequence", NAMES("x", "lengths"), NAMES("parts"));
  onnx_nest(&graph, ONNX_GRAPH_NODE, &node);
  onnx_add_output(&graph, "y");
  assert_constant(&graph, (const size_t[]){2}, 1, y, sizeof y);
  assert_memory_equal(y, x, sizeof y);
  (void)t;
}

/* Values without elements are joined, too. */
TEST(test_on4_a_loop_of_empty_values) {
  const int64_t two[] = {2}, none[] = {0};
  const unsigned char yes[] = {1};
  onnx_bytes body = {0}, graph = {0}, node = onnx_node("it", "Loop", NAMES("trips", "yes"), NAMES("y"));
  onnx_add_input(&body, "i", INT64, NULL, 0);
  onnx_add_input(&body, "go", BOOL, NULL, 0);
  onnx_add_node(&body, "Identity", NAMES("go"), NAMES("go_on"));
  onnx_add_node(&body, "ConstantOfShape", NAMES("none"), NAMES("each"));
  onnx_add_output(&body, "go_on");
  onnx_add_output(&body, "each");
  onnx_add_graph(&node, "body", &body);
  onnx_add_initializer(&graph, "trips", INT64, two, sizeof two, NULL, 0);
  onnx_add_initializer(&graph, "yes", BOOL, yes, sizeof yes, NULL, 0);
  onnx_add_initializer(&graph, "none", INT64, none, sizeof none, DIMS(1));
  onnx_nest(&graph, ONNX_GRAPH_NODE, &node);
  onnx_add_output(&graph, "y");
  assert_constant(&graph, (const size_t[]){2, 0}, 2, NULL, 0);
  (void)t;
}

/* Types that programs lack --------------------------------------------------------------------------------------- */

/* Integers of 2 and 4 bits share bytes, the first ones lowest. A constant of them can be cast and dequantized. */
TEST(test_on3_integers_of_less_than_a_byte) {
  static const struct {
    int type;
    unsigned char bytes[3];
    float numbers[5];
  } cases[] = {{21, {0xf0, 0x87, 0x03}, {0, 15, 7, 8, 3}},
               {22, {0xf0, 0x87, 0x03}, {0, -1, 7, -8, 3}},
               {25, {0xe4, 0x02}, {0, 1, 2, 3, 2}},
               {26, {0xe4, 0x02}, {0, 1, -2, -1, -2}}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    static const float half = 0.5f;
    const size_t bytes = cases[i].type < 25 ? 3 : 2;
    onnx_bytes cast_graph = {0}, scale_graph = {0}, cast = onnx_node("cast", "Cast", NAMES("x"), NAMES("y"));
    float numbers[5];
    onnx_add_int(&cast, "to", FLOAT);
    onnx_add_initializer(&cast_graph, "x", cases[i].type, cases[i].bytes, bytes, DIMS(5));
    onnx_nest(&cast_graph, ONNX_GRAPH_NODE, &cast);
    onnx_add_output(&cast_graph, "y");
    assert_constant(&cast_graph, (const size_t[]){5}, 1, numbers, sizeof numbers);
    assert_memory_equal(numbers, cases[i].numbers, sizeof numbers);
    onnx_add_initializer(&scale_graph, "x", cases[i].type, cases[i].bytes, bytes, DIMS(5));
    onnx_add_initializer(&scale_graph, "scale", FLOAT, &half, sizeof half, NULL, 0);
    onnx_add_node(&scale_graph, "DequantizeLinear", NAMES("x", "scale"), NAMES("y"));
    onnx_add_output(&scale_graph, "y");
    assert_constant(&scale_graph, (const size_t[]){5}, 1, numbers, sizeof numbers);
    for (size_t k = 0; k < 5; k++) assert_true(numbers[k] == cases[i].numbers[k] / 2);
  }
  (void)t;
}

/* Values that are given may have such types, too, and are inputs of a wider type; of types without bytes, the type is
 * the reason. */
TEST(test_on2_given_values_of_types_that_programs_lack) {
  static const unsigned char bytes[] = {0xf0, 0x87, 0x03}, wide[] = {1, 15, 0, 8, 3};
  static const float numbers[] = {1, 15, 0, 8, 3};
  for (size_t i = 0; i < 2; i++) {
    onnx_bytes graph = {0}, cast = onnx_node("cast", "Cast", NAMES("x"), NAMES("y"));
    rondo_onnx_build *build = NULL;
    const rondo_onnx_given_input given = {.name = "x", .data = bytes, .bytes = sizeof bytes};
    const rondo_onnx_build_options options = {RONDO_ONNX_BUILD_OPTIONS_INIT, .inputs = &given, .input_count = 1};
    onnx_add_int(&cast, "to", FLOAT);
    onnx_add_input(&graph, "x", i == 0 ? 21 : 8, DIMS(5));
    onnx_nest(&graph, ONNX_GRAPH_NODE, &cast);
    onnx_add_output(&graph, "y");
    if (i == 0) {
      rondo_program *program = test_new_program();
      build = built(parsed(&graph), &options, program);
      assert_false(input_of(build, 0).is_frozen);
      assert_int_equal(input_of(build, 0).type, RONDO_U8);
      rondo_compiled *of = compiled(t, program, build, NULL);
      assert_ok(rondo_compiled_write(of, "x", wide, sizeof wide));
      assert_ok(rondo_compiled_run(of));
      assert_output(of, "y", numbers, 5);
    } else {
      assert_error(rondo_onnx_build_program(parsed(&graph), &options, test_new_program(), &build), RONDO_UNSUPPORTED,
                   RONDO_REASON_NONE);
      assert_message("input 'x': programs have no values of the type 'string'");
    }
    rondo_onnx_build_destroy(build);
  }
}

/* Sizes that depend on data ---------------------------------------------------------------------------------------- */

/* The places of x [2, 3] that are not 0, as rows of the output. */
static onnx_bytes non_zero_graph(const char *reader) {
  onnx_bytes graph = {0};
  onnx_add_input(&graph, "x", FLOAT, DIMS(2, 3));
  onnx_add_node(&graph, "NonZero", NAMES("x"), NAMES("places"));
  onnx_add_node(&graph, reader, NAMES("places"), NAMES("y"));
  onnx_add_output(&graph, "y");
  return graph;
}

TEST(test_on3_sizes_that_depend_on_data_have_a_count) {
  static const float x[] = {0, 1, 0, 2, 0, 3};
  static const int64_t rows[] = {0, 1, 1, 0, 1, 2};
  const onnx_bytes graph = non_zero_graph("Transpose");
  for (size_t bound = 0; bound <= 2; bound += 2) {
    const rondo_onnx_build_options options = {RONDO_ONNX_BUILD_OPTIONS_INIT, .data_dependent_bound = bound};
    rondo_program *program = test_new_program();
    rondo_onnx_build *build = built(parsed(&graph), &options, program);
    const rondo_onnx_built_value y = output_of(build, 0);
    int64_t found[12], count = 0;
    assert_int_equal(y.rank, 2);
    assert_int_equal(y.shape[0], bound == 0 ? 6 : 2);
    assert_int_equal(y.shape[1], 2);
    assert_int_equal(y.counted_dimension, 0);
    rondo_compiled *of = compiled(t, program, build, NULL);
    assert_ok(rondo_compiled_write(of, "x", x, sizeof x));
    assert_ok(rondo_compiled_run(of));
    assert_ok(rondo_compiled_read(of, y.count_name, &count, sizeof count));
    assert_int_equal(count, 3);
    assert_ok(rondo_compiled_read(of, y.program_name, found, y.shape[0] * 2 * sizeof *found));
    assert_memory_equal(found, rows, (bound == 0 ? 6 : 4) * sizeof *rows);
    rondo_onnx_build_destroy(build);
  }
}

/* Arithmetic with what is not used would be wrong. */
TEST(test_on3_sizes_that_depend_on_data_are_not_computed_with) {
  static const char *const readers[] = {"Neg", "Shape", "Size", "Flatten"};
  for (size_t i = 0; i < sizeof readers / sizeof *readers; i++) {
    const onnx_bytes graph = non_zero_graph(readers[i]);
    assert_refused(&graph, "the size of input 0 depends on data");
  }
  (void)t;
}

TEST(test_on3_compress_with_a_condition_of_the_run) {
  static const float x[] = {1, 2, 3, 4, 5, 6}, second[] = {2, 3, 5, 6};
  static const unsigned char which[] = {0, 1, 1};
  onnx_bytes graph = {0}, node = onnx_node("it", "Compress", NAMES("x", "which"), NAMES("y"));
  rondo_program *program = test_new_program();
  int64_t count = 0;
  float y[6];
  onnx_add_int(&node, "axis", 1);
  onnx_add_input(&graph, "x", FLOAT, DIMS(2, 3));
  onnx_add_input(&graph, "which", BOOL, DIMS(3));
  onnx_nest(&graph, ONNX_GRAPH_NODE, &node);
  onnx_add_output(&graph, "y");
  rondo_onnx_build *build = built(parsed(&graph), NULL, program);
  const rondo_onnx_built_value value = output_of(build, 0);
  assert_int_equal(value.counted_dimension, 1);
  rondo_compiled *of = compiled(t, program, build, NULL);
  assert_ok(rondo_compiled_write(of, "x", x, sizeof x));
  assert_ok(rondo_compiled_write(of, "which", which, sizeof which));
  assert_ok(rondo_compiled_run(of));
  assert_ok(rondo_compiled_read(of, value.count_name, &count, sizeof count));
  assert_ok(rondo_compiled_read(of, "y", y, sizeof y));
  assert_int_equal(count, 2);
  for (size_t row = 0; row < 2; row++) assert_memory_equal(y + 3 * row, second + 2 * row, 2 * sizeof *y);
  rondo_onnx_build_destroy(build);
}

/* Two boxes that are the same, and one that is another. */
TEST(test_on3_non_max_suppression_in_a_run) {
  static const float boxes[] = {0, 0, 1, 1, 0, 0, 1, 1, 2, 2, 3, 3}, scores[] = {0.5f, 0.9f, 0.7f};
  static const int64_t most[] = {3}, expected[] = {0, 0, 1, 0, 0, 2};
  static const float overlap[] = {0.5f};
  onnx_bytes graph = {0};
  rondo_program *program = test_new_program();
  int64_t count = 0, rows[9];
  onnx_add_input(&graph, "boxes", FLOAT, DIMS(1, 3, 4));
  onnx_add_input(&graph, "scores", FLOAT, DIMS(1, 1, 3));
  onnx_add_initializer(&graph, "most", INT64, most, sizeof most, NULL, 0);
  onnx_add_initializer(&graph, "overlap", FLOAT, overlap, sizeof overlap, NULL, 0);
  onnx_add_node(&graph, "NonMaxSuppression", NAMES("boxes", "scores", "most", "overlap"), NAMES("y"));
  onnx_add_output(&graph, "y");
  rondo_onnx_build *build = built(parsed(&graph), NULL, program);
  const rondo_onnx_built_value value = output_of(build, 0);
  assert_int_equal(value.shape[0], 3);
  assert_int_equal(value.counted_dimension, 0);
  rondo_compiled *of = compiled(t, program, build, NULL);
  assert_ok(rondo_compiled_write(of, "boxes", boxes, sizeof boxes));
  assert_ok(rondo_compiled_write(of, "scores", scores, sizeof scores));
  assert_ok(rondo_compiled_run(of));
  assert_ok(rondo_compiled_read(of, value.count_name, &count, sizeof count));
  assert_ok(rondo_compiled_read(of, "y", rows, sizeof rows));
  assert_int_equal(count, 2);
  assert_memory_equal(rows, expected, sizeof expected);
  rondo_onnx_build_destroy(build);
}

/* A bound above what can be selected, 1 of 2 boxes in each of 2 classes, takes no more memory. */
TEST(test_on3_non_max_suppression_has_rows_for_what_it_can_select) {
  static const int64_t most[] = {1};
  const rondo_onnx_build_options options = {RONDO_ONNX_BUILD_OPTIONS_INIT, .data_dependent_bound = 3};
  onnx_bytes graph = {0}, flat = {0};
  onnx_add_input(&graph, "boxes", FLOAT, DIMS(1, 2, 4));
  onnx_add_input(&graph, "scores", FLOAT, DIMS(1, 2, 2));
  onnx_add_initializer(&graph, "most", INT64, most, sizeof most, NULL, 0);
  onnx_add_node(&graph, "NonMaxSuppression", NAMES("boxes", "scores", "most"), NAMES("y"));
  onnx_add_output(&graph, "y");
  rondo_onnx_build *build = built(parsed(&graph), &options, test_new_program());
  assert_int_equal(output_of(build, 0).shape[0], 2);
  rondo_onnx_build_destroy(build);
  onnx_add_input(&flat, "boxes", FLOAT, DIMS(1, 2, 4));
  onnx_add_input(&flat, "scores", FLOAT, DIMS(2, 2));
  onnx_add_initializer(&flat, "most", INT64, most, sizeof most, NULL, 0);
  onnx_add_node(&flat, "NonMaxSuppression", NAMES("boxes", "scores", "most"), NAMES("y"));
  onnx_add_output(&flat, "y");
  assert_refused(&flat, "input 1 has 2 dimensions, not 3");
  (void)t;
}

/* Names that the import makes up are not those of other values: x is an input and an output, and y has a count. */
TEST(test_on2_names_that_are_made_up_are_new) {
  static const float x[] = {0, 1, 0, 2, 0, 3}, minus[] = {0, -1, 0, -2, 0, -3};
  onnx_bytes graph = {0};
  rondo_program *program = test_new_program();
  int64_t count = 0;
  onnx_add_input(&graph, "x", FLOAT, DIMS(2, 3));
  onnx_add_node(&graph, "Neg", NAMES("x"), NAMES("x.output"));
  onnx_add_node(&graph, "NonZero", NAMES("x"), NAMES("y"));
  onnx_add_node(&graph, "Abs", NAMES("x"), NAMES("y.count"));
  onnx_add_output(&graph, "x");
  onnx_add_output(&graph, "x.output");
  onnx_add_output(&graph, "y");
  onnx_add_output(&graph, "y.count");
  rondo_onnx_build *build = built(parsed(&graph), NULL, program);
  assert_string_equal(output_of(build, 0).program_name, "x.output.output");
  assert_string_equal(output_of(build, 1).program_name, "x.output");
  assert_string_equal(output_of(build, 2).count_name, "y.count.count");
  assert_string_equal(output_of(build, 3).program_name, "y.count");
  rondo_compiled *of = compiled(t, program, build, NULL);
  assert_ok(rondo_compiled_write(of, "x", x, sizeof x));
  assert_ok(rondo_compiled_run(of));
  assert_output(of, "x.output.output", x, 6);
  assert_output(of, "x.output", minus, 6);
  assert_output(of, "y.count", x, 6);
  assert_ok(rondo_compiled_read(of, "y.count.count", &count, sizeof count));
  assert_int_equal(count, 3);
  rondo_onnx_build_destroy(build);
}

/* Parts of a sequence are values of the program, and a position that is a constant chooses one of them. */
TEST(test_on3_sequences_exist_at_import) {
  static const float x[] = {1, 2, 3, 4, 5, 6}, second[] = {4, 5, 6};
  static const int64_t minus_one[] = {-1};
  onnx_bytes graph = {0};
  onnx_add_input(&graph, "x", FLOAT, DIMS(2, 3));
  onnx_add_initializer(&graph, "last", INT64, minus_one, sizeof minus_one, DIMS(1));
  onnx_add_node(&graph, "SplitToSequence", NAMES("x"), NAMES("parts"));
  onnx_add_node(&graph, "SequenceInsert", NAMES("parts", "x"), NAMES("more"));
  onnx_add_node(&graph, "SequenceErase", NAMES("more"), NAMES("less"));
  onnx_add_node(&graph, "SequenceAt", NAMES("less", "last"), NAMES("y"));
  onnx_add_node(&graph, "SequenceLength", NAMES("more"), NAMES("n"));
  onnx_add_output(&graph, "y");
  onnx_add_output(&graph, "n");
  rondo_onnx_model *model = parsed(&graph);
  rondo_program *program = test_new_program();
  rondo_onnx_build *build = built(model, NULL, program);
  assert_int_equal(*(const int64_t *)output_of(build, 1).data, 3);
  rondo_compiled *of = compiled(t, program, build, NULL);
  assert_ok(rondo_compiled_write(of, "x", x, sizeof x));
  assert_ok(rondo_compiled_run(of));
  assert_output(of, "y", second, 3);
  rondo_onnx_build_destroy(build);
}

/* Doubles are floats in the program, and constants keep their precision. */
TEST(test_on2_doubles) {
  static const double c[] = {0.1, 1e300};
  static const float x[] = {1, 2}, y[] = {2, 4};
  onnx_bytes graph = {0};
  onnx_add_input(&graph, "x", DOUBLE, DIMS(2));
  onnx_add_initializer(&graph, "c", DOUBLE, c, sizeof c, DIMS(2));
  onnx_add_node(&graph, "Add", NAMES("x", "x"), NAMES("y"));
  onnx_add_node(&graph, "Identity", NAMES("c"), NAMES("d"));
  onnx_add_output(&graph, "y");
  onnx_add_output(&graph, "d");
  rondo_onnx_model *model = parsed(&graph);
  rondo_program *program = test_new_program();
  rondo_onnx_build *build = NULL;
  const rondo_onnx_build_options refuse = {RONDO_ONNX_BUILD_OPTIONS_INIT, .refuse_double = true};
  assert_error(rondo_onnx_build_program(model, &refuse, program, &build), RONDO_UNSUPPORTED, RONDO_REASON_NONE);
  assert_message("input 'x': programs have no values of the type 'double'");
  rondo_onnx_build_destroy(build);
  build = built(model, NULL, program);
  const rondo_onnx_built_value sum = output_of(build, 0), constant = output_of(build, 1);
  assert_true(sum.is_double && sum.type == RONDO_F32);
  assert_string_equal(sum.type_name, "double");
  assert_memory_equal(constant.data, c, sizeof c);
  rondo_compiled *of = compiled(t, program, build, NULL);
  assert_ok(rondo_compiled_write(of, "x", x, sizeof x));
  assert_ok(rondo_compiled_run(of));
  assert_output(of, "y", y, 2);
  rondo_onnx_build_destroy(build);
}

/* Scaling ---------------------------------------------------------------------------------------------------------- */

/* conv(x, w), normalized, times a number and plus one for each channel, [1, 2, 2, 2]. */
static onnx_bytes scaling_graph(void) {
  static const float w[] = {1, 0, 0, 0, 2, 0, 0, 0}, scale[] = {2, 3}, shift[] = {1, -1}, mean[] = {4, -2},
                     variance[] = {3, 0};
  static const float factor[] = {5, -1}, offset[] = {0.5f, 7};
  onnx_bytes graph = {0},
             norm = onnx_node("norm", "BatchNormalization", NAMES("c", "scale", "shift", "mean", "var"), NAMES("n"));
  onnx_add_input(&graph, "x", FLOAT, DIMS(1, 4, 2, 2));
  onnx_add_initializer(&graph, "w", FLOAT, w, sizeof w, DIMS(2, 4, 1, 1));
  onnx_add_initializer(&graph, "scale", FLOAT, scale, sizeof scale, DIMS(2));
  onnx_add_initializer(&graph, "shift", FLOAT, shift, sizeof shift, DIMS(2));
  onnx_add_initializer(&graph, "mean", FLOAT, mean, sizeof mean, DIMS(2));
  onnx_add_initializer(&graph, "var", FLOAT, variance, sizeof variance, DIMS(2));
  onnx_add_initializer(&graph, "factor", FLOAT, factor, sizeof factor, DIMS(2, 1, 1));
  onnx_add_initializer(&graph, "offset", FLOAT, offset, sizeof offset, DIMS(1, 2, 1, 1));
  onnx_add_node(&graph, "Conv", NAMES("x", "w"), NAMES("c"));
  onnx_add_float(&norm, "epsilon", 1);
  onnx_nest(&graph, ONNX_GRAPH_NODE, &norm);
  onnx_add_node(&graph, "Mul", NAMES("factor", "n"), NAMES("m"));
  onnx_add_node(&graph, "Add", NAMES("m", "offset"), NAMES("y"));
  onnx_add_output(&graph, "y");
  return graph;
}

static void assert_scaled(test_fixture *t, const onnx_bytes *graph, const rondo_onnx_build_options *options,
                          size_t states, bool reads_norm) {
  static const float x[16] = {0, 1, 2, 4};
  float y[8], n[8];
  rondo_program *program = test_new_program();
  rondo_onnx_build *build = built(parsed(graph), options, program);
  assert_int_equal(info_of(build).states, states);
  rondo_compiled *of = compiled(t, program, build, NULL);
  assert_ok(rondo_compiled_write(of, "x", x, sizeof x));
  assert_ok(rondo_compiled_run(of));
  assert_ok(rondo_compiled_read(of, "y", y, sizeof y));
  if (reads_norm) assert_ok(rondo_compiled_read(of, "n", n, sizeof n));
  for (size_t i = 0; i < 8; i++) {
    const float norm = i < 4 ? (x[i] - 4) / 2 * 2 + 1 : (2 * x[i - 4] + 2) * 3 - 1;
    assert_true(fabsf(y[i] - (i < 4 ? norm * 5 + 0.5f : -norm + 7)) < 1e-4f);
    if (reads_norm) assert_true(fabsf(n[i] - norm) < 1e-4f);
  }
  rondo_onnx_build_destroy(build);
}

/* Weights and bias of the convolution are all that is left; with another reader of a value inside, its weights and its
 * bias, and the numbers that follow; and above the limit of constants, or if asked, what the model has. */
TEST(test_on5_scaling_becomes_weights) {
  const rondo_onnx_build_options keeps = {RONDO_ONNX_BUILD_OPTIONS_INIT, .keeps_scaling = true};
  const rondo_onnx_build_options small = {RONDO_ONNX_BUILD_OPTIONS_INIT, .most_folded_bytes = 60};
  onnx_bytes graph = scaling_graph();
  assert_scaled(t, &graph, NULL, 2, false);
  assert_scaled(t, &graph, &keeps, 7, false);
  assert_scaled(t, &graph, &small, 3, false);
  onnx_add_output(&graph, "n");
  assert_scaled(t, &graph, NULL, 4, true);
}

enum { DEPTH = 8, WIDTH = 4, QUANTIZED_BYTES = DEPTH * WIDTH, FLOAT_BYTES = 4 * QUANTIZED_BYTES };
enum { SCALE_BYTES = 4 * WIDTH };

/* y = x w and z = the convolution of images with v, where w [DEPTH, WIDTH] and v [WIDTH, DEPTH, 1, 1] are quantised. */
static onnx_bytes quantized_graph(void) {
  static int8_t w[QUANTIZED_BYTES], v[QUANTIZED_BYTES];
  static float scale[WIDTH];
  onnx_bytes graph = {0}, of_w = onnx_node("of_w", "DequantizeLinear", NAMES("w", "scale"), NAMES("w_floats")),
             of_v = onnx_node("of_v", "DequantizeLinear", NAMES("v", "scale"), NAMES("v_floats"));
  for (size_t i = 0; i < QUANTIZED_BYTES; i++) w[i] = (int8_t)(i % 255 - 127), v[i] = (int8_t)(i % 251 - 125);
  for (size_t i = 0; i < WIDTH; i++) scale[i] = i % 2 == 0 ? 0.5f : 2;
  onnx_add_input(&graph, "x", FLOAT, DIMS(1, DEPTH));
  onnx_add_input(&graph, "images", FLOAT, DIMS(1, DEPTH, 1, 1));
  onnx_add_initializer(&graph, "w", INT8, w, sizeof w, DIMS(DEPTH, WIDTH));
  onnx_add_initializer(&graph, "v", INT8, v, sizeof v, DIMS(WIDTH, DEPTH, 1, 1));
  onnx_add_initializer(&graph, "scale", FLOAT, scale, sizeof scale, DIMS(WIDTH));
  onnx_add_int(&of_w, "axis", 1);
  onnx_add_int(&of_v, "axis", 0);
  onnx_nest(&graph, ONNX_GRAPH_NODE, &of_w);
  onnx_nest(&graph, ONNX_GRAPH_NODE, &of_v);
  onnx_add_node(&graph, "MatMul", NAMES("x", "w_floats"), NAMES("y"));
  onnx_add_node(&graph, "Conv", NAMES("images", "v_floats"), NAMES("z"));
  onnx_add_output(&graph, "y");
  onnx_add_output(&graph, "z");
  return graph;
}

/* With x = 1, 2, .. DEPTH. */
static void assert_dequantized(test_fixture *t, const onnx_bytes *graph, const rondo_onnx_build_options *options,
                               uint64_t state_bytes) {
  float x[DEPTH], y[WIDTH], z[WIDTH];
  rondo_program *program = test_new_program();
  rondo_onnx_build *build = built(parsed(graph), options, program);
  assert_int_equal(info_of(build).state_bytes, state_bytes);
  rondo_compiled *of = compiled(t, program, build, NULL);
  for (size_t i = 0; i < DEPTH; i++) x[i] = (float)(i + 1);
  assert_ok(rondo_compiled_write(of, "x", x, sizeof x));
  assert_ok(rondo_compiled_write(of, "images", x, sizeof x));
  assert_ok(rondo_compiled_run(of));
  assert_ok(rondo_compiled_read(of, "y", y, sizeof y));
  assert_ok(rondo_compiled_read(of, "z", z, sizeof z));
  for (size_t i = 0; i < WIDTH; i++) {
    float of_w = 0, of_v = 0;
    for (size_t k = 0; k < DEPTH; k++) {
      of_w += x[k] * (float)((int)((k * WIDTH + i) % 255) - 127);
      of_v += x[k] * (float)((int)((i * DEPTH + k) % 251) - 125);
    }
    const float scale = i % 2 == 0 ? 0.5f : 2;
    assert_true(fabsf(y[i] - of_w * scale) < 1e-2f && fabsf(z[i] - of_v * scale) < 1e-2f);
  }
  rondo_onnx_build_destroy(build);
}

/* Products and convolutions have weights of integers as states, or for CUDA floats, within the limit of constants: here
 * the floats of both weights are computed together, and then there is no room for those of the convolution. */
TEST(test_on5_floats_of_quantized_weights) {
  const rondo_onnx_build_options floats = {RONDO_ONNX_BUILD_OPTIONS_INIT, .for_cuda = true};
  const rondo_onnx_build_options one = {RONDO_ONNX_BUILD_OPTIONS_INIT, .for_cuda = true,
                                        .most_folded_bytes = 2 * FLOAT_BYTES + QUANTIZED_BYTES};
  const onnx_bytes graph = quantized_graph();
  assert_dequantized(t, &graph, NULL, 2 * QUANTIZED_BYTES + SCALE_BYTES);
  assert_dequantized(t, &graph, &floats, 2 * FLOAT_BYTES);
  assert_dequantized(t, &graph, &one, FLOAT_BYTES + QUANTIZED_BYTES + SCALE_BYTES);
}

/* z = the convolution of x and floats of repeated bytes, which take OUT times IN; y = x and the sum of numbers. */
enum { IN = 300, OUT = 256 };
static onnx_bytes large_weight_graph(void) {
  static const int8_t bytes[IN] = {1, 2, 3};
  static const int64_t shape[] = {OUT, IN, 1, 1};
  static const float scale = 0.5f;
  onnx_bytes graph = {0};
  onnx_add_input(&graph, "x", FLOAT, DIMS(1, IN, 1, 1));
  onnx_add_initializer(&graph, "bytes", INT8, bytes, sizeof bytes, DIMS(1, IN, 1, 1));
  onnx_add_initializer(&graph, "shape", INT64, shape, sizeof shape, DIMS(4));
  onnx_add_initializer(&graph, "scale", FLOAT, &scale, sizeof scale, NULL, 0);
  onnx_add_node(&graph, "Expand", NAMES("bytes", "shape"), NAMES("w"));
  onnx_add_node(&graph, "DequantizeLinear", NAMES("w", "scale"), NAMES("floats"));
  onnx_add_node(&graph, "Add", NAMES("scale", "scale"), NAMES("sum"));
  onnx_add_node(&graph, "Conv", NAMES("x", "floats"), NAMES("z"));
  onnx_add_node(&graph, "Add", NAMES("x", "sum"), NAMES("y"));
  onnx_add_output(&graph, "y");
  onnx_add_output(&graph, "z");
  return graph;
}

/* No shape depends on products with weights, so given values of inputs compute none, and no floats of the weights. */
TEST(test_on5_given_values_compute_nothing_with_weights) {
  static float x[IN];
  const onnx_bytes graph = large_weight_graph();
  const rondo_onnx_given_input given = {.name = "x", .data = x, .bytes = sizeof x};
  const rondo_onnx_build_options options = {RONDO_ONNX_BUILD_OPTIONS_INIT, .inputs = &given, .input_count = 1};
  rondo_onnx_build *build = built(parsed(&graph), &options, test_new_program());
  assert_true(info_of(build).folded_bytes < 2 * OUT * IN);
  assert_false(input_of(build, 0).is_frozen);
  rondo_onnx_build_destroy(build);
}

/* A convolution outside of a loop whose body scales it: it is the same in each iteration. */
TEST(test_on5_scaling_in_a_loop) {
  static const float w[] = {3}, factor[] = {2}, x[] = {1};
  static const int64_t trips[] = {3};
  static const unsigned char yes[] = {1};
  onnx_bytes graph = {0}, body = {0}, loop = onnx_node("loop", "Loop", NAMES("trips", "yes"), NAMES("all"));
  onnx_add_input(&graph, "x", FLOAT, DIMS(1, 1, 1, 1));
  onnx_add_initializer(&graph, "w", FLOAT, w, sizeof w, DIMS(1, 1, 1, 1));
  onnx_add_initializer(&graph, "factor", FLOAT, factor, sizeof factor, DIMS(1));
  onnx_add_initializer(&graph, "trips", INT64, trips, sizeof trips, NULL, 0);
  onnx_add_initializer(&graph, "yes", BOOL, yes, sizeof yes, NULL, 0);
  onnx_add_node(&graph, "Conv", NAMES("x", "w"), NAMES("c"));
  onnx_add_input(&body, "i", INT64, NULL, 0);
  onnx_add_input(&body, "go", BOOL, NULL, 0);
  onnx_add_node(&body, "Identity", NAMES("go"), NAMES("go_on"));
  onnx_add_node(&body, "Mul", NAMES("c", "factor"), NAMES("each"));
  onnx_add_output(&body, "go_on");
  onnx_add_output(&body, "each");
  onnx_add_graph(&loop, "body", &body);
  onnx_nest(&graph, ONNX_GRAPH_NODE, &loop);
  onnx_add_output(&graph, "all");
  rondo_program *program = test_new_program();
  rondo_onnx_build *build = built(parsed(&graph), NULL, program);
  rondo_compiled *of = compiled(t, program, build, NULL);
  assert_ok(rondo_compiled_write(of, "x", x, sizeof x));
  assert_ok(rondo_compiled_run(of));
  assert_output(of, "all", (const float[]){6, 6, 6}, 3);
  rondo_onnx_build_destroy(build);
}

/* Types that programs lack ----------------------------------------------------------------------------------------- */

/* Integers of 64 bits without a sign are held as I64 with their bits, and computed as what they are. */
TEST(test_on3_unsigned_long) {
  enum { COUNT = 8 };
  static const uint64_t a[COUNT] = {
      0, 1, UINT64_MAX, UINT64_MAX, INT64_MAX, (uint64_t)INT64_MAX + 1, 7, UINT64_MAX - 1};
  static const uint64_t b[COUNT] = {1, UINT64_MAX, 1, 10, 3, 2, UINT64_MAX, UINT64_MAX};
  static const char *const ops[] = {"Div", "Mod", "Max", "Min", "Less", "GreaterOrEqual"};
  uint64_t quotient[COUNT], rest[COUNT], largest[COUNT], least[COUNT];
  float wide[COUNT], number[COUNT];
  uint8_t is_less[COUNT], is_no_less[COUNT];
  onnx_bytes graph = {0};
  onnx_add_input(&graph, "a", UINT64, DIMS(COUNT));
  onnx_add_input(&graph, "b", UINT64, DIMS(COUNT));
  for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
    onnx_add_node(&graph, ops[i], NAMES("a", "b"), NAMES(ops[i]));
    onnx_add_output(&graph, ops[i]);
  }
  onnx_bytes cast = onnx_node("cast", "Cast", NAMES("a"), NAMES("cast"));
  onnx_add_int(&cast, "to", FLOAT);
  onnx_nest(&graph, ONNX_GRAPH_NODE, &cast);
  onnx_add_output(&graph, "cast");
  rondo_program *program = test_new_program();
  rondo_onnx_model *model = parsed(&graph);
  rondo_onnx_build *build = built(model, NULL, program);
  rondo_compiled *of = compiled(t, program, build, NULL);
  assert_ok(rondo_compiled_write(of, "a", a, sizeof a));
  assert_ok(rondo_compiled_write(of, "b", b, sizeof b));
  assert_ok(rondo_compiled_run(of));
  assert_ok(rondo_compiled_read(of, "Div", quotient, sizeof quotient));
  assert_ok(rondo_compiled_read(of, "Mod", rest, sizeof rest));
  assert_ok(rondo_compiled_read(of, "Max", largest, sizeof largest));
  assert_ok(rondo_compiled_read(of, "Min", least, sizeof least));
  assert_ok(rondo_compiled_read(of, "Less", is_less, sizeof is_less));
  assert_ok(rondo_compiled_read(of, "GreaterOrEqual", is_no_less, sizeof is_no_less));
  assert_ok(rondo_compiled_read(of, "cast", number, sizeof number));
  for (size_t i = 0; i < COUNT; i++) wide[i] = (float)a[i];
  assert_memory_equal(number, wide, sizeof wide);
  for (size_t i = 0; i < COUNT; i++) {
    assert_int_equal(quotient[i], a[i] / b[i]);
    assert_int_equal(rest[i], a[i] % b[i]);
    assert_int_equal(largest[i], a[i] > b[i] ? a[i] : b[i]);
    assert_int_equal(least[i], a[i] < b[i] ? a[i] : b[i]);
    assert_int_equal(is_less[i], a[i] < b[i]);
    assert_int_equal(is_no_less[i], a[i] >= b[i]);
  }
  rondo_onnx_build_destroy(build);
}

/* Sums of 16 bits keep their lower bits; constants of 4 bits become outputs as they are, and are computed with. */
TEST(test_on3_types_that_programs_lack_keep_their_numbers) {
  static const uint8_t packed[] = {0x87, 0x01}; /* 7, -8, 1 */
  static const int32_t x[] = {INT16_MAX, INT16_MIN, 5}, sums[] = {-2, 0, 10};
  static const float numbers[] = {7, -8, 1};
  int32_t sum[3];
  onnx_bytes graph = {0};
  onnx_add_input(&graph, "x", INT16, DIMS(3));
  onnx_add_initializer(&graph, "c", INT4, packed, sizeof packed, DIMS(3));
  onnx_add_node(&graph, "Add", NAMES("x", "x"), NAMES("sum"));
  onnx_add_node(&graph, "Identity", NAMES("c"), NAMES("same"));
  onnx_bytes cast = onnx_node("cast", "Cast", NAMES("c"), NAMES("cast"));
  onnx_add_int(&cast, "to", FLOAT);
  onnx_nest(&graph, ONNX_GRAPH_NODE, &cast);
  onnx_add_output(&graph, "sum");
  onnx_add_output(&graph, "same");
  onnx_add_output(&graph, "cast");
  rondo_program *program = test_new_program();
  rondo_onnx_model *model = parsed(&graph);
  rondo_onnx_build *build = built(model, NULL, program);
  assert_int_equal(output_of(build, 0).type, RONDO_I32);
  assert_string_equal(output_of(build, 0).type_name, "int16");
  assert_null(output_of(build, 1).program_name);
  assert_memory_equal(output_of(build, 1).data, packed, sizeof packed);
  assert_memory_equal(output_of(build, 2).data, numbers, sizeof numbers);
  rondo_compiled *of = compiled(t, program, build, NULL);
  assert_ok(rondo_compiled_write(of, "x", x, sizeof x));
  assert_ok(rondo_compiled_run(of));
  assert_ok(rondo_compiled_read(of, "sum", sum, sizeof sum));
  assert_memory_equal(sum, sums, sizeof sums);
  rondo_onnx_build_destroy(build);
}

/* Mistakes of callers. */
TEST(test_on2_options_that_do_not_fit_are_refused) {
  const onnx_bytes graph = layer_graph();
  rondo_onnx_model *model = parsed(&graph);
  rondo_program *program = test_new_program();
  rondo_onnx_build *build = (rondo_onnx_build *)1;
  static const size_t wide[] = {4, 3}, one[] = {4}, right[] = {4, 2};
  static const float x[2] = {0};
  static const struct {
    rondo_onnx_given_input given;
    rondo_reason reason;
    const char *text;
  } cases[] = {
      {{.name = "z"}, RONDO_REASON_UNKNOWN_NAME, "no input 'z'"},
      {{.name = NULL}, RONDO_REASON_NULL_ARGUMENT, "name"},
      {{.name = "x"}, RONDO_REASON_SHAPE, "dimension 0 ('batch') of the input 'x' is dynamic"},
      {{.name = "x", .shape = wide, .rank = 2}, RONDO_REASON_SHAPE, "size 3 of dimension 1"},
      {{.name = "x", .shape = one, .rank = 1}, RONDO_REASON_SHAPE, "given with 1 dimensions"},
      {{.name = "x", .shape = right, .rank = 2, .data = x, .bytes = 8}, RONDO_REASON_BAD_SIZE, "need 32"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const rondo_onnx_build_options options = {RONDO_ONNX_BUILD_OPTIONS_INIT, .inputs = &cases[i].given,
                                              .input_count = 1};
    assert_invalid(rondo_onnx_build_program(model, &options, program, &build), cases[i].reason);
    assert_message(cases[i].text);
    assert_null(build);
  }
  assert_invalid(rondo_onnx_build_program(NULL, NULL, program, &build), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_onnx_build_program(model, NULL, NULL, &build), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_onnx_build_program(model, NULL, program, NULL), RONDO_REASON_NULL_ARGUMENT);
  (void)t;
}

/* The sum of many numbers is small, but they are not. */
TEST(test_on5_what_constants_need_meanwhile_is_limited) {
  static const int64_t range[] = {0, 2000000, 1};
  const char *const names[] = {"start", "limit", "step"};
  rondo_onnx_build_options options = {RONDO_ONNX_BUILD_OPTIONS_INIT, .most_folded_bytes = 4 << 20};
  rondo_onnx_build *build = NULL;
  onnx_bytes graph = {0}, sum = onnx_node("sum", "ReduceSum", NAMES("all"), NAMES("y"));
  onnx_add_int(&sum, "keepdims", 0);
  for (size_t i = 0; i < 3; i++) onnx_add_initializer(&graph, names[i], INT64, &range[i], sizeof *range, NULL, 0);
  onnx_add_node(&graph, "Range", NAMES("start", "limit", "step"), NAMES("all"));
  onnx_nest(&graph, ONNX_GRAPH_NODE, &sum);
  onnx_add_output(&graph, "y");
  assert_error(rondo_onnx_build_program(parsed(&graph), &options, test_new_program(), &build), RONDO_LIMIT_EXCEEDED,
               RONDO_REASON_BAD_SIZE);
  assert_message("constants of 8 B that are computed at import need 15.3 MiB more meanwhile, more than 4.0 MiB");
  options.most_folded_bytes = 0;
  build = built(parsed(&graph), &options, test_new_program());
  assert_true(*(const int64_t *)output_of(build, 0).data == INT64_C(1999999000000));
  rondo_onnx_build_destroy(build);
  (void)t;
}
