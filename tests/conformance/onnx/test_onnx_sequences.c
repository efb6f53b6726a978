/* SPDX-License-Identifier: MIT
 * Sequences and optionals as inputs and outputs of models (ON-3): their elements are inputs and outputs of programs, in
 * trees and for sessions, too. Files of them are read element by element.
 */
#define _POSIX_C_SOURCE 200809L
#include <rondo/onnx.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/test_onnx.h"
#include "support/test_program.h"
#include "support/test_tree.h"

enum { FLOAT = 1 };

#define NAMES(...) ((const char *[]){__VA_ARGS__, NULL})
#define DIMS(...) (const int64_t[]){__VA_ARGS__}, sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)
#define SHAPE(...) \
  .shape = (const size_t[]){__VA_ARGS__}, .rank = sizeof((const size_t[]){__VA_ARGS__}) / sizeof(size_t)

/* Models ----------------------------------------------------------------------------------------------------------- */

static void destroy_model(void *model) { rondo_onnx_destroy(model); }

static rondo_onnx_model *parsed(const onnx_bytes *graph) {
  rondo_onnx_model *model = NULL;
  const onnx_bytes bytes = onnx_model(graph);
  assert_ok(rondo_onnx_parse(bytes.bytes, bytes.count, NULL, &model));
  return test_leave(destroy_model, model);
}

/* For a sequence x of tensors [batch, 2]: joined = all rows; doubled, a sequence = x + x; and perhaps its length. */
static rondo_onnx_model *sequence_model_of(bool has_length) {
  onnx_bytes graph = {0}, body = {0};
  onnx_bytes concat = onnx_node("concat", "ConcatFromSequence", NAMES("x"), NAMES("joined"));
  onnx_bytes map = onnx_node("map", "SequenceMap", NAMES("x"), NAMES("doubled"));
  onnx_add_input(&body, "e", FLOAT, DIMS(-1, 2));
  onnx_add_node(&body, "Add", NAMES("e", "e"), NAMES("sum"));
  onnx_add_output(&body, "sum");
  onnx_add_graph(&map, "body", &body);
  onnx_add_int(&concat, "axis", 0);
  onnx_add_list_input(&graph, "x", ONNX_SEQUENCE, FLOAT, DIMS(-1, 2));
  onnx_nest(&graph, ONNX_GRAPH_NODE, &concat);
  onnx_nest(&graph, ONNX_GRAPH_NODE, &map);
  onnx_add_node(&graph, "SequenceLength", NAMES("x"), NAMES("length"));
  onnx_add_output(&graph, "joined");
  onnx_add_output(&graph, "doubled");
  if (has_length) onnx_add_output(&graph, "length");
  return parsed(&graph);
}

static rondo_onnx_model *sequence_model(void) { return sequence_model_of(true); }

/* has = whether the optional x has a value; same = x. */
static rondo_onnx_model *optional_model(onnx_list kind) {
  onnx_bytes graph = {0};
  onnx_add_list_input(&graph, "x", kind, FLOAT, DIMS(2));
  onnx_add_node(&graph, "OptionalHasElement", NAMES("x"), NAMES("has"));
  onnx_add_node(&graph, "Identity", NAMES("x"), NAMES("same"));
  onnx_add_output(&graph, "has");
  onnx_add_output(&graph, "same");
  return parsed(&graph);
}

/* Programs --------------------------------------------------------------------------------------------------------- */

static void destroy_build(void *build) { rondo_onnx_build_destroy(build); }

static rondo_onnx_build *built(const rondo_onnx_model *model, const rondo_onnx_build_options *options,
                               rondo_program *program) {
  rondo_onnx_build *build = NULL;
  assert_ok(rondo_onnx_build_program(model, options, program, &build));
  return test_leave(destroy_build, build);
}

static void assert_value(const rondo_onnx_built_value *value, const char *name, size_t value_index, size_t element) {
  assert_string_equal(value->name, name);
  assert_int_equal(value->value_index, value_index);
  assert_int_equal(value->element_index, element);
}

static rondo_onnx_built_value output_of(const rondo_onnx_build *build, size_t index, const char *name,
                                        size_t value_index, size_t element) {
  rondo_onnx_built_value value = {.struct_size = sizeof value};
  assert_ok(rondo_onnx_build_get_output(build, index, &value));
  assert_value(&value, name, value_index, element);
  return value;
}

static void assert_output(rondo_compiled *of, const char *name, const float *expected, size_t count) {
  float actual[16];
  assert_true(count <= 16);
  assert_ok(rondo_compiled_read(of, name, actual, count * sizeof *actual));
  assert_near(actual, expected, count, 1e-6f);
}

static void check_sequence(test_fixture *t, const rondo_onnx_build *build, rondo_program *program) {
  static const float first[] = {1, 2}, second[] = {3, 4, 5, 6}, joined[] = {1, 2, 3, 4, 5, 6},
                     doubled[] = {6, 8, 10, 12};
  rondo_compiled *compiled = test_compile_kept(program, t->device, NULL);
  assert_ok(rondo_compiled_write(compiled, "x[0]", first, sizeof first));
  assert_ok(rondo_compiled_write(compiled, "x[1]", second, sizeof second));
  assert_ok(rondo_compiled_run(compiled));
  assert_ok(rondo_compiled_synchronize(compiled));
  assert_output(compiled, output_of(build, 0, "joined", 0, 0).program_name, joined, 6);
  assert_output(compiled, output_of(build, 1, "doubled[0]", 1, 0).program_name, (const float[]){2, 4}, 2);
  assert_output(compiled, output_of(build, 2, "doubled[1]", 1, 1).program_name, doubled, 4);
}

TEST(test_on3_elements_of_a_sequence_are_inputs_and_outputs) {
  const rondo_onnx_given_input given[] = {{.name = "x[1]", SHAPE(2, 2)}, {.name = "x[0]", SHAPE(1, 2)}};
  const rondo_onnx_build_options options = {RONDO_ONNX_BUILD_OPTIONS_INIT, .inputs = given, .input_count = 2};
  rondo_program *program = test_new_program();
  rondo_onnx_build *build = built(sequence_model(), &options, program);
  rondo_onnx_built_value value = {.struct_size = sizeof value};
  for (size_t i = 0; i < 2; i++) {
    assert_ok(rondo_onnx_build_get_input(build, i, &value));
    assert_value(&value, i == 0 ? "x[0]" : "x[1]", 0, i);
    assert_int_equal(value.shape[0], i + 1);
  }
  assert_error(rondo_onnx_build_get_input(build, 2, &value), RONDO_NOT_FOUND, RONDO_REASON_OUT_OF_RANGE);
  check_sequence(t, build, program);
  value = output_of(build, 3, "length", 2, 0);
  assert_int_equal(value.type, RONDO_I64);
  assert_int_equal(*(const int64_t *)value.data, 2);
  assert_error(rondo_onnx_build_get_output(build, 4, &value), RONDO_NOT_FOUND, RONDO_REASON_OUT_OF_RANGE);
}

/* The number of elements is a dimension, and so are the sizes of elements that are not given. */
TEST(test_on3_the_length_of_a_sequence_is_a_dimension) {
  const rondo_onnx_dimension_size sizes[] = {{"x[]", 3}, {"batch", 2}};
  const rondo_onnx_given_input given = {.name = "x[1]", SHAPE(5, 2)};
  const rondo_onnx_build_options options = {RONDO_ONNX_BUILD_OPTIONS_INIT, .dimensions = sizes, .dimension_count = 2,
                                            .inputs = &given, .input_count = 1};
  rondo_onnx_build *build = built(sequence_model(), &options, test_new_program());
  const rondo_onnx_built_value joined = output_of(build, 0, "joined", 0, 0);
  assert_int_equal(joined.shape[0], 2 + 5 + 2);
  assert_int_equal(*(const int64_t *)output_of(build, 4, "length", 2, 0).data, 3);
}

/* A known element makes the program for its value. */
TEST(test_on3_the_value_of_an_element_is_given) {
  static const float first[] = {1, 2}, second[] = {3, 4};
  const rondo_onnx_given_input given[] = {{.name = "x[0]", SHAPE(1, 2), .data = first, .bytes = sizeof first},
                                          {.name = "x[1]", SHAPE(1, 2), .data = second, .bytes = sizeof second}};
  const rondo_onnx_build_options options = {RONDO_ONNX_BUILD_OPTIONS_INIT, .inputs = given, .input_count = 2};
  rondo_onnx_built_value value = {.struct_size = sizeof value};
  rondo_onnx_build *build = built(sequence_model(), &options, test_new_program());
  assert_ok(rondo_onnx_build_get_input(build, 1, &value));
  assert_false(value.is_frozen);
  assert_string_equal(value.program_name, "x[1]");
}

static void assert_refused(const rondo_onnx_model *model, const rondo_onnx_build_options *options, rondo_status status,
                           rondo_reason reason, const char *text) {
  rondo_onnx_build *build = (rondo_onnx_build *)1;
  assert_error(rondo_onnx_build_program(model, options, test_new_program(), &build), status, reason);
  assert_message(text);
  assert_null(build);
}

TEST(test_on3_sequences_that_are_not_given_rightly) {
  const rondo_onnx_model *model = sequence_model();
  rondo_onnx_dimension_size sizes[] = {{"x[]", 2}, {"batch", 2}};
  rondo_onnx_given_input given = {.name = "x", SHAPE(1, 2)};
  rondo_onnx_build_options options = {RONDO_ONNX_BUILD_OPTIONS_INIT, .inputs = &given};
  assert_refused(model, &options, RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE, "'x[0]', 'x[1]' and so on");
  options = (rondo_onnx_build_options){RONDO_ONNX_BUILD_OPTIONS_INIT, .inputs = &given, .input_count = 1,
                                       .dimensions = sizes, .dimension_count = 2};
  assert_refused(model, &options, RONDO_INVALID_ARGUMENT, RONDO_REASON_UNKNOWN_NAME, "give its elements");
  given.name = "x[2]";
  assert_refused(model, &options, RONDO_INVALID_ARGUMENT, RONDO_REASON_UNKNOWN_NAME, "no input 'x[2]'");
  given = (rondo_onnx_given_input){.name = "x[1]", SHAPE(1, 3)};
  assert_refused(model, &options, RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE, "the input 'x[1]' is given with size 3");
  options.input_count = 0;
  sizes[0].size = 100000;
  assert_refused(model, &options, RONDO_LIMIT_EXCEEDED, RONDO_REASON_OUT_OF_RANGE, "100000 elements");
}

/* Elements that are maps or sparse tensors make no list of tensors. */
TEST(test_on3_sequences_of_other_kinds) {
  enum { VALUE_NAME = 1, VALUE_TYPE = 2, ELEMENT = 1, KEY = 1, MAPPED = 2, SEQUENCE = 4, MAP = 5, SPARSE = 8 };
  static const int kinds[] = {MAP, SPARSE};
  for (size_t i = 0; i < 2; i++) {
    onnx_bytes tensor = {0}, of_tensor = {0}, inner = {0}, element = {0}, sequence = {0}, type = {0}, x = {0};
    onnx_bytes graph = {0};
    rondo_onnx_build *build = NULL;
    onnx_number(&tensor, ELEMENT, FLOAT);
    onnx_nest(&of_tensor, 1, &tensor);
    onnx_number(&inner, KEY, kinds[i] == MAP ? 7 : FLOAT);
    if (kinds[i] == MAP) onnx_nest(&inner, MAPPED, &of_tensor);
    onnx_nest(&element, (unsigned)kinds[i], &inner);
    onnx_nest(&sequence, ELEMENT, &element);
    onnx_nest(&type, SEQUENCE, &sequence);
    onnx_text(&x, VALUE_NAME, "x");
    onnx_nest(&x, VALUE_TYPE, &type);
    onnx_nest(&graph, ONNX_GRAPH_INPUT, &x);
    onnx_add_node(&graph, "SequenceLength", NAMES("x"), NAMES("length"));
    onnx_add_output(&graph, "length");
    assert_error(rondo_onnx_build_program(parsed(&graph), NULL, test_new_program(), &build), RONDO_UNSUPPORTED,
                 RONDO_REASON_NONE);
    assert_message("input 'x': it is no tensor ('sequence')");
    rondo_onnx_build_destroy(build);
  }
  (void)t;
}

static void assert_optional(onnx_list kind, const rondo_onnx_build_options *options, bool has, size_t elements,
                            const char *name) {
  rondo_onnx_build_info info = {.struct_size = sizeof info};
  rondo_onnx_build *build = built(optional_model(kind), options, test_new_program());
  assert_int_equal(*(const unsigned char *)output_of(build, 0, "has", 0, 0).data, has);
  assert_ok(rondo_onnx_build_get_info(build, &info));
  assert_int_equal(info.inputs, elements);
  assert_int_equal(info.outputs, 1 + elements);
  if (elements > 0) assert_string_equal(output_of(build, elements, name, 1, elements - 1).name, name);
}

TEST(test_on3_optionals_have_a_value_if_it_is_given) {
  const rondo_onnx_given_input tensor = {.name = "x"}, element = {.name = "x[1]"};
  const rondo_onnx_dimension_size none = {"x[]", 0};
  rondo_onnx_build_options options = {RONDO_ONNX_BUILD_OPTIONS_INIT, .inputs = &tensor, .input_count = 1};
  assert_optional(ONNX_OPTIONAL, NULL, false, 0, NULL);
  assert_optional(ONNX_OPTIONAL, &options, true, 1, "same");
  options.inputs = &element;
  assert_optional(ONNX_OPTIONAL_SEQUENCE, NULL, false, 0, NULL);
  assert_optional(ONNX_OPTIONAL_SEQUENCE, &options, true, 2, "same[1]");
  options = (rondo_onnx_build_options){RONDO_ONNX_BUILD_OPTIONS_INIT, .dimensions = &none, .dimension_count = 1};
  assert_optional(ONNX_OPTIONAL_SEQUENCE, &options, true, 0, NULL);
}

TEST(test_on3_what_sequences_hold_is_described) {
  rondo_onnx_value value = {.struct_size = sizeof value};
  assert_ok(rondo_onnx_get_input(optional_model(ONNX_OPTIONAL_SEQUENCE), 0, &value));
  assert_string_equal(value.type_name, "optional");
  assert_string_equal(value.element->type_name, "sequence");
  assert_string_equal(value.element->element->type_name, "float");
  assert_string_equal(value.element->element->name, "x");
  assert_int_equal(value.element->element->rank, 1);
  assert_null(value.element->element->element);
}

/* Trees and sessions ----------------------------------------------------------------------------------------------- */

static void destroy_builder(void *builder) { rondo_onnx_builder_destroy(builder); }

TEST(test_on9_elements_of_a_sequence_have_the_rows_of_a_session) {
  const rondo_onnx_dimension_size length = {"x[]", 2};
  const rondo_onnx_build_options build = {RONDO_ONNX_BUILD_OPTIONS_INIT, .dimensions = &length, .dimension_count = 1};
  const rondo_onnx_builder_options options = {RONDO_ONNX_BUILDER_OPTIONS_INIT, .build = &build};
  const size_t shape[] = {3, 2};
  rondo_onnx_builder *builder = NULL;
  rondo_program *program = test_new_program();
  assert_invalid(rondo_onnx_builder_create(sequence_model(), &options, &builder), RONDO_REASON_SHAPE);
  assert_message("the output 'length' is [] for 1 row and [] for 2 rows");
  assert_ok(rondo_onnx_builder_create(sequence_model_of(false), &options, &builder));
  (void)test_leave(destroy_builder, builder);
  assert_ok(rondo_onnx_builder_build(builder, 3, program));
  rondo_compiled *compiled = test_compile_kept(program, t->device, NULL);
  float elements[6] = {0};
  assert_ok(rondo_compiled_write(compiled, "x[1]", elements, shape[0] * shape[1] * sizeof *elements));
  assert_ok(rondo_compiled_run(compiled));
  assert_ok(rondo_compiled_synchronize(compiled));
}

/* Recorded, with elements of two shapes. The length is an output that is the same in each run. */
static void call_in_tree(test_fixture *t, rondo_function *function, rondo_onnx_runner *runner) {
  static const float x[] = {1, 2, 3, 4, 5, 6}, joined[] = {1, 2, 3, 4, 5, 6}, doubled[] = {6, 8, 10, 12};
  float actual[6];
  int64_t length = 0;
  void *memory;
  rondo_buffer *outputs[4];
  assert_ok(rondo_malloc(t->device, sizeof x, NULL, &memory));
  assert_ok(rondo_copy_async(t->stream, memory, x, sizeof x));
  const rondo_input inputs[] = {{.address = memory, .bytes = 8, .rank = 2, .shape = {1, 2}},
                                {.address = (char *)memory + 8, .bytes = 16, .rank = 2, .shape = {2, 2}}};
  assert_ok(rondo_function_call(function, t->stream, inputs, 2, outputs, 4));
  assert_ok(rondo_buffer_copy(outputs[0], t->stream, 0, actual, sizeof joined));
  assert_ok(rondo_onnx_runner_synchronize(runner));
  assert_near(actual, joined, 6, 1e-6f);
  assert_ok(rondo_buffer_copy(outputs[2], t->stream, 0, actual, sizeof doubled));
  assert_ok(rondo_buffer_copy(outputs[3], t->stream, 0, &length, sizeof length));
  assert_ok(rondo_onnx_runner_synchronize(runner));
  assert_near(actual, doubled, 4, 1e-6f);
  assert_int_equal(length, 2);
  for (size_t i = 0; i < 4; i++) rondo_buffer_release(outputs[i]);
  assert_ok(rondo_free(t->device, memory));
}

TEST(test_on9_elements_of_a_sequence_are_inputs_of_calls) {
  const rondo_onnx_dimension_size length = {"x[]", 2};
  const rondo_onnx_build_options build = {RONDO_ONNX_BUILD_OPTIONS_INIT, .dimensions = &length, .dimension_count = 1};
  const rondo_onnx_runner_options options = {RONDO_ONNX_RUNNER_OPTIONS_INIT, .build = &build};
  rondo_onnx_runner *runner = NULL;
  rondo_function *function = NULL;
  rondo_tree *tree = NULL;
  assert_ok(rondo_tree_create(t->device, NULL, &tree));
  assert_ok(rondo_onnx_runner_create(sequence_model(), t->stream, &options, &runner));
  const rondo_function_options of = {RONDO_FUNCTION_OPTIONS_INIT, .name = "model", .body = rondo_onnx_run,
                                     .user = runner, RONDO_INPUTS(RONDO_INPUT_MOVING, RONDO_INPUT_MOVING)};
  assert_ok(rondo_function_create(tree, &of, &function));
  for (size_t i = 0; i < 3; i++) call_in_tree(t, function, runner);
  assert_ok(rondo_tree_destroy(tree));
  assert_ok(rondo_onnx_runner_destroy(runner));
}

/* Inputs beside each other whose names are alike: an optional sequence y and a tensor "y[3]"; a sequence x of two and
 * an optional tensor "x[1]". Neither y nor "x[1]" has a value. */
static rondo_onnx_model *model_of_alike_names(bool has_list) {
  onnx_bytes graph = {0};
  if (has_list) {
    onnx_bytes concat = onnx_node("concat", "ConcatFromSequence", NAMES("x"), NAMES("z"));
    onnx_add_int(&concat, "axis", 0);
    onnx_add_list_input(&graph, "x", ONNX_SEQUENCE, FLOAT, DIMS(-1, 2));
    onnx_add_list_input(&graph, "x[1]", ONNX_OPTIONAL, FLOAT, DIMS(-1, 2));
    onnx_nest(&graph, ONNX_GRAPH_NODE, &concat);
  } else {
    onnx_add_list_input(&graph, "y", ONNX_OPTIONAL_SEQUENCE, FLOAT, DIMS(-1, 2));
    onnx_add_input(&graph, "y[3]", FLOAT, DIMS(-1, 2));
    onnx_add_node(&graph, "Relu", NAMES("y[3]"), NAMES("z"));
  }
  onnx_add_output(&graph, "z");
  return parsed(&graph);
}

/* A call has as many inputs in each build as the builder and the runner listed. */
static void run_alike(test_fixture *t, const rondo_onnx_model *model, const rondo_onnx_build_options *build) {
  const rondo_onnx_runner_options options = {RONDO_ONNX_RUNNER_OPTIONS_INIT, .build = build};
  rondo_onnx_runner *runner = NULL;
  rondo_function *function = NULL;
  rondo_tree *tree = NULL;
  rondo_buffer *output;
  void *memory;
  assert_ok(rondo_malloc(t->device, 8, NULL, &memory));
  const rondo_input inputs[] = {{.address = memory, .bytes = 8, .rank = 2, .shape = {1, 2}},
                                {.address = memory, .bytes = 8, .rank = 2, .shape = {1, 2}}};
  assert_ok(rondo_tree_create(t->device, NULL, &tree));
  assert_ok(rondo_onnx_runner_create(model, t->stream, &options, &runner));
  rondo_function_options of = {RONDO_FUNCTION_OPTIONS_INIT, .name = "model", .body = rondo_onnx_run, .user = runner,
                               RONDO_INPUTS(RONDO_INPUT_MOVING, RONDO_INPUT_MOVING)};
  of.input_count = build != NULL ? 2 : 1;
  assert_ok(rondo_function_create(tree, &of, &function));
  assert_ok(rondo_function_call(function, t->stream, inputs, of.input_count, &output, 1));
  assert_ok(rondo_onnx_runner_synchronize(runner));
  rondo_buffer_release(output);
  assert_ok(rondo_tree_destroy(tree));
  assert_ok(rondo_onnx_runner_destroy(runner));
  assert_ok(rondo_free(t->device, memory));
}

TEST(test_on9_inputs_with_names_of_elements_are_no_elements) {
  const rondo_onnx_dimension_size length = {"x[]", 2};
  const rondo_onnx_build_options build = {RONDO_ONNX_BUILD_OPTIONS_INIT, .dimensions = &length, .dimension_count = 1};
  for (int has_list = 0; has_list < 2; has_list++) {
    const rondo_onnx_model *model = model_of_alike_names(has_list);
    const rondo_onnx_builder_options options = {RONDO_ONNX_BUILDER_OPTIONS_INIT, .build = has_list ? &build : NULL};
    rondo_onnx_builder *builder = NULL;
    assert_ok(rondo_onnx_builder_create(model, &options, &builder));
    (void)test_leave(destroy_builder, builder);
    assert_ok(rondo_onnx_builder_build(builder, 3, test_new_program()));
    run_alike(t, model, options.build);
  }
}

/* Files ------------------------------------------------------------------------------------------------------------ */

enum { OF_ELEMENTS = 2, OF_TENSORS = 3, OF_SEQUENCE = 5 }; /* fields of sequences and optionals */

static void write_file(const char *path, const onnx_bytes *bytes) {
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(bytes->bytes, 1, bytes->count, file), bytes->count);
  assert_int_equal(fclose(file), 0);
}

/* The first element of element `index` of a file of an input of this kind. */
static float read_element(const char *path, onnx_list kind, size_t index) {
  rondo_onnx_value value = {.struct_size = sizeof value};
  rondo_onnx_tensor_info info = {.struct_size = sizeof info};
  rondo_onnx_tensor_file *file = NULL;
  assert_ok(rondo_onnx_get_input(optional_model(kind), 0, &value));
  assert_ok(rondo_onnx_tensor_load_element(path, &value, index, NULL, &file));
  assert_ok(rondo_onnx_tensor_get_info(file, &info));
  const float first = *(const float *)info.data;
  rondo_onnx_tensor_destroy(file);
  return first;
}

static void assert_unread(const char *path, onnx_list kind, size_t index, rondo_status status, rondo_reason reason) {
  rondo_onnx_value value = {.struct_size = sizeof value};
  rondo_onnx_tensor_file *file = (rondo_onnx_tensor_file *)1;
  assert_ok(rondo_onnx_get_input(optional_model(kind), 0, &value));
  assert_error(rondo_onnx_tensor_load_element(path, &value, index, NULL, &file), status, reason);
  assert_null(file);
}

static onnx_bytes sequence_of(float first, float second) {
  onnx_bytes sequence = {0};
  onnx_number(&sequence, OF_ELEMENTS, 1);
  for (size_t i = 0; i < 2; i++) {
    onnx_bytes tensor = onnx_tensor("", FLOAT, DIMS(1));
    onnx_data(&tensor, ONNX_TENSOR_RAW, i == 0 ? &first : &second, sizeof first);
    onnx_nest(&sequence, OF_TENSORS, &tensor);
  }
  return sequence;
}

static void check_files(const char *path) {
  const onnx_bytes sequence = sequence_of(7, 8);
  onnx_bytes whole = {0}, empty = {0}, nested = {0}, cut = sequence;
  onnx_nest(&whole, OF_SEQUENCE, &sequence);
  onnx_number(&nested, OF_ELEMENTS, 3);
  cut.count--;
  write_file(path, &sequence);
  assert_true(read_element(path, ONNX_SEQUENCE, 0) == 7 && read_element(path, ONNX_SEQUENCE, 1) == 8);
  assert_unread(path, ONNX_SEQUENCE, 2, RONDO_NOT_FOUND, RONDO_REASON_OUT_OF_RANGE);
  write_file(path, &whole);
  assert_true(read_element(path, ONNX_OPTIONAL_SEQUENCE, 1) == 8);
  write_file(path, &empty);
  assert_unread(path, ONNX_OPTIONAL, 0, RONDO_NOT_FOUND, RONDO_REASON_OUT_OF_RANGE);
  write_file(path, &nested);
  assert_unread(path, ONNX_SEQUENCE, 0, RONDO_UNSUPPORTED, RONDO_REASON_TYPE);
  write_file(path, &cut);
  assert_unread(path, ONNX_SEQUENCE, 0, RONDO_INVALID_DATA, RONDO_REASON_TRUNCATED);
}

TEST(test_on7_elements_of_sequences_are_read_from_files) {
  char folder[] = "/tmp/rondo-sequences-XXXXXX", path[64];
  (void)t;
  assert_non_null(mkdtemp(folder));
  (void)snprintf(path, sizeof path, "%s/input_0.pb", folder);
  check_files(path);
  assert_int_equal(unlink(path), 0);
  assert_unread(path, ONNX_SEQUENCE, 0, RONDO_NOT_FOUND, RONDO_REASON_NONE);
  assert_int_equal(rmdir(folder), 0);
}
