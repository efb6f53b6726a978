/* SPDX-License-Identifier: MIT
 * From a recorded graph to an exec whose moving inputs can be told at each launch.
 */
#ifndef RONDO_TREE_RECORD_BIND_INPUTS_H
#define RONDO_TREE_RECORD_BIND_INPUTS_H

#include "tree/record/record_call.h"

/* bind_inputs.c: the exec of one segment, which then is the take's; `is_whole`: there is no other. The graph may be
 * changed.
 */
RONDO_MUST_USE rondo_status rondo_take_bind(rondo_take *take, rondo_graph *graph, bool is_whole, rondo_segment *out);

#endif
