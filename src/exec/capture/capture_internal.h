/* SPDX-License-Identifier: MIT
 * Captures: they turn the work of streams into nodes, and refuse calls that are not allowed during a capture.
 *
 * A capture has an origin (stream and thread), a mode, and member streams, each with a frontier. Streams join by
 * waiting for an event that was recorded in the capture. All members leave when it ends.
 *
 * Threads: one lock in the process protects the list of captures, their members, and the cause that made one invalid.
 * It is a leaf: no lock is taken, no memory allocated and no driver called under it. A capture's state is atomic,
 * because the refused call of any thread can make it invalid. An event that was recorded in a capture retains it.
 */
#ifndef RONDO_EXEC_CAPTURE_CAPTURE_INTERNAL_H
#define RONDO_EXEC_CAPTURE_CAPTURE_INTERNAL_H

#include <rondo/capture.h>

#include "exec/capture/capture_import.h"
#include "exec/capture/stray_work.h"
#include "exec/stream/stream_internal.h"

#define RONDO_CAPTURE_OVER 3u /* in addition to the states of rondo_capture_state */

#define RONDO_CAUSE_TEXT (RONDO_LABEL_BYTES + 208)

/* Who made a capture invalid. */
typedef enum rondo_cause_source {
  RONDO_CAUSE_OWN = 0,   /* a call of the capture's thread, which Rondo refused */
  RONDO_CAUSE_ELSEWHERE, /* such a call of another thread */
  RONDO_CAUSE_DRIVER     /* only the driver reports it: a library, or a call that the driver refused */
} rondo_cause_source;

struct rondo_capture {
  rondo_capture *next, **link; /* in the process's list */
  atomic_uint references;
  rondo_allocator allocator; /* of what it has until it is over */
  rondo_device *device;
  uint64_t id;
  rondo_graph *graph;
  bool into_given;                /* the graph is the user's */
  _Atomic(rondo_stream *) origin; /* NULL after it was destroyed: the capture is invalid, and can end on any member */
  uint64_t thread;
  rondo_capture_mode mode;
  _Atomic uint32_t state;
  char origin_name[RONDO_STREAM_LABEL];
  char cause[RONDO_CAUSE_TEXT + 64]; /* the reason why it is invalid, perhaps with a thread */
  rondo_cause_source cause_source;
  uint64_t driver_id;                               /* the driver's capture, if the driver captures too; else 0 */
  rondo_importer importer;                          /* of nodes of the driver's capture, if there is one */
  RONDO_ARRAY(uint64_t) driver_frontier;            /* workspace: the driver's names of a frontier */
  rondo_stream *members;                            /* by next_member */
  RONDO_ARRAY(struct rondo_generator *) generators; /* from which it drew; references */
};

/* The capture that the stream is part of, or NULL. A library may have joined the stream with its own events. */
rondo_capture *rondo_capture_adopt(rondo_stream *stream);
static inline rondo_capture *rondo_stream_find_capture(rondo_stream *stream) {
  rondo_capture *capture = rondo_stream_capture(stream);
  if (capture != NULL || atomic_load_explicit(&rondo_capture_count, memory_order_relaxed) == 0) return capture;
  return rondo_capture_adopt(stream);
}

/* Whether work on the stream runs at once: the stream does not capture, and no watch refuses the work as stray. */
static inline bool rondo_stream_runs_at_once(rondo_stream *stream) {
  if (rondo_stream_capture(stream) != NULL) return false;
  return atomic_load_explicit(&rondo_capture_count, memory_order_relaxed) == 0 || rondo_capture_watch_allows(stream);
}

/* The process's list of captures (capture_refusals.c), for the files of this folder. Functions that change it or a
 * capture's members take the lock. Adding a capture makes its origin the first member. Removing it removes all members
 * and sets its state to RONDO_CAPTURE_OVER. */
void rondo_capture_list_add(rondo_capture *capture);
void rondo_capture_list_remove(rondo_capture *capture);

/* Makes the stream a member of the active capture with this driver's capture id; NULL if there is none. */
rondo_capture *rondo_capture_list_adopt(rondo_stream *stream, uint64_t driver_id);

/* Add or remove a member. Joining fails if the capture is not active any more. Leaving returns whether the stream was
 * the last member; if not, another thread may end the capture at any time. */
RONDO_MUST_USE rondo_status rondo_capture_list_join(rondo_capture *capture, rondo_stream *stream);
bool rondo_capture_list_leave(rondo_capture *capture, rondo_stream *stream);

void rondo_capture_retain(rondo_capture *capture);
void rondo_capture_release(rondo_capture *capture);

/* Makes an active capture invalid. The text is the cause. */
void rondo_capture_invalidate(rondo_capture *capture, const char *format, ...) RONDO_PRINTF(2, 3);
/* The same if the driver reports it, and not Rondo. */
void rondo_capture_invalidate_by_driver(rondo_capture *capture, const char *format, ...) RONDO_PRINTF(2, 3);

/* Writes the cause of an invalid capture, and its source; false if it is not invalid. */
bool rondo_capture_find_cause(const rondo_capture *capture, char *out, size_t capacity, rondo_cause_source *out_source);

/* CAPTURE_INVALID/INVALIDATED naming the cause, unless the capture is active. */
RONDO_MUST_USE rondo_status rondo_capture_require_active(const rondo_capture *capture, const char *call);
/* The same for the call that ends the capture, also if that call fails. */
RONDO_MUST_USE rondo_status rondo_capture_require_sound(const rondo_capture *capture, const char *call);

/* Adds a node that depends on the frontier of a capturing stream. The node becomes the frontier. */
RONDO_MUST_USE rondo_status rondo_capture_add(rondo_stream *stream, const char *call, rondo_node_params *params);

/* Recording and waiting for an event, if the stream or the event belongs to a capture (C3, C7). */
RONDO_MUST_USE rondo_status rondo_capture_record_event(rondo_stream *stream, rondo_event *event);
RONDO_MUST_USE rondo_status rondo_capture_wait_event(rondo_stream *stream, rondo_event *event);

RONDO_MUST_USE rondo_status rondo_capture_mode_check(const char *call, rondo_capture_mode mode);

/* Refusals. `call` is the call that is checked. A refusal makes the captures that forbid the call invalid. */

/* C6: a call that queries the state of a stream that captures. */
RONDO_MUST_USE rondo_status rondo_capture_refuse_stream(rondo_stream *stream, const char *call);
/* C6: the same for an event that was recorded in a capture. */
RONDO_MUST_USE rondo_status rondo_capture_refuse_event(const rondo_event *event, const char *call);
/* C6: a call that queries the whole device. */
RONDO_MUST_USE rondo_status rondo_capture_refuse_device(rondo_device *device, const char *call);
/* C9: a call that acts at once and cannot be captured. */
RONDO_MUST_USE rondo_status rondo_capture_refuse_unsafe(const char *call);

/* INVALID_STATE/ALREADY_CAPTURING if a capture has the stream with this native handle, on a device whose driver does
 * not capture. */
RONDO_MUST_USE rondo_status rondo_capture_refuse_adoption(const rondo_device *device, const void *native);

/* Whether a capture on the device, not RELAXED, was begun by this thread and has not ended. */
bool rondo_capture_is_begun_here(const rondo_device *device);

/* Removes a stream that is being destroyed from its capture. */
void rondo_capture_forget_stream(rondo_stream *stream);

#endif
