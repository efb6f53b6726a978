/* SPDX-License-Identifier: MIT
 * Requests: taken into a bounded number of slots, queued, waited for, by tickets that say a slot's number.
 */
#ifndef RONDO_SESSION_SERVE_REQUEST_QUEUE_H
#define RONDO_SESSION_SERVE_REQUEST_QUEUE_H

#include "session/session_internal.h"

/* request_queue.c: numbers for slots that are new. */
void rondo_slots_init_numbers(rondo_slot *slots, uint32_t count);

/* Under the lock. Puts a request at the end of the queue; takes it out of there; and gives it its answer, of which
 * `status` and the thread's last error are what went wrong. */
void rondo_queue_append(rondo_session *session, rondo_slot *slot);
void rondo_queue_remove(rondo_session *session, rondo_slot *slot);
void rondo_slot_finish(rondo_slot *slot, rondo_status status);

/* Takes those out whose deadline has passed by now. */
void rondo_queue_expire(rondo_session *session, uint64_t now);

#endif
