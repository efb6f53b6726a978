/* SPDX-License-Identifier: MIT
 * Launches in several orders on a checking device. A dependency on an order that no edge gives is found although no
 * verifier could see it, the two nodes are named, and memory is otherwise as after one run.
 */
#include "support/rondo_test.h"

#include <stdio.h>
#include <string.h>

enum { ORDERS = 6 };

/* A kernel with a number that is an address: word = word * factor + term. */
typedef struct step {
  uint32_t *word;
  uint32_t factor, term;
} step;

static void step_cpu(rondo_blocks blocks, void *const *args) {
  const step *self = args[0];
  if (blocks.first == 0) *self->word = *self->word * self->factor + self->term;
}

static const rondo_kernel_options step_options = {RONDO_KERNEL_OPTIONS_INIT, .name = "step", .cpu = step_cpu,
                                                  .params = {RONDO_SCALAR(step)}};

/* The fixture's device is opened again with `orders`. */
static void reopen(test_fixture *t, uint32_t orders) {
  const rondo_device_options options = {RONDO_DEVICE_OPTIONS_INIT, .allocator = &t->allocator.table,
                                        .check_orders = orders, .check_seed = 7};
  assert_ok(rondo_stream_destroy(t->stream));
  assert_ok(rondo_device_close(t->device));
  assert_ok(rondo_device_open(test_device_name(), &options, &t->device));
  assert_ok(rondo_stream_create(t->device, NULL, &t->stream));
}

static rondo_node add_step(test_fixture *t, rondo_graph *graph, const rondo_node *dependencies, size_t count,
                           uint32_t *word, uint32_t factor, uint32_t term) {
  rondo_node node = {0};
  const step self = {.word = word, .factor = factor, .term = term};
  rondo_kernel *kernel = test_kernel_make(t, &step_options);
  assert_ok(
      rondo_graph_add_kernel(graph, dependencies, count, kernel, (rondo_grid){1, 0, 0}, RONDO_ARGS(&self), &node));
  rondo_kernel_destroy(kernel);
  return node;
}

static uint64_t orders_run(test_fixture *t) { return test_statistics(t).orders; }

/* Two of many nodes race for a word by pointers that nobody declared: exactly those are named. */
TEST(test_a_race_that_no_verifier_sees) {
  enum { WORDS = 24, RACING = 17 };
  reopen(t, ORDERS);
  uint32_t *words = test_words(t, WORDS);
  rondo_graph *graph = test_graph(t);
  const rondo_node root = add_step(t, graph, NULL, 0, words, 1, 3);
  rondo_node nodes[WORDS], second = {0}, end = {0};
  for (uint32_t i = 1; i < WORDS; i++) {
    nodes[i] = add_step(t, graph, &root, 1, words + i, 3, i);
    if (i == RACING) second = add_step(t, graph, &root, 1, words + i, 5, 1);
    nodes[i] = add_step(t, graph, &nodes[i], 1, words + i, 1, 1);
  }
  end = add_step(t, graph, nodes + 1, WORDS - 1, words, 1, 1);
  rondo_exec *exec = test_instantiate(graph); /* the verifier has nothing against it */
  assert_ok(rondo_exec_launch(exec, t->stream));
  assert_error(rondo_stream_synchronize(t->stream), RONDO_EXECUTION_FAILED, RONDO_REASON_RACE);
  char name[64];
  snprintf(name, sizeof name, "(node %u)", rondo_node_number(second));
  assert_message(name);
  assert_message("'words' (96 B) differs from byte 68 on");
  assert_message("Add an edge");
  assert_true(orders_run(t) >= 2);
  rondo_exec_destroy(exec);
  assert_ok(rondo_graph_add_edges(graph, &second, &nodes[RACING], 1)); /* not enough: still next to the first step */
  exec = test_instantiate(graph);
  assert_ok(rondo_exec_launch(exec, t->stream));
  assert_error(rondo_stream_synchronize(t->stream), RONDO_EXECUTION_FAILED, RONDO_REASON_RACE);
  const uint32_t number = rondo_last_error()->node;
  assert_true(number == rondo_node_number(second) || number + 1 == rondo_node_number(second));
  rondo_exec_destroy(exec);
  test_graph_destroy(graph);
  (void)end;
}

/* The edge that the message names mends it. */
TEST(test_the_named_edge_mends_it) {
  reopen(t, 2);
  uint32_t *words = test_words(t, 1);
  rondo_graph *graph = test_graph(t);
  const rondo_node first = add_step(t, graph, NULL, 0, words, 3, 1), second = add_step(t, graph, NULL, 0, words, 5, 3);
  rondo_exec *exec = test_instantiate(graph);
  assert_ok(rondo_exec_launch(exec, t->stream));
  assert_error(rondo_stream_synchronize(t->stream), RONDO_EXECUTION_FAILED, RONDO_REASON_RACE);
  assert_message("kernel 'step' (node 0) and kernel 'step' (node 1)");
  assert_message("Add an edge 0 -> 1");
  assert_int_equal(test_word(t, words), 8); /* the result of the graph's order, computed once */
  rondo_exec_destroy(exec);
  assert_ok(rondo_graph_add_edges(graph, &first, &second, 1));
  exec = test_instantiate(graph);
  assert_ok(rondo_exec_launch(exec, t->stream));
  assert_int_equal(test_word(t, words), (8 * 3 + 1) * 5 + 3);
}

/* An allocation that one order reaches too late: the order is what finds the fault. */
TEST(test_a_missing_edge_after_an_alloc_node) {
  reopen(t, 2);
  rondo_graph *graph = test_graph(t);
  rondo_node alloc = {0}, node = {0};
  void *scratch = NULL;
  const rondo_instantiate_options options = {RONDO_INSTANTIATE_OPTIONS_INIT, .skip_verify = true};
  assert_ok(rondo_graph_add_alloc(graph, NULL, 0, 64, "scratch", &scratch, &alloc));
  const rondo_node user = add_step(t, graph, NULL, 0, scratch, 0, 1); /* next to the alloc, by chance after it */
  const rondo_node both[2] = {alloc, user};
  assert_ok(rondo_graph_add_free(graph, both, 2, scratch, &node));
  rondo_exec *exec = test_instantiate_with(graph, &options);
  assert_ok(rondo_exec_launch(exec, t->stream));
  assert_error(rondo_stream_synchronize(t->stream), RONDO_EXECUTION_FAILED, RONDO_REASON_NOT_ALLOCATED);
  assert_message("kernel 'step' (node 1)");
  assert_message("'scratch'");
}

/* Every launch counts once, whatever the number of orders: device and host memory, and memory left alive. */
TEST(test_orders_leave_the_result_of_one_run) {
  reopen(t, ORDERS);
  uint32_t *words = test_words(t, 3), expected = 0;
  void *host = NULL, *kept = NULL;
  assert_ok(rondo_host_malloc(t->device, 64, &host));
  uint32_t local = 0;
  rondo_graph *graph = test_graph(t);
  rondo_node alloc = {0}, side = {0}, node = {0};
  const rondo_node first = test_add_affine(t, graph, NULL, 0, words, 3, 1);
  assert_ok(rondo_graph_add_alloc(graph, NULL, 0, 64, "kept", &kept, &alloc));
  test_add_affine(t, graph, &first, 1, words + 1, 5, 2);
  const rondo_fill fill = {.dst = kept, .value = 9, .element_bytes = 4, .width = 16};
  assert_ok(rondo_graph_add_fill(graph, &alloc, 1, &fill, &side));
  const rondo_node both[2] = {first, side};
  const rondo_copy copy = {.dst = host, .src = words, .width = 4}, out = {.dst = &local, .src = kept, .width = 4};
  assert_ok(rondo_graph_add_copy(graph, both, 2, &copy, &node));
  assert_ok(rondo_graph_add_copy(graph, both, 2, &out, &node));
  rondo_exec *exec = test_exec_of(graph);
  for (uint32_t i = 0; i < 5; i++) {
    const uint64_t before = orders_run(t);
    expected = expected * 3 + 1;
    test_launch(t, exec);
    assert_int_equal(test_word(t, words), expected);
    assert_int_equal(*(uint32_t *)host, expected);
    assert_int_equal(local, 9);
    assert_int_equal(test_word(t, (uint32_t *)kept + 15), 9);
    assert_true(orders_run(t) > before + 1);
    assert_ok(rondo_free_async(t->stream, kept));
  }
  rondo_exec_destroy(exec);
  assert_ok(rondo_stream_synchronize(t->stream));
  assert_ok(rondo_host_free(t->device, host));
}

static rondo_status count_calls(void *calls) {
  ++*(int *)calls;
  return RONDO_OK;
}

/* Work that cannot be undone runs once: host functions, and everything when only one order is requested. */
TEST(test_what_cannot_be_taken_back_runs_once) {
  reopen(t, ORDERS);
  int calls = 0;
  uint32_t *words = test_words(t, 2);
  rondo_graph *graph = test_graph(t);
  rondo_node node = {0};
  test_add_affine(t, graph, NULL, 0, words, 1, 1);
  test_add_affine(t, graph, NULL, 0, words + 1, 1, 1);
  assert_ok(rondo_graph_add_host(graph, NULL, 0, count_calls, &calls, &node));
  rondo_exec *exec = test_exec_of(graph);
  for (int i = 0; i < 3; i++) assert_ok(rondo_exec_launch(exec, t->stream));
  assert_ok(rondo_stream_synchronize(t->stream));
  assert_int_equal(calls, 3);
  assert_int_equal(orders_run(t), 0);
  assert_int_equal(test_word(t, words + 1), 3);
}

TEST(test_one_order_is_no_exploration) {
  reopen(t, 1);
  uint32_t *words = test_words(t, 1);
  rondo_graph *graph = test_graph(t);
  add_step(t, graph, NULL, 0, words, 3, 1);
  add_step(t, graph, NULL, 0, words, 1, 0);
  rondo_exec *exec = test_exec_of(graph);
  for (int i = 0; i < 3; i++) assert_ok(rondo_exec_launch(exec, t->stream));
  assert_int_equal(test_word(t, words), 13);
  assert_int_equal(orders_run(t), 0);
}

/* Host memory that a kernel writes and the device does not know cannot be set back: such a graph is run once too. */
TEST(test_kernels_that_write_foreign_memory_run_once) {
  reopen(t, ORDERS);
  uint32_t words[2] = {0, 0};
  rondo_graph *graph = test_graph(t);
  test_add_affine(t, graph, NULL, 0, &words[0], 3, 1);
  test_add_affine(t, graph, NULL, 0, &words[1], 3, 1);
  rondo_exec *exec = test_exec_of(graph);
  for (int i = 0; i < 3; i++) assert_ok(rondo_exec_launch(exec, t->stream));
  assert_ok(rondo_stream_synchronize(t->stream));
  assert_true(words[0] == 13 && words[1] == 13);
}

/* When several copies write host memory, all bytes of the longest are restored between orders. Otherwise a node that
 * reads them first would find what an earlier order left, and the orders could not be compared. */
TEST(test_host_memory_that_copies_of_two_lengths_write) {
  reopen(t, ORDERS);
  uint32_t *words = test_words(t, 4), local[2] = {7, 8};
  rondo_graph *graph = test_graph(t);
  rondo_node first = {0}, second = {0}, third = {0};
  const rondo_copy reads = {.dst = words + 2, .src = &local[1], .width = 4};
  const rondo_copy one = {.dst = local, .src = words, .width = 4}, both = {.dst = local, .src = words, .width = 8};
  assert_ok(rondo_graph_add_copy(graph, NULL, 0, &reads, &first));
  assert_ok(rondo_graph_add_copy(graph, &first, 1, &one, &second));
  assert_ok(rondo_graph_add_copy(graph, &second, 1, &both, &third));
  add_step(t, graph, NULL, 0, words + 3, 3, 1);
  add_step(t, graph, NULL, 0, words + 3, 5, 1);
  rondo_exec *exec = test_exec_of(graph);
  assert_ok(rondo_exec_launch(exec, t->stream));
  assert_error(rondo_stream_synchronize(t->stream), RONDO_EXECUTION_FAILED, RONDO_REASON_RACE);
  assert_message("'words' (16 B) differs from byte 12 on");
  assert_int_equal(test_word(t, words + 2), 8);
  assert_int_equal(local[1], 0);
}

/* Events of a graph are recorded once, when its memory is settled. */
TEST(test_events_inside_are_recorded) {
  reopen(t, ORDERS);
  rondo_stream *other = test_stream(t, "other");
  rondo_event *event = test_event(t);
  uint32_t *words = test_words(t, 2);
  rondo_graph *graph = test_graph(t);
  rondo_node node = test_add_affine(t, graph, NULL, 0, words, 3, 1);
  test_add_affine(t, graph, NULL, 0, words + 1, 3, 1);
  assert_ok(rondo_graph_add_event_record(graph, &node, 1, event, &node));
  rondo_exec *exec = test_exec_of(graph);
  for (int i = 0; i < 10; i++) {
    assert_ok(rondo_exec_launch(exec, t->stream));
    assert_ok(rondo_stream_wait_event(other, event));
    test_affine(t, other, words, 1, 2, 0);
    test_order(t, other, t->stream);
  }
  assert_ok(rondo_device_synchronize(t->device));
  uint32_t expected = 0;
  for (int i = 0; i < 10; i++) expected = (expected * 3 + 1) * 2;
  assert_int_equal(test_word(t, words), expected);
}

/* Launches on several streams at once: each is explored, and each is right. */
TEST(test_launches_on_several_streams) {
  enum { STREAMS = 4, LAUNCHES = 25 };
  reopen(t, 3);
  rondo_stream *streams[STREAMS];
  rondo_exec *execs[STREAMS];
  uint32_t *words = test_words(t, 2 * STREAMS), expected = 0;
  for (uint32_t i = 0; i < STREAMS; i++) {
    streams[i] = test_stream(t, NULL);
    rondo_graph *graph = test_graph(t);
    test_add_affine(t, graph, NULL, 0, words + 2 * i, 3, 1);
    test_add_affine(t, graph, NULL, 0, words + 2 * i + 1, 3, 1);
    execs[i] = test_exec_of(graph);
  }
  for (int k = 0; k < LAUNCHES; k++) {
    for (int i = 0; i < STREAMS; i++) assert_ok(rondo_exec_launch(execs[i], streams[i]));
    expected = expected * 3 + 1;
  }
  assert_ok(rondo_device_synchronize(t->device));
  for (int i = 0; i < 2 * STREAMS; i++) assert_int_equal(test_word(t, words + i), expected);
  for (int i = 0; i < STREAMS; i++) {
    rondo_exec_destroy(execs[i]);
    test_stream_destroy(streams[i]);
  }
}

int main(void) {
  if (!test_device_is("cpu:check")) return 77;
  return test_run_registered();
}
