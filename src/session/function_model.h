/* SPDX-License-Identifier: MIT
 * A model that is a function: its inputs, outputs and constants are what the user says, as nothing tells them
 * before the body runs.
 */
#ifndef RONDO_SESSION_FUNCTION_MODEL_H
#define RONDO_SESSION_FUNCTION_MODEL_H

#include "session/session_internal.h"

/* function_model.c: inputs, outputs and constants as they were said. */
RONDO_MUST_USE rondo_status rondo_function_model_check(const rondo_model_options *options);
RONDO_MUST_USE rondo_status rondo_function_model_fill(rondo_session_model *model, const rondo_model_options *options);

#endif
