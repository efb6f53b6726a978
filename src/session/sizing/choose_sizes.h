/* SPDX-License-Identifier: MIT
 * Chooses the batch sizes of a model, and measures its graphs.
 */
#ifndef RONDO_SESSION_SIZING_CHOOSE_SIZES_H
#define RONDO_SESSION_SIZING_CHOOSE_SIZES_H

#include "session/session_internal.h"

/* Measures all graphs of the model and makes its dispatch tables. The model is changing. Claims all workers. */
RONDO_MUST_USE rondo_status rondo_model_measure(rondo_session_model *model);

#endif
