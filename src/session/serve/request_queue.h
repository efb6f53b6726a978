/* SPDX-License-Identifier: MIT
 * Requests: a bounded number of slots, a queue for each model, and tickets. A ticket contains the number of a slot,
 * which changes when the slot is used again. So a stale ticket is recognised.
 */
#ifndef RONDO_SESSION_SERVE_REQUEST_QUEUE_H
#define RONDO_SESSION_SERVE_REQUEST_QUEUE_H

#include "session/session_internal.h"

/* Gives new slots their numbers. */
void rondo_slots_init_numbers(rondo_slot *slots, uint32_t count);

/* Under the lock. Append adds a request to the end of the queue, and remove removes it. Finish answers a request; after
 * a failure, its result is `status` with the thread's last error. */
void rondo_queue_append(rondo_session *session, rondo_slot *slot);
void rondo_queue_remove(rondo_session *session, rondo_slot *slot);
void rondo_slot_finish(rondo_slot *slot, rondo_status status);

/* Under the lock. Makes the slot of an answered request free. */
void rondo_slot_free(rondo_slot *slot);

/* Under the lock. Removes requests whose deadline is at or before `now`, and fails them. */
void rondo_queue_expire(rondo_session *session, uint64_t now);

/* The same. Counts a request that is late, and returns the failure that it is to end with. */
RONDO_MUST_USE rondo_status rondo_request_fail_late(const rondo_slot *slot);

/* Under the lock. Walks the queues of all models and asserts that lists, trees and counters agree. */
void rondo_session_queue_check(const rondo_session *session);

#endif
