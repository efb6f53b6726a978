/* SPDX-License-Identifier: MIT
 * Records the graphs of a model. All functions are called while the model is changing.
 */
#ifndef RONDO_SESSION_MODEL_CAPTURE_H
#define RONDO_SESSION_MODEL_CAPTURE_H

#include "session/session_internal.h"

/* Records a graph for this number of rows on all streams. Does not measure it. */
RONDO_MUST_USE rondo_status rondo_session_record(rondo_session_model *model, size_t rows);

/* Records it on one stream. Only worker 0 writes `out`. */
RONDO_MUST_USE rondo_status rondo_session_record_on(rondo_session_model *model, uint32_t worker, size_t rows,
                                                    rondo_session_graph *out);

/* Destroys the graphs from index `count` on, on all streams. Keeps the thread's last error. */
void rondo_session_drop_graphs_from(rondo_session_model *model, size_t count);

#endif
