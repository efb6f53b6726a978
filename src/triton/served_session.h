/* SPDX-License-Identifier: MIT
 * Sessions of models on devices, and their instances.
 */
#ifndef RONDO_TRITON_SERVED_SESSION_H
#define RONDO_TRITON_SERVED_SESSION_H

#include "triton/served_types.h"

/* Gives an instance on a device ("cpu", "cuda:0") the session of its model there. The first instance creates the
 * session, adds the model and records it; others on the device wait for that, and try it themselves if it fails. `kind`
 * is that of the instance's group, "KIND_CPU" for instance. Thread-safe. Errors: those of rondo_device_open,
 * rondo_session_add_model and rondo_session_capture; INVALID_ARGUMENT with OUT_OF_RANGE (parameters of the
 * configuration). */
RONDO_MUST_USE rondo_status rondo_triton_served_open(rondo_triton_model_state *model, const char *device,
                                                     const char *kind, rondo_triton_served **out_served);

/* Ends the use by an instance without requests. The last one destroys the session. Thread-safe. Errors: those of
 * rondo_session_destroy and rondo_device_close; all memory is freed nevertheless. */
RONDO_MUST_USE rondo_status rondo_triton_served_close(rondo_triton_served *served);

#endif
