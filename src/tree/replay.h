/* SPDX-License-Identifier: MIT
 * Launching what was recorded.
 */
#ifndef RONDO_TREE_REPLAY_H
#define RONDO_TREE_REPLAY_H

#include "tree/tree_internal.h"

/* replay.c: whether what copies inputs inside the graph can copy this one. */
bool rondo_input_can_be_copied(const rondo_tree *tree, const char *address, size_t bytes);

/* Launches a recorded call with the inputs where they are, and takes its host steps; and a segment of it by itself,
 * with inputs where call->addresses says. */
RONDO_MUST_USE rondo_status rondo_replay(rondo_tree *tree, const rondo_recorded_call *call, rondo_stream *stream,
                                         const rondo_resolved_input *inputs);

/* The same in two, for bare inputs as they are given: where there is nothing to be done but to tell their addresses,
 * that is done. */
bool rondo_replay_tell(rondo_tree *tree, const rondo_recorded_call *call, const rondo_input *given);
RONDO_MUST_USE rondo_status rondo_replay_told(const rondo_recorded_call *call, rondo_stream *stream);
RONDO_MUST_USE rondo_status rondo_replay_segment(const rondo_recorded_call *call, const rondo_segment *segment,
                                                 rondo_stream *stream);

#endif
