/* SPDX-License-Identifier: MIT
 * Passing the changes of an update to the driver, all or none; and fast updates with a graph that differs only in
 * parameters.
 */
#ifndef RONDO_EXEC_LAUNCH_UPDATE_IN_PLACE_H
#define RONDO_EXEC_LAUNCH_UPDATE_IN_PLACE_H

#include "exec/launch/exec_internal.h"

/* Whether the graph differs from the exec's clone only in parameters that fit in place of the old ones. If so, writes
 * the nodes with other parameters, in the exec's order, to `changes`, which has an item for each node. The graph is of
 * the exec's device. */
bool rondo_exec_fits(const rondo_exec *exec, const rondo_graph *graph, rondo_node_change *changes, size_t *out_count);

/* Passes the changes to the driver, while the lowering still has the old parameters. A failure is undone; if that fails
 * too, the exec is broken. */
RONDO_MUST_USE rondo_status rondo_exec_commit(rondo_exec *exec, const rondo_node_change *changes, size_t count);

/* Updates the exec if rondo_exec_fits (*out_done): all parameters or, on failure, none. */
RONDO_MUST_USE rondo_status rondo_exec_update_in_place(rondo_exec *exec, const rondo_graph *graph, bool *out_done);

/* Tells the executable where the lowering now has the parameters of the node. */
void rondo_exec_rebind(rondo_exec *exec, uint32_t index);

#endif
