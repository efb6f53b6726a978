/* SPDX-License-Identifier: MIT
 * The path: its live outputs, its next call and its end, and the buffers that users release.
 */
#ifndef RONDO_TREE_PATH_PATH_H
#define RONDO_TREE_PATH_PATH_H

#include "tree/tree_internal.h"

/* Reserves memory for the state of so many outputs. */
RONDO_MUST_USE rondo_status rondo_path_reserve(rondo_tree *tree, size_t bits);
/* Makes a set of the first `bits` outputs of the path with those that are not live. */
RONDO_MUST_USE rondo_status rondo_path_list_dead(const rondo_tree *tree, uint32_t bits, uint64_t **out);
/* Adds a recorded call that was launched. */
void rondo_path_advance(rondo_tree *tree, rondo_recorded_call *call);

/* Called when an output lost its last reference, or moves to owned memory: it is no longer live. */
void rondo_path_release(rondo_tree *tree, rondo_stream *stream, const rondo_buffer *buffer);

/* Ends the path. Retained outputs expire or are cloned on the stream; without a stream (NULL), nothing is cloned. The
 * first `input_count` of tree->inputs belong to the call that begins. */
RONDO_MUST_USE rondo_status rondo_path_finish(rondo_tree *tree, rondo_stream *stream, size_t input_count);
/* Whether no output of the step is retained. */
bool rondo_path_is_dead(const rondo_tree *tree);

/* Settles the buffers that users have released since the last time: clears their bits, and frees owned memory after the
 * work of the stream, or later without a stream (NULL). */
void rondo_path_settle(rondo_tree *tree, rondo_stream *stream);

/* The same for buffers of calls inside a body that the stream captures. Other buffers stay unsettled. */
RONDO_MUST_USE rondo_status rondo_path_settle_nested(rondo_tree *tree, rondo_stream *stream);

/* Frees the memory of buffers whose step is over. */
void rondo_path_sweep(rondo_tree *tree, rondo_stream *stream);

/* Orders the stream's work after the tree's earlier work. */
RONDO_MUST_USE rondo_status rondo_path_follow(rondo_tree *tree, rondo_stream *stream);

#endif
