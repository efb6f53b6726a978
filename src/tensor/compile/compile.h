/* SPDX-License-Identifier: MIT
 * Compiling a program (FW-1): layout, memory, steps, warm-up, capture, instantiate, upload.
 */
#ifndef RONDO_TENSOR_COMPILE_COMPILE_H
#define RONDO_TENSOR_COMPILE_COMPILE_H

#include "base/component.h"
#include "tensor/program/program_internal.h"

/* Sizes of a program, without memory, code or a recording: what rondo_compile would report. Errors: as rondo_compile.
 */
RONDO_PRIVATE RONDO_MUST_USE rondo_status rondo_compile_plan(rondo_program *program, rondo_device *device,
                                                             const rondo_compile_options *options,
                                                             rondo_compiled_info *out_info);

#endif
