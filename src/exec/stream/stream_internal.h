/* SPDX-License-Identifier: MIT
 * Streams and events inside this layer. A stream is a device's queue and, while it is part of a capture, a frontier:
 * the nodes that its next node will depend on. An event is a device's event or, if it was last recorded in a capture,
 * the frontier of that moment.
 *
 * Threads: a stream and an event belong to one thread at a time. The pointer to a stream's capture is atomic, because
 * the thread that ends the capture resets it. Other fields that belong to a capture are accessed by the stream's own
 * calls, or with the lock of captures (capture_internal.h).
 */
#ifndef RONDO_EXEC_STREAM_STREAM_INTERNAL_H
#define RONDO_EXEC_STREAM_STREAM_INTERNAL_H

#include <assert.h>

#include <rondo/stream.h>

#include "base/array.h"
#include "exec/api_check.h"
#include "graph/graph_internal.h"
#include "memory/heap/graph_heap.h"
#include "memory/pool/memory_pool.h"

typedef struct rondo_capture rondo_capture;
typedef RONDO_ARRAY(rondo_node) rondo_frontier;

/* A weak, counted reference to a stream, for users that keep it longer than one call. When a stream is destroyed, its
 * work is done. */
typedef struct rondo_stream_tie {
  rondo_allocator allocator;
  atomic_uint references; /* one of the stream, and one of each user */
  rondo_stream *stream;   /* NULL after it was destroyed */
} rondo_stream_tie;

struct rondo_stream {
  rondo_queue *queue;
  rondo_device *device;
  _Atomic(rondo_capture *) capture; /* that the stream is part of, or NULL */
  bool synchronous;                 /* wait after each operation (GX-9) */
  uint32_t holds;                   /* callbacks in progress that use it: it cannot be destroyed */
  uint32_t lends;                   /* compiled programs and sessions that run on it: likewise */
  rondo_heap *heap;                 /* for graph memory; the first launch that needs it sets it */
  rondo_stream_order order;         /* the frees that its next work comes after */
  rondo_frontier frontier;
  rondo_node last;           /* the last node captured from this stream, which must be joined; zeros: none */
  rondo_stream *next_member; /* in the capture's list */
  rondo_stream_tie *tie;     /* rondo_stream_tie_make sets it */
  char *name;
  char label[RONDO_STREAM_LABEL]; /* for messages: "stream 'copies'", or by its number, "stream 3" */
};

struct rondo_event {
  rondo_counted_event counted; /* must be the first field: graphs retain the event by it */
  rondo_device *device;
  rondo_device_event *driver;
  atomic_uint references;   /* one of the user, and one of each node that names it */
  bool recorded;            /* at least once, on a queue or by a launch */
  rondo_event_order order;  /* the frees that the last record comes after */
  rondo_capture *capture;   /* in which it was last recorded; a reference. NULL: recorded on a queue, or never */
  rondo_device_event *mark; /* that record in the driver's own capture, or NULL */
  rondo_frontier frontier;
  rondo_event *next; /* in a list of destroyed events of the device */
  /* The release of the last reference moves the event to these lists or, if this is set, calls it. Then the event
   * represents an object of another folder. */
  void (*ended)(rondo_event *event);
};

/* For nodes that name the event. A destroyed event is reused only after all nodes have released it. */
void rondo_event_retain(rondo_event *event);
void rondo_event_release(rondo_event *event);

static inline rondo_capture *rondo_stream_capture(const rondo_stream *stream) {
  return atomic_load_explicit(&stream->capture, memory_order_relaxed);
}

/* Retains the stream's tie, which the first call creates. Threads: as the stream. */
RONDO_MUST_USE rondo_status rondo_stream_tie_make(rondo_stream *stream, rondo_stream_tie **out);
void rondo_stream_tie_release(rondo_stream_tie *tie); /* NULL is allowed */

/* Between the two calls, a callback of the user uses the stream, so it cannot be destroyed. Threads: as the stream. */
static inline void rondo_stream_hold(rondo_stream *stream) { stream->holds++; }
static inline void rondo_stream_let_go(rondo_stream *stream) {
  assert(stream->holds > 0);
  stream->holds--;
}

/* Between the two calls, an object runs its work on the caller's stream, so it cannot be destroyed. Threads: as the
 * stream. */
static inline void rondo_stream_lend(rondo_stream *stream) { stream->lends++; }
static inline void rondo_stream_return(rondo_stream *stream) {
  assert(stream->lends > 0);
  stream->lends--;
}

/* rondo_stream_synchronize for the library's own waits: only a capture of this stream forbids it. `call` is the call
 * that is refused then. */
RONDO_MUST_USE rondo_status rondo_stream_drain(rondo_stream *stream, const char *call);

/* The same, but a failure of the work is returned by the next synchronization. */
RONDO_MUST_USE rondo_status rondo_stream_await(rondo_stream *stream, const char *call);

/* rondo_copy_async without checks, on a stream that does not capture. */
RONDO_MUST_USE rondo_status rondo_stream_copy(rondo_stream *stream, void *dst, const void *src, size_t bytes);

/* Waits for the work that `call` has just enqueued, on a synchronous device. */
RONDO_MUST_USE rondo_status rondo_stream_settle(rondo_stream *stream, const char *call);

/* INVALID_STATE/WRONG_THREAD if the stream is the default stream of another thread. For calls that pass the native
 * handle on. */
RONDO_MUST_USE static inline rondo_status rondo_stream_require_thread(const rondo_stream *stream) {
  const rondo_queue_ops *ops = stream->queue->ops;
  return __builtin_expect(ops->require_thread == NULL, 1) ? RONDO_OK : ops->require_thread(stream->queue);
}

/* The stream's heap. The first call acquires it. */
RONDO_MUST_USE rondo_status rondo_stream_heap(rondo_stream *stream, rondo_heap **out);

/* Notes that the event was recorded on the stream, by itself or by a node in a launch. */
void rondo_event_note_recorded(rondo_event *event, const rondo_stream *stream);

/* Releases the capture in which the event was recorded, if any. */
void rondo_event_leave_capture(rondo_event *event);

#endif
