/* SPDX-License-Identifier: MIT
 * Work that a library gives to the native handle of a capturing stream becomes part of the graph (GX-8). On a device
 * whose handles are not a driver's, only that is tested. With the fake driver, the library uses the same driver.
 */
#include <string.h>

#include "support/foreign_library.h"
#include "support/rondo_test.h"

#define assert_foreign(call) assert_int_equal((call), 0)
#define WORDS 8

typedef struct scene {
  test_fixture *t;
  foreign_library *foreign;
  void *native;
  uint32_t *words;
} scene;

static int set_up(void **state) {
  static scene s;
  if (test_setup(state) != 0) return -1;
  s = (scene){.t = *state};
  if (test_device_is("cuda")) s.native = rondo_stream_native(s.t->stream);
  if (s.native != NULL) s.foreign = foreign_open();
  if (s.foreign != NULL) s.words = test_words(s.t, WORDS);
  *state = &s;
  return 0;
}

static int tear_down(void **state) {
  scene *s = *state;
  if (s->foreign != NULL) test_words_free(s->t, s->words);
  if (s->foreign != NULL) foreign_close(s->foreign);
  *state = s->t;
  return test_teardown(state);
}

/* Leaves the test where the device has no handles of a driver. */
static void enter(const scene *s) {
  if (s->native == NULL) skip();
  assert_non_null(s->foreign);
}

static void begin(const scene *s) { assert_ok(rondo_capture_begin(s->t->stream, RONDO_CAPTURE_THREAD_LOCAL)); }
static rondo_graph *end(const scene *s) { return test_capture_end(s->t->stream); }

static void own(const scene *s, uint32_t factor, uint32_t term) {
  test_affine(s->t, s->t->stream, s->words, 1, factor, term);
}

static void set_word(const scene *s, uint32_t value) { test_write(s->t, s->words, &value, sizeof value); }
static uint32_t word(const scene *s, size_t index) { return test_word(s->t, &s->words[index]); }

static size_t count_kind(const rondo_graph *graph, rondo_node_kind kind) {
  rondo_node nodes[64];
  size_t count = 64, found = 0;
  assert_ok(rondo_graph_nodes(graph, nodes, &count));
  for (size_t i = 0; i < count; i++) {
    rondo_node_params params = test_node_params(graph, nodes[i]);
    found += params.kind == kind;
  }
  return found;
}

static rondo_node find_kind(const rondo_graph *graph, rondo_node_kind kind, const char *name) {
  rondo_node nodes[64];
  size_t count = 64;
  assert_ok(rondo_graph_sort(graph, nodes, &count));
  for (size_t i = 0; i < count; i++) {
    rondo_node_params params = test_node_params(graph, nodes[i]);
    if (params.kind == kind && (name == NULL || strcmp(params.name, name) == 0)) return nodes[i];
  }
  fail_msg("no node of kind %s", rondo_node_kind_name(kind));
  return (rondo_node){0};
}

static void launch(const scene *s, rondo_exec *exec) {
  assert_ok(rondo_exec_launch(exec, s->t->stream));
  assert_ok(rondo_stream_synchronize(s->t->stream));
}

/* Destroys the graph first: an exec keeps what was captured. */
static void run_twice_from_one(const scene *s, rondo_graph *graph, uint32_t once, uint32_t twice) {
  rondo_exec *exec = test_exec_of(graph);
  set_word(s, 1);
  launch(s, exec);
  assert_int_equal(word(s, 0), once);
  launch(s, exec);
  assert_int_equal(word(s, 0), twice);
  rondo_exec_destroy(exec);
}

/* The stream captures and runs as usual. */
static void assert_usable(const scene *s) {
  begin(s);
  assert_foreign(foreign_affine(s->foreign, s->native, 2, 1, s->words));
  own(s, 3, 1);
  run_twice_from_one(s, end(s), 10, 64);
}

static void assert_no_findings(const rondo_graph *graph) {
  rondo_findings *findings;
  assert_ok(rondo_graph_verify(graph, NULL, &findings));
  assert_int_equal(rondo_findings_count(findings), 0);
  rondo_findings_destroy(findings);
}

#define SCENE_TEST(name) TEST_DEFINE(name, scene *s, set_up, tear_down)

/* Importing ------------------------------------------------------------------------------------------------------- */

SCENE_TEST(test_gx8_native_handles_are_the_drivers) {
  assert_null(rondo_stream_native(NULL));
  assert_non_null(rondo_stream_native(s->t->stream));
}

SCENE_TEST(test_gx8_kernels_of_both_forms_lie_between_others) {
  enter(s);
  begin(s);
  own(s, 2, 1);
  assert_foreign(foreign_affine(s->foreign, s->native, 3, 5, s->words));
  own(s, 7, 2);
  assert_foreign(foreign_affine_by_buffer(s->foreign, s->native, 11, 3, s->words));
  rondo_graph *graph = end(s);
  assert_int_equal(count_kind(graph, RONDO_NODE_KERNEL), 4);
  rondo_node_params params = test_node_params(graph, find_kind(graph, RONDO_NODE_KERNEL, "foreign_affine"));
  assert_string_equal(rondo_kernel_name(params.as.kernel.kernel), "foreign_affine");
  assert_int_equal(params.as.kernel.grid.x, 1);
  size_t count;
  const rondo_parameter *parameters = rondo_kernel_parameters(params.as.kernel.kernel, &count);
  assert_int_equal(count, 1);
  assert_int_equal(parameters[0].bytes, 16);
  assert_memory_equal((const char *)params.as.kernel.args[0] + 8, &s->words, sizeof s->words);
  const uint32_t once = (((1 * 2 + 1) * 3 + 5) * 7 + 2) * 11 + 3;
  run_twice_from_one(s, graph, once, (((once * 2 + 1) * 3 + 5) * 7 + 2) * 11 + 3);
}

static void count_call(void *user) { ++*(uint32_t *)user; }

SCENE_TEST(test_gx8_copies_fills_and_host_functions) {
  enter(s);
  uint32_t calls = 0, expected[WORDS] = {9, 9, 9, 9, 0, 9, 0, 9};
  begin(s);
  assert_foreign(foreign_fill(s->foreign, s->native, s->words, 9, 4));
  assert_foreign(foreign_host(s->foreign, s->native, count_call, &calls));
  assert_foreign(foreign_copy(s->foreign, s->native, s->words + 5, s->words, 4));
  assert_foreign(foreign_copy_rows(s->foreign, s->native, s->words + 5, 8, s->words, 4, 4, 2));
  rondo_graph *graph = end(s);
  assert_int_equal(count_kind(graph, RONDO_NODE_FILL), 1);
  assert_int_equal(count_kind(graph, RONDO_NODE_COPY), 2);
  rondo_node_params params = test_node_params(graph, find_kind(graph, RONDO_NODE_FOREIGN, NULL));
  assert_string_equal(params.as.foreign.what, "host function");
  assert_false(params.as.foreign.is_bound);
  rondo_exec *first = test_instantiate(graph), *second = test_instantiate(graph);
  launch(s, first);
  launch(s, second);
  assert_int_equal(calls, 2);
  assert_words(s->t, s->words, expected, WORDS);
}

SCENE_TEST(test_gx8_a_library_forks_and_joins) {
  enter(s);
  void *forked;
  begin(s);
  own(s, 2, 1);
  assert_foreign(foreign_fork(s->foreign, s->native, &forked));
  assert_foreign(foreign_affine(s->foreign, forked, 0, 5, s->words + 1));
  own(s, 3, 1);
  assert_foreign(foreign_join(s->foreign, s->native));
  own(s, 5, 1);
  rondo_graph *graph = end(s);
  rondo_node last = {0}, nodes[8], dependencies[8];
  size_t count = 8;
  assert_ok(rondo_graph_sort(graph, nodes, &count));
  assert_int_equal(count, 4);
  last = nodes[3];
  count = 8;
  assert_ok(rondo_graph_dependencies(graph, last, dependencies, &count));
  assert_int_equal(count, 2);
  const uint32_t once = ((1 * 2 + 1) * 3 + 1) * 5 + 1;
  run_twice_from_one(s, graph, once, ((once * 2 + 1) * 3 + 1) * 5 + 1);
  assert_int_equal(word(s, 1), 5);
}

SCENE_TEST(test_gx8_events_and_waits_of_rondo_order_foreign_work) {
  enter(s);
  rondo_stream *other = test_stream(s->t, "other");
  begin(s);
  assert_foreign(foreign_affine(s->foreign, s->native, 2, 1, s->words));
  test_order(s->t, s->t->stream, other);
  assert_foreign(foreign_affine(s->foreign, rondo_stream_native(other), 3, 1, s->words));
  test_order(s->t, other, s->t->stream);
  assert_foreign(foreign_affine(s->foreign, s->native, 5, 1, s->words));
  rondo_graph *graph = end(s);
  size_t count;
  assert_ok(rondo_graph_edges(graph, NULL, NULL, &count));
  assert_int_equal(count, 3); /* the last is after both */
  const uint32_t once = ((1 * 2 + 1) * 3 + 1) * 5 + 1;
  run_twice_from_one(s, graph, once, ((once * 2 + 1) * 3 + 1) * 5 + 1);
}

/* The library makes a stream of Rondo's part of the capture, and removes it. */
SCENE_TEST(test_gx8_streams_of_rondo_that_a_library_makes_join) {
  enter(s);
  rondo_stream *other = test_stream(s->t, "other");
  rondo_capture_info info = {.struct_size = sizeof info}, own_info = {.struct_size = sizeof own_info};
  begin(s);
  own(s, 2, 1);
  assert_foreign(foreign_order(s->foreign, s->native, rondo_stream_native(other)));
  void *memory = test_allocate_async(other, 4096);
  assert_ok(rondo_capture_get_info(other, &info));
  assert_ok(rondo_capture_get_info(s->t->stream, &own_info));
  assert_int_equal(info.state, RONDO_CAPTURE_ACTIVE);
  assert_int_equal(info.id, own_info.id);
  assert_ok(rondo_copy_async(other, memory, s->words, 4));
  test_affine(s->t, other, memory, 1, 3, 1);
  assert_ok(rondo_copy_async(other, s->words, memory, 4));
  assert_ok(rondo_free_async(other, memory));
  assert_foreign(foreign_order(s->foreign, rondo_stream_native(other), s->native));
  void *also = test_allocate_async(s->t->stream, 4096);
  assert_ptr_equal(memory, also);
  assert_ok(rondo_free_async(s->t->stream, also));
  own(s, 5, 1);
  rondo_graph *graph = end(s);
  assert_no_findings(graph);
  const uint32_t once = ((1 * 2 + 1) * 3 + 1) * 5 + 1;
  run_twice_from_one(s, graph, once, ((once * 2 + 1) * 3 + 1) * 5 + 1);
  assert_ok(rondo_stream_synchronize(other));
}

SCENE_TEST(test_gx8_external_events_of_a_library) {
  enter(s);
  begin(s);
  own(s, 2, 1);
  assert_foreign(foreign_record_external(s->foreign, s->native));
  own(s, 3, 1);
  rondo_graph *graph = end(s);
  rondo_node_params params = test_node_params(graph, find_kind(graph, RONDO_NODE_FOREIGN, NULL));
  assert_string_equal(params.as.foreign.what, "event record");
  run_twice_from_one(s, graph, 10, 64);
}

SCENE_TEST(test_gx8_an_empty_capture_and_one_of_foreign_work_alone) {
  enter(s);
  begin(s);
  rondo_graph *graph = end(s);
  assert_int_equal(count_kind(graph, RONDO_NODE_KERNEL), 0);
  test_graph_destroy(graph);
  begin(s);
  assert_foreign(foreign_affine(s->foreign, s->native, 4, 2, s->words));
  run_twice_from_one(s, end(s), 6, 26);
}

SCENE_TEST(test_gx8_into_a_graph_twice) { /* C14 */
  enter(s);
  rondo_graph *graph = test_graph(s->t);
  const rondo_node first = test_add_affine(s->t, graph, NULL, 0, s->words, 2, 1);
  assert_ok(rondo_capture_begin_to_graph(s->t->stream, graph, &first, 1, RONDO_CAPTURE_THREAD_LOCAL));
  assert_foreign(foreign_affine(s->foreign, s->native, 3, 1, s->words));
  assert_ok(rondo_capture_end(s->t->stream, NULL));
  const rondo_node middle = find_kind(graph, RONDO_NODE_KERNEL, "foreign_affine");
  assert_ok(rondo_capture_begin_to_graph(s->t->stream, graph, &middle, 1, RONDO_CAPTURE_THREAD_LOCAL));
  assert_foreign(foreign_affine_by_buffer(s->foreign, s->native, 5, 1, s->words));
  assert_ok(rondo_capture_end(s->t->stream, NULL));
  size_t count;
  assert_ok(rondo_graph_edges(graph, NULL, NULL, &count));
  assert_int_equal(count, 2);
  const uint32_t once = ((1 * 2 + 1) * 3 + 1) * 5 + 1;
  run_twice_from_one(s, graph, once, ((once * 2 + 1) * 3 + 1) * 5 + 1);
}

SCENE_TEST(test_gx8_the_frontier_is_the_drivers) { /* C12, C13 */
  enter(s);
  begin(s);
  assert_foreign(foreign_affine(s->foreign, s->native, 2, 1, s->words));
  rondo_capture_info info = test_capture_info(s->t->stream);
  assert_int_equal(info.frontier_count, 1);
  rondo_node_params params;
  assert_ok(rondo_graph_get_params(info.graph, info.frontier[0], &params));
  assert_string_equal(params.name, "foreign_affine");
  const rondo_node by_hand = test_add_affine(s->t, info.graph, info.frontier, 1, s->words, 3, 1);
  assert_ok(rondo_capture_set_frontier(s->t->stream, &by_hand, 1, true));
  assert_foreign(foreign_affine(s->foreign, s->native, 5, 1, s->words));
  const uint32_t once = ((1 * 2 + 1) * 3 + 1) * 5 + 1;
  run_twice_from_one(s, end(s), once, ((once * 2 + 1) * 3 + 1) * 5 + 1);
}

/* Memory ---------------------------------------------------------------------------------------------------------- */

SCENE_TEST(test_gx8_memory_is_placed_by_the_drivers_order) {
  enter(s);
  uint32_t *a, *b;
  void *forked;
  void *taken[3];
  begin(s);
  assert_ok(rondo_malloc_async(s->t->stream, 4096, NULL, &taken[0]));
  a = taken[0];
  assert_ok(rondo_fill_async(s->t->stream, &(rondo_fill){.dst = a, .element_bytes = 4, .width = 1, .value = 1}));
  assert_foreign(foreign_affine(s->foreign, s->native, 2, 5, a));
  assert_ok(rondo_copy_async(s->t->stream, s->words, a, 4));
  assert_ok(rondo_free_async(s->t->stream, a));
  assert_foreign(foreign_affine(s->foreign, s->native, 1, 1, s->words));
  assert_ok(rondo_malloc_async(s->t->stream, 4096, NULL, &taken[1]));
  b = taken[1];
  assert_ptr_equal(a, b); /* the free precedes it, through the library's kernel */
  assert_foreign(foreign_fork(s->foreign, s->native, &forked));
  assert_foreign(foreign_fill(s->foreign, forked, s->words + 1, 3, 1));
  assert_ok(rondo_malloc_async(s->t->stream, 4096, NULL, &taken[2]));
  assert_ptr_not_equal(taken[2], b);
  assert_foreign(foreign_join(s->foreign, s->native));
  assert_ok(rondo_free_async(s->t->stream, b));
  assert_ok(rondo_free_async(s->t->stream, taken[2]));
  rondo_graph *graph = end(s);
  assert_no_findings(graph);
  run_twice_from_one(s, graph, 8, 8);
}

SCENE_TEST(test_gx8_pointers_of_foreign_kernels_are_looked_at) { /* GM-5, warnings */
  enter(s);
  begin(s);
  void *memory = test_allocate_async(s->t->stream, 4096);
  assert_foreign(foreign_affine(s->foreign, s->native, 1, 1, memory));
  assert_ok(rondo_free_async(s->t->stream, memory));
  assert_foreign(foreign_affine_by_buffer(s->foreign, s->native, 1, 1, memory));
  rondo_graph *graph = end(s);
  rondo_findings *findings;
  rondo_finding finding = {.struct_size = sizeof finding};
  assert_ok(rondo_graph_verify(graph, NULL, &findings));
  assert_int_equal(rondo_findings_count(findings), 1);
  assert_ok(rondo_findings_get(findings, 0, &finding));
  assert_int_equal(finding.severity, RONDO_SEVERITY_WARNING);
  assert_int_equal(finding.reason, RONDO_REASON_USE_AFTER_FREE);
  assert_non_null(strstr(finding.message, "foreign_affine"));
  rondo_findings_destroy(findings);
  test_graph_destroy(graph);
}

SCENE_TEST(test_gx8_relocating_what_foreign_work_accesses) {
  enter(s);
  const rondo_instantiate_options relocating = {RONDO_INSTANTIATE_OPTIONS_INIT, .relocate = true};
  uint32_t calls = 0;
  void *memory;
  rondo_exec *exec;
  for (int i = 0; i < 3; i++) {
    begin(s);
    assert_ok(rondo_malloc_async(s->t->stream, 4096, NULL, &memory));
    assert_ok(rondo_fill_async(s->t->stream, &(rondo_fill){.dst = memory, .value = 7, .element_bytes = 4, .width = 1}));
    if (i == 1) assert_foreign(foreign_affine(s->foreign, s->native, 2, 1, memory));
    if (i == 2) assert_foreign(foreign_host(s->foreign, s->native, count_call, &calls));
    assert_ok(rondo_copy_async(s->t->stream, s->words, memory, 4));
    assert_ok(rondo_free_async(s->t->stream, memory));
    assert_foreign(foreign_copy(s->foreign, s->native, s->words + 1, s->words, 4));
    rondo_graph *graph = end(s);
    if (i == 0) {
      assert_ok(rondo_instantiate(graph, &relocating, &exec));
      launch(s, exec);
      assert_int_equal(word(s, 1), 7);
      rondo_exec_destroy(exec);
    } else {
      assert_error(rondo_instantiate(graph, &relocating, &exec), RONDO_INVALID_GRAPH, RONDO_REASON_NOT_RELOCATABLE);
    }
    test_graph_destroy(graph);
  }
}

/* A library that was given no workspace: its memory is the driver's. */
static rondo_graph *capture_with_foreign_memory(const scene *s, uint32_t *calls) {
  void *memory;
  begin(s);
  own(s, 2, 1);
  assert_foreign(foreign_allocate(s->foreign, s->native, 1 << 20, &memory));
  assert_foreign(foreign_copy(s->foreign, s->native, memory, s->words, 4));
  assert_foreign(foreign_affine(s->foreign, s->native, 3, 1, memory));
  void *mine = test_allocate_async(s->t->stream, 4096);
  assert_ok(rondo_copy_async(s->t->stream, mine, memory, 4));
  assert_foreign(foreign_free(s->foreign, s->native, memory));
  assert_foreign(foreign_host(s->foreign, s->native, count_call, calls));
  assert_ok(rondo_copy_async(s->t->stream, s->words, mine, 4));
  assert_ok(rondo_free_async(s->t->stream, mine));
  assert_ok(
      rondo_fill_async(s->t->stream, &(rondo_fill){.dst = s->words + 1, .element_bytes = 4, .width = 1, .value = 77}));
  own(s, 5, 1);
  return end(s);
}

SCENE_TEST(test_gx8_foreign_memory_runs_from_the_captured_graph) {
  enter(s);
  uint32_t calls = 0;
  rondo_graph *graph = capture_with_foreign_memory(s, &calls);
  rondo_node_params params = test_node_params(graph, find_kind(graph, RONDO_NODE_FOREIGN, NULL));
  assert_string_equal(params.as.foreign.what, "memory allocation");
  assert_int_equal(params.as.foreign.bytes, 1 << 20);
  assert_true(params.as.foreign.is_bound);
  rondo_exec *exec = test_instantiate(graph);
  assert_int_equal(test_exec_info(exec).foreign_bytes, 1 << 20);
  test_graph_destroy(graph);
  uint32_t expected = 1;
  set_word(s, expected);
  for (uint32_t i = 1; i <= 3; i++) {
    launch(s, exec);
    expected = ((expected * 2 + 1) * 3 + 1) * 5 + 1;
    assert_int_equal(word(s, 0), expected);
    assert_int_equal(word(s, 1), 77);
    assert_int_equal(calls, i);
  }
}

SCENE_TEST(test_gx8_foreign_memory_allows_one_exec_and_no_edits) {
  enter(s);
  uint32_t calls = 0;
  rondo_graph *graph = capture_with_foreign_memory(s, &calls), *clone = NULL, *around = test_graph(s->t);
  rondo_exec *exec = test_instantiate(graph), *second = NULL;
  rondo_node node = find_kind(graph, RONDO_NODE_KERNEL, "foreign_affine"), added, from[16], to[16];
  const rondo_instantiate_options relocating = {RONDO_INSTANTIATE_OPTIONS_INIT, .relocate = true};
  size_t count = 16;
  assert_error(rondo_instantiate(graph, NULL, &second), RONDO_UNSUPPORTED, RONDO_REASON_FOREIGN_WORK);
  assert_message("cublasSetWorkspace");
  assert_error(rondo_instantiate(graph, &relocating, &second), RONDO_UNSUPPORTED, RONDO_REASON_FOREIGN_WORK);
  assert_error(rondo_graph_clone(graph, &clone), RONDO_UNSUPPORTED, RONDO_REASON_FOREIGN_WORK);
  assert_message("memory allocation");
  assert_message("cublasSetWorkspace");
  assert_error(rondo_graph_add_child(around, NULL, 0, graph, &added), RONDO_UNSUPPORTED, RONDO_REASON_FOREIGN_WORK);
  assert_error(rondo_graph_remove(graph, node), RONDO_UNSUPPORTED, RONDO_REASON_FOREIGN_WORK);
  assert_ok(rondo_graph_edges(graph, from, to, &count));
  assert_error(rondo_graph_remove_edges(graph, from, to, 1), RONDO_UNSUPPORTED, RONDO_REASON_FOREIGN_WORK);
  rondo_update_result result = {.struct_size = sizeof result};
  assert_error(rondo_exec_update(exec, graph, &result), RONDO_UPDATE_REFUSED, RONDO_REASON_FOREIGN_WORK);
  assert_int_equal(result.reason, RONDO_REASON_FOREIGN_WORK);
  begin(s);
  assert_error(rondo_exec_launch(exec, s->t->stream), RONDO_UNSUPPORTED, RONDO_REASON_FOREIGN_WORK);
  test_graph_destroy(end(s));
  set_word(s, 1);
  launch(s, exec);
  assert_int_equal(word(s, 0), 51);
}

SCENE_TEST(test_gx8_nodes_added_after_foreign_memory) {
  enter(s);
  uint32_t calls = 0;
  rondo_graph *graph = capture_with_foreign_memory(s, &calls);
  rondo_node nodes[32];
  size_t count = 32;
  assert_ok(rondo_graph_sort(graph, nodes, &count));
  (void)test_add_affine(s->t, graph, &nodes[count - 1], 1, s->words, 10, 7);
  rondo_exec *exec = test_instantiate(graph);
  set_word(s, 1);
  launch(s, exec);
  assert_int_equal(word(s, 0), 51 * 10 + 7);
}

/* Memory of the graph's own has no pages while the library works on it. */
SCENE_TEST(test_gx8_libraries_fill_and_copy_graph_memory) {
  enter(s);
  const size_t last = ((size_t)36 << 18) - 1;
  for (int with_foreign_memory = 0; with_foreign_memory < 2; with_foreign_memory++) {
    void *theirs = NULL;
    uint32_t *mine;
    begin(s);
    if (with_foreign_memory) assert_foreign(foreign_allocate(s->foreign, s->native, 4096, &theirs));
    void *memory = test_allocate_async(s->t->stream, last * 4 + 4);
    mine = memory;
    assert_foreign(foreign_fill(s->foreign, s->native, mine, 9, last + 1));
    assert_foreign(foreign_copy(s->foreign, s->native, mine + 3, s->words, 4));
    assert_foreign(foreign_copy_rows(s->foreign, s->native, mine + last, 8, mine + 3, 8, 4, 1));
    assert_foreign(foreign_affine(s->foreign, s->native, 2, 1, mine + 3));
    assert_foreign(foreign_copy(s->foreign, s->native, s->words, mine + 3, 4));
    assert_foreign(foreign_copy(s->foreign, s->native, s->words + 1, mine + last - 1, 4));
    assert_foreign(foreign_copy(s->foreign, s->native, s->words + 2, mine + last, 4));
    if (with_foreign_memory) assert_foreign(foreign_free(s->foreign, s->native, theirs));
    assert_ok(rondo_free_async(s->t->stream, memory));
    run_twice_from_one(s, end(s), 3, 7);
    assert_int_equal(word(s, 1), 9);
    assert_int_equal(word(s, 2), 3);
  }
}

/* A clone's launch maps addresses that a capture then uses. */
SCENE_TEST(test_gx8_graph_memory_is_mapped_while_a_capture_goes_on) {
  enter(s);
  rondo_stream *other = test_stream(s->t, "other");
  rondo_graph *clone = NULL;
  rondo_node nodes[8];
  size_t count = 8;
  begin(s);
  void *memory = test_allocate_async(s->t->stream, 4096);
  assert_foreign(foreign_fill(s->foreign, s->native, memory, 7, 1));
  assert_foreign(foreign_copy(s->foreign, s->native, s->words + 1, memory, 4));
  assert_ok(rondo_free_async(s->t->stream, memory));
  rondo_graph *graph = end(s);
  assert_ok(rondo_graph_clone(graph, &clone));
  assert_ok(rondo_graph_sort(graph, nodes, &count));
  assert_ok(rondo_capture_begin_to_graph(s->t->stream, graph, &nodes[count - 1], 1, RONDO_CAPTURE_RELAXED));
  void *again = test_allocate_async(s->t->stream, 4096);
  assert_ptr_equal(again, memory);
  rondo_exec *exec = test_instantiate(clone);
  assert_ok(rondo_exec_launch(exec, other));
  assert_ok(rondo_stream_synchronize(other));
  own(s, 2, 1);
  assert_foreign(foreign_copy(s->foreign, s->native, again, s->words, 4));
  assert_ok(rondo_free_async(s->t->stream, again));
  assert_ok(rondo_capture_end(s->t->stream, NULL));
  assert_int_equal(word(s, 1), 7);
  rondo_exec_destroy(exec);
  test_graph_destroy(clone);
  run_twice_from_one(s, graph, 3, 7);
}

/* The driver takes no copy of such memory once its free is in the graph. */
SCENE_TEST(test_gx8_foreign_memory_is_copied_before_it_is_freed) {
  enter(s);
  rondo_graph *graph = NULL;
  rondo_exec *exec = NULL;
  rondo_node node = {0};
  uint32_t calls = 0;
  void *memory;
  begin(s);
  assert_foreign(foreign_allocate(s->foreign, s->native, 4096, &memory));
  assert_foreign(foreign_free(s->foreign, s->native, memory));
  assert_error(rondo_copy_async(s->t->stream, s->words, memory, 4), RONDO_CAPTURE_REFUSED, RONDO_REASON_FOREIGN_WORK);
  assert_message("rondo_copy_async");
  assert_message("node 2");
  assert_message("before it is freed");
  assert_error(rondo_capture_end(s->t->stream, &graph), RONDO_CAPTURE_INVALID, RONDO_REASON_INVALIDATED);
  assert_message("rondo_copy_async");
  begin(s); /* slices at uneven distances, which the driver has no word for */
  assert_foreign(foreign_allocate(s->foreign, s->native, 4096, &memory));
  assert_foreign(foreign_fill(s->foreign, s->native, memory, 7, 16));
  assert_ok(rondo_copy_box_async(s->t->stream, &(rondo_copy){.dst = s->words,
                                                             .src = memory,
                                                             .width = 4,
                                                             .height = 2,
                                                             .depth = 2,
                                                             .dst_pitch = 4,
                                                             .src_pitch = 4,
                                                             .dst_slice_pitch = 12,
                                                             .src_slice_pitch = 10}));
  assert_foreign(foreign_free(s->foreign, s->native, memory));
  graph = end(s);
  assert_error(rondo_instantiate(graph, NULL, &exec), RONDO_UNSUPPORTED, RONDO_REASON_FOREIGN_WORK);
  assert_message("node 2");
  test_graph_destroy(graph);
  graph = capture_with_foreign_memory(s, &calls);
  rondo_node_params params;
  rondo_node nodes[32];
  size_t count = 32;
  assert_ok(rondo_graph_sort(graph, nodes, &count));
  assert_ok(rondo_graph_get_params(graph, find_kind(graph, RONDO_NODE_FOREIGN, NULL), &params));
  const rondo_copy copy = {.dst = s->words + 2, .src = params.as.foreign.address, .width = 4};
  assert_ok(rondo_graph_add_copy(graph, &nodes[count - 1], 1, &copy, &node));
  assert_error(rondo_instantiate(graph, NULL, &exec), RONDO_UNSUPPORTED, RONDO_REASON_FOREIGN_WORK);
  assert_int_equal(rondo_last_error()->node, rondo_node_number(node));
  assert_message("before that is freed");
  test_graph_destroy(graph);
  assert_usable(s);
}

/* A library's memory operations become nodes like those of a program. */
SCENE_TEST(test_ad8_memory_operations_of_libraries) {
  enter(s);
  void *pinned;
  assert_ok(rondo_host_malloc(s->t->device, 64, &pinned));
  memset(pinned, 0, 64);
  begin(s);
  own(s, 2, 1);
  assert_foreign(foreign_wait_value(s->foreign, s->native, pinned, 0));
  own(s, 3, 1);
  rondo_graph *graph = end(s);
  const rondo_node_params params = test_node_params(graph, find_kind(graph, RONDO_NODE_MEMORY_OPERATIONS, NULL));
  assert_int_equal(params.as.memory_operations.count, 1);
  assert_ptr_equal(params.as.memory_operations.operations[0].address, pinned);
  run_twice_from_one(s, graph, 10, 64);
  assert_ok(rondo_host_free(s->t->device, pinned));
}

/* Graphs and execs ------------------------------------------------------------------------------------------------ */

SCENE_TEST(test_gx8_clones_children_and_updates) {
  enter(s);
  begin(s);
  assert_foreign(foreign_affine(s->foreign, s->native, 2, 1, s->words));
  rondo_graph *graph = end(s), *clone, *around = test_graph(s->t);
  rondo_node first, second;
  assert_ok(rondo_graph_clone(graph, &clone));
  assert_same_graph(graph, clone);
  assert_ok(rondo_graph_add_child(around, NULL, 0, graph, &first));
  assert_ok(rondo_graph_add_child(around, &first, 1, clone, &second));
  rondo_exec *exec = test_exec_of(graph);
  begin(s);
  assert_ok(rondo_exec_launch(exec, s->t->stream));
  assert_foreign(foreign_affine(s->foreign, s->native, 3, 1, s->words));
  graph = end(s);
  run_twice_from_one(s, graph, 10, 64);
  begin(s);
  assert_foreign(foreign_affine(s->foreign, s->native, 100, 1, s->words));
  graph = end(s);
  assert_ok(rondo_exec_update(exec, graph, NULL));
  test_graph_destroy(graph);
  test_graph_destroy(clone);
  set_word(s, 1);
  launch(s, exec);
  assert_int_equal(word(s, 0), 101);
  rondo_exec_destroy(exec);
  run_twice_from_one(s, around, 7, 31);
}

SCENE_TEST(test_gx8_foreign_nodes_are_set_and_measured) {
  enter(s);
  uint32_t calls = 0;
  begin(s);
  assert_foreign(foreign_affine(s->foreign, s->native, 2, 1, s->words));
  assert_foreign(foreign_host(s->foreign, s->native, count_call, &calls));
  assert_foreign(foreign_affine_by_buffer(s->foreign, s->native, 1, 0, s->words));
  rondo_graph *graph = end(s);
  const rondo_node node = find_kind(graph, RONDO_NODE_KERNEL, "foreign_affine");
  rondo_exec *exec = test_instantiate(graph);
  rondo_node_params params = test_node_params(graph, node);
  struct {
    uint32_t factor, term;
    uint32_t *word;
  } arguments = {50, 3, s->words};
  const void *const args[] = {&arguments};
  params.as.kernel.args = args;
  assert_ok(rondo_exec_set_params(exec, node, &params));
  set_word(s, 1);
  launch(s, exec);
  assert_int_equal(word(s, 0), 53);
  rondo_node_time times[4];
  size_t count = 4;
  assert_ok(rondo_exec_measure(exec, s->t->stream, 2, times, &count));
  assert_int_equal(count, 3);
  assert_int_equal(calls, 4);
  assert_ok(rondo_exec_set_enabled(exec, node, false));
  set_word(s, 5);
  launch(s, exec);
  assert_int_equal(word(s, 0), 5);
  rondo_graph *other;
  begin(s);
  assert_foreign(foreign_affine(s->foreign, s->native, 2, 1, s->words));
  assert_foreign(foreign_host(s->foreign, s->native, count_call, s->words));
  assert_foreign(foreign_affine(s->foreign, s->native, 1, 0, s->words));
  other = end(s);
  assert_error(rondo_exec_update(exec, other, NULL), RONDO_UPDATE_REFUSED, RONDO_REASON_FOREIGN_WORK);
}

SCENE_TEST(test_gx8_foreign_kernels_can_be_launched_again) {
  enter(s);
  begin(s);
  assert_foreign(foreign_affine(s->foreign, s->native, 2, 1, s->words));
  rondo_graph *graph = end(s);
  rondo_node_params params = test_node_params(graph, find_kind(graph, RONDO_NODE_KERNEL, NULL));
  set_word(s, 4);
  assert_ok(rondo_launch(s->t->stream, params.as.kernel.kernel, params.as.kernel.grid, params.as.kernel.args,
                         params.as.kernel.arg_count));
  assert_int_equal(word(s, 0), 9);
}

/* A kernel that may begin early is not ordered after its predecessor; its successor is ordered after both. */
SCENE_TEST(test_gx8_programmatic_edges) {
  enter(s);
  begin(s);
  assert_foreign(foreign_affine(s->foreign, s->native, 2, 1, s->words));
  assert_foreign(foreign_affine_early(s->foreign, s->native, 3, 1, s->words + 1));
  own(s, 5, 1);
  rondo_graph *graph = end(s);
  rondo_node from[4], to[4], nodes[4];
  size_t count = 4;
  assert_ok(rondo_graph_programmatic_edges(graph, from, to, NULL, &count));
  assert_int_equal(count, 1);
  assert_ok(rondo_graph_sort(graph, nodes, &count));
  count = 4;
  assert_ok(rondo_graph_dependencies(graph, to[0], nodes, &count));
  assert_int_equal(count, 0);
  count = 4;
  assert_ok(rondo_graph_sort(graph, nodes, &count));
  assert_int_equal(nodes[0].id, from[0].id);
  assert_int_equal(nodes[1].id, to[0].id);
  size_t dependency_count = 4;
  rondo_node dependencies[4];
  assert_ok(rondo_graph_dependencies(graph, nodes[2], dependencies, &dependency_count));
  assert_int_equal(dependency_count, 2);
  rondo_graph *clone;
  assert_ok(rondo_graph_clone(graph, &clone));
  assert_same_graph(graph, clone);
  test_graph_destroy(clone);
  char *text;
  assert_ok(rondo_graph_to_dot(graph, false, &text));
  assert_non_null(strstr(text, "style=dashed"));
  rondo_text_free(text);
  run_twice_from_one(s, graph, 16, 166);
}

SCENE_TEST(test_gx8_dumps_read_back) { /* GX-7 */
  enter(s);
  uint32_t calls = 0;
  begin(s);
  assert_foreign(foreign_affine(s->foreign, s->native, 2, 1, s->words));
  assert_foreign(foreign_affine_early(s->foreign, s->native, 3, 1, s->words + 1));
  assert_foreign(foreign_host(s->foreign, s->native, count_call, &calls));
  rondo_graph *graph = end(s), *read;
  char *text, *again;
  assert_ok(rondo_graph_to_json(graph, false, &text));
  assert_ok(rondo_graph_from_json(text, strlen(text), &read));
  assert_ok(rondo_graph_to_json(read, false, &again));
  assert_string_equal(text, again);
  rondo_text_free(text);
  rondo_text_free(again);
  test_graph_destroy(read);
  test_graph_destroy(graph);
}

/* Mistakes -------------------------------------------------------------------------------------------------------- */

SCENE_TEST(test_gx8_a_capture_that_a_library_breaks) { /* C10 */
  enter(s);
  rondo_graph *graph = NULL;
  begin(s);
  own(s, 2, 1);
  assert_foreign(foreign_affine(s->foreign, s->native, 2, 1, s->words));
  own(s, 2, 1);
  assert_int_equal(foreign_synchronize(s->foreign, s->native), FOREIGN_UNSUPPORTED);
  assert_error(rondo_fill_async(s->t->stream, &(rondo_fill){.dst = s->words, .element_bytes = 4, .width = 1}),
               RONDO_CAPTURE_INVALID, RONDO_REASON_INVALIDATED);
  assert_message("library");
  assert_message("node 2");
  assert_message("rondo_fill_async");
  assert_int_equal(test_capture_info(s->t->stream).state, RONDO_CAPTURE_INVALIDATED);
  assert_error(rondo_capture_end(s->t->stream, &graph), RONDO_CAPTURE_INVALID, RONDO_REASON_INVALIDATED);
  assert_message("rondo_fill_async");
  assert_null(graph);
  assert_usable(s);
}

SCENE_TEST(test_gx8_a_break_that_the_end_finds) {
  enter(s);
  rondo_graph *graph = NULL;
  begin(s);
  own(s, 2, 1);
  assert_int_equal(foreign_synchronize(s->foreign, s->native), FOREIGN_UNSUPPORTED);
  assert_int_equal(foreign_affine(s->foreign, s->native, 2, 1, s->words), FOREIGN_INVALIDATED);
  assert_error(rondo_capture_end(s->t->stream, &graph), RONDO_CAPTURE_INVALID, RONDO_REASON_INVALIDATED);
  assert_message("node 0");
  assert_message("which is over now");
  assert_null(graph);
  assert_usable(s);
}

SCENE_TEST(test_gx8_a_break_by_rondo_is_named) { /* C6 */
  enter(s);
  rondo_graph *graph = NULL;
  begin(s);
  assert_foreign(foreign_affine(s->foreign, s->native, 2, 1, s->words));
  assert_error(rondo_stream_query(s->t->stream), RONDO_CAPTURE_REFUSED, RONDO_REASON_UNSUPPORTED_CALL);
  assert_error(rondo_capture_end(s->t->stream, &graph), RONDO_CAPTURE_INVALID, RONDO_REASON_INVALIDATED);
  assert_message("rondo_stream_query");
  assert_usable(s);
}

SCENE_TEST(test_gx8_a_stream_that_a_library_captures) { /* C1 */
  enter(s);
  assert_foreign(foreign_begin_capture(s->foreign, s->native));
  assert_error(rondo_capture_begin(s->t->stream, RONDO_CAPTURE_RELAXED), RONDO_CAPTURE_REFUSED,
               RONDO_REASON_ALREADY_CAPTURING);
  assert_foreign(foreign_end_capture(s->foreign, s->native));
  assert_usable(s);
}

SCENE_TEST(test_gx8_a_capture_that_a_library_ends) {
  enter(s);
  rondo_graph *graph = NULL;
  begin(s);
  own(s, 2, 1);
  assert_foreign(foreign_end_capture(s->foreign, s->native));
  assert_error(rondo_capture_end(s->t->stream, &graph), RONDO_CAPTURE_INVALID, RONDO_REASON_INVALIDATED);
  assert_null(graph);
  assert_usable(s);
}

SCENE_TEST(test_gx8_a_library_that_does_not_join) { /* C5 */
  enter(s);
  void *forked;
  rondo_graph *graph = NULL;
  begin(s);
  assert_foreign(foreign_fork(s->foreign, s->native, &forked));
  assert_foreign(foreign_affine(s->foreign, forked, 2, 1, s->words));
  assert_error(rondo_capture_end(s->t->stream, &graph), RONDO_CAPTURE_REFUSED, RONDO_REASON_UNJOINED);
  assert_null(graph);
  assert_usable(s);
}

SCENE_TEST(test_gx8_a_given_graph_outlives_a_broken_capture) {
  enter(s);
  rondo_graph *graph = test_graph(s->t);
  rondo_exec *exec = NULL;
  uint32_t calls = 0;
  assert_ok(rondo_capture_begin_to_graph(s->t->stream, graph, NULL, 0, RONDO_CAPTURE_THREAD_LOCAL));
  assert_foreign(foreign_host(s->foreign, s->native, count_call, &calls));
  own(s, 2, 1);
  assert_int_equal(foreign_synchronize(s->foreign, s->native), FOREIGN_UNSUPPORTED);
  assert_error(rondo_capture_end(s->t->stream, NULL), RONDO_CAPTURE_INVALID, RONDO_REASON_INVALIDATED);
  assert_int_equal(count_kind(graph, RONDO_NODE_FOREIGN), 1);
  assert_error(rondo_instantiate(graph, NULL, &exec), RONDO_UNSUPPORTED, RONDO_REASON_FOREIGN_WORK);
  assert_ok(rondo_graph_remove(graph, find_kind(graph, RONDO_NODE_FOREIGN, NULL)));
  exec = test_instantiate(graph);
  set_word(s, 1);
  launch(s, exec);
  assert_int_equal(word(s, 0), 3);
  rondo_exec_destroy(exec);
  test_graph_destroy(graph);
  assert_usable(s);
}

SCENE_TEST(test_gx8_streams_destroyed_while_they_capture) {
  enter(s);
  rondo_stream *origin = test_stream(s->t, "origin"), *member = test_stream(s->t, "member");
  rondo_graph *graph = NULL;
  assert_ok(rondo_capture_begin(origin, RONDO_CAPTURE_THREAD_LOCAL));
  assert_foreign(foreign_affine(s->foreign, rondo_stream_native(origin), 2, 1, s->words));
  test_order(s->t, origin, member);
  test_stream_destroy(member);
  assert_error(rondo_capture_end(origin, &graph), RONDO_CAPTURE_INVALID, RONDO_REASON_INVALIDATED);
  assert_ok(rondo_capture_begin(origin, RONDO_CAPTURE_THREAD_LOCAL));
  assert_foreign(foreign_affine(s->foreign, rondo_stream_native(origin), 2, 1, s->words));
  test_stream_destroy(origin);
  assert_usable(s);
}
