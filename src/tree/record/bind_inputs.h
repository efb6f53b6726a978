/* SPDX-License-Identifier: MIT
 * From a recorded graph to an exec whose moving inputs can be told at each launch.
 */
#ifndef RONDO_TREE_RECORD_BIND_INPUTS_H
#define RONDO_TREE_RECORD_BIND_INPUTS_H

#include "tree/record/record_call.h"

/* bind_inputs.c: the exec of one segment, which then is the recorder's; `is_whole`: there is no other. The graph may be
 * changed.
 */
RONDO_MUST_USE rondo_status rondo_recorder_bind(rondo_recorder *recorder, rondo_graph *graph, bool is_whole,
                                                rondo_segment *out);

#endif
