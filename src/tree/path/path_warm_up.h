/* SPDX-License-Identifier: MIT
 * Rehearsals (path_warm_up.c). Before a path is recorded its calls run as they are, as warm-ups: one after another,
 * with their outputs held and given up as they will be. A *rehearsal* is what those calls were, from the first one that
 * ran so to the end of the path, after the recording that came before it. With it, a path is planned as a whole before
 * its first recording is made, so that each is placed knowing what comes behind it.
 *
 * Its calls are recorded calls without segments, key or number, whose bits go on behind those of the path. It is
 * advice: what is recorded is checked against it again, and placed by itself where it went otherwise.
 */
#ifndef RONDO_TREE_PATH_PATH_WARM_UP_H
#define RONDO_TREE_PATH_PATH_WARM_UP_H

#include "tree/tree_internal.h"

/* A call of the form ran as it is, behind what is not recorded. Its outputs are the first `count` of the buffers, and
 * those that nobody asked for. The inputs are the tree's, and still held. */
void rondo_rehearsal_add(rondo_function *function, rondo_form *form, rondo_buffer *const *outputs, size_t count);
/* The path is over, of which there is one. */
void rondo_rehearsal_end(rondo_tree *tree);

/* Plans what was rehearsed behind the path's end, if that begins with the form; it is no rehearsal then any more.
 * False: there is nothing, or it failed, which the log says. */
bool rondo_rehearsal_plan(rondo_tree *tree, const rondo_form *form);

/* Rehearsals that the function is part of are dropped; all. */
void rondo_rehearsal_forget(rondo_tree *tree, const rondo_function *function);
void rondo_rehearsal_forget_all(rondo_tree *tree);

#endif
