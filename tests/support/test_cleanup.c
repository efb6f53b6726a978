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

struct test_left {
  test_left_kind kind;
  void *object;
  rondo_device *device;                  /* of words */
  rondo_status (*destroy)(void *object); /* NULL: words */
  void (*destroy_other)(void *object);   /* of others */
  test_left *next;
};

static test_left *left; /* newest first */
static pthread_mutex_t left_lock = PTHREAD_MUTEX_INITIALIZER;

static void link_left(test_left *entry) {
  pthread_mutex_lock(&left_lock);
  entry->next = left;
  left = entry;
  pthread_mutex_unlock(&left_lock);
}

static void leave(test_left entry) {
  test_left *made = malloc(sizeof *made);
  assert_non_null(made);
  *made = entry;
  link_left(made);
}

#define DESTROY(kind) \
  static rondo_status destroy_##kind(void *object) { return (rondo_##kind##_destroy)(object); }
#define DESTROY_ALWAYS(kind)                         \
  static rondo_status destroy_##kind(void *object) { \
    (rondo_##kind##_destroy)(object);                \
    return RONDO_OK;                                 \
  }
DESTROY(tree)
DESTROY(recording)
DESTROY(executor)
DESTROY_ALWAYS(exec)
DESTROY(graph)
DESTROY_ALWAYS(event)
DESTROY_ALWAYS(generator)
DESTROY_ALWAYS(kernel)
DESTROY(stream)
static rondo_status destroy_device(void *object) { return (rondo_device_close)(object); }
static rondo_status destroy_gate(void *object) {
  test_gate_destroy(object);
  free(object);
  return RONDO_OK;
}

/* Of the kinds of the core. */
static rondo_status (*const destroyers[TEST_LEFT_KIND_COUNT])(void *object) = {
    [TEST_LEFT_TREE] = destroy_tree,           [TEST_LEFT_RECORDING] = destroy_recording,
    [TEST_LEFT_EXECUTOR] = destroy_executor,   [TEST_LEFT_EXEC] = destroy_exec,
    [TEST_LEFT_GRAPH] = destroy_graph,         [TEST_LEFT_EVENT] = destroy_event,
    [TEST_LEFT_GENERATOR] = destroy_generator, [TEST_LEFT_KERNEL] = destroy_kernel,
    [TEST_LEFT_STREAM] = destroy_stream,       [TEST_LEFT_GATE] = destroy_gate,
    [TEST_LEFT_DEVICE] = destroy_device};

void test_leave_kind(test_left_kind kind, void *object, rondo_device *device) {
  leave((test_left){.kind = kind, .object = object, .device = device, .destroy = destroyers[kind]});
}

void test_leave_with(test_left_kind kind, void *object, rondo_status (*destroy)(void *object)) {
  leave((test_left){.kind = kind, .object = object, .destroy = destroy});
}

void *test_leave(void (*destroy)(void *object), void *object) {
  leave((test_left){.kind = TEST_LEFT_OTHER, .object = object, .destroy_other = destroy});
  return object;
}

test_left *test_left_take(const void *object) {
  pthread_mutex_lock(&left_lock);
  test_left **link = &left, *found;
  while (*link != NULL && (*link)->object != object) link = &(*link)->next;
  found = *link;
  if (found != NULL) *link = found->next;
  pthread_mutex_unlock(&left_lock);
  return found;
}

rondo_status test_left_settle(test_left *entry, rondo_status status) {
  if (entry != NULL && (status == RONDO_INVALID_STATE || status == RONDO_CAPTURE_REFUSED))
    link_left(entry);
  else
    free(entry);
  return status;
}

TEST_DESTROYS(tree)
TEST_DESTROYS(recording)
TEST_DESTROYS(executor)
TEST_DESTROYS_ALWAYS(exec)
TEST_DESTROYS(graph)
TEST_DESTROYS_ALWAYS(event)
TEST_DESTROYS_ALWAYS(generator)
TEST_DESTROYS_ALWAYS(kernel)
TEST_DESTROYS(stream)

rondo_status test_destroy_device(rondo_device *device) {
  test_left *entry = test_left_take(device);
  return test_left_settle(entry, (rondo_device_close)(device));
}

rondo_status test_destroy_words(rondo_device *device, void *address) {
  test_left *entry = test_left_take(address);
  return test_left_settle(entry, (rondo_free)(device, address));
}

static rondo_status destroy_left(const test_left *entry) {
  if (entry->kind == TEST_LEFT_WORDS) return (rondo_free)(entry->device, entry->object);
  if (entry->kind != TEST_LEFT_OTHER) return entry->destroy(entry->object);
  entry->destroy_other(entry->object);
  return RONDO_OK;
}

bool test_destroy_left(void) {
  static const char *const names[] = {
      "a session", "a tree",  "a recording", "a compiled program", "a divided program", "an executor", "a program",
      "an exec",   "a graph", "an event",    "a generator",        "a kernel",          "words",       "another object",
      "a stream",  "a gate",  "a device"};
  bool clean = true;
  for (const test_left *entry = left; entry != NULL; entry = entry->next)
    if (entry->kind == TEST_LEFT_GATE) test_gate_open(entry->object); /* a stream may still wait at it */
  for (int kind = 0; kind < TEST_LEFT_KIND_COUNT; kind++) {
    for (test_left **link = &left; *link != NULL;) {
      test_left *entry = *link;
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
