/* SPDX-License-Identifier: MIT
 * Traces: begin and end of host calls and of device work, counters and instants, passed to a sink. Tracing is off by
 * default; each trace point then costs one load and one branch.
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
  uint64_t track;   /* the number of the thread that ran it */
  uint64_t time_ns; /* monotonic clock */
  double value;     /* counters only */
} rondo_trace_event;

/* May be called from any thread, also from several at once. Must not call Rondo. The event is valid during the call. */
typedef void (*rondo_trace_fn)(void *user, const rondo_trace_event *event);

/* Installs the sink of the process; fn = NULL removes it. When the call returns, the previous sink is no longer
 * running: the call waits for it. So never call it from the sink, or while holding a lock that the sink takes. A file
 * of rondo_trace_open_json gets no more events and stays open until rondo_trace_close_json. Thread-safe. */
RONDO_API void rondo_trace_set_sink(rondo_trace_fn fn, void *user);

/* Writes all later trace events to `path`, in the JSON array form of the Chrome trace event format, which Chrome's
 * about:tracing and Perfetto read (document "Trace Event Format"). RONDO_TRACE=PATH does the same from the first device
 * on. It replaces an installed sink and ends a file that was opened earlier; if that file could not be written
 * completely, the log says so. Each event is in the file before the call that traced it continues, so nothing is lost
 * if the program crashes; only the closing bracket is then missing, which the format allows. An existing file at `path`
 * is replaced, as described in <rondo/files.h>, as soon as the first line of the new file is on the disk; it stays if
 * that line cannot be written. If a later event cannot be written, the file ends with the last complete one.
 * Thread-safe.
 * Errors: INVALID_ARGUMENT (NULL), INVALID_STATE (this file is already being written), IO_ERROR (cannot be written),
 * OUT_OF_MEMORY. */
RONDO_API RONDO_MUST_USE rondo_status rondo_trace_open_json(const char *path);

/* Ends and closes the file of rondo_trace_open_json. Does nothing if no file is open. Thread-safe. Errors: IO_ERROR if
 * something could not be written since it was opened. */
RONDO_API RONDO_MUST_USE rondo_status rondo_trace_close_json(void);

RONDO_EXTERN_C_END

#endif
