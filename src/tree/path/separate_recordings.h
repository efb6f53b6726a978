/* SPDX-License-Identifier: MIT
 * Recordings without paths (rondo_tree_options.separate, TR-11). Each has an arena of its own and nothing comes before
 * it; its outputs belong to no step, and are valid until it is replayed. An output of another recording is an input as
 * any memory is; one of its own, which the replay writes, is copied before.
 */
#ifndef RONDO_TREE_PATH_SEPARATE_RECORDINGS_H
#define RONDO_TREE_PATH_SEPARATE_RECORDINGS_H

#include "tree/tree_internal.h"

/* The arena of a recording that is made: its own, which becomes made->arena, or the tree's. */
RONDO_MUST_USE rondo_status rondo_separate_arena(rondo_tree *tree, rondo_recorded_call *made, rondo_arena **out);

/* Room for who holds its outputs. */
RONDO_MUST_USE rondo_status rondo_separate_reserve(rondo_tree *tree, rondo_recorded_call *made);

/* It is about to be replayed with tree->inputs: what is held of it expires, or is cloned on the stream. */
RONDO_MUST_USE rondo_status rondo_separate_begin(rondo_tree *tree, rondo_recorded_call *call, rondo_stream *stream);

/* A buffer of an output is handed out; nobody holds it any more, or it has memory of its own. */
void rondo_separate_hold(rondo_tree *tree, rondo_buffer *buffer);
void rondo_separate_let_go(rondo_recorded_call *call, rondo_queue *queue, const rondo_buffer *buffer);

/* Whether somebody holds outputs of it: it is not evicted. False where there are paths. */
bool rondo_separate_is_held(const rondo_recorded_call *call);

/* CAPTURE_REFUSED for `call`, which would free recordings, when the work that uses them cannot be waited for, as the
 * stream of the last call captures now. */
RONDO_MUST_USE rondo_status rondo_separate_require_waitable(const rondo_tree *tree, const char *call);

/* Its outputs and its arena go, with the tree's work done. */
void rondo_separate_free(rondo_tree *tree, rondo_recorded_call *call);

/* Adds up what the arenas of all recordings hold, and which outputs are held. */
void rondo_separate_add_info(const rondo_tree *tree, rondo_arena_info *arena, uint32_t *inout_live);

#endif
