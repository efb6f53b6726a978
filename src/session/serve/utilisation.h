/* SPDX-License-Identifier: MIT
 * How long the device works, measured with two events around each part, and how long the host takes to form batches and
 * to enqueue graphs. All functions do nothing in a session that is not timed.
 */
#ifndef RONDO_SESSION_SERVE_UTILISATION_H
#define RONDO_SESSION_SERVE_UTILISATION_H

#include "session/session_internal.h"

/* `begin` and `end` record the events around the work of a part, and `keep` is called when it is done; the caller has
 * claimed the worker. `collect` counts the kept spans. `read_clock` returns 0 in a session that is not timed. The two
 * `count` functions are called under the session's lock. */
RONDO_MUST_USE rondo_status rondo_utilisation_open(rondo_session *session);
void rondo_utilisation_close(rondo_session *session);
RONDO_MUST_USE rondo_status rondo_utilisation_begin(rondo_stream_worker *worker, rondo_stream *stream);
RONDO_MUST_USE rondo_status rondo_utilisation_end(rondo_stream_worker *worker, rondo_stream *stream);
void rondo_utilisation_keep(rondo_stream_worker *worker);
void rondo_utilisation_collect(rondo_stream_worker *worker);
uint64_t rondo_utilisation_read_clock(const rondo_session *session);
void rondo_utilisation_count_forming(rondo_session *session, size_t requests, uint64_t begin_ns);
void rondo_utilisation_count_enqueue(rondo_stream_worker *worker);

#endif
