/* SPDX-License-Identifier: MIT
 * Assertions about the invariants of an exec and its lowering. They do nothing in builds without assertions. Their time
 * is proportional to the number of nodes and edges.
 */
#ifndef RONDO_EXEC_LAUNCH_EXEC_CHECK_H
#define RONDO_EXEC_LAUNCH_EXEC_CHECK_H

#include "exec/launch/exec_internal.h"

#ifdef NDEBUG
static inline void rondo_lowering_check(const rondo_lowering *lowering) { (void)lowering; }
static inline void rondo_exec_check(const rondo_exec *exec) { (void)exec; }
#else
/* The order is topological, edges agree at both ends, and tags map to their indices. */
void rondo_lowering_check(const rondo_lowering *lowering);
/* The exec, its lowering, its clones and its patch sets. */
void rondo_exec_check(const rondo_exec *exec);
#endif

#endif
