/* SPDX-License-Identifier: MIT
 * Programs of ONNX models (ON-2): inputs, outputs and weights by name, sizes of dynamic dimensions, constants that are
 * computed at import, given values of inputs, and what is not supported.
 */
#include <rondo/onnx.h>

#include <stdio.h>
#include <string.h>

#include "support/rondo_test.h"
#include "support/test_onnx.h"
#include "support/test_program.h"

enum { FLOAT = 1, INT64 = 7, BOOL = 9, DOUBLE = 11 };

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

/* All are said at once, and nodes that only lack their results are not said. The program stays as it was. */
TEST(test_on2_what_is_not_supported_is_listed) {
  onnx_bytes graph = layer_graph();
  onnx_bytes relu = onnx_node("odd", "Relu", NAMES("sum"), NAMES("z"));
  onnx_add_int(&relu, "odd_attribute", 1);
  onnx_nest(&graph, ONNX_GRAPH_NODE, &relu);
  onnx_add_node(&graph, "NoSuchOperator", NAMES("y"), NAMES("a"));
  onnx_add_node(&graph, "Add", NAMES("a", "z"), NAMES("b2"));
  rondo_onnx_model *model = parsed(&graph);
  const rondo_onnx_dimension_size size = {"batch", 1};
  const rondo_onnx_build_options options = {RONDO_ONNX_BUILD_OPTIONS_INIT, .dimensions = &size, .dimension_count = 1};
  rondo_program *program = test_new_program();
  rondo_value x;
  rondo_onnx_build *build = NULL;
  rondo_onnx_unsupported item = {.struct_size = sizeof item};
  assert_error(rondo_onnx_build_program(model, &options, program, &build), RONDO_UNSUPPORTED, RONDO_REASON_NONE);
  assert_message("2 of the model's nodes cannot be imported");
  assert_int_equal(info_of(build).unsupported, 2);
  assert_ok(rondo_onnx_build_get_unsupported(build, 0, &item));
  assert_string_equal(item.node, "node 'odd' (Relu)");
  assert_string_equal(item.attribute, "odd_attribute");
  assert_int_equal(item.opset, 17);
  assert_ok(rondo_onnx_build_get_unsupported(build, 1, &item));
  assert_string_equal(item.op, "NoSuchOperator");
  assert_string_equal(item.domain, "");
  assert_error(rondo_onnx_build_get_unsupported(build, 2, &item), RONDO_NOT_FOUND, RONDO_REASON_OUT_OF_RANGE);
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
      {"NonZero", NULL, 0, false, "'x' must be known at import"},
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
