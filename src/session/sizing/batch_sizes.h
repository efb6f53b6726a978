/* SPDX-License-Identifier: MIT
 * How many rows are worth a graph for requests that run together.
 */
#ifndef RONDO_SESSION_SIZING_BATCH_SIZES_H
#define RONDO_SESSION_SIZING_BATCH_SIZES_H

#include "session/session_internal.h"

RONDO_MUST_USE rondo_status rondo_model_find_doublings(rondo_session_model *model, const rondo_session_graph *largest,
                                                       rondo_session_graph *out, size_t *out_count);

#endif
