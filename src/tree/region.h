/* SPDX-License-Identifier: MIT
 * Regions: the code between two calls as the body of a function.
 */
#ifndef RONDO_TREE_REGION_H
#define RONDO_TREE_REGION_H

#include "tree/tree_internal.h"

/* Frees the region of a function that is freed. NULL is allowed. */
void rondo_region_free(const rondo_tree *tree, rondo_region *region);

/* Abandons the region of the tree that the calling thread has open, if there is one. */
void rondo_region_abandon_in(const rondo_tree *tree);

/* Sets the region that is open in the calling thread; NULL: none. Returns the previous one. A body or a host step sees
 * no region that was begun outside of it. */
rondo_region *rondo_region_swap_open(rondo_region *region);
/* Abandons the open region, if there is one, and fails: this callback of the function, "the body", left it. */
RONDO_MUST_USE rondo_status rondo_region_close_left(const char *callback, const rondo_function *function);

#endif
