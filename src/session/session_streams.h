/* SPDX-License-Identifier: MIT
 * Streams of the caller's, on which a session runs (rondo_session_options.stream_list).
 */
#ifndef RONDO_SESSION_SESSION_STREAMS_H
#define RONDO_SESSION_SESSION_STREAMS_H

#include "session/session_internal.h"

/* Take the streams for the workers, and return those that were taken. Taking reads options.stream_list, which belongs
 * to the caller. Threads: no worker runs. */
RONDO_MUST_USE rondo_status rondo_session_streams_take(rondo_session *session);
void rondo_session_streams_return(rondo_session *session);

#endif
