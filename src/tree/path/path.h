/* SPDX-License-Identifier: MIT
 * The path: what of it lives, how it goes on, how it ends, and what comes back from those who held its buffers.
 */
#ifndef RONDO_TREE_PATH_PATH_H
#define RONDO_TREE_PATH_PATH_H

#include "tree/tree_internal.h"

/* path.c: the path takes a recorded call that was launched. Its buffers, as far as asked for, are handed out. */
RONDO_MUST_USE rondo_status rondo_path_reserve(rondo_tree *tree, size_t bits);
void rondo_path_advance(rondo_tree *tree, rondo_recorded_call *call);

/* Nobody holds an output of it any more, or that gets memory of its own. */
void rondo_path_let_go(rondo_tree *tree, rondo_stream *stream, const rondo_buffer *buffer);

/* Ends the path: what is held of it expires or is cloned on the stream. NULL: nothing is cloned. The first
 * `input_count` of tree->inputs are those of the call that begins. */
RONDO_MUST_USE rondo_status rondo_path_finish(rondo_tree *tree, rondo_stream *stream, size_t input_count);
bool rondo_path_is_dead(const rondo_tree *tree); /* nobody holds anything of it */

/* Takes over what was released since; memory is freed after the stream's work, or later when it is NULL. */
void rondo_path_settle(rondo_tree *tree, rondo_stream *stream);

/* The same of calls inside a body that is recorded on the stream, or captured; others are left for later. */
RONDO_MUST_USE rondo_status rondo_path_settle_nested(rondo_tree *tree, rondo_stream *stream);

/* Frees the memory of buffers of steps that are over. */
void rondo_path_sweep(rondo_tree *tree, rondo_stream *stream);

/* The stream's work comes after the tree's earlier work. */
RONDO_MUST_USE rondo_status rondo_path_follow(rondo_tree *tree, rondo_stream *stream);

#endif
