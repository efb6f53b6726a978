/* SPDX-License-Identifier: MIT
 * Warm-up and capture of a compiled program.
 */
#ifndef RONDO_TENSOR_RECORD_H
#define RONDO_TENSOR_RECORD_H

#include "tensor/compiled.h"
#include "tensor/layout.h"

/* Runs all steps once and waits, so that all that is made ready at a first use is ready. Changes the program's memory.
 * Errors: UNSUPPORTED (an operator without code for the device, named), and what the steps return. */
RONDO_MUST_USE rondo_status rondo_warm_up(rondo_compiled *compiled);

/* Captures all steps, instantiates and uploads. Errors: INVALID_STATE/UNPREPARED with the operator and what it did that
 * the warm-up should have done: something made ready, memory allocated, a call that a capture refuses. */
RONDO_MUST_USE rondo_status rondo_record(const rondo_program *program, const rondo_layout *layout,
                                         rondo_compiled *compiled);

#endif
