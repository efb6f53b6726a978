/* SPDX-License-Identifier: MIT
 * Runs a part of a batch: copies the rows of its requests to the device, launches a graph or runs eagerly, and copies
 * the results back.
 */
#ifndef RONDO_SESSION_SERVE_BATCH_PART_H
#define RONDO_SESSION_SERVE_BATCH_PART_H

#include "session/session_internal.h"

/* Runs a part on an instance whose worker the caller has claimed, and waits for it. Without the lock. */
RONDO_MUST_USE rondo_status rondo_part_run(rondo_model_instance *instance, const rondo_part *part);

#endif
