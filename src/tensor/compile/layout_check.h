/* SPDX-License-Identifier: MIT
 * The invariant of layouts. Debug builds check each layout after it is made.
 */
#ifndef RONDO_TENSOR_COMPILE_LAYOUT_CHECK_H
#define RONDO_TENSOR_COMPILE_LAYOUT_CHECK_H

#include "tensor/compile/layout.h"

#ifdef NDEBUG
static inline void rondo_layout_check(const rondo_program *program, const rondo_layout *layout) {
  (void)program;
  (void)layout;
}
#else
/* Asserts that dependencies point forwards in the order, that the operations of a kernel are adjacent in it, that live
 * ranges contain all uses, and that values and workspaces that are live together share no byte of the arena. */
void rondo_layout_check(const rondo_program *program, const rondo_layout *layout);
#endif

#endif
