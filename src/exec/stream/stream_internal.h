/* SPDX-License-Identifier: MIT
 * Streams and events inside this layer. A stream is a device's queue and, while it is part of a capture, a frontier:
 * the nodes that its next node will depend on. An event is a device's event or, if it was last recorded in a capture,
 * the frontier of that moment.
 *
 * Threads: a stream and an event belong to one thread at a time. A capture that ends takes its streams out of it from
 * the thread that ends it, so the pointer to it is atomic. What else a capture changes in a stream is touched by the
 * stream's own calls, or with the capture's lock held (capture_internal.h).
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

/* A counted link to a stream, for users that keep it longer than one call. The work of a stream that is destroyed is
 * done. */
typedef struct rondo_stream_tie {
  rondo_allocator allocator;
  atomic_uint references; /* the stream's, and one of each user */
  rondo_stream *stream;   /* NULL after it was destroyed */
} rondo_stream_tie;

struct rondo_stream {
  rondo_queue *queue;
  rondo_device *device;
  _Atomic(rondo_capture *) capture; /* that it is part of; NULL when none */
  bool synchronous;                 /* wait after each operation (GX-9) */
  uint32_t holds;                   /* callbacks under way that work on it: it is not destroyed */
  rondo_heap *heap;                 /* for graph memory; NULL before the first launch that needs it */
  rondo_stream_order order;         /* which frees its next work comes after */
  rondo_frontier frontier;
  rondo_node last; /* the last node captured from this stream, for the join test; no node when there is none to join */
  rondo_stream *next_member; /* in the capture's list */
  rondo_stream_tie *tie;     /* NULL before someone asked for it */
  char *name;
  char label[RONDO_STREAM_LABEL]; /* for messages: "stream 'copies'", or by its number, "stream 3" */
};

struct rondo_event {
  rondo_counted_event counted; /* must come first: how graphs retain it */
  rondo_device *device;
  rondo_device_event *driver;
  atomic_uint references;   /* the user's, and one of each node that names it; with the last it goes to the free list */
  bool recorded;            /* ever, on a queue or by a launch */
  rondo_event_order order;  /* which frees the last record comes after */
  rondo_capture *capture;   /* it was last recorded in; a reference. NULL when on a queue or never */
  rondo_device_event *mark; /* that record in the driver's own capture; NULL when there is none */
  rondo_frontier frontier;
  rondo_event *next; /* in the device's lists of destroyed events */
  /* NULL: with the last reference it goes to these lists. Otherwise the event represents an object of another
   * folder, and this function is called when the last reference is released. */
  void (*ended)(rondo_event *event);
};

/* For nodes that name the event. An event that its user destroys is not used again before all nodes release it. */
void rondo_event_retain(rondo_event *event);
void rondo_event_release(rondo_event *event);

static inline rondo_capture *rondo_stream_capture(const rondo_stream *stream) {
  return atomic_load_explicit(&stream->capture, memory_order_relaxed);
}

/* Retains the stream's tie, which the first call makes. Threads: with the stream. */
RONDO_MUST_USE rondo_status rondo_stream_tie_make(rondo_stream *stream, rondo_stream_tie **out);
void rondo_stream_tie_release(rondo_stream_tie *tie); /* NULL is fine */

/* A callback of the user's works on the stream between the two calls, so that destroying it is refused. Threads: with
 * the stream. */
static inline void rondo_stream_hold(rondo_stream *stream) { stream->holds++; }
static inline void rondo_stream_let_go(rondo_stream *stream) {
  assert(stream->holds > 0);
  stream->holds--;
}

/* As rondo_stream_synchronize, where the library itself has to wait: only a capture that has the stream forbids it.
 * `call` is what is refused then. */
RONDO_MUST_USE rondo_status rondo_stream_drain(rondo_stream *stream, const char *call);

/* The same, but a failure of the work is left for the next synchronisation to return. */
RONDO_MUST_USE rondo_status rondo_stream_await(rondo_stream *stream, const char *call);

/* rondo_copy_async of memory that the caller knows, unchecked, on a stream that captures nothing. */
RONDO_MUST_USE rondo_status rondo_stream_copy(rondo_stream *stream, void *dst, const void *src, size_t bytes);

/* On a synchronous device: waits for what `call` has just enqueued. */
RONDO_MUST_USE rondo_status rondo_stream_settle(rondo_stream *stream, const char *call);

/* The stream's heap. The first call acquires it. */
RONDO_MUST_USE rondo_status rondo_stream_heap(rondo_stream *stream, rondo_heap **out);

/* The event was recorded on the stream; a launch there counts as recording the events of its nodes. */
void rondo_event_note_recorded(rondo_event *event, const rondo_stream *stream);

/* Releases the capture that the event was recorded in, if there is one. */
void rondo_event_leave_capture(rondo_event *event);

#endif
