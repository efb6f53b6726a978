/* SPDX-License-Identifier: MIT
 * Whether what an exec's nodes declare to access is allocated when it is launched (GM-18).
 */
#ifndef RONDO_EXEC_LAUNCH_DECLARED_ACCESS_H
#define RONDO_EXEC_LAUNCH_DECLARED_ACCESS_H

#include "exec/launch/exec_internal.h"

RONDO_MUST_USE rondo_status rondo_exec_check_reach(const char *call, rondo_exec *exec);

/* The exec is made of the graph, or updated: looks whether all is allocated already, so that its first launch need not,
 * or notes that it must, and that the graph is not verified for other execs. Cannot fail. */
void rondo_exec_begin_reach(rondo_exec *exec, rondo_graph *graph);

/* The node at the place has got other addresses: the same. */
void rondo_exec_renew_reach(rondo_exec *exec, uint32_t place);

#endif
