/* SPDX-License-Identifier: MIT
 * Requests of models with sequences. A request waits here, and not in the session, while another request uses its
 * sequence, or while all slots are taken. Requests of one sequence run in the order in which they came.
 */
#ifndef RONDO_TRITON_SEQUENCE_REQUESTS_H
#define RONDO_TRITON_SEQUENCE_REQUESTS_H

#include "triton/served_types.h"

/* Gives a bound flight its sequence, so that it can be submitted. NOT_READY: it waits, and the watching thread submits
 * it. Errors: those of rondo_triton_sequence_begin; LIMIT_EXCEEDED with NONE (too many wait), OUT_OF_RANGE
 * (a prompt that is longer than a slot); INVALID_ARGUMENT/CALL_ORDER (the first request of a sequence lacks its
 * source). */
RONDO_MUST_USE rondo_status rondo_triton_sequence_start(rondo_triton_flight *flight);

/* Under the lock. The source of a flight was read: the watching thread submits the step. */
void rondo_triton_source_was_read(rondo_triton_flight *flight);

/* The flight is about to be answered. */
void rondo_triton_sequence_leave(rondo_triton_flight *flight, rondo_status status);

/* For the watching thread: submits those that are ready, answers those that were cancelled or are late, and closes
 * sequences that have ended. Returns whether something is left, to be tried again. */
bool rondo_triton_sequences_serve(rondo_triton_served *served);

#endif
