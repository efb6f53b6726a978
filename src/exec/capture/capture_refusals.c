/* SPDX-License-Identifier: MIT
 * The process's list of captures, and the refusals: the checks of calls that a capture may forbid (C6, C9, C10). While
 * there is no capture in the process, a check is one load.
 */
#include <assert.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/linked_list.h"
#include "base/thread.h"
#include "exec/capture/capture_internal.h"
#include "graph/node_name.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static rondo_capture *captures;
atomic_uint rondo_capture_count;

static _Thread_local rondo_capture_mode thread_mode = RONDO_CAPTURE_GLOBAL;

/* The list -------------------------------------------------------------------------------------------------------- */

void rondo_capture_retain(rondo_capture *capture) {
  atomic_fetch_add_explicit(&capture->references, 1, memory_order_relaxed);
}

void rondo_capture_release(rondo_capture *capture) {
  assert(atomic_load_explicit(&capture->references, memory_order_relaxed) > 0);
  if (atomic_fetch_sub_explicit(&capture->references, 1, memory_order_acq_rel) > 1) return;
  assert(capture->members == NULL && capture->generators.count == 0 && capture->driver_frontier.items == NULL);
  const rondo_allocator libc = rondo_allocator_default();
  rondo_release(&libc, capture, 1, sizeof *capture);
}

#ifndef NDEBUG
/* Under the lock. Asserts that the list is linked in both directions and that members refer to their capture. */
static void check_list(void) {
  rondo_capture *const *link = &captures;
  for (const rondo_capture *at = captures; at != NULL; link = &at->next, at = at->next) {
    const uint32_t state = atomic_load_explicit(&at->state, memory_order_relaxed);
    bool has_origin = at->origin == NULL;
    assert(at->link == link);
    assert(atomic_load_explicit(&at->references, memory_order_relaxed) > 0);
    assert(state != RONDO_CAPTURE_OVER && (state == RONDO_CAPTURE_ACTIVE || at->cause[0] != '\0'));
    assert(!has_origin || state == RONDO_CAPTURE_INVALIDATED);
    for (const rondo_stream *member = at->members; member != NULL; member = member->next_member) {
      assert(rondo_stream_capture(member) == at && rondo_device_shares_driver(member->device, at->device));
      has_origin = has_origin || member == at->origin;
    }
    assert(has_origin);
  }
}
#else
static void check_list(void) {}
#endif

void rondo_capture_list_add(rondo_capture *capture) {
  rondo_stream *origin = capture->origin;
  pthread_mutex_lock(&lock);
  origin->next_member = NULL;
  capture->members = origin;
  atomic_store_explicit(&origin->capture, capture, memory_order_relaxed);
  RONDO_LIST_INSERT(captures, capture, next, link);
  check_list();
  pthread_mutex_unlock(&lock);
  atomic_fetch_add_explicit(&rondo_capture_count, 1, memory_order_release);
}

void rondo_capture_list_remove(rondo_capture *capture) {
  pthread_mutex_lock(&lock);
  for (rondo_stream *member = capture->members; member != NULL; member = member->next_member)
    atomic_store_explicit(&member->capture, NULL, memory_order_relaxed);
  capture->members = NULL;
  atomic_store_explicit(&capture->state, RONDO_CAPTURE_OVER, memory_order_release);
  RONDO_LIST_REMOVE(capture, next, link);
  check_list();
  pthread_mutex_unlock(&lock);
  atomic_fetch_sub_explicit(&rondo_capture_count, 1, memory_order_release);
}

/* If a capture is not active, its cause can be read: it is written before the state and does not change later. A
 * capture of a parent process forbids nothing. */
static bool is_active(const rondo_capture *capture) {
  return atomic_load_explicit(&capture->state, memory_order_acquire) == RONDO_CAPTURE_ACTIVE &&
         !capture->device->is_inherited;
}

/* Under the lock. */
static void add_member(rondo_capture *capture, rondo_stream *stream) {
  assert(rondo_stream_capture(stream) == NULL && rondo_device_shares_driver(stream->device, capture->device));
  stream->next_member = capture->members;
  capture->members = stream;
  atomic_store_explicit(&stream->capture, capture, memory_order_relaxed);
}

rondo_capture *rondo_capture_list_adopt(rondo_stream *stream, uint64_t driver_id) {
  pthread_mutex_lock(&lock);
  rondo_capture *capture = captures;
  while (capture != NULL &&
         (capture->driver_id != driver_id || !rondo_device_shares_driver(capture->device, stream->device)))
    capture = capture->next;
  if (capture != NULL && !is_active(capture)) capture = NULL;
  if (capture != NULL) add_member(capture, stream);
  check_list();
  pthread_mutex_unlock(&lock);
  return capture;
}

rondo_status rondo_capture_list_join(rondo_capture *capture, rondo_stream *stream) {
  pthread_mutex_lock(&lock);
  const bool active = is_active(capture);
  if (active) add_member(capture, stream);
  check_list();
  pthread_mutex_unlock(&lock);
  return active ? RONDO_OK : rondo_capture_require_active(capture, "rondo_stream_wait_event");
}

bool rondo_capture_list_leave(rondo_capture *capture, rondo_stream *stream) {
  pthread_mutex_lock(&lock);
  rondo_stream **at = &capture->members;
  assert(rondo_stream_capture(stream) == capture);
  while (*at != stream) at = &(*at)->next_member;
  *at = stream->next_member;
  atomic_store_explicit(&stream->capture, NULL, memory_order_relaxed);
  if (stream == capture->origin) capture->origin = NULL;
  const bool is_last = capture->members == NULL;
  pthread_mutex_unlock(&lock);
  return is_last;
}

/* Under the lock. Names the thread if the program needs that to find the call. */
static void set_cause(rondo_capture *capture, const char *cause, bool is_of_driver) {
  char thread[RONDO_THREAD_LABEL];
  const bool is_elsewhere = capture->thread != rondo_thread_id();
  const rondo_cause_source source = is_elsewhere ? RONDO_CAUSE_ELSEWHERE : RONDO_CAUSE_OWN;
  capture->cause_source = is_of_driver ? RONDO_CAUSE_DRIVER : source;
  const bool is_named = is_elsewhere && !is_of_driver; /* this thread has only noticed what the driver reports */
  (void)snprintf(capture->cause, sizeof capture->cause, "%s%s%s", cause, is_named ? ", called by " : "",
                 is_named ? rondo_thread_label(thread) : "");
  atomic_store_explicit(&capture->state, RONDO_CAPTURE_INVALIDATED, memory_order_release);
}

/* Validity -------------------------------------------------------------------------------------------------------- */

static RONDO_PRINTF(3, 0) void invalidate(rondo_capture *capture, bool is_of_driver, const char *format,
                                          va_list arguments) {
  char cause[RONDO_CAUSE_TEXT];
  vsnprintf(cause, sizeof cause, format, arguments);
  pthread_mutex_lock(&lock);
  if (atomic_load_explicit(&capture->state, memory_order_relaxed) == RONDO_CAPTURE_ACTIVE)
    set_cause(capture, cause, is_of_driver);
  pthread_mutex_unlock(&lock);
}

void rondo_capture_invalidate(rondo_capture *capture, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  invalidate(capture, false, format, arguments);
  va_end(arguments);
}

void rondo_capture_invalidate_by_driver(rondo_capture *capture, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  invalidate(capture, true, format, arguments);
  va_end(arguments);
}

bool rondo_capture_find_cause(const rondo_capture *capture, char *out, size_t capacity,
                              rondo_cause_source *out_source) {
  pthread_mutex_lock(&lock);
  const bool is_invalid = !is_active(capture) && capture->cause[0] != '\0';
  if (is_invalid) (void)snprintf(out, capacity, "%s", capture->cause);
  if (is_invalid) *out_source = capture->cause_source;
  pthread_mutex_unlock(&lock);
  return is_invalid;
}

rondo_status rondo_capture_require_active(const rondo_capture *capture, const char *call) {
  if (is_active(capture)) return RONDO_OK;
  RONDO_TRY(rondo_device_require_own(call, capture->device));
  return rondo_fail(RONDO_CAPTURE_INVALID, RONDO_REASON_INVALIDATED,
                    "%s: the capture on %s was made invalid by %s: end it and begin again", call, capture->origin_name,
                    capture->cause);
}

rondo_status rondo_capture_require_sound(const rondo_capture *capture, const char *call) {
  if (is_active(capture)) return RONDO_OK;
  return rondo_fail(RONDO_CAPTURE_INVALID, RONDO_REASON_INVALIDATED,
                    "%s: the capture on %s, which is over now, was made invalid by %s: begin again without that", call,
                    capture->origin_name, capture->cause);
}

/* The position in a capture (FW-7) --------------------------------------------------------------------------------- */

/* The last captured node before the refused call: its number, and " after kernel 'relu' (node 12)". */
typedef struct capture_position {
  uint32_t node; /* RONDO_NO_NODE: none */
  char text[RONDO_LABEL_BYTES + sizeof " after "];
} capture_position;

/* Only a capture of the calling thread has a graph that no other thread can be changing. Other captures have no
 * position. */
static void find_position(const rondo_capture *capture, capture_position *out) {
  const rondo_graph *graph = capture->graph;
  char label[RONDO_LABEL_BYTES];
  *out = (capture_position){.node = RONDO_NO_NODE};
  if (capture->mode == RONDO_CAPTURE_RELAXED || capture->thread != rondo_thread_id()) return;
  (void)snprintf(out->text, sizeof out->text, " before any node");
  for (size_t slot = graph->nodes.count; slot > 0 && out->node == RONDO_NO_NODE; slot--)
    if (graph->nodes.items[slot - 1].live) out->node = (uint32_t)(slot - 1);
  if (out->node == RONDO_NO_NODE) return;
  const rondo_node_params *params = &graph->nodes.items[out->node].params;
  (void)snprintf(out->text, sizeof out->text, " after %s", rondo_node_label(label, params, out->node));
}

/* Refusals -------------------------------------------------------------------------------------------------------- */

rondo_status rondo_capture_refuse_stream(rondo_stream *stream, const char *call) {
  rondo_capture *capture = rondo_stream_capture(stream);
  capture_position position;
  assert(capture != NULL);
  RONDO_TRY(rondo_capture_require_active(capture, call));
  find_position(capture, &position);
  rondo_capture_invalidate(capture, "%s on %s%s", call, stream->label, position.text);
  return rondo_fail_node(
      RONDO_CAPTURE_REFUSED, RONDO_REASON_UNSUPPORTED_CALL, position.node,
      "%s: %s captures, so nothing runs on it before the graph is launched; the capture on %s is now "
      "invalid%s: end it, and call this before the capture or after a launch",
      call, stream->label, capture->origin_name, position.text);
}

rondo_status rondo_capture_refuse_event(const rondo_event *event, const char *call) {
  rondo_capture *capture = event->capture;
  assert(capture != NULL);
  const uint32_t state = atomic_load_explicit(&capture->state, memory_order_acquire);
  if (state == RONDO_CAPTURE_INVALIDATED) return rondo_capture_require_active(capture, call);
  capture_position position = {.node = RONDO_NO_NODE};
  if (state == RONDO_CAPTURE_ACTIVE) {
    find_position(capture, &position);
    rondo_capture_invalidate(capture, "%s of an event recorded in it%s", call, position.text);
  }
  return rondo_fail_node(RONDO_CAPTURE_REFUSED, RONDO_REASON_CAPTURED_EVENT, position.node,
                         "%s: the event was last recorded in the capture on %s%s and represents nodes there, not work "
                         "that runs: record it outside a capture, or capture rondo_event_record_external",
                         call, capture->origin_name, state == RONDO_CAPTURE_ACTIVE ? ", which is now invalid," : "");
}

/* The table of C9. */
static bool forbids_unsafe(const rondo_capture *capture) {
  if (capture->thread == rondo_thread_id()) return capture->mode != RONDO_CAPTURE_RELAXED;
  return thread_mode == RONDO_CAPTURE_GLOBAL && capture->mode == RONDO_CAPTURE_GLOBAL;
}

/* The first capture that forbids a call, for the message. */
typedef struct capture_refusal {
  char origin_name[RONDO_STREAM_LABEL];
  bool own;
  capture_position position;
} capture_refusal;

/* Under the lock. Whether a stream of the device is part of the capture. */
static bool has_device(const rondo_capture *capture, const rondo_device *device) {
  const rondo_stream *member = capture->members;
  while (member != NULL && member->device != device) member = member->next_member;
  return member != NULL || capture->device == device;
}

/* Makes all captures invalid that forbid the call: those on the device or, if it is NULL, those that forbid unsafe
 * calls. False if there are none. */
static bool invalidate_forbidding(const rondo_device *device, const char *call, capture_refusal *out) {
  bool any = false;
  if (atomic_load_explicit(&rondo_capture_count, memory_order_acquire) == 0) return false;
  pthread_mutex_lock(&lock);
  for (rondo_capture *capture = captures; capture != NULL; capture = capture->next) {
    capture_position position;
    if (!is_active(capture) || !(device != NULL ? has_device(capture, device) : forbids_unsafe(capture))) continue;
    find_position(capture, &position);
    char cause[RONDO_CAUSE_TEXT];
    (void)snprintf(cause, sizeof cause, "%s%s", call, position.text);
    set_cause(capture, cause, false);
    if (any) continue;
    any = true;
    memcpy(out->origin_name, capture->origin_name, sizeof out->origin_name);
    out->own = capture->thread == rondo_thread_id();
    out->position = position;
  }
  pthread_mutex_unlock(&lock);
  return any;
}

rondo_status rondo_capture_refuse_device(rondo_device *device, const char *call) {
  capture_refusal refusal;
  if (!invalidate_forbidding(device, call, &refusal)) return RONDO_OK;
  return rondo_fail_node(
      RONDO_CAPTURE_REFUSED, RONDO_REASON_UNSUPPORTED_CALL, refusal.position.node,
      "%s: device '%s' cannot be waited for during a capture; the capture on %s is now invalid%s: end it, "
      "and wait before it begins or after it ends",
      call, device->name, refusal.origin_name, refusal.position.text);
}

/* What to call instead of `call` during a capture. */
static const char *captured_form(const char *call) {
  if (strcmp(call, "rondo_malloc") == 0) return ", use rondo_malloc_async, which becomes a node";
  if (strcmp(call, "rondo_free") == 0) return ", use rondo_free_async, which becomes a node";
  return "";
}

rondo_status rondo_capture_refuse_unsafe(const char *call) {
  capture_refusal refusal;
  if (thread_mode == RONDO_CAPTURE_RELAXED || !invalidate_forbidding(NULL, call, &refusal)) return RONDO_OK;
  return rondo_fail_node(
      RONDO_CAPTURE_REFUSED, RONDO_REASON_UNSUPPORTED_CALL, refusal.position.node,
      "%s acts at once, which the capture on %s (begun by %s) forbids; the capture is now invalid%s: call it before "
      "the capture%s, begin the capture with %s, or set the thread's mode with rondo_capture_exchange_thread_mode",
      call, refusal.origin_name, refusal.own ? "this thread" : "another thread, globally", refusal.position.text,
      captured_form(call), refusal.own ? "RONDO_CAPTURE_RELAXED" : "RONDO_CAPTURE_THREAD_LOCAL");
}

/* Under the lock. */
static bool has_native(const rondo_capture *capture, const void *native) {
  for (rondo_stream *member = capture->members; member != NULL; member = member->next_member)
    if (capture->device->ops->capture == NULL && rondo_stream_native(member) == native) return true;
  return false;
}

rondo_status rondo_capture_refuse_adoption(const rondo_device *device, const void *native) {
  char origin_name[RONDO_STREAM_LABEL];
  if (device->ops->capture != NULL) return RONDO_OK;
  pthread_mutex_lock(&lock);
  const rondo_capture *capture = captures;
  while (capture != NULL && !has_native(capture, native)) capture = capture->next;
  if (capture != NULL) memcpy(origin_name, capture->origin_name, sizeof origin_name);
  pthread_mutex_unlock(&lock);
  if (capture == NULL) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_ALREADY_CAPTURING,
                    "rondo_stream_adopt: the stream is part of the capture that began on %s: adopt it before, or after "
                    "the capture has ended",
                    origin_name);
}

bool rondo_capture_is_begun_here(const rondo_device *device) {
  if (atomic_load_explicit(&rondo_capture_count, memory_order_acquire) == 0) return false;
  const uint64_t self = rondo_thread_id();
  pthread_mutex_lock(&lock);
  const rondo_capture *capture = captures;
  while (capture != NULL &&
         (capture->thread != self || !has_device(capture, device) || capture->mode == RONDO_CAPTURE_RELAXED))
    capture = capture->next;
  pthread_mutex_unlock(&lock);
  return capture != NULL;
}

rondo_status rondo_capture_mode_check(const char *call, rondo_capture_mode mode) {
  if (mode == RONDO_CAPTURE_THREAD_LOCAL || mode == RONDO_CAPTURE_GLOBAL || mode == RONDO_CAPTURE_RELAXED)
    return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                    "%s: %d is not a capture mode: use one of RONDO_CAPTURE_GLOBAL, _THREAD_LOCAL and _RELAXED", call,
                    (int)mode);
}

rondo_status rondo_capture_exchange_thread_mode(rondo_capture_mode *inout_mode) {
  const char *const call = "rondo_capture_exchange_thread_mode";
  RONDO_TRY(rondo_check_call(call, "inout_mode", inout_mode));
  const rondo_capture_mode mode = *inout_mode;
  RONDO_TRY(rondo_capture_mode_check(call, mode));
  *inout_mode = thread_mode;
  thread_mode = mode;
  return RONDO_OK;
}
