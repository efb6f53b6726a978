/* SPDX-License-Identifier: MIT
 * The fixture and the assertions. The teardown prints what is left instead of asserting, because a failed test always
 * leaves something.
 */
#define _GNU_SOURCE
#include "support/rondo_test.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "support/test_cleanup.h"
#include "support/test_effort.h"

#define GATE_SECONDS 20
#define SKIPPED 77

/* Statuses -------------------------------------------------------------------------------------------------------- */

static void print_status(const char *call, rondo_status actual) {
  const rondo_error *error = rondo_last_error();
  print_error("%s returned %s\n  last error: %s/%s: %s\n", call, rondo_status_name(actual),
              rondo_status_name(error->status), rondo_reason_name(error->reason), error->message);
}

void test_assert_status(rondo_status actual, rondo_status expected, const char *call, const char *file, int line) {
  if (actual == expected) return;
  print_status(call, actual);
  print_error("  expected: %s\n", rondo_status_name(expected));
  _fail(file, line);
}

/* Of the calling thread, before the call that is asserted. */
static _Thread_local struct {
  rondo_status status;
  rondo_reason reason;
  char message[1024];
} noted;

void test_note_error(void) {
  const rondo_error *error = rondo_last_error();
  noted.status = error->status;
  noted.reason = error->reason;
  (void)snprintf(noted.message, sizeof noted.message, "%s", error->message);
}

void test_assert_ok(rondo_status actual, const char *call, const char *file, int line) {
  const rondo_error *error = rondo_last_error();
  test_assert_status(actual, RONDO_OK, call, file, line);
  if (error->status == noted.status && error->reason == noted.reason && strcmp(error->message, noted.message) == 0)
    return;
  print_status(call, actual);
  print_error("  expected: the last error from before: %s/%s: %s\n", rondo_status_name(noted.status),
              rondo_reason_name(noted.reason), noted.message);
  _fail(file, line);
}

/* An error has its status and a message of some length. The message names the object, or its type if it has no name. */
static void check_detail(rondo_status actual, const char *call, const char *file, int line) {
  const rondo_error *error = rondo_last_error();
  const bool is_kept = actual != RONDO_OK && error->status == actual && strlen(error->message) >= 10;
  if (is_kept && strstr(error->message, "''") == NULL) return; /* the type of an object without a name */
  print_status(call, actual);
  print_error("  expected: a failure whose detail is kept and says something, with no name that is empty\n");
  _fail(file, line);
}

void test_assert_error(rondo_status actual, rondo_status expected, rondo_reason reason, const char *call,
                       const char *file, int line) {
  check_detail(actual, call, file, line);
  test_note_error(); /* the call may be inside a callback of a call that succeeds */
  if ((expected == RONDO_OK || actual == expected) && rondo_last_error()->reason == reason) return;
  print_status(call, actual);
  print_error("  expected: %s/%s\n", expected == RONDO_OK ? "any failure" : rondo_status_name(expected),
              rondo_reason_name(reason));
  _fail(file, line);
}

void test_assert_fails(rondo_status actual, rondo_status expected, const char *call, const char *file, int line) {
  test_assert_status(actual, expected, call, file, line);
  check_detail(actual, call, file, line);
  test_note_error();
}

void test_assert_message(const char *text, const char *file, int line) {
  if (strstr(rondo_last_error()->message, text) != NULL) return;
  print_error("the last error's message does not hold '%s':\n  %s\n", text, rondo_last_error()->message);
  _fail(file, line);
}

static float magnitude(float value) { return value < 0 ? -value : value; }

void test_assert_near(const float *actual, const float *expected, size_t count, float tolerance, const char *file,
                      int line) {
  for (size_t i = 0; i < count; i++) {
    const float size = magnitude(expected[i]) > 1.0f ? magnitude(expected[i]) : 1.0f;
    if (magnitude(actual[i] - expected[i]) <= tolerance * size) continue;
    print_error("value %zu of %zu is %.9g, expected %.9g\n", i, count, (double)actual[i], (double)expected[i]);
    _fail(file, line);
  }
}

/* Devices and fixtures -------------------------------------------------------------------------------------------- */

const char *test_device_name(void) {
  const char *name = getenv("RONDO_TEST_DEVICE");
  return name != NULL && name[0] != '\0' ? name : "cpu";
}

bool test_device_is(const char *prefix) { return strncmp(test_device_name(), prefix, strlen(prefix)) == 0; }

static bool close_fresh(rondo_device *device) {
  const bool closed = rondo_device_close(device) == RONDO_OK;
  if (!closed) fprintf(stderr, "failed: a fresh device cannot be closed: %s\n", rondo_last_error()->message);
  return closed;
}

/* A GPU's device stays open while the tests open theirs, because creating its context takes longer than a test. */
int test_run_group(const char *name, const struct CMUnitTest *tests, size_t count, bool needs_device) {
  if (!needs_device) return _cmocka_run_group_tests(name, tests, count, NULL, NULL);
  rondo_device *device = NULL;
  const rondo_status opened = rondo_device_open(test_device_name(), NULL, &device);
  if (opened != RONDO_OK) {
    const char *required = getenv("RONDO_REQUIRE");
    const bool must = required != NULL && required[0] != '\0' && test_device_is(required);
    fprintf(stderr, "%s: device %s cannot be opened: %s\n", must ? "failed" : "skipped", test_device_name(),
            rondo_last_error()->message);
    return must ? EXIT_FAILURE : SKIPPED;
  }
  rondo_device_info info = {.struct_size = sizeof info};
  const bool is_kept = rondo_device_get_info(device, &info) == RONDO_OK && info.cuda;
  if (!is_kept && !close_fresh(device)) return EXIT_FAILURE;
  const int failures = _cmocka_run_group_tests(name, tests, count, NULL, NULL);
  return is_kept && !close_fresh(device) ? EXIT_FAILURE : failures;
}

bool test_adopts_streams(void) { return getenv("RONDO_TEST_ADOPTED") != NULL; }

static void make_stream(test_fixture *fixture) {
  if (!test_adopts_streams()) {
    assert_ok(rondo_stream_create(fixture->device, NULL, &fixture->stream));
    return;
  }
  assert_ok(rondo_device_open(test_device_name(), NULL, &fixture->owner));
  assert_ok(rondo_stream_create(fixture->owner, NULL, &fixture->owner_stream));
  assert_ok(rondo_stream_adopt(fixture->device, rondo_stream_native(fixture->owner_stream), NULL, &fixture->stream));
}

static bool end_stream(const test_fixture *fixture) {
  bool clean = test_took_down(rondo_stream_destroy(fixture->stream), "the stream");
  if (fixture->owner == NULL) return clean;
  clean = test_took_down(rondo_stream_destroy(fixture->owner_stream), "the owner's stream") && clean;
  return test_took_down(rondo_device_close(fixture->owner), "the owner's device") && clean;
}

static int setup(void **state, rondo_device_options options) {
  test_fixture *fixture = calloc(1, sizeof *fixture);
  if (fixture == NULL) return -1;
  *state = fixture;
  test_allocator_init(&fixture->allocator);
  options.allocator = &fixture->allocator.table;
  assert_ok(rondo_device_open(test_device_name(), &options, &fixture->device));
  make_stream(fixture);
  rondo_device_info info = test_device_info(fixture->device);
  for (int i = 0; info.cuda && i < TEST_KERNEL_COUNT; i++) (void)test_kernel(fixture, (test_kernel_id)i);
  return 0;
}

static const rondo_device_options usual = {RONDO_DEVICE_OPTIONS_INIT};

int test_setup(void **state) { return setup(state, usual); }

int test_setup_workers(void **state) {
  return setup(state, (rondo_device_options){RONDO_DEVICE_OPTIONS_INIT, .workers = 4});
}

int test_setup_with(void **state, rondo_device_options options) {
  return setup(state, test_device_is("cpu") ? options : usual);
}

int test_teardown(void **state) {
  test_fixture *fixture = *state;
  bool clean = test_destroy_left();
  for (size_t i = 0; i < TEST_KERNEL_COUNT; i++) rondo_kernel_destroy(fixture->kernels[i]);
  clean = end_stream(fixture) && clean;
  clean = test_took_down(rondo_device_close(fixture->device), "the device") && clean;
  clean = test_allocator_is_clean(&fixture->allocator) && clean;
  if (clean) free(fixture); /* otherwise, what is left may still refer to it */
  return clean ? 0 : -1;
}

rondo_device *test_device(const char *name, const rondo_device_options *options) {
  rondo_device *device = NULL;
  assert_ok(rondo_device_open(name, options, &device));
  test_leave_kind(TEST_LEFT_DEVICE, device, NULL);
  return device;
}

rondo_stream *test_stream(test_fixture *fixture, const char *name) {
  rondo_stream *stream = NULL;
  const rondo_stream_options options = {RONDO_STREAM_OPTIONS_INIT, .name = name};
  assert_ok(rondo_stream_create(fixture->device, &options, &stream));
  test_leave_kind(TEST_LEFT_STREAM, stream, NULL);
  return stream;
}

rondo_stream *test_adopted_stream(rondo_device *device, rondo_stream **out_theirs) {
  rondo_stream *theirs = NULL, *stream = NULL;
  const rondo_stream_options options = {RONDO_STREAM_OPTIONS_INIT, .name = "adopted"};
  rondo_device *owner = test_device(test_device_info(device).name, NULL);
  assert_ok(rondo_stream_create(owner, NULL, &theirs));
  test_leave_kind(TEST_LEFT_STREAM, theirs, NULL);
  assert_ok(rondo_stream_adopt(device, rondo_stream_native(theirs), &options, &stream));
  test_leave_kind(TEST_LEFT_STREAM, stream, NULL);
  if (out_theirs != NULL) *out_theirs = theirs;
  return stream;
}

rondo_event *test_event(test_fixture *fixture) {
  rondo_event *event = NULL;
  assert_ok(rondo_event_create(fixture->device, NULL, &event));
  test_leave_kind(TEST_LEFT_EVENT, event, NULL);
  return event;
}

rondo_graph *test_graph(test_fixture *fixture) {
  rondo_graph *graph = NULL;
  assert_ok(rondo_graph_create(fixture->device, NULL, &graph));
  test_leave_kind(TEST_LEFT_GRAPH, graph, NULL);
  return graph;
}

rondo_kernel *test_kernel(test_fixture *fixture, test_kernel_id id) {
  if (fixture->kernels[id] == NULL) {
    assert_ok(rondo_kernel_create(fixture->device, test_kernel_options(id), &fixture->kernels[id]));
  }
  return fixture->kernels[id];
}

rondo_kernel *test_kernel_make(test_fixture *fixture, const rondo_kernel_options *options) {
  rondo_kernel *kernel = NULL;
  assert_ok(rondo_kernel_create(fixture->device, options, &kernel));
  test_leave_kind(TEST_LEFT_KERNEL, kernel, NULL);
  return kernel;
}

rondo_recording *test_recording(const test_fixture *fixture, const rondo_recording_options *options) {
  rondo_recording *recording = NULL;
  assert_ok(rondo_recording_create(fixture->device, options, &recording));
  test_leave_kind(TEST_LEFT_RECORDING, recording, NULL);
  return recording;
}

rondo_executor *test_executor(const test_fixture *fixture, const rondo_executor_options *options) {
  rondo_executor *executor = NULL;
  assert_ok(rondo_executor_create(fixture->device, options, &executor));
  test_leave_kind(TEST_LEFT_EXECUTOR, executor, NULL);
  return executor;
}

rondo_exec *test_exec_of(rondo_graph *graph) {
  rondo_exec *exec = test_instantiate(graph);
  test_graph_destroy(graph);
  return exec;
}

rondo_exec *test_instantiate(rondo_graph *graph) { return test_instantiate_with(graph, NULL); }

rondo_exec *test_instantiate_with(rondo_graph *graph, const rondo_instantiate_options *options) {
  rondo_exec *exec = NULL;
  assert_ok(rondo_instantiate(graph, options, &exec));
  assert_non_null(exec);
  test_leave_kind(TEST_LEFT_EXEC, exec, NULL);
  return exec;
}

void test_stream_destroy(rondo_stream *stream) { assert_ok(rondo_stream_destroy(stream)); }
void test_graph_destroy(rondo_graph *graph) { assert_ok(rondo_graph_destroy(graph)); }

rondo_graph *test_capture_end(rondo_stream *stream) {
  rondo_graph *graph = NULL;
  assert_ok(rondo_capture_end(stream, &graph));
  assert_non_null(graph);
  test_leave_kind(TEST_LEFT_GRAPH, graph, NULL);
  return graph;
}

void test_order(test_fixture *fixture, rondo_stream *from, rondo_stream *to) {
  rondo_event *event = test_event(fixture);
  assert_ok(rondo_event_record(event, from));
  assert_ok(rondo_stream_wait_event(to, event));
  rondo_event_destroy(event);
}

void test_assert_same_graph(const rondo_graph *a, const rondo_graph *b, const char *file, int line) {
  size_t count = 1;
  uint64_t prints[2] = {0, 0};
  rondo_difference first = {0};
  assert_ok(rondo_graph_diff(a, b, false, &first, &count));
  assert_ok(rondo_graph_fingerprint(a, &prints[0]));
  assert_ok(rondo_graph_fingerprint(b, &prints[1]));
  if (count == 0 && prints[0] == prints[1]) return;
  print_error("the graphs have %zu differences, the first of kind %d at nodes %u and %u; their fingerprints are %s\n",
              count, (int)first.kind, rondo_node_number(first.a), rondo_node_number(first.b),
              prints[0] == prints[1] ? "equal" : "not equal");
  _fail(file, line);
}

void *test_allocate(test_fixture *fixture, size_t bytes, const char *name) {
  void *address = NULL;
  assert_ok(rondo_malloc(fixture->device, bytes, name, &address));
  return address;
}

void *test_allocate_async(rondo_stream *stream, size_t bytes) {
  void *address = NULL;
  assert_ok(rondo_malloc_async(stream, bytes, NULL, &address));
  return address;
}

rondo_node_params test_node_params(const rondo_graph *graph, rondo_node node) {
  rondo_node_params params;
  assert_ok(rondo_graph_get_params(graph, node, &params));
  return params;
}

size_t test_node_count(const rondo_graph *graph) {
  size_t count = 0;
  assert_ok(rondo_graph_nodes(graph, NULL, &count));
  return count;
}

size_t test_edge_count(const rondo_graph *graph) {
  size_t count = 0;
  assert_ok(rondo_graph_edges(graph, NULL, NULL, &count));
  return count;
}

TEST_GETTER(rondo_device_info, test_device_info, const rondo_device, rondo_device_get_info)
TEST_GETTER(rondo_exec_info, test_exec_info, const rondo_exec, rondo_exec_get_info)
TEST_GETTER(rondo_capture_info, test_capture_info, const rondo_stream, rondo_capture_get_info)
TEST_GETTER(rondo_buffer_info, test_buffer_info, const rondo_buffer, rondo_buffer_get_info)
TEST_GETTER(rondo_recording_info, test_recording_info, const rondo_recording, rondo_recording_get_info)
TEST_GETTER(rondo_pool_statistics, test_pool_statistics, rondo_pool, rondo_pool_get_statistics)

rondo_capture_state test_capture_state(const rondo_stream *stream) { return test_capture_info(stream).state; }

rondo_status test_host_nothing(void *user) {
  (void)user;
  return RONDO_OK;
}

rondo_status test_host_fails(void *user) {
  (void)user;
  return RONDO_IO_ERROR;
}

rondo_status test_host_count(void *count) {
  ++*(uint32_t *)count;
  return RONDO_OK;
}

rondo_status test_body_nothing(rondo_call *call, void *user) {
  (void)call;
  (void)user;
  return RONDO_OK;
}

void test_launch(test_fixture *fixture, rondo_exec *exec) {
  assert_ok(rondo_exec_launch(exec, fixture->stream));
  assert_ok(rondo_stream_synchronize(fixture->stream));
}

void test_run_once(test_fixture *fixture, rondo_graph *graph) {
  rondo_exec *exec = test_instantiate(graph);
  test_launch(fixture, exec);
  rondo_exec_destroy(exec);
}

uint32_t *test_words(test_fixture *fixture, size_t count) {
  void *address = test_allocate(fixture, count * sizeof(uint32_t), "words");
  test_leave_kind(TEST_LEFT_WORDS, address, fixture->device);
  const rondo_fill zeros = {.dst = address, .value = 0, .element_bytes = 4, .width = count};
  assert_ok(rondo_fill_async(fixture->stream, &zeros));
  assert_ok(rondo_stream_synchronize(fixture->stream));
  return address;
}

void test_words_free(test_fixture *fixture, uint32_t *words) { assert_ok(rondo_free(fixture->device, words)); }

void test_write(test_fixture *fixture, void *device_address, const void *host, size_t bytes) {
  assert_ok(rondo_copy_async(fixture->stream, device_address, host, bytes));
  assert_ok(rondo_stream_synchronize(fixture->stream));
}

void test_read(test_fixture *fixture, void *host, const void *device_address, size_t bytes) {
  assert_ok(rondo_copy_async(fixture->stream, host, device_address, bytes));
  assert_ok(rondo_stream_synchronize(fixture->stream));
}

uint32_t test_word(test_fixture *fixture, const uint32_t *device_address) {
  uint32_t word = 0;
  test_read(fixture, &word, device_address, sizeof word);
  return word;
}

void test_assert_words(test_fixture *fixture, const uint32_t *device_address, const uint32_t *expected, size_t count,
                       const char *file, int line) {
  uint32_t *actual = calloc(count, sizeof *actual);
  assert_non_null(actual);
  test_read(fixture, actual, device_address, count * sizeof *actual);
  size_t at = 0;
  while (at < count && actual[at] == expected[at]) at++;
  const uint32_t found = at < count ? actual[at] : 0;
  free(actual);
  if (at == count) return;
  print_error("word %zu of %zu is %u, expected %u\n", at, count, found, expected[at]);
  _fail(file, line);
}

void test_affine(test_fixture *fixture, rondo_stream *stream, uint32_t *words, size_t count, uint32_t factor,
                 uint32_t term) {
  const rondo_grid grid = {.x = (uint32_t)count};
  assert_ok(rondo_launch(stream, test_kernel(fixture, TEST_KERNEL_AFFINE), grid, RONDO_ARGS(&factor, &term, &words)));
}

rondo_node test_add_affine(test_fixture *fixture, rondo_graph *graph, const rondo_node *dependencies, size_t count,
                           uint32_t *word, uint32_t factor, uint32_t term) {
  rondo_node node = {0};
  assert_ok(rondo_graph_add_kernel(graph, dependencies, count, test_kernel(fixture, TEST_KERNEL_AFFINE),
                                   (rondo_grid){.x = 1}, RONDO_ARGS(&factor, &term, &word), &node));
  return node;
}

bool test_is_guarded(const test_fixture *fixture) { return test_device_info(fixture->device).guarded; }

size_t test_most_mappings(void) {
  size_t most = 0;
  FILE *file = fopen("/proc/sys/vm/max_map_count", "r");
  assert_non_null(file);
  assert_int_equal(fscanf(file, "%zu", &most), 1);
  assert_int_equal(fclose(file), 0);
  return most;
}

size_t test_whole_pages(const test_fixture *fixture, size_t bytes) {
  const size_t page = test_device_info(fixture->device).page_bytes;
  return (bytes + page - 1) / page * page;
}

rondo_device_statistics test_statistics(const test_fixture *fixture) {
  rondo_device_statistics statistics = {.struct_size = sizeof statistics};
  assert_ok(rondo_device_get_statistics(fixture->device, &statistics));
  return statistics;
}

rondo_memory_statistics test_memory_statistics(const test_fixture *fixture) {
  rondo_memory_statistics statistics = {.struct_size = sizeof statistics};
  assert_ok(rondo_memory_get_statistics(fixture->device, &statistics));
  return statistics;
}

/* Holding a stream ------------------------------------------------------------------------------------------------ */

/* Returns false after the timeout. */
static bool wait_at(sem_t *semaphore) {
  struct timespec deadline;
  clock_gettime(CLOCK_REALTIME, &deadline);
  deadline.tv_sec += GATE_SECONDS;
  int result = 0;
  do {
    result = sem_timedwait(semaphore, &deadline);
  } while (result != 0 && errno == EINTR);
  return result == 0;
}

void test_gate_init(test_gate *gate) {
  assert_int_equal(sem_init(&gate->entered, 0, 0), 0);
  assert_int_equal(sem_init(&gate->opened, 0, 0), 0);
}

test_gate *test_gate_make(void) {
  test_gate *gate = malloc(sizeof *gate);
  assert_non_null(gate);
  test_gate_init(gate);
  test_leave_kind(TEST_LEFT_GATE, gate, NULL);
  return gate;
}

rondo_status test_gate_pass(void *gate) {
  test_gate *self = gate;
  sem_post(&self->entered);
  return wait_at(&self->opened) ? RONDO_OK : RONDO_EXECUTION_FAILED;
}

void test_gate_hold(test_gate *gate, rondo_stream *stream) {
  assert_ok(rondo_host_async(stream, test_gate_pass, gate));
  test_gate_await(gate);
}

void test_gate_await(test_gate *gate) { assert_true(wait_at(&gate->entered)); }
void test_gate_open(test_gate *gate) { assert_int_equal(sem_post(&gate->opened), 0); }

void test_gate_destroy(test_gate *gate) {
  sem_destroy(&gate->entered);
  sem_destroy(&gate->opened);
}

void test_skip_if_serial(void) {
  if (test_is_serial()) skip();
}

/* Threads --------------------------------------------------------------------------------------------------------- */

typedef struct thread_start {
  test_thread thread;
  pthread_barrier_t *together; /* NULL: start at once */
} thread_start;

static void *run_thread(void *argument) {
  const thread_start *start = argument;
  if (start->together != NULL) pthread_barrier_wait(start->together);
  start->thread.function(start->thread.user);
  return NULL;
}

void test_on_thread(void (*function)(void *user), void *user) {
  thread_start start = {.thread = {.function = function, .user = user}};
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, run_thread, &start), 0);
  assert_int_equal(pthread_join(thread, NULL), 0);
}

void test_on_threads(const test_thread *threads, size_t count) {
  enum { MOST = 16 };
  pthread_t handles[MOST];
  thread_start starts[MOST];
  pthread_barrier_t together;
  assert_true(count <= MOST);
  assert_int_equal(pthread_barrier_init(&together, NULL, (unsigned)count), 0);
  for (size_t i = 0; i < count; i++) {
    starts[i] = (thread_start){.thread = threads[i], .together = &together};
    assert_int_equal(pthread_create(&handles[i], NULL, run_thread, &starts[i]), 0);
  }
  for (size_t i = 0; i < count; i++) assert_int_equal(pthread_join(handles[i], NULL), 0);
  pthread_barrier_destroy(&together);
}

void test_sleep_ms(unsigned milliseconds) {
  struct timespec rest = {.tv_sec = milliseconds / 1000, .tv_nsec = (long)(milliseconds % 1000) * 1000000};
  while (nanosleep(&rest, &rest) != 0 && errno == EINTR) {
  }
}

/* Numbers --------------------------------------------------------------------------------------------------------- */

uint64_t test_random(uint64_t *state) {
  uint64_t z = *state += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

uint32_t test_random_below(uint64_t *state, uint32_t bound) { return (uint32_t)((test_random(state) >> 32) % bound); }
