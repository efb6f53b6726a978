/* SPDX-License-Identifier: MIT
 * Variables of a kernel's code (AD-8): their addresses, and copies, fills and kernels that use them, eagerly, captured
 * and in graphs. Graphs keep the code; ends and lifetimes are checked; dumps name the variable.
 */
#include <stdio.h>
#include <string.h>

#include "support/rondo_test.h"

enum { WORDS = 8 };

static uint32_t symbol_table[WORDS]; /* the variable of the test kernel's code */
static uint32_t symbol_other[2];

/* out[b] = symbol_table[b] * factor */
static void scale_cpu(rondo_blocks blocks, void *const *args) {
  const uint32_t factor = *(const uint32_t *)args[0];
  uint32_t *out = *(uint32_t **)args[1];
  for (size_t b = blocks.first; b < blocks.last; b++) out[b] = symbol_table[b] * factor;
}

static const char scale_source[] =
    "extern \"C\" { __device__ unsigned symbol_table[8]; __constant__ unsigned symbol_other[2]; }\n"
    "extern \"C\" __global__ void symbol_scale(unsigned factor, unsigned *out) {\n"
    "  if (threadIdx.x == 0) out[blockIdx.x] = symbol_table[blockIdx.x] * factor + 0 * symbol_other[0];\n"
    "}\n";

static const rondo_symbol symbols[] = {{.name = "symbol_table", .cpu = symbol_table, .bytes = sizeof symbol_table},
                                       {.name = "symbol_other", .cpu = symbol_other, .bytes = sizeof symbol_other}};

static rondo_kernel_options scale_options(void) {
  return (rondo_kernel_options){RONDO_KERNEL_OPTIONS_INIT,
                                .name = "symbol_scale",
                                .cpu = scale_cpu,
                                .cuda_source = scale_source,
                                .params = {RONDO_SCALAR(uint32_t), RONDO_WRITES},
                                .symbols = symbols,
                                .symbol_count = 2};
}

/* The kernel, and the address of its table. */
typedef struct scaler {
  rondo_kernel *kernel;
  uint32_t *table;
} scaler;

static scaler make_scaler(test_fixture *t) {
  const rondo_kernel_options options = scale_options();
  scaler self = {.kernel = NULL};
  void *address;
  size_t bytes;
  assert_ok(rondo_kernel_create(t->device, &options, &self.kernel));
  assert_ok(rondo_kernel_symbol(self.kernel, "symbol_table", &address, &bytes));
  assert_int_equal(bytes, sizeof symbol_table);
  self.table = address;
  return self;
}

static rondo_copy copy_of(void *dst, const void *src, size_t bytes) {
  return (rondo_copy){.dst = dst, .src = src, .width = bytes};
}

static void fill_words(uint32_t *words, uint32_t first) {
  for (uint32_t i = 0; i < WORDS; i++) words[i] = first + i;
}

TEST(test_ad8_a_symbol_is_copied_to_and_from) {
  const scaler self = make_scaler(t);
  uint32_t in[WORDS], expected[WORDS], back[WORDS];
  uint32_t *out = test_words(t, WORDS);
  const uint32_t factor = 3;
  const rondo_grid grid = {.x = WORDS};
  fill_words(in, 5);
  assert_ok(rondo_copy_async(t->stream, self.table, in, sizeof in));
  assert_ok(rondo_launch(t->stream, self.kernel, grid, RONDO_ARGS(&factor, &out)));
  assert_ok(
      rondo_fill_async(t->stream, &(rondo_fill){.dst = self.table + 2, .value = 9, .element_bytes = 4, .width = 1}));
  assert_ok(rondo_copy_async(t->stream, back, self.table, sizeof back));
  assert_ok(rondo_stream_synchronize(t->stream));
  for (uint32_t i = 0; i < WORDS; i++) expected[i] = in[i] * factor;
  assert_words(t, out, expected, WORDS);
  in[2] = 9;
  assert_memory_equal(back, in, sizeof in);
  rondo_kernel_destroy(self.kernel);
}

TEST(test_ad8_a_symbol_is_an_argument) {
  const scaler self = make_scaler(t);
  uint32_t *table = self.table;
  const uint32_t expected[] = {10, 10};
  const uint32_t factor = 2, term = 4, three = 3;
  const rondo_grid two = {.x = 2};
  assert_ok(rondo_launch(t->stream, test_kernel(t, TEST_KERNEL_SET), two, RONDO_ARGS(&three, &table)));
  assert_ok(rondo_launch(t->stream, test_kernel(t, TEST_KERNEL_AFFINE), two, RONDO_ARGS(&factor, &term, &table)));
  assert_words(t, table, expected, 2);
  rondo_kernel_destroy(self.kernel);
}

/* The graph: in -> table, scale to out, table -> back. */
static rondo_graph *add_by_hand(test_fixture *t, const scaler *self, const uint32_t *in, uint32_t *out) {
  rondo_graph *graph = test_graph(t);
  rondo_node node;
  const uint32_t factor = 7;
  const rondo_copy copy = copy_of(self->table, in, sizeof symbol_table);
  assert_ok(rondo_graph_add_copy(graph, NULL, 0, &copy, &node));
  assert_ok(rondo_graph_add_kernel(graph, &node, 1, self->kernel, (rondo_grid){.x = WORDS}, RONDO_ARGS(&factor, &out),
                                   &node));
  return graph;
}

static rondo_graph *capture(test_fixture *t, const scaler *self, const uint32_t *in, uint32_t *out) {
  const uint32_t factor = 7;
  const rondo_grid grid = {.x = WORDS};
  assert_ok(rondo_capture_begin(t->stream, RONDO_CAPTURE_THREAD_LOCAL));
  assert_ok(rondo_copy_async(t->stream, self->table, in, sizeof symbol_table));
  assert_ok(rondo_launch(t->stream, self->kernel, grid, RONDO_ARGS(&factor, &out)));
  return test_capture_end(t->stream);
}

static uint32_t *device_words(test_fixture *t, uint32_t first) {
  uint32_t words[WORDS], *address = test_words(t, WORDS);
  fill_words(words, first);
  assert_ok(rondo_copy_async(t->stream, address, words, sizeof words));
  assert_ok(rondo_stream_synchronize(t->stream));
  return address;
}

static void expect_scaled(test_fixture *t, const uint32_t *out, uint32_t first) {
  uint32_t expected[WORDS];
  for (uint32_t i = 0; i < WORDS; i++) expected[i] = (first + i) * 7;
  assert_words(t, out, expected, WORDS);
}

TEST(test_ad8_graphs_use_symbols_and_keep_their_code) {
  const scaler self = make_scaler(t);
  uint32_t *in = device_words(t, 20), *out = test_words(t, WORDS);
  rondo_graph *by_hand = add_by_hand(t, &self, in, out), *captured = capture(t, &self, in, out);
  size_t differences = 0;
  assert_ok(rondo_graph_diff(by_hand, captured, false, NULL, &differences));
  assert_int_equal(differences, 0);
  rondo_kernel_destroy(self.kernel);
  rondo_exec *exec = test_exec_of(by_hand);
  assert_ok(rondo_exec_launch(exec, t->stream));
  expect_scaled(t, out, 20);
  assert_ok(rondo_graph_destroy(captured));
  assert_ok(rondo_exec_launch(exec, t->stream));
  assert_ok(rondo_stream_synchronize(t->stream));
}

/* The only node is a copy: it keeps the kernel of the address, in the graph, its clone and the exec. */
TEST(test_ad8_a_copy_alone_keeps_the_code) {
  const scaler self = make_scaler(t);
  uint32_t *in = device_words(t, 1), *out = test_words(t, WORDS), *table = self.table;
  rondo_graph *graph = test_graph(t), *clone;
  rondo_node copy, back;
  const rondo_copy to = copy_of(table, in, sizeof symbol_table), from = copy_of(out, table, sizeof symbol_table);
  assert_ok(rondo_graph_add_copy(graph, NULL, 0, &to, &copy));
  assert_ok(rondo_graph_add_copy(graph, &copy, 1, &from, &back));
  rondo_kernel_destroy(self.kernel);
  assert_ok(rondo_graph_clone(graph, &clone));
  test_graph_destroy(graph);
  rondo_exec *exec = test_exec_of(clone);
  assert_ok(rondo_exec_launch(exec, t->stream));
  const uint32_t expected[] = {1, 2, 3, 4, 5, 6, 7, 8};
  assert_words(t, out, expected, WORDS);
}

/* An exec and a graph whose node is changed to use the symbol keep it too, and updates bring it along. */
TEST(test_ad8_changed_nodes_keep_the_code) {
  const scaler self = make_scaler(t);
  uint32_t *in = device_words(t, 3), *out = test_words(t, WORDS);
  rondo_graph *graph = test_graph(t), *other = test_graph(t);
  rondo_node node, there;
  rondo_copy copy = copy_of(out, in, 16);
  assert_ok(rondo_graph_add_copy(graph, NULL, 0, &copy, &node));
  assert_ok(rondo_graph_add_copy(other, NULL, 0, &copy, &there));
  rondo_exec *changed = test_instantiate(graph), *updated = test_instantiate(graph);
  const rondo_node_params params = {.kind = RONDO_NODE_COPY, .as.copy = copy_of(self.table, in, 16)};
  assert_ok(rondo_exec_set_params(changed, node, &params));
  assert_ok(rondo_graph_set_params(other, there, &params));
  assert_ok(rondo_exec_update(updated, other, NULL));
  test_graph_destroy(other);
  rondo_kernel_destroy(self.kernel);
  assert_ok(rondo_exec_launch(changed, t->stream));
  assert_ok(rondo_stream_synchronize(t->stream));
  rondo_exec_destroy(changed);
  assert_ok(rondo_exec_launch(updated, t->stream));
  assert_ok(rondo_stream_synchronize(t->stream));
}

TEST(test_ad8_ends_of_symbols_are_checked) {
  const scaler self = make_scaler(t);
  uint32_t *in = test_words(t, 2 * WORDS);
  rondo_graph *graph = test_graph(t);
  rondo_node node;
  const rondo_copy copy = copy_of(self.table + 1, in, sizeof symbol_table);
  assert_invalid(rondo_copy_async(t->stream, self.table + 1, in, sizeof symbol_table), RONDO_REASON_OUT_OF_RANGE);
  assert_message("of 32 bytes at offset 4 passes the end of allocation 'symbol_table' of 32 bytes");
  assert_invalid(rondo_graph_add_copy(graph, NULL, 0, &copy, &node), RONDO_REASON_OUT_OF_RANGE);
  assert_error(rondo_free(t->device, self.table), RONDO_INVALID_LIFETIME, RONDO_REASON_WRONG_MEMORY);
  assert_message("a variable of a kernel's code: it is freed with the kernel");
  assert_error(rondo_free_async(t->stream, self.table + 1), RONDO_INVALID_LIFETIME, RONDO_REASON_WRONG_MEMORY);
  assert_error(rondo_host_free(t->device, self.table), RONDO_INVALID_LIFETIME, RONDO_REASON_WRONG_MEMORY);
  assert_invalid(rondo_graph_add_free(graph, NULL, 0, self.table, &node), RONDO_REASON_FOREIGN_ADDRESS);
  rondo_kernel_destroy(self.kernel);
}

TEST(test_ad8_races_at_symbols_are_found) {
  const scaler self = make_scaler(t);
  uint32_t *in = test_words(t, WORDS);
  rondo_graph *graph = test_graph(t);
  rondo_node nodes[2];
  rondo_exec *exec;
  const rondo_copy copy = copy_of(self.table, in, 16);
  assert_ok(rondo_graph_add_copy(graph, NULL, 0, &copy, &nodes[0]));
  assert_ok(rondo_graph_add_copy(graph, NULL, 0, &copy, &nodes[1]));
  assert_error(rondo_instantiate(graph, NULL, &exec), RONDO_INVALID_GRAPH, RONDO_REASON_RACE);
  assert_message("symbol_table");
  rondo_kernel_destroy(self.kernel);
}

/* Without addresses too: the name and the offset are the same in each process. */
TEST(test_ad8_dumps_name_symbols) {
  const scaler self = make_scaler(t);
  uint32_t *in = test_words(t, WORDS), *table = self.table + 1;
  const uint32_t word = 1;
  rondo_graph *outer = test_graph(t), *graph = test_graph(t), *read;
  rondo_node node;
  char *text, *again;
  const rondo_copy copy = copy_of(table, in, 16);
  assert_ok(rondo_graph_add_copy(graph, NULL, 0, &copy, &node));
  assert_ok(rondo_graph_add_kernel(graph, &node, 1, test_kernel(t, TEST_KERNEL_SET), (rondo_grid){.x = 1},
                                   RONDO_ARGS(&word, &table), &node));
  assert_ok(rondo_graph_add_child(outer, NULL, 0, graph, &node));
  for (int with_addresses = 0; with_addresses < 2; with_addresses++) {
    assert_ok(rondo_graph_to_json(outer, with_addresses, &text));
    assert_non_null(strstr(text, "\"symbols\":[{\"name\":\"symbol_table\",\"bytes\":32},"));
    assert_non_null(strstr(text, "\"dst\":{\"kernel\":1,\"symbol\":\"symbol_table\",\"offset\":4}"));
    assert_non_null(
        strstr(text, "\"arguments\":[\"01000000\",{\"kernel\":1,\"symbol\":\"symbol_table\",\"offset\":4}]"));
    assert_ok(rondo_graph_from_json(text, strlen(text), &read));
    assert_ok(rondo_graph_to_json(read, with_addresses, &again));
    assert_string_equal(text, again);
    assert_ok(rondo_graph_destroy(read));
    rondo_text_free(text);
    rondo_text_free(again);
  }
  assert_ok(rondo_graph_to_dot(outer, false, &text));
  assert_non_null(strstr(text, "to symbol_table + 4"));
  rondo_text_free(text);
  rondo_kernel_destroy(self.kernel);
}

static void refuse_json(const char *dst) {
  char text[512];
  rondo_graph *graph;
  snprintf(text, sizeof text,
           "{\"rondo_graph\":1,\"name\":\"\",\"kernels\":[{\"name\":\"k\",\"block_threads\":1,\"parameters\":[],"
           "\"symbols\":[{\"name\":\"x\",\"bytes\":8},{\"name\":\"none\",\"bytes\":0}]}],"
           "\"nodes\":[{\"number\":0,\"kind\":\"fill\",\"name\":\"\",\"dst\":%s,\"value\":0,\"element_bytes\":1,"
           "\"width\":1,\"height\":1,\"pitch\":1,\"dependencies\":[]}]}",
           dst);
  const rondo_status status = rondo_graph_from_json(text, strlen(text), &graph);
  if (status == RONDO_OK) (void)rondo_graph_destroy(graph);
  assert_int_equal(status, RONDO_INVALID_DATA);
}

TEST(test_ad8_bad_symbols_in_json_are_refused) {
  (void)t;
  refuse_json("{\"kernel\":0,\"symbol\":\"x\",\"offset\":8}");
  refuse_json("{\"kernel\":0,\"symbol\":\"y\",\"offset\":0}");
  refuse_json("{\"kernel\":0,\"symbol\":\"none\",\"offset\":0}");
  refuse_json("{\"kernel\":1,\"symbol\":\"x\",\"offset\":0}");
  refuse_json("{\"kernel\":0,\"symbol\":\"x\"}");
  refuse_json("{\"kernel\":0,\"symbol\":\"x\",\"offset\":0,\"more\":0}");
}

static void refuse_symbols(test_fixture *t, const rondo_symbol *list, size_t count, rondo_reason reason) {
  rondo_kernel_options options = scale_options();
  rondo_kernel *kernel;
  options.symbols = list;
  options.symbol_count = count;
  assert_invalid(rondo_kernel_create(t->device, &options, &kernel), reason);
  assert_null(kernel);
}

TEST(test_ad8_bad_symbols_are_refused) {
  const rondo_symbol no_name = {.cpu = symbol_table, .bytes = 4}, no_bytes = {.name = "x", .cpu = symbol_table};
  const rondo_symbol twice[] = {symbols[0], symbols[0]};
  refuse_symbols(t, &no_name, 1, RONDO_REASON_NULL_ARGUMENT);
  refuse_symbols(t, &no_bytes, 1, RONDO_REASON_BAD_SIZE);
  refuse_symbols(t, twice, 2, RONDO_REASON_DUPLICATE_NAME);
  refuse_symbols(t, NULL, 1, RONDO_REASON_BAD_OPTIONS);
  refuse_symbols(t, symbols, 0, RONDO_REASON_BAD_OPTIONS);
  refuse_symbols(t, symbols, RONDO_MAX_SYMBOLS + 1, RONDO_REASON_BAD_OPTIONS);
}

TEST(test_ad8_unknown_symbols_are_refused) {
  const scaler self = make_scaler(t);
  void *address = t;
  size_t bytes = 1;
  assert_error(rondo_kernel_symbol(self.kernel, "none", &address, &bytes), RONDO_NOT_FOUND, RONDO_REASON_UNKNOWN_NAME);
  assert_null(address);
  assert_int_equal(bytes, 0);
  assert_invalid(rondo_kernel_symbol(NULL, "x", &address, NULL), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_kernel_symbol(self.kernel, NULL, &address, NULL), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_kernel_symbol(self.kernel, "symbol_table", NULL, NULL), RONDO_REASON_NULL_ARGUMENT);
  assert_ok(rondo_kernel_symbol(self.kernel, "symbol_table", &address, NULL));
  assert_ptr_equal(address, self.table);
  rondo_kernel_destroy(self.kernel);
}

/* A kernel without code for the device is data there, and so are its symbols. */
TEST(test_ad8_a_symbol_without_code_has_no_address) {
  const rondo_symbol nowhere = {.name = "symbol_nowhere"};
  rondo_kernel_options options = {RONDO_KERNEL_OPTIONS_INIT, .name = "no_code", .symbols = &nowhere, .symbol_count = 1};
  rondo_kernel *kernel = test_kernel_make(t, &options);
  void *address;
  assert_error(rondo_kernel_symbol(kernel, "symbol_nowhere", &address, NULL), RONDO_NOT_FOUND,
               RONDO_REASON_NO_FUNCTION);
  assert_message("symbol 'symbol_nowhere' of kernel 'no_code' has no address on device");
}
