/* SPDX-License-Identifier: MIT
 * Turns a recorded graph into an exec whose moving inputs can get new addresses at each launch.
 */
#ifndef RONDO_TREE_RECORD_BIND_INPUTS_H
#define RONDO_TREE_RECORD_BIND_INPUTS_H

#include "tree/record/record_call.h"

/* Makes the exec of a segment, which the recorder then owns. `is_whole`: there is no other segment. May add nodes to
 * the graph. */
RONDO_MUST_USE rondo_status rondo_recorder_bind(rondo_recorder *recorder, rondo_graph *graph, bool is_whole,
                                                rondo_segment *out);

/* Abandons the recording of a region if a host step would get the caller's address of a moving input. */
RONDO_MUST_USE rondo_status rondo_recorder_refuse_own_user(rondo_recorder *recorder, const void *user);

#endif
