/* SPDX-License-Identifier: MIT
 * What a model is, found out from its programs for two numbers of rows: its inputs and outputs, and what a row of
 * each is; states must be the same ones.
 */
#ifndef RONDO_SESSION_MODEL_PROBE_H
#define RONDO_SESSION_MODEL_PROBE_H

#include "session/session_internal.h"

/* model_probe.c: finds inputs and outputs out. */
RONDO_MUST_USE rondo_status rondo_model_probe(rondo_session_model *model);

#endif
