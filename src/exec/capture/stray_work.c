/* SPDX-License-Identifier: MIT
 * Watches for stray work; see stray_work.h. A watch counts as a capture in rondo_capture_count, so that calls look for
 * it even after its capture was abandoned while the watched code runs on.
 */
#include "exec/capture/stray_work.h"

#include <assert.h>
#include <stdio.h>

#include "exec/capture/capture_internal.h"

static _Thread_local rondo_capture_watch *innermost;

void rondo_capture_watch_begin(rondo_capture_watch *watch, const char *name, rondo_stream *stream) {
  *watch = (rondo_capture_watch){.outer = innermost, .name = name, .stream = stream};
  innermost = watch;
  atomic_fetch_add_explicit(&rondo_capture_count, 1, memory_order_relaxed);
}

void rondo_capture_watch_end(rondo_capture_watch *watch) {
  assert(innermost == watch);
  innermost = watch->outer;
  atomic_fetch_sub_explicit(&rondo_capture_count, 1, memory_order_relaxed);
}

rondo_capture_watch *rondo_capture_watch_pause(void) {
  rondo_capture_watch *paused = innermost;
  innermost = NULL;
  return paused;
}

void rondo_capture_watch_resume(rondo_capture_watch *paused) {
  assert(innermost == NULL);
  innermost = paused;
}

bool rondo_capture_watch_allows(rondo_stream *stream) {
  return rondo_capture_adopt(stream) == NULL && innermost == NULL;
}

static rondo_stray stray_of(const rondo_capture_watch *watch, const rondo_stream *stream) {
  return stream->device == watch->stream->device ? RONDO_STRAY_STREAM : RONDO_STRAY_DEVICE;
}

static void describe(char message[RONDO_STRAY_MESSAGE], const rondo_capture_watch *watch, const rondo_stream *stream,
                     const char *call) {
  const rondo_stream *own = watch->stream;
  if (stream == own)
    (void)snprintf(
        message, RONDO_STRAY_MESSAGE,
        "%s: %s does not capture any more, but '%.60s', which was being recorded there, still runs: its work would "
        "be missing from the recording; return the error that ended the recording",
        call, stream->label, watch->name);
  else if (stream->device != own->device)
    (void)snprintf(message, RONDO_STRAY_MESSAGE,
                   "%s: %s is of device '%s', and '%.60s' is being recorded on %s of device '%s': this work would run "
                   "once, now, and be missing from replays; move it to a function of a tree of its own device",
                   call, stream->label, stream->device->name, watch->name, own->label, own->device->name);
  else
    (void)snprintf(
        message, RONDO_STRAY_MESSAGE,
        "%s: '%.60s' is being recorded on %s, and %s is not part of it: this work would run once, now, and be "
        "missing from replays; fork %s with an event of %s that it waits for, and join it before the end "
        "(rondo_event_record, rondo_stream_wait_event)",
        call, watch->name, own->label, stream->label, stream->label, own->label);
}

/* The first stray work of a watch counts. */
static void note(rondo_capture_watch *watch, const rondo_stream *stream, const char *call) {
  rondo_capture *capture = rondo_stream_capture(watch->stream);
  if (capture != NULL) rondo_capture_invalidate(capture, "%s on %s, which is not part of it", call, stream->label);
  if (watch->stray != RONDO_STRAY_NONE) return;
  watch->stray = stray_of(watch, stream);
  describe(watch->message, watch, stream, call);
}

void rondo_capture_watch_note_wait(const rondo_capture *capture, const char *which, const char *remedy) {
  for (rondo_capture_watch *at = innermost; at != NULL; at = at->outer) {
    if (at->stray != RONDO_STRAY_NONE || rondo_stream_capture(at->stream) != capture) continue;
    at->stray = RONDO_STRAY_STREAM;
    (void)snprintf(at->message, sizeof at->message,
                   "rondo_stream_wait_event: '%.60s' is being recorded on %s, which cannot wait for an event %s: %s",
                   at->name, at->stream->label, which, remedy);
  }
}

bool rondo_capture_watch_spoil(const char *call) {
  for (rondo_capture_watch *at = innermost; at != NULL; at = at->outer) {
    rondo_capture *capture = rondo_stream_capture(at->stream);
    if (capture != NULL) rondo_capture_invalidate(capture, "%s", call);
  }
  return innermost != NULL;
}

rondo_status rondo_capture_watch_refuse(rondo_stream *stream, const char *call) {
  const rondo_capture_watch *watch = innermost;
  if (watch == NULL || rondo_stream_find_capture(stream) != NULL) return RONDO_OK;
  for (rondo_capture_watch *at = innermost; at != NULL; at = at->outer) note(at, stream, call);
  char message[RONDO_STRAY_MESSAGE];
  describe(message, watch, stream, call);
  return rondo_fail(RONDO_CAPTURE_REFUSED, RONDO_REASON_STRAY_WORK, "%s", message);
}
