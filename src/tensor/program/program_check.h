/* SPDX-License-Identifier: MIT
 * Whether a program holds together. Debug builds look after each public call that adds several things to it, and before
 * it is compiled.
 */
#ifndef RONDO_TENSOR_PROGRAM_PROGRAM_CHECK_H
#define RONDO_TENSOR_PROGRAM_PROGRAM_CHECK_H

#include "tensor/program/program_internal.h"

#ifdef NDEBUG
static inline void rondo_program_check(const rondo_program *program) { (void)program; }
#else
/* Walks the program and asserts its invariant: operations read what stands before them, values know who makes them and
 * count their readers, and shapes are valid. */
void rondo_program_check(const rondo_program *program);
#endif

#endif
