/* SPDX-License-Identifier: MIT
 * GX-4, GX-10: after a warm-up, none of these allocates or takes a lock, on any thread of the process: enqueuing a
 * kernel, launching an exec, replaying a recording, calling a function of a tree, drawing random numbers, and waiting
 * for them. This program replaces the C library's functions for both with functions that count while a test requests
 * it, and then call the originals.
 *
 * A sanitizer replaces the same functions, so the test is skipped under one.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "support/rondo_test.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HAVE_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define HAVE_SANITIZER 1
#endif
#endif

#ifndef HAVE_SANITIZER

static atomic_bool counting;
static atomic_uint allocations, locks;

static void count_allocation(void) {
  if (atomic_load_explicit(&counting, memory_order_relaxed)) atomic_fetch_add(&allocations, 1);
}

static void count_lock(void) {
  if (atomic_load_explicit(&counting, memory_order_relaxed)) atomic_fetch_add(&locks, 1);
}

/* Allocation: the C library exports its own under these names. */
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *pointer, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void *pointer);

void *malloc(size_t bytes) {
  count_allocation();
  return __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes) {
  count_allocation();
  return __libc_calloc(count, bytes);
}

void *realloc(void *pointer, size_t bytes) {
  count_allocation();
  return __libc_realloc(pointer, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes) {
  count_allocation();
  return __libc_memalign(alignment, bytes);
}

int posix_memalign(void **out, size_t alignment, size_t bytes) {
  count_allocation();
  *out = __libc_memalign(alignment, bytes);
  return *out == NULL ? ENOMEM : 0;
}

void free(void *pointer) {
  if (pointer != NULL) count_allocation();
  __libc_free(pointer);
}

/* Locks: the original is the next definition in the order of the linker. The table is filled before main, when nothing
 * counts yet. */
typedef int (*lock_fn)(void *lock);
enum { MUTEX_LOCK, MUTEX_TRYLOCK, READ_LOCK, WRITE_LOCK, SPIN_LOCK, SEMAPHORE_WAIT, LOCK_KINDS };
static lock_fn originals[LOCK_KINDS];

__attribute__((constructor)) static void find_originals(void) {
  static const char *const names[LOCK_KINDS] = {"pthread_mutex_lock",    "pthread_mutex_trylock",
                                                "pthread_rwlock_rdlock", "pthread_rwlock_wrlock",
                                                "pthread_spin_lock",     "sem_wait"};
  for (int i = 0; i < LOCK_KINDS; i++) *(void **)&originals[i] = dlsym(RTLD_NEXT, names[i]);
}

static int take_lock(int kind, void *lock) {
  count_lock();
  if (originals[kind] == NULL) find_originals();
  return originals[kind](lock);
}

int pthread_mutex_lock(pthread_mutex_t *lock) { return take_lock(MUTEX_LOCK, lock); }
int pthread_mutex_trylock(pthread_mutex_t *lock) { return take_lock(MUTEX_TRYLOCK, lock); }
int pthread_rwlock_rdlock(pthread_rwlock_t *lock) { return take_lock(READ_LOCK, lock); }
int pthread_rwlock_wrlock(pthread_rwlock_t *lock) { return take_lock(WRITE_LOCK, lock); }
int pthread_spin_lock(pthread_spinlock_t *lock) { return take_lock(SPIN_LOCK, (void *)(uintptr_t)lock); }
int sem_wait(sem_t *lock) { return take_lock(SEMAPHORE_WAIT, lock); }

/* The tests ------------------------------------------------------------------------------------------------------- */

enum { NODES = 40, ROUNDS = 2000 };

typedef struct setup {
  rondo_device *device;
  rondo_stream *streams[2];
  rondo_kernel *kernel;
  rondo_exec *line, *wide, *memory, *moved, *drawing;
  rondo_recording *recording;
  rondo_tree *tree;
  rondo_function *functions[2];
  rondo_generator *generator;
  uint32_t *words, *places[2];
  rondo_patch_set *set; /* of `moved`: its words may be at either address */
  void *host;
} setup;

static rondo_exec *make_exec(const setup *s, bool wide, bool memory) {
  rondo_graph *graph = NULL;
  rondo_node node = {0};
  const uint32_t one = 1;
  void *scratch = s->words;
  assert_ok(rondo_graph_create(s->device, NULL, &graph));
  if (memory) assert_ok(rondo_graph_add_alloc(graph, NULL, 0, 4096, NULL, &scratch, &node));
  const rondo_node first = node;
  for (uint32_t i = 0; i < NODES; i++) {
    uint32_t *word = (uint32_t *)scratch + i;
    const rondo_node *before = wide ? &first : &node;
    assert_ok(rondo_graph_add_kernel(graph, before, before->id != 0, s->kernel, (rondo_grid){1, 0, 0},
                                     RONDO_ARGS(&one, &one, &word), &node));
  }
  if (memory) assert_ok(rondo_graph_add_free(graph, &node, 1, scratch, &node));
  return test_exec_of(graph);
}

/* With its own memory, scratch and kept, and host memory that it reads. */
static rondo_recording *make_recording(const setup *s, const void *host) {
  rondo_recording *recording = NULL;
  assert_ok(rondo_recording_create(s->device, NULL, &recording));
  assert_ok(rondo_recording_capture_begin(recording, s->streams[0], RONDO_CAPTURE_GLOBAL));
  void *scratch = test_allocate_async(s->streams[0], 4096);
  void *kept = test_allocate_async(s->streams[0], 4096);
  assert_ok(rondo_copy_async(s->streams[0], scratch, host, 64));
  assert_ok(rondo_copy_async(s->streams[0], kept, scratch, 64));
  assert_ok(rondo_free_async(s->streams[0], scratch));
  assert_ok(rondo_recording_capture_end(recording, s->streams[0]));
  return recording;
}

/* A copy of the input, with a kernel after it. */
static rondo_status copy_and_add(rondo_call *call, void *user) {
  rondo_kernel *kernel = user;
  rondo_stream *stream = rondo_call_stream(call);
  const uint32_t one = 1;
  void *out;
  rondo_status status = rondo_call_output(call, 0, NODES * sizeof(uint32_t), NULL, &out);
  if (status == RONDO_OK) status = rondo_copy_async(stream, out, rondo_call_input(call, 0), NODES * sizeof(uint32_t));
  if (status == RONDO_OK)
    status = rondo_launch(stream, kernel, (rondo_grid){NODES, 0, 0}, RONDO_ARGS(&one, &one, &out));
  return status;
}

/* One function patches its input, the other one copies it. */
static void make_tree(setup *s) {
  static const uint32_t moving = RONDO_INPUT_MOVING;
  assert_ok(rondo_tree_create(s->device, NULL, &s->tree));
  for (int i = 0; i < 2; i++) {
    const rondo_function_options options = {RONDO_FUNCTION_OPTIONS_INIT,
                                            .name = "copy and add",
                                            .body = copy_and_add,
                                            .user = s->kernel,
                                            .inputs = &moving,
                                            .input_count = 1,
                                            .binding = i == 0 ? RONDO_BINDING_PATCH : RONDO_BINDING_COPY};
    assert_ok(rondo_function_create(s->tree, &options, &s->functions[i]));
  }
}

static void make_patch_set(setup *s) {
  void *other = NULL;
  assert_ok(rondo_malloc(s->device, NODES * sizeof(uint32_t), NULL, &other));
  s->places[0] = s->words;
  s->places[1] = other;
  const rondo_patch_input input = {.address = s->words, .bytes = NODES * sizeof(uint32_t)};
  assert_ok(rondo_patch_set_create(s->moved, &input, 1, NULL, &s->set));
}

static rondo_exec *make_drawing(const setup *s) {
  assert_ok(rondo_capture_begin(s->streams[0], RONDO_CAPTURE_THREAD_LOCAL));
  for (int i = 0; i < 3; i++)
    assert_ok(rondo_random_uniform(s->generator, s->streams[0], (float *)(void *)s->words, NODES, 0, 1));
  rondo_graph *graph = test_capture_end(s->streams[0]);
  return test_exec_of(graph);
}

static setup make_setup(void) {
  setup s = {.device = NULL};
  void *words = NULL;
  assert_ok(rondo_device_open("cpu", &(rondo_device_options){RONDO_DEVICE_OPTIONS_INIT, .workers = 3}, &s.device));
  for (int i = 0; i < 2; i++) assert_ok(rondo_stream_create(s.device, NULL, &s.streams[i]));
  assert_ok(rondo_kernel_create(s.device, test_kernel_options(TEST_KERNEL_AFFINE), &s.kernel));
  assert_ok(rondo_malloc(s.device, NODES * sizeof(uint32_t), NULL, &words));
  assert_ok(rondo_host_malloc(s.device, 64, &s.host));
  s.words = words;
  const rondo_fill zeros = {.dst = words, .element_bytes = 4, .width = NODES};
  assert_ok(rondo_fill_async(s.streams[0], &zeros));
  s.line = make_exec(&s, false, false);
  s.wide = make_exec(&s, true, false);
  s.memory = make_exec(&s, false, true);
  s.recording = make_recording(&s, s.host);
  s.moved = make_exec(&s, false, false);
  make_patch_set(&s);
  assert_ok(rondo_generator_create(s.device, NULL, &s.generator));
  s.drawing = make_drawing(&s);
  make_tree(&s);
  return s;
}

static void tear_down(setup *s) {
  rondo_exec_destroy(s->line);
  rondo_exec_destroy(s->wide);
  rondo_exec_destroy(s->memory);
  rondo_exec_destroy(s->drawing);
  assert_ok(rondo_tree_destroy(s->tree));
  rondo_generator_destroy(s->generator);
  assert_ok(rondo_recording_destroy(s->recording));
  assert_ok(rondo_host_free(s->device, s->host));
  rondo_patch_set_destroy(s->set);
  rondo_exec_destroy(s->moved);
  assert_ok(rondo_free(s->device, s->places[1]));
  for (int i = 0; i < 2; i++) test_stream_destroy(s->streams[i]);
  rondo_kernel_destroy(s->kernel);
  assert_ok(rondo_free(s->device, s->words));
  assert_ok(rondo_device_close(s->device));
}

/* One round of the work that must be free of both. Returns the first failure. */
typedef rondo_status (*round_fn)(const setup *s, uint32_t round);

static rondo_status launch_execs(const setup *s, uint32_t round) {
  rondo_exec *const execs[2] = {s->line, s->wide};
  rondo_status status = rondo_exec_launch(execs[round % 2], s->streams[0]);
  if (status == RONDO_OK && round % 3 == 0) status = rondo_stream_synchronize(s->streams[0]);
  return status;
}

static rondo_status launch_memory_graph(const setup *s, uint32_t round) {
  rondo_status status = rondo_exec_launch(s->memory, s->streams[0]);
  if (status == RONDO_OK && round % 5 == 0) status = rondo_stream_synchronize(s->streams[0]);
  return status;
}

static rondo_status launch_patched(const setup *s, uint32_t round) {
  const void *const addresses[] = {s->places[round / 2 % 2]};
  rondo_status status = rondo_patch_set_launch(s->set, s->streams[round % 11 / 10], addresses);
  if (status == RONDO_OK && round % 5 == 0) status = rondo_stream_synchronize(s->streams[0]);
  return status;
}

/* TR-2: a path of three calls, whose input moves and whose outputs are held until the next step. */
static rondo_status call_path(const setup *s, uint32_t round) {
  rondo_buffer *made[3] = {NULL};
  rondo_status status = rondo_tree_mark_step(s->tree);
  for (uint32_t i = 0; i < 3 && status == RONDO_OK; i++) {
    rondo_input input = {.address = s->places[round % 2], .bytes = NODES * sizeof(uint32_t)};
    if (i > 0) input = (rondo_input){.buffer = made[i - 1]};
    status = rondo_function_call(s->functions[i % 2], s->streams[round % 11 / 10], &input, 1, &made[i], 1);
  }
  for (int i = 0; i < 3; i++) rondo_buffer_release(made[i]);
  if (status == RONDO_OK && round % 5 == 0) status = rondo_stream_synchronize(s->streams[round % 11 / 10]);
  return status;
}

/* TR-1: calls that are separate steps; one copies its input. */
static rondo_status call_alone(const setup *s, uint32_t round) {
  rondo_buffer *made = NULL;
  const rondo_input input = {.address = s->places[round / 2 % 2], .bytes = NODES * sizeof(uint32_t)};
  const rondo_status status = rondo_function_call(s->functions[round % 2], s->streams[0], &input, 1, &made, 1);
  rondo_buffer_release(made);
  return status == RONDO_OK && round % 3 == 0 ? rondo_stream_synchronize(s->streams[0]) : status;
}

static rondo_status launch_on_two_streams(const setup *s, uint32_t round) {
  rondo_status status = rondo_exec_launch(s->line, s->streams[round % 2]);
  if (status == RONDO_OK && round % 3 == 0) status = rondo_stream_synchronize(s->streams[round % 2]);
  return status;
}

static rondo_status replay_recording(const setup *s, uint32_t round) {
  rondo_status status = rondo_recording_replay(s->recording, s->streams[round % 2]);
  if (status == RONDO_OK && round % 5 == 0) status = rondo_stream_synchronize(s->streams[round % 2]);
  return status;
}

/* TR-13: with a launch, on alternating streams, and eagerly. */
static rondo_status draw(const setup *s, uint32_t round) {
  rondo_stream *stream = s->streams[round % 2];
  rondo_status status = rondo_exec_launch(s->drawing, stream);
  if (status == RONDO_OK) status = rondo_random_uniform(s->generator, stream, (float *)(void *)s->words, NODES, 0, 1);
  if (status == RONDO_OK && round % 3 == 0) status = rondo_stream_synchronize(stream);
  return status;
}

static rondo_status enqueue_kernels(const setup *s, uint32_t round) {
  const uint32_t one = 1;
  rondo_status status =
      rondo_launch(s->streams[0], s->kernel, (rondo_grid){NODES, 0, 0}, RONDO_ARGS(&one, &one, &s->words));
  if (status == RONDO_OK && round % 7 == 0) status = rondo_stream_synchronize(s->streams[0]);
  return status;
}

/* Every tenth launch follows a pause, after which the workers sleep and must be woken. */
static rondo_status launch_cold(const setup *s, uint32_t round) {
  if (round % 200 == 0) test_sleep_ms(5);
  rondo_status status = rondo_exec_launch(s->wide, s->streams[0]);
  if (status == RONDO_OK) status = rondo_stream_synchronize(s->streams[0]);
  return status;
}

static void expect_nothing_counted(round_fn round) {
  setup s = make_setup();
  rondo_status status = RONDO_OK;
  for (uint32_t i = 0; i < ROUNDS && status == RONDO_OK; i++) status = round(&s, i);
  if (status == RONDO_OK) status = rondo_device_synchronize(s.device);
  assert_ok(status);
  atomic_store(&allocations, 0);
  atomic_store(&locks, 0);
  atomic_store(&counting, true);
  for (uint32_t i = 0; i < ROUNDS && status == RONDO_OK; i++) status = round(&s, i);
  for (int i = 0; i < 2 && status == RONDO_OK; i++) status = rondo_stream_synchronize(s.streams[i]);
  atomic_store(&counting, false);
  assert_ok(status);
  assert_int_equal(atomic_load(&allocations), 0);
  assert_int_equal(atomic_load(&locks), 0);
  tear_down(&s);
}

UNIT_TEST(test_gx4_launching_execs) { expect_nothing_counted(launch_execs); }

UNIT_TEST(test_gx4_launching_a_graph_with_memory) { expect_nothing_counted(launch_memory_graph); }

UNIT_TEST(test_gx4_launching_with_inputs_elsewhere) { expect_nothing_counted(launch_patched); }

UNIT_TEST(test_gx4_launching_on_two_streams) { expect_nothing_counted(launch_on_two_streams); }

UNIT_TEST(test_rc1_replaying_a_recording) { expect_nothing_counted(replay_recording); }

UNIT_TEST(test_tr1_replayed_calls) { expect_nothing_counted(call_alone); }

UNIT_TEST(test_tr2_replayed_paths) { expect_nothing_counted(call_path); }

UNIT_TEST(test_tr13_drawing) { expect_nothing_counted(draw); }

UNIT_TEST(test_enqueuing_kernels) { expect_nothing_counted(enqueue_kernels); }

UNIT_TEST(test_gx4_launching_cold) { expect_nothing_counted(launch_cold); }

/* The counters work: they count a lock and an allocation of the library. */
UNIT_TEST(test_the_counters_count) {
  setup s = make_setup();
  void *memory = NULL;
  atomic_store(&allocations, 0);
  atomic_store(&locks, 0);
  atomic_store(&counting, true);
  const rondo_status status = rondo_malloc(s.device, 1000, "a name of its own", &memory);
  atomic_store(&counting, false);
  assert_ok(status);
  assert_true(atomic_load(&allocations) > 0);
  assert_true(atomic_load(&locks) > 0);
  assert_ok(rondo_free(s.device, memory));
  tear_down(&s);
}

#else

int main(void) { return 77; }

#endif
