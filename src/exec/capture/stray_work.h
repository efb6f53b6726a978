/* SPDX-License-Identifier: MIT
 * Stray work. While a thread captures work to replay it later, what it enqueues on a stream that captures nothing runs
 * once, and is missing from every replay. The driver allows that (C2), and so does Rondo for captures that the user
 * begins. A *watch* is for callers that run other people's code during a capture. While it is active, its thread cannot
 * enqueue work outside of captures: such work is refused by name and makes the watched stream's capture invalid. The
 * watch keeps the refusal, so that code that ignores it changes nothing.
 *
 * These are not stray: work that another capture takes; calls that wait for the device or query its state (C6 and C9
 * cover them); preparation (creating, instantiating, uploading); and the library's internal work, which does not use
 * the public calls. Work on a native handle is not detected.
 *
 * Threads: a watch belongs to its thread. Calls look for it only while the process has a capture or a watch.
 */
#ifndef RONDO_EXEC_CAPTURE_STRAY_WORK_H
#define RONDO_EXEC_CAPTURE_STRAY_WORK_H

#include <rondo/stream.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/component.h"

#define RONDO_STRAY_MESSAGE 640

typedef struct rondo_capture rondo_capture;

/* Where the first stray work was enqueued. */
typedef enum rondo_stray {
  RONDO_STRAY_NONE = 0,
  RONDO_STRAY_STREAM, /* another stream of the device, or the stream itself when its capture is over */
  RONDO_STRAY_DEVICE  /* a stream of another device */
} rondo_stray;

typedef struct rondo_capture_watch {
  struct rondo_capture_watch *outer; /* the enclosing watch */
  const char *name;                  /* of the code whose work is captured, for messages */
  rondo_stream *stream;              /* on which that code enqueues */
  rondo_stray stray;
  char message[RONDO_STRAY_MESSAGE]; /* of the refusal */
} rondo_capture_watch;

/* The thread is watched until the end, inside of its other watches. Name and stream outlive the watch. */
void rondo_capture_watch_begin(rondo_capture_watch *watch, const char *name, rondo_stream *stream);
void rondo_capture_watch_end(rondo_capture_watch *watch);

/* No watch is active between the pause and the resumption, to which the result of the pause is passed. */
rondo_capture_watch *rondo_capture_watch_pause(void);
void rondo_capture_watch_resume(rondo_capture_watch *paused);

/* A wait for an event that is not of the capture was refused, and made the capture invalid. Watches of its streams note
 * it as stray, since launches would not wait. `which` says what event it was; `remedy` is for the author of the work
 * that is recorded. */
void rondo_capture_watch_note_wait(const rondo_capture *capture, const char *which, const char *remedy);

/* For a call that changes something at once, which replays would not repeat. If the thread is watched, the watched
 * captures become invalid, and the caller must refuse the call. */
bool rondo_capture_watch_spoil(const char *call);

/* The number of captures and watches in the process. While it is 0, the checks for captures are this one load. */
extern atomic_uint rondo_capture_count;

/* CAPTURE_REFUSED/STRAY_WORK if the thread is watched and `call` would run work at once on the stream. */
RONDO_PRIVATE RONDO_MUST_USE rondo_status rondo_capture_watch_refuse(rondo_stream *stream, const char *call);
RONDO_MUST_USE static inline rondo_status rondo_capture_refuse_stray(rondo_stream *stream, const char *call) {
  if (__builtin_expect(atomic_load_explicit(&rondo_capture_count, memory_order_relaxed) == 0, 1)) return RONDO_OK;
  return rondo_capture_watch_refuse(stream, call);
}

/* Whether work would not be refused, on a stream that is not known to capture. */
bool rondo_capture_watch_allows(rondo_stream *stream);

#endif
