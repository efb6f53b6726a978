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

/* A call of the form ran eagerly, after calls that are not recorded. Its outputs are the first `count` of the buffers,
 * and those that nobody asked for. The inputs are the tree's, and still held. */
void rondo_path_warm_up_add(rondo_function *function, rondo_form *form, rondo_buffer *const *outputs, size_t count);
/* The path is over, of which there is one. */
void rondo_path_warm_up_end(rondo_tree *tree);

/* Plans what was warmed up after the path's end, if that begins with the form; it is no warm-up then any more.
 * False: there is nothing, or it failed, which the log says. */
bool rondo_path_warm_up_plan(rondo_tree *tree, const rondo_form *form);

/* Path warm-ups that the function is part of are dropped; all. */
void rondo_path_warm_up_forget(rondo_tree *tree, const rondo_function *function);
void rondo_path_warm_up_forget_all(rondo_tree *tree);

#endif
