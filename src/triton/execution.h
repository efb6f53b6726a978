/* SPDX-License-Identifier: MIT
 * Requests that the server executes on an instance, from the call that brings them to their answers.
 */
#ifndef RONDO_TRITON_EXECUTION_H
#define RONDO_TRITON_EXECUTION_H

#include "triton/served_types.h"

/* Takes the requests, and submits them to the session together. Each is answered and released, later and by another
 * thread as a rule; a single one that takes less than 20 us, while nothing else is in flight, by this thread at once.
 * Waits while as many requests as the session takes are in flight, so that others wait in the server, by its priorities
 * and timeouts. */
void rondo_triton_execute(rondo_triton_instance *instance, triton_request *const *requests, uint32_t count);

/* Submits a flight that has its sequence: first its source, if it has one, and later the step. */
void rondo_triton_submit(rondo_triton_flight *flight);

/* Answers a flight that was not submitted with a failure. The last error is its message. */
void rondo_triton_answer(rondo_triton_flight *flight, rondo_status status);

/* Waits until no request of the instance is in flight. */
void rondo_triton_await_answers(rondo_triton_instance *instance);

/* Frees the idle flights of a session without requests. */
void rondo_triton_free_flights(rondo_triton_served *served);

/* Under the session's lock. Walks the flights and asserts that lists and counters agree. */
void rondo_triton_flights_check(const rondo_triton_served *served);

#endif
