/* SPDX-License-Identifier: MIT
 * Warm-ups of paths (path_warm_up.c). Before a path is recorded, its calls run eagerly as warm-ups, one after another.
 * Their outputs are retained and released as those of the recorded path will be. A *path warm-up* notes these calls,
 * from the first eager one to the end of the path, after the recording that came before them. It lets the tree plan the
 * whole path before the first recording is made, so that each call is placed with knowledge of the calls after it.
 *
 * The calls of a path warm-up are recorded calls without segments, key or number. Their bits continue those of the
 * path. A path warm-up is only advice: each recording is checked against it, and is placed on its own where it differs.
 */
#ifndef RONDO_TREE_PATH_PATH_WARM_UP_H
#define RONDO_TREE_PATH_PATH_WARM_UP_H

#include "tree/tree_internal.h"

/* Notes that a call of the form ran eagerly after calls that are not recorded. Its outputs are the first `count`
 * buffers and those that the caller did not request. The inputs are those of the tree, and still retained. */
void rondo_path_warm_up_add(rondo_function *function, rondo_form *form, rondo_buffer *const *outputs, size_t count);
/* Called when the path ends. A path warm-up must be in progress. */
void rondo_path_warm_up_end(rondo_tree *tree);

/* Plans the calls that were warmed up after the path's end, if they begin with the form, and ends the path warm-up.
 * False: there is none, or planning failed, which is logged. */
bool rondo_path_warm_up_plan(rondo_tree *tree, const rondo_form *form);

/* Drops the path warm-ups that the function is part of; or all. */
void rondo_path_warm_up_forget(rondo_tree *tree, const rondo_function *function);
void rondo_path_warm_up_forget_all(rondo_tree *tree);

#endif
