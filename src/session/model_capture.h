/* SPDX-License-Identifier: MIT
 * Capturing: graphs recorded on every worker, and the capture mode.
 */
#ifndef RONDO_SESSION_MODEL_CAPTURE_H
#define RONDO_SESSION_MODEL_CAPTURE_H

#include "session/session_internal.h"

/* model_capture.c, while the model is changing. Records a graph for so many rows on all workers; its times are not
 * known yet.
 */
RONDO_MUST_USE rondo_status rondo_session_record(rondo_session_model *model, size_t rows);

/* On one worker; `out` is of the first. */
RONDO_MUST_USE rondo_status rondo_session_record_on(rondo_session_model *model, uint32_t worker, size_t rows,
                                                    rondo_session_graph *out);

/* Back to `count` graphs on each worker; the error of before stays. */
void rondo_session_drop_graphs_from(rondo_session_model *model, size_t count);

#endif
