/* SPDX-License-Identifier: MIT
 * Trees: creation, destruction, steps and queries.
 */
#ifndef RONDO_TREE_TREE_H
#define RONDO_TREE_TREE_H

#include "tree/tree_internal.h"

/* Begins an outermost use of the tree. Fails with CONCURRENT_USE. The second function first checks that the tree is not
 * NULL, and that no callback makes the call. */
RONDO_MUST_USE rondo_status rondo_tree_enter(rondo_tree *tree, const char *call);
RONDO_MUST_USE rondo_status rondo_tree_begin_call(rondo_tree *tree, const char *call);
static inline void rondo_tree_leave(rondo_tree *tree) { atomic_store_explicit(&tree->owner, 0, memory_order_release); }
bool rondo_tree_is_owner(const rondo_tree *tree); /* of the call in progress, which is in a body */
/* Whether the calling thread is in a body of the tree. */
static inline bool rondo_tree_is_mine(const rondo_tree *tree) {
  return __builtin_expect(atomic_load_explicit(&tree->owner, memory_order_relaxed) != 0, 0) &&
         rondo_tree_is_owner(tree);
}

void rondo_tree_read_info(rondo_tree *tree, rondo_tree_info *out); /* while it is entered */

#endif
