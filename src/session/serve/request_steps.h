/* SPDX-License-Identifier: MIT
 * Lengths and sequences of requests: which length of a model runs a request, the steps of a request with a sequence,
 * and the parts of a step that has more positions than the longest length.
 */
#ifndef RONDO_SESSION_SERVE_REQUEST_STEPS_H
#define RONDO_SESSION_SERVE_REQUEST_STEPS_H

#include "session/session_internal.h"

/* The checks of a request that need no model. */
RONDO_MUST_USE rondo_status rondo_request_check_lengths(const char *call, const rondo_request *request);

/* All others are called under the lock, except for ask.
 *
 * Finds the length of the model that runs the first part, and checks the request against it. */
RONDO_MUST_USE rondo_status rondo_request_find_length(const char *call, rondo_session_model *named, const char *name,
                                                      const rondo_request *request, rondo_session_model **out);

/* UNSUPPORTED if the session is strict or the request asks for graphs, and one of its parts has none. */
RONDO_MUST_USE rondo_status rondo_request_require_graphs(const char *call, rondo_session_model *model,
                                                         const rondo_request *request);

/* Finds the sequence, which no other request uses and which has space. NULL: the model has none, or it is captured. */
RONDO_MUST_USE rondo_status rondo_request_find_sequence(const char *call, const rondo_session_model *model,
                                                        const rondo_request *request, struct rondo_cache_slot **out);

/* Fills in the first part of an accepted request, which uses the sequence until the end of its use. */
void rondo_steps_begin(rondo_slot *slot, const rondo_request *request, struct rondo_cache_slot *sequence);
void rondo_steps_end(rondo_slot *slot);

/* After a batch that succeeded. Ask calls the functions that write the next steps, without the lock. Go on then returns
 * whether a request is in the queue again; if not, *out_status is the result of the request. */
void rondo_steps_ask(const rondo_batch *batch);
bool rondo_steps_go_on(rondo_slot *slot, rondo_status *out_status);

#endif
