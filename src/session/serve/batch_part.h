/* SPDX-License-Identifier: MIT
 * Running a part of a batch on a place: rows of requests to the device, a launch, rows of results back.
 */
#ifndef RONDO_SESSION_SERVE_BATCH_PART_H
#define RONDO_SESSION_SERVE_BATCH_PART_H

#include "session/session_internal.h"

/* batch_part.c: runs a part on its place and waits for it. */
RONDO_MUST_USE rondo_status rondo_part_run(rondo_model_instance *instance, const rondo_part *part);

#endif
