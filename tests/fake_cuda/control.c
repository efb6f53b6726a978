/* SPDX-License-Identifier: MIT
 * The table of fake_cuda.h through which tests control the fake driver, and the check at the end of a process that set
 * RONDO_TEST_FAKE_CUDA_STRICT.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "fake_cuda/fake.h"

static void lock(void) { pthread_mutex_lock(&fake_lock); }
static void unlock(void) { pthread_mutex_unlock(&fake_lock); }

static void destroy_graphs(void) {
  void *object;
  while ((object = fake_any(FAKE_CUDA_EXEC)) != NULL) fake_exec_free(object);
  while ((object = fake_any(FAKE_CUDA_GRAPH)) != NULL) {
    fake_graph *graph = object;
    while (graph->owner != NULL) graph = graph->owner->graph;
    fake_graph_free(graph);
  }
}

static void reset(void) {
  void *object;
  lock();
  fake_streams_settle();
  fake_captures_reset();
  destroy_graphs();
  while ((object = fake_any(FAKE_CUDA_STREAM)) != NULL) fake_stream_end(object);
  while ((object = fake_any(FAKE_CUDA_EVENT)) != NULL) fake_event_end(object);
  while ((object = fake_any(FAKE_CUDA_MODULE)) != NULL) fake_module_free(object);
  fake_allocations_reset();
  fake_memory_reset();
  fake_contexts_reset();
  fake_streams_leave();
  fake_calls_forget();
  fake_self = (fake_thread){0};
  unlock();
}

static void forget(void) {
  lock();
  fake_calls_forget();
  unlock();
}

static void settle(void) {
  lock();
  fake_streams_settle();
  unlock();
}

static size_t live(fake_cuda_kind kind) {
  lock();
  const size_t count = fake_live(kind);
  unlock();
  return count;
}

static void list(char *text, size_t bytes) {
  lock();
  fake_list(text, bytes);
  unlock();
}

static uint64_t calls(const char *name) {
  lock();
  const uint64_t count = fake_calls_of(name);
  unlock();
  return count;
}

static void fail(const char *name, uint64_t nth, unsigned code, bool onward) {
  lock();
  fake_calls_fail(name, nth, code, onward);
  unlock();
}

static const char *failed(void) {
  lock();
  const char *name = fake_calls_failed();
  unlock();
  return name;
}

static void hide(const char *symbol) {
  lock();
  fake_calls_hide(symbol);
  unlock();
}

static size_t violations(void) {
  lock();
  const size_t count = fake_violation_count();
  unlock();
  return count;
}

static void list_violations(char *text, size_t bytes) {
  lock();
  fake_violation_list(text, bytes);
  unlock();
}

static fake_cuda_attributes ran(const char *kernel) {
  lock();
  const fake_cuda_attributes attributes = fake_kernel_ran(kernel);
  unlock();
  return attributes;
}

static void set_capability(int major) {
  lock();
  fake_capability = major;
  unlock();
}

static uint64_t physical_bytes(int device) {
  lock();
  const uint64_t bytes = fake_device_at(device) != NULL ? fake_devices[device].used : 0;
  unlock();
  return bytes;
}

static size_t mappings(int device) {
  lock();
  const size_t count = fake_memory_mappings(device);
  unlock();
  return count;
}

static void set_memory(int device, uint64_t bytes) {
  lock();
  if (fake_device_at(device) != NULL) fake_devices[device].memory = bytes;
  unlock();
}

static void lose(int device, unsigned code) {
  lock();
  if (fake_device_at(device) != NULL) fake_context_lose(&fake_devices[device].context, code);
  unlock();
}

static const fake_cuda_control control = {
    reset,      forget,          settle,         live,     list,       calls, fail, failed,         hide,
    violations, list_violations, physical_bytes, mappings, set_memory, lose,  ran,  set_capability,
};

FAKE_EXPORT const void *fake_control(void) __asm__(FAKE_CUDA_ENTRY);
const void *fake_control(void) { return &control; }

/* The exit status becomes 1 when something was misused or left. */
__attribute__((destructor)) static void look_back(void) {
  char text[2048];
  if (getenv("RONDO_TEST_FAKE_CUDA_STRICT") == NULL || (violations() == 0 && live(FAKE_CUDA_ANY) == 0)) return;
  list_violations(text, sizeof text);
  (void)fprintf(stderr, "the fake CUDA driver was misused %zu times:\n%s", violations(), text);
  list(text, sizeof text);
  (void)fprintf(stderr, "and %zu objects are left:\n%s", live(FAKE_CUDA_ANY), text);
  _exit(1);
}
