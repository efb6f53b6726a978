/* SPDX-License-Identifier: MIT
 * Warm-up and capture of a compiled program.
 */
#ifndef RONDO_TENSOR_COMPILE_PROGRAM_RECORD_H
#define RONDO_TENSOR_COMPILE_PROGRAM_RECORD_H

#include "base/component.h"
#include "tensor/program/program_internal.h"

#include "tensor/compile/layout.h"
#include "tensor/run/compiled.h"

/* Runs all steps once and waits, so that everything that a first use prepares is prepared. Changes the program's
 * memory. Errors: UNSUPPORTED (an operator without code for the device, named), and what the steps return. */
RONDO_MUST_USE rondo_status rondo_warm_up(rondo_compiled *compiled);

/* Whether a warm-up of its kernels would prepare nothing: on a CPU device, or because earlier programs that this one
 * shares with have run them all. Never on a guarded device. */
bool rondo_is_warm(const rondo_compiled *compiled);

/* Runs the calls of libraries alone, one of each shape, which prepare for their sizes, and waits. *out_any: there were
 * some, and they changed the arena, but no state. Errors: UNSUPPORTED as rondo_warm_up; what the calls return. */
RONDO_MUST_USE rondo_status rondo_warm_up_calls(rondo_compiled *compiled, bool *out_any);

/* Captures all steps. Errors: INVALID_STATE/UNPREPARED, with the operator and what the warm-up should have done:
 * prepare something, allocate memory, or a call that a capture refuses. */
RONDO_MUST_USE rondo_status rondo_record(const rondo_program *program, const rondo_layout *layout,
                                         rondo_compiled *compiled);

/* Keeps what rondo_compiled_record_into needs, where the layout has branches. */
RONDO_MUST_USE rondo_status rondo_record_keep(const rondo_layout *layout, rondo_compiled *compiled);

/* Instantiates what was captured, if anything was, and uploads. */
RONDO_MUST_USE rondo_status rondo_record_instantiate(rondo_compiled *compiled);
/* The same for the graph of short runs, if there is one. */
RONDO_MUST_USE rondo_status rondo_record_instantiate_short(rondo_compiled *compiled);

/* The same, but takes the exec of the compiled program that this one replaces where that can be updated in place: it
 * then has none. out_result: why an update was refused. */
RONDO_MUST_USE rondo_status rondo_record_replace(rondo_compiled *compiled, rondo_compiled *replaced,
                                                 rondo_update_result *out_result);

/* program_record.c: captures a run into the capture that the program's stream is part of, after its frontier, with
 * branches if it is laid out for them. What is captured next comes after all branches. For a program that is not
 * recorded itself and has no staged values. Errors: INVALID_STATE/UNPREPARED as rondo_compile. */
RONDO_PRIVATE RONDO_MUST_USE rondo_status rondo_compiled_record_into(rondo_compiled *compiled);

#endif
