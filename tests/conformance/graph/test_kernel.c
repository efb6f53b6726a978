/* SPDX-License-Identifier: MIT
 * Kernels: errors of creation and launch, the passing of arguments, and that each block of a grid runs exactly once.
 */
#include "support/rondo_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void refuse(test_fixture *t, const rondo_kernel_options *options, const char *what) {
  rondo_kernel *kernel = (rondo_kernel *)t;
  assert_fails(rondo_kernel_create(t->device, options, &kernel), RONDO_INVALID_ARGUMENT);
  assert_null(kernel);
  assert_message(what);
}

TEST(test_too_many_bytes_together_are_refused) {
  rondo_kernel_options options = {.name = "wide", .cpu = test_kernel_nothing};
  enum { BYTES = 256 };
  rondo_parameter list[RONDO_MAX_PARAMETER_BYTES / BYTES + 1];
  const uint32_t fitting = RONDO_MAX_PARAMETER_BYTES / BYTES;
  for (uint32_t i = 0; i <= fitting; i++) {
    list[i] = (rondo_parameter){.access = RONDO_ACCESS_SCALAR, .bytes = BYTES, .alignment = 64};
  }
  options.param_list = list;
  options.param_count = fitting + 1;
  refuse(t, &options, "wide");
  options.param_count = fitting;
  (void)test_kernel_make(t, &options);
}

/* Arguments of the most bytes (AD-3): launched often enough that a CPU device's queue of 64 KiB is full and wraps in
 * every place, between launches of few bytes; captured; and changed. */
enum { WIDE_WORDS = (RONDO_MAX_PARAMETER_BYTES - 16) / 4 };

typedef struct wide_argument {
  uint32_t words[WIDE_WORDS];
} wide_argument;

static void add_wide(rondo_blocks blocks, void *const *args) {
  uint32_t *sum = *(uint32_t *const *)args[0];
  const wide_argument *wide = args[1];
  (void)blocks;
  *sum = *sum * 3 + wide->words[0] + wide->words[WIDE_WORDS - 1];
}

TEST(test_ad3_arguments_of_many_bytes) {
  enum { LAUNCHES = 40, AFTER = 900 };
  static wide_argument wide;
  uint32_t *sum = test_words(t, 1), wanted = 0;
  char source[400];
  (void)snprintf(source, sizeof source,
                 "struct wide_argument { unsigned words[%d]; };\n"
                 "extern \"C\" __global__ void add_wide(unsigned *sum, const __grid_constant__ wide_argument wide) {\n"
                 "  *sum = *sum * 3 + wide.words[0] + wide.words[%d]; }\n",
                 (int)WIDE_WORDS, (int)WIDE_WORDS - 1);
  const rondo_kernel_options options = {
      RONDO_KERNEL_OPTIONS_INIT, .name = "add_wide",    .cpu = add_wide,
      .block_threads = 1,        .cuda_source = source, .params = {RONDO_UPDATES, RONDO_SCALAR(wide_argument)}};
  rondo_kernel *kernel = test_kernel_make(t, &options);
  for (uint32_t i = 0; i < LAUNCHES; i++) {
    for (uint32_t k = 0; k < i % 7; k++) test_affine(t, t->stream, sum, 1, 1, 1), wanted++;
    wide.words[0] = i;
    wide.words[WIDE_WORDS - 1] = 5 * i;
    assert_ok(rondo_launch(t->stream, kernel, (rondo_grid){1, 1, 1}, RONDO_ARGS(&sum, &wide)));
    wanted = wanted * 3 + 6 * i;
  }
  assert_int_equal(test_word(t, sum), wanted);
  assert_ok(rondo_capture_begin(t->stream, RONDO_CAPTURE_THREAD_LOCAL));
  assert_ok(rondo_launch(t->stream, kernel, (rondo_grid){1, 1, 1}, RONDO_ARGS(&sum, &wide)));
  rondo_graph *graph = test_capture_end(t->stream);
  rondo_node node;
  size_t count = 1;
  assert_ok(rondo_graph_nodes(graph, &node, &count));
  rondo_exec *exec = test_instantiate(graph);
  test_launch(t, exec);
  wide.words[0] = AFTER;
  assert_ok(rondo_exec_set_argument(exec, node, 1, &wide));
  test_launch(t, exec);
  wanted = (wanted * 3 + 6 * (LAUNCHES - 1)) * 3 + AFTER + 5 * (LAUNCHES - 1);
  assert_int_equal(test_word(t, sum), wanted);
  rondo_exec_destroy(exec);
  test_graph_destroy(graph);
  rondo_kernel_destroy(kernel);
}

TEST(test_a_kernel_keeps_its_own_copies) {
  char name[] = "copied";
  rondo_kernel_options options = {.name = name, .cpu = test_kernel_nothing};
  for (int i = 0; i < RONDO_MAX_INLINE_PARAMETERS; i++) options.params[i] = (rondo_parameter)RONDO_SCALAR(uint32_t);
  rondo_kernel *kernel = test_kernel_make(t, &options);
  memset(name, '-', sizeof name - 1);
  memset(&options, 0, sizeof options);
  assert_string_equal(rondo_kernel_name(kernel), "copied");
  size_t count = 0;
  const rondo_parameter *parameters = rondo_kernel_parameters(kernel, &count);
  assert_int_equal(count, RONDO_MAX_INLINE_PARAMETERS);
  for (size_t i = 0; i < count; i++) {
    assert_int_equal(parameters[i].access, RONDO_ACCESS_SCALAR);
    assert_int_equal(parameters[i].bytes, 4);
    assert_int_equal(parameters[i].alignment, 4);
  }
}

static void add_listed(rondo_blocks blocks, void *const *args) {
  uint32_t *sum = *(uint32_t *const *)args[0];
  (void)blocks;
  for (int i = 1; i < RONDO_MAX_PARAMETERS; i++) *sum += *(const uint32_t *)args[i];
}

/* The same as CUDA source. */
static void write_listed(char *text, size_t bytes) {
  size_t used = (size_t)snprintf(text, bytes, "extern \"C\" __global__ void listed(unsigned *sum");
  for (int i = 1; i < RONDO_MAX_PARAMETERS; i++)
    used += (size_t)snprintf(text + used, bytes - used, ", unsigned n%d", i);
  used += (size_t)snprintf(text + used, bytes - used, ") { if (threadIdx.x == 0) *sum += 0");
  for (int i = 1; i < RONDO_MAX_PARAMETERS; i++) used += (size_t)snprintf(text + used, bytes - used, " + n%d", i);
  used += (size_t)snprintf(text + used, bytes - used, "; }");
  assert_true(used < bytes);
}

/* Updates of a network's parameters are joined into kernels of many (FW-4). */
TEST(test_a_list_has_more_parameters) {
  rondo_parameter list[RONDO_MAX_PARAMETERS + 1] = {RONDO_UPDATES};
  const void *args[RONDO_MAX_PARAMETERS];
  char source[1 << 12];
  uint32_t numbers[RONDO_MAX_PARAMETERS], *word = test_words(t, 1), wanted = 0;
  for (uint32_t i = 1; i <= RONDO_MAX_PARAMETERS; i++) list[i] = (rondo_parameter)RONDO_SCALAR(uint32_t);
  for (uint32_t i = 0; i < RONDO_MAX_PARAMETERS; i++) args[i] = &numbers[i];
  for (uint32_t i = 1; i < RONDO_MAX_PARAMETERS; i++) wanted += numbers[i] = i * i;
  args[0] = &word;
  write_listed(source, sizeof source);
  rondo_kernel_options options = {.name = "listed",
                                  .cpu = add_listed,
                                  .cuda_source = source,
                                  .param_list = list,
                                  .param_count = RONDO_MAX_PARAMETERS};
  size_t count = 0;
  rondo_kernel *kernel = test_kernel_make(t, &options);
  assert_non_null(rondo_kernel_parameters(kernel, &count));
  assert_int_equal(count, RONDO_MAX_PARAMETERS);
  assert_ok(rondo_launch(t->stream, kernel, (rondo_grid){1, 0, 0}, args, RONDO_MAX_PARAMETERS));
  assert_int_equal(test_word(t, word), wanted);
  rondo_kernel_destroy(kernel);
  options.param_count++;
  refuse(t, &options, "listed");
  list[1].bytes = 0;
  options.param_count = 2;
  refuse(t, &options, "listed");
  list[1].bytes = sizeof(uint32_t);
  options.params[0] = (rondo_parameter)RONDO_UPDATES;
  refuse(t, &options, "listed");
  options = (rondo_kernel_options){.name = "listed", .cpu = add_listed, .param_count = 1};
  refuse(t, &options, "listed");
}

TEST(test_bad_launches_are_refused) {
  rondo_kernel *kernel = test_kernel(t, TEST_KERNEL_SET);
  uint32_t *word = test_words(t, 1);
  const uint32_t value = 1;
  const rondo_grid one = {1, 0, 0}, none = {0, 1, 1}, huge = {1u << 31, 1u << 10, 1};
  assert_fails(rondo_launch(t->stream, kernel, none, RONDO_ARGS(&value, &word)), RONDO_INVALID_ARGUMENT);
  assert_message("test_set");
  assert_fails(rondo_launch(t->stream, kernel, huge, RONDO_ARGS(&value, &word)), RONDO_INVALID_ARGUMENT);
  assert_invalid(rondo_launch(t->stream, kernel, one, RONDO_ARGS(&value)), RONDO_REASON_ARGUMENT_COUNT);
  assert_message("test_set");
  assert_invalid(rondo_launch(t->stream, kernel, one, RONDO_ARGS(&value, &word, &word)), RONDO_REASON_ARGUMENT_COUNT);
  assert_fails(rondo_launch(t->stream, kernel, one, NULL, 2), RONDO_INVALID_ARGUMENT);
  assert_fails(rondo_launch(t->stream, kernel, one, RONDO_ARGS(&value, NULL)), RONDO_INVALID_ARGUMENT);
  assert_invalid(rondo_launch(t->stream, NULL, one, RONDO_NO_ARGS), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_launch(NULL, kernel, one, RONDO_ARGS(&value, &word)), RONDO_REASON_NULL_ARGUMENT);
  assert_int_equal(test_word(t, word), 0);
}

/* Where a device has limits of its own, by which a grid is refused wherever it is given; the message has both. */
#define assert_grid_refused(call) \
  (assert_error(call, RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_SIZE), assert_limit(grid))

static void assert_limit(rondo_grid grid) {
  char size[64];
  (void)snprintf(size, sizeof size, "%u x %u x %u", grid.x, grid.y, grid.z);
  assert_message(size);
  assert_message("65535");
  assert_message("2147483647");
  assert_message(test_device_name());
  assert_message("test_set");
}

static rondo_graph *make_set_graph(test_fixture *t, const uint32_t *value, uint32_t **word, rondo_node *out) {
  rondo_graph *graph = test_graph(t);
  assert_ok(rondo_graph_add_kernel(graph, NULL, 0, test_kernel(t, TEST_KERNEL_SET), (rondo_grid){1, 1, 1},
                                   RONDO_ARGS(value, word), out));
  return graph;
}

static void refuse_grid(test_fixture *t, rondo_grid grid, uint32_t *word) {
  const uint32_t value = 1;
  rondo_kernel *kernel = test_kernel(t, TEST_KERNEL_SET);
  rondo_node node, added = {0};
  rondo_graph *graph = make_set_graph(t, &value, &word, &node), *captured;
  rondo_exec *exec = test_instantiate(graph);
  const void *const args[] = {&value, &word};
  const rondo_node_params params = {.kind = RONDO_NODE_KERNEL,
                                    .as.kernel = {.kernel = kernel, .grid = grid, .args = args, .arg_count = 2}};
  rondo_node_params named = params;
  named.name = "named";
  assert_grid_refused(rondo_launch(t->stream, kernel, grid, RONDO_ARGS(&value, &word)));
  assert_grid_refused(rondo_launch_with(t->stream, kernel, grid, RONDO_ARGS(&value, &word), NULL));
  assert_grid_refused(rondo_graph_add_kernel(graph, NULL, 0, kernel, grid, RONDO_ARGS(&value, &word), &added));
  assert_grid_refused(rondo_graph_set_params(graph, node, &params));
  assert_grid_refused(rondo_exec_set_params(exec, node, &params));
  assert_grid_refused(rondo_exec_set_params(exec, node, &named));
  assert_ok(rondo_capture_begin(t->stream, RONDO_CAPTURE_THREAD_LOCAL));
  assert_grid_refused(rondo_launch(t->stream, kernel, grid, RONDO_ARGS(&value, &word)));
  captured = test_capture_end(t->stream); /* it is as it was */
  assert_ok(rondo_exec_launch(exec, t->stream));
  assert_int_equal(test_word(t, word), 1);
  test_graph_destroy(captured);
  rondo_exec_destroy(exec);
  test_graph_destroy(graph);
}

TEST(test_grids_beyond_the_device_are_refused) {
  static const rondo_grid beyond[] = {{1, 70000, 1}, {1, 1, 70000}, {2, 65536, 2}, {1u << 31, 1, 1}};
  uint32_t *word = test_words(t, 65536);
  const uint32_t value = 1;
  const rondo_grid most = {1, 65535, 1};
  assert_ok(rondo_launch(t->stream, test_kernel(t, TEST_KERNEL_SET), most, RONDO_ARGS(&value, &word)));
  assert_ok(rondo_stream_synchronize(t->stream));
  for (size_t i = 0; i < sizeof beyond / sizeof beyond[0] && test_device_is("cuda"); i++)
    refuse_grid(t, beyond[i], word);
}

/* Code may need so many registers that a block of 1024 threads does not run; the fake driver recognizes the name. */
TEST(test_blocks_beyond_the_code_are_refused) {
  static const char source[] = "extern \"C\" __global__ void __launch_bounds__(512) heavy_work() {}\n";
  rondo_kernel *kernel = NULL;
  rondo_kernel_options options = {RONDO_KERNEL_OPTIONS_INIT, .name = "heavy_work", .block_threads = 1024,
                                  .cpu = test_kernel_nothing, .cuda_source = source};
  if (!test_device_is("cuda")) skip();
  assert_invalid(rondo_kernel_create(t->device, &options, &kernel), RONDO_REASON_BAD_SIZE);
  assert_null(kernel);
  assert_message("heavy_work");
  assert_message("1024");
  assert_message("512");
  options.block_threads = 512;
  assert_ok(rondo_kernel_create(t->device, &options, &kernel));
  assert_ok(rondo_launch(t->stream, kernel, (rondo_grid){1, 1, 1}, RONDO_NO_ARGS));
  assert_ok(rondo_stream_synchronize(t->stream));
  rondo_kernel_destroy(kernel);
}

TEST(test_a_kernel_without_code_is_refused_by_name) {
  rondo_kernel *bare = test_kernel(t, TEST_KERNEL_BARE);
  uint32_t *word = test_words(t, 1);
  assert_error(rondo_launch(t->stream, bare, (rondo_grid){1, 0, 0}, RONDO_ARGS(&word)), RONDO_INVALID_GRAPH,
               RONDO_REASON_NO_FUNCTION);
  assert_message("test_bare");
  rondo_graph *graph = test_graph(t);
  rondo_node node = {0};
  assert_ok(rondo_graph_add_kernel(graph, NULL, 0, bare, (rondo_grid){1, 0, 0}, RONDO_ARGS(&word), &node));
  rondo_exec *exec = (rondo_exec *)t;
  assert_error(rondo_instantiate(graph, NULL, &exec), RONDO_INVALID_GRAPH, RONDO_REASON_NO_FUNCTION);
  assert_message("test_bare");
  assert_int_equal(rondo_last_error()->node, rondo_node_number(node));
  assert_null(exec);
}

TEST(test_every_block_runs_once_in_its_place) {
  static const rondo_grid grids[] = {{1, 0, 0},  {2, 1, 1},  {97, 0, 0},  {5, 3, 0},    {4, 4, 4},
                                     {1, 1, 90}, {1, 70, 2}, {33, 17, 9}, {99, 99, 99}, {1000, 0, 0}};
  for (size_t i = 0; i < sizeof grids / sizeof grids[0]; i++) {
    const rondo_grid grid = grids[i];
    const uint32_t height = grid.y == 0 ? 1 : grid.y, depth = grid.z == 0 ? 1 : grid.z;
    const size_t count = (size_t)grid.x * height * depth;
    uint32_t *words = test_words(t, count + 1);
    uint32_t *expected = calloc(count + 1, sizeof *expected);
    assert_non_null(expected);
    uint32_t weight = 1, *sum = words + count;
    assert_ok(rondo_launch(t->stream, test_kernel(t, TEST_KERNEL_PLACE), grid, RONDO_ARGS(&words)));
    assert_ok(rondo_launch(t->stream, test_kernel(t, TEST_KERNEL_COUNT_BLOCKS), grid, RONDO_ARGS(&weight, &sum)));
    for (size_t b = 0; b < count; b++) {
      expected[b] = (uint32_t)(b % grid.x + 100 * (b / grid.x % height) + 10000 * (b / grid.x / height) + 1);
    }
    expected[count] = (uint32_t)count;
    assert_words(t, words, expected, count + 1);
    free(expected);
    test_words_free(t, words);
  }
}

TEST(test_a_grid_of_a_million_blocks) {
  uint32_t *sum = test_words(t, 1);
  const uint32_t weight = 3;
  assert_ok(rondo_launch(t->stream, test_kernel(t, TEST_KERNEL_COUNT_BLOCKS), (rondo_grid){1000, 1000, 1},
                         RONDO_ARGS(&weight, &sum)));
  assert_int_equal(test_word(t, sum), 3000000);
}

static const uint32_t mixed_expected[8] = {200, 0x12345678u ^ 0x9abcdef0u, 60000, 20, 1, 2, 3, 77};

static void launch_mixed(test_fixture *t, rondo_stream *stream, uint32_t *out) {
  uint8_t small = 200;
  uint64_t wide = 0x123456789abcdef0u;
  uint16_t middle = 60000;
  double real = 2.5;
  test_triple triple = {{1, 2, 3}};
  uint32_t word = 77;
  assert_ok(rondo_launch(stream, test_kernel(t, TEST_KERNEL_MIXED), (rondo_grid){1, 0, 0},
                         RONDO_ARGS(&small, &wide, &middle, &real, &triple, &word, &out)));
  small = 0, wide = 0, middle = 0, real = 0, word = 0;
  memset(&triple, 0, sizeof triple);
}

/* Arguments of all sizes arrive, and are the launch's own copies: the caller's change right after the call. */
TEST(test_arguments_are_copied_at_the_call) {
  test_skip_if_serial();
  uint32_t *out = test_words(t, 8);
  test_gate *gate = test_gate_make();
  test_gate_hold(gate, t->stream);
  launch_mixed(t, t->stream, out);
  test_gate_open(gate);
  assert_words(t, out, mixed_expected, 8);
}

TEST(test_a_graph_keeps_copies_of_arguments) {
  uint32_t *out = test_words(t, 8);
  assert_ok(rondo_capture_begin(t->stream, RONDO_CAPTURE_THREAD_LOCAL));
  launch_mixed(t, t->stream, out);
  rondo_graph *graph = test_capture_end(t->stream);
  rondo_exec *exec = test_exec_of(graph);
  assert_ok(rondo_exec_launch(exec, t->stream));
  assert_words(t, out, mixed_expected, 8);
}

/* Queued work, graphs and execs keep what they need of a kernel. */
TEST(test_a_kernel_may_be_destroyed_while_it_is_used) {
  test_skip_if_serial();
  uint32_t *word = test_words(t, 1);
  const uint32_t factor = 1, term = 1;
  rondo_kernel *kernel = test_kernel_make(t, test_kernel_options(TEST_KERNEL_AFFINE));
  rondo_graph *graph = test_graph(t);
  rondo_node node = {0};
  assert_ok(
      rondo_graph_add_kernel(graph, NULL, 0, kernel, (rondo_grid){1, 0, 0}, RONDO_ARGS(&factor, &term, &word), &node));
  test_gate *gate = test_gate_make();
  test_gate_hold(gate, t->stream);
  assert_ok(rondo_launch(t->stream, kernel, (rondo_grid){1, 0, 0}, RONDO_ARGS(&factor, &term, &word)));
  rondo_kernel_destroy(kernel);
  test_gate_open(gate);
  assert_int_equal(test_word(t, word), 1);
  rondo_exec *exec = test_exec_of(graph);
  assert_ok(rondo_exec_launch(exec, t->stream));
  assert_int_equal(test_word(t, word), 2);
}

TEST(test_floats_agree_with_the_reference) {
  enum { COUNT = 1000 };
  float x[COUNT], y[COUNT], expected[COUNT];
  const float a = 0.3f;
  for (int i = 0; i < COUNT; i++) {
    x[i] = (float)i * 0.25f;
    y[i] = 1.0f / (float)(i + 1);
    expected[i] = y[i] + a * x[i];
  }
  uint32_t *memory = test_words(t, 2 * COUNT);
  float *device_x = (float *)memory, *device_y = device_x + COUNT;
  test_write(t, device_x, x, sizeof x);
  test_write(t, device_y, y, sizeof y);
  assert_ok(rondo_launch(t->stream, test_kernel(t, TEST_KERNEL_SAXPY), (rondo_grid){COUNT, 0, 0},
                         RONDO_ARGS(&a, &device_x, &device_y)));
  test_read(t, y, device_y, sizeof y);
  assert_near(y, expected, COUNT, 1e-6f);
}

/* On CUDA, where the code can be looked at; a CPU function cannot be. Then it is made with the right declaration. */
TEST(test_ad4_an_access_that_the_code_contradicts_is_refused) {
  static const char ptx[] =
      ".version 6.3\n.target sm_52\n.address_size 64\n"
      ".visible .entry word_copy(.param .u64 from, .param .u64 to)\n"
      "{\n.reg .b64 %rd<3>;\n.reg .b32 %r<2>;\n"
      "ld.param.u64 %rd1, [from];\nld.param.u64 %rd2, [to];\n"
      "ld.u32 %r1, [%rd1];\nst.u32 [%rd2], %r1;\nret;\n}\n";
  rondo_kernel_options options = {RONDO_KERNEL_OPTIONS_INIT, .name = "word_copy", .cpu = test_kernel_nothing,
                                  .cuda_image = ptx,         .block_threads = 1,  .params = {RONDO_READS, RONDO_READS}};
  if (test_device_is("cuda")) {
    refuse(t, &options, "kernel 'word_copy': parameter 1 is declared RONDO_ACCESS_READ, but its code writes");
    assert_int_equal(rondo_last_error()->reason, RONDO_REASON_CONTRADICTED);
  } else {
    (void)test_kernel_make(t, &options);
  }
  options.params[1] = (rondo_parameter)RONDO_WRITES;
  (void)test_kernel_make(t, &options);
}
