/* SPDX-License-Identifier: MIT
 * Shared by the tests of arenas: recordings on the fixture's stream, and work in them.
 */
#ifndef RONDO_TESTS_UNIT_MEMORY_ARENA_TEST_H
#define RONDO_TESTS_UNIT_MEMORY_ARENA_TEST_H

#include "exec/capture/arena_capture.h"
#include "memory/arena/arena_recording.h"
#include "memory/memory_check.h"
#include "support/rondo_test.h"

/* An arena 'tree'; reserve as rondo_arena_options. */
static inline rondo_arena *test_arena(test_fixture *fixture, size_t reserve) {
  rondo_device_memory *memory = NULL;
  rondo_arena *arena = NULL;
  assert_ok(rondo_device_memory_of(fixture->device, &memory));
  assert_ok(rondo_arena_create(memory, &(rondo_arena_options){.reserve = reserve, .name = "tree"}, &arena));
  return arena;
}

static inline void test_arena_destroy(void *arena) { rondo_arena_destroy(arena); }

/* The same, destroyed by the fixture's teardown. */
static inline rondo_arena *test_leave_arena(test_fixture *fixture, size_t reserve) {
  return test_leave(test_arena_destroy, test_arena(fixture, reserve));
}

static inline rondo_arena_info test_arena_info(const rondo_arena *arena) {
  rondo_arena_info info;
  rondo_arena_check(arena);
  rondo_arena_get_info(arena, &info);
  return info;
}

static inline void test_arena_begin(test_fixture *fixture, rondo_arena_setting *setting) {
  assert_ok(rondo_capture_begin_in_arena(fixture->stream, RONDO_CAPTURE_THREAD_LOCAL, setting));
}

static inline void *test_arena_malloc(test_fixture *fixture, size_t bytes, const char *name) {
  void *address = NULL;
  const rondo_malloc_options options = {RONDO_MALLOC_OPTIONS_INIT, .name = name};
  assert_ok(rondo_malloc_async(fixture->stream, bytes, &options, &address));
  return address;
}

/* out[i] = value. */
static inline void test_arena_set(test_fixture *fixture, void *out, size_t words, uint32_t value) {
  const rondo_grid grid = {.x = (uint32_t)words};
  assert_ok(rondo_launch(fixture->stream, test_kernel(fixture, TEST_KERNEL_SET), grid, RONDO_ARGS(&value, &out)));
}

/* out[i] = a[i] * 31 + b[i]. */
static inline void test_arena_combine(test_fixture *fixture, const void *a, const void *b, void *out, size_t words) {
  const rondo_grid grid = {.x = (uint32_t)words};
  assert_ok(rondo_launch(fixture->stream, test_kernel(fixture, TEST_KERNEL_COMBINE), grid, RONDO_ARGS(&a, &b, &out)));
}

/* A graph, its arena recording, and an exec of it whose arena is backed. */
typedef struct recorded_graph {
  rondo_graph *graph;
  rondo_exec *exec;
  rondo_arena_recording read;
} recorded_graph;

static inline recorded_graph test_arena_end(test_fixture *fixture, rondo_arena *arena) {
  recorded_graph recording = {.graph = test_capture_end(fixture->stream)};
  assert_ok(rondo_arena_recording_read(recording.graph, &recording.read));
  assert_ptr_equal(recording.read.arena, arena);
  assert_ok(rondo_arena_back(arena, recording.read.need));
  recording.exec = test_instantiate(recording.graph);
  rondo_arena_check(arena);
  return recording;
}

static inline void test_recording_free(recorded_graph *recording) {
  rondo_exec_destroy(recording->exec);
  rondo_arena_recording_free(&recording->read);
  test_graph_destroy(recording->graph);
}

/* Asserts that all words have the value. */
static inline void test_arena_assert(test_fixture *fixture, const void *words, size_t count, uint32_t value) {
  uint32_t *read = test_malloc(count * sizeof *read);
  test_read(fixture, read, words, count * sizeof *read);
  for (size_t i = 0; i < count; i++) assert_int_equal(read[i], value);
  test_free(read);
}

#endif
