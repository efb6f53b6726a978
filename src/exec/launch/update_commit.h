/* SPDX-License-Identifier: MIT
 * What an update changes is given to the driver here, all of it or nothing.
 */
#ifndef RONDO_EXEC_LAUNCH_UPDATE_COMMIT_H
#define RONDO_EXEC_LAUNCH_UPDATE_COMMIT_H

#include "exec/launch/exec_internal.h"

/* Gives the driver what becomes of the exec's nodes; the lowering still has what they were. A failure takes back what
 * was given by then; where that fails too, the exec is broken. */
RONDO_MUST_USE rondo_status rondo_exec_commit(rondo_exec *exec, const rondo_node_change *changes, size_t count);

/* Tells the executable where the lowering has the node of a place now. */
void rondo_exec_rebind(rondo_exec *exec, uint32_t place);

#endif
