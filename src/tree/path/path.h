/* SPDX-License-Identifier: MIT
 * The path: which of its outputs are alive, how it continues and ends, and what happens to buffers that users release.
 */
#ifndef RONDO_TREE_PATH_PATH_H
#define RONDO_TREE_PATH_PATH_H

#include "tree/tree_internal.h"

/* path.c: adds a launched recorded call to the path and makes buffers for the requested outputs. */
RONDO_MUST_USE rondo_status rondo_path_reserve(rondo_tree *tree, size_t bits);
/* Makes a set of the first `bits` outputs of the path with those that are not live. */
RONDO_MUST_USE rondo_status rondo_path_list_dead(const rondo_tree *tree, uint32_t bits, uint64_t **out);
void rondo_path_advance(rondo_tree *tree, rondo_recorded_call *call);

/* An output lost its last reference, or moves to memory of its own. */
void rondo_path_release(rondo_tree *tree, rondo_stream *stream, const rondo_buffer *buffer);

/* Ends the path. Retained outputs expire or are cloned on the stream; without a stream (NULL), nothing is cloned. The
 * first `input_count` of tree->inputs belong to the call that begins. */
RONDO_MUST_USE rondo_status rondo_path_finish(rondo_tree *tree, rondo_stream *stream, size_t input_count);
bool rondo_path_is_dead(const rondo_tree *tree); /* nobody holds anything of it */

/* Settles buffers that were released since the last time. Memory is freed after the stream's work, or later if the
 * stream is NULL. */
void rondo_path_settle(rondo_tree *tree, rondo_stream *stream);

/* The same for calls inside a body that is recorded, or captured, on the stream. Other buffers wait. */
RONDO_MUST_USE rondo_status rondo_path_settle_nested(rondo_tree *tree, rondo_stream *stream);

/* Frees the memory of buffers of steps that are over. */
void rondo_path_sweep(rondo_tree *tree, rondo_stream *stream);

/* Orders the stream's work after the tree's earlier work. */
RONDO_MUST_USE rondo_status rondo_path_follow(rondo_tree *tree, rondo_stream *stream);

#endif
