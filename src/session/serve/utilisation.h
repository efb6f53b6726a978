/* SPDX-License-Identifier: MIT
 * Utilisation: two events around the work of each part, and the union of the spans between them over all workers.
 */
#ifndef RONDO_SESSION_SERVE_UTILISATION_H
#define RONDO_SESSION_SERVE_UTILISATION_H

#include "session/session_internal.h"

/* utilisation.c: how long work is under way on the device, in a session that is timed. begin and end stand around the
 * work, keep is called once it is done, by who has claimed the worker; take counts what was kept, also of another
 * worker. And how long the host takes: read says the clock's time, 0 in a session that is not timed; the others count,
 * under the lock.
 */
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
