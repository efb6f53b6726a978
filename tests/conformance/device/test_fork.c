/* SPDX-License-Identifier: MIT
 * What a child process may do that a process with devices forks (device.h): it may only destroy the parent's objects,
 * which does nothing, and may use devices of its own without limits. The child's tests end with the line of the first
 * failure. Where a child would wait for a thread that it does not have, a signal ends it.
 */
#include <dirent.h>
#include <rondo/callables.h>
#include <rondo/collective.h>
#include <rondo/executor.h>
#include <rondo/patch.h>
#include <rondo/program.h>
#include <rondo/random.h>
#include <rondo/recording.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/test_program.h"
#include "support/test_scene.h"
#include "support/test_session.h"

#ifdef __SANITIZE_THREAD__
int main(void) { return 77; } /* it ends such a child */
#else

enum { TIMEOUT_S = 30 };

static bool is_running(const char *thread) {
  char path[64], line[256];
  size_t length = 0;
  snprintf(path, sizeof path, "/proc/self/task/%.20s/stat", thread);
  FILE *file = fopen(path, "r");
  if (file != NULL) {
    length = fread(line, 1, sizeof line - 1, file);
    (void)fclose(file);
  }
  line[length] = '\0';
  const char *name_end = strrchr(line, ')'); /* the state follows: "12 (a name) S ..." */
  return name_end != NULL && strncmp(name_end, ") R", 3) == 0;
}

/* The calling thread is running, too. */
static int count_running_threads(void) {
  int running = 0;
  DIR *tasks = opendir("/proc/self/task");
  if (tasks == NULL) return 1;
  for (const struct dirent *task; (task = readdir(tasks)) != NULL;)
    if (task->d_name[0] != '.') running += is_running(task->d_name);
  closedir(tasks);
  return running;
}

/* A child inherits the state of AddressSanitizer's allocator. A thread that starts or runs may hold one of its locks,
 * which is never released in the child. So the other threads sleep when the process forks. On a busy machine they may
 * wait for a processor for long, and the gate of the busy stream does not wait for ever. */
static pid_t fork_beside_sleepers(void) {
  for (int ms = 0; ms < 1000 * TIMEOUT_S / 10 && count_running_threads() > 1; ms++) test_sleep_ms(1);
  return fork();
}

/* Runs it in a child, which must return 0. */
static void in_child(int (*run)(void *), void *user) {
  int ended = 1;
  const pid_t child = fork_beside_sleepers();
  assert_true(child >= 0);
  if (child == 0) {
    alarm(TIMEOUT_S);
    _exit(run(user) % 256);
  }
  assert_int_equal(waitpid(child, &ended, 0), child);
  if (WIFSIGNALED(ended)) print_error("the child: signal %d\n", WTERMSIG(ended));
  if (WIFEXITED(ended) && WEXITSTATUS(ended) != 0)
    print_error("the child: line %d (modulo 256) failed\n", WEXITSTATUS(ended));
  assert_true(WIFEXITED(ended));
  assert_int_equal(WEXITSTATUS(ended), 0);
}

static bool is_refused(rondo_status status) {
  const rondo_error *error = rondo_last_error();
  const bool is_right = status == RONDO_INVALID_STATE && error->reason == RONDO_REASON_OTHER_PROCESS &&
                        strstr(error->message, "fork") != NULL && strstr(error->message, test_device_name()) != NULL;
  if (!is_right) print_error("the child: %s: %s\n", rondo_status_name(status), error->message);
  return is_right;
}

#define CHECK(condition)               \
  do {                                 \
    if (!(condition)) return __LINE__; \
  } while (0)
#define REFUSED(call) CHECK(is_refused(call))

/* Objects of every kind. */
typedef struct family {
  test_scene *scene;
  rondo_device *device;
  rondo_stream *stream, *busy; /* busy: waits at the gate when the process forks */
  rondo_stream *adopted;       /* the scene's; on CUDA the legacy default stream */
  test_gate gate;
  rondo_event *event, *pending;
  rondo_kernel *kernel;
  rondo_graph *graph, *with_memory;
  rondo_node node;
  rondo_exec *exec, *memory_exec;
  rondo_recording *recording;
  rondo_generator *generator;
  rondo_pool *pool;
  rondo_function *function;
  rondo_buffer *buffer;
  uint32_t *words, *allocated;
  void *host;
} family;

static rondo_graph *make_graph_with_memory(family *f) {
  test_fixture *t = f->scene->fixture;
  assert_ok(rondo_capture_begin(f->stream, RONDO_CAPTURE_THREAD_LOCAL));
  void *scratch = test_allocate_async(f->stream, 1 << 16);
  test_affine(t, f->stream, scratch, 4, 1, 1);
  assert_ok(rondo_free_async(f->stream, scratch));
  return test_capture_end(f->stream);
}

static void open_family(family *f, test_scene *s) {
  test_fixture *t = s->fixture;
  *f = (family){.scene = s,
                .device = t->device,
                .stream = test_stream(t, "of the parent"),
                .busy = test_stream(t, "busy"),
                .event = test_event(t),
                .pending = test_event(t),
                .kernel = test_kernel(t, TEST_KERNEL_SET),
                .graph = test_graph(t),
                .words = test_words(t, SCENE_WORDS)};
  void *const native = test_device_is("cuda") ? NULL /* the legacy default stream */ : rondo_stream_native(t->stream);
  assert_ok(rondo_stream_adopt(f->device, native, NULL, &f->adopted));
  f->node = test_add_affine(t, f->graph, NULL, 0, f->words, 1, 1);
  f->exec = test_instantiate(f->graph);
  f->with_memory = make_graph_with_memory(f);
  f->memory_exec = test_instantiate(f->with_memory);
  assert_ok(rondo_exec_launch(f->memory_exec, f->stream));
  assert_ok(rondo_recording_create(f->device, NULL, &f->recording));
  assert_ok(rondo_recording_capture_begin(f->recording, f->stream, RONDO_CAPTURE_THREAD_LOCAL));
  test_affine(t, f->stream, f->words, 1, 1, 1);
  assert_ok(rondo_recording_capture_end(f->recording, f->stream));
  assert_ok(rondo_generator_create(f->device, NULL, &f->generator));
  assert_ok(rondo_pool_create(f->device, NULL, &f->pool));
  void *address = test_allocate_async(f->stream, 64);
  f->allocated = address;
  assert_ok(rondo_host_malloc(f->device, 64, &f->host));
  f->function = scene_affine(s, "f", 3, 1);
  const rondo_input x = scene_at(scene_words(s, 1));
  for (int i = 0; i < 3; i++) rondo_buffer_release(scene_call(s, f->function, x));
  f->buffer = scene_call(s, f->function, x);
  assert_ok(rondo_event_record(f->event, f->stream));
  assert_ok(rondo_device_synchronize(f->device));
  test_gate_init(&f->gate);
  test_gate_hold(&f->gate, f->busy);
  assert_ok(rondo_event_record(f->pending, f->busy));
  assert_ok(rondo_exec_launch(f->exec, f->busy));
}

/* The parent's work continues as if there had been no child. */
static void close_family(family *f, uint32_t expected) {
  test_fixture *t = f->scene->fixture;
  test_gate_open(&f->gate);
  assert_ok(rondo_event_synchronize(f->pending));
  assert_ok(rondo_stream_synchronize(f->busy));
  test_gate_destroy(&f->gate);
  assert_ok(rondo_exec_launch(f->memory_exec, f->stream));
  assert_ok(rondo_recording_replay(f->recording, f->stream));
  assert_ok(rondo_stream_synchronize(f->stream));
  assert_int_equal(test_word(t, f->words), expected);
  assert_counts(f->scene, f->buffer, 4, 3);
  rondo_buffer_release(f->buffer);
  assert_ok(rondo_host_free(f->device, f->host));
  assert_ok(rondo_free(f->device, f->allocated));
  assert_ok(rondo_pool_destroy(f->pool));
  rondo_generator_destroy(f->generator);
  assert_ok(rondo_recording_destroy(f->recording));
  rondo_exec_destroy(f->memory_exec);
  test_graph_destroy(f->with_memory);
  rondo_exec_destroy(f->exec);
  test_graph_destroy(f->graph);
  rondo_event_destroy(f->event);
  rondo_event_destroy(f->pending);
  test_stream_destroy(f->adopted);
  test_stream_destroy(f->busy);
  test_stream_destroy(f->stream);
  test_words_free(t, f->words);
}

/* In the child ---------------------------------------------------------------------------------------------------- */

static int try_streams(family *f, rondo_stream *stream) {
  const uint32_t one = 1;
  rondo_capture_info info = {.struct_size = sizeof info};
  rondo_stream *made;
  REFUSED(rondo_launch(stream, f->kernel, (rondo_grid){1, 0, 0}, RONDO_ARGS(&one, &f->words)));
  REFUSED(rondo_copy_async(stream, f->words, f->words + 4, 4));
  REFUSED(rondo_fill_async(stream, &(rondo_fill){.dst = f->words, .element_bytes = 4, .width = 1}));
  REFUSED(rondo_host_async(stream, test_host_nothing, NULL));
  REFUSED(rondo_exec_launch(f->exec, stream));
  REFUSED(rondo_exec_launch(f->memory_exec, stream));
  REFUSED(rondo_exec_upload(f->exec, stream));
  REFUSED(rondo_recording_replay(f->recording, stream));
  REFUSED(rondo_stream_synchronize(stream));
  REFUSED(rondo_stream_query(stream));
  REFUSED(rondo_event_record(f->event, stream));
  REFUSED(rondo_stream_wait_event(stream, f->event));
  REFUSED(rondo_capture_begin(stream, RONDO_CAPTURE_RELAXED));
  REFUSED(rondo_capture_get_info(stream, &info));
  REFUSED(rondo_stream_create(f->device, NULL, &made));
  REFUSED(rondo_stream_adopt(f->device, rondo_stream_native(stream), NULL, &made));
  return 0;
}

static int try_objects(family *f) {
  rondo_event *event;
  rondo_exec *exec;
  REFUSED(rondo_event_synchronize(f->event));
  REFUSED(rondo_event_synchronize(f->pending));
  REFUSED(rondo_event_query(f->event));
  REFUSED(rondo_event_create(f->device, NULL, &event));
  REFUSED(rondo_device_synchronize(f->device));
  REFUSED(rondo_instantiate(f->graph, NULL, &exec));
  REFUSED(rondo_exec_set_enabled(f->exec, f->node, false));
  REFUSED(rondo_graph_memory_trim(f->device));
  return 0;
}

static int try_memory(family *f) {
  void *address;
  REFUSED(rondo_malloc(f->device, 64, NULL, &address));
  CHECK(address == NULL);
  REFUSED(rondo_malloc_async(f->stream, 64, NULL, &address));
  REFUSED(rondo_host_malloc(f->device, 64, &address));
  REFUSED(rondo_pool_trim(f->pool, 0));
  return 0;
}

/* Objects created from the parent's objects would be useless, too. */
static int try_making(family *f) {
  const rondo_kernel_options kernel = {.name = "of the child"};
  const rondo_patch_input input = {.name = "in", .address = f->words, .bytes = sizeof *f->words};
  rondo_costs costs = {.struct_size = sizeof costs};
  rondo_graph *graph;
  rondo_generator *generator;
  rondo_recording *recording;
  rondo_session *session;
  rondo_tree *tree;
  rondo_function *function;
  rondo_callables *callables;
  rondo_patch_set *set;
  rondo_kernel *made;
  rondo_pool *pool;
  REFUSED(rondo_graph_create(f->device, NULL, &graph));
  CHECK(graph == NULL);
  REFUSED(rondo_graph_clone(f->graph, &graph));
  REFUSED(rondo_generator_create(f->device, NULL, &generator));
  REFUSED(rondo_recording_create(f->device, NULL, &recording));
  REFUSED(rondo_session_create(f->device, NULL, &session));
  REFUSED(rondo_tree_create(f->device, NULL, &tree));
  REFUSED(rondo_function_create(f->scene->tree, &(rondo_function_options){.name = "g", .body = test_body_nothing},
                                &function));
  REFUSED(rondo_callables_create(f->device, f->stream, NULL, &callables));
  REFUSED(rondo_patch_set_create(f->exec, &input, 1, NULL, &set));
  REFUSED(rondo_kernel_create(f->device, &kernel, &made));
  REFUSED(rondo_pool_create(f->device, NULL, &pool));
  REFUSED(rondo_device_get_costs(f->device, &costs));
  return 0;
}

/* Nor may the parent's objects change. */
static int try_changing(family *f) {
  rondo_node_params params = {0};
  rondo_node node;
  void *address;
  REFUSED(rondo_graph_add_alloc(f->with_memory, NULL, 0, 64, NULL, &address, &node));
  CHECK(address == NULL);
  CHECK(rondo_graph_get_params(f->graph, f->node, &params) == RONDO_OK);
  REFUSED(rondo_exec_set_params(f->exec, f->node, &params));
  REFUSED(rondo_exec_update(f->exec, f->graph, NULL));
  return 0;
}

static int try_tree(family *f) {
  rondo_buffer *out = NULL;
  const rondo_input x = scene_of(f->buffer);
  REFUSED(rondo_function_call(f->function, f->stream, &x, 1, &out, 1));
  CHECK(out == NULL);
  return 0;
}

/* Twice, since nothing is gone. */
static int destroy_all(family *f) {
  for (int i = 0; i < 2; i++) {
    CHECK(rondo_tree_destroy(f->scene->tree) == RONDO_OK);
    CHECK(rondo_function_destroy(f->function) == RONDO_OK);
    CHECK(rondo_free(f->device, f->allocated) == RONDO_OK);
    CHECK(rondo_free_async(f->stream, f->allocated) == RONDO_OK);
    CHECK(rondo_host_free(f->device, f->host) == RONDO_OK);
    CHECK(rondo_pool_destroy(f->pool) == RONDO_OK);
    rondo_generator_destroy(f->generator);
    rondo_recording_reset(f->recording);
    CHECK(rondo_recording_destroy(f->recording) == RONDO_OK);
    rondo_exec_destroy(f->exec);
    rondo_exec_destroy(f->memory_exec);
    CHECK(rondo_graph_destroy(f->graph) == RONDO_OK);
    CHECK(rondo_graph_destroy(f->with_memory) == RONDO_OK);
    rondo_kernel_destroy(f->kernel);
    rondo_event_destroy(f->event);
    rondo_event_destroy(f->pending);
    CHECK(rondo_stream_destroy(f->busy) == RONDO_OK);
    CHECK(rondo_stream_destroy(f->stream) == RONDO_OK);
    CHECK(rondo_device_close(f->device) == RONDO_OK);
  }
  return 0;
}

/* A device of the child's own does all that a device does. */
static int work_alone(void) {
  rondo_device *device;
  rondo_stream *stream;
  rondo_graph *graph;
  rondo_exec *exec;
  void *memory;
  uint32_t out = 0;
  CHECK(rondo_device_open("cpu", NULL, &device) == RONDO_OK);
  CHECK(rondo_stream_create(device, NULL, &stream) == RONDO_OK);
  CHECK(rondo_malloc(device, 64, NULL, &memory) == RONDO_OK);
  const rondo_fill fill = {.dst = memory, .value = 5, .element_bytes = 4, .width = 1};
  CHECK(rondo_capture_begin(stream, RONDO_CAPTURE_GLOBAL) == RONDO_OK);
  CHECK(rondo_fill_async(stream, &fill) == RONDO_OK);
  CHECK(rondo_capture_end(stream, &graph) == RONDO_OK);
  CHECK(rondo_instantiate(graph, NULL, &exec) == RONDO_OK);
  CHECK(rondo_exec_launch(exec, stream) == RONDO_OK);
  CHECK(rondo_copy_async(stream, &out, memory, 4) == RONDO_OK);
  CHECK(rondo_stream_synchronize(stream) == RONDO_OK);
  CHECK(out == 5);
  rondo_exec_destroy(exec);
  CHECK(rondo_graph_destroy(graph) == RONDO_OK);
  CHECK(rondo_free(device, memory) == RONDO_OK);
  CHECK(rondo_stream_destroy(stream) == RONDO_OK);
  CHECK(rondo_device_close(device) == RONDO_OK);
  return 0;
}

static int live_with_family(void *user) {
  family *f = user;
  int line = try_streams(f, f->stream);
  if (line == 0) line = try_streams(f, f->busy);
  if (line == 0) line = try_streams(f, f->adopted);
  if (line == 0) line = try_objects(f);
  if (line == 0) line = try_memory(f);
  if (line == 0) line = try_making(f);
  if (line == 0) line = try_changing(f);
  if (line == 0) line = try_tree(f);
  if (line == 0) line = work_alone();
  if (line == 0) line = destroy_all(f);
  return line == 0 ? work_alone() : line;
}

static int destroy_family(void *user) { return destroy_all(user); }

/* Tests ----------------------------------------------------------------------------------------------------------- */

SCENE_TEST_WORKERS(test_a_child_is_refused_what_is_its_parents) {
  family f;
  test_skip_if_serial();
  open_family(&f, s);
  in_child(live_with_family, &f);
  close_family(&f, 2);
}

SCENE_TEST_WORKERS(test_destroying_does_nothing_in_a_child) {
  family f;
  test_skip_if_serial();
  open_family(&f, s);
  in_child(destroy_family, &f);
  close_family(&f, 2);
}

/* Objects created in the child are refused in the child's child. */
static int have_a_child(void *user) {
  const rondo_device_options options = {RONDO_DEVICE_OPTIONS_INIT, .workers = 1};
  rondo_device *device;
  rondo_stream *stream;
  int ended = 1;
  CHECK(rondo_device_open("cpu", &options, &device) == RONDO_OK);
  CHECK(rondo_stream_create(device, NULL, &stream) == RONDO_OK);
  const pid_t child = fork_beside_sleepers();
  if (child == 0) {
    alarm(TIMEOUT_S);
    const bool is_right = rondo_stream_synchronize(stream) == RONDO_INVALID_STATE &&
                          rondo_stream_synchronize(user) == RONDO_INVALID_STATE &&
                          rondo_stream_destroy(stream) == RONDO_OK && work_alone() == 0;
    _exit(is_right ? 0 : 1);
  }
  CHECK(waitpid(child, &ended, 0) == child && WIFEXITED(ended) && WEXITSTATUS(ended) == 0);
  CHECK(rondo_stream_synchronize(stream) == RONDO_OK);
  CHECK(rondo_stream_destroy(stream) == RONDO_OK);
  CHECK(rondo_device_close(device) == RONDO_OK);
  return 0;
}

SCENE_TEST(test_children_of_children) {
  in_child(have_a_child, s->stream);
  assert_ok(rondo_stream_synchronize(s->stream));
}

/* A capture of the parent's is refused like the rest, and forbids nothing to what is the child's own. */
static int meet_a_capture(void *user) {
  rondo_stream *stream = user;
  rondo_graph *graph;
  REFUSED(rondo_fill_async(stream, &(rondo_fill){.dst = &graph, .element_bytes = 4, .width = 1}));
  REFUSED(rondo_capture_end(stream, &graph));
  CHECK(rondo_stream_destroy(stream) == RONDO_OK);
  return work_alone();
}

SCENE_TEST(test_a_child_of_a_thread_that_captures) {
  assert_ok(rondo_capture_begin(s->stream, RONDO_CAPTURE_GLOBAL));
  in_child(meet_a_capture, s->stream);
  test_graph_destroy(test_capture_end(s->stream));
}

/* The parent's addresses are free in the child, so its devices must not take their own memory for the parent's. */
static int meet_an_address(void *address) {
  rondo_device *device;
  CHECK(rondo_device_open("cpu", NULL, &device) == RONDO_OK);
  CHECK(rondo_free(device, address) == RONDO_INVALID_LIFETIME);
  CHECK(rondo_last_error()->reason == RONDO_REASON_FOREIGN_ADDRESS);
  CHECK(strstr(rondo_last_error()->message, "belongs to") == NULL);
  CHECK(rondo_device_close(device) == RONDO_OK);
  return work_alone();
}

SCENE_TEST(test_the_memory_of_the_parent_is_not_in_a_child) {
  void *memory = test_allocate(s->fixture, 64, NULL);
  in_child(meet_an_address, memory);
  assert_ok(rondo_free(s->fixture->device, memory));
}

typedef struct service {
  rondo_session *session;
  rondo_ticket ticket;
  test_request request, first;
} service;

static int meet_a_session(void *user) {
  service *s = user;
  rondo_answer answer = {.struct_size = sizeof answer};
  rondo_ticket ticket;
  test_request_fill(&s->request, 2, 2);
  REFUSED(rondo_session_run(s->session, "scorer", &s->request.request, &answer));
  REFUSED(rondo_session_submit(s->session, "scorer", &s->request.request, &ticket));
  REFUSED(rondo_ticket_wait(s->ticket, &answer));
  REFUSED(rondo_session_drain(s->session));
  REFUSED(rondo_session_capture(s->session, "scorer"));
  rondo_ticket_cancel(s->ticket);
  CHECK(rondo_session_destroy(s->session) == RONDO_OK);
  return 0;
}

SCENE_TEST(test_sessions_have_threads_that_a_child_lacks) {
  service *served = calloc(1, sizeof *served);
  rondo_answer answer = {.struct_size = sizeof answer};
  served->session = test_session_open(s->fixture->device, (rondo_session_options){RONDO_SESSION_OPTIONS_INIT});
  test_scorer_add(served->session, "scorer", (rondo_model_options){RONDO_MODEL_OPTIONS_INIT});
  test_request_fill(&served->first, 3, 1);
  assert_ok(rondo_session_submit(served->session, "scorer", &served->first.request, &served->ticket));
  in_child(meet_a_session, served);
  assert_ok(rondo_ticket_wait(served->ticket, &answer));
  assert_true(test_request_is_right(&served->first));
  assert_ok(rondo_session_destroy(served->session));
  free(served);
}

enum { EDGE = 4, CELLS = EDGE * EDGE };

/* Compiled for the same program: one is recorded, one runs by the executor. */
typedef struct programs {
  rondo_executor *executor;
  rondo_compiled *recorded, *executed;
  rondo_communicator *communicator; /* NULL where there are no collectives */
  uint32_t *words;
  rondo_stream *stream;
} programs;

static int meet_programs(void *user) {
  programs *p = user;
  float numbers[CELLS] = {0};
  REFUSED(rondo_compiled_run(p->recorded));
  REFUSED(rondo_compiled_run_eager(p->recorded));
  REFUSED(rondo_compiled_run(p->executed));
  REFUSED(rondo_compiled_synchronize(p->executed));
  REFUSED(rondo_compiled_write(p->executed, "x", numbers, sizeof numbers));
  CHECK(strncmp(rondo_last_error()->message, "rondo_compiled_write: ", 22) == 0);
  REFUSED(rondo_compiled_read(p->recorded, "y", numbers, sizeof numbers));
  if (p->communicator != NULL) {
    REFUSED(rondo_all_reduce(p->communicator, p->stream, p->words, p->words, SCENE_WORDS, RONDO_I32, RONDO_REDUCE_SUM));
    REFUSED(rondo_barrier(p->communicator, p->stream));
    REFUSED(rondo_communicator_split(p->communicator, 0, 0, &(rondo_communicator *){NULL}));
    REFUSED(rondo_communicator_abort(p->communicator));
    CHECK(rondo_communicator_destroy(p->communicator) == RONDO_OK);
  }
  CHECK(rondo_compiled_destroy(p->recorded) == RONDO_OK);
  CHECK(rondo_compiled_destroy(p->executed) == RONDO_OK);
  CHECK(rondo_executor_destroy(p->executor) == RONDO_OK);
  return 0;
}

static void open_programs(programs *p, const test_scene *s) {
  rondo_device *device = s->fixture->device;
  rondo_value x, y;
  const size_t shape[2] = {EDGE, EDGE};
  *p = (programs){.stream = s->stream, .words = test_words(s->fixture, SCENE_WORDS)};
  rondo_program *program = test_new_program();
  assert_ok(rondo_program_input(program, "x", RONDO_F32, shape, 2, &x));
  assert_ok(rondo_op_tanh(program, x, &x));
  assert_ok(rondo_op_exp(program, x, &y));
  assert_ok(rondo_op_add(program, x, y, &y));
  assert_ok(rondo_program_output(program, "y", y));
  assert_ok(rondo_executor_create(device, &(rondo_executor_options){RONDO_EXECUTOR_OPTIONS_INIT, .threads = 2},
                                  &p->executor));
  const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .record = RONDO_RECORD_NEVER,
                                         .executor = p->executor, .executor_policy = RONDO_EXECUTOR_ALWAYS};
  assert_ok(rondo_compile(program, device, NULL, &p->recorded));
  assert_ok(rondo_compile(program, device, &options, &p->executed));
  assert_ok(rondo_compiled_run(p->executed));
  rondo_program_destroy(program);
  const rondo_status ranked = rondo_communicator_create_all(&device, 1, NULL, &p->communicator);
  assert_true(ranked == RONDO_OK || ranked == RONDO_UNSUPPORTED || ranked == RONDO_UNAVAILABLE);
}

SCENE_TEST(test_programs_and_communicators) {
  programs p;
  open_programs(&p, s);
  in_child(meet_programs, &p);
  assert_ok(rondo_compiled_run(p.recorded));
  assert_ok(rondo_compiled_run(p.executed));
  assert_ok(rondo_compiled_synchronize(p.recorded));
  assert_ok(rondo_compiled_synchronize(p.executed));
  if (p.communicator != NULL) assert_ok(rondo_communicator_destroy(p.communicator));
  assert_ok(rondo_compiled_destroy(p.recorded));
  assert_ok(rondo_compiled_destroy(p.executed));
  assert_ok(rondo_executor_destroy(p.executor));
  test_words_free(s->fixture, p.words);
}

#endif
