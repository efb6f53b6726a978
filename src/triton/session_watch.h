/* SPDX-License-Identifier: MIT
 * A thread for each model on a device, which asks the server while requests are in flight whether any of them was
 * cancelled, reports metrics, and exchanges sessions when sizes are chosen again.
 */
#ifndef RONDO_TRITON_SESSION_WATCH_H
#define RONDO_TRITON_SESSION_WATCH_H

#include "triton/served_types.h"

/* Errors: those of rondo_thread_start. */
RONDO_MUST_USE rondo_status rondo_triton_watch_start(rondo_triton_served *served);

/* Waits for the thread. It may not have been started. */
void rondo_triton_watch_stop(rondo_triton_served *served);

#endif
