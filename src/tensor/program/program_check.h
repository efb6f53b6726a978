/* SPDX-License-Identifier: MIT
 * The consistency check of programs. Debug builds run it after each public call that adds several things to a program,
 * and before a program is compiled.
 */
#ifndef RONDO_TENSOR_PROGRAM_PROGRAM_CHECK_H
#define RONDO_TENSOR_PROGRAM_PROGRAM_CHECK_H

#include "tensor/program/program_internal.h"

#ifdef NDEBUG
static inline void rondo_program_check(const rondo_program *program) { (void)program; }
#else
/* Walks the program and asserts its invariant: operations read earlier values, values know the operation that computes
 * them and count their readers, and shapes are valid. */
void rondo_program_check(const rondo_program *program);
#endif

#endif
