/* SPDX-License-Identifier: MIT
 * What ran when: begin and end of host calls and of device work, counters and instants, handed to a sink.
 * Off by default; then it costs one load and one branch where it stands.
 */
#ifndef RONDO_TRACE_H
#define RONDO_TRACE_H

#include <stdint.h>

#include <rondo/status.h>

RONDO_EXTERN_C_BEGIN

typedef enum rondo_trace_kind {
  RONDO_TRACE_BEGIN = 0, /* a span begins on `track` */
  RONDO_TRACE_END = 1,   /* the innermost open span of `track` ends */
  RONDO_TRACE_INSTANT = 2,
  RONDO_TRACE_COUNTER = 3 /* `value` is the counter's new value */
} rondo_trace_kind;

typedef struct rondo_trace_event {
  rondo_trace_kind kind;
  const char *area; /* "exec", "cpu", ... */
  const char *name;
  uint64_t track;   /* a number of the thread that ran it */
  uint64_t time_ns; /* monotonic clock */
  double value;     /* counters only */
} rondo_trace_event;

/* May be called from any thread, also from several at once; must not call Rondo. The event lives for the call only. */
typedef void (*rondo_trace_fn)(void *user, const rondo_trace_event *event);

/* Installs the process's one sink; fn = NULL takes it away. When it returns, the old sink is no longer running: it
 * waits for calls that are under way, so never call it from the sink or with a lock held that the sink takes. A file
 * begun by rondo_trace_open_json gets no more events and stays open until rondo_trace_close_json. Thread-safe. */
RONDO_API void rondo_trace_set_sink(rondo_trace_fn fn, void *user);

/* Writes everything traced from now on to `path`, in the JSON array form of the Chrome trace event format, which
 * Chrome's about:tracing and Perfetto read (document "Trace Event Format"). RONDO_TRACE=PATH does the same from the
 * first device on. Replaces an installed sink; a file begun earlier is ended, and what could not be written to it is
 * said through the log. Each event is in the file when the call that traced it goes on, so that nothing is lost when
 * the program crashes; the closing bracket is then missing, which the format allows. An older file at `path` is
 * replaced, as <rondo/files.h> says, as soon as the first line of the new one is on the disk: it stays when there is no
 * room for that. When there is no room for a later event, the file ends with the last whole one. Thread-safe.
 * Errors: INVALID_ARGUMENT (NULL), INVALID_STATE (that very file is being written), IO_ERROR (cannot be written),
 * OUT_OF_MEMORY. */
RONDO_API RONDO_MUST_USE rondo_status rondo_trace_open_json(const char *path);

/* Ends the file begun by rondo_trace_open_json and closes it. Without one it does nothing. Thread-safe.
 * Errors: IO_ERROR when something could not be written, at any time since it was opened. */
RONDO_API RONDO_MUST_USE rondo_status rondo_trace_close_json(void);

RONDO_EXTERN_C_END

#endif
