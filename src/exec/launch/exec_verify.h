/* SPDX-License-Identifier: MIT
 * Verification for the user, of a graph alone or when an exec is made.
 */
#ifndef RONDO_EXEC_LAUNCH_EXEC_VERIFY_H
#define RONDO_EXEC_LAUNCH_EXEC_VERIFY_H

#include "exec/launch/exec_internal.h"

/* Fails with the first error that verification finds; warnings are kept in the draft. `graph` is what the draft was
 * made of: that there was nothing to find is noted there. */
RONDO_MUST_USE rondo_status rondo_exec_draft_verify(const char *call, rondo_exec_draft *draft, rondo_graph *graph);

/* Whether the node would access what it does now; and whether all that a kernel's pointers reach are allocations in
 * which nothing can go wrong: they live, and no graph has them. */
bool rondo_exec_same_accesses(const rondo_exec *exec, uint32_t place, const rondo_node_params *params);
bool rondo_exec_reaches_plain(const rondo_exec *exec, const rondo_kernel_node *node);

/* Fails with the first mistake that the node's accesses would be with these parameters, resolved: of lifetimes, extents
 * and reach. Races are left out, because other nodes may have to change too. */
RONDO_MUST_USE rondo_status rondo_exec_verify_node(const rondo_exec *exec, uint32_t place,
                                                   const rondo_node_params *params);

/* Whether verification found nothing in the graph, and nothing has changed since: neither the graph nor the device's
 * allocations. Taken down when an exec is made or updated with it. */
bool rondo_exec_is_verified(const rondo_graph *graph);

#endif
