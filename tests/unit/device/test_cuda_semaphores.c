/* SPDX-License-Identifier: MIT
 * External semaphores on the fake driver (AD-8), where the file behind the descriptor is the semaphore: signals and
 * waits on streams, captured, in graphs and in execs that change; lifetimes; bad input.
 */
#define _GNU_SOURCE
#include <rondo/rondo.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fake_cuda/fake_fixture.h"
#include "support/foreign_library.h"
#include "support/test_tree.h"

/* A semaphore, and a descriptor of its state for the test. */
typedef struct shared {
  rondo_external_semaphore *semaphore;
  int file;
} shared;

static shared import_semaphore(test_fixture *t, rondo_semaphore_type type) {
  const rondo_semaphore_import_options options = {RONDO_SEMAPHORE_IMPORT_OPTIONS_INIT, .type = type, .name = "frames"};
  shared self = {.file = memfd_create("semaphore", MFD_CLOEXEC)};
  const uint64_t zero = 0;
  assert_int_equal(pwrite(self.file, &zero, sizeof zero, 0), sizeof zero);
  assert_ok(rondo_external_semaphore_import(t->device, dup(self.file), &options, &self.semaphore));
  return self;
}

static void end_semaphore(const shared *self) {
  rondo_external_semaphore_destroy(self->semaphore);
  assert_int_equal(close(self->file), 0);
}

static uint64_t state_of(const shared *self) {
  uint64_t state = 0;
  assert_int_equal(pread(self->file, &state, sizeof state, 0), sizeof state);
  return state;
}

static void set_state(const shared *self, uint64_t state) {
  assert_int_equal(pwrite(self->file, &state, sizeof state, 0), sizeof state);
}

static rondo_semaphore_value value_of(const shared *self, uint64_t value) {
  return (rondo_semaphore_value){.semaphore = self->semaphore, .value = value};
}

FAKE_TEST(ad8_streams_signal_and_wait) {
  const shared timeline = import_semaphore(t, RONDO_SEMAPHORE_TIMELINE_FD);
  const shared binary = import_semaphore(t, RONDO_SEMAPHORE_OPAQUE_FD);
  const rondo_semaphore_value waits[] = {value_of(&timeline, 3), value_of(&binary, 0)};
  const rondo_semaphore_value signal = value_of(&timeline, 9);
  assert_ok(rondo_semaphore_wait_async(t->stream, waits, 2));
  assert_ok(rondo_semaphore_signal_async(t->stream, &signal, 1));
  assert_status(rondo_stream_query(t->stream), RONDO_NOT_READY);
  set_state(&timeline, 3);
  assert_status(rondo_stream_query(t->stream), RONDO_NOT_READY);
  set_state(&binary, 1);
  assert_ok(rondo_stream_synchronize(t->stream));
  assert_int_equal(state_of(&timeline), 9);
  assert_int_equal(state_of(&binary), 0);
  end_semaphore(&timeline);
  end_semaphore(&binary);
}

/* signal 1, word = 7, wait for 2, word = 10 * word + 1, signal 3. */
static rondo_graph *build(test_fixture *t, const shared *of, uint32_t *word, rondo_node *out_wait) {
  rondo_graph *graph = test_graph(t);
  rondo_semaphore_value values[] = {value_of(of, 1), value_of(of, 2), value_of(of, 3)};
  rondo_node node;
  assert_ok(rondo_graph_add_semaphore_signal(graph, NULL, 0, &values[0], 1, &node));
  node = test_add_affine(t, graph, &node, 1, word, 0, 7);
  assert_ok(rondo_graph_add_semaphore_wait(graph, &node, 1, &values[1], 1, &node));
  *out_wait = node;
  node = test_add_affine(t, graph, &node, 1, word, 10, 1);
  assert_ok(rondo_graph_add_semaphore_signal(graph, &node, 1, &values[2], 1, &node));
  return graph;
}

static void await_state(const shared *of, uint64_t state) {
  while (state_of(of) != state) usleep(100);
}

static void run(test_fixture *t, rondo_exec *exec, const shared *of, uint32_t *word) {
  set_state(of, 0);
  assert_ok(rondo_exec_launch(exec, t->stream));
  await_state(of, 1);
  set_state(of, 2);
  assert_ok(rondo_stream_synchronize(t->stream));
  assert_int_equal(state_of(of), 3);
  assert_int_equal(test_word(t, word), 71);
}

/* The exec keeps the semaphore. */
FAKE_TEST(ad8_graphs_signal_and_wait) {
  const shared of = import_semaphore(t, RONDO_SEMAPHORE_TIMELINE_FD);
  uint32_t *word = test_words(t, 1);
  rondo_node wait;
  rondo_exec *exec = test_exec_of(build(t, &of, word, &wait));
  rondo_external_semaphore_destroy(of.semaphore);
  for (int i = 0; i < 3; i++) run(t, exec, &of, word);
  rondo_exec_destroy(exec);
  assert_int_equal(fake->live(FAKE_CUDA_SEMAPHORE), 0);
  assert_int_equal(close(of.file), 0);
}

FAKE_TEST(ad8_captures_have_the_same_nodes) {
  const shared of = import_semaphore(t, RONDO_SEMAPHORE_TIMELINE_FD);
  uint32_t *word = test_words(t, 1);
  rondo_node wait;
  rondo_graph *by_hand = build(t, &of, word, &wait), *read;
  size_t differences = 0;
  char *text, *again;
  const rondo_semaphore_value values[] = {value_of(&of, 1), value_of(&of, 2), value_of(&of, 3)};
  assert_ok(rondo_capture_begin(t->stream, RONDO_CAPTURE_THREAD_LOCAL));
  assert_ok(rondo_semaphore_signal_async(t->stream, &values[0], 1));
  test_affine(t, t->stream, word, 1, 0, 7);
  assert_ok(rondo_semaphore_wait_async(t->stream, &values[1], 1));
  test_affine(t, t->stream, word, 1, 10, 1);
  assert_ok(rondo_semaphore_signal_async(t->stream, &values[2], 1));
  rondo_graph *captured = test_capture_end(t->stream);
  assert_ok(rondo_graph_diff(by_hand, captured, false, NULL, &differences));
  assert_int_equal(differences, 0);
  assert_ok(rondo_graph_to_json(captured, true, &text));
  assert_non_null(strstr(text, "\"semaphores\":[{\"name\":\"frames\",\"value\":2}]"));
  assert_ok(rondo_graph_from_json(text, strlen(text), &read));
  assert_ok(rondo_graph_to_json(read, true, &again));
  assert_non_null(strstr(again, "\"semaphores\":[{\"name\":\"frames\",\"value\":2}]"));
  assert_ok(rondo_graph_destroy(read));
  rondo_text_free(text);
  rondo_text_free(again);
  assert_ok(rondo_graph_to_dot(captured, false, &text));
  assert_non_null(strstr(text, "semaphore frames 2"));
  rondo_text_free(text);
  run(t, test_exec_of(captured), &of, word);
  end_semaphore(&of);
}

FAKE_TEST(ad8_execs_exchange_semaphores) {
  const shared of = import_semaphore(t, RONDO_SEMAPHORE_TIMELINE_FD);
  const shared other = import_semaphore(t, RONDO_SEMAPHORE_TIMELINE_FD);
  uint32_t *word = test_words(t, 1);
  rondo_node wait;
  rondo_graph *graph = build(t, &of, word, &wait);
  rondo_exec *exec = test_instantiate(graph);
  const rondo_semaphore_value values[] = {value_of(&other, 5), value_of(&other, 6)};
  rondo_node_params params = {.kind = RONDO_NODE_SEMAPHORE_WAIT, .as.semaphores = {.values = values, .count = 1}};
  assert_ok(rondo_exec_set_params(exec, wait, &params));
  assert_ok(rondo_exec_launch(exec, t->stream));
  await_state(&of, 1);
  set_state(&other, 5);
  assert_ok(rondo_stream_synchronize(t->stream));
  params.as.semaphores.count = 2;
  assert_error(rondo_exec_set_params(exec, wait, &params), RONDO_UPDATE_REFUSED, RONDO_REASON_PARAMETERS_CHANGED);
  assert_ok(rondo_exec_update(exec, graph, NULL));
  run(t, exec, &of, word);
  assert_ok(rondo_graph_set_params(graph, wait, &params));
  assert_error(rondo_exec_update(exec, graph, NULL), RONDO_UPDATE_REFUSED, RONDO_REASON_PARAMETERS_CHANGED);
  end_semaphore(&of);
  end_semaphore(&other);
}

/* A semaphore that is destroyed while a stream waits for it stays until the wait is over. */
FAKE_TEST(ad8_enqueued_work_keeps_semaphores) {
  const shared of = import_semaphore(t, RONDO_SEMAPHORE_TIMELINE_FD);
  const rondo_semaphore_value wait = value_of(&of, 1);
  assert_ok(rondo_semaphore_wait_async(t->stream, &wait, 1));
  rondo_external_semaphore_destroy(of.semaphore);
  set_state(&of, 1);
  assert_ok(rondo_stream_synchronize(t->stream));
  assert_int_equal(close(of.file), 0);
}

/* A number that grows with each call is not frozen by a recording. */
FAKE_TEST(ad8_ad5_a_timeline_in_a_region_goes_on) {
  const shared of = import_semaphore(t, RONDO_SEMAPHORE_TIMELINE_FD);
  rondo_tree *tree = test_tree(t, NULL);
  rondo_region *region;
  const rondo_region_options options = {RONDO_REGION_OPTIONS_INIT, .name = "frame"};
  assert_ok(rondo_region_create(tree, &options, &region));
  for (uint64_t frame = 5000; frame < 5006; frame++) {
    const rondo_semaphore_value signal = value_of(&of, frame);
    rondo_call *call;
    assert_ok(rondo_region_begin(region, t->stream, NULL, &call));
    while (call != NULL) {
      const rondo_status done = rondo_semaphore_signal_async(t->stream, &signal, 1);
      assert_ok(rondo_region_end(region, t->stream, done, &call));
    }
    assert_ok(rondo_stream_synchronize(t->stream));
    assert_int_equal(state_of(&of), frame);
  }
  rondo_region_info info = {.struct_size = sizeof info};
  assert_ok(rondo_region_get_info(region, &info));
  assert_int_equal(info.last_skip, RONDO_SKIP_CHANGED);
  assert_non_null(strstr(info.last_message, "value 0 of a signal of semaphores was "));
  assert_ok(rondo_tree_destroy(tree));
  end_semaphore(&of);
}

/* The same between recordings that are compared for a patch. */
FAKE_TEST(ad8_values_of_semaphores_are_found_frozen) {
  const shared of = import_semaphore(t, RONDO_SEMAPHORE_TIMELINE_FD);
  const rondo_semaphore_value signals[] = {value_of(&of, 5), value_of(&of, 6)};
  rondo_graph *graphs[2];
  uint32_t *words[2];
  for (int i = 0; i < 2; i++) {
    graphs[i] = test_graph(t);
    words[i] = test_words(t, 64);
    const rondo_node node = test_add_affine(t, graphs[i], NULL, 0, words[i], 2, 1);
    rondo_node signal;
    assert_ok(rondo_graph_add_semaphore_signal(graphs[i], &node, 1, &signals[i], 1, &signal));
  }
  rondo_exec *exec = test_instantiate(graphs[0]);
  const rondo_patch_input input = {.address = words[0], .bytes = 4, .moved = words[1]};
  const rondo_patch_options options = {RONDO_PATCH_OPTIONS_INIT, .moved = graphs[1]};
  rondo_patch_set *set;
  rondo_patch_finding finding = {.struct_size = sizeof finding};
  assert_ok(rondo_patch_set_create(exec, &input, 1, &options, &set));
  assert_ok(rondo_patch_set_get_finding(set, 0, &finding));
  assert_int_equal(finding.kind, RONDO_PATCH_FROZEN);
  assert_non_null(strstr(finding.message, "its value is 0x0000000000000005 here and 0x0000000000000006"));
  rondo_patch_set_destroy(set);
  end_semaphore(&of);
}

/* A report of a large graph says where it leaves some out. */
FAKE_TEST(ad8_reports_shorten_lists_of_semaphores) {
  const shared of = import_semaphore(t, RONDO_SEMAPHORE_TIMELINE_FD);
  rondo_semaphore_value values[9];
  rondo_graph *graph = test_graph(t);
  rondo_node node;
  char *text;
  for (uint64_t i = 0; i < 9; i++) values[i] = value_of(&of, i + 1);
  assert_ok(rondo_graph_add_semaphore_signal(graph, NULL, 0, values, 9, &node));
  for (int i = 0; i < 500; i++) assert_ok(rondo_graph_add_empty(graph, NULL, 0, &node));
  assert_ok(rondo_graph_report(graph, NULL, &text));
  assert_non_null(strstr(text, "semaphore frames 4, ..."));
  rondo_text_free(text);
  end_semaphore(&of);
}

static void *native_of(rondo_graph *graph) {
  void *native;
  assert_ok(rondo_graph_native(graph, &native));
  return native;
}

/* The form from before the last change is valid, so its semaphore is not destroyed. */
FAKE_TEST(ad8_ad2_forms_of_graphs_keep_semaphores) {
  const shared of = import_semaphore(t, RONDO_SEMAPHORE_TIMELINE_FD);
  const shared other = import_semaphore(t, RONDO_SEMAPHORE_TIMELINE_FD);
  const rondo_semaphore_value first = value_of(&of, 5), second = value_of(&other, 6);
  const rondo_node_params params = {.kind = RONDO_NODE_SEMAPHORE_SIGNAL,
                                    .as.semaphores = {.values = &second, .count = 1}};
  foreign_library *foreign = foreign_open();
  rondo_graph *graph = test_graph(t);
  rondo_node signal, empty;
  assert_ok(rondo_graph_add_semaphore_signal(graph, NULL, 0, &first, 1, &signal));
  void *const before = native_of(graph);
  assert_ok(rondo_graph_set_params(graph, signal, &params));
  void *const now = native_of(graph);
  rondo_external_semaphore_destroy(of.semaphore);
  assert_ok(rondo_device_synchronize(t->device));
  assert_int_equal(fake->live(FAKE_CUDA_SEMAPHORE), 2);
  assert_int_equal(foreign_graph_run(foreign, before, rondo_stream_native(t->stream)), 0);
  assert_int_equal(foreign_graph_run(foreign, now, rondo_stream_native(t->stream)), 0);
  assert_int_equal(state_of(&of), 5);
  assert_int_equal(state_of(&other), 6);
  assert_ok(rondo_graph_add_empty(graph, NULL, 0, &empty));
  assert_non_null(native_of(graph));
  assert_ok(rondo_device_synchronize(t->device));
  assert_int_equal(fake->live(FAKE_CUDA_SEMAPHORE), 1);
  end_semaphore(&other);
  assert_int_equal(close(of.file), 0);
  foreign_close(foreign);
}

/* A launch by the driver still waits when the exec and the semaphore are destroyed. */
FAKE_TEST(ad8_ad2_launches_by_the_driver_keep_semaphores) {
  const shared of = import_semaphore(t, RONDO_SEMAPHORE_TIMELINE_FD);
  const rondo_semaphore_value wait = value_of(&of, 1);
  foreign_library *foreign = foreign_open();
  void *stream, *native;
  rondo_graph *graph = test_graph(t);
  rondo_node node;
  assert_int_equal(foreign_stream_create(foreign, FOREIGN_NON_BLOCKING, &stream), 0);
  assert_ok(rondo_graph_add_semaphore_wait(graph, NULL, 0, &wait, 1, &node));
  rondo_exec *exec = test_exec_of(graph);
  assert_ok(rondo_exec_native(exec, &native));
  assert_int_equal(foreign_exec_enqueue(foreign, native, stream), 0);
  rondo_exec_destroy(exec);
  rondo_external_semaphore_destroy(of.semaphore);
  assert_ok(rondo_stream_synchronize(t->stream));
  assert_int_equal(fake->live(FAKE_CUDA_SEMAPHORE), 1);
  set_state(&of, 1);
  assert_ok(rondo_device_synchronize(t->device));
  assert_non_null(test_exec_of(test_graph(t))); /* which frees execs whose launches have ended */
  assert_int_equal(fake->live(FAKE_CUDA_SEMAPHORE), 0);
  assert_int_equal(foreign_stream_destroy(foreign, stream), 0);
  assert_int_equal(close(of.file), 0);
  foreign_close(foreign);
}

/* The same when an update has replaced the semaphore. It is destroyed by the first update after the launch's end. */
FAKE_TEST(ad8_ad2_launches_by_the_driver_keep_replaced_semaphores) {
  const shared of = import_semaphore(t, RONDO_SEMAPHORE_TIMELINE_FD);
  const shared other = import_semaphore(t, RONDO_SEMAPHORE_TIMELINE_FD);
  const rondo_semaphore_value wait = value_of(&of, 1), next = value_of(&other, 1);
  const rondo_node_params params = {.kind = RONDO_NODE_SEMAPHORE_WAIT, .as.semaphores = {.values = &next, .count = 1}};
  foreign_library *foreign = foreign_open();
  void *stream, *native;
  rondo_graph *graph = test_graph(t);
  rondo_node node;
  assert_int_equal(foreign_stream_create(foreign, FOREIGN_NON_BLOCKING, &stream), 0);
  assert_ok(rondo_graph_add_semaphore_wait(graph, NULL, 0, &wait, 1, &node));
  rondo_exec *exec = test_exec_of(graph);
  assert_ok(rondo_exec_native(exec, &native));
  assert_int_equal(foreign_exec_enqueue(foreign, native, stream), 0);
  assert_ok(rondo_exec_set_params(exec, node, &params));
  rondo_external_semaphore_destroy(of.semaphore);
  assert_ok(rondo_stream_synchronize(t->stream));
  assert_ok(rondo_exec_set_params(exec, node, &params));
  assert_int_equal(fake->live(FAKE_CUDA_SEMAPHORE), 2);
  set_state(&of, 1);
  assert_ok(rondo_device_synchronize(t->device));
  assert_ok(rondo_exec_set_params(exec, node, &params));
  assert_int_equal(fake->live(FAKE_CUDA_SEMAPHORE), 1);
  rondo_exec_destroy(exec);
  assert_int_equal(foreign_stream_destroy(foreign, stream), 0);
  end_semaphore(&other);
  assert_int_equal(close(of.file), 0);
  foreign_close(foreign);
}

FAKE_TEST(ad8_bad_semaphores_are_refused) {
  const shared binary = import_semaphore(t, RONDO_SEMAPHORE_OPAQUE_FD);
  rondo_semaphore_import_options options = {RONDO_SEMAPHORE_IMPORT_OPTIONS_INIT, .type = RONDO_SEMAPHORE_OPAQUE_FD};
  rondo_external_semaphore *none = binary.semaphore;
  rondo_semaphore_value values[RONDO_MAX_SEMAPHORES + 1] = {{NULL, 0}}, value = value_of(&binary, 1);
  assert_invalid(rondo_external_semaphore_import(t->device, -1, &options, &none), RONDO_REASON_OUT_OF_RANGE);
  assert_null(none);
  assert_invalid(rondo_external_semaphore_import(t->device, 0, NULL, &none), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_external_semaphore_import(NULL, 0, &options, &none), RONDO_REASON_NULL_ARGUMENT);
  options.type = (rondo_semaphore_type)2;
  assert_invalid(rondo_external_semaphore_import(t->device, 0, &options, &none), RONDO_REASON_BAD_OPTIONS);
  const int empty = memfd_create("no semaphore", MFD_CLOEXEC);
  options.type = RONDO_SEMAPHORE_OPAQUE_FD;
  assert_invalid(rondo_external_semaphore_import(t->device, empty, &options, &none), RONDO_REASON_BAD_OPTIONS);
  assert_int_equal(close(empty), 0);
  assert_invalid(rondo_semaphore_signal_async(t->stream, &value, 1), RONDO_REASON_BAD_OPTIONS);
  assert_message("the binary semaphore 'frames' with the value 1");
  assert_invalid(rondo_semaphore_wait_async(t->stream, values, 1), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_semaphore_wait_async(t->stream, NULL, 1), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_semaphore_wait_async(t->stream, values, 0), RONDO_REASON_BAD_SIZE);
  assert_invalid(rondo_semaphore_wait_async(t->stream, values, RONDO_MAX_SEMAPHORES + 1), RONDO_REASON_BAD_SIZE);
  end_semaphore(&binary);
}
