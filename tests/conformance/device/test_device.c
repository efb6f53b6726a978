/* SPDX-License-Identifier: MIT
 * Devices: names, information, counters, closing with live objects, several at once, calls from host functions, and the
 * option that synchronizes after every operation (GX-9).
 */
#include "support/rondo_test.h"
#include "support/test_program.h"

#include <sys/wait.h>
#include <unistd.h>

#include <string.h>

TEST(test_info_describes_the_device) {
  rondo_device_info info = test_device_info(t->device);
  assert_memory_equal(info.name, test_device_name(), strcspn(test_device_name(), ":"));
  assert_true(strchr(info.name, ':') != NULL);
  assert_true(strlen(info.description) > 0);
  assert_true(info.processors >= 1);
  assert_true(info.memory_bytes > info.page_bytes);
  assert_true(info.page_bytes != 0 && (info.page_bytes & (info.page_bytes - 1)) == 0);
  if (test_device_is("cpu")) assert_true(info.workers >= 1);
  assert_ptr_equal(rondo_stream_device(t->stream), t->device);
}

/* GM-1: a device says whether it has memory nodes. */
TEST(test_gm1_a_device_says_whether_it_has_graph_memory) {
  rondo_device_info info = test_device_info(t->device);
  rondo_graph *graph = test_graph(t);
  void *address = NULL;
  rondo_node node = {0};
  const rondo_status added = rondo_graph_add_alloc(graph, NULL, 0, 4096, "scratch", &address, &node);
  if (info.graph_memory) {
    assert_ok(added);
    assert_non_null(address);
  } else {
    assert_fails(added, RONDO_UNSUPPORTED);
    assert_null(address);
  }
}

TEST(test_unknown_devices_are_refused_by_name) {
  static const char *const names[] = {"",       "gpu",    "cpu:16", "cpu:-1", "cpu:x", "cpu:1x",
                                      "cpu: 1", "cpu:1 ", "cpux",   " cpu",   "CPU",   "cpu:99999999999999999999"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    rondo_device *device = (rondo_device *)&device;
    assert_error(rondo_device_open(names[i], NULL, &device), RONDO_NOT_FOUND, RONDO_REASON_UNKNOWN_DEVICE);
    assert_null(device);
    assert_message(names[i]);
    assert_message("cpu");
  }
  static const char *const unfinished[] = {"cuda:", "cpu:"};
  for (size_t i = 0; i < sizeof unfinished / sizeof unfinished[0]; i++) {
    rondo_device *device = (rondo_device *)&device;
    assert_error(rondo_device_open(unfinished[i], NULL, &device), RONDO_NOT_FOUND, RONDO_REASON_UNKNOWN_DEVICE);
    assert_null(device);
    assert_message(unfinished[i]);
    assert_message("whose name ends at its colon");
  }
  rondo_device *device = (rondo_device *)&device;
  assert_invalid(rondo_device_open(NULL, NULL, &device), RONDO_REASON_NULL_ARGUMENT);
  assert_null(device);
  assert_invalid(rondo_device_open("cpu", NULL, NULL), RONDO_REASON_NULL_ARGUMENT);
}

TEST(test_enumerated_names_can_be_opened) {
  const char *name = NULL, *unavailable = NULL;
  size_t count = 0;
  while (rondo_device_enumerate(count, &name, &unavailable) == RONDO_OK) assert_true(++count < 1000);
  assert_error(rondo_device_enumerate(count, &name, &unavailable), RONDO_NOT_FOUND, RONDO_REASON_OUT_OF_RANGE);
  assert_null(name);
  assert_true(count >= 1);
  for (size_t index = 0; index < count; index++) {
    assert_ok(rondo_device_enumerate(index, &name, &unavailable));
    assert_non_null(unavailable);
    if (index == 0) assert_string_equal(name, "cpu");
    if (unavailable[0] != '\0') continue;
    rondo_device *device = NULL;
    assert_ok(rondo_device_open(name, NULL, &device));
    assert_ok(rondo_device_close(device));
  }
}

#ifndef __SANITIZE_THREAD__ /* which ends such a child */
static bool works_alone(void) {
  rondo_device *device = NULL;
  rondo_stream *stream = NULL;
  return rondo_device_open("cpu", NULL, &device) == RONDO_OK &&
         rondo_stream_create(device, NULL, &stream) == RONDO_OK && rondo_stream_synchronize(stream) == RONDO_OK &&
         rondo_stream_destroy(stream) == RONDO_OK && rondo_device_close(device) == RONDO_OK;
}

/* The parent's objects are unchanged, and the parent continues. */
TEST(test_a_forked_child_has_devices_of_its_own) {
  int ended = 1;
  if (!test_device_is("cpu")) skip();
  uint32_t *word = test_words(t, 1);
  test_affine(t, t->stream, word, 1, 1, 1);
  assert_ok(rondo_stream_synchronize(t->stream));
  const pid_t child = fork();
  if (child == 0) _exit(works_alone() ? 0 : 1);
  assert_int_equal(waitpid(child, &ended, 0), child);
  assert_true(WIFEXITED(ended));
  assert_int_equal(WEXITSTATUS(ended), 0);
  test_affine(t, t->stream, word, 1, 1, 1);
  assert_int_equal(test_word(t, word), 2);
}
#endif

TEST(test_closing_null_is_fine) { assert_ok(rondo_device_close(NULL)); }

TEST(test_the_workers_option_holds) {
  if (!test_device_is("cpu")) skip();
  for (uint32_t workers = 1; workers <= 5; workers += 2) {
    rondo_device *device = NULL;
    assert_ok(rondo_device_open(test_device_name(),
                                &(rondo_device_options){RONDO_DEVICE_OPTIONS_INIT, .workers = workers}, &device));
    assert_int_equal(test_device_info(device).workers, workers);
    assert_ok(rondo_device_close(device));
  }
}

TEST(test_absurdly_many_workers_are_refused) {
  if (!test_device_is("cpu")) skip();
  rondo_device *device = NULL;
  const rondo_device_options options = {RONDO_DEVICE_OPTIONS_INIT, .workers = UINT32_MAX};
  assert_true(rondo_device_open(test_device_name(), &options, &device) != RONDO_OK);
  assert_null(device);
  assert_true(strlen(rondo_last_error()->message) > 0);
}

/* Closing with live objects closes nothing, and the objects still work. */
TEST(test_a_device_with_live_objects_is_not_closed) {
  rondo_device *device = NULL;
  rondo_stream *stream = NULL;
  rondo_event *event = NULL;
  rondo_kernel *kernel = NULL;
  void *memory = NULL;
  assert_ok(rondo_device_open(test_device_name(), NULL, &device));
  assert_ok(rondo_stream_create(device, NULL, &stream));
  assert_error(rondo_device_close(device), RONDO_INVALID_STATE, RONDO_REASON_STILL_IN_USE);
  assert_message("1 stream");
  assert_ok(rondo_stream_synchronize(stream));
  assert_ok(rondo_event_create(device, NULL, &event));
  test_stream_destroy(stream);
  assert_error(rondo_device_close(device), RONDO_INVALID_STATE, RONDO_REASON_STILL_IN_USE);
  assert_message("1 event");
  assert_ok(rondo_malloc(device, 1000, "kept", &memory));
  rondo_event_destroy(event);
  assert_error(rondo_device_close(device), RONDO_INVALID_STATE, RONDO_REASON_STILL_IN_USE);
  assert_message("1 allocation");
  assert_ok(rondo_kernel_create(device, &(rondo_kernel_options){RONDO_KERNEL_OPTIONS_INIT, .name = "kept"}, &kernel));
  assert_ok(rondo_free(device, memory));
  assert_error(rondo_device_close(device), RONDO_INVALID_STATE, RONDO_REASON_STILL_IN_USE);
  assert_message("1 kernel");
  rondo_kernel_destroy(kernel);
  assert_ok(rondo_device_close(device));
  assert_ok(rondo_stream_synchronize(t->stream)); /* another device of the same name is untouched */
}

static rondo_status build_sum(void *user, size_t rows, rondo_program *program) {
  rondo_value x;
  (void)user;
  assert_ok(rondo_program_input(program, "x", RONDO_F32, (const size_t[]){rows}, 1, &x));
  return rondo_program_output(program, "y", x);
}

/* Objects with separate streams and graphs are named themselves. */
TEST(test_trees_programs_and_sessions_keep_their_device_open) {
  rondo_device *device = NULL;
  rondo_tree *trees[2];
  rondo_session *session;
  assert_ok(rondo_device_open(test_device_name(), NULL, &device));
  for (int i = 0; i < 2; i++) assert_ok(rondo_tree_create(device, NULL, &trees[i]));
  assert_error(rondo_device_close(device), RONDO_INVALID_STATE, RONDO_REASON_STILL_IN_USE);
  assert_message("in use by 2 trees, ");
  for (int i = 0; i < 2; i++) assert_ok(rondo_tree_destroy(trees[i]));
  rondo_program *program = test_new_program();
  assert_ok(build_sum(NULL, 4, program));
  rondo_compiled *compiled = test_compile(program, device, NULL);
  assert_error(rondo_device_close(device), RONDO_INVALID_STATE, RONDO_REASON_STILL_IN_USE);
  assert_message("in use by 1 compiled program, ");
  assert_ok(rondo_compiled_destroy(compiled));
  assert_ok(rondo_session_create(device, NULL, &session));
  assert_error(rondo_device_close(device), RONDO_INVALID_STATE, RONDO_REASON_STILL_IN_USE);
  assert_message("in use by 1 session");
  assert_ok(rondo_session_destroy(session));
  assert_ok(rondo_device_close(device));
}

TEST(test_an_exec_keeps_its_device_open) {
  rondo_device *device = NULL;
  rondo_graph *graph = NULL;
  assert_ok(rondo_device_open(test_device_name(), NULL, &device));
  assert_ok(rondo_graph_create(device, NULL, &graph));
  rondo_exec *exec = test_exec_of(graph);
  assert_error(rondo_device_close(device), RONDO_INVALID_STATE, RONDO_REASON_STILL_IN_USE);
  assert_message("1 exec");
  rondo_exec_destroy(exec);
  assert_ok(rondo_device_close(device));
}

/* The teardown checks that the allocator has the text back. */
TEST(test_texts_outlive_their_device) {
  const rondo_device_options options = {RONDO_DEVICE_OPTIONS_INIT, .allocator = &t->allocator.table};
  rondo_device *device = NULL;
  rondo_graph *graph = NULL;
  char *text = NULL;
  assert_ok(rondo_device_open(test_device_name(), &options, &device));
  assert_ok(rondo_graph_create(device, NULL, &graph));
  assert_ok(rondo_graph_to_json(graph, false, &text));
  rondo_graph_destroy(graph);
  assert_ok(rondo_device_close(device));
  assert_true(strlen(text) > 0);
  rondo_text_free(text);
}

TEST(test_closing_waits_for_the_work) {
  rondo_device *device = NULL;
  rondo_stream *stream = NULL;
  test_gate *gate = test_gate_make();
  assert_ok(rondo_device_open(test_device_name(), NULL, &device));
  assert_ok(rondo_stream_create(device, NULL, &stream));
  test_gate_open(gate);
  assert_ok(rondo_host_async(stream, test_gate_pass, gate));
  test_stream_destroy(stream);
  assert_ok(rondo_device_close(device));
  int entered = 0;
  assert_int_equal(sem_getvalue(&gate->entered, &entered), 0);
  assert_int_equal(entered, 1);
}

TEST(test_statistics_count_kernels_and_launches) {
  uint32_t *word = test_words(t, 1);
  rondo_graph *graph = test_graph(t);
  const rondo_node first = test_add_affine(t, graph, NULL, 0, word, 1, 1);
  test_add_affine(t, graph, &first, 1, word, 1, 1);
  rondo_exec *exec = test_instantiate(graph);
  const rondo_device_statistics before = test_statistics(t);
  for (int i = 0; i < 3; i++) test_affine(t, t->stream, word, 1, 1, 1);
  for (int i = 0; i < 4; i++) assert_ok(rondo_exec_launch(exec, t->stream));
  assert_ok(rondo_stream_synchronize(t->stream));
  const rondo_device_statistics after = test_statistics(t);
  assert_int_equal(after.kernels - before.kernels, 3 + 4 * 2);
  assert_int_equal(after.launches - before.launches, 4);
  assert_int_equal(test_word(t, word), 11);
}

/* Two devices at once: `cpu` and `cpu:1` have separate memory, and neither accepts objects of the other. */
TEST(test_two_devices_work_side_by_side) {
  if (!test_device_is("cpu")) skip();
  rondo_stream *stream = NULL;
  rondo_kernel *kernel = NULL;
  void *memory = NULL;
  rondo_device *other = test_device("cpu:1", NULL);
  rondo_device_info info = test_device_info(other);
  assert_int_equal(info.index, 1);
  assert_string_equal(info.name, "cpu:1");
  assert_ok(rondo_stream_create(other, NULL, &stream));
  assert_ok(rondo_kernel_create(other, test_kernel_options(TEST_KERNEL_SET), &kernel));
  assert_ok(rondo_malloc(other, 64, NULL, &memory));
  uint32_t *words = test_words(t, 16);
  const uint32_t here = 7, there = 9;
  assert_ok(
      rondo_launch(t->stream, test_kernel(t, TEST_KERNEL_SET), (rondo_grid){16, 0, 0}, RONDO_ARGS(&here, &words)));
  assert_ok(rondo_launch(stream, kernel, (rondo_grid){16, 0, 0}, RONDO_ARGS(&there, &memory)));
  uint32_t read[16];
  assert_ok(rondo_copy_async(stream, read, memory, sizeof read));
  assert_ok(rondo_device_synchronize(other));
  for (int i = 0; i < 16; i++) assert_int_equal(read[i], there);
  assert_int_equal(test_word(t, words + 15), here);
  assert_invalid(rondo_launch(t->stream, kernel, (rondo_grid){1, 0, 0}, RONDO_ARGS(&there, &memory)),
                 RONDO_REASON_OTHER_DEVICE);
  assert_error(rondo_free(t->device, memory), RONDO_INVALID_LIFETIME, RONDO_REASON_FOREIGN_ADDRESS);
  assert_ok(rondo_free(other, memory));
  rondo_kernel_destroy(kernel);
  test_stream_destroy(stream);
}

TEST(test_device_synchronize_waits_for_all_streams) {
  rondo_stream *streams[4];
  uint32_t *words = test_words(t, 4);
  for (uint32_t i = 0; i < 4; i++) {
    streams[i] = test_stream(t, "one of four");
    for (uint32_t k = 0; k < 100; k++) test_affine(t, streams[i], words + i, 1, 1, i + 1);
  }
  assert_ok(rondo_device_synchronize(t->device));
  for (int i = 0; i < 4; i++) assert_ok(rondo_stream_query(streams[i]));
  const uint32_t expected[4] = {100, 200, 300, 400};
  assert_words(t, words, expected, 4);
}

/* Calls from inside a host function are refused. */
typedef struct callback_calls {
  test_fixture *fixture;
  void *memory;
  rondo_event *event;
  rondo_reason reasons[8];
  size_t count;
} callback_calls;

static void note(callback_calls *calls, rondo_status status) {
  calls->reasons[calls->count++] = status == RONDO_OK ? RONDO_REASON_NONE : rondo_last_error()->reason;
}

static rondo_status call_rondo_inside(void *user) {
  callback_calls *calls = user;
  test_fixture *t = calls->fixture;
  void *memory = NULL;
  rondo_stream *stream = NULL;
  note(calls, rondo_stream_synchronize(t->stream));
  note(calls, rondo_device_synchronize(t->device));
  note(calls, rondo_event_synchronize(calls->event));
  note(calls, rondo_host_async(t->stream, test_gate_pass, calls));
  note(calls, rondo_malloc(t->device, 64, NULL, &memory));
  note(calls, rondo_free(t->device, calls->memory));
  note(calls, rondo_stream_create(t->device, NULL, &stream));
  note(calls, rondo_stream_query(t->stream));
  return RONDO_OK;
}

TEST(test_calls_from_a_host_function_are_refused) {
  callback_calls calls = {.fixture = t, .event = test_event(t)};
  assert_ok(rondo_malloc(t->device, 64, NULL, &calls.memory));
  assert_ok(rondo_host_async(t->stream, call_rondo_inside, &calls));
  assert_ok(rondo_stream_synchronize(t->stream));
  assert_int_equal(calls.count, 8);
  for (size_t i = 0; i < calls.count; i++) assert_int_equal(calls.reasons[i], RONDO_REASON_IN_CALLBACK);
  rondo_event_destroy(calls.event);
  assert_ok(rondo_free(t->device, calls.memory));
}

/* GX-9: with `synchronous`, an error is returned by the call that causes it, and work is complete when the call
 * returns. */
TEST(test_gx9_a_synchronous_device_waits_after_every_operation) {
  rondo_stream *stream = NULL;
  rondo_kernel *kernel = NULL;
  void *memory = NULL;
  rondo_device *device =
      test_device(test_device_name(), &(rondo_device_options){RONDO_DEVICE_OPTIONS_INIT, .synchronous = true});
  assert_ok(rondo_stream_create(device, NULL, &stream));
  assert_ok(rondo_kernel_create(device, test_kernel_options(TEST_KERNEL_SET), &kernel));
  assert_ok(rondo_malloc(device, 4, NULL, &memory));
  const uint32_t value = 5;
  uint32_t read = 0;
  assert_ok(rondo_launch(stream, kernel, (rondo_grid){1, 0, 0}, RONDO_ARGS(&value, &memory)));
  assert_ok(rondo_stream_query(stream));
  assert_ok(rondo_copy_async(stream, &read, memory, sizeof read));
  assert_int_equal(read, 5);
  assert_error(rondo_host_async(stream, test_host_fails, NULL), RONDO_EXECUTION_FAILED,
               RONDO_REASON_HOST_FUNCTION_FAILED);
  assert_ok(rondo_stream_synchronize(stream)); /* it was returned already */
  assert_ok(rondo_free(device, memory));
  rondo_kernel_destroy(kernel);
  test_stream_destroy(stream);
}

/* A failure that no synchronization returned is returned then, and the stream is destroyed anyway. */
TEST(test_destroying_a_stream_returns_the_failure_that_was_left) {
  rondo_stream *stream = NULL;
  rondo_device *device = test_device(test_device_name(), NULL);
  assert_ok(rondo_stream_create(device, NULL, &stream));
  assert_ok(rondo_host_async(stream, test_host_fails, NULL));
  assert_error(rondo_stream_destroy(stream), RONDO_EXECUTION_FAILED, RONDO_REASON_HOST_FUNCTION_FAILED);
}

/* Messages give streams without names a number; naming one stream does not rename another. */
DEVICE_TEST(test_streams_without_names_can_be_distinguished) {
  rondo_device *device = NULL;
  rondo_stream *streams[3] = {NULL};
  rondo_graph *graph = NULL;
  const rondo_stream_options named = {RONDO_STREAM_OPTIONS_INIT, .name = "copies"};
  assert_ok(rondo_device_open(test_device_name(), NULL, &device));
  for (int i = 0; i < 3; i++) assert_ok(rondo_stream_create(device, i == 1 ? &named : NULL, &streams[i]));
  const char *const labels[] = {"stream 1 is not", "stream 'copies' is not", "stream 3 is not"};
  for (int i = 0; i < 3; i++) {
    assert_error(rondo_capture_end(streams[i], &graph), RONDO_INVALID_STATE, RONDO_REASON_NOT_CAPTURING);
    assert_message(labels[i]);
  }
  assert_ok(rondo_host_async(streams[2], test_host_fails, NULL));
  assert_error(rondo_stream_synchronize(streams[2]), RONDO_EXECUTION_FAILED, RONDO_REASON_HOST_FUNCTION_FAILED);
  assert_message("stream 3");
  for (int i = 0; i < 3; i++) assert_ok(rondo_stream_destroy(streams[i]));
  assert_ok(rondo_device_close(device));
}
