/* SPDX-License-Identifier: MIT
 * Choosing sizes again while a model is served. A thread of its own records the model in a new session, at sizes for
 * the requests that came, while the old session answers. Then new requests go to the new session, and the old one is
 * freed once it has answered its last request. So no request is refused; there are two copies of the model's memory
 * meanwhile. Only the watching thread exchanges and frees sessions.
 *
 * Models with lengths keep their sizes, and so does a model whose configuration has a history, or that changes states,
 * which a new session would begin with their initial values.
 */
#ifndef RONDO_TRITON_SIZE_CHOICE_H
#define RONDO_TRITON_SIZE_CHOICE_H

#include "triton/served_types.h"

/* Reads the configuration. Before the first session is recorded. Errors: INVALID_ARGUMENT with OUT_OF_RANGE,
 * BAD_OPTIONS (a bound on the regret of sizes that are fixed). */
RONDO_MUST_USE rondo_status rondo_triton_sizes_init(rondo_triton_served *served);

/* Under the lock. Sizes are chosen once more, also if the regret is small. */
void rondo_triton_sizes_want(rondo_triton_served *served);

/* For the watching thread, under the lock, which is released meanwhile. Begins a choice that is due, exchanges sessions
 * once the new one is recorded, and frees one that has answered its requests. */
void rondo_triton_sizes_renew(rondo_triton_served *served);
/* Under the lock. Whether rondo_triton_sizes_renew has something to do at once. */
bool rondo_triton_sizes_has_work(const rondo_triton_served *served);

/* After the watching thread has ended, without requests. A choice that is being made ends before its next recording.
 * Frees all but `recorded`. Errors: those of rondo_session_destroy; all memory is freed nevertheless. */
RONDO_MUST_USE rondo_status rondo_triton_sizes_stop(rondo_triton_served *served);

#endif
