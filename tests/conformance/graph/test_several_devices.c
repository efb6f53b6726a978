/* SPDX-License-Identifier: MIT
 * AD-8: nodes, events and kernels of several devices in one graph. The first device is the fixture's, to which the
 * graphs belong. The second one is another device of its driver; where there is none, or none that can access memory of
 * the first and the other way around, the tests are skipped.
 */
#include <stdio.h>
#include <string.h>

#include "support/rondo_test.h"

enum { WORDS = 64, BYTES = WORDS * sizeof(uint32_t) };

/* Two devices. Each has words of its own, to which the other has access. */
typedef struct scene {
  test_fixture *t;
  rondo_device *other;
  rondo_stream *stream; /* of the second device */
  rondo_kernel *affine, *combine;
  uint32_t *here, *there;
} scene;

static const char *name_of_device(const test_fixture *t, int number) {
  static char name[48];
  const char *driver = test_device_is("cuda") ? "cuda" : test_is_guarded(t) ? "cpu:check" : "cpu";
  (void)snprintf(name, sizeof name, "%s:%d", driver, number);
  return name;
}

static int set_up(void **state) {
  static scene s;
  void *words = NULL;
  if (test_setup(state) != 0) return -1;
  s = (scene){.t = *state};
  const rondo_device_options options = {RONDO_DEVICE_OPTIONS_INIT, .workers = 1, .allocator = &s.t->allocator.table};
  assert_ok(rondo_device_open(name_of_device(s.t, 1), &options, &s.other));
  assert_ok(rondo_stream_create(s.other, NULL, &s.stream));
  assert_ok(rondo_kernel_create(s.other, test_kernel_options(TEST_KERNEL_AFFINE), &s.affine));
  assert_ok(rondo_kernel_create(s.other, test_kernel_options(TEST_KERNEL_COMBINE), &s.combine));
  assert_ok(rondo_memory_set_access(s.t->device, s.other, true));
  assert_ok(rondo_memory_set_access(s.other, s.t->device, true));
  assert_ok(rondo_malloc(s.other, BYTES, "there", &words));
  s.there = words;
  s.here = test_words(s.t, WORDS);
  assert_ok(rondo_fill_async(s.stream, &(rondo_fill){.dst = s.there, .element_bytes = 4, .width = WORDS}));
  assert_ok(rondo_stream_synchronize(s.stream));
  *state = &s;
  return 0;
}

static int tear_down(void **state) {
  scene *s = *state;
  *state = s->t;
  if (!test_destroy_left()) return -1;
  if (s->stream != NULL) assert_ok(rondo_stream_destroy(s->stream));
  rondo_kernel_destroy(s->affine);
  rondo_kernel_destroy(s->combine);
  if (s->there != NULL) assert_ok(rondo_free(s->other, s->there));
  assert_ok(rondo_device_close(s->other));
  return test_teardown(state);
}

#define SCENE_TEST(name) TEST_DEFINE(name, scene *s, set_up, tear_down)

/* words[0..count) = words * factor + term on the second device */
static rondo_node add_there(const scene *s, rondo_graph *graph, const rondo_node *after, uint32_t *words,
                            uint32_t factor, uint32_t term) {
  rondo_node node;
  assert_ok(rondo_graph_add_kernel(graph, after, after != NULL, s->affine, (rondo_grid){WORDS, 0, 0},
                                   RONDO_ARGS(&factor, &term, &words), &node));
  return node;
}

static rondo_node add_here(const scene *s, rondo_graph *graph, const rondo_node *after, uint32_t *words,
                           uint32_t factor, uint32_t term) {
  rondo_node node;
  assert_ok(rondo_graph_add_kernel(graph, after, after != NULL, test_kernel(s->t, TEST_KERNEL_AFFINE),
                                   (rondo_grid){WORDS, 0, 0}, RONDO_ARGS(&factor, &term, &words), &node));
  return node;
}

static rondo_node add_work_there(rondo_graph *graph, const rondo_node *after, rondo_node_params params,
                                 rondo_device *device) {
  rondo_node node;
  params.device = device;
  assert_ok(rondo_graph_add(graph, after, after != NULL, &params, &node));
  return node;
}

static rondo_node add_copy_there(const scene *s, rondo_graph *graph, const rondo_node *after, void *dst,
                                 const void *src) {
  return add_work_there(
      graph, after, (rondo_node_params){.kind = RONDO_NODE_COPY, .as.copy = {.dst = dst, .src = src, .width = BYTES}},
      s->other);
}

static uint32_t word_there(const scene *s, size_t index) {
  uint32_t word = 0;
  assert_ok(rondo_copy_async(s->stream, &word, &s->there[index], sizeof word));
  assert_ok(rondo_stream_synchronize(s->stream));
  return word;
}

static void launch(const scene *s, rondo_exec *exec) {
  assert_ok(rondo_exec_launch(exec, s->t->stream));
  assert_ok(rondo_stream_synchronize(s->t->stream));
}

/* Building -------------------------------------------------------------------------------------------------------- */

/* here = 3; there = here * 2 + 1, by a copy and a kernel there; there[0] gets the fill; here = there * 10 */
SCENE_TEST(test_ad8_nodes_of_two_devices_run_in_order) {
  rondo_graph *graph = test_graph(s->t);
  const uint32_t nine = 9;
  rondo_node last = add_here(s, graph, NULL, s->here, 0, 3);
  last = add_copy_there(s, graph, &last, s->there, s->here);
  last = add_there(s, graph, &last, s->there, 2, 1);
  last =
      add_work_there(graph, &last,
                     (rondo_node_params){.kind = RONDO_NODE_FILL,
                                         .as.fill = {.dst = s->there, .value = nine, .element_bytes = 4, .width = 1}},
                     s->other);
  last = add_here(s, graph, &last, s->here, 0, 0);
  assert_ok(
      rondo_graph_add_copy(graph, &last, 1, &(rondo_copy){.dst = s->here, .src = s->there, .width = BYTES}, &last));
  (void)add_here(s, graph, &last, s->here, 10, 0);
  rondo_exec *exec = test_instantiate(graph);
  for (int i = 0; i < 3; i++) launch(s, exec);
  assert_int_equal(test_word(s->t, s->here), 90);
  assert_int_equal(test_word(s->t, s->here + WORDS - 1), 70);
  assert_int_equal(word_there(s, 0), 9);
  assert_int_equal(word_there(s, 1), 7);
}

SCENE_TEST(test_ad8_a_node_says_its_device) {
  rondo_graph *graph = test_graph(s->t);
  const rondo_node own = add_here(s, graph, NULL, s->here, 1, 1), other = add_there(s, graph, NULL, s->there, 1, 1);
  rondo_node_params params = test_node_params(graph, other);
  assert_ptr_equal(params.device, s->other);
  assert_ptr_equal(test_node_params(graph, own).device, NULL);
  assert_ok(rondo_graph_set_params(graph, other, &params));
  assert_ptr_equal(test_node_params(graph, other).device, s->other);
  params = test_node_params(graph, own);
  params.device = s->t->device; /* the graph's own may be named */
  assert_ok(rondo_graph_set_params(graph, own, &params));
  assert_ptr_equal(test_node_params(graph, own).device, NULL);
  params = test_node_params(graph, own);
  params.as.kernel.kernel = s->affine;
  assert_ok(rondo_graph_set_params(graph, own, &params)); /* a node of a graph, but not of an exec, may move */
  assert_ptr_equal(test_node_params(graph, own).device, s->other);
}

/* Events of both devices are recorded by the launch, and later work there waits for it. */
SCENE_TEST(test_ad8_later_work_on_the_other_device_waits_for_an_event) {
  rondo_graph *graph = test_graph(s->t);
  rondo_event *event = NULL, *after = test_event(s->t);
  rondo_node last;
  const uint32_t factor = 5, term = 0;
  assert_ok(rondo_event_create(s->other, NULL, &event));
  last = add_there(s, graph, NULL, s->there, 0, 4);
  assert_ok(rondo_graph_add_event_record(graph, &last, 1, event, &last));
  assert_ptr_equal(test_node_params(graph, last).device, s->other);
  rondo_exec *exec = test_instantiate(graph);
  for (int i = 0; i < 20; i++) {
    assert_ok(rondo_exec_launch(exec, s->t->stream));
    if (i % 2 == 0) {
      assert_ok(rondo_stream_wait_event(s->stream, event));
    } else {
      assert_ok(rondo_event_record(after, s->t->stream)); /* of the launching stream */
      assert_ok(rondo_stream_wait_event(s->stream, after));
    }
    assert_ok(rondo_launch(s->stream, s->affine, (rondo_grid){WORDS, 0, 0}, RONDO_ARGS(&factor, &term, &s->there)));
    assert_int_equal(word_there(s, 3), 20);
  }
  rondo_exec_destroy(exec);
  assert_ok(rondo_graph_destroy(graph));
  rondo_event_destroy(event);
}

SCENE_TEST(test_ad8_a_launch_waits_for_an_event_of_the_other_device) {
  rondo_graph *graph = test_graph(s->t);
  rondo_event *event = NULL;
  rondo_node last;
  const uint32_t zero = 0, seven = 7;
  assert_ok(rondo_event_create(s->other, NULL, &event));
  assert_ok(rondo_graph_add_event_wait(graph, NULL, 0, event, &last));
  last = add_there(s, graph, &last, s->there, 3, 1);
  rondo_exec *exec = test_instantiate(graph);
  assert_ok(rondo_launch(s->stream, s->affine, (rondo_grid){WORDS, 0, 0}, RONDO_ARGS(&zero, &seven, &s->there)));
  assert_ok(rondo_event_record(event, s->stream));
  launch(s, exec);
  assert_int_equal(word_there(s, 0), 22);
  rondo_exec_destroy(exec);
  assert_ok(rondo_graph_destroy(graph));
  rondo_event_destroy(event);
}

/* Graph memory belongs to the graph's device, and a node there uses it. */
SCENE_TEST(test_ad8_graph_memory_is_used_on_the_other_device) {
  rondo_graph *graph = test_graph(s->t);
  rondo_node_params params = {.kind = RONDO_NODE_ALLOC,
                              .as.alloc = {.bytes = BYTES, .peers = rondo_device_peer_bit(s->other)}};
  rondo_node last;
  assert_ok(rondo_graph_add(graph, NULL, 0, &params, &last));
  uint32_t *memory = params.as.alloc.address;
  last = add_here(s, graph, &last, s->here, 0, 6);
  last = add_copy_there(s, graph, &last, memory, s->here);
  last = add_there(s, graph, &last, memory, 7, 0);
  last = add_copy_there(s, graph, &last, s->there, memory);
  assert_ok(rondo_graph_add_free(graph, &last, 1, memory, &last));
  rondo_exec *exec = test_instantiate(graph);
  for (int i = 0; i < 2; i++) launch(s, exec);
  assert_int_equal(word_there(s, WORDS - 1), 42);
}

SCENE_TEST(test_ad8_memory_without_access_is_refused) {
  rondo_graph *graph = test_graph(s->t);
  rondo_node_params params = {.kind = RONDO_NODE_ALLOC, .as.alloc = {.bytes = BYTES, .name = "closed"}};
  rondo_node last;
  rondo_exec *exec = NULL;
  assert_ok(rondo_graph_add(graph, NULL, 0, &params, &last));
  last = add_there(s, graph, &last, params.as.alloc.address, 7, 0);
  assert_error(rondo_instantiate(graph, NULL, &exec), RONDO_INVALID_GRAPH, RONDO_REASON_NO_ACCESS);
  assert_int_equal(rondo_last_error()->node, rondo_node_number(last));
  assert_message("closed");
  assert_message("peers");
  assert_null(exec);
}

/* One operation there, and one here that waits for it. */
SCENE_TEST(test_ad8_memory_operations_of_two_devices) {
  rondo_graph *graph = test_graph(s->t);
  const rondo_memory_operation write = {.kind = RONDO_OPERATION_WRITE_32, .address = s->there, .value = 17};
  const rondo_memory_operation wait = {
      .kind = RONDO_OPERATION_WAIT_32, .condition = RONDO_WAIT_EQUAL, .address = s->there, .value = 17};
  rondo_node first = add_work_there(graph, NULL,
                                    (rondo_node_params){.kind = RONDO_NODE_MEMORY_OPERATIONS,
                                                        .as.memory_operations = {.operations = &write, .count = 1}},
                                    s->other);
  rondo_node second;
  assert_ok(rondo_graph_add_memory_operations(graph, &first, 1, &wait, 1, &second));
  (void)add_here(s, graph, &second, s->here, 0, 2);
  rondo_exec *exec = test_instantiate(graph);
  launch(s, exec);
  assert_int_equal(word_there(s, 0), 17);
  assert_int_equal(test_word(s->t, s->here), 2);
}

/* Blocks with shared memory run on the launching device's workers. */
SCENE_TEST(test_ad8_blocks_with_shared_memory) {
  enum { THREADS = 4, BLOCKS = 2, HEAD = 4 };
  rondo_kernel *reverse = NULL;
  rondo_graph *graph = test_graph(s->t);
  rondo_node last;
  uint32_t in[WORDS], out[WORDS] = {0};
  const rondo_launch_config config = {.block = {THREADS, 1, 1}, .shared_bytes = THREADS * sizeof(uint32_t)};
  for (uint32_t i = 0; i < WORDS; i++) in[i] = i;
  test_write(s->t, s->here, in, sizeof in);
  assert_ok(rondo_kernel_create(s->other, test_kernel_options(TEST_KERNEL_REVERSE), &reverse));
  rondo_node_params params = {.kind = RONDO_NODE_KERNEL,
                              .as.kernel = {.kernel = reverse,
                                            .grid = {BLOCKS, 0, 0},
                                            .args = (const void *const[]){&s->here, &s->there},
                                            .arg_count = 2,
                                            .config = &config}};
  assert_ok(rondo_graph_add(graph, NULL, 0, &params, &last));
  rondo_kernel_destroy(reverse);
  assert_ok(rondo_graph_add_copy(graph, &last, 1, &(rondo_copy){.dst = out, .src = s->there, .width = BYTES}, &last));
  rondo_exec *exec = test_instantiate(graph);
  launch(s, exec);
  assert_int_equal(out[0], THREADS);
  for (uint32_t i = 0; i < THREADS; i++) assert_int_equal(out[HEAD + i], THREADS - 1 - i);
}

SCENE_TEST(test_ad8_nodes_of_two_devices_are_measured) {
  rondo_graph *graph = test_graph(s->t);
  rondo_node_time times[2];
  size_t count = 2;
  const rondo_node first = add_here(s, graph, NULL, s->here, 0, 2);
  (void)add_there(s, graph, &first, s->there, 0, 3);
  rondo_exec *exec = test_instantiate(graph);
  assert_ok(rondo_exec_measure(exec, s->t->stream, 3, times, &count));
  assert_int_equal(count, 2);
  for (int i = 0; i < 2; i++) assert_true(times[i].microseconds >= 0);
  assert_int_equal(word_there(s, 0), 3);
}

/* Each node runs by itself. */
SCENE_TEST(test_ad8_a_synchronous_device_runs_nodes_of_the_other) {
  rondo_device *synchronous = NULL;
  rondo_stream *stream = NULL;
  rondo_graph *graph = NULL;
  rondo_event *event = NULL;
  rondo_node last;
  const rondo_device_options options = {RONDO_DEVICE_OPTIONS_INIT, .workers = 1, .synchronous = true};
  assert_ok(rondo_device_open(name_of_device(s->t, 0), &options, &synchronous));
  assert_ok(rondo_stream_create(synchronous, NULL, &stream));
  assert_ok(rondo_event_create(s->other, NULL, &event));
  assert_ok(rondo_graph_create(synchronous, NULL, &graph));
  last = add_there(s, graph, NULL, s->there, 0, 3);
  last = add_work_there(graph, &last,
                        (rondo_node_params){.kind = RONDO_NODE_FILL,
                                            .as.fill = {.dst = s->there, .value = 5, .element_bytes = 4, .width = 1}},
                        s->other);
  assert_ok(rondo_graph_add_event_record(graph, &last, 1, event, &last));
  rondo_exec *exec = test_instantiate(graph);
  assert_ok(rondo_exec_launch(exec, stream));
  assert_ok(rondo_event_synchronize(event));
  assert_int_equal(word_there(s, 0), 5);
  assert_int_equal(word_there(s, 1), 3);
  rondo_exec_destroy(exec);
  assert_ok(rondo_graph_destroy(graph));
  rondo_event_destroy(event);
  assert_ok(rondo_stream_destroy(stream));
  assert_ok(rondo_device_close(synchronous));
}

/* Refusals -------------------------------------------------------------------------------------------------------- */

#define assert_other_device(call) assert_invalid(call, RONDO_REASON_OTHER_DEVICE)

SCENE_TEST(test_ad8_nodes_that_stay_on_the_graphs_device) {
  rondo_graph *graph = test_graph(s->t);
  rondo_node node = {1};
  void *memory;
  rondo_node_params params = {.kind = RONDO_NODE_ALLOC, .device = s->other, .as.alloc = {.bytes = BYTES}};
  assert_other_device(rondo_graph_add(graph, NULL, 0, &params, &node));
  assert_message("allocate and free it there");
  assert_int_equal(node.id, 0);
  assert_ok(rondo_graph_add_alloc(graph, NULL, 0, BYTES, NULL, &memory, &node));
  params = (rondo_node_params){.kind = RONDO_NODE_FREE, .device = s->other, .as.free_address = memory};
  assert_other_device(rondo_graph_add(graph, NULL, 0, &params, &node));
  params = (rondo_node_params){.kind = RONDO_NODE_HOST, .device = s->other, .as.host = {.function = test_host_nothing}};
  assert_other_device(rondo_graph_add(graph, NULL, 0, &params, &node));
  assert_message("leave the device out");
  params = (rondo_node_params){.kind = RONDO_NODE_EMPTY, .device = s->other};
  assert_other_device(rondo_graph_add(graph, NULL, 0, &params, &node));
  params.device = s->t->device;
  assert_ok(rondo_graph_add(graph, NULL, 0, &params, &node));
  assert_int_equal(test_node_count(graph), 2);
}

SCENE_TEST(test_ad8_devices_that_contradict_the_node) {
  rondo_graph *graph = test_graph(s->t);
  const uint32_t one = 1;
  rondo_event *event = test_event(s->t);
  rondo_node node;
  rondo_node_params params = {.kind = RONDO_NODE_KERNEL,
                              .device = s->t->device,
                              .as.kernel = {.kernel = s->affine,
                                            .grid = {1, 0, 0},
                                            .args = (const void *const[]){&one, &one, &s->there},
                                            .arg_count = 3}};
  assert_other_device(rondo_graph_add(graph, NULL, 0, &params, &node));
  assert_message("name that device, or none");
  params.device = s->other;
  assert_ok(rondo_graph_add(graph, NULL, 0, &params, &node));
  params = (rondo_node_params){.kind = RONDO_NODE_EVENT_RECORD, .device = s->other, .as.event = event};
  assert_other_device(rondo_graph_add(graph, NULL, 0, &params, &node));
  assert_int_equal(test_node_count(graph), 1);
}

SCENE_TEST(test_ad8_devices_of_another_driver) {
  rondo_device *alien = NULL;
  rondo_kernel *kernel = NULL;
  rondo_event *event = NULL;
  rondo_node node;
  rondo_graph *graph = test_graph(s->t);
  const char *name = test_device_is("cuda") || test_is_guarded(s->t) ? "cpu:3" : "cpu:check:3";
  const uint32_t one = 1;
  if (rondo_device_open(name, NULL, &alien) == RONDO_UNAVAILABLE) skip();
  assert_ok(rondo_kernel_create(alien, test_kernel_options(TEST_KERNEL_AFFINE), &kernel));
  assert_ok(rondo_event_create(alien, NULL, &event));
  assert_other_device(
      rondo_graph_add_kernel(graph, NULL, 0, kernel, (rondo_grid){1, 0, 0}, RONDO_ARGS(&one, &one, &s->there), &node));
  assert_message("one graph for each device");
  assert_message(name);
  assert_other_device(rondo_graph_add_event_wait(graph, NULL, 0, event, &node));
  assert_other_device(rondo_stream_wait_event(s->t->stream, event));
  assert_int_equal(test_node_count(graph), 0);
  rondo_event_destroy(event);
  rondo_kernel_destroy(kernel);
  assert_ok(rondo_device_close(alien));
}

/* A third device, another handle of the second one, which some tests close early. */
static rondo_device *open_third(const scene *s, rondo_kernel **out_kernel) {
  rondo_device *third = NULL;
  assert_ok(rondo_device_open(name_of_device(s->t, 1), NULL, &third));
  assert_ok(rondo_kernel_create(third, test_kernel_options(TEST_KERNEL_AFFINE), out_kernel));
  return third;
}

/* The graph, and then its exec, keep the other device open. */
SCENE_TEST(test_ad8_a_graph_keeps_its_devices_open) {
  rondo_kernel *kernel = NULL;
  rondo_device *third = open_third(s, &kernel);
  rondo_node node;
  rondo_graph *graph = test_graph(s->t), *clone;
  const uint32_t one = 1;
  assert_ok(rondo_graph_add_kernel(graph, NULL, 0, kernel, (rondo_grid){WORDS, 0, 0}, RONDO_ARGS(&one, &one, &s->there),
                                   &node));
  rondo_kernel_destroy(kernel);
  assert_error(rondo_device_close(third), RONDO_INVALID_STATE, RONDO_REASON_STILL_IN_USE);
  assert_message("1 graph");
  assert_ok(rondo_graph_clone(graph, &clone));
  assert_ok(rondo_graph_destroy(graph));
  assert_error(rondo_device_close(third), RONDO_INVALID_STATE, RONDO_REASON_STILL_IN_USE);
  rondo_exec *exec = test_instantiate(clone);
  assert_ok(rondo_graph_destroy(clone));
  assert_error(rondo_device_close(third), RONDO_INVALID_STATE, RONDO_REASON_STILL_IN_USE);
  assert_message("1 multi-device exec");
  launch(s, exec);
  rondo_exec_destroy(exec);
  assert_ok(rondo_device_close(third));
  assert_int_equal(word_there(s, 0), 1);
}

/* The device of a node that was removed is closed. The exec and the clone were made after the removal. */
SCENE_TEST(test_ad8_execs_and_clones_need_the_devices_of_their_nodes_alone) {
  rondo_kernel *kernel = NULL;
  rondo_device *third = open_third(s, &kernel);
  rondo_graph *graph = test_graph(s->t), *clone, *child = test_graph(s->t);
  const uint32_t one = 1;
  rondo_node node;
  (void)add_here(s, child, NULL, s->here, 1, 1);
  assert_ok(rondo_graph_add_kernel(child, NULL, 0, kernel, (rondo_grid){WORDS, 0, 0}, RONDO_ARGS(&one, &one, &s->there),
                                   &node));
  assert_ok(rondo_graph_remove(child, node));
  assert_ok(rondo_graph_add_child(graph, NULL, 0, child, &node));
  const rondo_node here = add_here(s, graph, &node, s->here, 2, 0);
  (void)add_there(s, graph, NULL, s->there, 1, 1);
  rondo_exec *exec = test_instantiate(graph);
  assert_ok(rondo_graph_clone(graph, &clone));
  assert_ok(rondo_graph_destroy(graph));
  assert_ok(rondo_graph_destroy(child));
  rondo_kernel_destroy(kernel);
  assert_ok(rondo_device_close(third));
  void *freed = NULL;
  assert_ok(rondo_malloc(s->other, BYTES, NULL, &freed));
  assert_ok(rondo_free(s->other, freed)); /* the next launch checks the memory of all devices */
  launch(s, exec);
  assert_int_equal(test_word(s->t, s->here), 2);
  assert_ok(rondo_exec_update(exec, clone, NULL));
  const uint32_t zero = 0;
  assert_ok(rondo_exec_set_argument(exec, here, 0, &zero));
  launch(s, exec);
  assert_int_equal(test_word(s->t, s->here), 0);
  assert_ok(rondo_graph_destroy(clone));
}

static uint32_t variable[2] = {6, 7}; /* of a kernel's code */

static void read_variable(rondo_blocks blocks, void *const *args) {
  uint32_t *const out = *(uint32_t *const *)args[0];
  for (size_t b = blocks.first; b < blocks.last; b++) out[b] = variable[b];
}

/* A kernel with a symbol on the device; *out_address is that of the symbol. */
static rondo_kernel *make_kernel_with_symbol(rondo_device *device, void **out_address) {
  static const rondo_symbol symbol = {.name = "variable", .cpu = variable, .bytes = sizeof variable};
  rondo_kernel *kernel = NULL;
  const rondo_kernel_options options = {RONDO_KERNEL_OPTIONS_INIT,
                                        .name = "read_variable",
                                        .params = {RONDO_WRITES},
                                        .cpu = read_variable,
                                        .cuda_source =
                                            "extern \"C\" { __device__ unsigned variable[2]; }\n"
                                            "extern \"C\" __global__ void read_variable(unsigned *out) {\n"
                                            "  if (threadIdx.x == 0) out[blockIdx.x] = variable[blockIdx.x];\n"
                                            "}\n",
                                        .symbols = &symbol,
                                        .symbol_count = 1};
  assert_ok(rondo_kernel_create(device, &options, &kernel));
  assert_ok(rondo_kernel_symbol(kernel, "variable", out_address, NULL));
  return kernel;
}

/* A copy on the graph's device keeps the code of another device whose symbol it names, and so that device. */
SCENE_TEST(test_ad8_symbols_of_the_other_device_are_kept) {
  rondo_kernel *kernel = NULL;
  rondo_device *third = open_third(s, &kernel);
  rondo_graph *graph = test_graph(s->t), *clone;
  const uint32_t one = 1;
  rondo_node node;
  void *symbol;
  assert_ok(rondo_graph_add_kernel(graph, NULL, 0, kernel, (rondo_grid){WORDS, 0, 0}, RONDO_ARGS(&one, &one, &s->there),
                                   &node));
  rondo_kernel_destroy(kernel);
  kernel = make_kernel_with_symbol(third, &symbol);
  const rondo_copy from = {.dst = s->here, .src = symbol, .width = sizeof variable};
  rondo_node copy;
  assert_ok(rondo_graph_add_copy(graph, NULL, 0, &from, &copy));
  assert_ok(rondo_graph_remove(graph, node));
  rondo_kernel_destroy(kernel);
  rondo_exec *exec = test_instantiate(graph);
  assert_ok(rondo_graph_clone(graph, &clone));
  assert_ok(rondo_graph_destroy(graph));
  assert_ok(rondo_graph_destroy(clone));
  assert_error(rondo_device_close(third), RONDO_INVALID_STATE, RONDO_REASON_STILL_IN_USE);
  assert_message("1 exec:");
  launch(s, exec);
  rondo_exec_destroy(exec);
  assert_ok(rondo_device_close(third));
}

/* The exec and the kernel's handle end while the launch waits; its code stays loaded on the other device. */
SCENE_TEST(test_ad8_an_exec_is_destroyed_while_it_runs) {
  test_skip_if_serial();
  rondo_graph *graph = test_graph(s->t);
  rondo_kernel *kernel = NULL, *next = NULL;
  test_gate *gate = test_gate_make();
  rondo_node node;
  const uint32_t one = 1;
  for (int updated = 0; updated < 2; updated++) {
    assert_ok(rondo_kernel_create(s->other, test_kernel_options(TEST_KERNEL_AFFINE), &kernel));
    assert_ok(rondo_graph_add_kernel(graph, NULL, 0, kernel, (rondo_grid){WORDS, 0, 0},
                                     RONDO_ARGS(&one, &one, &s->there), &node));
    rondo_exec *exec = test_instantiate(graph);
    assert_ok(rondo_host_async(s->t->stream, test_gate_pass, gate));
    assert_ok(rondo_exec_launch(exec, s->t->stream));
    rondo_node_params params = test_node_params(graph, node);
    params.name = NULL;
    params.as.kernel.kernel = s->combine;
    params.as.kernel.args = (const void *const[]){&s->here, &s->here, &s->there};
    if (updated == 1) assert_ok(rondo_exec_set_params(exec, node, &params));
    assert_ok(rondo_graph_remove(graph, node));
    if (updated == 0) rondo_exec_destroy(exec);
    rondo_kernel_destroy(kernel);
    assert_ok(rondo_kernel_create(s->other, test_kernel_options(TEST_KERNEL_SET), &next)); /* may unload others */
    rondo_kernel_destroy(next);
    test_gate_open(gate);
    assert_ok(rondo_stream_synchronize(s->t->stream));
    assert_int_equal(word_there(s, 0), updated + 1);
  }
}

/* Verification ---------------------------------------------------------------------------------------------------- */

SCENE_TEST(test_ad8_races_between_devices_are_found) {
  rondo_graph *graph = test_graph(s->t);
  const size_t bytes[3] = {0, 0, BYTES};
  const uint32_t one = 1;
  rondo_node first = add_copy_there(s, graph, NULL, s->there, s->here), second;
  rondo_node_params params = {.kind = RONDO_NODE_KERNEL,
                              .as.kernel = {.kernel = test_kernel(s->t, TEST_KERNEL_AFFINE),
                                            .grid = {WORDS, 0, 0},
                                            .args = (const void *const[]){&one, &one, &s->there},
                                            .arg_count = 3,
                                            .arg_bytes = bytes}};
  rondo_exec *exec = NULL;
  assert_ok(rondo_graph_add(graph, NULL, 0, &params, &second));
  assert_error(rondo_instantiate(graph, NULL, &exec), RONDO_INVALID_GRAPH, RONDO_REASON_RACE);
  assert_ok(rondo_graph_add_edges(graph, &first, &second, 1));
  exec = test_instantiate(graph);
  launch(s, exec);
  assert_int_equal(word_there(s, 0), 1);
}

/* What ends on the other device counts. */
SCENE_TEST(test_ad8_memory_of_the_other_device_that_was_freed) {
  rondo_graph *graph = test_graph(s->t);
  void *memory = NULL;
  assert_ok(rondo_malloc(s->other, BYTES, "gone", &memory));
  (void)add_there(s, graph, NULL, memory, 0, 1);
  rondo_exec *exec = test_instantiate(graph);
  launch(s, exec);
  assert_ok(rondo_free(s->other, memory));
  assert_error(rondo_exec_launch(exec, s->t->stream), RONDO_INVALID_LIFETIME, RONDO_REASON_USE_AFTER_FREE);
  assert_message("gone");
  assert_fails(rondo_graph_add_copy(graph, NULL, 0, &(rondo_copy){.dst = s->here, .src = s->there, .width = 1 << 20},
                                    &(rondo_node){0}),
               RONDO_INVALID_ARGUMENT);
}

/* cpu:check finds what nodes of both devices do wrong, in memory of both. */
SCENE_TEST(test_ad8_checks_find_accesses_on_both_devices) {
  if (!test_is_guarded(s->t)) skip();
  rondo_graph *graph = test_graph(s->t);
  const uint32_t one = 1;
  uint32_t *const past_there = s->there + 1, *const past_here = s->here + 1; /* the last block passes the end */
  rondo_node last = {0};
  for (int there = 0; there < 2; there++) {
    for (int memory = 0; memory < 2; memory++) {
      assert_ok(rondo_graph_add_kernel(graph, NULL, 0, there ? s->affine : test_kernel(s->t, TEST_KERNEL_AFFINE),
                                       (rondo_grid){WORDS, 0, 0},
                                       RONDO_ARGS(&one, &one, memory ? &past_there : &past_here), &last));
      rondo_exec *exec = test_instantiate(graph);
      for (int i = 0; i < 2; i++) { /* found again, as nothing is left of the first time */
        assert_ok(rondo_exec_launch(exec, s->t->stream));
        assert_error(rondo_stream_synchronize(s->t->stream), RONDO_EXECUTION_FAILED, RONDO_REASON_OUT_OF_RANGE);
        assert_message(memory ? "there" : "256 B");
        assert_int_equal(rondo_last_error()->node, rondo_node_number(last));
      }
      rondo_exec_destroy(exec);
      assert_ok(rondo_graph_remove(graph, last));
    }
  }
}

/* Captures -------------------------------------------------------------------------------------------------------- */

/* Forks from the fixture's stream to the other device's, and joins. */
static void fork_there(const scene *s, rondo_event *fork, rondo_event *join, bool is_back) {
  if (is_back) {
    assert_ok(rondo_event_record(join, s->stream));
    assert_ok(rondo_stream_wait_event(s->t->stream, join));
    return;
  }
  assert_ok(rondo_event_record(fork, s->t->stream));
  assert_ok(rondo_stream_wait_event(s->stream, fork));
}

static rondo_graph *capture_both(const scene *s, rondo_event *join) {
  rondo_event *fork = test_event(s->t);
  const uint32_t two = 2, five = 5;
  assert_ok(rondo_capture_begin(s->t->stream, RONDO_CAPTURE_THREAD_LOCAL));
  test_affine(s->t, s->t->stream, s->here, WORDS, 0, 3);
  fork_there(s, fork, join, false);
  assert_ok(rondo_copy_async(s->stream, s->there, s->here, BYTES));
  assert_ok(rondo_launch(s->stream, s->affine, (rondo_grid){WORDS, 0, 0}, RONDO_ARGS(&two, &five, &s->there)));
  assert_ok(rondo_fill_async(s->stream, &(rondo_fill){.dst = s->there, .value = 8, .element_bytes = 4, .width = 1}));
  fork_there(s, fork, join, true);
  assert_ok(rondo_copy_async(s->t->stream, s->here, s->there, BYTES));
  return test_capture_end(s->t->stream);
}

SCENE_TEST(test_ad8_a_capture_takes_in_a_stream_of_the_other_device) {
  rondo_event *join = NULL;
  assert_ok(rondo_event_create(s->other, NULL, &join));
  rondo_graph *graph = capture_both(s, join);
  rondo_node nodes[5];
  size_t count = 5;
  assert_ok(rondo_graph_nodes(graph, nodes, &count));
  assert_int_equal(count, 5);
  for (size_t i = 0; i < 5; i++) {
    const bool is_there = i >= 1 && i <= 3;
    assert_ptr_equal(test_node_params(graph, nodes[i]).device, is_there ? s->other : NULL);
  }
  rondo_exec *exec = test_instantiate(graph);
  launch(s, exec);
  assert_int_equal(test_word(s->t, s->here), 8);
  assert_int_equal(test_word(s->t, s->here + 1), 11);
  rondo_event_destroy(join);
}

/* An event says that the capture in which it was recorded is over, also after the capture's device was closed. */
SCENE_TEST(test_ad8_events_outlive_the_device_of_their_capture) {
  rondo_device *third = NULL;
  rondo_stream *origin = NULL;
  rondo_event *fork = NULL, *join = test_event(s->t);
  rondo_graph *graph = NULL;
  assert_ok(rondo_device_open(name_of_device(s->t, 1), NULL, &third)); /* another handle of the second device */
  assert_ok(rondo_stream_create(third, NULL, &origin));
  assert_ok(rondo_event_create(third, NULL, &fork));
  assert_ok(rondo_capture_begin(origin, RONDO_CAPTURE_THREAD_LOCAL));
  assert_ok(rondo_event_record(fork, origin));
  assert_ok(rondo_stream_wait_event(s->t->stream, fork));
  assert_ok(rondo_event_record(join, s->t->stream));
  assert_ok(rondo_stream_wait_event(origin, join));
  assert_ok(rondo_capture_end(origin, &graph));
  assert_ok(rondo_graph_destroy(graph));
  rondo_event_destroy(fork);
  assert_ok(rondo_stream_destroy(origin));
  assert_ok(rondo_device_close(third));
  assert_error(rondo_stream_wait_event(s->t->stream, join), RONDO_CAPTURE_REFUSED, RONDO_REASON_CAPTURED_EVENT);
  assert_ok(rondo_event_record(join, s->t->stream));
  assert_ok(rondo_stream_wait_event(s->t->stream, join));
}

SCENE_TEST(test_ad8_refusals_while_a_stream_of_the_other_device_captures) {
  rondo_event *join = NULL, *fork = test_event(s->t);
  const uint32_t one = 1;
  void *memory = NULL;
  rondo_graph *graph = NULL;
  assert_ok(rondo_event_create(s->other, NULL, &join));
  assert_ok(rondo_capture_begin(s->t->stream, RONDO_CAPTURE_RELAXED));
  fork_there(s, fork, join, false);
  assert_other_device(rondo_launch(s->stream, test_kernel(s->t, TEST_KERNEL_AFFINE), (rondo_grid){1, 0, 0},
                                   RONDO_ARGS(&one, &one, &s->here)));
  assert_other_device(rondo_launch(s->t->stream, s->affine, (rondo_grid){1, 0, 0}, RONDO_ARGS(&one, &one, &s->there)));
  assert_other_device(rondo_malloc_async(s->stream, BYTES, NULL, &memory));
  assert_null(memory);
  assert_other_device(rondo_event_record(fork, s->stream));
  assert_error(rondo_device_synchronize(s->other), RONDO_CAPTURE_REFUSED, RONDO_REASON_UNSUPPORTED_CALL);
  assert_fails(rondo_capture_end(s->t->stream, &graph), RONDO_CAPTURE_INVALID);
  assert_null(graph);
  assert_ok(rondo_device_synchronize(s->other));
  rondo_event_destroy(join);
}

/* An exec of the other device becomes a child graph in the capture, whose nodes keep their device. */
SCENE_TEST(test_ad8_execs_of_the_other_device_in_a_capture) {
  rondo_event *join = NULL, *fork = test_event(s->t);
  rondo_graph *inner = NULL;
  assert_ok(rondo_event_create(s->other, NULL, &join));
  assert_ok(rondo_graph_create(s->other, NULL, &inner));
  rondo_node last = add_there(s, inner, NULL, s->there, 0, 5);
  last = add_copy_there(s, inner, &last, s->here, s->there);
  (void)add_here(s, inner, &last, s->here, 2, 1); /* of the outer graph's device, inside a graph of the other */
  rondo_exec *exec = test_instantiate(inner);
  assert_ok(rondo_capture_begin(s->t->stream, RONDO_CAPTURE_THREAD_LOCAL));
  fork_there(s, fork, join, false);
  assert_ok(rondo_exec_launch(exec, s->stream));
  fork_there(s, fork, join, true);
  rondo_graph *outer = test_capture_end(s->t->stream);
  rondo_exec_destroy(exec);
  assert_ok(rondo_graph_destroy(inner));
  exec = test_instantiate(outer);
  launch(s, exec);
  assert_int_equal(test_word(s->t, s->here + 2), 11);
  rondo_event_destroy(join);
}

/* Children, updates, patches --------------------------------------------------------------------------------------- */

SCENE_TEST(test_ad8_child_graphs_of_the_other_device) {
  rondo_graph *child = NULL, *graph = test_graph(s->t), *memory = NULL;
  rondo_node node, child_node;
  void *address;
  assert_ok(rondo_graph_create(s->other, NULL, &child));
  (void)add_there(s, child, NULL, s->there, 1, 1);
  assert_ok(rondo_graph_add_child(graph, NULL, 0, child, &child_node));
  assert_ptr_equal(test_node_params(graph, child_node).device, s->other);
  rondo_graph *inside = test_node_params(graph, child_node).as.child;
  assert_other_device(rondo_graph_add_alloc(inside, NULL, 0, BYTES, NULL, &address, &node));
  assert_ok(rondo_graph_create(s->other, NULL, &memory));
  assert_ok(rondo_graph_add_alloc(memory, NULL, 0, BYTES, NULL, &address, &node));
  assert_other_device(rondo_graph_add_child(graph, NULL, 0, memory, &node));
  assert_message("has graph memory");
  rondo_exec *exec = test_instantiate(graph);
  launch(s, exec);
  assert_int_equal(word_there(s, 0), 1);
  (void)add_there(s, child, NULL, s->there + 1, 0, 0); /* another topology */
  const rondo_node_params other = {.kind = RONDO_NODE_CHILD, .as.child = child};
  assert_error(rondo_exec_set_params(exec, child_node, &other), RONDO_UPDATE_REFUSED, RONDO_REASON_TOPOLOGY_CHANGED);
  rondo_graph *own = test_graph(s->t);
  (void)add_there(s, own, NULL, s->there, 1, 1);
  const rondo_node_params moved = {.kind = RONDO_NODE_CHILD, .as.child = own};
  assert_error(rondo_exec_set_params(exec, child_node, &moved), RONDO_UPDATE_REFUSED, RONDO_REASON_OTHER_DEVICE);
  launch(s, exec);
  assert_int_equal(word_there(s, 0), 2);
  assert_ok(rondo_graph_destroy(memory));
  assert_ok(rondo_graph_destroy(child));
}

SCENE_TEST(test_ad8_execs_of_two_devices_are_updated) {
  rondo_graph *graph = test_graph(s->t);
  const uint32_t four = 4;
  const rondo_node here = add_here(s, graph, NULL, s->here, 0, 2), there = add_there(s, graph, NULL, s->there, 0, 3);
  rondo_exec *exec = test_instantiate(graph);
  assert_ok(rondo_exec_set_argument(exec, there, 1, &four));
  launch(s, exec);
  assert_int_equal(word_there(s, 0), 4);
  rondo_node_params params = test_node_params(graph, there);
  params.as.kernel.kernel = s->combine; /* another kernel of that device */
  params.name = NULL;
  params.as.kernel.args = (const void *const[]){&s->here, &s->here, &s->there};
  assert_ok(rondo_exec_set_params(exec, there, &params));
  launch(s, exec);
  assert_int_equal(word_there(s, 0), 2 * 31 + 2);
  params = test_node_params(graph, here);
  params.as.kernel.kernel = s->affine;
  assert_error(rondo_exec_set_params(exec, here, &params), RONDO_UPDATE_REFUSED, RONDO_REASON_OTHER_DEVICE);
  assert_message("cannot move it");
  assert_ok(rondo_exec_set_enabled(exec, there, false));
  assert_ok(rondo_exec_set_argument(exec, here, 1, &four));
  launch(s, exec);
  assert_int_equal(test_word(s->t, s->here), 4);
  assert_int_equal(word_there(s, 0), 2 * 31 + 2);
  assert_ok(rondo_exec_set_enabled(exec, there, true));
  rondo_update_result result = {.struct_size = sizeof result};
  assert_ok(rondo_graph_set_argument(graph, there, 1, &four));
  assert_ok(rondo_exec_update(exec, graph, &result));
  launch(s, exec);
  assert_int_equal(word_there(s, 0), 4);
  assert_ok(rondo_graph_set_params(graph, here, &params));
  assert_error(rondo_exec_update(exec, graph, &result), RONDO_UPDATE_REFUSED, RONDO_REASON_OTHER_DEVICE);
  assert_int_equal(result.reason, RONDO_REASON_OTHER_DEVICE);
  launch(s, exec);
}

SCENE_TEST(test_ad8_inputs_of_nodes_of_the_other_device_are_patched) {
  rondo_graph *graph = test_graph(s->t);
  uint32_t *input = test_words(s->t, WORDS);
  const uint32_t value = 6;
  const rondo_node first = add_copy_there(s, graph, NULL, s->there, s->here);
  (void)add_there(s, graph, &first, s->there, 2, 0);
  rondo_exec *exec = test_instantiate(graph);
  const rondo_patch_input moved = {.address = s->here, .bytes = BYTES};
  rondo_patch_set *set = NULL;
  assert_ok(rondo_patch_set_create(exec, &moved, 1, NULL, &set));
  test_write(s->t, input, &value, sizeof value);
  assert_ok(rondo_patch_set_launch(set, s->t->stream, &(const void *){input}));
  assert_ok(rondo_stream_synchronize(s->t->stream));
  assert_int_equal(word_there(s, 0), 12);
  rondo_patch_set_destroy(set);
}

/* The node of the second device has the input, so access of that device counts. */
SCENE_TEST(test_ad8_moved_inputs_need_access_of_the_device_of_their_nodes) {
  rondo_graph *graph = test_graph(s->t);
  rondo_patch_set *set = NULL;
  void *only_there = NULL;
  (void)add_there(s, graph, NULL, s->here, 2, 0);
  rondo_exec *exec = test_instantiate(graph);
  const rondo_patch_input moved = {.address = s->here, .bytes = BYTES};
  assert_ok(rondo_patch_set_create(exec, &moved, 1, NULL, &set));
  assert_ok(rondo_memory_set_access(s->other, s->t->device, false));
  assert_ok(rondo_malloc(s->other, BYTES, "only there", &only_there));
  assert_ok(rondo_patch_set_check(set, 0, only_there));
  assert_ok(rondo_memory_set_access(s->t->device, s->other, false));
  uint32_t *only_here = test_words(s->t, WORDS);
  assert_error(rondo_patch_set_check(set, 0, only_here), RONDO_INVALID_ARGUMENT, RONDO_REASON_NO_ACCESS);
  assert_message("has no access");
  rondo_patch_set_destroy(set);
  assert_ok(rondo_free(s->other, only_there));
}

/* Dumps ------------------------------------------------------------------------------------------------------------ */

SCENE_TEST(test_ad8_dumps_differences_and_fingerprints_name_the_device) {
  rondo_graph *graph = test_graph(s->t), *clone, *read;
  char *text = NULL, *again = NULL;
  size_t count = 0;
  uint64_t one, two, three;
  const rondo_node first = add_copy_there(s, graph, NULL, s->there, s->here);
  (void)add_there(s, graph, &first, s->there, 1, 1);
  assert_ok(rondo_graph_clone(graph, &clone));
  assert_same_graph(graph, clone);
  assert_ok(rondo_graph_to_json(graph, false, &text));
  assert_non_null(strstr(text, "\"device\":1"));
  assert_ok(rondo_graph_from_json(text, strlen(text), &read));
  assert_ok(rondo_graph_diff(graph, read, true, NULL, &count));
  assert_int_equal(count, 0);
  assert_ok(rondo_graph_to_json(read, false, &again));
  assert_string_equal(text, again);
  rondo_text_free(again);
  rondo_text_free(text);
  assert_ok(rondo_graph_fingerprint(graph, &one));
  assert_ok(rondo_graph_fingerprint(read, &two));
  assert_int_equal(one, two);
  assert_ok(rondo_graph_to_dot(graph, false, &text));
  assert_non_null(strstr(text, "on device 1"));
  rondo_text_free(text);
  rondo_node moved;
  assert_ok(rondo_graph_find_in_clone(clone, first, &moved));
  rondo_node_params params = test_node_params(clone, moved);
  params.device = NULL;
  assert_ok(rondo_graph_set_params(clone, moved, &params));
  assert_ok(rondo_graph_diff(graph, clone, true, NULL, &count));
  assert_int_equal(count, 1);
  assert_ok(rondo_graph_fingerprint(clone, &three));
  assert_int_not_equal(one, three);
  assert_ok(rondo_graph_destroy(read));
  assert_ok(rondo_graph_destroy(clone));
}

/* Streams ---------------------------------------------------------------------------------------------------------- */

/* The device whose event a stream of another one waits for stays open meanwhile. */
SCENE_TEST(test_ad8_streams_wait_for_events_of_the_other_device) {
  rondo_event *event = NULL;
  const uint32_t three = 3, zero = 0;
  assert_ok(rondo_event_create(s->other, NULL, &event));
  for (int i = 0; i < 50; i++) {
    assert_ok(rondo_launch(s->stream, s->affine, (rondo_grid){WORDS, 0, 0}, RONDO_ARGS(&zero, &three, &s->there)));
    assert_ok(rondo_launch(s->stream, s->affine, (rondo_grid){WORDS, 0, 0}, RONDO_ARGS(&three, &three, &s->there)));
    assert_ok(rondo_event_record(event, s->stream));
    assert_ok(rondo_stream_wait_event(s->t->stream, event));
    assert_ok(rondo_copy_async(s->t->stream, s->here, s->there, BYTES));
    assert_ok(rondo_stream_synchronize(s->t->stream));
    assert_int_equal(test_word(s->t, s->here + 5), 12);
  }
  assert_other_device(rondo_event_record(event, s->t->stream));
  rondo_event_destroy(event);
}

static bool is_there_another(void) {
  rondo_device *first = NULL, *second = NULL;
  bool can = false, back = false;
  const char *const one = test_device_is("cuda") ? "cuda:1" : "cpu:1", *const zero =
                                                                           test_device_is("cuda") ? "cuda:0" : "cpu";
  if (rondo_device_open(zero, NULL, &first) != RONDO_OK) return false;
  if (rondo_device_open(one, NULL, &second) == RONDO_OK) {
    assert_ok(rondo_device_can_access_peer(first, second, &can));
    assert_ok(rondo_device_can_access_peer(second, first, &back));
    assert_ok(rondo_device_close(second));
  }
  assert_ok(rondo_device_close(first));
  return can && back;
}

int main(void) { return is_there_another() ? test_run_registered() : 77; }
