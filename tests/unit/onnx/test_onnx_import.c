/* SPDX-License-Identifier: MIT
 * An import that fails leaves the program as it was, and no memory (ON-2, ON-10): where memory runs out, where computed
 * constants are too large, and where a loop does not end.
 */
#include <rondo/onnx.h>

#include "onnx/format/tensor_data.h"
#include "onnx/import/graph_import.h"
#include "support/rondo_test.h"
#include "support/test_onnx.h"

#define NAMES(...) ((const char *[]){__VA_ARGS__, NULL})

static rondo_onnx_model *parsed(const onnx_bytes *graph) {
  rondo_onnx_model *model = NULL;
  const onnx_bytes bytes = onnx_model(graph);
  assert_ok(rondo_onnx_parse(bytes.bytes, bytes.count, NULL, &model));
  return model;
}

/* y = reshape(x, s + 1) + (c + c), where s is an input whose value is given. */
static onnx_bytes folding_graph(void) {
  static const int64_t one[] = {1}, sizes[] = {6};
  static const float c[] = {2};
  onnx_bytes graph = {0};
  onnx_add_input(&graph, "x", RONDO_ONNX_FLOAT, sizes, 1);
  onnx_add_input(&graph, "s", RONDO_ONNX_INT64, one, 1);
  onnx_add_initializer(&graph, "one", RONDO_ONNX_INT64, one, sizeof one, one, 1);
  onnx_add_initializer(&graph, "c", RONDO_ONNX_FLOAT, c, sizeof c, one, 1);
  onnx_add_node(&graph, "Add", NAMES("s", "one"), NAMES("shape"));
  onnx_add_node(&graph, "Add", NAMES("c", "c"), NAMES("twice"));
  onnx_add_node(&graph, "Reshape", NAMES("x", "shape"), NAMES("z"));
  onnx_add_node(&graph, "Add", NAMES("z", "twice"), NAMES("y"));
  onnx_add_output(&graph, "y");
  return graph;
}

ALLOCATOR_TEST(test_on2_memory_may_run_out) {
  static const int64_t five[] = {5};
  const onnx_bytes graph = folding_graph();
  const rondo_onnx_given_input given = {.name = "s", .data = five, .bytes = sizeof five};
  const rondo_onnx_build_options options = {RONDO_ONNX_BUILD_OPTIONS_INIT, .inputs = &given, .input_count = 1,
                                            .allocator = &counting->table};
  rondo_onnx_model *model = parsed(&graph);
  rondo_program *program = NULL;
  rondo_onnx_build *build = NULL;
  assert_ok(rondo_program_create(NULL, &program));
  rondo_status status = RONDO_OUT_OF_MEMORY;
  size_t fail_at = 0;
  while (status != RONDO_OK) {
    atomic_store(&counting->calls, 0);
    atomic_store(&counting->fail_at, ++fail_at);
    status = rondo_onnx_build_program(model, &options, program, &build);
    assert_true(status == RONDO_OK || status == RONDO_OUT_OF_MEMORY);
    if (status != RONDO_OK) assert_true(build == NULL && test_allocator_is_clean(counting));
  }
  assert_true(fail_at > 50);
  rondo_onnx_build_destroy(build);
  rondo_program_destroy(program);
  rondo_onnx_destroy(model);
}

UNIT_TEST(test_on2_computed_constants_have_a_limit) {
  static const int64_t large[] = {1 << 20, 1 << 20}, two[] = {2};
  onnx_bytes graph = {0};
  onnx_add_initializer(&graph, "sizes", RONDO_ONNX_INT64, large, sizeof large, two, 1);
  onnx_add_node(&graph, "ConstantOfShape", NAMES("sizes"), NAMES("y"));
  onnx_add_output(&graph, "y");
  rondo_onnx_model *model = parsed(&graph);
  rondo_program *program = NULL;
  rondo_onnx_build *build = NULL;
  assert_ok(rondo_program_create(NULL, &program));
  assert_error(rondo_onnx_build_program(model, NULL, program, &build), RONDO_LIMIT_EXCEEDED, RONDO_REASON_BAD_SIZE);
  assert_message("raise most_folded_bytes");
  assert_message("node 'y' (ConstantOfShape)");
  assert_null(build);
  rondo_program_destroy(program);
  rondo_onnx_destroy(model);
}

/* A loop with this body and the constant "trips" is refused. */
static void assert_endless(onnx_bytes *graph, const onnx_bytes *body, const rondo_onnx_build_options *options,
                           rondo_reason reason, const char *message) {
  onnx_bytes loop = onnx_node("loop", "Loop", NAMES("trips"), NAMES(""));
  rondo_program *program = NULL;
  rondo_onnx_build *build = NULL;
  onnx_add_graph(&loop, "body", body);
  onnx_nest(graph, ONNX_GRAPH_NODE, &loop);
  onnx_add_node(graph, "Identity", NAMES("trips"), NAMES("y"));
  onnx_add_output(graph, "y");
  rondo_onnx_model *model = parsed(graph);
  assert_ok(rondo_program_create(NULL, &program));
  assert_error(rondo_onnx_build_program(model, options, program, &build), RONDO_LIMIT_EXCEEDED, reason);
  assert_message(message);
  rondo_program_destroy(program);
  rondo_onnx_destroy(model);
}

/* A loop of 2^62 trips, whose body has no nodes. */
UNIT_TEST(test_on10_a_loop_without_an_end) {
  static const int64_t trips[] = {INT64_C(1) << 62};
  onnx_bytes body = {0}, graph = {0};
  onnx_add_input(&body, "i", RONDO_ONNX_INT64, NULL, 0);
  onnx_add_input(&body, "go", RONDO_ONNX_BOOL, NULL, 0);
  onnx_add_output(&body, "go");
  onnx_add_initializer(&graph, "trips", RONDO_ONNX_INT64, trips, sizeof trips, NULL, 0);
  onnx_bytes loop = onnx_node("loop", "Loop", NAMES("trips"), NAMES(""));
  onnx_add_graph(&loop, "body", &body);
  onnx_nest(&graph, ONNX_GRAPH_NODE, &loop);
  onnx_add_node(&graph, "Identity", NAMES("trips"), NAMES("y"));
  onnx_add_output(&graph, "y");
  rondo_onnx_model *model = parsed(&graph);
  rondo_program *program = NULL;
  rondo_onnx_build *build = NULL;
  assert_ok(rondo_program_create(NULL, &program));
  assert_error(rondo_onnx_build_program(model, NULL, program, &build), RONDO_LIMIT_EXCEEDED, RONDO_REASON_OUT_OF_RANGE);
  assert_message("with those of its loops each time");
  rondo_program_destroy(program);
  rondo_onnx_destroy(model);
}

/* A loop of nodes that nobody reads. */
UNIT_TEST(test_on10_the_nodes_of_a_loop_have_a_limit) {
  static const int64_t trips[] = {INT64_C(1) << 62};
  const rondo_onnx_build_options options = {RONDO_ONNX_BUILD_OPTIONS_INIT, .most_nodes = 1000};
  onnx_bytes body = {0}, graph = {0};
  onnx_add_input(&body, "i", RONDO_ONNX_INT64, NULL, 0);
  onnx_add_input(&body, "go", RONDO_ONNX_BOOL, NULL, 0);
  onnx_add_node(&body, "Add", NAMES("i", "i"), NAMES("twice"));
  onnx_add_output(&body, "go");
  onnx_add_initializer(&graph, "trips", RONDO_ONNX_INT64, trips, sizeof trips, NULL, 0);
  assert_endless(&graph, &body, &options, RONDO_REASON_OUT_OF_RANGE, "more than 1000 nodes, with those of its loops");
}

/* Whether a loop of 2^62 trips goes on is computed in each iteration, by a program of its own. */
UNIT_TEST(test_on10_a_loop_whose_condition_is_computed) {
  static const int64_t trips[] = {INT64_C(1) << 62};
  onnx_bytes body = {0}, graph = {0};
  onnx_add_input(&body, "i", RONDO_ONNX_INT64, NULL, 0);
  onnx_add_input(&body, "go", RONDO_ONNX_BOOL, NULL, 0);
  onnx_add_node(&body, "Not", NAMES("go"), NAMES("stops"));
  onnx_add_node(&body, "Not", NAMES("stops"), NAMES("goes on"));
  onnx_add_output(&body, "goes on");
  onnx_add_initializer(&graph, "trips", RONDO_ONNX_INT64, trips, sizeof trips, NULL, 0);
  assert_endless(&graph, &body, NULL, RONDO_REASON_OUT_OF_RANGE,
                 "in more than 8192 programs, with those of its loops each time");
}

/* Each iteration computes the sum of a larger constant, so that little is kept and much is computed. */
UNIT_TEST(test_on10_a_loop_that_computes_much) {
  static const int64_t trips[] = {INT64_C(1) << 62}, sizes[] = {512, 512}, two[] = {2};
  const rondo_onnx_build_options options = {RONDO_ONNX_BUILD_OPTIONS_INIT, .most_folded_bytes = 4 << 20};
  onnx_bytes body = {0}, graph = {0}, sum = onnx_node("sum", "ReduceSum", NAMES("all"), NAMES("total"));
  onnx_add_int(&sum, "keepdims", 0);
  onnx_add_input(&body, "i", RONDO_ONNX_INT64, NULL, 0);
  onnx_add_input(&body, "go", RONDO_ONNX_BOOL, NULL, 0);
  onnx_add_node(&body, "Expand", NAMES("i", "sizes"), NAMES("all"));
  onnx_nest(&body, ONNX_GRAPH_NODE, &sum);
  onnx_add_node(&body, "Equal", NAMES("total", "i"), NAMES("is zero"));
  onnx_add_node(&body, "Or", NAMES("is zero", "go"), NAMES("goes on"));
  onnx_add_output(&body, "goes on");
  onnx_add_initializer(&graph, "trips", RONDO_ONNX_INT64, trips, sizeof trips, NULL, 0);
  onnx_add_initializer(&graph, "sizes", RONDO_ONNX_INT64, sizes, sizeof sizes, two, 1);
  assert_endless(&graph, &body, &options, RONDO_REASON_BAD_SIZE, "more than 256.0 MiB, 64 times most_folded_bytes");
}

/* A body whose node lists many outputs, none of which has a name, and no end. */
UNIT_TEST(test_on10_a_loop_of_many_values) {
  enum { OUTPUTS = 600 };
  static const int64_t trips[] = {INT64_C(1) << 62};
  const char *outputs[OUTPUTS + 1] = {"o"};
  onnx_bytes body = {0}, graph = {0};
  for (size_t i = 1; i < OUTPUTS; i++) outputs[i] = "";
  onnx_add_input(&body, "i", RONDO_ONNX_INT64, NULL, 0);
  onnx_add_input(&body, "go", RONDO_ONNX_BOOL, NULL, 0);
  onnx_add_node(&body, "Identity", NAMES("i"), outputs);
  onnx_add_output(&body, "go");
  onnx_add_initializer(&graph, "trips", RONDO_ONNX_INT64, trips, sizeof trips, NULL, 0);
  onnx_bytes loop = onnx_node("loop", "Loop", NAMES("trips"), NAMES(""));
  onnx_add_graph(&loop, "body", &body);
  onnx_nest(&graph, ONNX_GRAPH_NODE, &loop);
  onnx_add_node(&graph, "Identity", NAMES("trips"), NAMES("y"));
  onnx_add_output(&graph, "y");
  rondo_onnx_model *model = parsed(&graph);
  rondo_program *program = NULL;
  rondo_onnx_build *build = NULL;
  assert_ok(rondo_program_create(NULL, &program));
  assert_error(rondo_onnx_build_program(model, NULL, program, &build), RONDO_LIMIT_EXCEEDED, RONDO_REASON_OUT_OF_RANGE);
  assert_message("more than 2097152 values");
  rondo_program_destroy(program);
  rondo_onnx_destroy(model);
}

/* A loop that builds a sequence: copying it in each iteration would take more than the values that there may be. */
UNIT_TEST(test_on10_a_loop_that_builds_a_sequence) {
  static const int64_t trips[] = {2100};
  onnx_bytes body = {0}, graph = {0};
  onnx_add_input(&body, "i", RONDO_ONNX_INT64, NULL, 0);
  onnx_add_input(&body, "go", RONDO_ONNX_BOOL, NULL, 0);
  onnx_add_input(&body, "before", RONDO_ONNX_INT64, NULL, 0);
  onnx_add_node(&body, "SequenceInsert", NAMES("before", "i"), NAMES("after"));
  onnx_add_output(&body, "go");
  onnx_add_output(&body, "after");
  onnx_add_initializer(&graph, "trips", RONDO_ONNX_INT64, trips, sizeof trips, NULL, 0);
  onnx_add_node(&graph, "SequenceEmpty", NAMES(NULL), NAMES("none"));
  onnx_bytes loop = onnx_node("loop", "Loop", NAMES("trips", "", "none"), NAMES("all"));
  onnx_add_graph(&loop, "body", &body);
  onnx_nest(&graph, ONNX_GRAPH_NODE, &loop);
  onnx_add_node(&graph, "SequenceInsert", NAMES("none", "trips"), NAMES("other"));
  onnx_add_node(&graph, "SequenceLength", NAMES("all"), NAMES("y"));
  onnx_add_node(&graph, "SequenceLength", NAMES("other"), NAMES("z"));
  onnx_add_output(&graph, "y");
  onnx_add_output(&graph, "z");
  rondo_onnx_model *model = parsed(&graph);
  rondo_program *program = NULL;
  rondo_onnx_build *build = NULL;
  rondo_onnx_built_value y = {.struct_size = sizeof y};
  assert_ok(rondo_program_create(NULL, &program));
  assert_ok(rondo_onnx_build_program(model, NULL, program, &build));
  assert_ok(rondo_onnx_build_get_output(build, 0, &y));
  assert_int_equal(*(const int64_t *)y.data, trips[0]);
  assert_ok(rondo_onnx_build_get_output(build, 1, &y));
  assert_int_equal(*(const int64_t *)y.data, 1); /* the list has more items than this sequence */
  rondo_onnx_build_destroy(build);
  rondo_program_destroy(program);
  rondo_onnx_destroy(model);
}
