/* SPDX-License-Identifier: MIT
 * The inputs and outputs of a model: found in its programs, or declared for a function.
 */
#ifndef RONDO_SESSION_MODEL_VALUES_H
#define RONDO_SESSION_MODEL_VALUES_H

#include "session/session_internal.h"

/* Finds the model's inputs and outputs from its programs for two numbers of rows, and with lengths for two lengths.
 * Those that the session writes follow those that requests give. */
RONDO_MUST_USE rondo_status rondo_model_probe(rondo_session_model *model, const rondo_row_inputs *row_inputs);

/* Makes the slots of a head, as many as the budget allows, after it has found the caches and what a slot needs. */
RONDO_MUST_USE rondo_status rondo_model_make_slots(rondo_session_model *model, const rondo_model_options *options);

/* SHAPE unless the network that reads sources, of which this is the shortest length, has states that are caches, and
 * the head has them too. */
RONDO_MUST_USE rondo_status rondo_model_check_source(rondo_session_model *model);

/* Checks the function's declared values in the options, and copies inputs, outputs and constants into the model. */
RONDO_MUST_USE rondo_status rondo_function_model_check(const rondo_model_options *options);
RONDO_MUST_USE rondo_status rondo_function_model_fill(rondo_session_model *model, const rondo_model_options *options);

/* SHAPE: so many rows of an input exceed the address space. */
RONDO_MUST_USE rondo_status rondo_model_check_rows(const char *called, const rondo_session_model *model, size_t rows);

#endif
