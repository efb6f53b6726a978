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

/* The same in two steps, for raw inputs as they are given. The first sets their addresses if that is all there is to
 * do, and else returns false. The second launches. */
bool rondo_replay_set_addresses(rondo_tree *tree, const rondo_recorded_call *call, const rondo_input *given);
RONDO_MUST_USE rondo_status rondo_replay_launch(const rondo_recorded_call *call, rondo_stream *stream);
RONDO_MUST_USE rondo_status rondo_replay_segment(const rondo_recorded_call *call, const rondo_segment *segment,
                                                 rondo_stream *stream);

#endif
