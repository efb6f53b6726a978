/* SPDX-License-Identifier: MIT
 * Objects of the user that a recording keeps, such as what its host functions get (rondo_call_keep). They are released
 * when no launch of the recording runs any more, which nobody waits for: until then they are leaving.
 */
#ifndef RONDO_TREE_RECORD_KEPT_OBJECTS_H
#define RONDO_TREE_RECORD_KEPT_OBJECTS_H

#include "tree/tree_internal.h"

/* Objects of a recording that is being freed: they are released once the work that was enqueued so far is done. */
void rondo_kept_leave(rondo_tree *tree, rondo_kept_object **list);

/* Releases leaving objects whose work is done. With `waits` it waits for the work. */
void rondo_kept_settle(rondo_tree *tree, bool waits);

/* Releases all leaving objects of a tree that is being destroyed, whose work is done; if it is not, because the device
 * is lost, they are forgotten. */
void rondo_kept_end(rondo_tree *tree, bool is_done);

#endif
