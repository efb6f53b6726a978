/* SPDX-License-Identifier: MIT
 * Graphs of the driver are imported, and the driver's forms of graphs and execs are launched by calls of the driver
 * (AD-2). On a device whose driver has no graphs, only the refusals are tested.
 */
#include <string.h>

#include "support/foreign_library.h"
#include "support/rondo_test.h"

#define assert_foreign(call) assert_int_equal((call), 0)
#define WORDS 16

typedef struct scene {
  test_fixture *t;
  foreign_library *foreign;
  void *native; /* a stream of the library's own */
  uint32_t *words;
  uint32_t calls;
} scene;

static int set_up(void **state) {
  static scene s;
  if (test_setup(state) != 0) return -1;
  s = (scene){.t = *state};
  if (test_device_is("cuda")) s.foreign = foreign_open();
  if (s.foreign != NULL && foreign_stream_create(s.foreign, FOREIGN_NON_BLOCKING, &s.native) != 0) return -1;
  if (s.foreign != NULL) s.words = test_words(s.t, WORDS);
  *state = &s;
  return 0;
}

static int tear_down(void **state) {
  scene *s = *state;
  if (s->foreign != NULL) {
    test_words_free(s->t, s->words);
    (void)foreign_stream_destroy(s->foreign, s->native);
    foreign_close(s->foreign);
  }
  *state = s->t;
  return test_teardown(state);
}

static void enter(const scene *s) {
  if (!test_device_is("cuda")) skip();
  assert_non_null(s->foreign);
}

#define SCENE_TEST(name) TEST_DEFINE(name, scene *s, set_up, tear_down)

static uint32_t word(const scene *s, size_t index) { return test_word(s->t, &s->words[index]); }

static void clear(const scene *s) {
  const uint32_t zeros[WORDS] = {1};
  test_write(s->t, s->words, zeros, sizeof zeros);
}

static void count_call(void *user) { ++*(uint32_t *)user; }

static rondo_graph *import(const scene *s, void *native, bool takes_ownership) {
  const rondo_import_options options = {RONDO_IMPORT_OPTIONS_INIT, .takes_ownership = takes_ownership,
                                        .name = "imported"};
  rondo_graph *graph;
  assert_ok(rondo_graph_import(s->t->device, native, &options, &graph));
  return graph;
}

/* The caller destroys it with rondo_graph_destroy: the teardown does not know it. */
static void end_import(rondo_graph *graph) { assert_ok(rondo_graph_destroy(graph)); }

static void *native_of(rondo_graph *graph) {
  void *native;
  assert_ok(rondo_graph_native(graph, &native));
  assert_non_null(native);
  return native;
}

static void launch(const scene *s, rondo_exec *exec) {
  assert_ok(rondo_exec_launch(exec, s->t->stream));
  assert_ok(rondo_stream_synchronize(s->t->stream));
}

/* Work of all kinds that Rondo can add to another graph, as a program without Rondo captures it. */
static void *capture_elsewhere(scene *s) {
  void *native, *forked;
  uint32_t *w = s->words;
  assert_foreign(foreign_begin_capture(s->foreign, s->native));
  assert_foreign(foreign_affine(s->foreign, s->native, 3, 5, w));
  assert_foreign(foreign_affine_by_buffer(s->foreign, s->native, 2, 1, w));
  assert_foreign(foreign_affine_early(s->foreign, s->native, 7, 1, w));
  assert_foreign(foreign_fork(s->foreign, s->native, &forked));
  assert_foreign(foreign_copy(s->foreign, forked, w + 1, w, 4));
  assert_foreign(foreign_copy_rows(s->foreign, forked, w + 2, 8, w, 4, 4, 2));
  assert_foreign(foreign_fill(s->foreign, s->native, w + 5, 9, 3));
  assert_foreign(foreign_host(s->foreign, s->native, count_call, &s->calls));
  assert_foreign(foreign_join(s->foreign, s->native));
  assert_foreign(foreign_affine(s->foreign, s->native, 1, 4, w));
  assert_foreign(foreign_record_external(s->foreign, s->native));
  assert_foreign(foreign_graph_end(s->foreign, s->native, &native));
  return native;
}

/* What that work leaves, from words that begin with a 1. */
static void assert_captured_ran(const scene *s) {
  const uint32_t first = ((1 * 3 + 5) * 2 + 1) * 7 + 1;
  const uint32_t expected[WORDS] = {first + 4, first, first, 0, first, 9, 9, 9};
  assert_words(s->t, s->words, expected, WORDS);
}

/* Importing ------------------------------------------------------------------------------------------------------- */

SCENE_TEST(test_ad2_an_imported_graph_does_what_the_drivers_did) {
  enter(s);
  void *native = capture_elsewhere(s);
  clear(s);
  assert_foreign(foreign_graph_run(s->foreign, native, s->native));
  assert_captured_ran(s);
  rondo_graph *graph = import(s, native, false);
  assert_foreign(foreign_graph_destroy(s->foreign, native));
  size_t loose = 0;
  assert_ok(rondo_graph_programmatic_edges(graph, NULL, NULL, NULL, &loose));
  assert_int_equal(loose, 1);
  rondo_exec *exec = test_instantiate(graph);
  end_import(graph);
  clear(s);
  launch(s, exec);
  assert_captured_ran(s);
  assert_int_equal(s->calls, 2);
}

SCENE_TEST(test_ad2_a_graph_is_taken_over) {
  enter(s);
  rondo_graph *graph = import(s, capture_elsewhere(s), true);
  rondo_exec *exec = test_instantiate(graph), *second = test_instantiate(graph);
  clear(s);
  launch(s, exec);
  clear(s);
  launch(s, second);
  assert_captured_ran(s);
  end_import(graph);
}

SCENE_TEST(test_ad2_child_graphs_are_imported_inside) {
  enter(s);
  void *around, *inside = capture_elsewhere(s);
  assert_foreign(foreign_begin_capture(s->foreign, s->native));
  assert_foreign(foreign_fill(s->foreign, s->native, s->words + 12, 6, 1));
  assert_foreign(foreign_graph_end(s->foreign, s->native, &around));
  assert_foreign(foreign_graph_add_child(s->foreign, around, inside));
  assert_foreign(foreign_graph_destroy(s->foreign, inside));
  rondo_graph *graph = import(s, around, false);
  assert_foreign(foreign_graph_destroy(s->foreign, around));
  assert_int_equal(test_node_count(graph), 2);
  rondo_exec *exec = test_instantiate(graph);
  clear(s);
  launch(s, exec);
  assert_int_equal(word(s, 12), 6);
  assert_int_equal(word(s, 5), 9);
  assert_int_equal(s->calls, 1);
  end_import(graph);
}

SCENE_TEST(test_ad2_an_empty_graph_is_imported) {
  enter(s);
  void *native;
  assert_foreign(foreign_begin_capture(s->foreign, s->native));
  assert_foreign(foreign_graph_end(s->foreign, s->native, &native));
  rondo_graph *graph = import(s, native, true);
  assert_int_equal(test_node_count(graph), 0);
  launch(s, test_instantiate(graph));
  end_import(graph);
}

/* Memory of the driver cannot be copied: such a graph is taken over, and instantiated once. */
SCENE_TEST(test_ad2_memory_nodes_are_taken_over) {
  enter(s);
  void *native, *memory;
  rondo_graph *graph;
  assert_foreign(foreign_begin_capture(s->foreign, s->native));
  assert_foreign(foreign_allocate(s->foreign, s->native, 4096, &memory));
  assert_foreign(foreign_fill(s->foreign, s->native, memory, 5, 1));
  assert_foreign(foreign_copy(s->foreign, s->native, s->words, memory, 4));
  assert_foreign(foreign_free(s->foreign, s->native, memory));
  assert_foreign(foreign_graph_end(s->foreign, s->native, &native));
  assert_error(rondo_graph_import(s->t->device, native, NULL, &graph), RONDO_UNSUPPORTED, RONDO_REASON_FOREIGN_WORK);
  assert_message("takes_ownership");
  assert_null(graph);
  graph = import(s, native, true);
  void *form;
  assert_error(rondo_graph_native(graph, &form), RONDO_UNSUPPORTED, RONDO_REASON_FOREIGN_WORK);
  rondo_exec *exec = test_instantiate(graph), *second;
  assert_error(rondo_instantiate(graph, NULL, &second), RONDO_UNSUPPORTED, RONDO_REASON_FOREIGN_WORK);
  end_import(graph);
  launch(s, exec);
  assert_int_equal(word(s, 0), 5);
}

/* An imported graph is a graph like others: it is edited, and its exec is patched. */
SCENE_TEST(test_ad2_an_imported_graph_is_edited_and_patched) {
  enter(s);
  void *native;
  assert_foreign(foreign_begin_capture(s->foreign, s->native));
  assert_foreign(foreign_copy(s->foreign, s->native, s->words + 1, s->words, 4));
  assert_foreign(foreign_graph_end(s->foreign, s->native, &native));
  rondo_graph *graph = import(s, native, true);
  rondo_node copy;
  size_t count = 1;
  assert_ok(rondo_graph_nodes(graph, &copy, &count));
  (void)test_add_affine(s->t, graph, &copy, 1, s->words + 1, 10, 2);
  rondo_exec *exec = test_instantiate(graph);
  uint32_t *other = test_words(s->t, WORDS);
  const rondo_patch_input input = {.address = s->words, .bytes = 4};
  rondo_patch_set *set;
  assert_ok(rondo_patch_set_create(exec, &input, 1, NULL, &set));
  test_write(s->t, other, &(uint32_t){4}, 4);
  assert_ok(rondo_patch_set_launch(set, s->t->stream, &(const void *){other}));
  assert_int_equal(word(s, 1), 42);
  rondo_patch_set_destroy(set);
  end_import(graph);
}

/* The driver's forms of graphs ------------------------------------------------------------------------------------ */

SCENE_TEST(test_ad2_import_hand_out_import_again_without_a_difference) {
  enter(s);
  rondo_graph *graph = import(s, capture_elsewhere(s), true);
  rondo_graph *again = import(s, native_of(graph), false);
  assert_same_graph(graph, again);
  rondo_node first;
  size_t count = 1;
  assert_ok(rondo_graph_nodes(graph, &first, &count));
  const rondo_node_params params = test_node_params(graph, first);
  assert_ok(rondo_graph_set_params(graph, first, &params)); /* now the form is a copy, with the kernel set */
  rondo_graph *copied = import(s, native_of(graph), false);
  assert_same_graph(graph, copied);
  clear(s);
  assert_foreign(foreign_graph_run(s->foreign, native_of(graph), s->native));
  assert_captured_ran(s);
  rondo_node empty;
  assert_ok(rondo_graph_add_empty(graph, NULL, 0, &empty)); /* now it is built from the nodes */
  rondo_graph *rebuilt = import(s, native_of(graph), false);
  assert_same_graph(graph, rebuilt);
  clear(s);
  assert_foreign(foreign_graph_run(s->foreign, native_of(graph), s->native));
  assert_captured_ran(s);
  end_import(rebuilt);
  end_import(copied);
  end_import(again);
  end_import(graph);
}

SCENE_TEST(test_ad2_the_form_of_a_graph_follows_its_changes) {
  enter(s);
  size_t nodes;
  rondo_graph *graph = test_graph(s->t);
  const rondo_node first = test_add_affine(s->t, graph, NULL, 0, s->words, 2, 1);
  void *before = native_of(graph);
  assert_ptr_equal(native_of(graph), before);
  rondo_graph *records = test_graph(s->t);
  rondo_node record;
  assert_ok(rondo_graph_add_event_record(records, NULL, 0, test_event(s->t), &record));
  void *native;
  assert_error(rondo_graph_native(records, &native), RONDO_UNSUPPORTED, RONDO_REASON_NOT_SUPPORTED);
  assert_message("records an event");
  (void)test_add_affine(s->t, graph, &first, 1, s->words, 3, 1);
  assert_foreign(foreign_graph_count(s->foreign, native_of(graph), &nodes));
  assert_int_equal(nodes, 2);
  clear(s);
  assert_foreign(foreign_graph_run(s->foreign, native_of(graph), s->native));
  assert_int_equal(word(s, 0), 10);
  clear(s); /* the earlier form is still there */
  assert_foreign(foreign_graph_run(s->foreign, before, s->native));
  assert_int_equal(word(s, 0), 3);
}

static uint32_t result_of(const scene *s, void *native) {
  clear(s);
  assert_foreign(foreign_graph_run(s->foreign, native, s->native));
  return word(s, 0);
}

SCENE_TEST(test_ad2_the_form_of_a_graph_follows_its_kernels) {
  enter(s);
  const uint32_t four = 4, five = 5;
  rondo_graph *graph = test_graph(s->t);
  const rondo_node first = test_add_affine(s->t, graph, NULL, 0, s->words, 2, 1);
  rondo_node last = test_add_affine(s->t, graph, &first, 1, s->words, 3, 1);
  for (int i = 0; i < 4; i++) assert_ok(rondo_graph_add_empty(graph, &last, 1, &last));
  void *before = native_of(graph);
  assert_ok(rondo_graph_set_argument(graph, first, 0, &four));
  void *then = native_of(graph);
  assert_ptr_not_equal(then, before);
  assert_int_equal(result_of(s, then), (1 * 4 + 1) * 3 + 1);
  assert_int_equal(result_of(s, before), (1 * 2 + 1) * 3 + 1);
  assert_ok(rondo_graph_set_argument(graph, first, 0, &five));
  assert_int_equal(result_of(s, native_of(graph)), (1 * 5 + 1) * 3 + 1);
  assert_int_equal(result_of(s, then), (1 * 4 + 1) * 3 + 1);
  (void)test_add_affine(s->t, graph, &last, 1, s->words, 10, 0);
  assert_int_equal(result_of(s, native_of(graph)), ((1 * 5 + 1) * 3 + 1) * 10);
}

/* Rondo's own nodes of all kinds. The child's change makes the form of the graph around it stale. */
SCENE_TEST(test_ad2_all_kinds_of_nodes_have_a_form) {
  enter(s);
  uint32_t calls = 0, *w = s->words;
  rondo_graph *inner = test_graph(s->t), *graph = test_graph(s->t);
  rondo_node last = test_add_affine(s->t, inner, NULL, 0, w, 5, 1), empty;
  assert_ok(rondo_graph_add_host(inner, &last, 1, test_host_count, &calls, &last));
  rondo_event *event = test_event(s->t);
  assert_ok(rondo_graph_add_fill(
      graph, NULL, 0, &(rondo_fill){.dst = w + 4, .value = 3, .element_bytes = 2, .width = 2, .height = 2, .pitch = 8},
      &last));
  assert_ok(rondo_graph_add_child(graph, &last, 1, inner, &last));
  const rondo_node child = last;
  assert_ok(rondo_graph_add_host(graph, &last, 1, test_host_count, &calls, &last));
  assert_ok(rondo_graph_add_empty(graph, &last, 1, &empty));
  assert_ok(rondo_graph_add_copy(
      graph, &empty, 1, &(rondo_copy){.dst = w + 8, .src = w, .width = 4, .height = 2, .dst_pitch = 8, .src_pitch = 16},
      &last));
  assert_ok(rondo_graph_add_event_wait(graph, &last, 1, event, &last));
  clear(s);
  assert_foreign(foreign_graph_run(s->foreign, native_of(graph), s->native));
  const uint32_t expected[WORDS] = {6, 0, 0, 0, 0x00030003, 0, 0x00030003, 0, 6, 0, 0x00030003};
  assert_words(s->t, w, expected, WORDS);
  assert_int_equal(calls, 2);
  const rondo_node_params params = test_node_params(graph, child);
  (void)test_add_affine(s->t, params.as.child, NULL, 0, w + 15, 1, 7);
  assert_foreign(foreign_graph_run(s->foreign, native_of(graph), s->native));
  assert_int_equal(word(s, 15), 7);
  assert_int_equal(calls, 4);
}

SCENE_TEST(test_ad2_a_host_function_that_fails_is_logged) {
  enter(s);
  rondo_graph *graph = test_graph(s->t);
  rondo_node node;
  assert_ok(rondo_graph_add_host(graph, NULL, 0, test_host_fails, NULL, &node));
  assert_foreign(foreign_graph_run(s->foreign, native_of(graph), s->native));
  assert_ok(rondo_stream_synchronize(s->t->stream));
}

static void assert_no_form(rondo_graph *graph, const char *why) {
  void *native = graph;
  assert_error(rondo_graph_native(graph, &native), RONDO_UNSUPPORTED, RONDO_REASON_NOT_SUPPORTED);
  assert_null(native);
  assert_message(why);
}

SCENE_TEST(test_ad2_graphs_that_only_rondo_can_launch_have_no_form) {
  rondo_graph *graph = test_graph(s->t), *around = test_graph(s->t);
  rondo_node node;
  void *address, *native;
  assert_invalid(rondo_graph_native(graph, NULL), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_graph_native(NULL, &native), RONDO_REASON_NULL_ARGUMENT);
  if (s->foreign == NULL) {
    assert_no_form(graph, "use a CUDA device");
    return;
  }
  assert_ok(rondo_capture_begin_to_graph(s->t->stream, graph, NULL, 0, RONDO_CAPTURE_THREAD_LOCAL));
  assert_error(rondo_graph_native(graph, &native), RONDO_INVALID_STATE, RONDO_REASON_CAPTURING_INTO);
  assert_ok(rondo_capture_end(s->t->stream, NULL));
  assert_ok(rondo_graph_add_alloc(graph, NULL, 0, 4096, "activation", &address, &node));
  assert_no_form(graph, "'activation' (node 0) is graph memory");
  assert_ok(rondo_graph_add_child(around, NULL, 0, graph, &node));
  assert_no_form(around, "is graph memory");
  rondo_graph *data;
  assert_ok(rondo_graph_create(NULL, NULL, &data));
  assert_invalid(rondo_graph_native(data, &native), RONDO_REASON_OTHER_DEVICE);
  end_import(data);
}

SCENE_TEST(test_ad2_what_cannot_be_imported) {
  rondo_graph *graph = NULL;
  void *anything = &graph;
  assert_invalid(rondo_graph_import(NULL, anything, NULL, &graph), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_graph_import(s->t->device, NULL, NULL, &graph), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_graph_import(s->t->device, anything, NULL, NULL), RONDO_REASON_NULL_ARGUMENT);
  if (s->foreign != NULL) return;
  assert_error(rondo_graph_import(s->t->device, anything, NULL, &graph), RONDO_UNSUPPORTED, RONDO_REASON_NOT_SUPPORTED);
}

/* The driver's forms of execs ------------------------------------------------------------------------------------- */

SCENE_TEST(test_ad2_an_exec_is_launched_by_the_driver) {
  enter(s);
  void *native;
  rondo_graph *graph = test_graph(s->t);
  const rondo_node node = test_add_affine(s->t, graph, NULL, 0, s->words, 2, 1);
  rondo_exec *exec = test_instantiate(graph);
  clear(s);
  assert_ok(rondo_exec_native(exec, &native));
  assert_foreign(foreign_exec_launch(s->foreign, native, s->native));
  assert_int_equal(word(s, 0), 3);
  launch(s, exec);
  assert_int_equal(word(s, 0), 7);
  const uint32_t factor = 10;
  assert_ok(rondo_exec_set_argument(exec, node, 0, &factor));
  assert_ok(rondo_exec_native(exec, &native));
  assert_foreign(foreign_exec_launch(s->foreign, native, s->native));
  assert_int_equal(word(s, 0), 71);
}

static void pass_gate(void *gate) { (void)test_gate_pass(gate); }
static void set_flag(void *user) { *(bool *)user = true; }

/* A launch by the driver still runs when the exec is destroyed (AD-8). */
SCENE_TEST(test_ad2_user_objects_outlive_launches_by_the_driver) {
  test_skip_if_serial();
  enter(s);
  bool is_released = false;
  void *native;
  test_gate *gate = test_gate_make();
  rondo_user_object *object;
  rondo_graph *graph = test_graph(s->t);
  (void)test_add_affine(s->t, graph, NULL, 0, s->words, 2, 1);
  assert_ok(rondo_user_object_create(&is_released, set_flag, 1, NULL, &object));
  assert_ok(rondo_graph_retain_object(graph, object, 1, true));
  rondo_exec *exec = test_instantiate(graph);
  test_graph_destroy(graph);
  clear(s);
  assert_ok(rondo_exec_native(exec, &native));
  assert_foreign(foreign_host(s->foreign, s->native, pass_gate, gate));
  assert_foreign(foreign_exec_enqueue(s->foreign, native, s->native));
  rondo_exec_destroy(exec);
  assert_ok(rondo_stream_synchronize(s->t->stream));
  assert_false(is_released);
  sem_post(&gate->opened);
  assert_foreign(foreign_synchronize(s->foreign, s->native));
  assert_ok(rondo_device_synchronize(s->t->device));
  assert_true(is_released);
  assert_int_equal(word(s, 0), 3);
}

static void assert_not_native(rondo_graph *graph, const char *why) {
  void *native = graph;
  rondo_exec *exec = test_exec_of(graph);
  assert_error(rondo_exec_native(exec, &native), RONDO_UNSUPPORTED, RONDO_REASON_NOT_SUPPORTED);
  assert_null(native);
  assert_message(why);
  assert_message("rondo_exec_launch");
}

SCENE_TEST(test_ad2_execs_that_only_rondo_can_launch) {
  enter(s);
  rondo_graph *memory = test_graph(s->t), *host = test_graph(s->t), *event = test_graph(s->t);
  rondo_node node;
  void *address;
  assert_ok(rondo_graph_add_alloc(memory, NULL, 0, 4096, NULL, &address, &node));
  assert_ok(rondo_graph_add_free(memory, &node, 1, address, &node));
  assert_ok(rondo_graph_add_host(host, NULL, 0, test_host_nothing, NULL, &node));
  assert_ok(rondo_graph_add_event_record(event, NULL, 0, test_event(s->t), &node));
  assert_not_native(memory, "graph memory");
  assert_not_native(host, "1 host function");
  assert_not_native(event, "records events");
}

/* AD-8: kernels run in their contexts, which are those of open devices. */
SCENE_TEST(test_ad8_kernels_of_other_devices_are_imported) {
  rondo_device *other = NULL;
  rondo_kernel *kernel;
  rondo_node nodes[3];
  size_t count = 3;
  void *there = NULL;
  const uint32_t three = 3, zero = 0;
  enter(s);
  if (rondo_device_open("cuda:1", NULL, &other) != RONDO_OK) skip();
  assert_ok(rondo_kernel_create(other, test_kernel_options(TEST_KERNEL_AFFINE), &kernel));
  assert_ok(rondo_malloc(other, 64, NULL, &there));
  assert_ok(rondo_memory_set_access(other, s->t->device, true));
  rondo_graph *graph = test_graph(s->t);
  assert_ok(rondo_graph_add_kernel(graph, NULL, 0, kernel, (rondo_grid){1, 0, 0}, RONDO_ARGS(&zero, &three, &there),
                                   &nodes[0]));
  nodes[1] = test_add_affine(s->t, graph, &nodes[0], 1, s->words, 0, 2);
  assert_ok(rondo_graph_add_copy(graph, &nodes[1], 1, &(rondo_copy){.dst = s->words + 1, .src = there, .width = 4},
                                 &nodes[2]));
  clear(s);
  assert_foreign(foreign_graph_run(s->foreign, native_of(graph), s->native));
  assert_int_equal(word(s, 1), 3);
  rondo_graph *imported = import(s, native_of(graph), false);
  assert_ok(rondo_graph_nodes(imported, nodes, &count));
  assert_int_equal(count, 3);
  assert_ptr_equal(test_node_params(imported, nodes[0]).device, other);
  assert_ptr_equal(test_node_params(imported, nodes[1]).device, NULL);
  rondo_graph *again = import(s, native_of(imported), false);
  assert_same_graph(imported, again);
  end_import(again);
  clear(s);
  rondo_exec *exec = test_instantiate(imported);
  assert_error(rondo_device_close(other), RONDO_INVALID_STATE, RONDO_REASON_STILL_IN_USE);
  launch(s, exec);
  assert_int_equal(word(s, 0), 2);
  assert_int_equal(word(s, 1), 3);
  rondo_exec_destroy(exec);
  end_import(imported);
  assert_ok(rondo_graph_destroy(graph));
  assert_ok(rondo_free(other, there));
  rondo_kernel_destroy(kernel);
  assert_ok(rondo_device_close(other));
}

TEST(test_ad2_execs_of_other_devices) {
  rondo_exec *exec = test_exec_of(test_graph(t));
  void *native;
  assert_invalid(rondo_exec_native(NULL, &native), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_exec_native(exec, NULL), RONDO_REASON_NULL_ARGUMENT);
  if (test_device_is("cuda")) return;
  assert_error(rondo_exec_native(exec, &native), RONDO_UNSUPPORTED, RONDO_REASON_NOT_SUPPORTED);
}
