/* SPDX-License-Identifier: MIT
 * Memory operations (AD-8): writes of words, and waits for values of words, on streams, captured, and as nodes. A wait
 * holds up its own stream or branch alone, however few threads the device has.
 */
#include <stdatomic.h>
#include <string.h>

#include "support/rondo_test.h"

static rondo_memory_operation write_32(uint32_t *word, uint32_t value) {
  return (rondo_memory_operation){.kind = RONDO_OPERATION_WRITE_32, .address = word, .value = value};
}

static rondo_memory_operation wait_32(uint32_t *word, rondo_wait_condition condition, uint32_t value) {
  return (rondo_memory_operation){
      .kind = RONDO_OPERATION_WAIT_32, .condition = condition, .address = word, .value = value};
}

static rondo_node add_operation(rondo_graph *graph, const rondo_node *before, size_t count,
                                rondo_memory_operation operation) {
  rondo_node node;
  assert_ok(rondo_graph_add_memory_operations(graph, before, count, &operation, 1, &node));
  return node;
}

/* On streams ------------------------------------------------------------------------------------------------------- */

TEST(test_ad8_words_are_written_in_order) {
  uint32_t *words = test_words(t, 4), expected[] = {5, 0, 7, 9};
  const rondo_memory_operation operations[] = {
      write_32(&words[0], 4),
      write_32(&words[0], 5),
      {.kind = RONDO_OPERATION_WRITE_64, .address = &words[2], .value = UINT64_C(9) << 32 | 7}};
  assert_ok(rondo_memory_operations_async(t->stream, operations, 3));
  assert_words(t, words, expected, 4);
}

/* Each condition is fulfilled when it is reached. */
TEST(test_ad8_conditions_that_are_fulfilled) {
  uint32_t *words = test_words(t, 4), expected[] = {UINT32_MAX, 6, 1};
  const rondo_memory_operation operations[] = {
      write_32(&words[0], UINT32_MAX),
      write_32(&words[1], 6),
      wait_32(&words[0], RONDO_WAIT_EQUAL, UINT32_MAX),
      wait_32(&words[1], RONDO_WAIT_GREATER_OR_EQUAL, 6),
      wait_32(&words[1], RONDO_WAIT_GREATER_OR_EQUAL, UINT32_MAX), /* which is before 6 */
      wait_32(&words[1], RONDO_WAIT_AND, 4),
      wait_32(&words[1], RONDO_WAIT_NOR, 1),
      {RONDO_OPERATION_WAIT_64, RONDO_WAIT_EQUAL, &words[0], UINT64_C(6) << 32 | UINT32_MAX},
      {RONDO_OPERATION_WAIT_64, RONDO_WAIT_GREATER_OR_EQUAL, &words[0], 7},
      {RONDO_OPERATION_WAIT_64, RONDO_WAIT_AND, &words[0], UINT64_C(2) << 32},
      {RONDO_OPERATION_WAIT_64, RONDO_WAIT_NOR, &words[0], 0},
      write_32(&words[2], 1)};
  assert_ok(rondo_memory_operations_async(t->stream, operations, sizeof operations / sizeof operations[0]));
  assert_words(t, words, expected, 3);
}

/* With one worker too: the wait takes no thread. */
TEST(test_ad8_a_wait_holds_up_its_stream_alone) {
  uint32_t *words = test_words(t, 2), expected[] = {3, 21};
  rondo_stream *other = test_stream(t, "other");
  const rondo_memory_operation wait = wait_32(&words[0], RONDO_WAIT_EQUAL, 3), write = write_32(&words[0], 3);
  assert_ok(rondo_memory_operations_async(t->stream, &wait, 1));
  test_affine(t, t->stream, &words[1], 1, 2, 1);
  assert_ok(rondo_stream_synchronize(other));
  assert_status(rondo_stream_query(t->stream), RONDO_NOT_READY);
  test_affine(t, other, &words[1], 1, 0, 10);
  assert_ok(rondo_memory_operations_async(other, &write, 1));
  assert_ok(rondo_stream_synchronize(other));
  assert_ok(rondo_stream_synchronize(t->stream));
  assert_words(t, words, expected, 2);
}

TEST(test_ad8_the_host_ends_a_wait) {
  void *pinned;
  assert_ok(rondo_host_malloc(t->device, 64, &pinned));
  uint32_t *word = pinned;
  uint64_t *seen = (uint64_t *)pinned + 1;
  memset(pinned, 0, 64);
  const rondo_memory_operation operations[] = {wait_32(word, RONDO_WAIT_AND, 2),
                                               {.kind = RONDO_OPERATION_WRITE_64, .address = seen, .value = 5}};
  assert_ok(rondo_memory_operations_async(t->stream, operations, 2));
  assert_status(rondo_stream_query(t->stream), RONDO_NOT_READY);
  assert_int_equal(atomic_load((_Atomic uint64_t *)seen), 0);
  atomic_store((_Atomic uint32_t *)word, 6);
  assert_ok(rondo_stream_synchronize(t->stream));
  assert_int_equal(*seen, 5);
  assert_ok(rondo_host_free(t->device, pinned));
}

/* More waits than the device has threads. Streams of a GPU share hardware queues, where such waits could not end. */
TEST(test_ad8_many_waits_at_once) {
  enum { STREAMS = 40 };
  if (!test_device_is("cpu")) return;
  uint32_t *words = test_words(t, STREAMS);
  rondo_stream *streams[STREAMS];
  for (uint32_t i = 0; i < STREAMS; i++) {
    streams[i] = test_stream(t, NULL);
    const rondo_memory_operation operations[] = {wait_32(&words[i], RONDO_WAIT_EQUAL, 1),
                                                 write_32(&words[(i + 1) % STREAMS], 1)};
    assert_ok(rondo_memory_operations_async(streams[i], operations, 2));
  }
  const rondo_memory_operation first = write_32(&words[STREAMS - 1], 1);
  assert_ok(rondo_memory_operations_async(t->stream, &first, 1));
  for (uint32_t i = 0; i < STREAMS; i++) assert_ok(rondo_stream_synchronize(streams[i]));
  assert_ok(rondo_stream_synchronize(t->stream));
}

/* In graphs -------------------------------------------------------------------------------------------------------- */

/* Two branches without edges between them: words[1] = 10 * words[1] + 1 runs after words[1] = 7 all the same. */
static rondo_graph *two_branches(test_fixture *t, uint32_t *words) {
  rondo_graph *graph = test_graph(t);
  const rondo_node begin = add_operation(graph, NULL, 0, write_32(&words[0], 0));
  const rondo_node wait = add_operation(graph, &begin, 1, wait_32(&words[0], RONDO_WAIT_EQUAL, 1));
  (void)test_add_affine(t, graph, &wait, 1, &words[2], 10, 1);
  const rondo_node set = test_add_affine(t, graph, &begin, 1, &words[1], 0, 7);
  (void)add_operation(graph, &set, 1, write_32(&words[0], 1));
  return graph;
}

TEST(test_ad8_branches_wait_for_each_other) {
  uint32_t *words = test_words(t, 3), expected[] = {1, 7, 0};
  rondo_exec *exec = test_exec_of(two_branches(t, words));
  for (int i = 0; i < 5; i++) {
    assert_ok(rondo_exec_launch(exec, t->stream));
    expected[2] = expected[2] * 10 + 1;
    assert_words(t, words, expected, 3);
  }
  for (int i = 0; i < 20; i++) assert_ok(rondo_exec_launch(exec, t->stream));
  assert_ok(rondo_stream_synchronize(t->stream));
}

/* Launches that are enqueued keep the operations of before, and a wait of one launch does not end that of another. */
TEST(test_ad8_operations_of_execs_change) {
  uint32_t *words = test_words(t, 2), expected[] = {8, 3};
  rondo_graph *graph = test_graph(t);
  const rondo_memory_operation operations[] = {wait_32(&words[0], RONDO_WAIT_EQUAL, 1), write_32(&words[0], 2)};
  rondo_node node;
  assert_ok(rondo_graph_add_memory_operations(graph, NULL, 0, operations, 2, &node));
  (void)test_add_affine(t, graph, &node, 1, &words[1], 1, 1);
  rondo_exec *exec = test_instantiate(graph);
  rondo_stream *other = test_stream(t, "other");
  assert_ok(rondo_exec_launch(exec, t->stream));
  const rondo_memory_operation then[] = {wait_32(&words[0], RONDO_WAIT_AND, 2), write_32(&words[0], 4)};
  const rondo_node_params params = {.kind = RONDO_NODE_MEMORY_OPERATIONS,
                                    .as.memory_operations = {.operations = then, .count = 2}};
  assert_ok(rondo_exec_set_params(exec, node, &params));
  assert_ok(rondo_exec_launch(exec, t->stream));
  const rondo_memory_operation more[] = {wait_32(&words[0], RONDO_WAIT_GREATER_OR_EQUAL, 4), write_32(&words[0], 8)};
  rondo_node_params last = params;
  last.as.memory_operations.operations = more;
  assert_ok(rondo_graph_set_params(graph, node, &last));
  assert_ok(rondo_exec_update(exec, graph, NULL));
  assert_ok(rondo_exec_launch(exec, t->stream));
  assert_status(rondo_stream_query(t->stream), RONDO_NOT_READY);
  const rondo_memory_operation begin = write_32(&words[0], 1);
  assert_ok(rondo_memory_operations_async(other, &begin, 1));
  assert_words(t, words, expected, 2);
  const rondo_memory_operation others[] = {write_32(&words[0], 1), write_32(&words[0], 2)};
  last.as.memory_operations.operations = others;
  assert_error(rondo_exec_set_params(exec, node, &last), RONDO_UPDATE_REFUSED, RONDO_REASON_PARAMETERS_CHANGED);
  assert_message("not their number and kinds");
  assert_ok(rondo_graph_set_params(graph, node, &last));
  assert_error(rondo_exec_update(exec, graph, NULL), RONDO_UPDATE_REFUSED, RONDO_REASON_PARAMETERS_CHANGED);
}

TEST(test_ad8_captured_operations_are_nodes) {
  uint32_t *words = test_words(t, 2), expected[] = {2, 1};
  const rondo_memory_operation operations[] = {write_32(&words[0], 1), wait_32(&words[0], RONDO_WAIT_EQUAL, 1),
                                               write_32(&words[0], 2)};
  rondo_graph *by_hand = test_graph(t), *clone;
  rondo_node node;
  size_t differences = 0;
  uint64_t prints[2];
  assert_ok(rondo_graph_add_memory_operations(by_hand, NULL, 0, operations, 3, &node));
  (void)test_add_affine(t, by_hand, &node, 1, &words[1], 1, 1);
  assert_ok(rondo_capture_begin(t->stream, RONDO_CAPTURE_THREAD_LOCAL));
  assert_ok(rondo_memory_operations_async(t->stream, operations, 3));
  test_affine(t, t->stream, &words[1], 1, 1, 1);
  rondo_graph *captured = test_capture_end(t->stream);
  assert_ok(rondo_graph_diff(by_hand, captured, false, NULL, &differences));
  assert_int_equal(differences, 0);
  assert_ok(rondo_graph_fingerprint(by_hand, &prints[0]));
  assert_ok(rondo_graph_fingerprint(captured, &prints[1]));
  assert_int_equal(prints[0], prints[1]);
  assert_ok(rondo_graph_clone(captured, &clone));
  rondo_node nodes[2];
  size_t count = 2;
  assert_ok(rondo_graph_nodes(clone, nodes, &count));
  const rondo_node_params params = test_node_params(clone, nodes[0]);
  assert_int_equal(params.kind, RONDO_NODE_MEMORY_OPERATIONS);
  assert_int_equal(params.as.memory_operations.count, 3);
  assert_memory_equal(params.as.memory_operations.operations, operations, sizeof operations);
  rondo_exec *exec = test_exec_of(clone);
  assert_ok(rondo_exec_launch(exec, t->stream));
  assert_words(t, words, expected, 2);
}

TEST(test_ad8_operations_differ_and_are_dumped) {
  uint32_t *words = test_words(t, 2);
  rondo_graph *graphs[3], *read;
  rondo_node node;
  size_t differences = 0;
  char *text, *again;
  for (uint32_t i = 0; i < 3; i++) {
    const rondo_memory_operation operations[] = {wait_32(&words[i == 2], RONDO_WAIT_NOR, 1 + (i == 1)),
                                                 {.kind = RONDO_OPERATION_WRITE_64, .address = words, .value = 9}};
    graphs[i] = test_graph(t);
    assert_ok(rondo_graph_add_memory_operations(graphs[i], NULL, 0, operations, 2, &node));
  }
  assert_ok(rondo_graph_diff(graphs[0], graphs[1], true, NULL, &differences));
  assert_int_equal(differences, 1);
  assert_ok(rondo_graph_diff(graphs[0], graphs[2], true, NULL, &differences));
  assert_int_equal(differences, 0);
  assert_ok(rondo_graph_diff(graphs[0], graphs[2], false, NULL, &differences));
  assert_int_equal(differences, 1);
  for (int with_addresses = 0; with_addresses < 2; with_addresses++) {
    assert_ok(rondo_graph_to_json(graphs[0], with_addresses, &text));
    assert_non_null(strstr(text, "\"operations\":[{\"kind\":\"wait_32\",\"condition\":\"nor\","));
    assert_ok(rondo_graph_from_json(text, strlen(text), &read));
    assert_ok(rondo_graph_to_json(read, with_addresses, &again));
    assert_string_equal(text, again);
    assert_ok(rondo_graph_destroy(read));
    rondo_text_free(text);
    rondo_text_free(again);
  }
  assert_ok(rondo_graph_to_dot(graphs[0], false, &text));
  assert_non_null(strstr(text, "waits for nor 1"));
  assert_non_null(strstr(text, "writes 9"));
  rondo_text_free(text);
}

/* Handed out to the driver and imported again: the same nodes. */
TEST(test_ad8_native_graphs_have_operations) {
  uint32_t *words = test_words(t, 2), expected[] = {1, 2};
  rondo_graph *graph = test_graph(t), *imported;
  size_t differences = 0;
  void *native;
  const rondo_node first = add_operation(graph, NULL, 0, write_32(&words[0], 1));
  const rondo_node wait = add_operation(graph, &first, 1, wait_32(&words[0], RONDO_WAIT_EQUAL, 1));
  (void)add_operation(graph, &wait, 1, write_32(&words[1], 2));
  if (test_device_is("cpu")) {
    assert_error(rondo_graph_native(graph, &native), RONDO_UNSUPPORTED, RONDO_REASON_NOT_SUPPORTED);
    return;
  }
  assert_ok(rondo_graph_native(graph, &native));
  assert_ok(rondo_graph_import(t->device, native, NULL, &imported));
  assert_ok(rondo_graph_diff(graph, imported, false, NULL, &differences));
  assert_int_equal(differences, 0);
  rondo_exec *exec = test_exec_of(imported);
  assert_ok(rondo_exec_launch(exec, t->stream));
  assert_words(t, words, expected, 2);
}

TEST(test_ad8_children_have_operations) {
  uint32_t *words = test_words(t, 2), expected[] = {4, 1};
  rondo_graph *child = test_graph(t), *graph = test_graph(t);
  rondo_node node;
  const rondo_node write = add_operation(child, NULL, 0, write_32(&words[0], 4));
  (void)add_operation(child, &write, 1, wait_32(&words[0], RONDO_WAIT_EQUAL, 4));
  assert_ok(rondo_graph_add_child(graph, NULL, 0, child, &node));
  (void)test_add_affine(t, graph, &node, 1, &words[1], 1, 1);
  rondo_exec *exec = test_exec_of(graph);
  assert_ok(rondo_exec_launch(exec, t->stream));
  assert_words(t, words, expected, 2);
}

/* Words in graph memory, at their own and at other addresses. */
TEST(test_ad8_words_in_graph_memory) {
  for (int relocate = 0; relocate < 2; relocate++) {
    uint32_t *out = test_words(t, 1), expected[] = {5};
    void *scratch;
    rondo_graph *graph = test_graph(t);
    rondo_node node;
    assert_ok(rondo_graph_add_alloc(graph, NULL, 0, 4096, "scratch", &scratch, &node));
    uint32_t *word = (uint32_t *)scratch + 8;
    const rondo_memory_operation operations[] = {write_32(word, 5), wait_32(word, RONDO_WAIT_EQUAL, 5)};
    assert_ok(rondo_graph_add_memory_operations(graph, &node, 1, operations, 2, &node));
    assert_ok(rondo_graph_add_copy(graph, &node, 1, &(rondo_copy){.dst = out, .src = word, .width = 4}, &node));
    assert_ok(rondo_graph_add_free(graph, &node, 1, scratch, &node));
    const rondo_instantiate_options options = {RONDO_INSTANTIATE_OPTIONS_INIT, .relocate = relocate};
    rondo_exec *exec = test_instantiate_with(graph, &options);
    assert_ok(rondo_exec_launch(exec, t->stream));
    assert_words(t, out, expected, 1);
  }
}

TEST(test_ad8_operations_are_verified) {
  void *scratch;
  rondo_graph *graph = test_graph(t);
  rondo_node alloc, node;
  rondo_exec *exec;
  assert_ok(rondo_graph_add_alloc(graph, NULL, 0, 4096, "scratch", &scratch, &alloc));
  const rondo_memory_operation operation = write_32(scratch, 5);
  (void)add_operation(graph, NULL, 0, operation);
  assert_ok(rondo_graph_add_free(graph, &alloc, 1, scratch, &node));
  assert_error(rondo_instantiate(graph, NULL, &exec), RONDO_INVALID_LIFETIME, RONDO_REASON_NOT_ALLOCATED);
}

/* Bad input -------------------------------------------------------------------------------------------------------- */

static void refuse(test_fixture *t, const rondo_memory_operation *operations, size_t count, rondo_reason reason) {
  rondo_graph *graph = test_graph(t);
  rondo_node node;
  assert_invalid(rondo_memory_operations_async(t->stream, operations, count), reason);
  assert_invalid(rondo_graph_add_memory_operations(graph, NULL, 0, operations, count, &node), reason);
  test_graph_destroy(graph);
}

TEST(test_ad8_bad_operations_are_refused) {
  uint32_t *words = test_words(t, 4);
  rondo_memory_operation many[RONDO_MAX_MEMORY_OPERATIONS + 1], at = write_32(words, 1);
  for (size_t i = 0; i <= RONDO_MAX_MEMORY_OPERATIONS; i++) many[i] = at;
  refuse(t, many, RONDO_MAX_MEMORY_OPERATIONS + 1, RONDO_REASON_BAD_SIZE);
  refuse(t, many, 0, RONDO_REASON_BAD_SIZE);
  refuse(t, NULL, 1, RONDO_REASON_NULL_ARGUMENT);
  at.address = NULL;
  refuse(t, &at, 1, RONDO_REASON_NULL_ARGUMENT);
  at.address = (char *)words + 2;
  refuse(t, &at, 1, RONDO_REASON_BAD_SIZE);
  at = (rondo_memory_operation){.kind = RONDO_OPERATION_WRITE_64, .address = words + 1};
  refuse(t, &at, 1, RONDO_REASON_BAD_SIZE);
  at = (rondo_memory_operation){.kind = RONDO_OPERATION_WRITE_32, .address = words, .value = UINT64_C(1) << 32};
  refuse(t, &at, 1, RONDO_REASON_BAD_SIZE);
  at = (rondo_memory_operation){.kind = RONDO_OPERATION_WRITE_32, .address = words, .condition = RONDO_WAIT_AND};
  refuse(t, &at, 1, RONDO_REASON_BAD_OPTIONS);
  at = wait_32(words, (rondo_wait_condition)4, 0);
  refuse(t, &at, 1, RONDO_REASON_BAD_OPTIONS);
  at = (rondo_memory_operation){.kind = (rondo_memory_operation_kind)6, .address = words};
  refuse(t, &at, 1, RONDO_REASON_BAD_OPTIONS);
  at = (rondo_memory_operation){.kind = RONDO_OPERATION_FLUSH, .address = words};
  refuse(t, &at, 1, RONDO_REASON_BAD_OPTIONS);
  assert_ok(rondo_memory_operations_async(t->stream, many, RONDO_MAX_MEMORY_OPERATIONS));
  assert_ok(rondo_stream_synchronize(t->stream));
}

TEST(test_ad8_words_past_the_end_are_refused) {
  void *memory;
  assert_ok(rondo_malloc(t->device, 12, "short", &memory));
  const rondo_memory_operation at = {.kind = RONDO_OPERATION_WRITE_64, .address = (char *)memory + 8, .value = 1};
  refuse(t, &at, 1, RONDO_REASON_OUT_OF_RANGE);
  assert_message("word of memory operation 0");
  assert_ok(rondo_free(t->device, memory));
}

/* Flushes exist where remote writes arrive: not on the fake GPU. */
TEST(test_ad8_flushes) {
  const rondo_memory_operation flush = {.kind = RONDO_OPERATION_FLUSH};
  if (test_device_is("cpu")) {
    assert_ok(rondo_memory_operations_async(t->stream, &flush, 1));
    assert_ok(rondo_stream_synchronize(t->stream));
    return;
  }
  const rondo_status status = rondo_memory_operations_async(t->stream, &flush, 1);
  if (status == RONDO_OK) return;
  assert_int_equal(status, RONDO_UNSUPPORTED);
  assert_int_equal(rondo_last_error()->reason, RONDO_REASON_NOT_SUPPORTED);
}
