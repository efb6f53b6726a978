/* SPDX-License-Identifier: MIT
 * Error messages for invalid options and arguments: they name the argument and its value, and say what to pass instead.
 * Afterwards the same calls succeed with valid values.
 */
#include <string.h>

#include "support/rondo_test.h"
#include "support/test_program.h"

/* Tables ----------------------------------------------------------------------------------------------------------- */

TEST(test_fw5_rates) {
  static const struct {
    rondo_rate_options options;
    rondo_reason reason;
    const char *said;
  } rows[] = {
      {{.rate = 0}, RONDO_REASON_OUT_OF_RANGE, "rondo_rate_at: schedule: rate 0 must be a number above 0"},
      {{.kind = RONDO_RATE_LINEAR, .rate = 1, .last = 2, .period = 1},
       RONDO_REASON_OUT_OF_RANGE,
       "schedule: last 2 must be from 0 to the rate"},
      {{.kind = RONDO_RATE_STEPS, .rate = 1, .factor = 1.5f, .period = 1},
       RONDO_REASON_OUT_OF_RANGE,
       "schedule: factor 1.5 must be above 0, at most 1"},
      {{.kind = RONDO_RATE_COSINE, .rate = 1}, RONDO_REASON_OUT_OF_RANGE, "schedule: period 0 must be at least 1"},
      {{.kind = (rondo_rate_kind)5, .rate = 1},
       RONDO_REASON_BAD_OPTIONS,
       "schedule: kind 5 does not exist: use a RONDO_RATE_ name"},
  };
  float rate;
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    assert_invalid(rondo_rate_at(&rows[i].options, 0, &rate), rows[i].reason);
    assert_message(rows[i].said);
  }
  assert_ok(rondo_rate_at(&(rondo_rate_options){RONDO_RATE_OPTIONS_INIT, .rate = 1}, 0, &rate));
}

TEST(test_se10_executors) {
  static const struct {
    rondo_executor_options options;
    const char *said;
  } rows[] = {
      {{.threads = RONDO_EXECUTOR_MAX_THREADS + 1}, "17 threads: give at most 16, or RONDO_EXECUTOR_NO_THREADS"},
      {{.expensive_us = -1}, "expensive_us is -1: give 0 to 1e9"},
      {{.expensive_us = 2e9}, "expensive_us is 2e+09: give 0 to 1e9"},
  };
  rondo_executor *executor;
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    assert_invalid(rondo_executor_create(t->device, &rows[i].options, &executor), RONDO_REASON_OUT_OF_RANGE);
    assert_message(rows[i].said);
    assert_null(executor);
  }
  assert_ok(rondo_executor_create(t->device, NULL, &executor));
  assert_ok(rondo_executor_destroy(executor));
}

TEST(test_gm19_pools) {
  static const struct {
    rondo_pool_attribute attribute;
    uint64_t value;
    const char *said;
  } rows[] = {
      {RONDO_POOL_ALLOW_OPPORTUNISTIC, 2, "RONDO_POOL_ALLOW_OPPORTUNISTIC cannot be set to 2: it takes 0 or 1"},
      {RONDO_POOL_USED_HIGH, 1, "RONDO_POOL_USED_HIGH cannot be set to 1: it takes only 0, which resets the high mark"},
      {RONDO_POOL_RESERVED_HIGH, 1, "RONDO_POOL_RESERVED_HIGH cannot be set to 1"},
      {RONDO_POOL_USED_CURRENT, 0, "RONDO_POOL_USED_CURRENT counts what is allocated now and cannot be set: "},
  };
  rondo_pool *pool = NULL;
  assert_ok(rondo_device_get_default_pool(t->device, &pool));
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    assert_invalid(rondo_pool_set_attribute(pool, rows[i].attribute, rows[i].value), RONDO_REASON_OUT_OF_RANGE);
    assert_message(rows[i].said);
  }
  assert_ok(rondo_pool_set_attribute(pool, RONDO_POOL_USED_HIGH, 0));
}

TEST(test_fw8_costs) {
  rondo_costs costs = {RONDO_COSTS_INIT};
  costs.launch_host_node = -0.5;
  assert_invalid(rondo_device_set_costs(t->device, &costs), RONDO_REASON_OUT_OF_RANGE);
  assert_message("launch_host_node is -0.5 microseconds: give 0 or more");
  costs.launch_host_node = 0.5;
  assert_ok(rondo_device_set_costs(t->device, &costs));
}

TEST(test_fw1_weights) {
  static const float data[6];
  rondo_weights *weights = NULL;
  rondo_weight w = {.name = "w", .type = RONDO_F32, .rank = 2, .shape = {2, 3}, .data = data, .bytes = 20};
  assert_ok(rondo_weights_create(NULL, &weights));
  assert_invalid(rondo_weights_add(weights, &w), RONDO_REASON_SHAPE);
  assert_message("'w' [2, 3] has 24 bytes, and 20 were given: give all of it");
  w.bytes = sizeof data;
  assert_ok(rondo_weights_add(weights, &w));
  rondo_weights_destroy(weights);
}

/* Programs --------------------------------------------------------------------------------------------------------- */

/* "loss" of "x" and the state "w". */
static rondo_program *make_program(rondo_value *out_loss) {
  static const size_t shape[] = {4};
  rondo_program *program = test_named_program("small");
  rondo_value x, w, loss;
  assert_ok(rondo_program_input(program, "x", RONDO_F32, shape, 1, &x));
  assert_ok(rondo_program_state(program, "w", RONDO_F32, shape, 1, &w));
  assert_ok(rondo_op_mul(program, x, w, &x));
  assert_ok(rondo_op_mean(program, x, (const size_t[]){0}, 1, false, &loss));
  assert_ok(rondo_program_output(program, "loss", loss));
  *out_loss = loss;
  return program;
}

TEST(test_fw4_gradients) {
  static const rondo_gradient_options rows[] = {
      {.max_norm = -1}, {.initial_scale = 1e-39f}, {.accumulate = UINT32_MAX}, {.growth_interval = UINT32_MAX}};
  static const char *const said[] = {"rondo_program_sgd: max_norm of rondo_gradient_options is -1: give 0 to inf",
                                     "initial_scale of rondo_gradient_options is 1",
                                     "accumulate of rondo_gradient_options is 4294967295: give 1 to 2147483647",
                                     "growth_interval of rondo_gradient_options is 4294967295: give 1 to 2147483647"};
  const rondo_rate_options schedule = {RONDO_RATE_OPTIONS_INIT, .rate = 1};
  rondo_sgd_options sgd = {RONDO_SGD_OPTIONS_INIT, .schedule = &schedule};
  rondo_value loss;
  rondo_program *program = make_program(&loss);
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    sgd.gradients = &rows[i];
    assert_invalid(rondo_program_sgd(program, loss, &sgd), RONDO_REASON_OUT_OF_RANGE);
    assert_message(said[i]);
  }
  sgd.gradients = NULL;
  assert_ok(rondo_program_sgd(program, loss, &sgd));
}

static void assert_not_compiled(test_fixture *t, rondo_program *program, const rondo_compile_options *options,
                                rondo_status status, rondo_reason reason, const char *said) {
  rondo_compiled *compiled = NULL;
  assert_error(rondo_compile(program, t->device, options, &compiled), status, reason);
  assert_message(said);
  assert_null(compiled);
}

TEST(test_fw1_compiling) {
  rondo_value loss;
  rondo_program *program = make_program(&loss);
  rondo_staged_value staged[] = {{"x", RONDO_STAGING_HOST}, {"x", RONDO_STAGING_DEVICE}};
  rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .staged = staged, .staged_count = 2};
  assert_not_compiled(t, program, &options, RONDO_INVALID_ARGUMENT, RONDO_REASON_DUPLICATE_NAME,
                      "'x' is staged twice: name it once");
  staged[1] = (rondo_staged_value){"y", RONDO_STAGING_HOST};
  assert_not_compiled(t, program, &options, RONDO_NOT_FOUND, RONDO_REASON_UNKNOWN_NAME,
                      "program 'small' has no input or output 'y' to be staged");
  staged[1] = (rondo_staged_value){"loss", (rondo_staging)7};
  assert_not_compiled(t, program, &options, RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                      "'loss' has the staging 7, which does not exist: use a RONDO_STAGING_ name");
  options.staged_count = 1;
  options.executor_policy = (rondo_executor_policy)9;
  assert_not_compiled(t, program, &options, RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                      "executor policy 9 does not exist: use a RONDO_EXECUTOR_ name");
}

/* An executor is kept by what was compiled with it; the bytes of a value are its shape's. */
TEST(test_fw1_a_compiled_program) {
  const float data[4] = {0};
  rondo_value loss;
  rondo_program *program = make_program(&loss);
  rondo_executor *executor = test_executor(t, NULL);
  const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .executor = executor,
                                         .executor_policy = RONDO_EXECUTOR_ALWAYS};
  rondo_compiled *compiled = test_compile(program, t->device, &options);
  assert_error(rondo_executor_destroy(executor), RONDO_INVALID_STATE, RONDO_REASON_STILL_IN_USE);
  assert_message("1 program was compiled with it: destroy it first");
  assert_invalid(rondo_compiled_write(compiled, "w", data, 12), RONDO_REASON_BAD_SIZE);
  assert_message("'w' [4] has 16 bytes, and the call gives 12");
  assert_ok(rondo_compiled_write(compiled, "w", data, sizeof data));
}

/* Streams, trees --------------------------------------------------------------------------------------------------- */

TEST(test_gx1_streams) {
  rondo_event *event = test_event(t);
  rondo_capture_mode mode = (rondo_capture_mode)8;
  assert_error(rondo_event_record_external(event, t->stream), RONDO_INVALID_STATE, RONDO_REASON_NOT_CAPTURING);
  assert_message("is not capturing: external events are for graphs; outside a capture, call rondo_event_record");
  assert_invalid(rondo_capture_exchange_thread_mode(&mode), RONDO_REASON_BAD_OPTIONS);
  assert_message("8 is not a capture mode: use one of RONDO_CAPTURE_GLOBAL");
  assert_ok(rondo_event_record(event, t->stream));
}

TEST(test_tr1_trees) {
  static const size_t buckets[] = {4, 4};
  static const uint32_t rows = RONDO_INPUT_MOVING | RONDO_INPUT_ROWS, odd = 1u << 20;
  static const struct {
    rondo_function_options options;
    const char *said;
  } functions[] = {
      {{.binding = (rondo_binding)9}, "'f': 9 is not a binding: use a RONDO_BINDING_ name"},
      {{.demotion = (rondo_demotion)9}, "'f': 9 is not a demotion: use a RONDO_DEMOTION_ name"},
      {{.inputs = &odd, .input_count = 1}, "input 0 of 'f' is 0x100000, which is not a kind of input"},
      {{.inputs = &rows, .input_count = 1},
       "an input that is RONDO_INPUT_ROWS, but no buckets: give both buckets and RONDO_INPUT_ROWS"},
      {{.inputs = &rows, .input_count = 1, .buckets = buckets, .bucket_count = 2},
       "bucket 1 has 4 rows after one of 4: give them in ascending order"},
  };
  rondo_tree *tree = NULL;
  rondo_function *function = NULL;
  const rondo_tree_options bad = {RONDO_TREE_OPTIONS_INIT, .outputs = (rondo_output_policy)9};
  assert_invalid(rondo_tree_create(t->device, &bad, &tree), RONDO_REASON_BAD_OPTIONS);
  assert_message("9 is not an output policy: use RONDO_OUTPUTS_EXPIRE or RONDO_OUTPUTS_CLONE");
  assert_ok(rondo_tree_create(t->device, NULL, &tree));
  for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
    rondo_function_options options = functions[i].options;
    options.name = "f";
    options.body = test_body_nothing;
    assert_invalid(rondo_function_create(tree, &options, &function), RONDO_REASON_BAD_OPTIONS);
    assert_message(functions[i].said);
    assert_null(function);
  }
  assert_ok(rondo_tree_destroy(tree));
}

/* Kernels and graphs ----------------------------------------------------------------------------------------------- */

TEST(test_gx1_kernels) {
  static const rondo_parameter number = {RONDO_ACCESS_SCALAR, 4, 4};
  static const struct {
    rondo_kernel_options options;
    rondo_reason reason;
    const char *said;
  } rows[] = {
      {{.params = {{(rondo_access)9, 8, 8}}}, RONDO_REASON_BAD_OPTIONS, "parameter 0 has the invalid access 9"},
      {{.params = {{RONDO_ACCESS_SCALAR, 4, 4}, {RONDO_ACCESS_SCALAR, 4, 3}}},
       RONDO_REASON_BAD_SIZE,
       "parameter 1 has the alignment 3: it must be a power of two"},
      {{.params = {{RONDO_ACCESS_SCALAR, 4, 4}, {0, 8, 8}}},
       RONDO_REASON_BAD_OPTIONS,
       "parameter 1 has the invalid access 0"},
      {{.params = {{RONDO_ACCESS_SCALAR, 4, 0}}}, RONDO_REASON_BAD_SIZE, "parameter 0 has the alignment 0: it must"},
      {{.params = {{RONDO_ACCESS_SCALAR, 256, 128}}}, RONDO_REASON_BAD_SIZE, "has the alignment 128: it must"},
      {{.params = {{RONDO_ACCESS_READ, 4, 4}}}, RONDO_REASON_BAD_SIZE, "parameter 0 is a pointer of 4 bytes"},
      {{.params = {{RONDO_ACCESS_SCALAR, RONDO_MAX_PARAMETER_BYTES + 4, 4}}}, RONDO_REASON_BAD_SIZE, "and at most"},
      {{.params = {{RONDO_ACCESS_SCALAR, UINT32_MAX, 1}}}, RONDO_REASON_BAD_SIZE, "parameter 0 has 4294967295 bytes"},
      {{.params = {{RONDO_ACCESS_SCALAR, 1 << 20, 4}}},
       RONDO_REASON_BAD_SIZE,
       "parameter 0 has 1048576 bytes, and at most"},
      {{.params = {{RONDO_ACCESS_SCALAR, 0, 4}, {RONDO_ACCESS_SCALAR, 4, 4}}},
       RONDO_REASON_BAD_SIZE,
       "parameter 0 has 0 bytes but parameter 1 has 4: leave no gap in params"},
      {{.params = {{RONDO_ACCESS_SCALAR, 4, 4}}, .param_list = &number, .param_count = 1},
       RONDO_REASON_BAD_OPTIONS,
       "it has parameters both in params and in a list"},
      {{.param_count = 1}, RONDO_REASON_BAD_OPTIONS, "param_list is NULL: set params, or param_list with param_count"},
      {{.param_list = &number, .param_count = 100000}, RONDO_REASON_BAD_SIZE, "100000 parameters, at most"},
      {{.block_threads = 1025}, RONDO_REASON_BAD_SIZE, "blocks of 1025 threads, at most 1024 are possible"},
      {{.cuda_source = "void k() {}", .cuda_image = "x"},
       RONDO_REASON_BAD_OPTIONS,
       "its CUDA code is given in more than one form"},
  };
  rondo_kernel *kernel = NULL;
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    rondo_kernel_options options = rows[i].options;
    options.name = "k";
    options.cpu = test_kernel_nothing;
    assert_invalid(rondo_kernel_create(t->device, &options, &kernel), rows[i].reason);
    assert_message("kernel 'k': ");
    assert_message(rows[i].said);
    assert_null(kernel);
  }
  for (size_t i = 0; i < 2; i++) {
    const rondo_kernel_options nameless = {.name = i == 0 ? NULL : "", .cpu = test_kernel_nothing};
    kernel = (rondo_kernel *)t;
    assert_fails(rondo_kernel_create(t->device, &nameless, &kernel), RONDO_INVALID_ARGUMENT);
    assert_message("the kernel has no name: set rondo_kernel_options.name");
    assert_null(kernel);
  }
  kernel = (rondo_kernel *)t;
  assert_invalid(rondo_kernel_create(t->device, NULL, &kernel), RONDO_REASON_NULL_ARGUMENT);
  assert_null(kernel);
}

TEST(test_gx1_edges_and_nodes) {
  rondo_graph *graph = test_graph(t), *other = test_graph(t);
  rondo_node a = {0}, b = {0}, c = {0}, none = {0};
  assert_ok(rondo_graph_add_empty(graph, NULL, 0, &a));
  assert_ok(rondo_graph_add_empty(graph, &a, 1, &b));
  assert_ok(rondo_graph_add_empty(other, NULL, 0, &c));
  const rondo_node twice[] = {a, a};
  const struct {
    rondo_node from, to;
    rondo_reason reason;
    const char *said;
  } rows[] = {
      {a, a, RONDO_REASON_SELF_EDGE,
       "rondo_graph_add_edges: the graph: the edge from empty (node 0) to empty (node 0) leads from a node to itself"},
      {a, b, RONDO_REASON_DUPLICATE_EDGE,
       "the edge from empty (node 0) to empty (node 1) exists already, or is twice in the list"},
      {a, none, RONDO_REASON_UNKNOWN_NODE,
       "rondo_graph_add_edges: to[0]: the graph: the node id is 0 and names no node"},
      {a, c, RONDO_REASON_UNKNOWN_NODE, "does not belong to the graph: pass the id that"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    assert_invalid(rondo_graph_add_edges(graph, &rows[i].from, &rows[i].to, 1), rows[i].reason);
    assert_message(rows[i].said);
  }
  assert_invalid(rondo_graph_remove_edges(graph, &b, &a, 1), RONDO_REASON_MISSING_EDGE);
  assert_message(
      "rondo_graph_remove_edges: the graph: the edge from empty (node 1) to empty (node 0) does not exist, or");
  assert_invalid(rondo_graph_add_empty(graph, twice, 2, &c), RONDO_REASON_DUPLICATE_EDGE);
  assert_message("rondo_graph_add_empty: empty (node 0) is listed twice in the dependencies of the new node");
  assert_ok(rondo_graph_remove(graph, b));
  assert_invalid(rondo_graph_remove(graph, b), RONDO_REASON_UNKNOWN_NODE);
  assert_message("rondo_graph_remove: the graph has no node 1: it was removed");
}

TEST(test_gx1_copies_and_fills) {
  uint32_t *words = test_words(t, 16);
  rondo_graph *graph = test_graph(t);
  void *address = NULL;
  rondo_node node = {0};
  const rondo_copy overlapping = {.dst = words, .src = words + 1, .width = 8};
  const struct {
    rondo_fill fill;
    const char *said;
  } rows[] = {
      {{.dst = words, .element_bytes = 3, .width = 1}, "a fill with elements of 3 bytes: 1, 2 and 4 are possible"},
      {{.dst = words, .element_bytes = 4, .width = 1, .height = 2, .pitch = 6},
       "a fill with elements of 4 bytes and a pitch of 6: the pitch must be a multiple of 4"},
      {{.dst = (char *)words + 2, .element_bytes = 4, .width = 1}, "the address must be a multiple of 4"},
      {{.dst = words, .element_bytes = 4, .width = SIZE_MAX / 2}, "does not fit the address space"},
      {{.dst = words, .element_bytes = 4, .height = 2},
       "rondo_graph_add_fill: a fill of 0 elements x 2 rows x 1 slices: pass at least 1, or omit the fill"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    assert_invalid(rondo_graph_add_fill(graph, NULL, 0, &rows[i].fill, &node), RONDO_REASON_BAD_SIZE);
    assert_message(rows[i].said);
  }
  assert_invalid(rondo_graph_add_copy(graph, NULL, 0, &overlapping, &node), RONDO_REASON_OUT_OF_RANGE);
  assert_message("overlap: copy through a third buffer");
  assert_invalid(rondo_copy_async(t->stream, words, words + 8, 0), RONDO_REASON_BAD_SIZE);
  assert_message("rondo_copy_async: a copy of 0 bytes: pass at least 1, or omit the copy");
  const rondo_copy empty = {.dst = words, .src = words + 8, .height = 5};
  assert_invalid(rondo_graph_add_copy(graph, NULL, 0, &empty, &node), RONDO_REASON_BAD_SIZE);
  assert_message("a copy of 0 bytes x 5 rows x 1 slices: pass at least 1, or omit the copy");
  assert_invalid(rondo_graph_add_alloc(graph, NULL, 0, 0, NULL, &address, &node), RONDO_REASON_BAD_SIZE);
  assert_message("an allocation of 0 bytes: pass at least 1, or omit the alloc node");
}

#define assert_unknown(call, said)                     \
  do {                                                 \
    assert_invalid((call), RONDO_REASON_UNKNOWN_NODE); \
    assert_message(said);                              \
  } while (0)

/* Tags of nodes that do not belong to the graph: each message names the call and, in a list, the entry. Objects without
 * a name are called by their kind; rondo_test.c asserts that for every expected failure. */
TEST(test_gx1_tags) {
  rondo_graph *graph = test_graph(t), *other = test_graph(t);
  rondo_node node = {0};
  rondo_node_params params;
  assert_ok(rondo_graph_add_empty(other, NULL, 0, &node));
  assert_invalid(rondo_graph_get_params(graph, (rondo_node){0}, &params), RONDO_REASON_UNKNOWN_NODE);
  assert_message(
      "rondo_graph_get_params: the graph: the node id is 0 and names no node: pass the id that adding the node "
      "returned");
  assert_invalid(rondo_graph_get_params(graph, node, &params), RONDO_REASON_UNKNOWN_NODE);
  assert_message("rondo_graph_get_params: the node id 0x");
  assert_message("does not belong to the graph");
  assert_int_equal(rondo_last_error()->node, RONDO_NO_NODE);
  const rondo_node wrong[] = {node, {0}};
  rondo_node none = {0};
  void *address = NULL;
  size_t count = 0;
  for (size_t i = 0; i < 2; i++) {
    rondo_node own[2] = {{0}, wrong[i]};
    assert_ok(rondo_graph_add_empty(graph, NULL, 0, &own[0]));
    assert_unknown(rondo_graph_add_empty(graph, own, 2, &none), "rondo_graph_add_empty: dependencies[1]: the ");
    assert_unknown(rondo_graph_add_alloc(graph, own, 2, 64, NULL, &address, &none),
                   "rondo_graph_add_alloc: dependencies[1]: the ");
    assert_unknown(rondo_graph_remove_edges(graph, &wrong[i], own, 1), "rondo_graph_remove_edges: from[0]: the ");
    assert_unknown(rondo_graph_remove(graph, wrong[i]), "rondo_graph_remove: the ");
    assert_unknown(rondo_graph_dependents(graph, wrong[i], NULL, &count), "rondo_graph_dependents: the ");
    assert_unknown(rondo_graph_find_in_clone(graph, wrong[i], &none), "the graph was not cloned from the graph of the");
  }
  rondo_exec *exec = test_instantiate(graph);
  assert_unknown(rondo_exec_set_enabled(exec, node, false),
                 "the exec's graph and its child graphs have no node with the node id");
  assert_message(": pass the node id that adding the node to the original graph returned");
  assert_int_equal(rondo_last_error()->node, RONDO_NO_NODE);
}

/* An address that is an allocation's own, and one inside. */
TEST(test_gm18_addresses) {
  rondo_graph *graph = test_graph(t);
  rondo_node node = {0};
  void *host = NULL;
  rondo_fill fill = {.element_bytes = 4, .width = 8};
  assert_ok(rondo_host_malloc(t->device, 256, &host));
  void *memory = test_allocate(t, 256, NULL);
  assert_error(rondo_free(t->device, host), RONDO_INVALID_LIFETIME, RONDO_REASON_WRONG_MEMORY);
  assert_message("is the address of 256 bytes of host memory: free their address");
  assert_error(rondo_free(t->device, (char *)memory + 1), RONDO_INVALID_LIFETIME, RONDO_REASON_INTERIOR_ADDRESS);
  assert_message("is 1 byte into allocation (no name, 256 B)");
  assert_invalid(rondo_graph_add_free(graph, NULL, 0, memory, &node), RONDO_REASON_FOREIGN_ADDRESS);
  assert_message("is the address of allocation (no name, 256 B), of no alloc node");
  assert_ok(rondo_free(t->device, memory));
  fill.dst = memory;
  assert_error(rondo_fill_async(t->stream, &fill), RONDO_INVALID_LIFETIME, RONDO_REASON_USE_AFTER_FREE);
  assert_message("begins at the address of allocation (no name, 256 B), which was freed");
  assert_ok(rondo_host_free(t->device, host));
}

/* More than the device has: freeing other memory would not help, and is not advised. */
TEST(test_gm1_more_than_the_device_has) {
  rondo_graph *graph = test_graph(t);
  rondo_node node = {0};
  void *address = NULL;
  for (int i = 0; i < 2; i++) {
    assert_error(rondo_graph_add_alloc(graph, NULL, 0, (size_t)1 << 48, NULL, &address, &node), RONDO_OUT_OF_MEMORY,
                 RONDO_REASON_ADDRESS_SPACE);
    assert_message("256.0 TiB of graph memory is more than all memory of device");
    assert_message("allocate less");
    assert_ok(rondo_graph_add_alloc(graph, NULL, 0, 4096, NULL, &address, &node));
  }
  assert_fails(rondo_malloc(t->device, (size_t)1 << 48, NULL, &address), RONDO_OUT_OF_MEMORY);
  assert_message("rondo_malloc: 256.0 TiB is more than all memory of device");
  assert_null(address);
  assert_fails(rondo_malloc_async(t->stream, (size_t)1 << 48, NULL, &address), RONDO_OUT_OF_MEMORY);
  assert_message("rondo_malloc_async: 256.0 TiB is more than all memory of device");
  assert_null(address);
}

TEST(test_fw1_programs_without_a_name) {
  static const size_t shape[] = {4};
  rondo_value x = {0};
  rondo_program *program = test_new_program();
  assert_invalid(rondo_program_input(program, "", RONDO_F32, shape, 1, &x), RONDO_REASON_NULL_ARGUMENT);
  assert_message("a value of the program needs a name");
  assert_ok(rondo_program_input(program, "x", RONDO_F32, shape, 1, &x));
  assert_invalid(rondo_program_input(program, "x", RONDO_F32, shape, 1, &x), RONDO_REASON_DUPLICATE_NAME);
  assert_message("the program has a value called 'x' already");
}
