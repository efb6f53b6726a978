/* SPDX-License-Identifier: MIT
 * Models in ONNX files, as they are loaded (ON-1), and files that are refused with the reason and the name of what is
 * wrong (ON-10). A refusal leaks nothing, also when memory runs out. With Debian's libonnx-testdata, all of its models
 * are read.
 */
#define _POSIX_C_SOURCE 200809L
#include <rondo/onnx.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "onnx/format/onnx_model.h"
#include "support/rondo_test.h"
#include "support/test_onnx.h"

static const int64_t two_by_three[] = {2, 3};

static rondo_onnx_model *parsed(const onnx_bytes *bytes) {
  rondo_onnx_model *model = NULL;
  assert_ok(rondo_onnx_parse(bytes->bytes, bytes->count, NULL, &model));
  return model;
}

static void assert_refused(const onnx_bytes *bytes, rondo_status status, rondo_reason reason, const char *text) {
  rondo_onnx_model *model = (rondo_onnx_model *)1;
  assert_error(rondo_onnx_parse(bytes->bytes, bytes->count, NULL, &model), status, reason);
  assert_message(text);
  assert_null(model);
}

/* y = x w, with x [batch, 2] and w [2, 3], whose elements are raw. */
static onnx_bytes product_graph(void) {
  static const int64_t batch_by_two[] = {-1, 2}, batch_by_three[] = {-1, 3};
  static const float elements[] = {1, 2, 3, 4, 5, 6};
  onnx_bytes graph = {0};
  onnx_bytes w = onnx_tensor("w", RONDO_ONNX_FLOAT, two_by_three, 2);
  onnx_data(&w, ONNX_TENSOR_RAW, elements, sizeof elements);
  const onnx_bytes node = onnx_node("product", "MatMul", (const char *[]){"x", "w", NULL}, (const char *[]){"y", NULL});
  const onnx_bytes x = onnx_value("x", RONDO_ONNX_FLOAT, batch_by_two, 2);
  const onnx_bytes y = onnx_value("y", RONDO_ONNX_FLOAT, batch_by_three, 2);
  onnx_nest(&graph, ONNX_GRAPH_NODE, &node);
  onnx_text(&graph, ONNX_GRAPH_NAME, "main");
  onnx_nest(&graph, ONNX_GRAPH_INITIALIZER, &w);
  onnx_nest(&graph, ONNX_GRAPH_INPUT, &x);
  onnx_nest(&graph, ONNX_GRAPH_OUTPUT, &y);
  return graph;
}

static onnx_bytes product_model(void) {
  const onnx_bytes graph = product_graph();
  return onnx_model(&graph);
}

/* A graph with one node more than product_graph. */
static onnx_bytes model_with_node(const onnx_bytes *node) {
  onnx_bytes graph = product_graph();
  onnx_nest(&graph, ONNX_GRAPH_NODE, node);
  return onnx_model(&graph);
}

static onnx_bytes model_with_tensor(const onnx_bytes *tensor) {
  onnx_bytes graph = product_graph();
  onnx_nest(&graph, ONNX_GRAPH_INITIALIZER, tensor);
  return onnx_model(&graph);
}

/* What a model says ------------------------------------------------------------------------------------------------ */

UNIT_TEST(test_on1_inputs_outputs_and_sizes) {
  const onnx_bytes bytes = product_model();
  rondo_onnx_model *model = parsed(&bytes);
  rondo_onnx_value value = {.struct_size = sizeof value};
  rondo_onnx_info info = {.struct_size = sizeof info};
  rondo_onnx_operator operator= {.struct_size = sizeof operator};
  assert_ok(rondo_onnx_get_info(model, &info));
  assert_int_equal(info.ir_version, 8);
  assert_int_equal(info.opset, 17);
  assert_string_equal(info.graph_name, "main");
  assert_string_equal(info.producer_name, "a test");
  assert_string_equal(info.producer_version, "");
  assert_int_equal(info.inputs, 1);
  assert_int_equal(info.outputs, 1);
  assert_int_equal(info.nodes, 1);
  assert_int_equal(info.initializers, 1);
  assert_int_equal(info.parameters, 6);
  assert_int_equal(info.weight_bytes, 24);
  assert_ok(rondo_onnx_get_input(model, 0, &value));
  assert_string_equal(value.name, "x");
  assert_string_equal(value.type_name, "float");
  assert_true(value.has_type && value.has_shape && value.type == RONDO_F32 && value.rank == 2);
  assert_true(value.dimensions[0].is_dynamic && !value.dimensions[1].is_dynamic);
  assert_string_equal(value.dimensions[0].name, "batch");
  assert_int_equal(value.dimensions[1].size, 2);
  assert_error(rondo_onnx_get_input(model, 1, &value), RONDO_NOT_FOUND, RONDO_REASON_OUT_OF_RANGE);
  assert_ok(rondo_onnx_get_output(model, 0, &value));
  assert_string_equal(value.name, "y");
  assert_error(rondo_onnx_get_output(model, 1, &value), RONDO_NOT_FOUND, RONDO_REASON_OUT_OF_RANGE);
  assert_ok(rondo_onnx_get_operator(model, 0, &operator));
  assert_string_equal(operator.name, "MatMul");
  assert_string_equal(operator.domain, "");
  assert_int_equal(operator.nodes, 1);
  assert_error(rondo_onnx_get_operator(model, 1, &operator), RONDO_NOT_FOUND, RONDO_REASON_OUT_OF_RANGE);
  rondo_onnx_destroy(model);
  rondo_onnx_destroy(NULL);
}

/* IR version 3 lists initializers as inputs too. Fields that Rondo does not read may have any content. */
UNIT_TEST(test_on1_what_older_and_newer_files_have) {
  onnx_bytes graph = product_graph();
  const onnx_bytes w = onnx_value("w", RONDO_ONNX_FLOAT, two_by_three, 2);
  onnx_nest(&graph, ONNX_GRAPH_INPUT, &w);
  onnx_text(&graph, 10, "line\nof a documentation");
  onnx_data(&graph, 900, "\xff\xff", 2);
  const onnx_bytes bytes = onnx_model(&graph);
  rondo_onnx_model *model = parsed(&bytes);
  rondo_onnx_info info = {.struct_size = sizeof info};
  assert_ok(rondo_onnx_get_info(model, &info));
  assert_int_equal(info.inputs, 1);
  rondo_onnx_destroy(model);
}

/* Tensors ---------------------------------------------------------------------------------------------------------- */

static rondo_onnx_tensor read_initializer(rondo_onnx_model *model, size_t index) {
  rondo_onnx_tensor tensor;
  const rondo_onnx_data_source source = rondo_onnx_data_of(model);
  assert_ok(rondo_onnx_read_tensor(&source, model->message->graph->initializer[index], &tensor));
  return tensor;
}

/* Elements that a message lists as 32-bit numbers have the size of their type. */
UNIT_TEST(test_on1_listed_elements) {
  static const struct {
    int type;
    uint8_t elements[8];
    size_t bytes;
  } cases[] = {
      {RONDO_ONNX_INT32, {1, 0, 0, 0, 2, 0, 0, 0}, 8},
      {RONDO_ONNX_FLOAT16, {1, 0, 2, 0}, 4},
      {RONDO_ONNX_BFLOAT16, {1, 0, 2, 0}, 4},
      {RONDO_ONNX_UINT8, {1, 2}, 2},
      {RONDO_ONNX_INT8, {1, 2}, 2},
      {RONDO_ONNX_BOOL, {1, 2}, 2},
      {RONDO_ONNX_FLOAT8E5M2, {1, 2}, 2},
  };
  const int64_t two = 2;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    onnx_bytes tensor = onnx_tensor("t", cases[i].type, &two, 1);
    onnx_number(&tensor, ONNX_TENSOR_INTS, 1);
    onnx_number(&tensor, ONNX_TENSOR_INTS, 2);
    const onnx_bytes bytes = model_with_tensor(&tensor);
    rondo_onnx_model *model = parsed(&bytes);
    const rondo_onnx_tensor read = read_initializer(model, 1);
    assert_int_equal(read.count, 2);
    assert_int_equal(read.bytes, cases[i].bytes);
    assert_memory_equal(read.elements, cases[i].elements, read.bytes);
    rondo_onnx_destroy(model);
  }
}

/* Two elements of four bits share a byte. */
UNIT_TEST(test_on1_elements_of_four_bits) {
  const int64_t three = 3;
  onnx_bytes tensor = onnx_tensor("t", RONDO_ONNX_INT4, &three, 1);
  onnx_data(&tensor, ONNX_TENSOR_RAW, "\x21\x03", 2);
  const onnx_bytes bytes = model_with_tensor(&tensor);
  rondo_onnx_model *model = parsed(&bytes);
  const rondo_onnx_tensor read = read_initializer(model, 1);
  assert_int_equal(read.count, 3);
  assert_int_equal(read.bytes, 2);
  rondo_onnx_destroy(model);
}

UNIT_TEST(test_on10_tensors_that_are_refused) {
  static const int64_t negative[] = {2, -1}, huge[] = {INT64_MAX, INT64_MAX}, three[] = {3};
  static const struct {
    const char *text;
    int type;
    const int64_t *dims;
    size_t rank, raw_bytes;
    rondo_status status;
    rondo_reason reason;
  } cases[] = {
      {"the tensor 't': its dimension 1 is -1", RONDO_ONNX_FLOAT, negative, 2, 8, RONDO_INVALID_DATA,
       RONDO_REASON_SHAPE},
      {"more elements than the address space holds", RONDO_ONNX_FLOAT, huge, 2, 8, RONDO_LIMIT_EXCEEDED,
       RONDO_REASON_SHAPE},
      {"do not fit into the address space", RONDO_ONNX_DOUBLE, huge, 1, 8, RONDO_LIMIT_EXCEEDED, RONDO_REASON_SHAPE},
      {"it has 8 bytes of elements, its type and shape 12", RONDO_ONNX_FLOAT, three, 1, 8, RONDO_INVALID_DATA,
       RONDO_REASON_BAD_SIZE},
      {"its type has the number 99", 99, three, 1, 8, RONDO_UNSUPPORTED, RONDO_REASON_TYPE},
      {"its strings are not a list of strings", RONDO_ONNX_STRING, three, 1, 8, RONDO_INVALID_DATA,
       RONDO_REASON_MALFORMED},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    onnx_bytes tensor = onnx_tensor("t", cases[i].type, cases[i].dims, cases[i].rank);
    onnx_data(&tensor, ONNX_TENSOR_RAW, "01234567", cases[i].raw_bytes);
    const onnx_bytes bytes = model_with_tensor(&tensor);
    assert_refused(&bytes, cases[i].status, cases[i].reason, cases[i].text);
  }
}

UNIT_TEST(test_on10_lists_of_another_length) {
  const int64_t three = 3;
  onnx_bytes tensor = onnx_tensor("t", RONDO_ONNX_INT32, &three, 1);
  onnx_number(&tensor, ONNX_TENSOR_INTS, 1);
  const onnx_bytes bytes = model_with_tensor(&tensor);
  assert_refused(&bytes, RONDO_INVALID_DATA, RONDO_REASON_BAD_SIZE,
                 "it lists 1 elements, its type 'int32' and shape need 3");
}

/* External data ---------------------------------------------------------------------------------------------------- */

static char folder[] = "/tmp/rondo-onnx-XXXXXX";
static char model_path[sizeof folder + 32], data_path[sizeof folder + 32];

static int make_folder(void **state) {
  (void)state;
  if (mkdtemp(folder) == NULL) return -1;
  (void)snprintf(model_path, sizeof model_path, "%s/model.onnx", folder);
  (void)snprintf(data_path, sizeof data_path, "%s/weights.bin", folder);
  return 0;
}

static int remove_folder(void **state) {
  (void)state;
  (void)unlink(model_path);
  (void)unlink(data_path);
  return rmdir(folder);
}

static void write_file(const char *path, const void *bytes, size_t count) {
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(bytes, 1, count, file), count);
  assert_int_equal(fclose(file), 0);
}

static void add_pair(onnx_bytes *tensor, const char *key, const char *value) {
  onnx_bytes pair = {0};
  onnx_text(&pair, 1, key);
  onnx_text(&pair, 2, value);
  onnx_nest(tensor, ONNX_TENSOR_EXTERNAL, &pair);
}

/* A tensor of four bytes in an external file; NULL: the entry is left out. */
static onnx_bytes external_model(const char *location, const char *offset, const char *length) {
  const int64_t four = 4;
  onnx_bytes tensor = onnx_tensor("t", RONDO_ONNX_UINT8, &four, 1);
  if (location != NULL) add_pair(&tensor, "location", location);
  if (offset != NULL) add_pair(&tensor, "offset", offset);
  if (length != NULL) add_pair(&tensor, "length", length);
  add_pair(&tensor, "checksum", "which nobody compares");
  onnx_number(&tensor, ONNX_TENSOR_LOCATION, 1);
  return model_with_tensor(&tensor);
}

UNIT_TEST(test_on1_external_data_are_mapped) {
  static const struct {
    const char *location, *offset, *length, *elements;
  } cases[] = {{"weights.bin", "2", "4", "2345"}, {"./weights.bin", "6", NULL, "6789"}};
  write_file(data_path, "0123456789", 10);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const onnx_bytes bytes = external_model(cases[i].location, cases[i].offset, cases[i].length);
    rondo_onnx_model *model = NULL;
    write_file(model_path, bytes.bytes, bytes.count);
    assert_ok(rondo_onnx_load(model_path, NULL, &model));
    assert_memory_equal(read_initializer(model, 1).elements, cases[i].elements, 4);
    rondo_onnx_destroy(model);
    const rondo_onnx_options options = {RONDO_ONNX_OPTIONS_INIT, .folder = folder};
    assert_ok(rondo_onnx_parse(bytes.bytes, bytes.count, &options, &model));
    assert_memory_equal(read_initializer(model, 1).elements, cases[i].elements, 4);
    rondo_onnx_destroy(model);
  }
}

/* A file of 5 GiB, of which only the last bytes take room. */
UNIT_TEST(test_on1_external_data_beyond_4_gib) {
  const off_t at = (off_t)5 << 30;
  const onnx_bytes bytes = external_model("weights.bin", "5368709120", "4");
  rondo_onnx_model *model = NULL;
  write_file(model_path, bytes.bytes, bytes.count);
  FILE *file = fopen(data_path, "wb");
  assert_non_null(file);
  if (ftruncate(fileno(file), at) != 0) { /* a file system without such files */
    (void)fclose(file);
    skip();
  }
  assert_int_equal(fseeko(file, at, SEEK_SET), 0);
  assert_int_equal(fwrite("2345", 1, 4, file), 4);
  assert_int_equal(fclose(file), 0);
  assert_ok(rondo_onnx_load(model_path, NULL, &model));
  assert_memory_equal(read_initializer(model, 1).elements, "2345", 4);
  rondo_onnx_destroy(model);
  write_file(data_path, "", 0);
}

UNIT_TEST(test_on10_external_data_that_are_refused) {
  static const struct {
    const char *location, *offset, *length, *text;
    rondo_status status;
    rondo_reason reason;
  } cases[] = {
      {"../weights.bin", NULL, NULL, "outside of the model's folder", RONDO_INVALID_DATA, RONDO_REASON_MALFORMED},
      {"a/../../weights.bin", NULL, NULL, "outside of the model's folder", RONDO_INVALID_DATA, RONDO_REASON_MALFORMED},
      {"/etc/passwd", NULL, NULL, "outside of the model's folder", RONDO_INVALID_DATA, RONDO_REASON_MALFORMED},
      {NULL, NULL, NULL, "no location", RONDO_INVALID_DATA, RONDO_REASON_MALFORMED},
      {"weights.bin", "-1", NULL, "the offset '-1', which is not a number", RONDO_INVALID_DATA, RONDO_REASON_MALFORMED},
      {"weights.bin", "0", "99999999999999999999999", "which is not a number", RONDO_INVALID_DATA,
       RONDO_REASON_MALFORMED},
      {"weights.bin", "8", "4", "4 bytes from byte 8 on", RONDO_INVALID_DATA, RONDO_REASON_TRUNCATED},
      {"weights.bin", "18446744073709551615", "4", "which has 10 bytes", RONDO_INVALID_DATA, RONDO_REASON_TRUNCATED},
      {"weights.bin", "0", "5", "5 bytes of elements", RONDO_INVALID_DATA, RONDO_REASON_BAD_SIZE},
      {"missing.bin", "0", "4", "missing.bin", RONDO_NOT_FOUND, RONDO_REASON_NONE},
  };
  write_file(data_path, "0123456789", 10);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const onnx_bytes bytes = external_model(cases[i].location, cases[i].offset, cases[i].length);
    rondo_onnx_model *model = NULL;
    write_file(model_path, bytes.bytes, bytes.count);
    assert_error(rondo_onnx_load(model_path, NULL, &model), cases[i].status, cases[i].reason);
    assert_message(cases[i].text);
    assert_message("the tensor 't'");
  }
  const onnx_bytes bytes = external_model("weights.bin", NULL, NULL);
  assert_refused(&bytes, RONDO_UNSUPPORTED, RONDO_REASON_NONE, "load the model from its file, or give its folder");
}

/* Graphs ----------------------------------------------------------------------------------------------------------- */

static onnx_bytes relu(const char *name, const char *input, const char *output) {
  return onnx_node(name, "Relu", (const char *[]){input, NULL}, (const char *[]){output, NULL});
}

UNIT_TEST(test_on10_graphs_that_are_refused) {
  const onnx_bytes later = relu("early", "z", "v"), twice = relu("again", "x", "y"), loop = relu("self", "u", "u");
  const onnx_bytes unknown = relu("", "nothing", "v"), none = relu("none", "x", "");
  const onnx_bytes no_operator = onnx_node("idle", "", (const char *[]){NULL}, (const char *[]){NULL});
  onnx_bytes graph = product_graph(), model = model_with_node(&unknown);
  assert_refused(&model, RONDO_INVALID_DATA, RONDO_REASON_UNKNOWN_NAME,
                 "graph 'main': node 1 (Relu): it uses 'nothing'");
  model = model_with_node(&twice);
  assert_refused(&model, RONDO_INVALID_DATA, RONDO_REASON_DUPLICATE_NAME, "node 'again' (Relu): its output 'y'");
  model = model_with_node(&loop);
  assert_refused(&model, RONDO_INVALID_DATA, RONDO_REASON_CYCLE,
                 "node 'self' (Relu): it uses 'u', which it or a later");
  model = model_with_node(&no_operator);
  assert_refused(&model, RONDO_INVALID_DATA, RONDO_REASON_MALFORMED, "it has no operator");
  onnx_nest(&graph, ONNX_GRAPH_NODE, &later);
  const onnx_bytes last = relu("last", "x", "z");
  onnx_nest(&graph, ONNX_GRAPH_NODE, &last);
  model = onnx_model(&graph);
  assert_refused(&model, RONDO_INVALID_DATA, RONDO_REASON_CYCLE, "node 'early' (Relu): it uses 'z'");
  model = model_with_node(&none); /* an output that nobody wants */
  rondo_onnx_destroy(parsed(&model));
}

UNIT_TEST(test_on10_outputs_that_nothing_computes) {
  onnx_bytes graph = product_graph();
  const onnx_bytes missing = onnx_value("missing", RONDO_ONNX_FLOAT, two_by_three, 2);
  onnx_nest(&graph, ONNX_GRAPH_OUTPUT, &missing);
  const onnx_bytes model = onnx_model(&graph);
  assert_refused(&model, RONDO_INVALID_DATA, RONDO_REASON_UNKNOWN_NAME, "no node computes the output 'missing'");
}

static onnx_bytes attribute(const char *name, unsigned type) {
  onnx_bytes bytes = {0};
  onnx_text(&bytes, 1, name);
  onnx_number(&bytes, 20, type);
  return bytes;
}

UNIT_TEST(test_on10_attributes_that_are_refused) {
  const onnx_bytes axis = attribute("axis", 2), value = attribute("value", 4), odd = attribute("odd", 77);
  onnx_bytes node = relu("r", "x", "v"), reference = attribute("alpha", 1);
  onnx_nest(&node, ONNX_NODE_ATTRIBUTE, &axis);
  onnx_nest(&node, ONNX_NODE_ATTRIBUTE, &axis);
  onnx_bytes model = model_with_node(&node);
  assert_refused(&model, RONDO_INVALID_DATA, RONDO_REASON_DUPLICATE_NAME, "it has two attributes 'axis'");
  node = relu("r", "x", "v");
  onnx_nest(&node, ONNX_NODE_ATTRIBUTE, &value);
  model = model_with_node(&node);
  assert_refused(&model, RONDO_INVALID_DATA, RONDO_REASON_MALFORMED,
                 "node 'r' (Relu): attribute 'value': it has no value of its type");
  node = relu("r", "x", "v");
  onnx_nest(&node, ONNX_NODE_ATTRIBUTE, &odd);
  model = model_with_node(&node);
  assert_refused(&model, RONDO_UNSUPPORTED, RONDO_REASON_TYPE, "its type has the number 77");
  node = relu("r", "x", "v");
  onnx_text(&reference, 21, "slope");
  onnx_nest(&node, ONNX_NODE_ATTRIBUTE, &reference);
  model = model_with_node(&node);
  assert_refused(&model, RONDO_INVALID_DATA, RONDO_REASON_MALFORMED, "it refers to the attribute 'slope'");
}

/* A graph in an attribute sees the values of the graph around it, and may hide their names. */
UNIT_TEST(test_on1_graphs_in_attributes) {
  const onnx_bytes hides = relu("inner", "x", "y"), uses = relu("inner", "inside", "out");
  onnx_bytes inner = {0}, node = relu("branch", "x", "v"), then = attribute("then_branch", 5);
  onnx_nest(&inner, ONNX_GRAPH_NODE, &hides);
  onnx_nest(&then, 6, &inner);
  onnx_nest(&node, ONNX_NODE_ATTRIBUTE, &then);
  onnx_bytes model = model_with_node(&node);
  rondo_onnx_info info = {.struct_size = sizeof info};
  rondo_onnx_model *made = parsed(&model);
  assert_ok(rondo_onnx_get_info(made, &info));
  assert_int_equal(info.nodes, 3);
  rondo_onnx_destroy(made);
  onnx_nest(&inner, ONNX_GRAPH_NODE, &uses);
  then = attribute("then_branch", 5);
  onnx_nest(&then, 6, &inner);
  node = relu("branch", "x", "v");
  onnx_nest(&node, ONNX_NODE_ATTRIBUTE, &then);
  model = model_with_node(&node);
  assert_refused(&model, RONDO_INVALID_DATA, RONDO_REASON_UNKNOWN_NAME,
                 "node 'branch' (Relu): graph 'then_branch': node 'inner' (Relu): it uses 'inside'");
}

/* A graph in an attribute of a node of a graph, and so on. */
static onnx_bytes nested_graph(unsigned depth) {
  onnx_bytes graph = {0}, node = onnx_node("n", "If", (const char *[]){NULL}, (const char *[]){NULL});
  if (depth == 0) return graph;
  onnx_bytes branch = attribute("then_branch", 5);
  const onnx_bytes inner = nested_graph(depth - 1);
  onnx_nest(&branch, 6, &inner);
  onnx_nest(&node, ONNX_NODE_ATTRIBUTE, &branch);
  onnx_nest(&graph, ONNX_GRAPH_NODE, &node);
  return graph;
}

UNIT_TEST(test_on10_graphs_that_are_nested_deep) {
  onnx_bytes graph = nested_graph(31);
  onnx_bytes model = onnx_model(&graph);
  rondo_onnx_destroy(parsed(&model));
  graph = nested_graph(40);
  model = onnx_model(&graph);
  assert_refused(&model, RONDO_LIMIT_EXCEEDED, RONDO_REASON_OUT_OF_RANGE, "messages are nested more than 96 deep");
}

/* Functions -------------------------------------------------------------------------------------------------------- */

static onnx_bytes function(const char *name, const char *called) {
  onnx_bytes bytes = {0};
  const onnx_bytes node = onnx_node("call", called, (const char *[]){"a", NULL}, (const char *[]){"b", NULL});
  onnx_text(&bytes, 1, name);
  onnx_text(&bytes, 4, "a");
  onnx_text(&bytes, 5, "b");
  onnx_nest(&bytes, 7, &node);
  return bytes;
}

/* Defaults of a function's attributes are checked like attributes of nodes. */
UNIT_TEST(test_on10_defaults_of_functions) {
  onnx_bytes model = product_model(), of = function("First", "Relu");
  const onnx_bytes tensor = attribute("value", 4);
  onnx_nest(&of, 11, &tensor);
  onnx_nest(&model, ONNX_MODEL_FUNCTION, &of);
  assert_refused(&model, RONDO_INVALID_DATA, RONDO_REASON_MALFORMED, "it has no value of its type");
}

UNIT_TEST(test_on10_functions_that_call_each_other) {
  onnx_bytes model = product_model();
  const onnx_bytes first = function("First", "Second"), second = function("Second", "Relu");
  const onnx_bytes circle = function("Second", "First");
  onnx_nest(&model, ONNX_MODEL_FUNCTION, &first);
  onnx_bytes broken = model;
  onnx_nest(&model, ONNX_MODEL_FUNCTION, &second);
  onnx_nest(&broken, ONNX_MODEL_FUNCTION, &circle);
  rondo_onnx_operator operator= {.struct_size = sizeof operator};
  rondo_onnx_model *made = parsed(&model);
  assert_ok(rondo_onnx_get_operator(made, 1, &operator)); /* MatMul, Relu: calls of functions are no operators */
  assert_string_equal(operator.name, "Relu");
  rondo_onnx_destroy(made);
  assert_refused(&broken, RONDO_INVALID_DATA, RONDO_REASON_CYCLE, "the function 'First' calls itself");
}

UNIT_TEST(test_on10_functions_of_one_name) {
  onnx_bytes model = product_model();
  static const char *const names[] = {"Twice", "Once", "Twice"};
  for (size_t i = 0; i < 3; i++) {
    const onnx_bytes of = function(names[i], "Relu");
    onnx_nest(&model, ONNX_MODEL_FUNCTION, &of);
    if (i == 1) rondo_onnx_destroy(parsed(&model));
  }
  assert_refused(&model, RONDO_INVALID_DATA, RONDO_REASON_DUPLICATE_NAME, "the model has two functions 'Twice'");
}

UNIT_TEST(test_on10_a_node_with_many_attributes) {
  onnx_bytes graph = product_graph(),
             node = onnx_node("odd", "Relu", (const char *[]){"x", NULL}, (const char *[]){"z", NULL});
  for (int i = 0; i < 65; i++) {
    char name[16];
    (void)snprintf(name, sizeof name, "a%d", i);
    onnx_add_int(&node, name, i);
  }
  onnx_nest(&graph, ONNX_GRAPH_NODE, &node);
  const onnx_bytes model = onnx_model(&graph);
  assert_refused(&model, RONDO_LIMIT_EXCEEDED, RONDO_REASON_OUT_OF_RANGE, "it has 65 attributes, more than 64");
}

/* Bytes ------------------------------------------------------------------------------------------------------------ */

/* A file that was cut anywhere is refused, or lacks whole fields at its end. */
UNIT_TEST(test_on10_truncated_files) {
  const onnx_bytes whole = product_model();
  for (size_t count = 0; count < whole.count; count++) {
    rondo_onnx_model *model = NULL;
    const rondo_status status = rondo_onnx_parse(whole.bytes, count, NULL, &model);
    assert_true(status == RONDO_INVALID_DATA || status == RONDO_UNSUPPORTED);
    assert_null(model);
  }
}

static void assert_bytes_refused(const char *bytes, size_t count, rondo_status status, const char *text) {
  rondo_onnx_model *model = NULL;
  assert_int_equal(rondo_onnx_parse(bytes, count, NULL, &model), status);
  assert_message(text);
  assert_null(model);
}

UNIT_TEST(test_on10_bytes_that_are_no_model) {
  assert_bytes_refused("", 0, RONDO_UNSUPPORTED, "the IR version is 0; Rondo reads 3 to 14");
  assert_bytes_refused("\x08\x0e", 2, RONDO_INVALID_DATA, "there is no graph");
  assert_bytes_refused("\x08\x0f", 2, RONDO_UNSUPPORTED, "the IR version is 15");
  assert_bytes_refused("\x08\x63", 2, RONDO_UNSUPPORTED, "the IR version is 99");
  assert_bytes_refused("\x08\x08", 2, RONDO_INVALID_DATA, "there is no graph");
  assert_bytes_refused("\x08\x08\x3a\x00", 4, RONDO_INVALID_DATA, "which operator set");
  assert_bytes_refused("\x0b", 1, RONDO_INVALID_DATA, "byte 0, in a message 'Model': a field has an unknown encoding");
  assert_bytes_refused("\x00", 1, RONDO_INVALID_DATA, "a field has no valid number");
  assert_bytes_refused("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 11, RONDO_INVALID_DATA, "more than 64 bits");
  assert_bytes_refused("\x12\x05\x61", 3, RONDO_INVALID_DATA, "a field is longer than its message");
  assert_bytes_refused("\x12\x01\xff", 3, RONDO_INVALID_DATA,
                       "field 'producer_name' of a message 'Model': the text is not UTF-8");
  assert_bytes_refused("\x12\x02\x61\x00", 4, RONDO_INVALID_DATA, "control character");
  assert_bytes_refused("\x12\x02\xc2\x9b", 4, RONDO_INVALID_DATA, "control character");
  assert_bytes_refused("\x08\x08\x12\x02\xc2\xa0", 6, RONDO_INVALID_DATA, "there is no graph");
  assert_bytes_refused("\x10\x01", 2, RONDO_INVALID_DATA, "the encoding is that of another type");
  assert_bytes_refused("\x3a\x02\x0a\x00\x3a\x02\x0a\x00", 8, RONDO_INVALID_DATA,
                       "byte 4, field 'graph' of a message 'Model': the field is there twice");
}

/* The parts of a message that is there N times would be merged N times, each time in new memory. */
ALLOCATOR_TEST(test_on10_a_field_that_is_repeated_takes_no_memory) {
  enum { TIMES = 20000, EACH = 4 };
  uint8_t *bytes = malloc(TIMES * EACH);
  const rondo_onnx_options options = {RONDO_ONNX_OPTIONS_INIT, .allocator = &counting->table};
  rondo_onnx_model *model = NULL;
  assert_non_null(bytes);
  for (size_t i = 0; i < TIMES; i++) memcpy(bytes + i * EACH, "\x3a\x02\x0a\x00", EACH);
  assert_int_equal(rondo_onnx_parse(bytes, TIMES * EACH, &options, &model), RONDO_INVALID_DATA);
  assert_true(counting->calls < 100);
  free(bytes);
}

UNIT_TEST(test_on10_wrong_arguments) {
  rondo_onnx_model *model = (rondo_onnx_model *)1;
  rondo_onnx_info info;
  const rondo_onnx_options unknown = {.struct_size = 3};
  assert_error(rondo_onnx_load(NULL, NULL, &model), RONDO_INVALID_ARGUMENT, RONDO_REASON_NULL_ARGUMENT);
  assert_null(model);
  assert_error(rondo_onnx_load("/nonexistent/model.onnx", NULL, NULL), RONDO_INVALID_ARGUMENT,
               RONDO_REASON_NULL_ARGUMENT);
  assert_int_equal(rondo_onnx_load("/nonexistent/model.onnx", NULL, &model), RONDO_NOT_FOUND);
  assert_message("the ONNX model '/nonexistent/model.onnx'");
  assert_error(rondo_onnx_parse(NULL, 1, NULL, &model), RONDO_INVALID_ARGUMENT, RONDO_REASON_NULL_ARGUMENT);
  assert_error(rondo_onnx_parse("", 0, &unknown, &model), RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS);
  assert_error(rondo_onnx_get_info(NULL, &info), RONDO_INVALID_ARGUMENT, RONDO_REASON_NULL_ARGUMENT);
}

/* Loading a model checks elements that the message has in another type, and keeps no copies of them. */
ALLOCATOR_TEST(test_on1_a_model_keeps_no_copies_of_elements) {
  static const int types[] = {RONDO_ONNX_INT32, RONDO_ONNX_INT8};
  const rondo_onnx_options options = {RONDO_ONNX_OPTIONS_INIT, .allocator = &counting->table};
  size_t live[2];
  for (size_t i = 0; i < 2; i++) {
    const int64_t count = 1000;
    onnx_bytes graph = {0}, tensor = onnx_tensor("t", types[i], &count, 1);
    rondo_onnx_model *model = NULL;
    for (int64_t k = 0; k < count; k++) onnx_number(&tensor, ONNX_TENSOR_INTS, 1);
    onnx_nest(&graph, ONNX_GRAPH_INITIALIZER, &tensor);
    const onnx_bytes bytes = onnx_model(&graph);
    assert_ok(rondo_onnx_parse(bytes.bytes, bytes.count, &options, &model));
    live[i] = counting->live_bytes;
    rondo_onnx_destroy(model);
  }
  assert_int_equal(live[0], live[1]);
}

ALLOCATOR_TEST(test_on10_memory_runs_out) {
  const onnx_bytes bytes = product_model();
  const rondo_onnx_options options = {RONDO_ONNX_OPTIONS_INIT, .allocator = &counting->table};
  rondo_onnx_model *model = NULL;
  size_t fail_at = 0;
  rondo_status status = RONDO_OUT_OF_MEMORY;
  while (status != RONDO_OK) {
    atomic_store(&counting->calls, 0);
    atomic_store(&counting->fail_at, ++fail_at);
    status = rondo_onnx_parse(bytes.bytes, bytes.count, &options, &model);
    assert_true(status == RONDO_OK || status == RONDO_OUT_OF_MEMORY);
    if (status != RONDO_OK) assert_true(test_allocator_is_clean(counting));
  }
  assert_true(fail_at > 10);
  rondo_onnx_destroy(model);
}

/* Debian's models -------------------------------------------------------------------------------------------------- */

UNIT_TEST(test_on1_all_models_of_libonnx_testdata_are_read) {
  char path[4096];
  size_t count = 0;
  if (access("/usr/share/libonnx-testdata", R_OK) != 0) skip();
  FILE *paths = popen("find /usr/share/libonnx-testdata -name '*.onnx'", "r");
  assert_non_null(paths);
  while (fgets(path, sizeof path, paths) != NULL) {
    rondo_onnx_model *model = NULL;
    path[strcspn(path, "\n")] = '\0';
    assert_ok(rondo_onnx_load(path, NULL, &model));
    rondo_onnx_destroy(model);
    count++;
  }
  assert_int_equal(pclose(paths), 0);
  assert_true(count >= 1072);
}

int main(void) { return test_run_registered_in(make_folder, remove_folder); }
