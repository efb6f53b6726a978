/* SPDX-License-Identifier: MIT
 * The process's list of captures, for capture.c alone: whatever changes it or a capture's members takes the lock.
 */
#ifndef RONDO_EXEC_CAPTURE_CAPTURE_LIST_H
#define RONDO_EXEC_CAPTURE_CAPTURE_LIST_H

#include "exec/capture/capture_internal.h"

/* Its origin becomes its first member. */
void rondo_capture_list_add(rondo_capture *capture);

/* Takes all members out of it; it is over then. */
void rondo_capture_list_remove(rondo_capture *capture);

/* The stream becomes a member of the active capture with this number of the driver's; NULL when there is none. */
rondo_capture *rondo_capture_list_adopt(rondo_stream *stream, uint64_t driver_id);

/* The stream becomes a member, or ceases to be. Joining fails when the capture is no longer active. Leaving returns
 * whether it was the last member; if not, the capture may be over when it returns. */
RONDO_MUST_USE rondo_status rondo_capture_list_join(rondo_capture *capture, rondo_stream *stream);
bool rondo_capture_list_leave(rondo_capture *capture, rondo_stream *stream);

#endif
