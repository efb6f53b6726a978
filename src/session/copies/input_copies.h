/* SPDX-License-Identifier: MIT
 * Moves copies of inputs out of a graph. The thread that launches the graph then makes them first.
 */
#ifndef RONDO_SESSION_COPIES_INPUT_COPIES_H
#define RONDO_SESSION_COPIES_INPUT_COPIES_H

#include <rondo/audit.h>

#include "graph/graph_internal.h"

/* Succeeds if the copy in this slot may run before the graph, because every node that does not depend on it leaves its
 * destination alone. Errors as rondo_graph_audit_copies. */
RONDO_MUST_USE rondo_status rondo_audit_check_movable(const rondo_graph *graph, uint32_t slot);

/* Removes nodes that rondo_audit_check_movable has accepted, given in topological order, and adds edges that keep the
 * order of the others. After a failure the graph is unchanged. */
RONDO_MUST_USE rondo_status rondo_audit_remove_copies(rondo_graph *graph, const uint32_t *slots, size_t count,
                                                      uint32_t *out_edges);

#endif
