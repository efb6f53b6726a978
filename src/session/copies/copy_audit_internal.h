/* SPDX-License-Identifier: MIT
 * What the files of the copy audit share.
 */
#ifndef RONDO_SESSION_COPIES_COPY_AUDIT_INTERNAL_H
#define RONDO_SESSION_COPIES_COPY_AUDIT_INTERNAL_H

#include <rondo/audit.h>

#include "graph/graph_internal.h"

/* OK when the copy in this slot of the graph, which is no child, can as well be made in front of the graph: nothing
 * that does not come behind it accesses its destination. Errors as rondo_graph_audit_copies. */
RONDO_MUST_USE rondo_status rondo_audit_check_movable(const rondo_graph *graph, uint32_t slot);

/* Takes the nodes out, which rondo_audit_check_movable let pass, and puts the order that went by them in their place.
 * `slots` are in topological order. All or none. */
RONDO_MUST_USE rondo_status rondo_audit_remove_copies(rondo_graph *graph, const uint32_t *slots, size_t count,
                                                      uint32_t *out_edges);

#endif
