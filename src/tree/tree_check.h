/* SPDX-License-Identifier: MIT
 * Checks of a tree's invariants (tree_check.c). They assert, and do nothing in builds without assertions.
 */
#ifndef RONDO_TREE_TREE_CHECK_H
#define RONDO_TREE_TREE_CHECK_H

#include "tree/tree_internal.h"

#ifdef NDEBUG
static inline void rondo_path_check(const rondo_tree *tree) { (void)tree; }
static inline void rondo_tree_check(const rondo_tree *tree) { (void)tree; }
#else
/* The path: its recordings and the outputs that are held. Its time is proportional to the path. */
void rondo_path_check(const rondo_tree *tree);
/* The path, all recordings, functions, execs and buffers. Its time is proportional to their number. */
void rondo_tree_check(const rondo_tree *tree);
#endif

#endif
