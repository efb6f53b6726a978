/* SPDX-License-Identifier: MIT
 * Requests for several tokens: after each step, its outputs are a response, and one of them is the next step's input.
 * Such a request has inputs and outputs in memory of its own, because each response has buffers of its own.
 */
#ifndef RONDO_TRITON_TOKEN_GENERATION_H
#define RONDO_TRITON_TOKEN_GENERATION_H

#include "triton/served_types.h"

/* Checks that the model and its configuration let a request have several tokens, and takes memory for the outputs of a
 * step. Those that are wanted are `flight->wanted`. Errors: UNSUPPORTED/NONE; INVALID_ARGUMENT/SHAPE (an output that
 * has the length); OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_triton_generation_prepare(rondo_triton_flight *flight);

/* rondo_request_next; user: the flight. Sends the token, unless it is the last one. */
size_t rondo_triton_generation_next(void *user, const rondo_answer *answer);

/* Makes the response for the last token. Errors: those of the server. */
RONDO_MUST_USE rondo_status rondo_triton_generation_finish(rondo_triton_flight *flight);

#endif
