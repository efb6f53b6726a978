/* SPDX-License-Identifier: MIT
 * Events, and the device's lists of destroyed events (GX-9). Creating an event reuses a destroyed event that is
 * complete. If there is none, it queries a few of the others.
 *
 * Threads: a lock of the device protects the lists. Driver queries, which do not wait, are made with the lock. The lock
 * is a leaf.
 */
#include <assert.h>

#include "base/versioned_struct.h"
#include "exec/capture/capture_internal.h"

static const rondo_device_use event_use = {.rank = 4, .name = "event"};

#define MAX_QUERIES 16

typedef struct event_store {
  pthread_mutex_t lock;
  rondo_allocator allocator;
  rondo_event *complete[2];  /* without and with timing */
  rondo_event *first, *last; /* destroyed before they were complete, oldest first */
} event_store;

/* The store ------------------------------------------------------------------------------------------------------- */

static void free_event(rondo_event *event, const rondo_allocator *allocator) {
  event->driver->ops->destroy(event->driver);
  rondo_array_free(allocator, &event->frontier);
  rondo_release(allocator, event, 1, sizeof *event);
}

static void free_list(rondo_event *list, const rondo_allocator *allocator) {
  while (list != NULL) {
    rondo_event *event = list;
    list = event->next;
    free_event(event, allocator);
  }
}

static void release_store(void *state) {
  event_store *store = state;
  const rondo_allocator allocator = store->allocator;
  for (int i = 0; i < 2; i++) free_list(store->complete[i], &allocator);
  free_list(store->first, &allocator);
  pthread_mutex_destroy(&store->lock);
  rondo_release(&allocator, store, 1, sizeof *store);
}

static void init_store(void *state, const rondo_allocator *allocator) {
  event_store *store = state;
  store->allocator = *allocator;
  pthread_mutex_init(&store->lock, NULL);
}

static rondo_status store_of(rondo_device *device, event_store **out) {
  static const rondo_state_kind kind = {sizeof(event_store), init_store, release_store};
  return rondo_device_state(device, &device->events, &kind, out);
}

static bool is_complete(const rondo_event *event) { return event->driver->ops->query(event->driver) == RONDO_OK; }

static void put_complete(event_store *store, rondo_event *event) {
  rondo_event **list = &store->complete[event->driver->timing];
  assert(atomic_load_explicit(&event->references, memory_order_relaxed) == 0);
  event->next = *list;
  *list = event;
}

static void put_waiting(event_store *store, rondo_event *event) {
  assert((store->first == NULL) == (store->last == NULL));
  event->next = NULL;
  if (store->last != NULL)
    store->last->next = event;
  else
    store->first = event;
  store->last = event;
}

/* Queries the oldest few and moves those that are complete. */
static void query_waiting(event_store *store) {
  for (int i = 0; i < MAX_QUERIES && store->first != NULL; i++) {
    rondo_event *event = store->first;
    store->first = event->next;
    if (store->first == NULL) store->last = NULL;
    if (is_complete(event))
      put_complete(store, event);
    else
      put_waiting(store, event);
  }
}

static rondo_event *take_complete(event_store *store, bool timing) {
  pthread_mutex_lock(&store->lock);
  if (store->complete[timing] == NULL) query_waiting(store);
  rondo_event *event = store->complete[timing];
  if (event != NULL) store->complete[timing] = event->next;
  assert(event == NULL || event->driver->timing == timing);
  pthread_mutex_unlock(&store->lock);
  return event;
}

/* Life ------------------------------------------------------------------------------------------------------------ */

static rondo_status make_event(rondo_device *device, bool timing, rondo_event **out) {
  rondo_event *event;
  RONDO_TRY(rondo_allocate_items(&device->allocator, 1, sizeof *event, &event));
  event->counted = (rondo_counted_event){.retain = rondo_event_retain, .release = rondo_event_release};
  event->device = device;
  const rondo_status status = device->ops->event_create(device, timing, &event->driver);
  if (status != RONDO_OK) {
    rondo_release(&device->allocator, event, 1, sizeof *event);
    return status;
  }
  atomic_fetch_add_explicit(&device->events_created, 1, memory_order_relaxed);
  *out = event;
  return RONDO_OK;
}

rondo_status rondo_event_create(rondo_device *device, const rondo_event_options *options, rondo_event **out_event) {
  RONDO_TRY(rondo_check_call("rondo_event_create", "out_event", out_event));
  *out_event = NULL;
  if (device == NULL) return rondo_refuse_null("rondo_event_create", "device");
  rondo_event_options known;
  event_store *store;
  RONDO_TRY(rondo_versioned_read("rondo_event_options", options, &known, sizeof known));
  RONDO_TRY(store_of(device, &store));
  rondo_event *event = take_complete(store, known.timing);
  if (event != NULL)
    atomic_fetch_add_explicit(&device->events_reused, 1, memory_order_relaxed);
  else
    RONDO_TRY(make_event(device, known.timing, &event));
  event->next = NULL;
  event->recorded = false;
  atomic_store_explicit(&event->references, 1, memory_order_relaxed);
  rondo_device_begin_use(device, &event_use);
  *out_event = event;
  return RONDO_OK;
}

void rondo_event_leave_capture(rondo_event *event) {
  if (event->capture != NULL) rondo_capture_release(event->capture);
  event->capture = NULL;
  if (event->mark != NULL) event->mark->ops->destroy(event->mark);
  event->mark = NULL;
  event->frontier.count = 0;
}

void rondo_event_retain(rondo_event *event) { atomic_fetch_add_explicit(&event->references, 1, memory_order_relaxed); }

/* The event's order is reset here and not when the user destroys the event, because launches of execs that name the
 * event record it until now. */
void rondo_event_release(rondo_event *event) {
  assert(atomic_load_explicit(&event->references, memory_order_relaxed) > 0);
  if (atomic_fetch_sub_explicit(&event->references, 1, memory_order_acq_rel) != 1) return;
  assert(event->capture == NULL && event->mark == NULL);
  if (event->ended != NULL) {
    event->ended(event);
    return;
  }
  rondo_order_forget(&event->order);
  event_store *store = atomic_load_explicit(&event->device->events.state, memory_order_acquire);
  pthread_mutex_lock(&store->lock);
  if (is_complete(event))
    put_complete(store, event);
  else
    put_waiting(store, event);
  pthread_mutex_unlock(&store->lock);
}

void rondo_event_destroy(rondo_event *event) {
  if (event == NULL || event->device->is_inherited) return;
  rondo_device_end_use(event->device, &event_use);
  rondo_event_leave_capture(event);
  rondo_event_release(event);
}

/* Recording and waiting ------------------------------------------------------------------------------------------- */

static rondo_status check_pair(const char *call, const rondo_event *event, const rondo_stream *stream) {
  RONDO_TRY(rondo_check_call(call, "the stream", stream));
  if (event == NULL) return rondo_refuse_null(call, "the event");
  return rondo_require_device(call, "the event", stream->device, event->device);
}

/* Frees are ordered among streams of one device. */
void rondo_event_note_recorded(rondo_event *event, const rondo_stream *stream) {
  rondo_event_leave_capture(event);
  if (event->device == stream->device)
    rondo_order_record(&event->order, &stream->order);
  else
    rondo_order_forget(&event->order);
  event->recorded = true;
}

rondo_status rondo_event_record(rondo_event *event, rondo_stream *stream) {
  RONDO_TRY(check_pair("rondo_event_record", event, stream));
  if (rondo_stream_find_capture(stream) != NULL) return rondo_capture_record_event(stream, event);
  RONDO_TRY(rondo_capture_refuse_stray(stream, "rondo_event_record"));
  RONDO_TRY(stream->queue->ops->record(stream->queue, event->driver));
  rondo_event_note_recorded(event, stream);
  return stream->synchronous ? rondo_stream_settle(stream, "rondo_event_record") : RONDO_OK;
}

/* A stream may wait for events of all devices of its driver. */
static rondo_status check_wait(const char *call, const rondo_event *event, const rondo_stream *stream) {
  RONDO_TRY(rondo_check_call(call, "the stream", stream));
  if (event == NULL) return rondo_refuse_null(call, "the event");
  if (rondo_device_shares_driver(stream->device, event->device)) return RONDO_OK;
  return rondo_require_device(call, "the event", stream->device, event->device);
}

rondo_status rondo_stream_wait_event(rondo_stream *stream, rondo_event *event) {
  RONDO_TRY(check_wait("rondo_stream_wait_event", event, stream));
  if (rondo_stream_find_capture(stream) != NULL || event->capture != NULL)
    return rondo_capture_wait_event(stream, event);
  RONDO_TRY(rondo_capture_refuse_stray(stream, "rondo_stream_wait_event"));
  if (!event->recorded) return RONDO_OK;
  RONDO_TRY(stream->queue->ops->wait(stream->queue, event->driver));
  if (event->device == stream->device) rondo_order_wait(&stream->device->allocator, &stream->order, &event->order);
  return stream->synchronous ? rondo_stream_settle(stream, "rondo_stream_wait_event") : RONDO_OK;
}

static rondo_status add_external(const char *call, rondo_node_kind kind, rondo_event *event, rondo_stream *stream) {
  RONDO_TRY(kind == RONDO_NODE_EVENT_WAIT ? check_wait(call, event, stream) : check_pair(call, event, stream));
  if (rondo_stream_find_capture(stream) == NULL)
    return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_NOT_CAPTURING,
                      "%s: %s is not capturing: external events are for graphs; outside a capture, call %s", call,
                      stream->label,
                      kind == RONDO_NODE_EVENT_RECORD ? "rondo_event_record" : "rondo_stream_wait_event");
  rondo_node_params params = {.kind = kind, .as.event = event};
  return rondo_capture_add(stream, call, &params);
}

rondo_status rondo_event_record_external(rondo_event *event, rondo_stream *stream) {
  return add_external("rondo_event_record_external", RONDO_NODE_EVENT_RECORD, event, stream);
}

rondo_status rondo_stream_wait_event_external(rondo_stream *stream, rondo_event *event) {
  return add_external("rondo_stream_wait_event_external", RONDO_NODE_EVENT_WAIT, event, stream);
}

/* Queries --------------------------------------------------------------------------------------------------------- */

static rondo_status check_query(const char *call, const rondo_event *event) {
  RONDO_TRY(rondo_check_call(call, "the event", event));
  if (event->capture != NULL) return rondo_capture_refuse_event(event, call);
  return rondo_capture_refuse_unsafe(call);
}

rondo_status rondo_event_query(rondo_event *event) {
  RONDO_TRY(check_query("rondo_event_query", event));
  const rondo_status status = event->driver->ops->query(event->driver);
  if (status == RONDO_OK) rondo_pools_event_waited(event->device, &event->order, false);
  return status;
}

rondo_status rondo_event_synchronize(rondo_event *event) {
  RONDO_TRY(check_query("rondo_event_synchronize", event));
  const rondo_status status = event->driver->ops->synchronize(event->driver);
  if (status == RONDO_OK) rondo_pools_event_waited(event->device, &event->order, true);
  return status;
}

static rondo_status check_timed(const char *call, const char *what, const rondo_event *event) {
  RONDO_TRY(rondo_check_call(call, what, event));
  if (event->capture != NULL) return rondo_capture_refuse_event(event, call);
  if (!event->driver->timing)
    return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_NO_TIMING,
                      "%s: %s was created without timing: set .timing in rondo_event_options", call, what);
  if (!event->recorded)
    return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_EVENT_NOT_RECORDED, "%s: %s was never recorded", call, what);
  return RONDO_OK;
}

rondo_status rondo_event_elapsed(const rondo_event *start, const rondo_event *end, double *out_microseconds) {
  const char *const call = "rondo_event_elapsed";
  RONDO_TRY(rondo_check_call(call, "out_microseconds", out_microseconds));
  *out_microseconds = 0;
  RONDO_TRY(check_timed(call, "the start event", start));
  RONDO_TRY(check_timed(call, "the end event", end));
  RONDO_TRY(rondo_require_device(call, "the end event", start->device, end->device));
  RONDO_TRY(start->driver->ops->query(start->driver));
  RONDO_TRY(end->driver->ops->query(end->driver));
  int64_t elapsed_ns;
  RONDO_TRY(start->driver->ops->elapsed(start->driver, end->driver, &elapsed_ns));
  *out_microseconds = (double)elapsed_ns / 1000.0;
  return RONDO_OK;
}
