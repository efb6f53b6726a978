/* SPDX-License-Identifier: MIT
 * A request of the server as a request of a session: its inputs where the server has them, its outputs where the server
 * wants them.
 */
#ifndef RONDO_TRITON_REQUEST_BINDING_H
#define RONDO_TRITON_REQUEST_BINDING_H

#include "triton/served_types.h"

/* Makes the response with its outputs, and sets the flight's request, without `done`. With max_tokens, responses are
 * made later (token_generation.h). Errors, which name the value:
 * INVALID_ARGUMENT with UNKNOWN_NAME, TYPE, SHAPE, BAD_SIZE; UNSUPPORTED/WRONG_MEMORY (memory of another GPU, or of a
 * GPU in a model with lengths);
 * INVALID_STATE/ABORTED (it was cancelled already); OUT_OF_MEMORY; those of the server. After a failure the response is
 * the flight's, if there is one. */
RONDO_MUST_USE rondo_status rondo_triton_bind(rondo_triton_flight *flight);

/* An output of the flight's response, and its memory. Errors: those of the server; UNSUPPORTED/WRONG_MEMORY;
 * LIMIT_EXCEEDED/BAD_SIZE. */
RONDO_MUST_USE rondo_status rondo_triton_make_output(rondo_triton_flight *flight, const rondo_triton_tensor *tensor,
                                                     size_t rows, size_t length, void **out);

/* Frees what binding took. */
void rondo_triton_unbind(rondo_triton_flight *flight);

#endif
