/* SPDX-License-Identifier: MIT
 * Launching what was recorded.
 */
#ifndef RONDO_TREE_REPLAY_H
#define RONDO_TREE_REPLAY_H

#include "tree/tree_internal.h"

/* replay.c: whether a copy inside the graph can read this input. */
bool rondo_input_can_be_copied(const rondo_tree *tree, const char *address, size_t bytes);

/* Launches a recorded call with the inputs at their addresses, and takes its host steps; and launches one segment, with
 * the inputs at call->addresses. */
RONDO_MUST_USE rondo_status rondo_replay(rondo_tree *tree, const rondo_recorded_call *call, rondo_stream *stream,
                                         const rondo_resolved_input *inputs);

/* The same in two steps, for raw inputs. The first sets their addresses; it returns false if an input needs more than
 * that. The second launches. */
bool rondo_replay_set_addresses(rondo_tree *tree, const rondo_recorded_call *call, const rondo_input *given);
RONDO_MUST_USE rondo_status rondo_replay_launch(const rondo_recorded_call *call, rondo_stream *stream);
RONDO_MUST_USE rondo_status rondo_replay_segment(const rondo_recorded_call *call, const rondo_segment *segment,
                                                 rondo_stream *stream);

#endif
