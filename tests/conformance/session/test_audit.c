/* SPDX-License-Identifier: MIT
 * The copy audit of captured graphs: what it refuses (SE-4), what it removes and reports, and the order that remains
 * (SE-5). The graphs are captured, or built where their shape matters.
 */
#include <string.h>

#include "support/rondo_test.h"

enum { WORDS = 8, BYTES = WORDS * sizeof(uint32_t) };

typedef struct audited {
  test_fixture *t;
  uint32_t *x, *y, *sum; /* device memory */
  uint32_t input[WORDS], constant[WORDS], output[WORDS];
  rondo_host_range input_range, constant_range, output_range;
  rondo_audit_options options;
  size_t capacity; /* of copies, for audit */
  /* The results of audit. */
  rondo_input_copy copies[4];
  size_t count;
  rondo_audit_info info;
} audited;

static audited *open_audited(test_fixture *t) {
  static audited opened;
  audited *a = &opened;
  *a = (audited){.t = t, .capacity = sizeof a->copies / sizeof a->copies[0]};
  a->x = test_words(t, WORDS);
  a->y = test_words(t, WORDS);
  a->sum = test_words(t, WORDS);
  for (uint32_t i = 0; i < WORDS; i++) a->input[i] = i, a->constant[i] = 100 * i;
  a->input_range = (rondo_host_range){a->input, BYTES, "input"};
  a->constant_range = (rondo_host_range){a->constant, BYTES, "constant"};
  a->output_range = (rondo_host_range){a->output, BYTES, "output"};
  a->options = (rondo_audit_options){
      RONDO_AUDIT_OPTIONS_INIT, .inputs = &a->input_range,   .input_count = 1, .constants = &a->constant_range,
      .constant_count = 1,      .outputs = &a->output_range, .output_count = 1};
  return a;
}

static rondo_status audit(audited *a, rondo_graph *graph) {
  a->count = a->capacity;
  a->info = (rondo_audit_info){.struct_size = sizeof a->info};
  return rondo_graph_audit_copies(graph, &a->options, a->copies, &a->count, &a->info);
}

static void combine(audited *a) {
  const rondo_grid grid = {WORDS, 1, 1};
  assert_ok(
      rondo_launch(a->t->stream, test_kernel(a->t, TEST_KERNEL_COMBINE), grid, RONDO_ARGS(&a->x, &a->y, &a->sum)));
}

/* sum = 31 x + y, of an input and a constant, fetched: one line of copies and a kernel. */
static rondo_graph *capture_line(audited *a) {
  assert_ok(rondo_capture_begin(a->t->stream, RONDO_CAPTURE_THREAD_LOCAL));
  assert_ok(rondo_copy_async(a->t->stream, a->y, a->constant, BYTES));
  assert_ok(rondo_copy_async(a->t->stream, a->x, a->input, BYTES));
  combine(a);
  assert_ok(rondo_copy_async(a->t->stream, a->output, a->sum, BYTES));
  return test_capture_end(a->t->stream);
}

TEST(test_se5_input_copies_are_taken_out_and_reported) {
  audited *a = open_audited(t);
  rondo_graph *graph = capture_line(a);
  assert_int_equal(test_node_count(graph), 4);
  assert_ok(audit(a, graph));
  assert_int_equal(a->count, 1);
  assert_int_equal(a->copies[0].input, 0);
  assert_int_equal(a->copies[0].offset, 0);
  assert_ptr_equal(a->copies[0].copy.dst, a->x);
  assert_ptr_equal(a->copies[0].copy.src, a->input);
  assert_int_equal(a->copies[0].copy.width, BYTES);
  assert_int_equal(a->info.inputs, 1);
  assert_int_equal(a->info.constants, 1);
  assert_int_equal(a->info.outputs, 1);
  assert_int_equal(a->info.edges, 1);
  assert_int_equal(a->info.input_bytes, BYTES);
  assert_int_equal(a->info.constant_bytes, BYTES);
  assert_int_equal(a->info.output_bytes, BYTES);
  assert_int_equal(test_node_count(graph), 3);
  assert_int_equal(test_edge_count(graph), 2);

  /* The next input is at another address. */
  uint32_t other[WORDS], wanted[WORDS];
  for (uint32_t i = 0; i < WORDS; i++) other[i] = 7 + i, wanted[i] = other[i] * 31 + a->constant[i];
  assert_ok(rondo_copy_async(a->t->stream, a->copies[0].copy.dst, other, BYTES));
  test_run_once(a->t, graph);
  assert_memory_equal(a->output, wanted, BYTES);
}

TEST(test_se5_pieces_of_an_input_have_their_offset) {
  audited *a = open_audited(t);
  assert_ok(rondo_capture_begin(a->t->stream, RONDO_CAPTURE_THREAD_LOCAL));
  assert_ok(rondo_copy_async(a->t->stream, a->x, a->input, BYTES / 2));
  assert_ok(rondo_copy_async(a->t->stream, a->x + WORDS / 2, a->input + WORDS / 2, BYTES / 2));
  rondo_graph *graph = test_capture_end(a->t->stream);
  a->capacity = 2;
  assert_ok(audit(a, graph));
  assert_int_equal(a->count, 2);
  assert_int_equal(a->copies[0].offset, 0);
  assert_int_equal(a->copies[1].offset, BYTES / 2);
  assert_ptr_equal(a->copies[1].copy.dst, a->x + WORDS / 2);
  assert_int_equal(test_node_count(graph), 0);
}

TEST(test_se4_unknown_host_memory_is_refused_by_node) {
  audited *a = open_audited(t);
  rondo_graph *graph = capture_line(a);
  a->options.constant_count = 0;
  assert_error(audit(a, graph), RONDO_CAPTURE_REFUSED, RONDO_REASON_WRONG_MEMORY);
  assert_int_equal(rondo_last_error()->node, 0);
  a->options.constant_count = 1;
  a->options.output_count = 0;
  assert_error(audit(a, graph), RONDO_CAPTURE_REFUSED, RONDO_REASON_WRONG_MEMORY);
  assert_int_equal(rondo_last_error()->node, 3);
  a->options.output_count = 1;
  a->input_range.bytes = BYTES - 1; /* only in part */
  assert_error(audit(a, graph), RONDO_CAPTURE_REFUSED, RONDO_REASON_WRONG_MEMORY);
  assert_int_equal(rondo_last_error()->node, 1);
  assert_int_equal(test_node_count(graph), 4);
  assert_int_equal(test_edge_count(graph), 3);
}

/* Pinned memory is host memory, whoever allocated it. */
TEST(test_se4_pinned_memory_needs_a_name_as_well) {
  audited *a = open_audited(t);
  void *pinned = NULL;
  assert_ok(rondo_host_malloc(a->t->device, BYTES, &pinned));
  assert_ok(rondo_capture_begin(a->t->stream, RONDO_CAPTURE_THREAD_LOCAL));
  assert_ok(rondo_copy_async(a->t->stream, a->x, pinned, BYTES));
  rondo_graph *graph = test_capture_end(a->t->stream);
  assert_error(audit(a, graph), RONDO_CAPTURE_REFUSED, RONDO_REASON_WRONG_MEMORY);
  a->constant_range.address = pinned;
  assert_ok(audit(a, graph));
  assert_int_equal(a->count, 0);
  assert_int_equal(a->info.constants, 1);
  assert_int_equal(test_node_count(graph), 1);
  test_graph_destroy(graph);
  assert_ok(rondo_host_free(a->t->device, pinned));
}

TEST(test_se4_fills_of_the_host_are_outputs) {
  audited *a = open_audited(t);
  const rondo_fill fill = {.dst = a->input, .value = 1, .element_bytes = 4, .width = WORDS};
  rondo_graph *graph = test_graph(a->t);
  rondo_node node;
  size_t count = 0;
  assert_ok(rondo_graph_add_fill(graph, NULL, 0, &fill, &node));
  assert_error(rondo_graph_audit_copies(graph, &a->options, NULL, &count, NULL), RONDO_CAPTURE_REFUSED,
               RONDO_REASON_WRONG_MEMORY);
}

static rondo_node add_input_copy(audited *a, rondo_graph *graph, const rondo_node *dependencies, size_t count,
                                 uint32_t *to) {
  const rondo_copy copy = {.dst = to, .src = a->input, .width = BYTES};
  rondo_node node;
  assert_ok(rondo_graph_add_copy(graph, dependencies, count, &copy, &node));
  return node;
}

/* before -> x -> y -> after1, after2: the order is kept without the copies. */
TEST(test_se5_order_by_way_of_copies_stays) {
  audited *a = open_audited(t);
  rondo_graph *graph = test_graph(a->t);
  const rondo_node before = test_add_affine(a->t, graph, NULL, 0, a->sum, 1, 1);
  const rondo_node x = add_input_copy(a, graph, &before, 1, a->x);
  const rondo_node y = add_input_copy(a, graph, &x, 1, a->y);
  const rondo_node after[2] = {test_add_affine(a->t, graph, &y, 1, a->sum, 2, 0),
                               test_add_affine(a->t, graph, &y, 1, a->sum + 1, 2, 0)};
  a->capacity = 2;
  assert_ok(audit(a, graph));
  assert_int_equal(a->count, 2);
  assert_int_equal(a->info.edges, 2);
  assert_int_equal(test_node_count(graph), 3);
  rondo_node from[4], to[4];
  size_t edges = 4;
  assert_ok(rondo_graph_edges(graph, from, to, &edges));
  assert_int_equal(edges, 2);
  for (size_t i = 0; i < 2; i++) {
    assert_int_equal(from[i].id, before.id);
    assert_int_equal(to[i].id, after[i].id);
  }
}

TEST(test_se5_what_uses_the_memory_before_holds_a_copy_back) {
  audited *a = open_audited(t);
  rondo_graph *graph = test_graph(a->t);
  const rondo_node before = test_add_affine(a->t, graph, NULL, 0, a->x + 3, 1, 1);
  const rondo_node copy = add_input_copy(a, graph, &before, 1, a->x);
  assert_error(audit(a, graph), RONDO_INVALID_GRAPH, RONDO_REASON_RACE);
  assert_int_equal(rondo_last_error()->node, rondo_node_number(copy));
  assert_int_equal(test_node_count(graph), 2);
  a->options.keep_inputs = true;
  assert_ok(audit(a, graph));
  assert_int_equal(a->count, 1);
  assert_int_equal(test_node_count(graph), 2);
}

/* A second copy to the same destination could run first or last. */
TEST(test_se5_two_inputs_for_one_place_are_refused) {
  audited *a = open_audited(t);
  rondo_graph *graph = test_graph(a->t);
  const rondo_node first = add_input_copy(a, graph, NULL, 0, a->x);
  add_input_copy(a, graph, &first, 1, a->x);
  assert_error(audit(a, graph), RONDO_INVALID_GRAPH, RONDO_REASON_RACE);
  assert_int_equal(test_node_count(graph), 2);
}

TEST(test_se5_memory_of_the_graph_does_not_live_before_it) {
  audited *a = open_audited(t);
  rondo_device_info info = test_device_info(a->t->device);
  if (info.graph_memory) {
    assert_ok(rondo_capture_begin(a->t->stream, RONDO_CAPTURE_THREAD_LOCAL));
    void *scratch = test_allocate_async(a->t->stream, BYTES);
    assert_ok(rondo_copy_async(a->t->stream, scratch, a->input, BYTES));
    assert_ok(rondo_free_async(a->t->stream, scratch));
    rondo_graph *graph = test_capture_end(a->t->stream);
    assert_error(audit(a, graph), RONDO_INVALID_LIFETIME, RONDO_REASON_NOT_ALLOCATED);
    assert_int_equal(test_node_count(graph), 3);
    test_graph_destroy(graph);
  }
}

TEST(test_se5_a_short_array_changes_nothing) {
  audited *a = open_audited(t);
  rondo_graph *graph = capture_line(a);
  size_t count = 0;
  assert_ok(rondo_graph_audit_copies(graph, &a->options, NULL, &count, NULL));
  assert_int_equal(count, 1);
  assert_int_equal(test_node_count(graph), 4);
}

TEST(test_se4_child_graphs_are_looked_into) {
  audited *a = open_audited(t);
  rondo_graph *child = test_graph(a->t), *graph = test_graph(a->t);
  rondo_node node;
  add_input_copy(a, child, NULL, 0, a->x);
  assert_ok(rondo_graph_add_child(graph, NULL, 0, child, &node));
  assert_error(audit(a, graph), RONDO_UNSUPPORTED, RONDO_REASON_NODE_KIND);
  a->options.input_count = 0;
  assert_error(audit(a, graph), RONDO_CAPTURE_REFUSED, RONDO_REASON_WRONG_MEMORY);
  a->options.input_count = 1;
  a->options.keep_inputs = true;
  assert_ok(audit(a, graph));
  assert_int_equal(a->count, 1);
}

TEST(test_se4_wrong_arguments) {
  audited *a = open_audited(t);
  rondo_graph *graph = test_graph(a->t);
  size_t count = 0;
  assert_invalid(rondo_graph_audit_copies(NULL, &a->options, NULL, &count, NULL), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_graph_audit_copies(graph, &a->options, NULL, NULL, NULL), RONDO_REASON_NULL_ARGUMENT);
  assert_ok(rondo_graph_audit_copies(graph, NULL, NULL, &count, NULL));
  a->options.inputs = NULL;
  assert_invalid(rondo_graph_audit_copies(graph, &a->options, NULL, &count, NULL), RONDO_REASON_NULL_ARGUMENT);
  a->options.inputs = &a->input_range;
  a->input_range.bytes = 0;
  assert_invalid(rondo_graph_audit_copies(graph, &a->options, NULL, &count, NULL), RONDO_REASON_BAD_SIZE);
  a->input_range = (rondo_host_range){a->output + 1, 4, NULL};
  assert_invalid(rondo_graph_audit_copies(graph, &a->options, NULL, &count, NULL), RONDO_REASON_OVERLAP);
}
