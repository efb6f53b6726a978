/* SPDX-License-Identifier: MIT
 * Launches recorded calls.
 */
#ifndef RONDO_TREE_REPLAY_H
#define RONDO_TREE_REPLAY_H

#include "tree/tree_internal.h"

/* Whether a copy inside a graph can read this input. */
bool rondo_input_can_be_copied(const rondo_tree *tree, const char *address, size_t bytes);

/* Launches a recorded call with these inputs, and takes its host steps. */
RONDO_MUST_USE rondo_status rondo_replay(rondo_tree *tree, const rondo_recorded_call *call, rondo_stream *stream,
                                         const rondo_resolved_input *inputs);

/* The same in two steps, for raw inputs. The first function sets their addresses. It returns false if an input needs
 * more than that. The second function launches. */
bool rondo_replay_set_addresses(rondo_tree *tree, const rondo_recorded_call *call, const rondo_input *given);
RONDO_MUST_USE rondo_status rondo_replay_launch(const rondo_recorded_call *call, rondo_stream *stream);
/* Launches one segment with the inputs at call->addresses. */
RONDO_MUST_USE rondo_status rondo_replay_segment(const rondo_recorded_call *call, const rondo_segment *segment,
                                                 rondo_stream *stream);

#endif
