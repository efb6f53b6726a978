/* SPDX-License-Identifier: MIT
 * Trees: making and ending them, their steps, and what can be asked of them.
 */
#ifndef RONDO_TREE_TREE_H
#define RONDO_TREE_TREE_H

#include "tree/tree_internal.h"

/* The tree for one outermost use: CONCURRENT_USE, TREE_GONE never (the tree is the caller's). */
RONDO_MUST_USE rondo_status rondo_tree_enter(rondo_tree *tree, const char *call);
void rondo_tree_read_info(rondo_tree *tree, rondo_tree_info *out); /* while it is entered */

#endif
