/* SPDX-License-Identifier: MIT
 * The list of objects that tests have created and not destroyed. Each object is in it once. Several threads may create
 * and destroy objects at the same time.
 */
#include "support/test_cleanup.h"

#include <pthread.h>
#include <stdlib.h>

bool test_took_down(rondo_status status, const char *what) {
  if (status != RONDO_OK) print_error("teardown: %s: %s\n", what, rondo_last_error()->message);
  return status == RONDO_OK;
}

typedef struct left_object {
  test_left_kind kind;
  void *object;
  rondo_device *device;          /* of words */
  void (*destroy)(void *object); /* of others */
  struct left_object *next;
} left_object;

static left_object *left; /* newest first */
static pthread_mutex_t left_lock = PTHREAD_MUTEX_INITIALIZER;

static void link_left(left_object *entry) {
  pthread_mutex_lock(&left_lock);
  entry->next = left;
  left = entry;
  pthread_mutex_unlock(&left_lock);
}

static void destroy_program(void *object) { (rondo_program_destroy)(object); }
static void destroy_exec(void *object) { (rondo_exec_destroy)(object); }
static void destroy_event(void *object) { (rondo_event_destroy)(object); }
static void destroy_generator(void *object) { (rondo_generator_destroy)(object); }
static void destroy_kernel(void *object) { (rondo_kernel_destroy)(object); }
static void destroy_gate(void *object) {
  test_gate_destroy(object);
  free(object);
}

/* Kinds that can always be destroyed. */
static void (*const destroyers[TEST_LEFT_KIND_COUNT])(void *object) = {
    [TEST_LEFT_PROGRAM] = destroy_program,     [TEST_LEFT_EXEC] = destroy_exec,     [TEST_LEFT_EVENT] = destroy_event,
    [TEST_LEFT_GENERATOR] = destroy_generator, [TEST_LEFT_KERNEL] = destroy_kernel, [TEST_LEFT_GATE] = destroy_gate};

void test_leave_kind(test_left_kind kind, void *object, rondo_device *device) {
  left_object *entry = malloc(sizeof *entry);
  assert_non_null(entry);
  *entry = (left_object){.kind = kind, .object = object, .device = device, .destroy = destroyers[kind]};
  link_left(entry);
}

/* Before an object is destroyed: removes it from the list. NULL if it is not in the list. */
static left_object *unlink_left(const void *object) {
  pthread_mutex_lock(&left_lock);
  left_object **link = &left, *found;
  while (*link != NULL && (*link)->object != object) link = &(*link)->next;
  found = *link;
  if (found != NULL) *link = found->next;
  pthread_mutex_unlock(&left_lock);
  return found;
}

/* After the destruction: an object that refused it goes back into the list. After any other failure it is destroyed, as
 * a stream is whose work failed. */
static rondo_status settle(left_object *entry, rondo_status status) {
  if (entry != NULL && (status == RONDO_INVALID_STATE || status == RONDO_CAPTURE_REFUSED))
    link_left(entry);
  else
    free(entry);
  return status;
}

void *test_leave(void (*destroy)(void *object), void *object) {
  left_object *entry = malloc(sizeof *entry);
  assert_non_null(entry);
  *entry = (left_object){.kind = TEST_LEFT_OTHER, .object = object, .destroy = destroy};
  link_left(entry);
  return object;
}

/* DESTROYS: destruction may be refused, so the function returns a status. */
#define DESTROYS(kind)                                      \
  rondo_status test_destroy_##kind(rondo_##kind *object) {  \
    left_object *entry = unlink_left(object);               \
    return settle(entry, (rondo_##kind##_destroy)(object)); \
  }
#define DESTROYS_ALWAYS(kind)                      \
  void test_destroy_##kind(rondo_##kind *object) { \
    free(unlink_left(object));                     \
    (rondo_##kind##_destroy)(object);              \
  }

DESTROYS(session)
DESTROYS(tree)
DESTROYS(recording)
DESTROYS(executor)
DESTROYS(compiled)
DESTROYS(divided)
DESTROYS_ALWAYS(program)
DESTROYS_ALWAYS(exec)
DESTROYS(graph)
DESTROYS_ALWAYS(event)
DESTROYS_ALWAYS(generator)
DESTROYS_ALWAYS(kernel)
DESTROYS(stream)

rondo_status test_destroy_device(rondo_device *device) {
  left_object *entry = unlink_left(device);
  return settle(entry, (rondo_device_close)(device));
}

rondo_status test_destroy_words(rondo_device *device, void *address) {
  left_object *entry = unlink_left(address);
  return settle(entry, (rondo_free)(device, address));
}

static rondo_status destroy_left(const left_object *entry) {
  void *const object = entry->object;
  switch (entry->kind) {
    case TEST_LEFT_SESSION:
      return (rondo_session_destroy)(object);
    case TEST_LEFT_TREE:
      return (rondo_tree_destroy)(object);
    case TEST_LEFT_RECORDING:
      return (rondo_recording_destroy)(object);
    case TEST_LEFT_EXECUTOR:
      return (rondo_executor_destroy)(object);
    case TEST_LEFT_COMPILED:
      return (rondo_compiled_destroy)(object);
    case TEST_LEFT_DIVIDED:
      return (rondo_divided_destroy)(object);
    case TEST_LEFT_DEVICE:
      return (rondo_device_close)(object);
    case TEST_LEFT_GRAPH:
      return (rondo_graph_destroy)(object);
    case TEST_LEFT_WORDS:
      return (rondo_free)(entry->device, object);
    case TEST_LEFT_STREAM:
      return (rondo_stream_destroy)(object);
    default:
      entry->destroy(object);
      return RONDO_OK;
  }
}

bool test_destroy_left(void) {
  static const char *const names[] = {
      "a session", "a tree",  "a recording", "a compiled program", "a divided program", "an executor", "a program",
      "an exec",   "a graph", "an event",    "a generator",        "a kernel",          "words",       "another object",
      "a stream",  "a gate",  "a device"};
  bool clean = true;
  for (const left_object *entry = left; entry != NULL; entry = entry->next)
    if (entry->kind == TEST_LEFT_GATE) test_gate_open(entry->object); /* a stream may still wait at it */
  for (int kind = 0; kind < TEST_LEFT_KIND_COUNT; kind++) {
    for (left_object **link = &left; *link != NULL;) {
      left_object *entry = *link;
      if (entry->kind != (test_left_kind)kind) {
        link = &entry->next;
        continue;
      }
      *link = entry->next;
      clean = test_took_down(destroy_left(entry), names[kind]) && clean;
      free(entry);
    }
  }
  return clean;
}
