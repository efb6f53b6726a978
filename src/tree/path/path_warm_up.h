/* SPDX-License-Identifier: MIT
 * Warm-ups of paths. Before a path is recorded, its calls run eagerly as warm-ups, one after another. Their outputs are
 * retained and released as those of the recorded path will be. A *path warm-up* notes these calls, from the first eager
 * call to the end of the path. So the tree can plan the whole path before the first recording, and places the memory of
 * each call with knowledge of the calls after it.
 *
 * The calls of a path warm-up are recorded calls without segments, key or number. Their bits continue those of the
 * path. A path warm-up is only advice: a recording that differs from it is placed by itself.
 */
#ifndef RONDO_TREE_PATH_PATH_WARM_UP_H
#define RONDO_TREE_PATH_PATH_WARM_UP_H

#include "tree/tree_internal.h"

/* Notes that a call of the form ran eagerly. The caller requested the first `count` outputs. The inputs are in
 * tree->inputs, and still retained. */
void rondo_path_warm_up_add(rondo_function *function, rondo_form *form, rondo_buffer *const *outputs, size_t count);
/* Called when the path ends while a path warm-up is in progress. */
void rondo_path_warm_up_end(rondo_tree *tree);

/* Plans and drops the path warm-up that comes after the path's end and begins with the form. False: there is none, or
 * planning failed, which is logged. */
bool rondo_path_warm_up_plan(rondo_tree *tree, const rondo_form *form);

/* Drops the path warm-ups that contain the function, or all of them. */
void rondo_path_warm_up_forget(rondo_tree *tree, const rondo_function *function);
void rondo_path_warm_up_forget_all(rondo_tree *tree);

#endif
