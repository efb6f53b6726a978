/* SPDX-License-Identifier: MIT
 * A capture and the driver's own, where the device has one (rondo_capture_ops in driver.h); elsewhere everything here
 * does nothing. There is one frontier, the driver's: before anything is added to a stream, its frontier is read from
 * the driver, and what libraries captured meanwhile is imported; after it the driver is told. Threads: as the capture.
 */
#ifndef RONDO_EXEC_CAPTURE_CAPTURE_DRIVER_H
#define RONDO_EXEC_CAPTURE_CAPTURE_DRIVER_H

#include "exec/capture/capture_internal.h"

/* The driver begins to capture the origin's queue. */
RONDO_MUST_USE rondo_status rondo_capture_begin_driver(rondo_capture *capture);

/* Makes the stream's frontier what the driver's is now. A driver's capture that was broken makes this one invalid: the
 * cause is work of a library's between the last node known and `call`. */
RONDO_MUST_USE rondo_status rondo_capture_follow(rondo_stream *stream, const char *call);

/* The driver gets a node that was made behind the stream's frontier, which was followed: it becomes the driver's
 * frontier. The capture is invalid when that fails. */
RONDO_MUST_USE rondo_status rondo_capture_tell(rondo_stream *stream, const char *call, rondo_node node);

/* The stream's frontier was set by hand: the driver gets it. The capture is invalid when that fails. */
RONDO_MUST_USE rondo_status rondo_capture_tell_frontier(rondo_stream *stream, const char *call);

/* Recording and waiting, behind what the capture itself makes of it. */
RONDO_MUST_USE rondo_status rondo_capture_tell_record(rondo_stream *stream, rondo_event *event);
RONDO_MUST_USE rondo_status rondo_capture_tell_wait(rondo_stream *stream, const rondo_event *event);

/* Ends the driver's capture, whatever `status` is. When that is RONDO_OK the rest is imported, and the graph keeps the
 * driver's. Returns the first failure. */
RONDO_MUST_USE rondo_status rondo_capture_end_driver(rondo_capture *capture, rondo_status status);

#endif
