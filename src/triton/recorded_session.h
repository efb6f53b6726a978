/* SPDX-License-Identifier: MIT
 * A session with a model that is recorded at the sizes that were chosen for its requests.
 */
#ifndef RONDO_TRITON_RECORDED_SESSION_H
#define RONDO_TRITON_RECORDED_SESSION_H

#include "triton/served_types.h"

/* Creates a session on the device, adds the model, and chooses and records sizes for the requests that came until now.
 * Any thread, while requests are served by another one. Errors: those of rondo_session_create, rondo_session_add_model
 * and rondo_session_capture; INVALID_ARGUMENT with OUT_OF_RANGE (parameters of the configuration);
 * INVALID_STATE/ABORTED (the choice of sizes is unwanted). */
RONDO_MUST_USE rondo_status rondo_triton_recorded_make(const rondo_triton_served *served, rondo_triton_recorded **out);

/* NULL is fine. Errors: those of rondo_session_destroy; the memory is freed nevertheless. */
RONDO_MUST_USE rondo_status rondo_triton_recorded_free(const rondo_triton_served *served,
                                                       rondo_triton_recorded *recorded);

/* For the watching thread, or after it has ended: reports the session's metrics; sizes of memory are those of the
 * session that takes new requests. */
void rondo_triton_recorded_report(rondo_triton_served *served, rondo_triton_recorded *recorded);

#endif
