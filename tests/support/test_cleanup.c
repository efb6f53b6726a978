/* SPDX-License-Identifier: MIT
 * A list of what tests made and have not destroyed. Objects are on it once; threads may make and destroy them at once.
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

static left_object *left; /* the newest first */
static pthread_mutex_t left_lock = PTHREAD_MUTEX_INITIALIZER;

static void link_left(left_object *entry) {
  pthread_mutex_lock(&left_lock);
  entry->next = left;
  left = entry;
  pthread_mutex_unlock(&left_lock);
}

void test_leave_kind(test_left_kind kind, void *object, rondo_device *device) {
  left_object *entry = malloc(sizeof *entry);
  assert_non_null(entry);
  *entry = (left_object){.kind = kind, .object = object, .device = device};
  link_left(entry);
}

/* Before an object is destroyed: the teardown does not do that again. NULL when it would not have. */
static left_object *unlink_left(const void *object) {
  pthread_mutex_lock(&left_lock);
  left_object **link = &left, *found;
  while (*link != NULL && (*link)->object != object) link = &(*link)->next;
  found = *link;
  if (found != NULL) *link = found->next;
  pthread_mutex_unlock(&left_lock);
  return found;
}

/* Afterwards: an object whose destruction was refused is left all the same. With any other failure it is gone, as a
 * stream is whose work failed. */
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

rondo_status test_destroy_session(rondo_session *session) {
  left_object *entry = unlink_left(session);
  return settle(entry, (rondo_session_destroy)(session));
}

rondo_status test_destroy_tree(rondo_tree *tree) {
  left_object *entry = unlink_left(tree);
  return settle(entry, (rondo_tree_destroy)(tree));
}

void test_destroy_exec(rondo_exec *exec) {
  free(unlink_left(exec));
  (rondo_exec_destroy)(exec);
}

void test_destroy_event(rondo_event *event) {
  free(unlink_left(event));
  (rondo_event_destroy)(event);
}

rondo_status test_destroy_graph(rondo_graph *graph) {
  left_object *entry = unlink_left(graph);
  return settle(entry, (rondo_graph_destroy)(graph));
}

rondo_status test_destroy_stream(rondo_stream *stream) {
  left_object *entry = unlink_left(stream);
  return settle(entry, (rondo_stream_destroy)(stream));
}

rondo_status test_destroy_words(rondo_device *device, void *address) {
  left_object *entry = unlink_left(address);
  return settle(entry, (rondo_free)(device, address));
}

static rondo_status destroy_left(const left_object *entry) {
  switch (entry->kind) {
    case TEST_LEFT_SESSION:
      return (rondo_session_destroy)(entry->object);
    case TEST_LEFT_TREE:
      return (rondo_tree_destroy)(entry->object);
    case TEST_LEFT_EXEC:
      (rondo_exec_destroy)(entry->object);
      return RONDO_OK;
    case TEST_LEFT_GRAPH:
      return (rondo_graph_destroy)(entry->object);
    case TEST_LEFT_EVENT:
      (rondo_event_destroy)(entry->object);
      return RONDO_OK;
    case TEST_LEFT_WORDS:
      return (rondo_free)(entry->device, entry->object);
    case TEST_LEFT_OTHER:
      entry->destroy(entry->object);
      return RONDO_OK;
    case TEST_LEFT_STREAM:
      return (rondo_stream_destroy)(entry->object);
    default:
      test_gate_destroy(entry->object);
      free(entry->object);
      return RONDO_OK;
  }
}

bool test_destroy_left(void) {
  static const char *const names[] = {"a session", "a tree",         "an exec",  "a graph", "an event",
                                      "words",     "another object", "a stream", "a gate"};
  bool clean = true;
  for (const left_object *entry = left; entry != NULL; entry = entry->next)
    if (entry->kind == TEST_LEFT_GATE) test_gate_open(entry->object); /* a stream may still stand there */
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
