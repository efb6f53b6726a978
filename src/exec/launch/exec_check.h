/* SPDX-License-Identifier: MIT
 * Checks of the invariants of an exec and its lowering (exec_check.c). They assert, and do nothing in builds without
 * assertions. Their time is proportional to the nodes and edges.
 */
#ifndef RONDO_EXEC_LAUNCH_EXEC_CHECK_H
#define RONDO_EXEC_LAUNCH_EXEC_CHECK_H

#include "exec/launch/exec_internal.h"

#ifdef NDEBUG
static inline void rondo_lowering_check(const rondo_lowering *lowering) { (void)lowering; }
static inline void rondo_exec_check(const rondo_exec *exec) { (void)exec; }
#else
/* The order is topological, edges agree at both ends, tags lead to their places. */
void rondo_lowering_check(const rondo_lowering *lowering);
/* The lowering, and what the exec has of its nodes; its clones and patch sets. */
void rondo_exec_check(const rondo_exec *exec);
#endif

#endif
