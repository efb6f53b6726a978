/* SPDX-License-Identifier: MIT
 * Giving the driver what an update changes, all of it or nothing; and updates from a graph that differs in parameters
 * alone, which need nothing else.
 */
#ifndef RONDO_EXEC_LAUNCH_UPDATE_IN_PLACE_H
#define RONDO_EXEC_LAUNCH_UPDATE_IN_PLACE_H

#include "exec/launch/exec_internal.h"

/* Whether the graph differs from the exec's clone in parameters alone that can be put in place; if so the nodes with
 * other parameters, in the exec's order, go to `changes`, which has room for all. The graph is the exec's device's. */
bool rondo_exec_fits(const rondo_exec *exec, const rondo_graph *graph, rondo_node_change *changes, size_t *out_count);

/* Gives the driver what becomes of the exec's nodes; the lowering still has what they were. A failure takes back what
 * was given by then; where that fails too, the exec is broken. */
RONDO_MUST_USE rondo_status rondo_exec_commit(rondo_exec *exec, const rondo_node_change *changes, size_t count);

/* *out_done: whether it fits; then its parameters are put in place, all or none. */
RONDO_MUST_USE rondo_status rondo_exec_update_in_place(rondo_exec *exec, const rondo_graph *graph, bool *out_done);

/* Tells the executable where the lowering now has the node at `place`. */
void rondo_exec_rebind(rondo_exec *exec, uint32_t place);

#endif
