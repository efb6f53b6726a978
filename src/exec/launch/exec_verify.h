/* SPDX-License-Identifier: MIT
 * Verification of a graph, alone or when an exec is created or updated.
 */
#ifndef RONDO_EXEC_LAUNCH_EXEC_VERIFY_H
#define RONDO_EXEC_LAUNCH_EXEC_VERIFY_H

#include "exec/launch/exec_internal.h"

/* Fails with the first error that verification finds; the draft keeps warnings. `graph` is the graph that was cloned:
 * if there are no findings, that is noted there. */
RONDO_MUST_USE rondo_status rondo_exec_draft_verify(const char *call, rondo_exec_draft *draft, rondo_graph *graph);

/* Whether the node would access the same memory as now. Whether all pointers of a kernel point into allocations that
 * are live and belong to no graph, so that no error is possible. */
bool rondo_exec_same_accesses(const rondo_exec *exec, uint32_t index, const rondo_node_params *params);
bool rondo_exec_accesses_plain(const rondo_exec *exec, const rondo_kernel_node *node);

/* Fails with the first error in the node's accesses with these resolved parameters: lifetimes, extents and access to
 * the memory. Does not look for races, because other nodes may change next. */
RONDO_MUST_USE rondo_status rondo_exec_verify_node(const rondo_exec *exec, uint32_t index,
                                                   const rondo_node_params *params);

/* Whether verification, when an exec was created or updated with the graph, found nothing, and neither the graph nor
 * the device's allocations have changed since. */
bool rondo_exec_is_verified(const rondo_graph *graph);

#endif
