/* SPDX-License-Identifier: MIT
 * Whether recording a compiled program pays.
 */
#ifndef RONDO_TENSOR_COMPILE_PROGRAM_GAIN_H
#define RONDO_TENSOR_COMPILE_PROGRAM_GAIN_H

#include "tensor/run/compiled.h"

/* The options of recording, checked and kept. Errors: INVALID_ARGUMENT with BAD_OPTIONS, OUT_OF_RANGE. */
RONDO_MUST_USE rondo_status rondo_record_options_keep(rondo_compiled *compiled, const rondo_compile_options *given);

/* Decides whether a program that has warmed up is recorded; compiled->info.eager_reason says why not. May run
 * it, which changes its memory. */
RONDO_MUST_USE rondo_status rondo_record_decide(rondo_compiled *compiled, bool *out_is_recorded);

#endif
