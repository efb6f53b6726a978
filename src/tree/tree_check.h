/* SPDX-License-Identifier: MIT
 * Asserts the invariants of a tree. Does nothing in builds without assertions.
 */
#ifndef RONDO_TREE_TREE_CHECK_H
#define RONDO_TREE_TREE_CHECK_H

#include "tree/tree_internal.h"

#ifdef NDEBUG
static inline void rondo_path_check(const rondo_tree *tree) { (void)tree; }
static inline void rondo_tree_check(const rondo_tree *tree) { (void)tree; }
#else
/* Checks the path: its recorded calls and its live outputs. Takes time proportional to the path. */
void rondo_path_check(const rondo_tree *tree);
/* Checks the path and all recorded calls, functions, execs and buffers. Takes time proportional to their number. */
void rondo_tree_check(const rondo_tree *tree);
#endif

#endif
