/* SPDX-License-Identifier: MIT
 * A capture and the driver's own capture, on devices whose driver captures (rondo_capture_ops in driver.h). On other
 * devices these functions do nothing. The driver's frontier is the one that counts: before anything is added to a
 * stream, its frontier is read from the driver, and what libraries captured since is imported. Then the driver gets the
 * new node. Threads: as the capture.
 */
#ifndef RONDO_EXEC_CAPTURE_CAPTURE_DRIVER_H
#define RONDO_EXEC_CAPTURE_CAPTURE_DRIVER_H

#include "exec/capture/capture_internal.h"

/* The driver begins to capture the origin's queue. */
RONDO_MUST_USE rondo_status rondo_capture_begin_driver(rondo_capture *capture);

/* Reads the stream's frontier from the driver. If the driver's capture was broken, this one becomes invalid: the cause
 * is a library's work between the last known node and `call`. */
RONDO_MUST_USE rondo_status rondo_capture_follow(rondo_stream *stream, const char *call);

/* Adds to the driver's capture a node that was added after the stream's frontier. Call rondo_capture_follow first. The
 * node becomes the driver's frontier. A failure makes the capture invalid. */
RONDO_MUST_USE rondo_status rondo_capture_tell(rondo_stream *stream, const char *call, rondo_node node);

/* Sets the driver's frontier to the one that the user set. A failure makes the capture invalid. */
RONDO_MUST_USE rondo_status rondo_capture_tell_frontier(rondo_stream *stream, const char *call);

/* Tells the driver that the event was recorded, or is waited for, after the capture itself has done so. */
RONDO_MUST_USE rondo_status rondo_capture_tell_record(rondo_stream *stream, rondo_event *event);
RONDO_MUST_USE rondo_status rondo_capture_tell_wait(rondo_stream *stream, const rondo_event *event);

/* Ends the driver's capture in any case. If `status` is RONDO_OK, imports the rest, and the graph keeps the driver's
 * graph. Returns the first failure. */
RONDO_MUST_USE rondo_status rondo_capture_end_driver(rondo_capture *capture, rondo_status status);

#endif
