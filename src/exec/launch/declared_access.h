/* SPDX-License-Identifier: MIT
 * Checks that all memory that an exec's nodes declare to access is allocated (GM-18).
 */
#ifndef RONDO_EXEC_LAUNCH_DECLARED_ACCESS_H
#define RONDO_EXEC_LAUNCH_DECLARED_ACCESS_H

#include "exec/launch/exec_internal.h"

RONDO_MUST_USE rondo_status rondo_exec_check_access(const char *call, rondo_exec *exec);

/* Call it after the exec was created from the graph, or updated with it. If all memory is allocated now, the first
 * launch needs no check. If not, the launch checks, and the graph does not count as verified for other execs. */
void rondo_exec_begin_access(rondo_exec *exec, rondo_graph *graph);

/* The same after one node got other addresses. */
void rondo_exec_renew_access(rondo_exec *exec, uint32_t index);

#endif
