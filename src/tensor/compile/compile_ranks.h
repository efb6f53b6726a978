/* SPDX-License-Identifier: MIT
 * What cannot be compiled for several ranks.
 */
#ifndef RONDO_TENSOR_COMPILE_COMPILE_RANKS_H
#define RONDO_TENSOR_COMPILE_COMPILE_RANKS_H

#include "tensor/program/program_internal.h"

/* OK for a program that is not data-parallel. Errors: as rondo_program_data_parallel says of rondo_compile. */
RONDO_MUST_USE rondo_status rondo_compile_check_ranks(const char *call, const rondo_program *program,
                                                      const rondo_device *device, const rondo_compile_options *given);

#endif
