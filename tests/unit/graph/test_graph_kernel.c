/* SPDX-License-Identifier: MIT
 * Kernels as data: checks, layout of the arguments, references, grids (B3).
 */
#include "unit/graph/graph_tests.h"

static rondo_status try_options(graph_fixture *fixture, const rondo_kernel_options *options) {
  rondo_kernel *kernel = (rondo_kernel *)(void *)fixture; /* must become NULL */
  const rondo_status status = rondo_kernel_make(TEST_DEVICE, &fixture->allocator.table, options, &kernel);
  assert_true((status == RONDO_OK) == (kernel != NULL));
  rondo_kernel_release(kernel);
  return status;
}

static rondo_status try_parameter(graph_fixture *fixture, rondo_parameter parameter) {
  const rondo_kernel_options options = {RONDO_KERNEL_OPTIONS_INIT, .name = "bad", .params = {RONDO_READS, parameter}};
  return try_options(fixture, &options);
}

GRAPH_TEST(test_bad_options) {
  const rondo_status bad = RONDO_INVALID_ARGUMENT;
  const struct {
    rondo_kernel_options options;
    rondo_reason reason;
  } cases[] = {
      {{.name = NULL}, RONDO_REASON_NULL_ARGUMENT},
      {{.name = ""}, RONDO_REASON_NULL_ARGUMENT},
      {{.struct_size = 3, .name = "k"}, RONDO_REASON_BAD_OPTIONS},
      {{.struct_size = offsetof(rondo_kernel_options, params), .name = "k"},
       RONDO_REASON_BAD_OPTIONS}, /* no version's */
      {{.name = "k", .reserved = 1}, RONDO_REASON_BAD_OPTIONS},
      {{.name = "k", .block_threads = 1025}, RONDO_REASON_BAD_SIZE},
  };
  assert_error(try_options(fixture, NULL), bad, RONDO_REASON_NULL_ARGUMENT);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    assert_error(try_options(fixture, &cases[i].options), bad, cases[i].reason);
  assert_message("1025");
  assert_ok(try_options(fixture, &(rondo_kernel_options){.name = "k", .block_threads = 1024}));
}

GRAPH_TEST(test_bad_parameters) {
  const rondo_status bad = RONDO_INVALID_ARGUMENT;
  const rondo_parameter sizes[] = {
      {RONDO_ACCESS_SCALAR, 4, 0},          {RONDO_ACCESS_SCALAR, 4, 3},
      {RONDO_ACCESS_SCALAR, 4, 128},        {RONDO_ACCESS_READ, 4, 4},
      {RONDO_ACCESS_SCALAR, UINT32_MAX, 4}, {RONDO_ACCESS_SCALAR, RONDO_MAX_PARAMETER_BYTES - 7, 1},
  };
  assert_error(try_parameter(fixture, (rondo_parameter){0, 4, 4}), bad, RONDO_REASON_BAD_OPTIONS);
  assert_error(try_parameter(fixture, (rondo_parameter){(rondo_access)5, 4, 4}), bad, RONDO_REASON_BAD_OPTIONS);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    assert_error(try_parameter(fixture, sizes[i]), bad, RONDO_REASON_BAD_SIZE);
  assert_message("kernel 'bad'");
  assert_message("32765 bytes");
  assert_ok(try_parameter(fixture, (rondo_parameter){RONDO_ACCESS_SCALAR, RONDO_MAX_PARAMETER_BYTES - 8, 1}));
  const rondo_kernel_options gap = {RONDO_KERNEL_OPTIONS_INIT, .name = "gap",
                                    .params = {RONDO_READS, {0}, RONDO_READS}};
  assert_error(try_options(fixture, &gap), bad, RONDO_REASON_BAD_SIZE);
  assert_message("gap");
}

GRAPH_TEST(test_layout) {
  static const uint32_t bytes[] = {1, 8, 2, 64, 3, 4}, alignments[] = {1, 8, 2, 64, 1, 4};
  static const uint32_t offsets[] = {0, 8, 16, 64, 128, 132};
  rondo_kernel_options options = {.name = "mixed", .cuda_source = "code"};
  for (size_t i = 0; i < 6; i++) options.params[i] = (rondo_parameter){RONDO_ACCESS_SCALAR, bytes[i], alignments[i]};
  rondo_kernel *kernel;
  assert_ok(rondo_kernel_make(NULL, &fixture->allocator.table, &options, &kernel));
  for (size_t i = 0; i < 6; i++) assert_int_equal(kernel->offsets[i], offsets[i]);
  assert_int_equal(kernel->argument_bytes, 136);
  assert_int_equal(kernel->block_threads, 256);
  assert_string_equal(kernel->cuda_source, "code");
  assert_string_equal(rondo_kernel_name(kernel), "mixed");
  assert_ptr_not_equal(rondo_kernel_name(kernel), options.name);
  size_t count;
  assert_int_equal(rondo_kernel_parameters(kernel, &count)[3].alignment, 64);
  assert_int_equal(count, 6);
  rondo_kernel_release(kernel);
}

/* Blocks of arguments are whole words; values of all sizes in them count, to the last byte, and gaps do not. */
GRAPH_TEST(test_arguments_as_one_block) {
  const rondo_kernel_options options = {RONDO_KERNEL_OPTIONS_INIT, .name = "odd",
                                        .params = {RONDO_SCALAR(uint8_t), RONDO_SCALAR(double), {1, 3, 1}}};
  uint8_t first = 1, last[3] = {2, 3, 4};
  double middle = 5;
  rondo_kernel *kernel;
  assert_ok(rondo_kernel_make(TEST_DEVICE, &fixture->allocator.table, &options, &kernel));
  assert_int_equal(rondo_argument_words(kernel), 3);
  const rondo_node_params params = {
      .kind = RONDO_NODE_KERNEL,
      .as.kernel = {
          .kernel = kernel, .grid = {.x = 1}, .args = (const void *[]){&first, &middle, last}, .arg_count = 3}};
  const rondo_node one = add_node(fixture->graph, &params, NULL, 0), same = add_node(fixture->graph, &params, NULL, 0);
  last[2]++;
  const rondo_node other = add_node(fixture->graph, &params, NULL, 0);
  const rondo_graph_node *nodes = fixture->graph->nodes.items;
  void *const at = nodes[rondo_node_number(one)].arguments;
  assert_true(rondo_arguments_same(kernel, at, nodes[rondo_node_number(same)].arguments));
  assert_false(rondo_arguments_same(kernel, at, nodes[rondo_node_number(other)].arguments));
  rondo_arguments_copy(kernel, at, nodes[rondo_node_number(other)].arguments);
  assert_true(rondo_arguments_same(kernel, at, nodes[rondo_node_number(other)].arguments));
  assert_memory_equal(nodes[rondo_node_number(one)].argument_list[2], last, sizeof last);
  rondo_kernel_release(kernel);
}

GRAPH_TEST(test_the_most_parameters) {
  rondo_kernel_options options = {.name = "many"};
  for (size_t i = 0; i < RONDO_MAX_INLINE_PARAMETERS; i++) options.params[i] = (rondo_parameter)RONDO_UPDATES;
  rondo_kernel *kernel;
  assert_ok(rondo_kernel_make(NULL, &fixture->allocator.table, &options, &kernel));
  size_t count;
  rondo_kernel_parameters(kernel, &count);
  assert_int_equal(count, RONDO_MAX_INLINE_PARAMETERS);
  rondo_kernel_release(kernel);
}

GRAPH_TEST(test_null_kernel_is_answered) {
  size_t count = 1;
  assert_string_equal(rondo_kernel_name(NULL), "");
  assert_null(rondo_kernel_parameters(NULL, &count));
  assert_int_equal(count, 0);
  assert_null(rondo_kernel_parameters(NULL, NULL));
  rondo_kernel_release(NULL);
}

static void count_release(void *driver_data) { ++*(int *)driver_data; }

GRAPH_TEST(test_references) {
  int released = 0;
  rondo_kernel *kernel = make_kernel(fixture, TEST_DEVICE, "held");
  kernel->driver_data = &released;
  kernel->driver_release = count_release;
  rondo_kernel_retain(kernel);
  rondo_kernel_release(kernel);
  assert_int_equal(released, 0);
  assert_string_equal(rondo_kernel_name(kernel), "held");
  rondo_kernel_release(kernel);
  assert_int_equal(released, 1);
}

/* A kernel may be destroyed while graphs use it. */
GRAPH_TEST(test_a_node_holds_its_kernel) {
  rondo_kernel *kernel = make_kernel(fixture, TEST_DEVICE, "short");
  rondo_node_params params = kernel_params(fixture);
  params.as.kernel.kernel = kernel;
  const rondo_node node = add_node(fixture->graph, &params, NULL, 0);
  rondo_kernel_release(kernel);
  params = test_node_params(fixture->graph, node);
  assert_string_equal(rondo_kernel_name(params.as.kernel.kernel), "short");
}

GRAPH_TEST(test_grids) {
  rondo_grid grid;
  assert_ok(rondo_grid_check("k", (rondo_grid){.x = 3}, &grid));
  assert_int_equal(grid.x, 3);
  assert_int_equal(grid.y, 1);
  assert_int_equal(grid.z, 1);
  assert_ok(rondo_grid_check("k", (rondo_grid){1u << 20, 1u << 20, 1}, &grid));
  assert_int_equal(rondo_grid_blocks(grid), UINT64_C(1) << 40);
  assert_error(rondo_grid_check("k", (rondo_grid){.y = 3}, &grid), RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_SIZE);
  assert_message("kernel 'k'");
  const rondo_grid bad[] = {{(1u << 20) + 1, 1u << 20, 1},
                            {UINT32_MAX, UINT32_MAX, UINT32_MAX},
                            {1u << 20, 1u << 10, (1u << 10) + 1},
                            {1u << 31, 1u << 31, 4}};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    assert_error(rondo_grid_check("k", bad[i], &grid), RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_SIZE);
}
