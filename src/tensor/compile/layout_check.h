/* SPDX-License-Identifier: MIT
 * Whether a layout keeps its promises. Debug builds look at each one that is made.
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
/* Asserts that dependencies lead forwards in the order, that kernels of several operations are runs of it, and that
 * values and workspaces that are live together share no byte of the arena. */
void rondo_layout_check(const rondo_program *program, const rondo_layout *layout);
#endif

#endif
